#include "runtime/datasets/formats/text_source.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

class RawLines : public RawChunk {
 public:
  RawLines(const std::vector<Column>& columns, std::string path,
           RecordDecoder decode)
      : columns_(columns), path_(std::move(path)), decode_(std::move(decode)) {}

  int64_t rows() const override { return lines_.size(); }
  size_t bytes() const { return bytes_.size(); }

  void Add(std::string_view record, int64_t line) {
    bytes_.append(record);
    lines_.push_back({line, bytes_.size(), "", false});
  }
  // Adds the last one that can be found in its file.
  void AddBad(int64_t line, std::string_view problem) {
    lines_.push_back({line, bytes_.size(), std::string(problem), true});
  }

  absl::StatusOr<Chunk> Decode() override {
    Chunk chunk;
    chunk.rows = lines_.size();
    for (const Column& column : columns_) {
      REQUANT_ASSIGN_OR_RETURN(chunk.columns.emplace_back(),
                               AllocateRows(column, chunk.rows));
    }
    size_t begin = 0;
    for (int64_t row = 0; row < chunk.rows; ++row) {
      Line& line = lines_[row];
      if (line.problem.empty()) {
        line.problem =
            decode_(std::string_view(bytes_).substr(begin, line.end - begin),
                    row, &chunk.columns);
      }
      begin = line.end;
      if (line.problem.empty()) continue;
      chunk.bad.push_back(
          {row, NameLine(path_, line.number, line.problem), line.ends_file});
    }
    return chunk;
  }

 private:
  struct Line {
    int64_t number = 0;
    // The end of its record in bytes_.
    size_t end = 0;
    std::string problem;
    bool ends_file = false;
  };

  const std::vector<Column>& columns_;
  const std::string path_;
  const RecordDecoder decode_;
  std::string bytes_;
  std::vector<Line> lines_;
};

class TextChunks : public ChunkSource {
 public:
  TextChunks(std::vector<std::string> files, std::vector<Column> columns,
             OpenTextFile open)
      : files_(std::move(files)),
        columns_(std::move(columns)),
        open_(std::move(open)) {}

  absl::StatusOr<std::unique_ptr<RawChunk>> Read(int64_t max_rows) override {
    for (; file_ < files_.size(); CloseFile()) {
      if (text_.reader == nullptr) {
        REQUANT_RETURN_IF_ERROR(OpenFile());
      }
      auto chunk =
          std::make_unique<RawLines>(columns_, files_[file_], text_.decode);
      while (chunk->rows() < max_rows && chunk->bytes() < kChunkBytes) {
        REQUANT_ASSIGN_OR_RETURN(const bool more, ReadOne(chunk.get()));
        if (!more) break;
      }
      // At the end of a file, the next call opens the next one.
      if (chunk->rows() > 0) return chunk;
    }
    return nullptr;
  }

  int64_t position() const override {
    return finished_bytes_ +
           (text_.reader == nullptr ? 0 : text_.reader->position());
  }

  absl::Status OpenFile() {
    REQUANT_ASSIGN_OR_RETURN(text_, open_(files_[file_]));
    return absl::OkStatus();
  }

 private:
  // Returns false at the end of the file.
  absl::StatusOr<bool> ReadOne(RawLines* chunk) {
    if (lost_) return false;
    std::string_view record;
    const absl::StatusOr<bool> found = text_.reader->Read(&record);
    if (found.ok()) {
      if (*found) chunk->Add(record, text_.reader->line());
      return *found;
    }
    if (!absl::IsDataLoss(found.status())) return found.status();
    lost_ = true;
    chunk->AddBad(text_.reader->line(),
                  absl::StrCat(found.status().message(),
                               ", so the records after it cannot be found"));
    return true;
  }

  void CloseFile() {
    finished_bytes_ = position();
    text_ = TextFile();
    lost_ = false;
    ++file_;
  }

  const std::vector<std::string> files_;
  const std::vector<Column> columns_;
  const OpenTextFile open_;
  size_t file_ = 0;
  TextFile text_;
  // The bytes of the files that are closed.
  int64_t finished_bytes_ = 0;
  // Nothing more can be found in this file.
  bool lost_ = false;
};

}  // namespace

std::string NameLine(const std::string& path, int64_t line,
                     std::string_view problem) {
  return absl::StrCat(path, ":", line, ": ", problem);
}

std::string QuotedField(std::string_view text) {
  constexpr size_t kMost = 40;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMost)),
                      text.size() > kMost ? "...\"" : "\"");
}

absl::StatusOr<std::unique_ptr<ChunkSource>> OpenTextSource(
    std::vector<std::string> files, const std::vector<Column>& columns,
    OpenTextFile open) {
  const bool any = !files.empty();
  auto source =
      std::make_unique<TextChunks>(std::move(files), columns, std::move(open));
  if (any) {
    REQUANT_RETURN_IF_ERROR(source->OpenFile());
  }
  return source;
}

}  // namespace requant
