#include "base/records/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/records/record_format.h"
#include "base/status_macros.h"

namespace requant {
namespace {

absl::Status CannotRead(const std::string& path, int error) {
  const std::string message =
      absl::StrCat("cannot read ", path, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == EACCES) return absl::PermissionDeniedError(message);
  return absl::FailedPreconditionError(message);
}

class PlainFile : public InputFile {
 public:
  PlainFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PlainFile() override { close(fd_); }

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    if (position_ < peeked_.size()) {
      const size_t n = std::min(size, peeked_.size() - position_);
      std::memcpy(buffer, peeked_.data() + position_, n);
      position_ += n;
      return n;
    }
    for (;;) {
      const ssize_t n = read(fd_, buffer, size);
      if (n >= 0) {
        read_ += n;
        return static_cast<size_t>(n);
      }
      if (errno != EINTR) return CannotRead(path_, errno);
    }
  }

  int64_t position(int64_t unused) const override { return read_ - unused; }

  // Returns up to `size` of the first bytes, which Read returns again.
  absl::StatusOr<std::string> Peek(size_t size) {
    std::string bytes(size, '\0');
    REQUANT_ASSIGN_OR_RETURN(const size_t got,
                             ReadFully(this, bytes.data(), size));
    bytes.resize(got);
    peeked_ = bytes;
    return bytes;
  }

 private:
  const std::string path_;
  const int fd_;
  std::string peeked_;
  size_t position_ = 0;
  int64_t read_ = 0;
};

class MemoryFile : public InputFile {
 public:
  explicit MemoryFile(std::string_view content) : content_(content) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    const size_t n = content_.copy(buffer, size);
    content_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view content_;
};

// zlib's codes for data with and without gzip's wrapper.
enum class Wrapper { kGzip = MAX_WBITS + 16, kNone = -MAX_WBITS };

class UnpackedFile : public InputFile {
 public:
  UnpackedFile(std::unique_ptr<InputFile> packed, Wrapper wrapper)
      : packed_(std::move(packed)),
        is_gzip_(wrapper == Wrapper::kGzip),
        input_(kReadBytes) {
    std::memset(&stream_, 0, sizeof(stream_));
    if (inflateInit2(&stream_, static_cast<int>(wrapper)) != Z_OK) {
      status_ = NoMemory();
    }
  }
  ~UnpackedFile() override { inflateEnd(&stream_); }

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    REQUANT_RETURN_IF_ERROR(status_);
    size = std::min<size_t>(size, 1 << 30);
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = size;
    while (stream_.avail_out == size && !at_end_) {
      status_ = Step();
      if (!status_.ok()) break;
    }
    const size_t produced = size - stream_.avail_out;
    produced_ += produced;
    if (produced > 0 || status_.ok()) return produced;
    return status_;
  }

  int64_t position(int64_t unused) const override {
    if (produced_ == 0) return 0;
    return static_cast<double>(packed_->position(stream_.avail_in)) *
           (produced_ - unused) / produced_;
  }

 private:
  const char* What() const { return is_gzip_ ? "gzip data" : "packed data"; }
  absl::Status NoMemory() const {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory to unpack ", What()));
  }

  absl::Status Refill() {
    if (stream_.avail_in > 0) return absl::OkStatus();
    REQUANT_ASSIGN_OR_RETURN(const size_t n,
                             packed_->Read(input_.data(), input_.size()));
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = n;
    return absl::OkStatus();
  }

  absl::Status Step() {
    REQUANT_RETURN_IF_ERROR(Refill());
    if (between_members_) return StartMember();
    if (stream_.avail_in == 0) {
      return absl::DataLossError(absl::StrCat("its ", What(), " are cut off"));
    }
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      between_members_ = is_gzip_;
      at_end_ = !is_gzip_;
    } else if (code == Z_MEM_ERROR) {
      return NoMemory();
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat(
          "its ", What(), " are corrupt (",
          stream_.msg != nullptr ? stream_.msg : "no reason", ")"));
    }
    return absl::OkStatus();
  }

  // Like gzip itself, accepts zeros after the last member as padding.
  absl::Status StartMember() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
      padded_ = true;
    }
    if (stream_.avail_in == 0) {
      REQUANT_RETURN_IF_ERROR(Refill());
      at_end_ = stream_.avail_in == 0;
      return absl::OkStatus();
    }
    if (padded_ || *stream_.next_in != 0x1f) {
      return absl::DataLossError(
          "its gzip data are followed by something that is not gzip");
    }
    between_members_ = false;
    inflateReset(&stream_);
    return absl::OkStatus();
  }

  const std::unique_ptr<InputFile> packed_;
  const bool is_gzip_;
  std::vector<char> input_;
  z_stream stream_;
  int64_t produced_ = 0;
  absl::Status status_;
  bool between_members_ = false;
  bool padded_ = false;
  bool at_end_ = false;
};

absl::StatusOr<std::unique_ptr<PlainFile>> PlainFileOf(const std::string& path,
                                                       int fd) {
  if (fd < 0) return CannotRead(path, errno);
  auto plain = std::make_unique<PlainFile>(path, fd);
  struct stat info;
  if (fstat(fd, &info) != 0) return CannotRead(path, errno);
  if (S_ISDIR(info.st_mode)) return CannotRead(path, EISDIR);
  posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  return plain;
}

absl::StatusOr<std::unique_ptr<PlainFile>> OpenPlainFile(
    const std::string& path) {
  return PlainFileOf(path, open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

absl::Status CheckReadable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return CannotRead(path, errno);
  if (S_ISDIR(info.st_mode)) return CannotRead(path, EISDIR);
  if (access(path.c_str(), R_OK) != 0) return CannotRead(path, errno);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(
    const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<PlainFile> plain,
                           OpenPlainFile(path));
  // A TFRecord of 559,903 bytes starts like gzip too, but the checksum of its
  // length follows.
  REQUANT_ASSIGN_OR_RETURN(const std::string start,
                           plain->Peek(kRecordHeaderBytes));
  if (IsGzipped(start) && !RecordLength(start).has_value()) {
    return std::make_unique<UnpackedFile>(std::move(plain), Wrapper::kGzip);
  }
  return plain;
}

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::OpenPlain(
    const std::string& path) {
  if (path == "-") return PlainFileOf(path, dup(STDIN_FILENO));
  return OpenPlainFile(path);
}

absl::StatusOr<size_t> ReadFully(InputFile* file, char* buffer, size_t size) {
  size_t got = 0;
  while (got < size) {
    REQUANT_ASSIGN_OR_RETURN(const size_t n,
                             file->Read(buffer + got, size - got));
    if (n == 0) break;
    got += n;
  }
  return got;
}

std::unique_ptr<InputFile> Inflated(std::unique_ptr<InputFile> packed) {
  return std::make_unique<UnpackedFile>(std::move(packed), Wrapper::kNone);
}

LineReader::LineReader(std::unique_ptr<InputFile> file, size_t max_line_bytes)
    : file_(std::move(file)),
      max_line_bytes_(max_line_bytes),
      buffer_(kReadBytes, '\0') {}

absl::Status LineReader::Fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  REQUANT_ASSIGN_OR_RETURN(const size_t n, file_->Read(buffer_.data() + end_,
                                                       buffer_.size() - end_));
  end_ += n;
  at_end_ = n == 0;
  return absl::OkStatus();
}

absl::Status LineReader::SkipToLineEnd() {
  constexpr size_t kMostSkipped = size_t{1} << 30;
  for (size_t skipped = 0; skipped < kMostSkipped; skipped += end_ - begin_) {
    const void* const line_end =
        std::memchr(buffer_.data() + begin_, '\n', end_ - begin_);
    begin_ = line_end == nullptr
                 ? end_
                 : static_cast<const char*>(line_end) - buffer_.data() + 1;
    if (line_end != nullptr || at_end_) return absl::OkStatus();
    REQUANT_RETURN_IF_ERROR(Fill());
  }
  return absl::DataLossError("a line of more than 1 GB");
}

absl::StatusOr<bool> LineReader::Next(std::string_view* line) {
  ++number_;
  too_long_ = false;
  const char* found = nullptr;
  for (size_t seen = begin_;;) {
    found = static_cast<const char*>(
        std::memchr(buffer_.data() + seen, '\n', end_ - seen));
    if (found != nullptr || at_end_ || end_ - begin_ > max_line_bytes_) break;
    seen = end_ - begin_;
    REQUANT_RETURN_IF_ERROR(Fill());
  }
  if (begin_ == end_) return false;
  const char* const text = buffer_.data() + begin_;
  const size_t size = found != nullptr ? found - text : end_ - begin_;
  too_long_ = size > max_line_bytes_;
  if (too_long_) {
    *line = "";
    REQUANT_RETURN_IF_ERROR(SkipToLineEnd());
    return true;
  }
  begin_ += size + (found != nullptr ? 1 : 0);
  *line = absl::StripSuffix(std::string_view(text, size), "\r");
  return true;
}

bool IsGzipped(std::string_view content) {
  // These are the magic number and the method.
  return absl::StartsWith(content, "\x1f\x8b\x08");
}

absl::StatusOr<std::string> Gunzip(std::string_view content,
                                   const std::string& path, int64_t max_bytes) {
  const absl::Status damaged = absl::DataLossError(
      absl::StrCat(path, " is a damaged or truncated gzip file"));
  if (!IsGzipped(content)) return damaged;
  UnpackedFile file(std::make_unique<MemoryFile>(content), Wrapper::kGzip);
  std::string plain, part(kReadBytes, '\0');
  for (;;) {
    const absl::StatusOr<size_t> got = file.Read(part.data(), part.size());
    if (!got.ok()) return damaged;
    if (*got == 0) return plain;
    plain.append(part, 0, *got);
    if (static_cast<int64_t>(plain.size()) > max_bytes) {
      return absl::OutOfRangeError(absl::StrCat(
          path, " holds more than ", max_bytes, " bytes when unpacked"));
    }
  }
}

}  // namespace requant
