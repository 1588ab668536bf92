#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_TEXT_SOURCE_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_TEXT_SOURCE_H_

// What formats whose records stand in the lines of text files have in common: a
// bad record is named by its file and line.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/source_format.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// A longer record is a bad one.
inline constexpr size_t kMaxTextRecordBytes = 16 << 20;

// Cuts one file into its records.
class TextReader {
 public:
  virtual ~TextReader() = default;

  // Points `record` at the next one, without its line break, until the next
  // call; returns false at the end. After an error no further record can be
  // found. DataLoss means that the content is bad; its message does not name
  // the file.
  virtual absl::StatusOr<bool> Read(std::string_view* record) = 0;

  // The line that the last record, or error, started in, counting from 1.
  virtual int64_t line() const = 0;

  // InputFile::position, of the records read.
  virtual int64_t position() const = 0;
};

// Reads a record's values into row `row` of the columns' tensors; returns what
// is wrong with it, or "". Copies work on threads of their own.
using RecordDecoder = std::function<std::string(
    std::string_view record, int64_t row, std::vector<tensorflow::Tensor>*)>;

struct TextFile {
  std::unique_ptr<TextReader> reader;
  RecordDecoder decode;
};
using OpenTextFile =
    std::function<absl::StatusOr<TextFile>(const std::string& path)>;

// Reads `files`, one after the other, each as `open` says. The first one is
// opened at once, to show whether the declaration fits.
absl::StatusOr<std::unique_ptr<ChunkSource>> OpenTextSource(
    std::vector<std::string> files, const std::vector<Column>& columns,
    OpenTextFile open);

// Returns "FILE:LINE: problem".
std::string NameLine(const std::string& path, int64_t line,
                     std::string_view problem);

// Returns a field for a message: in quotes, short and printable.
std::string QuotedField(std::string_view text);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_TEXT_SOURCE_H_
