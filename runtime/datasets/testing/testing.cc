#include "runtime/datasets/testing/testing.h"

#include <fstream>
#include <type_traits>

#include "absl/strings/str_replace.h"
#include "base/records/record_format.h"
#include "google/protobuf/text_format.h"
#include "runtime/datasets/formats/column.h"
#include "tensorflow/core/example/example.pb.h"

namespace requant {
namespace {

template <typename T>
void AppendValues(const tensorflow::Tensor& tensor, Strings* values) {
  const auto flat = tensor.flat<T>();
  for (int64_t i = 0; i < flat.size(); ++i) {
    if constexpr (std::is_same_v<T, tensorflow::tstring>) {
      values->push_back(flat(i));
    } else if constexpr (std::is_integral_v<T>) {
      values->push_back(absl::StrCat(static_cast<int64_t>(flat(i))));
    } else {
      values->push_back(absl::StrCat(static_cast<double>(flat(i))));
    }
  }
}

std::string WithoutTestFolder(std::string_view text) {
  return absl::StrReplaceAll(text, {{testing::TempDir() + "/", ""}});
}

}  // namespace

std::string WriteTestFile(std::string_view name, std::string_view contents) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

std::string ExampleBytes(const std::string& text) {
  tensorflow::Example example;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &example));
  return example.SerializeAsString();
}

std::string SmallExample(float x, int label) {
  tensorflow::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["x"].mutable_float_list()->add_value(x);
  features["label"].mutable_int64_list()->add_value(label);
  return example.SerializeAsString();
}

std::string RecordBytes(std::string_view data) {
  std::string record;
  AppendRecord(data, &record);
  return record;
}

DatasetSpec SpecFromText(const std::string& text) {
  DatasetSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

Strings ReadResult::Values(int i) const {
  Strings values;
  for (const Batch& batch : batches) {
    VisitType(batch.inputs[i].dtype(), [&](auto* type) {
      AppendValues<std::remove_pointer_t<decltype(type)>>(batch.inputs[i],
                                                          &values);
    });
  }
  return values;
}

ReadResult ReadAll(const DatasetSpec& spec, BatchOptions options) {
  ReadResult result;
  options.on_bad_record = [&](const std::string& message) {
    result.bad_messages.push_back(WithoutTestFolder(message));
  };
  auto source = OpenBatchSource(spec, options);
  result.status = source.status();
  while (result.status.ok()) {
    Batch batch;
    const absl::StatusOr<bool> more = (*source)->Next(&batch);
    result.status = more.status();
    if (!more.ok() || !*more) break;
    result.batches.push_back(batch);
  }
  if (source.ok()) {
    result.bad_records = (*source)->bad_records();
    result.lost_rests = (*source)->lost_rests();
  }
  result.status = absl::Status(result.status.code(),
                               WithoutTestFolder(result.status.message()));
  return result;
}

ReadResult ReadContents(const std::string& source, const Strings& contents,
                        const std::string& inputs, const std::string& fields) {
  std::string text = absl::StrCat(source, " { ", fields);
  for (size_t i = 0; i < contents.size(); ++i) {
    absl::StrAppend(&text, " files: '",
                    WriteTestFile(absl::StrCat(i, ".", source), contents[i]),
                    "'");
  }
  BatchOptions options;
  options.max_bad_records = 1000;
  return ReadAll(SpecFromText(absl::StrCat(text, " }", inputs)), options);
}

}  // namespace requant
