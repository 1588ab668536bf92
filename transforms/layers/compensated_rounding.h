#ifndef REQUANT_TRANSFORMS_LAYERS_COMPENSATED_ROUNDING_H_
#define REQUANT_TRANSFORMS_LAYERS_COMPENSATED_ROUNDING_H_

// Rounds the weights of a layer y = x·W to int8 codes so that the error of y
// over a set of records is small, not the error of each weight.
//
// With D = W − codes·scale and H = E[(x − m)(x − m)^T], the covariance of the
// inputs, the squared error of the outputs is tr(D^T H D) once the bias has
// taken up the mean, m·D. The rows of W are rounded one after another, those of
// the largest variance first; each is rounded to the value that, given the
// errors of the rows before it, would be best if the rows after it could take
// any value. So correlated inputs compensate for each other's errors.
//
// The result depends on the arguments only: neither on the CPU nor on the
// number of threads.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace requant {

// Which pairs of codes in a column must not have a sum beyond ±128: CPUs
// without VNNI sum two neighbours' products in an int16
// (transforms/layers/quantized_weights.h).
enum class PairLimit {
  // Any codes are safe: for CPUs with VNNI.
  kNone,
  // Every two neighbours. This is safe wherever the kernel cuts the rows; with
  // 513 rows, for example, it cuts at an odd one.
  kNeighbours,
};

struct RoundingOptions {
  PairLimit pair_limit = PairLimit::kNeighbours;
  int threads = 1;
};

struct CompensatedRounding {
  // Within ±127, in row-major order like the weights.
  std::vector<int8_t> codes;
  // A weight is about code · scale; scale = max|W| / levels.
  float scale = 0;
  // 127, or with a pair limit one of a few values from 127 down to 64: the one
  // with the least sum of squares of the outputs' losses.
  int levels = 0;
  // tr(D^T H D), with H damped (see `damping`).
  double loss = 0;
  // The loss of weights rounded to the nearest of as many levels as are always
  // safe: 127, or 64 with a pair limit. It is never less than `loss`.
  double nearest_loss = 0;
  // The amount added to the diagonal of H, so that directions in which the
  // records happen not to vary do not get arbitrary errors: 0.01 times the mean
  // of the diagonal, or more if H is not positive semidefinite.
  double damping = 0;
  // The number of codes that ±127 or the pair limit made smaller.
  int64_t clipped = 0;
};

// Rounds `weights`, a row-major matrix [rows, columns], for inputs with the
// covariance `moments`, a matrix [rows, rows] of which only the lower triangle
// is read. Moments that are all zero count as the identity, for which every
// code is the nearest one. Fails if the sizes do not match, a number is not
// finite, the weights are all zero or the moments are no covariance.
absl::StatusOr<CompensatedRounding> RoundCompensated(
    absl::Span<const float> weights, int64_t rows, int64_t columns,
    absl::Span<const double> moments, const RoundingOptions& options);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_COMPENSATED_ROUNDING_H_
