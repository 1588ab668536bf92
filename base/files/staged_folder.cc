#include "base/files/staged_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

absl::Status CannotWrite(const std::string& name, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", name));
}

// Opens and locks a folder. Returns -1 if it is missing or locked elsewhere.
int LockFolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

// Removes the folders that killed processes left for `target`: partly filled
// ones, and former ones unless one is the only copy.
void RemoveLeftovers(const std::string& target) {
  const fs::path parent = fs::path(target).parent_path();
  const std::string start =
      absl::StrCat(".", fs::path(target).filename().string());
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::string_view number = name;
    int pid;
    std::error_code ignored;
    const bool is_leftover = absl::ConsumePrefix(&number, start) &&
                             (absl::ConsumePrefix(&number, ".tmp.") ||
                              (absl::ConsumePrefix(&number, ".old.") &&
                               fs::exists(target, ignored)));
    if (!is_leftover || !absl::SimpleAtoi(number, &pid)) continue;
    const int fd = LockFolder(at->path().string());
    if (fd < 0) continue;
    RemoveTree(at->path().string());
    close(fd);
  }
}

absl::Status Exists(const std::string& name) {
  return absl::AlreadyExistsError(
      absl::StrCat("cannot write ", name, ": it exists"));
}

absl::Status CheckTarget(const std::string& name, const std::string& target,
                         bool replace, mode_t* mode) {
  struct stat info;
  if (stat(target.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : CannotWrite(name, errno);
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", name, ": it is a file"));
  }
  std::error_code error;
  if (!replace && !fs::is_empty(target, error) && !error) {
    return Exists(name);
  }
  *mode = info.st_mode & 07777;
  return absl::OkStatus();
}

absl::Status SyncFolders(const std::string& path) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(path, error), end;
       !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_symlink(ignored) && at->is_directory(ignored)) {
      REQUANT_RETURN_IF_ERROR(SyncPath(at->path().string()));
    }
  }
  if (error) return CannotWrite(path, error.value());
  return SyncPath(path);
}

}  // namespace

StagedFolder::StagedFolder(std::string name, std::string target,
                           std::string path, bool replace, int lock_fd)
    : name_(std::move(name)),
      target_(std::move(target)),
      path_(std::move(path)),
      replace_(replace),
      lock_fd_(lock_fd) {}

StagedFolder::~StagedFolder() {
  if (!committed_) RemoveTree(path_);
  close(lock_fd_);
}

absl::StatusOr<std::unique_ptr<StagedFolder>> StagedFolder::Create(
    const std::string& name, bool replace) {
  const std::string target = ResolvedPath(name);
  mode_t mode = 0;
  REQUANT_RETURN_IF_ERROR(CheckTarget(name, target, replace, &mode));
  RemoveLeftovers(target);
  const std::string path = TemporaryName(target, getpid());
  if (mkdir(path.c_str(), 0777) != 0) return CannotWrite(name, errno);
  // An existing empty folder's permissions are kept.
  if (mode != 0) chmod(path.c_str(), mode);
  const int fd = LockFolder(path);
  if (fd < 0) {
    const int error = errno;
    rmdir(path.c_str());
    return CannotWrite(name, error);
  }
  return absl::WrapUnique(new StagedFolder(name, target, path, replace, fd));
}

// Swaps the new folder with the old one.
absl::Status StagedFolder::Exchange() {
  if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(),
                RENAME_EXCHANGE) == 0) {
    committed_ = true;
    RemoveTree(path_);
    return absl::OkStatus();
  }
  if (errno != EINVAL && errno != ENOSYS) return CannotWrite(name_, errno);
  // This file system cannot exchange folders, so there is none for a moment. If
  // the process is killed then, the old one stays as ".NAME.old.PID".
  const fs::path place(target_);
  const std::string aside =
      absl::StrCat(place.parent_path().string(), "/.",
                   place.filename().string(), ".old.", getpid());
  if (rename(target_.c_str(), aside.c_str()) != 0) {
    return CannotWrite(name_, errno);
  }
  if (rename(path_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    rename(aside.c_str(), target_.c_str());
    return CannotWrite(name_, error);
  }
  committed_ = true;
  RemoveTree(aside);
  return absl::OkStatus();
}

absl::Status StagedFolder::Commit(
    const std::function<absl::Status()>& last_check) {
  REQUANT_RETURN_IF_ERROR(SyncFolders(path_));
  REQUANT_RETURN_IF_ERROR(last_check());
  // This replaces an empty folder, but nothing else that appeared meanwhile.
  if (rename(path_.c_str(), target_.c_str()) == 0) {
    committed_ = true;
  } else if (errno == EEXIST || errno == ENOTEMPTY) {
    if (!replace_) return Exists(name_);
    REQUANT_RETURN_IF_ERROR(Exchange());
  } else {
    return CannotWrite(name_, errno);
  }
  // The folder is in place; syncing it against a power failure is best effort.
  SyncPath(fs::path(target_).parent_path().string()).IgnoreError();
  return absl::OkStatus();
}

}  // namespace requant
