#include "runtime/datasets/formats/record_source.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

using tensorflow::Tensor;

// The records of one file, not yet decoded.
struct RawRecords {
  struct Record {
    // Its line or number in the file.
    int64_t number = 0;
    // The end of its bytes.
    size_t end = 0;
    std::string problem = "";
    // Whether it is the last one that can be found in its file.
    bool ends_file = false;
  };

  std::string path;
  RecordNames names;
  // Shared by all files of a source.
  const std::vector<Column>* columns;
  RecordDecoder decode;
  std::string bytes = "";
  std::vector<Record> records = {};

  std::string Named(int64_t number, std::string_view problem) const {
    if (names == RecordNames::kLines) return NameLine(path, number, problem);
    return absl::StrCat(path, ": record ", number,
                        " (counting from 0): ", problem);
  }

  absl::StatusOr<Chunk> Decode() const {
    std::vector<std::string_view> contents;
    std::vector<std::string> problems;
    size_t begin = 0;
    for (const Record& record : records) {
      contents.push_back(
          std::string_view(bytes).substr(begin, record.end - begin));
      problems.push_back(record.problem);
      begin = record.end;
    }
    Chunk chunk;
    chunk.rows = records.size();
    REQUANT_ASSIGN_OR_RETURN(chunk.columns, decode(contents, &problems));
    REQUANT_RETURN_IF_ERROR(ReadClasses(*columns, &chunk.columns, &problems));
    for (size_t i = 0; i < problems.size(); ++i) {
      if (problems[i].empty()) continue;
      chunk.bad.push_back({static_cast<int64_t>(i),
                           Named(records[i].number, problems[i]),
                           records[i].ends_file});
    }
    return chunk;
  }
};

class RecordChunks : public ChunkSource {
 public:
  using OpenFunction =
      std::function<absl::StatusOr<RecordFile>(const std::string& path)>;

  RecordChunks(std::vector<std::string> files, RecordNames names,
               std::vector<Column> columns, OpenFunction open)
      : files_(std::move(files)),
        names_(names),
        columns_(std::move(columns)),
        open_(std::move(open)) {}

  absl::StatusOr<RawChunk> Read(int64_t max_rows) override {
    for (; file_ < files_.size(); CloseFile()) {
      REQUANT_RETURN_IF_ERROR(OpenFile());
      RawRecords raw = {files_[file_], names_, &columns_, opened_.decode};
      raw.bytes.reserve(last_bytes_);
      while (raw.records.size() < max_rows && raw.bytes.size() < kChunkBytes) {
        REQUANT_ASSIGN_OR_RETURN(const bool more, ReadOne(&raw));
        if (!more) break;
      }
      last_bytes_ = raw.bytes.size();
      const int64_t rows = raw.records.size();
      // At the end of a file, the next iteration opens the next file.
      if (rows == 0) continue;
      return RawChunk{rows, [raw = std::move(raw)] { return raw.Decode(); }};
    }
    return RawChunk();
  }

  int64_t position() const override {
    return finished_bytes_ +
           (opened_.reader == nullptr ? 0 : opened_.reader->position());
  }

  // Opens the next file if there is one and none is open.
  absl::Status OpenFile() {
    if (opened_.reader != nullptr || file_ == files_.size()) {
      return absl::OkStatus();
    }
    REQUANT_ASSIGN_OR_RETURN(opened_, open_(files_[file_]));
    return absl::OkStatus();
  }

 private:
  // Returns false at the end of the file.
  absl::StatusOr<bool> ReadOne(RawRecords* raw) {
    if (lost_) return false;
    const absl::StatusOr<bool> found = opened_.reader->Read(&raw->bytes);
    if (found.ok() && !*found) return false;
    raw->records.push_back({opened_.reader->number(), raw->bytes.size()});
    if (found.ok()) return true;
    if (!absl::IsDataLoss(found.status())) return found.status();
    lost_ = raw->records.back().ends_file = true;
    raw->records.back().problem =
        absl::StrCat(found.status().message(),
                     names_ == RecordNames::kLines
                         ? ", so the records after it cannot be found"
                         : "");
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
  const std::vector<Column> columns_;
  const OpenFunction open_;
  size_t file_ = 0;
  RecordFile opened_;
  // The bytes of the closed files, and those of the last chunk.
  int64_t finished_bytes_ = 0;
  size_t last_bytes_ = 0;
  // Whether nothing more can be found in this file.
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
    RecordNames names, const std::vector<Column>& columns,
    std::function<absl::StatusOr<RecordFile>(const std::string& path)> open) {
  auto source = std::make_unique<RecordChunks>(
      std::vector<std::string>(files.begin(), files.end()), names, columns,
      std::move(open));
  REQUANT_RETURN_IF_ERROR(source->OpenFile());
  return source;
}

}  // namespace requant
