#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_FEATURE_SAMPLE_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_FEATURE_SAMPLE_H_

// What the first records of a file have, for guessing a declaration.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// The number of records that are looked at.
inline constexpr int64_t kSampledRecords = 100;

// More features of one record are not looked at.
inline constexpr size_t kMostSampledFeatures = 100'000;

struct FeatureSample {
  // The type of its values, of text the first that holds all of them of int64,
  // float and string; DT_INVALID if no record has a value that can be read.
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  // The number of values in each record that has the feature; -1 if it differs.
  int64_t elements = 0;
  // The shape of a record, if the format has shapes.
  std::optional<std::vector<int64_t>> shape;

  // Adds a record's value of this type and number of elements.
  void Add(tensorflow::DataType type, int64_t count);
};

// By name, so that the order does not depend on the file.
using FileSample = std::map<std::string, FeatureSample>;

// Returns the first of int64, float and string that `text` is.
tensorflow::DataType TypeOfText(std::string_view text);

// Returns the first of these types that holds the values of both; values of
// other types are both of the same type, or strings.
tensorflow::DataType CommonType(tensorflow::DataType a, tensorflow::DataType b);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_FEATURE_SAMPLE_H_
