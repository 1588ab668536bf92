// Compiled once per instruction set, each time with another name for the
// function (REQUANT_MOMENT_KERNEL). It uses no function of a header: the linker
// keeps one copy of those, which might be the one for a better CPU.

#include <cstdint>

#include "logs_parser/moment_kernel.h"

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

using Vector __attribute__((vector_size(kVectorFloats * sizeof(float)))) =
    float;

constexpr int kColumns = kVectors * kVectorFloats;
static_assert(kMomentPanel % kRows == 0 && kMomentPanel % kColumns == 0);

// products[i][j] = the sum over all rows of left[i] * right[j], for as many i
// and j as the registers hold.
void SumProducts(const float* left, const float* right, int64_t rows,
                 float* products) {
  Vector sums[kRows][kVectors] = {};
  for (int64_t row = 0; row < rows; ++row) {
    Vector columns[kVectors];
    __builtin_memcpy(columns, right + row * kMomentPanel, sizeof(columns));
    for (int i = 0; i < kRows; ++i) {
      const float value = left[row * kMomentPanel + i];
      for (int j = 0; j < kVectors; ++j) sums[i][j] += value * columns[j];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    __builtin_memcpy(products + i * kMomentPanel, sums[i], sizeof(sums[i]));
  }
}

}  // namespace

void REQUANT_MOMENT_KERNEL(const MomentTile& tile) {
  float products[kMomentPanel * kMomentPanel];
  for (int64_t i = 0; i < kMomentPanel; i += kRows) {
    for (int64_t j = 0; j < kMomentPanel; j += kColumns) {
      SumProducts(tile.left + i, tile.right + j, tile.rows,
                  products + i * kMomentPanel + j);
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
      sums[j] += products[i * kMomentPanel + j] +
                 (shift * shifts[j] + remainder * remainders[j]);
    }
  }
}

}  // namespace requant
