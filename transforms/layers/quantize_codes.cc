#include "transforms/layers/quantize_codes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

// Each product and each sum here is rounded to float by itself, as in the
// kernels; the BUILD file forbids the compiler to contract them.

namespace requant {
namespace {

using tensorflow::Tensor;

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
