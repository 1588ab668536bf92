#include "runtime/datasets/formats/tfrecord_source.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/datasets/formats/example_parser.h"
#include "runtime/datasets/formats/record_format.h"
#include "runtime/datasets/formats/record_reader.h"

namespace requant {
namespace {

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
    // Of its bytes in bytes_, with the checksum.
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
  // False at the end of the last file.
  absl::StatusOr<bool> ReadOne(RawRecords* chunk) {
    for (; file_ < files_.size(); CloseFile()) {
      if (reader_ == nullptr) {
        REQUANT_ASSIGN_OR_RETURN(reader_, RecordReader::Open(files_[file_]));
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
  // Of the files that are closed.
  int64_t finished_bytes_ = 0;
  // Of the next record in its file.
  int64_t number_ = 0;
  size_t last_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChunkSource>> OpenTfRecords(
    std::vector<std::string> files, std::vector<Column> columns) {
  REQUANT_ASSIGN_OR_RETURN(ExampleParser parser,
                           ExampleParser::Create(std::move(columns)));
  return std::make_unique<TfRecordChunks>(std::move(files), std::move(parser));
}

}  // namespace requant
