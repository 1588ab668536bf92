#include "workflows/stage_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/content_hash.h"
#include "base/file.h"
#include "base/files_below.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kCache[] = "cache";
constexpr char kTmp[] = "tmp";
constexpr char kLast[] = "last";
constexpr char kDigests[] = "digests.pb";
constexpr char kLock[] = "lock";
constexpr char kResult[] = "result.pb";

// A file that changed so shortly before it was read may change again within the
// resolution of its time.
constexpr int64_t kYoungNs = 2'000'000'000;

// Values longer than this say nothing to people.
constexpr size_t kLongestShownValue = 60;

int64_t Nanoseconds(const struct timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool IsSameFile(const FileDigest& a, const FileDigest& b) {
  return a.bytes() == b.bytes() && a.modified_ns() == b.modified_ns() &&
         a.changed_ns() == b.changed_ns() && a.inode() == b.inode() &&
         a.device() == b.device();
}

absl::Status FileError(int error, std::string_view what,
                       const std::string& path) {
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot ", what, " ", path,
                     ": the disk is full; free some space and run the same "
                     "command again, what is done is kept"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error)));
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return absl::OkStatus();
  if (error.value() == EROFS || error.value() == EACCES) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write to the work folder ", path, ": ",
                     error.message(), "; name another with --work_dir"));
  }
  return FileError(error.value(), "make the folder", path);
}

absl::Status SyncPath(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(errno, "open", path);
  absl::Cleanup close_file = [fd] { close(fd); };
  if (fsync(fd) != 0 && errno != EINVAL) return FileError(errno, "sync", path);
  return absl::OkStatus();
}

absl::Status SyncFilesIn(const std::string& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    REQUANT_RETURN_IF_ERROR(SyncPath(
        at->path().string(), at->is_directory(error) ? O_DIRECTORY : 0));
  }
  if (error) return FileError(error.value(), "read", folder);
  return SyncPath(folder, O_DIRECTORY);
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return FileError(errno, "rename", absl::StrCat(from, " to ", to));
}

// A task's name as a file's.
std::string FileNameOf(const std::string& task) {
  return absl::StrReplaceAll(task, {{"%", "%25"}, {"/", "%2F"}});
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Who holds the lock, from what the lock file says.
std::string LockHolder(const std::string& content) {
  const std::vector<std::string> lines = absl::StrSplit(content, '\n');
  int64_t started_ms = 0;
  if (lines.size() < 4 || !absl::SimpleAtoi(lines[2], &started_ms)) {
    return "another run";
  }
  return absl::StrCat(
      "process ", lines[0], " on ", lines[1], ", running \"", lines[3],
      "\" since ",
      absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(started_ms),
                       absl::LocalTimeZone()));
}

const KeyPart* FindPart(const CachedTask& task, const KeyPart& like) {
  for (const KeyPart& part : task.part()) {
    if (part.kind() == like.kind() && part.name() == like.name()) return &part;
  }
  return nullptr;
}

std::string ParameterChange(const KeyPart* before, const KeyPart& now) {
  const auto shown = [](const std::string& value) {
    return value.size() <= kLongestShownValue && !value.empty();
  };
  if (before == nullptr) {
    return shown(now.value())
               ? absl::StrCat("the parameter ", now.name(), " is now ",
                              now.value())
               : absl::StrCat("the parameter ", now.name(), " is new");
  }
  std::string change = absl::StrCat("the parameter ", now.name(), " changed");
  if (shown(before->value()) && shown(now.value())) {
    absl::StrAppend(&change, " from ", before->value(), " to ", now.value());
  }
  return change;
}

std::string DescribeChange(const KeyPart* before, const KeyPart& now) {
  switch (now.kind()) {
    case KeyPart::VERSION:
      return "Requant's version changed";
    case KeyPart::PROGRAM:
      return absl::StrCat("the program ", now.name(), " changed");
    case KeyPart::MACHINE:
      return absl::StrCat("this machine differs: ", now.name(), " is ",
                          now.value().empty() ? "not set" : now.value());
    case KeyPart::PARAMETER:
      return ParameterChange(before, now);
    case KeyPart::INPUT:
      return absl::StrCat("its input \"", now.name(), "\" changed");
    default:
      return "its tampering changed";
  }
}

}  // namespace

std::string KeyOf(const std::vector<KeyPart>& parts) {
  ContentHash hash;
  for (const KeyPart& part : parts) {
    hash.Add(absl::StrCat(static_cast<int>(part.kind())));
    hash.Add(part.name());
    hash.Add(part.value());
  }
  return hash.Finish();
}

std::string WhatChanged(const CachedTask& before,
                        const std::vector<KeyPart>& parts) {
  for (const KeyPart& part : parts) {
    const KeyPart* const was = FindPart(before, part);
    if (was == nullptr || was->value() != part.value()) {
      return DescribeChange(was, part);
    }
  }
  for (const KeyPart& was : before.part()) {
    bool found = false;
    for (const KeyPart& part : parts) {
      found |= part.kind() == was.kind() && part.name() == was.name();
    }
    if (!found && was.kind() == KeyPart::PARAMETER) {
      return absl::StrCat("the parameter ", was.name(), " is gone");
    }
    if (!found) return DescribeChange(&was, was);
  }
  return "its result is gone";
}

StageStore::StageStore(std::string folder, bool for_run)
    : folder_(std::move(folder)), for_run_(for_run) {}

StageStore::~StageStore() {
  if (!for_run_) return;
  WriteDigests();
  if (lock_fd_ < 0) return;
  // What it says is of no use once nobody holds it.
  (void)!ftruncate(lock_fd_, 0);
  close(lock_fd_);
}

absl::StatusOr<std::unique_ptr<StageStore>> StageStore::OpenForRun(
    const std::string& folder, const std::string& command) {
  std::unique_ptr<StageStore> store(new StageStore(folder, true));
  REQUANT_RETURN_IF_ERROR(MakeFolder(folder));
  REQUANT_RETURN_IF_ERROR(store->TakeLock(command));
  for (const char* part : {kCache, kTmp, kLast}) {
    REQUANT_RETURN_IF_ERROR(MakeFolder(absl::StrCat(folder, "/", part)));
  }
  // Nobody else uses the folder, so nobody needs what is there.
  std::error_code error;
  for (fs::directory_iterator at(absl::StrCat(folder, "/", kTmp), error), end;
       !error && at != end; at.increment(error)) {
    RemoveTree(at->path().string());
  }
  store->ReadDigests();
  return store;
}

std::unique_ptr<StageStore> StageStore::OpenToLook(const std::string& folder) {
  std::unique_ptr<StageStore> store(new StageStore(folder, false));
  store->ReadDigests();
  return store;
}

absl::Status StageStore::TakeLock(const std::string& command) {
  const std::string path = absl::StrCat(folder_, "/", kLock);
  lock_fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_fd_ < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write to the work folder ", folder_, ": ",
                     std::strerror(errno), "; name another with --work_dir"));
  }
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(lock_fd_);
    lock_fd_ = -1;
    if (error != EWOULDBLOCK) return FileError(error, "lock", path);
    const absl::StatusOr<std::string> content = ReadFile(path, 1 << 16);
    return absl::FailedPreconditionError(absl::StrCat(
        "the work folder ", folder_, " is in use by ",
        LockHolder(content.ok() ? *content : ""),
        "; wait for it to end, or name another folder with --work_dir"));
  }
  (void)!ftruncate(lock_fd_, 0);
  return WriteAll(
      lock_fd_,
      absl::StrCat(getpid(), "\n", HostName(), "\n",
                   absl::ToUnixMillis(absl::Now()), "\n",
                   absl::StrReplaceAll(command, {{"\n", " "}}), "\n"));
}

std::string StageStore::PathOf(const std::string& key,
                               const std::string& file) const {
  return absl::StrCat(folder_, "/", kCache, "/", key, "/", file);
}

std::optional<CachedTask> StageStore::Find(const std::string& key) const {
  const absl::StatusOr<std::string> content = ReadFile(PathOf(key, kResult));
  CachedTask task;
  if (!content.ok() || !task.ParseFromString(*content)) return std::nullopt;
  for (const FileRecord& output : task.work().output()) {
    const absl::StatusOr<int64_t> bytes = BytesOf(PathOf(key, output.path()));
    if (!bytes.ok() || *bytes != output.bytes()) return std::nullopt;
  }
  return task;
}

std::optional<CachedTask> StageStore::LastOf(const std::string& task) const {
  const absl::StatusOr<std::string> key =
      ReadFile(absl::StrCat(folder_, "/", kLast, "/", FileNameOf(task)), 1000);
  if (!key.ok()) return std::nullopt;
  const absl::StatusOr<std::string> content = ReadFile(PathOf(*key, kResult));
  CachedTask last;
  if (!content.ok() || !last.ParseFromString(*content)) return std::nullopt;
  return last;
}

bool StageStore::Check(const std::string& key, const FileRecord& output) const {
  const absl::StatusOr<PathDigest> digest =
      DigestOfPath(PathOf(key, output.path()));
  return digest.ok() && digest->sha256 == output.sha256();
}

absl::StatusOr<std::string> StageStore::NewFolder() {
  std::string path;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    path = absl::StrCat(folder_, "/", kTmp, "/", ++next_folder_);
  }
  REQUANT_RETURN_IF_ERROR(MakeFolder(path));
  return path;
}

void StageStore::Discard(const std::string& tmp_folder) {
  RemoveTree(tmp_folder);
}

absl::Status StageStore::Publish(const std::string& tmp_folder,
                                 const std::string& key,
                                 const CachedTask& task) {
  const std::string result = absl::StrCat(tmp_folder, "/", kResult);
  REQUANT_RETURN_IF_ERROR(
      WriteFileAtomically(result, task.SerializeAsString()));
  REQUANT_RETURN_IF_ERROR(SyncFilesIn(tmp_folder));
  const std::string cache = absl::StrCat(folder_, "/", kCache);
  const std::string place = absl::StrCat(cache, "/", key);
  if (access(place.c_str(), F_OK) == 0) {
    REQUANT_ASSIGN_OR_RETURN(const std::string old, NewFolder());
    REQUANT_RETURN_IF_ERROR(Rename(place, old));
    absl::Cleanup remove_old = [&] { RemoveTree(old); };
    REQUANT_RETURN_IF_ERROR(Rename(tmp_folder, place));
  } else {
    REQUANT_RETURN_IF_ERROR(Rename(tmp_folder, place));
  }
  REQUANT_RETURN_IF_ERROR(SyncPath(cache, O_DIRECTORY));
  // Only for explanations, so it need not be whole or succeed.
  std::ofstream(absl::StrCat(folder_, "/", kLast, "/", FileNameOf(task.task())))
      << key;
  return absl::OkStatus();
}

absl::StatusOr<PathDigest> StageStore::Hash(const std::string& path) {
  return DigestOfPath(
      path, [this](const std::string& file) { return HashFile(file); });
}

absl::StatusOr<PathDigest> StageStore::HashFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  std::error_code ignored;
  FileDigest digest;
  digest.set_path(fs::absolute(path, ignored).string());
  digest.set_bytes(info.st_size);
  digest.set_modified_ns(Nanoseconds(info.st_mtim));
  digest.set_changed_ns(Nanoseconds(info.st_ctim));
  digest.set_inode(static_cast<int64_t>(info.st_ino));
  digest.set_device(static_cast<int64_t>(info.st_dev));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = digests_.find(digest.path());
    if (known != digests_.end() && IsSameFile(known->second, digest)) {
      return PathDigest{known->second.sha256(), known->second.bytes()};
    }
  }
  const int64_t now = absl::ToUnixNanos(absl::Now());
  REQUANT_ASSIGN_OR_RETURN(const PathDigest read, DigestOfFile(path));
  if (std::max(digest.modified_ns(), digest.changed_ns()) + kYoungNs < now) {
    digest.set_sha256(read.sha256);
    const std::lock_guard<std::mutex> lock(mutex_);
    digests_[digest.path()] = digest;
    digests_changed_ = true;
  }
  return read;
}

void StageStore::ReadDigests() {
  const absl::StatusOr<std::string> content =
      ReadFile(absl::StrCat(folder_, "/", kDigests));
  FileDigests digests;
  if (!content.ok() || !digests.ParseFromString(*content)) return;
  for (const FileDigest& file : digests.file()) digests_[file.path()] = file;
}

void StageStore::WriteDigests() {
  if (!digests_changed_) return;
  FileDigests digests;
  for (const auto& [path, digest] : digests_) *digests.add_file() = digest;
  // A run without them only takes longer.
  (void)WriteFileAtomically(absl::StrCat(folder_, "/", kDigests),
                            digests.SerializeAsString());
}

std::optional<int64_t> StageStore::FreeBytes() const {
  struct statvfs info;
  if (statvfs(folder_.c_str(), &info) != 0) return std::nullopt;
  return static_cast<int64_t>(info.f_bavail) *
         static_cast<int64_t>(info.f_frsize);
}

}  // namespace requant
