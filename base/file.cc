#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

absl::Status ErrnoStatus(std::string_view what, const std::string& path,
                         int error) {
  const std::string message =
      absl::StrCat(what, " ", path, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == EACCES || error == EROFS) {
    return absl::PermissionDeniedError(message);
  }
  if (error == ENOSPC) return absl::ResourceExhaustedError(message);
  return absl::FailedPreconditionError(message);
}

absl::Status WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return absl::ResourceExhaustedError(std::strerror(errno));
    }
    data.remove_prefix(n);
  }
  return absl::OkStatus();
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// What `path` leads to, also where that does not exist yet.
std::string ResolveLink(std::string path) {
  constexpr int kMostLinks = 40;
  char target[PATH_MAX];
  if (realpath(path.c_str(), target) != nullptr) return target;
  for (int i = 0; i < kMostLinks; ++i) {
    const ssize_t size = readlink(path.c_str(), target, sizeof(target));
    if (size <= 0) break;
    const std::string next(target, size);
    path = next[0] == '/' ? next : absl::StrCat(DirectoryOf(path), "/", next);
  }
  return path;
}

// Makes a rename in `directory` durable; not every file system can, and then
// the rename is still atomic.
void SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// `status` of writing to `path`, with the path.
absl::Status Named(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("cannot write ", path, ": ",
                                                  status.message()));
}

absl::Status WriteInPlace(const std::string& path,
                          const std::function<absl::Status(int)>& write) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus("cannot write", path, errno);
  absl::Cleanup close_fd = [fd] { close(fd); };
  return Named(path, write(fd));
}

// Whether `path` exists and must be written in place: it is no regular file, or
// stands for one that is open already, as /dev/stdout does.
bool IsSpecial(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return false;
  return !S_ISREG(info.st_mode) || absl::StartsWith(path, "/dev/") ||
         absl::StartsWith(path, "/proc/");
}

absl::Status IsADirectory(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write ", path, ": it is a directory"));
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

absl::Status CheckWritable(const std::string& path) {
  if (IsDirectory(path)) return IsADirectory(path);
  const std::string place =
      IsSpecial(path) ? path : DirectoryOf(ResolveLink(path));
  if (access(place.c_str(), W_OK) != 0) {
    return ErrnoStatus("cannot write", path, errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus("cannot read", path, errno);
  absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus("cannot read", path, errno);
  if (S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read ", path, ": it is a directory"));
  }
  std::string contents;
  // One byte more than the file: its end is then seen without growing again.
  size_t chunk = S_ISREG(info.st_mode) && info.st_size <= max_bytes
                     ? static_cast<size_t>(info.st_size) + 1
                     : 1 << 16;
  size_t size = 0;
  while (true) {
    if (contents.size() - size < chunk) contents.resize(size + chunk);
    const ssize_t n = read(fd, &contents[size], contents.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read", path, errno);
    if (n == 0) break;
    size += n;
    if (static_cast<int64_t>(size) > max_bytes) {
      return absl::OutOfRangeError(absl::StrCat(
          "cannot read ", path, ": it is larger than ", max_bytes, " bytes"));
    }
    chunk = 1 << 16;
    if (contents.size() - size < chunk) chunk = contents.size();
  }
  contents.resize(size);
  return contents;
}

std::string TemporaryName(const std::string& path, pid_t pid) {
  const std::string target = ResolveLink(path);
  const std::string directory = DirectoryOf(target);
  const std::string base = target.substr(target.rfind('/') + 1);
  return absl::StrCat(directory, "/.", base, ".tmp.", pid);
}

absl::Status WriteFileAtomically(
    const std::string& path, const std::function<absl::Status(int)>& write) {
  if (IsDirectory(path)) return IsADirectory(path);
  if (IsSpecial(path)) return WriteInPlace(path, write);
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  const std::string target = ResolveLink(path);
  const std::string temporary = TemporaryName(path, getpid());
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus("cannot write", path, errno);
  absl::Cleanup discard = [&] { unlink(temporary.c_str()); };
  // Who may read the file is for its owner to say; not all file systems care.
  if (exists) fchmod(fd, info.st_mode & 07777);
  absl::Status written = write(fd);
  if (written.ok() && fsync(fd) != 0 && errno != EINVAL) {
    written = absl::ResourceExhaustedError(std::strerror(errno));
  }
  if (close(fd) != 0 && written.ok()) {
    written = absl::ResourceExhaustedError(std::strerror(errno));
  }
  if (!written.ok()) return Named(path, written);
  if (rename(temporary.c_str(), target.c_str()) != 0) {
    return ErrnoStatus("cannot write", path, errno);
  }
  std::move(discard).Cancel();
  SyncDirectory(DirectoryOf(target));
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view contents) {
  return WriteFileAtomically(path,
                             [&](int fd) { return WriteAll(fd, contents); });
}

}  // namespace requant
