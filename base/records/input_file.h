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

// How much is read from a file at a time.
inline constexpr size_t kReadBytes = 256 << 10;

// Fails unless `path` is there, can be read and is no directory; errors name
// it. The file is not opened, so that a pipe keeps its content.
absl::Status CheckReadable(const std::string& path);

// The bytes of a file from its beginning to its end. Not thread-safe.
class InputFile {
 public:
  // Opens a file whose bytes are unpacked if its content is gzip (several
  // members in a row too, as `cat a.gz b.gz` makes). Errors name the path:
  // missing, a directory, unreadable.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      const std::string& path);

  // Opens a file whose bytes are taken as they are; "-" is standard input.
  static absl::StatusOr<std::unique_ptr<InputFile>> OpenPlain(
      const std::string& path);

  virtual ~InputFile() = default;

  // Reads up to `size` bytes, at least one, or 0 at the end. What precedes an
  // error is returned first; then every call returns the error. DataLoss means
  // that the content is bad (its message says how, without the path), anything
  // else that the file cannot be read.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size) = 0;

  // Returns about how far into the file, as it is on disk, a reader has come
  // that has yet to use the last `unused` bytes which it read; 0 when that is
  // not known.
  virtual int64_t position(int64_t /*unused*/) const { return 0; }
};

// Reads until `size` bytes are there or the file ends; returns how many are.
absl::StatusOr<size_t> ReadFully(InputFile* file, char* buffer, size_t size);

// Returns the bytes of `packed`, one stream that zlib deflated without a
// wrapper; what follows it is not looked at.
std::unique_ptr<InputFile> Inflated(std::unique_ptr<InputFile> packed);

// Cuts a file into its lines, which end in LF or CRLF.
class LineReader {
 public:
  LineReader(std::unique_ptr<InputFile> file, size_t max_line_bytes);

  // Points `line` at the next one, without its line break, until the next call;
  // returns false at the end. A longer line than allowed is passed over: it is
  // empty, and too_long() is true. Errors are those of InputFile::Read.
  absl::StatusOr<bool> Next(std::string_view* line);
  bool too_long() const { return too_long_; }

  // Returns the number of the last line, or of the one that could not be read,
  // counting from 1.
  int64_t number() const { return number_; }

  // Returns InputFile::position after the lines that were read.
  int64_t position() const { return file_->position(end_ - begin_); }

 private:
  // Reads more after what is not taken yet; sets at_end_ when there is no more.
  absl::Status Fill();
  // Passes over the rest of a line that is too long. Fails beyond 1 GB, since
  // a device or a pipe may have no end.
  absl::Status SkipToLineEnd();

  const std::unique_ptr<InputFile> file_;
  const size_t max_line_bytes_;
  std::string buffer_;
  // What of the buffer is not taken yet.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  bool too_long_ = false;
  int64_t number_ = 0;
};

// Returns whether the content starts as a gzip file does.
bool IsGzipped(std::string_view content);

// Returns what a gzip file holds. `path` is for messages. Fails for content
// that is cut off, damaged, or grows beyond `max_bytes`.
absl::StatusOr<std::string> Gunzip(std::string_view content,
                                   const std::string& path, int64_t max_bytes);

}  // namespace requant

#endif  // REQUANT_BASE_RECORDS_INPUT_FILE_H_
