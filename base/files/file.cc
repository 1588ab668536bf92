#include "base/files/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
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

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Returns what `path` leads to, even if that does not exist yet.
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

// Returns the `status` of writing to `path`, with the path added.
absl::Status Named(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("cannot write ", path, ": ",
                                                  status.message()));
}

// Whether others may already see an output.
std::atomic<bool> something_written = false;

absl::Status WriteInPlace(const std::string& path,
                          const std::function<absl::Status(int)>& write) {
  // Opening it by name would write the file from its start.
  const int fd = path == "/dev/stdout"
                     ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                     : open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus("cannot write", path, errno);
  absl::Cleanup close_fd = [fd] { close(fd); };
  something_written = true;
  return Named(path, write(fd));
}

// Returns whether `path` exists and must be written in place because it is not
// a regular file or, like /dev/stdout, stands for an already open one.
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

// Returns a text that all names of one file share, even if it is missing.
std::string Identity(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    return absl::StrCat(info.st_dev, ":", info.st_ino);
  }
  const std::string target = ResolveLink(path);
  return absl::StrCat(ResolveLink(DirectoryOf(target)), "/",
                      target.substr(target.rfind('/') + 1));
}

// A temporary file to remove on an interrupt. It is never freed, because a
// signal handler walks through the list.
struct Temporary {
  explicit Temporary(const std::string& path) : name(path) {}
  const std::string name;
  std::atomic<bool> exists = true;
  Temporary* next = nullptr;
};

std::atomic<Temporary*> temporaries = nullptr;
std::atomic<const char*> interrupted_program = nullptr;

Temporary* AddTemporary(const std::string& path) {
  auto* const temporary = new Temporary(path);
  temporary->next = temporaries;
  while (!temporaries.compare_exchange_weak(temporary->next, temporary)) {
  }
  return temporary;
}

// Makes only calls that are safe in a signal handler.
void SayToStderr(const char* text) {
  [[maybe_unused]] const ssize_t n =
      write(STDERR_FILENO, text, std::strlen(text));
}

void OnInterrupt(int signal) {
  for (Temporary* t = temporaries; t != nullptr; t = t->next) {
    if (t->exists) unlink(t->name.c_str());
  }
  SayToStderr(interrupted_program);
  SayToStderr(something_written ? ": interrupted\n"
                                : ": interrupted; nothing was written\n");
  _exit(128 + signal);
}

// A file that is filled under a temporary name and then renamed.
class StagedFile {
 public:
  explicit StagedFile(const std::string& path)
      : path_(path),
        target_(ResolveLink(path)),
        temporary_(AddTemporary(TemporaryName(path, getpid()))) {}

  ~StagedFile() {
    if (temporary_->exists) unlink(temporary_->name.c_str());
    temporary_->exists = false;
  }

  absl::Status Fill(const std::function<absl::Status(int)>& write) {
    struct stat info;
    const bool exists = stat(path_.c_str(), &info) == 0;
    const int fd = open(temporary_->name.c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
      temporary_->exists = false;
      return ErrnoStatus("cannot write", path_, errno);
    }
    // The new file keeps the old one's mode; not all file systems support that.
    if (exists) fchmod(fd, info.st_mode & 07777);
    absl::Status written = write(fd);
    if (written.ok() && fsync(fd) != 0 && errno != EINVAL) {
      written = absl::ResourceExhaustedError(std::strerror(errno));
    }
    if (close(fd) != 0 && written.ok()) {
      written = absl::ResourceExhaustedError(std::strerror(errno));
    }
    return Named(path_, written);
  }

  absl::Status Commit() {
    something_written = true;
    if (rename(temporary_->name.c_str(), target_.c_str()) != 0) {
      return ErrnoStatus("cannot write", path_, errno);
    }
    temporary_->exists = false;
    // Not every file system can do this; the rename is atomic even so.
    SyncPath(DirectoryOf(target_)).IgnoreError();
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const std::string target_;
  Temporary* const temporary_;
};

}  // namespace

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
  const absl::Status too_large = absl::OutOfRangeError(absl::StrCat(
      "cannot read ", path, ": it is larger than ", max_bytes, " bytes"));
  if (S_ISREG(info.st_mode) && info.st_size > max_bytes) return too_large;
  std::string contents;
  // The extra byte lets the end of the file be seen without growing the buffer.
  size_t chunk =
      S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) + 1 : 1 << 16;
  size_t size = 0;
  while (true) {
    if (contents.size() - size < chunk) contents.resize(size + chunk);
    const ssize_t n = read(fd, &contents[size], contents.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read", path, errno);
    if (n == 0) break;
    size += n;
    if (static_cast<int64_t>(size) > max_bytes) return too_large;
    chunk = 1 << 16;
    if (contents.size() - size < chunk) chunk = contents.size();
  }
  contents.resize(size);
  return contents;
}

std::string ResolvedPath(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  fs::path resolved = fs::weakly_canonical(absolute, error);
  // The path has a cycle of links.
  if (error) resolved = absolute.lexically_normal();
  if (!resolved.has_filename()) resolved = resolved.parent_path();
  return resolved.string();
}

absl::Status SyncPath(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus("cannot write", path, errno);
  // Not every file system can sync a directory.
  const bool failed = fsync(fd) != 0 && errno != EINVAL;
  const int error = errno;
  close(fd);
  return failed ? ErrnoStatus("cannot write", path, error) : absl::OkStatus();
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string TemporaryName(const std::string& path, pid_t pid) {
  const std::string target = ResolveLink(path);
  const std::string directory = DirectoryOf(target);
  const std::string base = target.substr(target.rfind('/') + 1);
  return absl::StrCat(directory, "/.", base, ".tmp.", pid);
}

absl::Status WriteFilesAtomically(const std::vector<FileToWrite>& files) {
  std::vector<std::unique_ptr<StagedFile>> staged;
  for (const FileToWrite& file : files) {
    if (IsDirectory(file.path)) return IsADirectory(file.path);
    if (IsSpecial(file.path)) {
      REQUANT_RETURN_IF_ERROR(WriteInPlace(file.path, file.write));
      continue;
    }
    staged.push_back(std::make_unique<StagedFile>(file.path));
    REQUANT_RETURN_IF_ERROR(staged.back()->Fill(file.write));
  }
  for (const auto& file : staged) {
    REQUANT_RETURN_IF_ERROR(file->Commit());
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(
    const std::string& path, const std::function<absl::Status(int)>& write) {
  return WriteFilesAtomically({{path, write}});
}

absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view contents) {
  return WriteFileAtomically(path,
                             [&](int fd) { return WriteAll(fd, contents); });
}

void CleanUpWhenInterrupted(const std::string& program) {
  static const std::string* const name = new std::string(program);
  interrupted_program = name->c_str();
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigfillset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    const bool ignored = sigaction(signal, nullptr, &before) == 0 &&
                         before.sa_handler == SIG_IGN;
    if (!ignored) sigaction(signal, &action, nullptr);
  }
}

absl::Status CheckDistinct(const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs) {
  std::vector<std::pair<std::string, std::string>> written;
  for (const std::string& output : outputs) {
    if (IsSpecial(output)) continue;
    const std::string identity = Identity(output);
    for (const std::string& input : inputs) {
      if (Identity(input) != identity) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write ", output, ": it is also read",
                       input == output ? "" : absl::StrCat(" (as ", input, ")"),
                       "; name another output"));
    }
    for (const auto& [other, other_identity] : written) {
      if (other_identity != identity) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot write ", output, ": it is named for two outputs",
          other == output ? "" : absl::StrCat(" (also as ", other, ")")));
    }
    written.emplace_back(output, identity);
  }
  return absl::OkStatus();
}

absl::Status CheckRegular(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("cannot read ", path, ": it is ",
                   S_ISDIR(info.st_mode) ? "a directory" : "no regular file"));
}

}  // namespace requant
