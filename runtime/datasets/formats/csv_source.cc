#include "runtime/datasets/formats/csv_source.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "runtime/datasets/formats/csv_reader.h"

namespace requant {
namespace {

using tensorflow::Tensor;

// Where the columns are in the records of one file.
struct Layout {
  std::string path;
  char delimiter = ',';
  size_t fields = 0;
  // Of each column.
  std::vector<size_t> field;
};

std::string NameLine(const std::string& path, int64_t line,
                     std::string_view problem) {
  return absl::StrCat(path, ":", line, ": ", problem);
}

// The field for a message: short and printable.
std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 40;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMost)),
                      text.size() > kMost ? "...\"" : "\"");
}

// Reads a field's values into row `row`; returns what is wrong, or "".
std::string ReadField(const Column& column, const CsvField& field, int64_t row,
                      Tensor* rows) {
  if (field.text.empty() && !field.quoted) {
    if (!column.default_value.has_value()) {
      return absl::StrCat("column \"", column.feature, "\" is empty");
    }
    FillDefault(column, row, rows);
    return "";
  }
  const ParseFunction parse = ParserOf(column.dtype);
  char* element = static_cast<char*>(RowAddress(*rows, column, row));
  if (column.elements == 1) {
    if (parse(field.text, element)) return "";
    return absl::StrCat("column \"", column.feature, "\" has ",
                        Quoted(field.text), ", which is no ",
                        DtypeName(column.dtype));
  }
  const std::vector<std::string_view> values =
      absl::StrSplit(field.text, ' ', absl::SkipEmpty());
  if (values.size() != column.elements) {
    return absl::StrCat("column \"", column.feature, "\" has ", values.size(),
                        " values, not ", column.elements);
  }
  for (const std::string_view value : values) {
    if (!parse(value, element)) {
      return absl::StrCat("column \"", column.feature, "\" has ", Quoted(value),
                          ", which is no ", DtypeName(column.dtype));
    }
    element += ElementBytes(column.dtype);
  }
  return "";
}

class RawLines : public RawChunk {
 public:
  RawLines(const std::vector<Column>& columns,
           std::shared_ptr<const Layout> layout)
      : columns_(columns), layout_(std::move(layout)) {}

  int64_t rows() const override { return lines_.size(); }
  size_t bytes() const { return bytes_.size(); }

  void Add(std::string_view record, int64_t line) {
    bytes_.append(record);
    lines_.push_back({line, bytes_.size(), "", false});
  }
  // The last one that can be found in its file.
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
        line.problem = DecodeRecord(
            std::string_view(bytes_).substr(begin, line.end - begin), row,
            &chunk.columns);
      }
      begin = line.end;
      if (line.problem.empty()) continue;
      chunk.bad.push_back({row,
                           NameLine(layout_->path, line.number, line.problem),
                           line.ends_file});
    }
    return chunk;
  }

 private:
  struct Line {
    int64_t number = 0;
    // Of its record in bytes_.
    size_t end = 0;
    std::string problem;
    bool ends_file = false;
  };

  std::string DecodeRecord(std::string_view record, int64_t row,
                           std::vector<Tensor>* rows) {
    if (!SplitCsv(record, layout_->delimiter, &fields_, &storage_)) {
      return absl::StrCat("field ", fields_.size() + 1,
                          " goes on after its closing quote");
    }
    if (fields_.size() != layout_->fields) {
      return absl::StrCat("it has ", fields_.size(),
                          fields_.size() == 1 ? " field" : " fields", ", not ",
                          layout_->fields);
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      std::string problem =
          ReadField(columns_[c], fields_[layout_->field[c]], row, &(*rows)[c]);
      if (!problem.empty()) return problem;
    }
    return "";
  }

  const std::vector<Column>& columns_;
  const std::shared_ptr<const Layout> layout_;
  std::string bytes_;
  std::vector<Line> lines_;
  std::vector<CsvField> fields_;
  std::string storage_;
};

class CsvChunks : public ChunkSource {
 public:
  CsvChunks(const CsvSource& csv, std::vector<Column> columns)
      : csv_(csv), columns_(std::move(columns)) {}

  absl::StatusOr<std::unique_ptr<RawChunk>> Read(int64_t max_rows) override {
    for (; file_ < csv_.files_size(); CloseFile()) {
      if (reader_ == nullptr) {
        REQUANT_RETURN_IF_ERROR(OpenFile());
      }
      auto chunk = std::make_unique<RawLines>(columns_, layout_);
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
    return finished_bytes_ + (reader_ == nullptr ? 0 : reader_->position());
  }

  // The columns' names and places, from the declaration or the first line.
  absl::Status OpenFile() {
    layout_ = nullptr;
    const std::string& path = csv_.files(file_);
    REQUANT_ASSIGN_OR_RETURN(
        reader_, CsvReader::Open(
                     path, csv_.delimiter().empty() ? 0 : csv_.delimiter()[0]));
    auto layout = std::make_shared<Layout>();
    layout->path = path;
    layout->delimiter = reader_->delimiter();
    std::vector<std::string> names(csv_.columns().begin(),
                                   csv_.columns().end());
    if (names.empty()) {
      REQUANT_ASSIGN_OR_RETURN(names, ReadHeader());
      header_missing_ = names.empty();
    } else {
      // A file may name the declared columns once more.
      reader_->SkipFirstLine(
          absl::StrJoin(names, std::string(1, layout->delimiter)));
    }
    layout->fields = names.size();
    for (const Column& column : columns_) {
      const auto found = std::find(names.begin(), names.end(), column.feature);
      if (found == names.end() && !header_missing_) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, " has no column \"", column.feature, "\"",
                         DidYouMean(column.feature, names)));
      }
      layout->field.push_back(found - names.begin());
    }
    layout_ = std::move(layout);
    return absl::OkStatus();
  }

 private:
  // Empty at the end of an empty file.
  absl::StatusOr<std::vector<std::string>> ReadHeader() {
    const std::string& path = csv_.files(file_);
    std::string_view record;
    const absl::StatusOr<bool> found = reader_->Read(&record);
    if (!found.ok()) {
      return absl::Status(
          found.status().code(),
          NameLine(path, reader_->line(), found.status().message()));
    }
    std::vector<std::string> names;
    if (!*found) return names;
    std::vector<CsvField> fields;
    std::string storage;
    if (!SplitCsv(record, reader_->delimiter(), &fields, &storage)) {
      return absl::InvalidArgumentError(
          NameLine(path, reader_->line(),
                   "the columns' names cannot be read: a quote is not closed"));
    }
    for (const CsvField& field : fields) {
      const std::string_view name = absl::StripAsciiWhitespace(field.text);
      const bool wanted =
          std::any_of(columns_.begin(), columns_.end(),
                      [&](const Column& c) { return c.feature == name; });
      if (wanted &&
          std::find(names.begin(), names.end(), name) != names.end()) {
        return absl::InvalidArgumentError(
            NameLine(path, reader_->line(),
                     absl::StrCat("column \"", name, "\" is there twice")));
      }
      names.emplace_back(name);
    }
    return names;
  }

  // False at the end of the file.
  absl::StatusOr<bool> ReadOne(RawLines* chunk) {
    if (lost_ || header_missing_) return false;
    std::string_view record;
    const absl::StatusOr<bool> found = reader_->Read(&record);
    if (found.ok()) {
      if (*found) chunk->Add(record, reader_->line());
      return *found;
    }
    if (!absl::IsDataLoss(found.status())) return found.status();
    lost_ = true;
    chunk->AddBad(reader_->line(),
                  absl::StrCat(found.status().message(),
                               ", so the records after it cannot be found"));
    return true;
  }

  void CloseFile() {
    finished_bytes_ = position();
    reader_ = nullptr;
    lost_ = false;
    header_missing_ = false;
    ++file_;
  }

  const CsvSource csv_;
  const std::vector<Column> columns_;
  int file_ = 0;
  std::unique_ptr<CsvReader> reader_;
  // Of the files that are closed.
  int64_t finished_bytes_ = 0;
  std::shared_ptr<const Layout> layout_;
  // Nothing more can be found in this file.
  bool lost_ = false;
  // An empty file has no records.
  bool header_missing_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChunkSource>> OpenCsv(
    const CsvSource& csv, std::vector<Column> columns) {
  auto source = std::make_unique<CsvChunks>(csv, std::move(columns));
  // The first file's columns show at once whether the declaration fits.
  if (csv.files_size() > 0) {
    REQUANT_RETURN_IF_ERROR(source->OpenFile());
  }
  return source;
}

}  // namespace requant
