#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_CHUNK_SOURCE_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_CHUNK_SOURCE_H_

// What a reader of one format does: cut the files into runs of records, one
// after the other, and decode each run, several at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// About how large a chunk is at most. One of large records has fewer of them,
// so that memory is bounded by what the records need and not by their number.
inline constexpr int64_t kChunkBytes = 16 << 20;

struct BadRow {
  int64_t row = 0;
  // One sentence that names the file and the record.
  std::string message;
  // What is left of its file was not read.
  bool ends_file = false;
};

// Decoded records.
struct Chunk {
  int64_t rows = 0;
  // One per column, [rows, shape...]; bad rows are initialised, but to nothing
  // in particular.
  std::vector<tensorflow::Tensor> columns;
  // In the order of the rows.
  std::vector<BadRow> bad;
  // ChunkSource::position behind its last record.
  int64_t position = 0;
};

// Records as they are in the file. It may refer to its ChunkSource.
class RawChunk {
 public:
  virtual ~RawChunk() = default;

  virtual int64_t rows() const = 0;

  // Called once, on any thread.
  virtual absl::StatusOr<Chunk> Decode() = 0;
};

class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  // The next records, in order: at least one, at most `max_rows`; null at the
  // end. What is left of a file after which nothing can be found counts as one
  // bad record. Errors are for what no skipping helps.
  virtual absl::StatusOr<std::unique_ptr<RawChunk>> Read(int64_t max_rows) = 0;

  // About how many bytes of all files together have been read; 0 when that is
  // not known.
  virtual int64_t position() const { return 0; }
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_CHUNK_SOURCE_H_
