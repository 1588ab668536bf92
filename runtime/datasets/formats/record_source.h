#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_RECORD_SOURCE_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_RECORD_SOURCE_H_

// The common parts of formats whose files store one record after another.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/source_format.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// A longer record of a text file is bad.
inline constexpr size_t kMaxTextRecordBytes = 16 << 20;

// Cuts one file into its records.
class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // Appends the next record to `bytes`; returns false at the end of the file.
  // After an error, `bytes` is unchanged and no further record can be found.
  // DataLoss means that the content is bad; its message names neither the file
  // nor the record.
  virtual absl::StatusOr<bool> Read(std::string* bytes) = 0;

  // Returns the line on which the last record or error started, counting from
  // 1, or the record's number, counting from 0.
  virtual int64_t number() const = 0;

  // Returns InputFile::position of the records read.
  virtual int64_t position() const = 0;
};

// Returns a tensor for each column, with a row for each record. `problems` has
// a string per record. Records whose string is not empty on entry are skipped;
// strings that are not empty on return say what is wrong, and those rows are
// undefined. Copies of a decoder may be used in different threads.
using RecordDecoder =
    std::function<absl::StatusOr<std::vector<tensorflow::Tensor>>(
        absl::Span<const std::string_view> records,
        std::vector<std::string>* problems)>;

// Returns a decoder that calls `decode_row`, which reads a record's values into
// row `row` of the columns' tensors and returns what is wrong with it, or "".
RecordDecoder RowDecoder(
    const std::vector<Column>& columns,
    std::function<std::string(std::string_view record, int64_t row,
                              std::vector<tensorflow::Tensor>* rows)>
        decode_row);

// How messages identify a record: by its line in a text, or by its number.
enum class RecordNames { kLines, kNumbers };

struct RecordFile {
  std::unique_ptr<RecordReader> reader;
  RecordDecoder decode;
};

// Reads `files` one after another, each opened by `open`, whose decoder gives
// tensors for `columns`. The first one is opened at once to check that it fits
// the declaration.
absl::StatusOr<std::unique_ptr<ChunkSource>> OpenRecordSource(
    const google::protobuf::RepeatedPtrField<std::string>& files,
    RecordNames names, const std::vector<Column>& columns,
    std::function<absl::StatusOr<RecordFile>(const std::string& path)> open);

// Returns "FILE:LINE: problem".
std::string NameLine(const std::string& path, int64_t line,
                     std::string_view problem);

// Returns a field quoted, shortened and made printable for a message.
std::string QuotedField(std::string_view text);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_RECORD_SOURCE_H_
