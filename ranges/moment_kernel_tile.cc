// This file is compiled once per instruction set, each time with another name
// for the function (REQUANT_MOMENT_KERNEL). It uses no function from a header,
// because the linker keeps one copy of those, which might require a better CPU.

#include <cstdint>

#include "ranges/moment_kernel.h"

namespace requant {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorFloats = 16;
constexpr int kVectors = 1;
constexpr int kRows = 8;
#elif defined(__AVX2__)
constexpr int kVectorFloats = 8;
constexpr int kVectors = 2;
constexpr int kRows = 4;
#else
constexpr int kVectorFloats = 4;
constexpr int kVectors = 2;
constexpr int kRows = 4;
#endif

using Vector
    __attribute__((vector_size(kVectorFloats * sizeof(float)), may_alias)) =
        float;

constexpr int kColumns = kVectors * kVectorFloats;
static_assert(kMomentPanel % kRows == 0 && kMomentPanel % kColumns == 0);
static_assert(alignof(MomentRow) % alignof(Vector) == 0);

// Sums the products of left channels i + 0, 1, ... and right channels j + 0, 1,
// ... over all rows, for as many of them as fit into registers.
void SumProducts(const MomentTile& tile, int64_t i, int64_t j,
                 MomentRow* products) {
  Vector sums[kRows][kVectors] = {};
  for (int64_t row = 0; row < tile.rows; ++row) {
    const float* left = tile.left[row].values + i;
    const auto* right =
        reinterpret_cast<const Vector*>(tile.right[row].values + j);
    for (int k = 0; k < kRows; ++k) {
      for (int l = 0; l < kVectors; ++l) sums[k][l] += left[k] * right[l];
    }
  }
  for (int k = 0; k < kRows; ++k) {
    auto* stored = reinterpret_cast<Vector*>(products[i + k].values + j);
    for (int l = 0; l < kVectors; ++l) stored[l] = sums[k][l];
  }
}

}  // namespace

void REQUANT_MOMENT_KERNEL(const MomentTile& tile) {
  MomentRow products[kMomentPanel];
  for (int64_t i = 0; i < kMomentPanel; i += kRows) {
    for (int64_t j = 0; j < kMomentPanel; j += kColumns) {
      SumProducts(tile, i, j, products);
    }
  }
  const bool diagonal = tile.first_left == tile.first_right;
  for (int64_t i = 0; i < kMomentPanel; ++i) {
    const int64_t channel = tile.first_left + i;
    if (channel >= tile.channels) break;
    const double shift = tile.shift_weight * tile.shift[channel];
    const double remainder = tile.remainder_weight * tile.remainder[channel];
    const double* shifts = tile.shift + tile.first_right;
    const double* remainders = tile.remainder + tile.first_right;
    double* sums =
        tile.triangle + channel * (channel + 1) / 2 + tile.first_right;
    const int64_t columns = diagonal ? i + 1 : kMomentPanel;
    for (int64_t j = 0; j < columns; ++j) {
      sums[j] += products[i].values[j] +
                 (shift * shifts[j] + remainder * remainders[j]);
    }
  }
}

}  // namespace requant
