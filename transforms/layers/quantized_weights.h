#ifndef REQUANT_TRANSFORMS_LAYERS_QUANTIZED_WEIGHTS_H_
#define REQUANT_TRANSFORMS_LAYERS_QUANTIZED_WEIGHTS_H_

// Quantizes weights to qint8 codes, symmetric about zero: w ≈ code · range/127.
//
// CPUs with VNNI (or AMX) sum products of uint8 inputs and int8 weights
// exactly, so all codes up to ±127 are safe. Other CPUs multiply two
// neighbouring rows of the matrix at once and sum the two products in an int16,
// which silently saturates. The inputs' codes reach 255, so two weights w0, w1
// of one column are safe if 255·|w0 + w1| fits, that is if |w0 + w1| <= 128.
// Which rows form pairs depends on where oneDNN cuts the matrix (at an odd row
// if it has 513 of them), so this must hold for every two neighbours. 64 levels
// would always suffice. But neighbours are seldom both as large as the largest
// weight, so there may be as many levels as the largest pair of the matrix
// allows, and a code is lowered only where rounding exceeds the limit. (Still
// more levels, with more codes lowered, have a smaller squared error, but
// measurements show a worse model: the largest weights matter most.)

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// Which codes are safe.
enum class WeightRule { kAnyCode, kPairsFitInt16 };

// Returns the rule for the CPUs that a model is quantized for, given a value of
// the parameter "target": "any" (safe everywhere), "avx2", "avx512", "vnni",
// "avx_vnni" or "amx". An error lists the names.
absl::StatusOr<WeightRule> WeightRuleOf(const std::string& target);

// The largest allowed |code + code| of two neighbours in a column.
inline constexpr int kMaxPairSum = 128;
// With this many levels on either side, no sum exceeds kMaxPairSum.
inline constexpr int kPairSafeLevels = 64;
inline constexpr int kMaxLevels = 127;

struct QuantizedWeights {
  // qint8, in the shape of the weights.
  tensorflow::Tensor codes;
  // One step is range/127, the kernels' own formula, whatever the levels.
  float range = 0;
  // The code of the largest weight before pairs were lowered.
  int levels = kMaxLevels;
  // The number of neighbouring pairs that were lowered.
  int64_t lowered = 0;
  // Root of the sum of squared errors over that of squared weights.
  double relative_error = 0;
};

// Quantizes a float matrix [inputs, outputs], which must be finite and not all
// zero. With kAnyCode, code = rint(w · 127/max|w|). With kPairsFitInt16, the
// number of levels is the one with the least squared error among those tried.
QuantizedWeights QuantizeWeights(const tensorflow::Tensor& weights,
                                 WeightRule rule);

// Does the same with the given levels, from kPairSafeLevels to kMaxLevels.
QuantizedWeights QuantizeWeights(const tensorflow::Tensor& weights,
                                 WeightRule rule, int levels);

// Returns the largest absolute value of a float tensor; 0 if it is empty.
float LargestMagnitude(const tensorflow::Tensor& values);

// Returns Σ_k codes[k][j] for each column j of a qint8 matrix.
std::vector<int64_t> ColumnSums(const tensorflow::Tensor& codes);

// The codes that TensorFlow's QuantizeV2 gives at run time, computed in
// advance, bit for bit. (Running QuantizeV2 on a constant does not give them:
// TensorFlow uses another kernel there, whose MIN_FIRST codes differ by one.)

struct CodeFormula {
  tensorflow::DataType type;  // DT_QUINT8 or DT_QINT8
  bool scaled;                // SCALED, rounding half to even; else MIN_FIRST
  // The range that QuantizeV2 gives as its second and third output.
  float min;
  float max;
};

inline bool operator==(const CodeFormula& a, const CodeFormula& b) {
  return a.type == b.type && a.scaled == b.scaled && a.min == b.min &&
         a.max == b.max;
}

// Returns whether the range is wide enough to have a scale.
bool HasScale(const CodeFormula& formula);

// Returns the codes of `values`, which must be floats, none of them NaN.
tensorflow::Tensor QuantizedCodes(const CodeFormula& formula,
                                  const tensorflow::Tensor& values);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_QUANTIZED_WEIGHTS_H_
