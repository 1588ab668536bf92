#include "transforms/layers/quantized_weights.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

using tensorflow::Tensor;

double SquaredNorm(const Tensor& weights) {
  const auto values = weights.flat<float>();
  double sum = 0;
  for (int64_t i = 0; i < values.size(); ++i) {
    sum += static_cast<double>(values(i)) * values(i);
  }
  return sum;
}

// Rounds half to even like std::rint, in two instructions. Requires |x| < 2^22.
inline float Round(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 · 2^23
  return (x + kShift) - kShift;
}

// Lowers two codes whose sum is too large to the codes with the largest allowed
// sum that are nearest to the wanted values. Neither code grows, so the pairs
// with their other neighbours stay valid.
inline void LowerPair(float wanted0, float wanted1, float* code0,
                      float* code1) {
  const float sign = *code0 > 0 ? 1 : -1;
  const float nearest = Round((sign * (wanted0 - wanted1) + kMaxPairSum) / 2);
  const float lowered =
      std::clamp<float>(nearest, kMaxPairSum - sign * *code1, sign * *code0);
  *code0 = sign * lowered;
  *code1 = sign * (kMaxPairSum - lowered);
}

// The quantization of a matrix at one number of levels.
struct Pass {
  const float* weights;
  int64_t rows;
  int64_t columns;
  WeightRule rule;
  float codes_per_unit;
  // The codes are written here.
  tensorflow::qint8* codes;
  // The error in units of squared codes.
  double squared_error = 0;
  int64_t lowered = 0;

  void Run() {
    std::vector<float> wanted(columns), code(columns);
    std::vector<float> next_wanted(columns), next_code(columns);
    for (int64_t row = 0; row < rows; ++row) {
      Quantize(row, &next_wanted, &next_code);
      if (row > 0) {
        if (rule == WeightRule::kPairsFitInt16) {
          LowerPairs(wanted, next_wanted, &code, &next_code);
        }
        Finish(row - 1, wanted, code);
      }
      wanted.swap(next_wanted);
      code.swap(next_code);
    }
    Finish(rows - 1, wanted, code);
  }

 private:
  void Quantize(int64_t row, std::vector<float>* wanted,
                std::vector<float>* code) const {
    const float* from = weights + row * columns;
    for (int64_t j = 0; j < columns; ++j) {
      (*wanted)[j] = from[j] * codes_per_unit;
      (*code)[j] = Round((*wanted)[j]);
    }
  }

  void LowerPairs(const std::vector<float>& wanted,
                  const std::vector<float>& next_wanted,
                  std::vector<float>* code, std::vector<float>* next_code) {
    for (int64_t j = 0; j < columns; ++j) {
      if (std::fabs((*code)[j] + (*next_code)[j]) <= kMaxPairSum) continue;
      LowerPair(wanted[j], next_wanted[j], &(*code)[j], &(*next_code)[j]);
      ++lowered;
    }
  }

  void Finish(int64_t row, const std::vector<float>& wanted,
              const std::vector<float>& code) {
    float error = 0;
    for (int64_t j = 0; j < columns; ++j) {
      error += (code[j] - wanted[j]) * (code[j] - wanted[j]);
    }
    squared_error += error;
    for (int64_t j = 0; j < columns; ++j) {
      codes[row * columns + j] = static_cast<int8_t>(code[j]);
    }
  }
};

// Returns the largest |w0 + w1| of two neighbours in a column.
float LargestPairSum(const Tensor& weights) {
  const auto values = weights.matrix<float>();
  float largest = 0;
  for (int64_t row = 0; row + 1 < values.dimension(0); ++row) {
    for (int64_t j = 0; j < values.dimension(1); ++j) {
      largest =
          std::max(largest, std::fabs(values(row, j) + values(row + 1, j)));
    }
  }
  return largest;
}

// Returns the most levels at which no two unrounded neighbours are too large.
int BestLevels(const Tensor& weights, WeightRule rule) {
  if (rule == WeightRule::kAnyCode) return kMaxLevels;
  const float allowed = kMaxPairSum * LargestMagnitude(weights);
  const float pair = LargestPairSum(weights);
  if (allowed >= kMaxLevels * pair) return kMaxLevels;
  return std::max(kPairSafeLevels, static_cast<int>(allowed / pair));
}

// Each product and each sum below is rounded to float separately, as in the
// kernels; the BUILD file forbids the compiler to contract them.

// SCALED codes of qint8 reach half a step beyond 127 on both sides.
float Scale(const CodeFormula& formula) {
  if (!formula.scaled) return 255.0f / (formula.max - formula.min);
  return (formula.type == tensorflow::DT_QINT8 ? 127.5f : 255.0f) / formula.max;
}

template <typename Code>
Tensor CodesOf(const CodeFormula& formula, const Tensor& values, float lowest) {
  const float scale = Scale(formula);
  const float highest = lowest + 255;
  const auto rounded = [&](float x) {
    if (formula.scaled) return std::rint(x * scale);
    // oneDNN has this kernel for quint8 only; qint8 goes to Eigen's.
    if (lowest == 0) return std::rint(x * scale + -formula.min * scale);
    return std::round(x * scale) - std::round(formula.min * scale) + lowest;
  };
  Tensor codes(tensorflow::DataTypeToEnum<Code>::value, values.shape());
  const auto from = values.flat<float>();
  auto to = codes.flat<Code>();
  for (int64_t i = 0; i < from.size(); ++i) {
    to(i) = Code(static_cast<decltype(Code::value)>(
        std::clamp(rounded(from(i)), lowest, highest)));
  }
  return codes;
}

}  // namespace

float LargestMagnitude(const Tensor& weights) {
  const auto values = weights.flat<float>();
  float largest = 0;
  for (int64_t i = 0; i < values.size(); ++i) {
    largest = std::max(largest, std::fabs(values(i)));
  }
  return largest;
}

absl::StatusOr<WeightRule> WeightRuleOf(const std::string& target) {
  constexpr std::string_view kSaturating[] = {"any", "avx2", "avx512"};
  constexpr std::string_view kExact[] = {"vnni", "avx_vnni", "amx"};
  if (absl::c_linear_search(kSaturating, target)) {
    return WeightRule::kPairsFitInt16;
  }
  if (absl::c_linear_search(kExact, target)) return WeightRule::kAnyCode;
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no target \"", target, "\"; there are ",
      absl::StrJoin(kSaturating, ", "), ", ", absl::StrJoin(kExact, ", ")));
}

QuantizedWeights QuantizeWeights(const Tensor& weights, WeightRule rule) {
  return QuantizeWeights(weights, rule, BestLevels(weights, rule));
}

QuantizedWeights QuantizeWeights(const Tensor& weights, WeightRule rule,
                                 int levels) {
  const float largest = LargestMagnitude(weights);
  QuantizedWeights result;
  result.codes = Tensor(tensorflow::DT_QINT8, weights.shape());
  Pass pass{weights.flat<float>().data(),
            weights.dim_size(0),
            weights.dim_size(1),
            rule,
            levels / largest,
            result.codes.flat<tensorflow::qint8>().data()};
  pass.Run();
  result.range = largest * kMaxLevels / levels;
  result.levels = levels;
  result.lowered = pass.lowered;
  result.relative_error =
      std::sqrt(pass.squared_error / SquaredNorm(weights)) * largest / levels;
  return result;
}

std::vector<int64_t> ColumnSums(const Tensor& codes) {
  const auto matrix = codes.matrix<tensorflow::qint8>();
  std::vector<int64_t> sums(matrix.dimension(1), 0);
  for (int64_t row = 0; row < matrix.dimension(0); ++row) {
    for (int64_t column = 0; column < matrix.dimension(1); ++column) {
      sums[column] += matrix(row, column).value;
    }
  }
  return sums;
}

bool HasScale(const CodeFormula& formula) {
  const float scale = Scale(formula);
  return std::isfinite(scale) && scale > 0;
}

Tensor QuantizedCodes(const CodeFormula& formula, const Tensor& values) {
  return formula.type == tensorflow::DT_QINT8
             ? CodesOf<tensorflow::qint8>(formula, values, -128)
             : CodesOf<tensorflow::quint8>(formula, values, 0);
}

}  // namespace requant
