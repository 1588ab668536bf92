#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/records/input_file.h"
#include "base/records/record_format.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/example_parser.h"
#include "runtime/datasets/formats/feature_sample.h"
#include "runtime/datasets/formats/record_source.h"
#include "runtime/datasets/formats/source_format.h"
#include "tensorflow/core/example/example.pb.h"
#include "tensorflow/core/example/feature.pb.h"

namespace requant {
namespace {

// This is enough to get past a long name at the start of a binary graph.
constexpr size_t kBytesToTellText = 1024;

// Protocol buffers cannot be larger.
constexpr uint64_t kMaxExampleBytes = std::numeric_limits<int32_t>::max();

// Returns whether these are the first bytes of a UTF-8 text, which may be cut
// off within a character.
bool LooksLikeText(std::string_view bytes) {
  while (!bytes.empty()) {
    const Character next = FirstCharacter(bytes);
    if (next.code == kStray) {
      return bytes.size() < 4 && static_cast<unsigned char>(bytes[0]) >= 0xc2;
    }
    if (next.code < 0x80 && !absl::ascii_isprint(bytes[0]) &&
        !absl::StrContains("\t\n\r", bytes[0])) {
      return false;
    }
    bytes.remove_prefix(next.bytes);
  }
  return true;
}

// Splits a TFRecord file into its records. Each is the data, followed by its
// stored checksum (kRecordFooterBytes), which another thread may check.
class TfRecordReader : public RecordReader {
 public:
  explicit TfRecordReader(std::unique_ptr<InputFile> file)
      : file_(std::move(file)), buffer_(kReadBytes) {}

  absl::StatusOr<bool> Read(std::string* bytes) override {
    ++number_;
    REQUANT_RETURN_IF_ERROR(Fill(kRecordHeaderBytes));
    if (begin_ == end_) return false;
    const std::string_view header = available();
    if (header.size() < kRecordHeaderBytes) {
      if (number_ == 0) return BadHeader();
      return absl::DataLossError(
          absl::StrCat("the file ends after ", header.size(),
                       " bytes of its header's ", kRecordHeaderBytes));
    }
    const std::optional<uint64_t> length = RecordLength(header);
    if (!length.has_value()) return BadHeader();
    if (*length > kMaxExampleBytes) {
      return absl::DataLossError(absl::StrCat(
          "it claims to have ", *length,
          " bytes; a tf.train.Example has at most ", kMaxExampleBytes));
    }
    begin_ += kRecordHeaderBytes;
    return Append(*length, bytes);
  }

  int64_t number() const override { return number_; }
  int64_t position() const override { return file_->position(end_ - begin_); }

 private:
  // Makes `size` bytes available if the file has them.
  absl::Status Fill(size_t size) {
    if (end_ - begin_ >= size) return absl::OkStatus();
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    while (end_ < size) {
      REQUANT_ASSIGN_OR_RETURN(
          const size_t n,
          file_->Read(buffer_.data() + end_, buffer_.size() - end_));
      if (n == 0) break;
      end_ += n;
    }
    return absl::OkStatus();
  }

  std::string_view available() const {
    return std::string_view(buffer_.data() + begin_, end_ - begin_);
  }

  absl::Status BadHeader() {
    if (number_ > 0) {
      return absl::DataLossError(
          "the checksum of its length is wrong, so the records after it cannot "
          "be found");
    }
    // If the rest of the file cannot be read, what there is must do.
    (void)Fill(kBytesToTellText);
    return absl::DataLossError(
        LooksLikeText(available().substr(0, kBytesToTellText))
            ? "this is not a TFRecord file: it looks like text"
            : "the checksum of its length is wrong, so this is not a TFRecord "
              "file, or one that is corrupt from the start");
  }

  absl::StatusOr<bool> Append(uint64_t length, std::string* bytes) {
    const size_t start = bytes->size();
    const uint64_t size = length + kRecordFooterBytes;
    // Reading piecewise keeps a false length from costing memory.
    for (uint64_t got = 0; got < size;) {
      const absl::Status status = Fill(1);
      if (!status.ok() || begin_ == end_) {
        bytes->resize(start);
        REQUANT_RETURN_IF_ERROR(status);
        return absl::DataLossError(
            absl::StrCat("the file ends within it, after ",
                         std::min(got, length), " of its ", length, " bytes"));
      }
      const size_t piece = std::min<uint64_t>(end_ - begin_, size - got);
      bytes->append(buffer_.data() + begin_, piece);
      begin_ += piece;
      got += piece;
    }
    return true;
  }

  const std::unique_ptr<InputFile> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  int64_t number_ = -1;
};

// Checks the records' checksums, which follow them, and parses the rest.
absl::StatusOr<std::vector<tensorflow::Tensor>> DecodeExamples(
    const ExampleParser& parser, absl::Span<const std::string_view> records,
    std::vector<std::string>* problems) {
  std::vector<std::string_view> examples(records.begin(), records.end());
  for (size_t i = 0; i < records.size(); ++i) {
    if (!(*problems)[i].empty()) continue;
    examples[i].remove_suffix(kRecordFooterBytes);
    if (!ChecksumIs(examples[i], examples[i].data() + examples[i].size())) {
      (*problems)[i] = "the checksum of its data is wrong";
    }
  }
  return parser.Parse(examples, problems);
}

void SampleFeature(const tensorflow::Feature& feature, FeatureSample* sample) {
  if (feature.has_float_list()) {
    sample->Add(tensorflow::DT_FLOAT, feature.float_list().value_size());
  } else if (feature.has_int64_list()) {
    sample->Add(tensorflow::DT_INT64, feature.int64_list().value_size());
  } else if (feature.has_bytes_list()) {
    sample->Add(tensorflow::DT_STRING, feature.bytes_list().value_size());
  }
}

absl::StatusOr<FileSample> SampleTfRecord(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
  TfRecordReader reader(std::move(file));
  FileSample sample;
  for (int64_t i = 0; i < kSampledRecords; ++i) {
    std::string record;
    const absl::StatusOr<bool> more = reader.Read(&record);
    if (!more.ok() || !*more) break;
    record.resize(record.size() - kRecordFooterBytes);
    tensorflow::Example example;
    if (!example.ParseFromString(record)) continue;
    for (const auto& [name, feature] : example.features().feature()) {
      if (sample.size() == kMostSampledFeatures) break;
      SampleFeature(feature, &sample[name]);
    }
  }
  return sample;
}

}  // namespace

const SourceFormat kTfRecordFormat = {
    DatasetSpec::kTfrecord,
    [](DatasetSpec* spec) { return spec->mutable_tfrecord()->mutable_files(); },
    /*check=*/nullptr,
    [](const DatasetSpec& spec, const std::vector<Column>& columns)
        -> absl::StatusOr<std::unique_ptr<ChunkSource>> {
      REQUANT_ASSIGN_OR_RETURN(ExampleParser created,
                               ExampleParser::Create(columns));
      const auto parser =
          std::make_shared<const ExampleParser>(std::move(created));
      return OpenRecordSource(
          spec.tfrecord().files(), RecordNames::kNumbers, columns,
          [parser](const std::string& path) -> absl::StatusOr<RecordFile> {
            REQUANT_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
            return RecordFile{
                std::make_unique<TfRecordReader>(std::move(file)),
                [parser](absl::Span<const std::string_view> records,
                         std::vector<std::string>* problems) {
                  return DecodeExamples(*parser, records, problems);
                }};
          });
    },
    SampleTfRecord};

}  // namespace requant
