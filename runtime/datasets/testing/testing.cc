#include "runtime/datasets/testing/testing.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "runtime/datasets/formats/record_format.h"
#include "tensorflow/core/example/example.pb.h"

namespace requant {
namespace {

template <typename T>
void AppendValues(const tensorflow::Tensor& tensor,
                  std::vector<std::string>* values) {
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

void AppendText(const tensorflow::Tensor& tensor,
                std::vector<std::string>* values) {
  switch (tensor.dtype()) {
    case tensorflow::DT_FLOAT:
      return AppendValues<float>(tensor, values);
    case tensorflow::DT_DOUBLE:
      return AppendValues<double>(tensor, values);
    case tensorflow::DT_HALF:
      return AppendValues<Eigen::half>(tensor, values);
    case tensorflow::DT_BFLOAT16:
      return AppendValues<tensorflow::bfloat16>(tensor, values);
    case tensorflow::DT_INT8:
      return AppendValues<int8_t>(tensor, values);
    case tensorflow::DT_UINT8:
      return AppendValues<uint8_t>(tensor, values);
    case tensorflow::DT_INT32:
      return AppendValues<int32_t>(tensor, values);
    case tensorflow::DT_INT64:
      return AppendValues<int64_t>(tensor, values);
    case tensorflow::DT_BOOL:
      return AppendValues<bool>(tensor, values);
    default:
      return AppendValues<tensorflow::tstring>(tensor, values);
  }
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

std::string Gzip(std::string_view bytes) {
  z_stream stream;
  std::memset(&stream, 0, sizeof(stream));
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = packed.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

DatasetSpec SpecFromText(const std::string& text) {
  DatasetSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

std::vector<std::string> ReadResult::Values(int i) const {
  std::vector<std::string> values;
  for (const Batch& batch : batches) AppendText(batch.inputs[i], &values);
  return values;
}

ReadResult ReadAll(const DatasetSpec& spec, BatchOptions options) {
  ReadResult result;
  options.on_bad_record = [&](const std::string& message) {
    result.bad_messages.push_back(message);
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
  return result;
}

}  // namespace requant
