#include "base/files/copy_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"

namespace requant {
namespace {

constexpr int64_t kBufferBytes = 1 << 20;

absl::Status Failure(std::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

// Copies through a buffer from where both descriptors stand.
absl::Status CopyThroughBuffer(int from, int to, int64_t bytes) {
  std::vector<char> buffer(std::min(bytes, kBufferBytes));
  while (bytes > 0) {
    const size_t wanted = std::min<int64_t>(bytes, buffer.size());
    const ssize_t count = read(from, buffer.data(), wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "reading");
    if (count == 0) break;
    REQUANT_RETURN_IF_ERROR(
        WriteAll(to, std::string_view(buffer.data(), count)));
    bytes -= count;
  }
  return absl::OkStatus();
}

// Copies [begin, end) of one file to the same place in the other, inside the
// kernel where that is possible.
absl::Status CopyRange(int from, int to, int64_t begin, int64_t end) {
  if (lseek(from, begin, SEEK_SET) < 0 || lseek(to, begin, SEEK_SET) < 0) {
    return absl::ErrnoToStatus(errno, "seeking");
  }
  while (begin < end) {
    const ssize_t count =
        copy_file_range(from, nullptr, to, nullptr, end - begin, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) {
      return absl::ErrnoToStatus(errno, "copying");
    }
    // Not every pair of file systems can do it.
    if (count <= 0) return CopyThroughBuffer(from, to, end - begin);
    begin += count;
  }
  return absl::OkStatus();
}

// Copies what `from` has between its holes; `to` is empty.
absl::Status CopyBetweenHoles(int from, int to, int64_t size) {
  if (ftruncate(to, size) != 0) return absl::ErrnoToStatus(errno, "writing");
  int64_t at = 0;
  while (at < size) {
    off_t begin = lseek(from, at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;
    off_t end = begin < 0 ? -1 : lseek(from, begin, SEEK_HOLE);
    // A file system that knows of no holes.
    if (begin < 0) begin = at;
    if (end < 0) end = size;
    REQUANT_RETURN_IF_ERROR(CopyRange(from, to, begin, end));
    at = end;
  }
  return absl::OkStatus();
}

// Makes `to` and lets `fill` write it, given both descriptors and the size.
absl::Status MakeFrom(
    const std::string& from, const std::string& to,
    const std::function<absl::Status(int in, int out, int64_t size)>& fill) {
  const int in = open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (in < 0) return Failure("read", from);
  absl::Cleanup close_in = [in] { close(in); };
  struct stat info;
  if (fstat(in, &info) != 0) return Failure("read", from);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot copy ", from, ": it is no regular file"));
  }
  const int out = open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                       info.st_mode & 0777);
  if (out < 0) return Failure("write", to);
  absl::Cleanup close_out = [out] { close(out); };
  absl::Status status = fill(in, out, info.st_size);
  if (status.ok() && fsync(out) != 0 && errno != EINVAL) {
    status = absl::ErrnoToStatus(errno, "writing");
  }
  if (status.ok()) return status;
  unlink(to.c_str());
  return absl::Status(status.code(), absl::StrCat("cannot copy ", from, " to ",
                                                  to, ": ", status.message()));
}

}  // namespace

absl::Status CopyFile(const std::string& from, const std::string& to) {
  return MakeFrom(from, to, CopyBetweenHoles);
}

absl::Status CloneFile(const std::string& from, const std::string& to) {
  return MakeFrom(from, to, [](int in, int out, int64_t) {
    return ioctl(out, FICLONE, in) == 0 ? absl::OkStatus()
                                        : absl::ErrnoToStatus(errno, "cloning");
  });
}

absl::Status LinkFile(const std::string& from, const std::string& to) {
  if (linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) !=
      0) {
    return Failure("link", absl::StrCat(from, " to ", to));
  }
  return absl::OkStatus();
}

int64_t AllocatedBytes(const std::string& path) {
  constexpr int64_t kStatBlock = 512;
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? info.st_blocks * kStatBlock : 0;
}

}  // namespace requant
