#ifndef REQUANT_BASE_RECORDS_INPUT_FILE_H_
#define REQUANT_BASE_RECORDS_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// The number of bytes read from a file at a time.
inline constexpr size_t kReadBytes = 256 << 10;

// Fails unless `path` exists, is readable and is not a directory; errors name
// it. The file is not opened, so that a pipe keeps its content.
absl::Status CheckReadable(const std::string& path);

// Reads a file's bytes from start to end. Not thread-safe.
class InputFile {
 public:
  // Opens a file, unpacking it if it is gzipped (even in several members, as
  // `cat a.gz b.gz` gives). Errors name the path: it is missing, a directory or
  // unreadable.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      const std::string& path);

  // Opens a file whose bytes are taken unchanged; "-" is standard input.
  static absl::StatusOr<std::unique_ptr<InputFile>> OpenPlain(
      const std::string& path);

  virtual ~InputFile() = default;

  // Reads from one to `size` bytes, or returns 0 at the end. Returns the data
  // before an error first; then every call returns the error. DataLoss means
  // that the content is bad (the message says how, without the path); any other
  // error means that the file cannot be read.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size) = 0;

  // Returns the approximate position in the file on disk of a reader that has
  // not yet used the last `unused` bytes it read, or 0 if unknown.
  virtual int64_t position(int64_t /*unused*/) const { return 0; }
};

// Reads until `size` bytes are there or the file ends; returns the number read.
absl::StatusOr<size_t> ReadFully(InputFile* file, char* buffer, size_t size);

// Returns the unpacked bytes of `packed`, a raw zlib deflate stream; ignores
// what follows it.
std::unique_ptr<InputFile> Inflated(std::unique_ptr<InputFile> packed);

// Splits a file into its lines, which end in LF or CRLF.
class LineReader {
 public:
  LineReader(std::unique_ptr<InputFile> file, size_t max_line_bytes);

  // Points `line` at the next line, without its line break, until the next
  // call; returns false at the end. A line above the limit is skipped: it is
  // empty, and too_long() is true. Errors are those of InputFile::Read.
  absl::StatusOr<bool> Next(std::string_view* line);
  bool too_long() const { return too_long_; }

  // Returns the number of the last line, or of the one that could not be read,
  // counting from 1.
  int64_t number() const { return number_; }

  // Returns InputFile::position at the end of the last line returned.
  int64_t position() const { return file_->position(end_ - begin_); }

 private:
  // Reads more after the unused data; sets at_end_ when there is no more.
  absl::Status Fill();
  // Skips the rest of a line that is too long. Fails beyond 1 GB, because a
  // device or a pipe may have no end.
  absl::Status SkipToLineEnd();

  const std::unique_ptr<InputFile> file_;
  const size_t max_line_bytes_;
  std::string buffer_;
  // The unused part of the buffer.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  bool too_long_ = false;
  int64_t number_ = 0;
};

// Returns whether the content starts like a gzip file.
bool IsGzipped(std::string_view content);

// Returns the content of a gzip file. `path` is for messages. Fails for content
// that is truncated, damaged, or larger than `max_bytes`.
absl::StatusOr<std::string> Gunzip(std::string_view content,
                                   const std::string& path, int64_t max_bytes);

}  // namespace requant

#endif  // REQUANT_BASE_RECORDS_INPUT_FILE_H_
