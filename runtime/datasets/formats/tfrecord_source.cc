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
#include "absl/strings/str_cat.h"
#include "base/records/input_file.h"
#include "base/records/record_format.h"
#include "base/status_macros.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/example_parser.h"
#include "runtime/datasets/formats/source_format.h"

namespace requant {
namespace {

// Enough to get beyond a long name at the start of a binary graph.
constexpr size_t kBytesToTellText = 1024;

// Protocol buffers end here.
constexpr uint64_t kMaxExampleBytes = std::numeric_limits<int32_t>::max();

// Returns whether these are the first bytes of a text in UTF-8, which may be
// cut off within a character.
bool LooksLikeText(std::string_view bytes) {
  int following = 0;
  for (const unsigned char c : bytes) {
    if (following > 0) {
      if ((c & 0xc0) != 0x80) return false;
      --following;
    } else if (c >= 0x80) {
      if (c < 0xc2 || c > 0xf4) return false;
      following = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    } else if (!absl::ascii_isprint(c) && c != '\t' && c != '\n' && c != '\r') {
      return false;
    }
  }
  return true;
}

// Cuts a TFRecord file into its records, one after the other. The checksums of
// the data are left to the caller, who may check them on another thread.
class RecordReader {
 public:
  explicit RecordReader(std::unique_ptr<InputFile> file)
      : file_(std::move(file)), buffer_(kReadBytes) {}

  // Appends the next record's data and, after it, the stored checksum of the
  // data (kRecordFooterBytes) to `bytes`; returns false at the end of the file.
  // After an error, `bytes` is as it was and no further record can be found.
  // DataLoss means that the content is bad; its message names neither file nor
  // record.
  absl::StatusOr<bool> Read(std::string* bytes) {
    REQUANT_RETURN_IF_ERROR(Fill(kRecordHeaderBytes));
    if (begin_ == end_) return false;
    const std::string_view header = available();
    if (header.size() < kRecordHeaderBytes) {
      if (first_) return BadHeader();
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

  // InputFile::position, of the records read.
  int64_t position() const { return file_->position(end_ - begin_); }

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
    if (!first_) {
      return absl::DataLossError(
          "the checksum of its length is wrong, so the records after it cannot "
          "be found");
    }
    // A file whose rest cannot be read is judged by what there is.
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
    // Piece by piece, so that a length that lies costs no memory.
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
    first_ = false;
    return true;
  }

  const std::unique_ptr<InputFile> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool first_ = true;
};

std::string NameRecord(const std::string& path, int64_t number,
                       std::string_view problem) {
  return absl::StrCat(path, ": record ", number,
                      " (counting from 0): ", problem);
}

class RawRecords : public RawChunk {
 public:
  RawRecords(const std::vector<std::string>& files, const ExampleParser& parser)
      : files_(files), parser_(parser) {}

  int64_t rows() const override { return records_.size(); }
  std::string* bytes() { return &bytes_; }

  // What was appended to bytes() since the last call is record `number`.
  void AddRecord(int file, int64_t number) {
    records_.push_back({file, number, bytes_.size(), "", false});
  }
  // The last one that can be found in its file.
  void AddBadRecord(int file, int64_t number, std::string_view problem) {
    records_.push_back(
        {file, number, bytes_.size(), std::string(problem), true});
  }

  absl::StatusOr<Chunk> Decode() override {
    std::vector<std::string_view> examples(records_.size());
    std::vector<std::string> problems(records_.size());
    size_t begin = 0;
    for (size_t i = 0; i < records_.size(); ++i) {
      problems[i] = std::move(records_[i].problem);
      if (!problems[i].empty()) continue;
      const size_t end = records_[i].end - kRecordFooterBytes;
      examples[i] = std::string_view(bytes_).substr(begin, end - begin);
      if (!ChecksumIs(examples[i], bytes_.data() + end)) {
        problems[i] = "the checksum of its data is wrong";
      }
      begin = records_[i].end;
    }
    Chunk chunk;
    chunk.rows = records_.size();
    REQUANT_ASSIGN_OR_RETURN(chunk.columns, parser_.Parse(examples, &problems));
    for (size_t i = 0; i < problems.size(); ++i) {
      if (problems[i].empty()) continue;
      chunk.bad.push_back({static_cast<int64_t>(i),
                           NameRecord(files_[records_[i].file],
                                      records_[i].number, problems[i]),
                           records_[i].ends_file});
    }
    return chunk;
  }

 private:
  struct Record {
    int file = 0;
    int64_t number = 0;
    // The end of its bytes in bytes_, with the checksum.
    size_t end = 0;
    std::string problem;
    bool ends_file = false;
  };

  const std::vector<std::string>& files_;
  const ExampleParser& parser_;
  std::string bytes_;
  std::vector<Record> records_;
};

class TfRecordChunks : public ChunkSource {
 public:
  TfRecordChunks(std::vector<std::string> files, ExampleParser parser)
      : files_(std::move(files)), parser_(std::move(parser)) {}

  absl::StatusOr<std::unique_ptr<RawChunk>> Read(int64_t max_rows) override {
    auto chunk = std::make_unique<RawRecords>(files_, parser_);
    chunk->bytes()->reserve(last_bytes_);
    while (chunk->rows() < max_rows && chunk->bytes()->size() < kChunkBytes) {
      REQUANT_ASSIGN_OR_RETURN(const bool more, ReadOne(chunk.get()));
      if (!more) break;
    }
    last_bytes_ = chunk->bytes()->size();
    if (chunk->rows() == 0) return nullptr;
    return chunk;
  }

  int64_t position() const override {
    return finished_bytes_ + (reader_ == nullptr ? 0 : reader_->position());
  }

 private:
  // Returns false at the end of the last file.
  absl::StatusOr<bool> ReadOne(RawRecords* chunk) {
    for (; file_ < files_.size(); CloseFile()) {
      if (reader_ == nullptr) {
        REQUANT_ASSIGN_OR_RETURN(auto file, InputFile::Open(files_[file_]));
        reader_ = std::make_unique<RecordReader>(std::move(file));
      }
      const absl::StatusOr<bool> found = reader_->Read(chunk->bytes());
      if (found.ok() && *found) {
        chunk->AddRecord(file_, number_++);
        return true;
      }
      if (!found.ok()) {
        if (!absl::IsDataLoss(found.status())) return found.status();
        chunk->AddBadRecord(file_, number_, found.status().message());
        CloseFile();
        return true;
      }
    }
    return false;
  }

  void CloseFile() {
    finished_bytes_ = position();
    reader_ = nullptr;
    number_ = 0;
    ++file_;
  }

  const std::vector<std::string> files_;
  const ExampleParser parser_;
  size_t file_ = 0;
  std::unique_ptr<RecordReader> reader_;
  // The bytes of the files that are closed.
  int64_t finished_bytes_ = 0;
  // The number of the next record in its file.
  int64_t number_ = 0;
  size_t last_bytes_ = 0;
};

}  // namespace

const SourceFormat kTfRecordFormat = {
    DatasetSpec::kTfrecord,
    [](DatasetSpec* spec) { return spec->mutable_tfrecord()->mutable_files(); },
    /*check=*/nullptr,
    [](const DatasetSpec& spec, const std::vector<Column>& columns)
        -> absl::StatusOr<std::unique_ptr<ChunkSource>> {
      const auto& files = spec.tfrecord().files();
      REQUANT_ASSIGN_OR_RETURN(ExampleParser parser,
                               ExampleParser::Create(columns));
      return std::make_unique<TfRecordChunks>(
          std::vector<std::string>(files.begin(), files.end()),
          std::move(parser));
    }};

}  // namespace requant
