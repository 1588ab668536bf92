#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/records/input_file.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/feature_sample.h"
#include "runtime/datasets/formats/record_source.h"
#include "runtime/datasets/formats/source_format.h"

namespace requant {
namespace {

using tensorflow::Tensor;

enum class State { kFieldStart, kPlain, kQuoted, kAfterQuote };

State NextState(State state, char c, char delimiter) {
  if (state == State::kQuoted) {
    return c == '"' ? State::kAfterQuote : State::kQuoted;
  }
  if (c == delimiter) return State::kFieldStart;
  if (c == '"' && state != State::kPlain) return State::kQuoted;
  return State::kPlain;
}

// Splits a file of delimited fields, as RFC 4180 describes it, into records. A
// field in quotes may contain delimiters, line breaks and, as "", quotes. Lines
// end in LF or CRLF. Empty lines and a byte-order mark are skipped.
class CsvReader : public RecordReader {
 public:
  explicit CsvReader(std::unique_ptr<InputFile> file)
      : file_(std::move(file)) {}

  // Must be called once. A `delimiter` of 0 means a tab if the first line has
  // one, else a comma.
  absl::Status Start(char delimiter) {
    size_t line_end = std::string::npos;
    while (!at_end_ && line_end == std::string::npos &&
           buffer_.size() < kMaxTextRecordBytes) {
      // Read reports what is wrong with the content.
      const absl::Status status = Fill();
      if (absl::IsDataLoss(status)) break;
      REQUANT_RETURN_IF_ERROR(status);
      line_end = buffer_.find('\n');
    }
    if (absl::StartsWith(buffer_, "\xef\xbb\xbf")) begin_ = 3;
    const std::string_view first_line =
        std::string_view(buffer_).substr(0, line_end);
    delimiter_ = delimiter != 0                        ? delimiter
                 : absl::StrContains(first_line, '\t') ? '\t'
                                                       : ',';
    return absl::OkStatus();
  }

  char delimiter() const { return delimiter_; }

  // Skips the first line if it is `line`; must be called before Read.
  void SkipFirstLine(std::string_view line) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (absl::StripSuffix(rest.substr(0, end), "\r") != line) return;
    begin_ += std::min(end + 1, rest.size());
    next_line_ = 2;
  }

  absl::StatusOr<bool> Read(std::string* bytes) override {
    std::string_view record;
    const absl::StatusOr<bool> found = Read(&record);
    bytes->append(record);
    return found;
  }

  // Points `record` at the next record, until the next call.
  absl::StatusOr<bool> Read(std::string_view* record) {
    for (;;) {
      line_ = next_line_;
      int64_t line_breaks = 1;
      REQUANT_ASSIGN_OR_RETURN(const size_t end, FindEnd(&line_breaks));
      if (end == begin_ && end == buffer_.size()) return false;
      *record = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = std::min(end + 1, buffer_.size());
      next_line_ += line_breaks;
      if (absl::EndsWith(*record, "\r")) record->remove_suffix(1);
      if (!record->empty()) return true;
    }
  }

  int64_t number() const override { return line_; }
  int64_t position() const override {
    return file_->position(buffer_.size() - begin_);
  }

 private:
  // Appends to buffer_, or sets at_end_ if there is no more.
  absl::Status Fill() {
    const size_t old_size = buffer_.size();
    buffer_.resize(old_size + kReadBytes);
    const absl::StatusOr<size_t> n =
        file_->Read(buffer_.data() + old_size, kReadBytes);
    buffer_.resize(old_size + (n.ok() ? *n : 0));
    at_end_ = n.ok() && *n == 0;
    return n.status();
  }

  // Finds the end of the record at `begin_`. Returns the offset of its line
  // break or of the file's end.
  absl::StatusOr<size_t> FindEnd(int64_t* line_breaks) {
    State state = State::kFieldStart;
    for (size_t i = begin_;; ++i) {
      if (i == buffer_.size()) {
        if (!at_end_) {
          buffer_.erase(0, begin_);
          i -= begin_;
          begin_ = 0;
          REQUANT_RETURN_IF_ERROR(Fill());
        }
        if (i == buffer_.size()) break;
      }
      // Most records have no quotes and thus end with the line.
      if (i == begin_) {
        const std::string_view rest = std::string_view(buffer_).substr(i);
        const size_t line_end = rest.find('\n');
        if (line_end != std::string_view::npos &&
            !absl::StrContains(rest.substr(0, line_end), '"')) {
          return i + line_end;
        }
      }
      if (buffer_[i] == '\n') {
        if (state != State::kQuoted) return i;
        ++*line_breaks;
      }
      state = NextState(state, buffer_[i], delimiter_);
      if (i - begin_ > kMaxTextRecordBytes) {
        return absl::DataLossError(
            absl::StrCat("a record of more than ", kMaxTextRecordBytes >> 20,
                         " MB; a closing quote may be missing"));
      }
    }
    if (state == State::kQuoted) {
      return absl::DataLossError(
          "a field that starts with a quote does not end with one");
    }
    return buffer_.size();
  }

  const std::unique_ptr<InputFile> file_;
  char delimiter_ = ',';
  std::string buffer_;
  size_t begin_ = 0;
  bool at_end_ = false;
  int64_t line_ = 0;
  int64_t next_line_ = 1;
};

struct CsvField {
  std::string_view text;
  bool quoted = false;
};

// Splits a record into its fields, with unescaped text in `storage`. Returns
// false if something follows a closing quote.
bool SplitCsv(std::string_view record, char delimiter,
              std::vector<CsvField>* fields, std::string* storage) {
  fields->clear();
  storage->clear();
  // Fields point into the storage, so it must not move.
  storage->reserve(record.size());
  size_t at = 0;
  for (;;) {
    if (at == record.size() || record[at] != '"') {
      const size_t end = std::min(record.find(delimiter, at), record.size());
      fields->push_back({record.substr(at, end - at), false});
      at = end;
    } else {
      const size_t start = storage->size();
      for (++at; at < record.size(); ++at) {
        if (record[at] == '"') {
          if (at + 1 == record.size() || record[at + 1] != '"') break;
          ++at;
        }
        storage->push_back(record[at]);
      }
      if (at == record.size()) return false;
      ++at;
      if (at < record.size() && record[at] != delimiter) return false;
      fields->push_back({std::string_view(*storage).substr(start), true});
    }
    if (at == record.size()) return true;
    ++at;
  }
}

// Reads a field's values into row `row`; returns what is wrong, or "".
std::string ReadField(const Column& column, const CsvField& field, int64_t row,
                      Tensor* rows) {
  if (field.text.empty() && !field.quoted) {
    if (!column.default_value.has_value()) {
      return absl::StrCat("column \"", column.feature, "\" is empty",
                          kNoDefault);
    }
    FillDefault(column, row, rows);
    return "";
  }
  // Most columns have one value, which may have blanks in it.
  absl::InlinedVector<std::string_view, 1> values = {field.text};
  if (column.elements > 1) {
    values = absl::StrSplit(field.text, ' ', absl::SkipEmpty());
  }
  if (values.size() != column.elements) {
    return absl::StrCat("column \"", column.feature, "\" has ", values.size(),
                        " values, not ", column.elements);
  }
  const ParseFunction parse = ParserOf(column.dtype);
  char* element = static_cast<char*>(RowAddress(*rows, column, row));
  for (const std::string_view value : values) {
    if (!parse(value, element)) {
      return absl::StrCat("column \"", column.feature, "\" has ",
                          QuotedField(value), ", which is no ",
                          tensorflow::DataTypeString(column.dtype));
    }
    element += ElementBytes(column.dtype);
  }
  return "";
}

// Decodes the records of one file.
struct CsvDecoder {
  const std::vector<Column> columns;
  char delimiter = ',';
  // The number of fields in a record.
  size_t fields = 0;
  // The index of the field that each column takes.
  std::vector<size_t> field_of_column;
  // One record's fields, and what SplitCsv keeps of them.
  std::vector<CsvField> values = {};
  std::string storage = "";

  std::string operator()(std::string_view record, int64_t row,
                         std::vector<Tensor>* rows) {
    if (!SplitCsv(record, delimiter, &values, &storage)) {
      return absl::StrCat("field ", values.size() + 1,
                          " goes on after its closing quote");
    }
    if (values.size() != fields) {
      return absl::StrCat("it has ", values.size(),
                          values.size() == 1 ? " field" : " fields", ", not ",
                          fields);
    }
    for (size_t c = 0; c < columns.size(); ++c) {
      std::string problem =
          ReadField(columns[c], values[field_of_column[c]], row, &(*rows)[c]);
      if (!problem.empty()) return problem;
    }
    return "";
  }
};

// Returns the columns' names in the first line, or none for an empty file.
absl::StatusOr<std::vector<std::string>> ReadHeader(
    const std::string& path, const std::vector<Column>& columns,
    CsvReader* reader) {
  std::string_view record;
  const absl::StatusOr<bool> found = reader->Read(&record);
  if (!found.ok()) {
    return absl::Status(
        found.status().code(),
        NameLine(path, reader->number(), found.status().message()));
  }
  std::vector<std::string> names;
  if (!*found) return names;
  std::vector<CsvField> fields;
  std::string storage;
  if (!SplitCsv(record, reader->delimiter(), &fields, &storage)) {
    return absl::InvalidArgumentError(
        NameLine(path, reader->number(),
                 "the columns' names cannot be read: a quote is not closed"));
  }
  for (const CsvField& field : fields) {
    const std::string_view name = absl::StripAsciiWhitespace(field.text);
    const bool wanted =
        std::any_of(columns.begin(), columns.end(),
                    [&](const Column& c) { return c.feature == name; });
    if (wanted && std::find(names.begin(), names.end(), name) != names.end()) {
      return absl::InvalidArgumentError(
          NameLine(path, reader->number(),
                   absl::StrCat("column \"", name, "\" is there twice")));
    }
    names.emplace_back(name);
  }
  return names;
}

// Finds the columns by their names in the declaration or the first line.
absl::StatusOr<RecordFile> OpenCsvFile(const CsvSource& csv,
                                       const std::vector<Column>& columns,
                                       const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
  auto reader = std::make_unique<CsvReader>(std::move(file));
  REQUANT_RETURN_IF_ERROR(
      reader->Start(csv.delimiter().empty() ? 0 : csv.delimiter()[0]));
  std::vector<std::string> names(csv.columns().begin(), csv.columns().end());
  if (names.empty()) {
    REQUANT_ASSIGN_OR_RETURN(names, ReadHeader(path, columns, reader.get()));
    // An empty file has no records either.
    if (names.empty()) return RecordFile{std::move(reader), nullptr};
  } else {
    // A file may repeat the names of the declared columns.
    reader->SkipFirstLine(
        absl::StrJoin(names, std::string(1, reader->delimiter())));
  }
  CsvDecoder decoder = {columns, reader->delimiter(), names.size(), {}};
  for (const Column& column : columns) {
    const auto found = std::find(names.begin(), names.end(), column.feature);
    if (found == names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has no column \"", column.feature, "\"",
                       DidYouMean(column.feature, names)));
    }
    decoder.field_of_column.push_back(found - names.begin());
  }
  return RecordFile{std::move(reader), RowDecoder(columns, decoder)};
}

void SampleField(const CsvField& field, FeatureSample* sample) {
  if (field.text.empty() && !field.quoted) return;
  tensorflow::DataType type = TypeOfText(field.text);
  if (type != tensorflow::DT_STRING) return sample->Add(type, 1);
  // Several numbers, or a text with blanks.
  const std::vector<std::string_view> values =
      absl::StrSplit(field.text, ' ', absl::SkipEmpty());
  type = tensorflow::DT_INVALID;
  for (const std::string_view value : values) {
    type = CommonType(type, TypeOfText(value));
  }
  const bool has_numbers = values.size() > 1 && type != tensorflow::DT_STRING;
  sample->Add(has_numbers ? type : tensorflow::DT_STRING,
              has_numbers ? values.size() : 1);
}

absl::StatusOr<FileSample> SampleCsv(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
  CsvReader reader(std::move(file));
  REQUANT_RETURN_IF_ERROR(reader.Start(0));
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ReadHeader(path, {}, &reader));
  FileSample sample;
  for (const std::string& name : names) sample[name];
  std::vector<CsvField> fields;
  std::string storage;
  for (int64_t i = 0; i < kSampledRecords; ++i) {
    std::string_view record;
    const absl::StatusOr<bool> more = reader.Read(&record);
    if (!more.ok() || !*more) break;
    if (!SplitCsv(record, reader.delimiter(), &fields, &storage) ||
        fields.size() != names.size()) {
      continue;
    }
    for (size_t f = 0; f < fields.size(); ++f) {
      SampleField(fields[f], &sample[names[f]]);
    }
  }
  return sample;
}

std::optional<FieldProblem> CheckCsv(const DatasetSpec& spec) {
  const CsvSource& csv = spec.csv();
  const std::string& delimiter = csv.delimiter();
  if (delimiter.size() > 1) {
    return FieldProblem{"delimiter", absl::StrCat("delimiter \"", delimiter,
                                                  "\" is not one character")};
  }
  if (absl::StrContains("\"\r\n", delimiter) && !delimiter.empty()) {
    return FieldProblem{"delimiter",
                        "a quote or line break cannot be the delimiter"};
  }
  std::set<std::string_view> columns;
  for (int i = 0; i < csv.columns_size(); ++i) {
    if (!columns.insert(csv.columns(i)).second) {
      return FieldProblem{
          "columns",
          absl::StrCat("column \"", csv.columns(i), "\" is named twice"), i};
    }
  }
  return std::nullopt;
}

}  // namespace

const SourceFormat kCsvFormat = {
    DatasetSpec::kCsv,
    [](DatasetSpec* spec) { return spec->mutable_csv()->mutable_files(); },
    CheckCsv,
    [](const DatasetSpec& spec, const std::vector<Column>& columns)
        -> absl::StatusOr<std::unique_ptr<ChunkSource>> {
      return OpenRecordSource(
          spec.csv().files(), RecordNames::kLines, columns,
          [csv = spec.csv(), columns](const std::string& path) {
            return OpenCsvFile(csv, columns, path);
          });
    },
    SampleCsv};

}  // namespace requant
