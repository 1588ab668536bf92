#include "benchmarks/wide_deep_records.h"

#include <cstdint>
#include <cstdio>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/records/record_format.h"
#include "tensorflow/core/example/example.pb.h"

namespace requant {
absl::Status WriteWideDeepRecords(const std::string& path, int records) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cannot write ", path));
  }
  std::mt19937 random(1);
  std::uniform_real_distribution<float> numeric(0, 1);
  bool written = true;
  for (int r = 0; r < records; ++r) {
    tensorflow::Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    for (int i = 0; i < kNumeric; ++i) {
      features["numeric_1"].mutable_float_list()->add_value(numeric(random));
    }
    for (int i = 0; i < kCategorical; i += 2) {
      features["string_1"].mutable_int64_list()->add_value(i / 2);
      features["string_1"].mutable_int64_list()->add_value(random() % 1000);
    }
    features["label"].mutable_int64_list()->add_value(random() % 2);
    std::string record;
    AppendRecord(example.SerializeAsString(), &record);
    written &=
        std::fwrite(record.data(), 1, record.size(), file) == record.size();
  }
  written &= std::fclose(file) == 0;
  if (written) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path));
}

DatasetSpec WideDeepDataset(const std::string& path) {
  DatasetSpec spec;
  spec.mutable_tfrecord()->add_files(path);
  InputSpec& numeric = *spec.add_input();
  numeric.set_feature("numeric_1");
  numeric.set_placeholder("new_numeric_placeholder");
  numeric.set_dtype("float");
  numeric.add_shape(kNumeric);
  InputSpec& categorical = *spec.add_input();
  categorical.set_feature("string_1");
  categorical.set_placeholder("new_categorical_placeholder");
  categorical.set_dtype("int64");
  categorical.add_shape(kCategorical);
  categorical.add_feed_shape(-1);
  categorical.add_feed_shape(2);
  spec.mutable_label()->set_feature("label");
  spec.mutable_label()->set_dtype("int64");
  spec.mutable_prediction()->set_tensor("head/predictions/probabilities");
  return spec;
}

}  // namespace requant
