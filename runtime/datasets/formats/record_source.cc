#include "runtime/datasets/formats/record_source.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

using tensorflow::Tensor;

class RawRecords : public RawChunk {
 public:
  RawRecords(std::string path, RecordNames names, RecordDecoder decode)
      : path_(std::move(path)), names_(names), decode_(std::move(decode)) {}

  int64_t rows() const override { return records_.size(); }
  std::string* bytes() { return &bytes_; }

  // What was appended to bytes() since the last call is record `number`.
  void Add(int64_t number) {
    records_.push_back({number, bytes_.size(), "", false});
  }
  // Adds the last one that can be found in its file.
  void AddBad(int64_t number, std::string_view problem) {
    records_.push_back({number, bytes_.size(), std::string(problem), true});
  }

  absl::StatusOr<Chunk> Decode() override {
    std::vector<std::string_view> contents(records_.size());
    std::vector<std::string> problems(records_.size());
    size_t begin = 0;
    for (size_t i = 0; i < records_.size(); ++i) {
      const size_t end = records_[i].end;
      contents[i] = std::string_view(bytes_).substr(begin, end - begin);
      problems[i] = std::move(records_[i].problem);
      begin = end;
    }
    Chunk chunk;
    chunk.rows = records_.size();
    REQUANT_ASSIGN_OR_RETURN(chunk.columns, decode_(contents, &problems));
    for (size_t i = 0; i < problems.size(); ++i) {
      if (problems[i].empty()) continue;
      chunk.bad.push_back({static_cast<int64_t>(i),
                           Named(records_[i].number, problems[i]),
                           records_[i].ends_file});
    }
    return chunk;
  }

 private:
  struct Record {
    int64_t number = 0;
    // The end of its bytes in bytes_.
    size_t end = 0;
    std::string problem;
    bool ends_file = false;
  };

  std::string Named(int64_t number, std::string_view problem) const {
    if (names_ == RecordNames::kLines) return NameLine(path_, number, problem);
    return absl::StrCat(path_, ": record ", number,
                        " (counting from 0): ", problem);
  }

  const std::string path_;
  const RecordNames names_;
  const RecordDecoder decode_;
  std::string bytes_;
  std::vector<Record> records_;
};

class RecordChunks : public ChunkSource {
 public:
  using OpenFunction =
      std::function<absl::StatusOr<RecordFile>(const std::string& path)>;

  RecordChunks(std::vector<std::string> files, RecordNames names,
               OpenFunction open)
      : files_(std::move(files)), names_(names), open_(std::move(open)) {}

  absl::StatusOr<std::unique_ptr<RawChunk>> Read(int64_t max_rows) override {
    for (; file_ < files_.size(); CloseFile()) {
      REQUANT_RETURN_IF_ERROR(OpenFile());
      auto chunk =
          std::make_unique<RawRecords>(files_[file_], names_, opened_.decode);
      chunk->bytes()->reserve(last_bytes_);
      while (chunk->rows() < max_rows && chunk->bytes()->size() < kChunkBytes) {
        REQUANT_ASSIGN_OR_RETURN(const bool more, ReadOne(chunk.get()));
        if (!more) break;
      }
      last_bytes_ = chunk->bytes()->size();
      // At the end of a file, the next call opens the next one.
      if (chunk->rows() > 0) return chunk;
    }
    return nullptr;
  }

  int64_t position() const override {
    return finished_bytes_ +
           (opened_.reader == nullptr ? 0 : opened_.reader->position());
  }

  // Opens the file that is next, if there is one and it is not open.
  absl::Status OpenFile() {
    if (opened_.reader != nullptr || file_ == files_.size()) {
      return absl::OkStatus();
    }
    REQUANT_ASSIGN_OR_RETURN(opened_, open_(files_[file_]));
    return absl::OkStatus();
  }

 private:
  // Returns false at the end of the file.
  absl::StatusOr<bool> ReadOne(RawRecords* chunk) {
    if (lost_) return false;
    const absl::StatusOr<bool> found = opened_.reader->Read(chunk->bytes());
    if (found.ok()) {
      if (*found) chunk->Add(opened_.reader->number());
      return *found;
    }
    if (!absl::IsDataLoss(found.status())) return found.status();
    lost_ = true;
    chunk->AddBad(opened_.reader->number(),
                  absl::StrCat(found.status().message(),
                               names_ == RecordNames::kLines
                                   ? ", so the records after it cannot be found"
                                   : ""));
    return true;
  }

  void CloseFile() {
    finished_bytes_ = position();
    opened_ = RecordFile();
    lost_ = false;
    ++file_;
  }

  const std::vector<std::string> files_;
  const RecordNames names_;
  const OpenFunction open_;
  size_t file_ = 0;
  RecordFile opened_;
  // The bytes of the files that are closed, and those of the last chunk.
  int64_t finished_bytes_ = 0;
  size_t last_bytes_ = 0;
  // Nothing more can be found in this file.
  bool lost_ = false;
};

}  // namespace

RecordDecoder RowDecoder(
    const std::vector<Column>& columns,
    std::function<std::string(std::string_view record, int64_t row,
                              std::vector<Tensor>* rows)>
        decode_row) {
  return [=](absl::Span<const std::string_view> records,
             std::vector<std::string>* problems)
             -> absl::StatusOr<std::vector<Tensor>> {
    std::vector<Tensor> rows;
    for (const Column& column : columns) {
      REQUANT_ASSIGN_OR_RETURN(rows.emplace_back(),
                               AllocateRows(column, records.size()));
    }
    for (size_t i = 0; i < records.size(); ++i) {
      std::string& problem = (*problems)[i];
      if (problem.empty()) problem = decode_row(records[i], i, &rows);
    }
    return rows;
  };
}

std::string NameLine(const std::string& path, int64_t line,
                     std::string_view problem) {
  return absl::StrCat(path, ":", line, ": ", problem);
}

std::string QuotedField(std::string_view text) {
  constexpr size_t kMost = 40;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMost)),
                      text.size() > kMost ? "...\"" : "\"");
}

absl::StatusOr<std::unique_ptr<ChunkSource>> OpenRecordSource(
    const google::protobuf::RepeatedPtrField<std::string>& files,
    RecordNames names,
    std::function<absl::StatusOr<RecordFile>(const std::string& path)> open) {
  auto source = std::make_unique<RecordChunks>(
      std::vector<std::string>(files.begin(), files.end()), names,
      std::move(open));
  REQUANT_RETURN_IF_ERROR(source->OpenFile());
  return source;
}

}  // namespace requant
