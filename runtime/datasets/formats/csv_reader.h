#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_CSV_READER_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_CSV_READER_H_

// Text files of fields between delimiters, one record per line, as RFC 4180
// describes them: a field in quotes may contain delimiters, line breaks and, as
// "", quotes. Lines end in LF or CRLF, and a byte-order mark is passed over.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/datasets/formats/input_file.h"

namespace requant {

// Cuts a file, gzipped or not, into its records. Empty lines are no records.
class CsvReader {
 public:
  // `delimiter` 0: a tab if the first line has one, else a comma.
  static absl::StatusOr<std::unique_ptr<CsvReader>> Open(
      const std::string& path, char delimiter);

  char delimiter() const { return delimiter_; }

  // Before the first Read: passes over the file's first line if it is `line`.
  void SkipFirstLine(std::string_view line);

  // Points `record` at the next one, without its line break, until the next
  // call; false at the end. After an error no further record can be found.
  // DataLoss means that the content is bad; its message does not name the file.
  absl::StatusOr<bool> Read(std::string_view* record);

  // The line that the last record, or error, started in, counting from 1.
  int64_t line() const { return line_; }

  // InputFile::position, of the records read.
  int64_t position() const { return file_->position(buffer_.size() - begin_); }

 private:
  explicit CsvReader(std::unique_ptr<InputFile> file);

  absl::Status Start(char delimiter);
  // Appends to buffer_; at_end_ when there is no more.
  absl::Status Fill();
  // Finds the record's end from `begin_`; the offset of its line break or of
  // the file's end.
  absl::StatusOr<size_t> FindEnd(int64_t* line_breaks);

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

// Splits a record into its fields; what had to be unescaped is in `storage`.
// False when something follows a closing quote.
bool SplitCsv(std::string_view record, char delimiter,
              std::vector<CsvField>* fields, std::string* storage);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_CSV_READER_H_
