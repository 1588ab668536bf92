#include "runtime/datasets/formats/feature_sample.h"

#include "runtime/datasets/formats/column.h"

namespace requant {

using tensorflow::DataType;

DataType TypeOfText(std::string_view text) {
  int64_t whole = 0;
  if (ParserOf(tensorflow::DT_INT64)(text, &whole)) return tensorflow::DT_INT64;
  float number = 0;
  if (ParserOf(tensorflow::DT_FLOAT)(text, &number)) {
    return tensorflow::DT_FLOAT;
  }
  return tensorflow::DT_STRING;
}

DataType CommonType(DataType a, DataType b) {
  const auto is_number = [](DataType type) {
    return type == tensorflow::DT_INT64 || type == tensorflow::DT_FLOAT;
  };
  if (a == b || b == tensorflow::DT_INVALID) return a;
  if (a == tensorflow::DT_INVALID) return b;
  return is_number(a) && is_number(b) ? tensorflow::DT_FLOAT
                                      : tensorflow::DT_STRING;
}

void FeatureSample::Add(DataType type, int64_t count) {
  const bool is_first = dtype == tensorflow::DT_INVALID;
  elements = is_first || elements == count ? count : -1;
  dtype = CommonType(dtype, type);
}

}  // namespace requant
