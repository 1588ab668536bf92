#ifndef REQUANT_TRANSFORMS_LAYERS_ROUNDING_OBJECTIVE_H_
#define REQUANT_TRANSFORMS_LAYERS_ROUNDING_OBJECTIVE_H_

// What compensated_rounding.cc minimises, and the product of matrices that both
// making it and minimising it spend their time in.

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

// Neither version fuses multiply-adds (-ffp-contract=off), so the bits agree.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define REQUANT_VECTORIZED __attribute__((target_clones("avx2", "default")))
#else
#define REQUANT_VECTORIZED
#endif

namespace requant::rounding {

// The number of rows whose effect on the others is applied at once.
inline constexpr int64_t kBlock = 64;

// Calls work(0) … work(count − 1), in any order, on up to `threads` threads.
void ForEach(int64_t count, int threads,
             const std::function<void(int64_t)>& work);

// Computes out[r][c] −= Σ_d factors[r][d] · panel[d][c]. The two strides of
// `factors` allow it to be read transposed.
template <typename T>
struct Product {
  const T* factors;
  int64_t factor_row_stride;
  int64_t factor_depth_stride;
  const T* panel;
  int64_t panel_stride;
  int64_t depth;
  T* out;
  int64_t out_stride;
  int64_t rows;
  // Must be a multiple of kTileColumns<T>.
  int64_t columns;
};

template <typename T>
inline constexpr int64_t kTileColumns = 64 / sizeof(T);

void Subtract(const Product<float>& product);
void Subtract(const Product<double>& product);

// H in the form of the sum of squares to minimise, with its rows in the order
// of rounding (see compensated_rounding.cc).
struct Objective {
  // The weights' row that comes k-th, and the inverse mapping.
  std::vector<int64_t> order;
  std::vector<int64_t> position;
  // The mean of H's diagonal, which is the unit of H here.
  double unit = 1;
  // In the same unit.
  double damping = 0;
  // R_kk for each k.
  std::vector<float> diagonal;
  // R_jk / R_kk at [k][j] for j < k.
  std::vector<float> feedback;

  int64_t rows() const { return order.size(); }
};

// Returns the objective for inputs with the covariance `moments`, of which only
// the lower triangle is read. Fails if they are no covariance.
absl::StatusOr<Objective> MakeObjective(absl::Span<const double> moments,
                                        int64_t rows, int threads);

}  // namespace requant::rounding

#endif  // REQUANT_TRANSFORMS_LAYERS_ROUNDING_OBJECTIVE_H_
