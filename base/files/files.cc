#include "base/files/files.h"

#include <fcntl.h>
#include <glob.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

// Links from many folders to one multiply the number of folders.
constexpr int kMostFolders = 20'000;

class Walk {
 public:
  Walk(const std::string& folder, OtherEntries others)
      : folder_(folder), others_(others) {}

  // Adds the contents of the subfolder `name`; "" is the starting folder.
  absl::Status Enter(const std::string& name) {
    const std::string path =
        name.empty() ? folder_ : absl::StrCat(folder_, "/", name);
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("reading ", path));
    }
    const std::pair<dev_t, ino_t> place = {info.st_dev, info.st_ino};
    if (std::find(above_.begin(), above_.end(), place) != above_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " is a link to a folder that it is in; remove the link"));
    }
    if (++folders_ > kMostFolders) {
      return absl::InvalidArgumentError(
          absl::StrCat(folder_, " has more than ", kMostFolders,
                       " folders in it, counting those behind links"));
    }
    above_.push_back(place);
    if (!name.empty()) names_.push_back(name);
    REQUANT_RETURN_IF_ERROR(AddEntries(path, name));
    above_.pop_back();
    return absl::OkStatus();
  }

  std::vector<std::string> Files() && {
    std::sort(files_.begin(), files_.end());
    return std::move(files_);
  }

  std::vector<std::string> Folders() && {
    std::sort(names_.begin(), names_.end());
    return std::move(names_);
  }

 private:
  absl::Status AddEntries(const std::string& path, const std::string& name) {
    std::error_code error;
    for (fs::directory_iterator at(path, error), end; !error && at != end;
         at.increment(error)) {
      const std::string own = at->path().filename().string();
      const std::string below =
          name.empty() ? own : absl::StrCat(name, "/", own);
      std::error_code unknown;
      const fs::file_type type = at->status(unknown).type();
      if (type == fs::file_type::directory) {
        REQUANT_RETURN_IF_ERROR(Enter(below));
      } else if (type == fs::file_type::regular) {
        files_.push_back(below);
      } else if (others_ == OtherEntries::kRefuse) {
        return Refused(at->path().string(), type, unknown);
      }
    }
    if (!error) return absl::OkStatus();
    return absl::ErrnoToStatus(error.value(), absl::StrCat("reading ", path));
  }

  static absl::Status Refused(const std::string& path, fs::file_type type,
                              const std::error_code& unknown) {
    const bool leads_nowhere =
        type == fs::file_type::not_found ||
        unknown == std::errc::too_many_symbolic_link_levels;
    if (unknown && !leads_nowhere) {
      return absl::ErrnoToStatus(unknown.value(),
                                 absl::StrCat("reading ", path));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        leads_nowhere
            ? " is a link to nothing; remove it, or restore what it leads to"
            : " is neither a file nor a folder; remove it"));
  }

  const std::string folder_;
  const OtherEntries others_;
  int folders_ = 0;
  // The folders above the current one, by device and inode.
  std::vector<std::pair<dev_t, ino_t>> above_;
  std::vector<std::string> files_;
  std::vector<std::string> names_;
};

constexpr int64_t kCopyBufferBytes = 1 << 20;

absl::Status Failure(std::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

// Copies through a buffer, starting at both descriptors' current offsets.
absl::Status CopyThroughBuffer(int from, int to, int64_t bytes) {
  std::vector<char> buffer(std::min(bytes, kCopyBufferBytes));
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
// kernel if possible.
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
    // Not every pair of file systems supports copying in the kernel.
    if (count <= 0) return CopyThroughBuffer(from, to, end - begin);
    begin += count;
  }
  return absl::OkStatus();
}

// Copies the data between the holes of `from`; `to` is empty.
absl::Status CopyBetweenHoles(int from, int to, int64_t size) {
  if (ftruncate(to, size) != 0) return absl::ErrnoToStatus(errno, "writing");
  int64_t at = 0;
  while (at < size) {
    off_t begin = lseek(from, at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;
    off_t end = begin < 0 ? -1 : lseek(from, begin, SEEK_HOLE);
    // The file system does not support holes.
    if (begin < 0) begin = at;
    if (end < 0) end = size;
    REQUANT_RETURN_IF_ERROR(CopyRange(from, to, begin, end));
    at = end;
  }
  return absl::OkStatus();
}

// Creates `to` and lets `fill` write it, given both descriptors and the size.
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

std::vector<std::string> MatchingFiles(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  // glob() sorts by locale.
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::vector<std::string>> FilesBelow(
    const std::string& folder, std::vector<std::string>* folders,
    OtherEntries others) {
  Walk walk(folder, others);
  REQUANT_RETURN_IF_ERROR(walk.Enter(""));
  if (folders != nullptr) *folders = std::move(walk).Folders();
  return std::move(walk).Files();
}

absl::StatusOr<int64_t> BytesOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (S_ISREG(info.st_mode)) return info.st_size;
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<std::string> files,
      FilesBelow(path, /*folders=*/nullptr, OtherEntries::kLeaveOut));
  int64_t bytes = 0;
  for (const std::string& file : files) {
    const std::string below = absl::StrCat(path, "/", file);
    if (stat(below.c_str(), &info) != 0) {
      return absl::ErrnoToStatus(errno, below);
    }
    bytes += info.st_size;
  }
  return bytes;
}

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
