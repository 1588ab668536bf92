#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_SOURCE_FORMAT_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_SOURCE_FORMAT_H_

// A table of the formats that records may have. A format's reader splits the
// files into runs of records sequentially, and decodes several runs at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/feature_sample.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// The approximate limit on a chunk's size. A chunk of large records has fewer
// of them, so that memory is bounded by the records' size, not by their number.
inline constexpr int64_t kChunkBytes = 16 << 20;

struct BadRow {
  int64_t row = 0;
  // One sentence that names the file and the record.
  std::string message;
  // Whether the rest of its file was not read.
  bool ends_file = false;
};

// Decoded records.
struct Chunk {
  int64_t rows = 0;
  // One per column, [rows, shape...]; bad rows are initialized, but to
  // unspecified values.
  std::vector<tensorflow::Tensor> columns;
  // The bad rows, in order.
  std::vector<BadRow> bad;
  // ChunkSource::position after its last record.
  int64_t position = 0;
};

// Records as they are in the file. They may refer to their ChunkSource.
struct RawChunk {
  int64_t rows = 0;
  // Is called once, in any thread.
  std::function<absl::StatusOr<Chunk>()> decode;
};

class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  // Returns the next records in order: at least one and at most `max_rows`, or
  // none at the end. The rest of a file in which no more records can be found
  // counts as one bad record. Fails only where skipping records does not help.
  virtual absl::StatusOr<RawChunk> Read(int64_t max_rows) = 0;

  // Returns about how many bytes of all files together have been read; 0 if
  // unknown.
  virtual int64_t position() const { return 0; }
};

// A problem with a field of a source's declaration.
struct FieldProblem {
  std::string field;
  std::string sentence;
  // The index in a repeated field.
  int index = -1;
};

// A kind of source, which knows how to read its declaration and its files.
struct SourceFormat {
  DatasetSpec::SourceCase source;

  // Returns the list of files or globs.
  google::protobuf::RepeatedPtrField<std::string>* (*files)(DatasetSpec* spec);

  // Returns what is wrong with a declaration; null if there is nothing to
  // check.
  std::optional<FieldProblem> (*check)(const DatasetSpec& spec);

  // Opens the files; null for a source that is not read here.
  absl::StatusOr<std::unique_ptr<ChunkSource>> (*open)(
      const DatasetSpec& spec, const std::vector<Column>& columns);

  // Looks at the first records of a file. Bad ones are passed over, because
  // reading reports them. Null for a source that is not read here.
  absl::StatusOr<FileSample> (*sample)(const std::string& path);
};

// Each is defined along with its reader.
extern const SourceFormat kTfRecordFormat;
extern const SourceFormat kCsvFormat;
extern const SourceFormat kJsonlFormat;
extern const SourceFormat kNumpyFormat;

// Returns the format of a declaration's source; null if it has no source.
const SourceFormat* FormatOf(const DatasetSpec& spec);

// Returns the files that a declaration names, in a fixed order.
std::vector<std::string> FilesOf(const DatasetSpec& spec);

// Removes all names of files from a declaration.
void ClearFiles(DatasetSpec* spec);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_SOURCE_FORMAT_H_
