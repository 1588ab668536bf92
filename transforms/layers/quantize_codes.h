#ifndef REQUANT_TRANSFORMS_LAYERS_QUANTIZE_CODES_H_
#define REQUANT_TRANSFORMS_LAYERS_QUANTIZE_CODES_H_

// The codes that TensorFlow's QuantizeV2 gives at run time, computed ahead of
// it, bit for bit. (Running QuantizeV2 on a constant does not give them:
// TensorFlow takes another kernel there, whose MIN_FIRST codes differ by one.)

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

struct CodeFormula {
  tensorflow::DataType type;  // DT_QUINT8 or DT_QINT8
  bool scaled;                // SCALED, rounding half to even; else MIN_FIRST
  // What QuantizeV2 gives as its second and third output.
  float min;
  float max;
};

inline bool operator==(const CodeFormula& a, const CodeFormula& b) {
  return a.type == b.type && a.scaled == b.scaled && a.min == b.min &&
         a.max == b.max;
}

// Whether the range is wide enough to have a scale.
bool HasScale(const CodeFormula& formula);

// `values` must be floats, none of them NaN.
tensorflow::Tensor QuantizedCodes(const CodeFormula& formula,
                                  const tensorflow::Tensor& values);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_QUANTIZE_CODES_H_
