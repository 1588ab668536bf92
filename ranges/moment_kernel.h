#ifndef REQUANT_RANGES_MOMENT_KERNEL_H_
#define REQUANT_RANGES_MOMENT_KERNEL_H_

// The inner loops of ChannelMomentsBuilder, compiled for several instruction
// sets. All give the same bits, because each sum is added up in row order and
// no two operations are contracted into one.

#include <cstdint>
#include <vector>

namespace requant {

// Channels are computed in panels of this many.
inline constexpr int64_t kMomentPanel = 16;

// One row of a panel, aligned for loading vectors of any length.
struct alignas(64) MomentRow {
  float values[kMomentPanel];
};

// What to add to one tile of a triangle of sums of products.
struct MomentTile {
  // The panels of the tile's rows and of its columns; the latter is the same or
  // an earlier one.
  const MomentRow* left = nullptr;
  const MomentRow* right = nullptr;
  // The number of rows in each panel.
  int64_t rows = 0;
  // The first channel of each panel, and the number of all channels.
  int64_t first_left = 0;
  int64_t first_right = 0;
  int64_t channels = 0;
  // Values of all channels. Adds to the sum of (i, j) also shift_weight *
  // shift[i] * shift[j] and remainder_weight * remainder[i] * remainder[j].
  double shift_weight = 0;
  const double* shift = nullptr;
  double remainder_weight = 0;
  const double* remainder = nullptr;
  // The sum of (i, j), i >= j, is at index i * (i + 1) / 2 + j.
  double* triangle = nullptr;
};

using MomentKernel = void (*)(const MomentTile& tile);

// Add a tile: the first on any CPU, the others with more instruction sets.
void AddMomentTile(const MomentTile& tile);
void AddMomentTileAvx2(const MomentTile& tile);
void AddMomentTileAvx512(const MomentTile& tile);

// Returns those that this CPU supports, fastest last (channel_moments.cc).
std::vector<MomentKernel> MomentKernels();

}  // namespace requant

#endif  // REQUANT_RANGES_MOMENT_KERNEL_H_
