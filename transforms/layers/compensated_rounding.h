#ifndef REQUANT_TRANSFORMS_LAYERS_COMPENSATED_ROUNDING_H_
#define REQUANT_TRANSFORMS_LAYERS_COMPENSATED_ROUNDING_H_

// Rounds the weights of a layer y = x·W to int8 codes so that the error of y
// over a set of records is small, not the error of each weight.
//
// With D = W − codes·scale and H = E[(x − m)(x − m)^T], the covariance of the
// inputs, the squared error of the outputs is tr(D^T H D) once the bias has
// taken up the mean, m·D. The rows of W are rounded one after another, those of
// the largest variance first; each is rounded to the value that, given the
// errors of the rows before it, is best if the rows after it could still take
// any value. So inputs that go together make up for each other's errors.
//
// The result depends on the arguments only: neither on the CPU nor on the
// number of threads.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace requant {

// Which rows of a column may not have codes of a sum beyond ±128: CPUs without
// VNNI sum two neighbours' products in an int16
// (transforms/layers/quantized_weights.h).
enum class PairLimit {
  // Any codes: VNNI.
  kNone,
  // Every two neighbours: safe wherever the kernel cuts the rows, as it does
  // with 513 of them at an odd one.
  kNeighbours,
};

struct RoundingOptions {
  PairLimit pair_limit = PairLimit::kNeighbours;
  int threads = 1;
};

struct CompensatedRounding {
  // Row-major, as the weights; within ±127.
  std::vector<int8_t> codes;
  // A weight is about code · scale; scale = max|W| / levels.
  float scale = 0;
  // 127, or with a pair limit one of a few from 127 down to 64: that with the
  // least sum of squares of the outputs' losses.
  int levels = 0;
  // tr(D^T H D), with H damped (below).
  double loss = 0;
  // The same for weights rounded to the nearest of as many levels as are always
  // safe: 127, or 64 with a pair limit. Never less than `loss`.
  double nearest_loss = 0;
  // What was added to the diagonal of H, so that directions in which the
  // records happen not to vary do not get arbitrary errors: 0.01 times the mean
  // of the diagonal, or more where H is not positive semidefinite.
  double damping = 0;
  // Codes that would have been larger but for ±127 or the pair limit.
  int64_t clipped = 0;
};

// Rounds `weights`, a row-major matrix [rows, columns], for inputs of the
// covariance `moments`, a matrix [rows, rows] of which only the lower triangle
// is read. Moments that are all zero count as the identity, for which every
// code is the nearest one. It is an error if the sizes do not fit, a number is
// not finite, the weights are all zero or the moments are no covariance.
absl::StatusOr<CompensatedRounding> RoundCompensated(
    absl::Span<const float> weights, int64_t rows, int64_t columns,
    absl::Span<const double> moments, const RoundingOptions& options);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_COMPENSATED_ROUNDING_H_
