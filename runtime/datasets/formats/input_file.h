#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_INPUT_FILE_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// How much is read from a file at a time.
inline constexpr size_t kReadBytes = 256 << 10;

// Whether `path` is there, can be read and is no directory; errors name it. The
// file is not opened, so that a pipe keeps its content.
absl::Status CheckReadable(const std::string& path);

// The bytes of a file from its beginning to its end, unpacked if its content is
// gzip (several members in a row too, as `cat a.gz b.gz` makes). Not
// thread-safe.
class InputFile {
 public:
  // Errors name the path: missing, a directory, unreadable.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      const std::string& path);

  virtual ~InputFile() = default;

  // Reads up to `size` bytes, at least one, or 0 at the end. What precedes an
  // error is returned first; then every call returns the error. DataLoss means
  // that the content is bad (its message says how, without the path), anything
  // else that the file cannot be read.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size) = 0;

  // About how far into the file, as it is on disk, a reader has come that has
  // yet to use the last `unused` bytes which it read; 0 when that is not known.
  virtual int64_t position(int64_t /*unused*/) const { return 0; }
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_INPUT_FILE_H_
