#include "workflows/run/stage_store.h"

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
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/files/file.h"
#include "base/files/files.h"
#include "base/files/sha256.h"
#include "base/message_text.h"
#include "base/status_macros.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kCache[] = "cache";
constexpr char kTmp[] = "tmp";
constexpr char kLast[] = "last";
constexpr char kStopped[] = "stopped";
constexpr char kDigests[] = "digests.pb";
constexpr char kLock[] = "lock";
constexpr char kResult[] = "result.pb";
// The prefix of names in tmp/ that are ours. Nothing else there is removed.
constexpr char kTmpPrefix[] = "requant.";

// A run that was stopped longer ago is not expected to resume.
constexpr absl::Duration kStoppedRunsLast = absl::Hours(24 * 14);

// A file that changed this shortly before it was read may change again within
// the resolution of its time stamp.
constexpr int64_t kYoungNs = 2'000'000'000;

// Longer values mean nothing to people.
constexpr size_t kLongestShownValue = 60;

int64_t Nanoseconds(const struct timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Returns everything that is known about a file except its digest.
std::string Known(FileDigest digest) {
  digest.clear_sha256();
  return digest.SerializeAsString();
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

// Returns the file name for a task's name.
std::string FileNameOf(const std::string& task) {
  return absl::StrReplaceAll(task, {{"%", "%25"}, {"/", "%2F"}});
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

absl::Status Changed(const std::string& path) {
  return absl::DataLossError(
      absl::StrCat(path, " was changed since it was made"));
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

// A run that did not finish. Its file in stopped/ has the command in the first
// line and a key in each other line.
struct StoppedRun {
  std::string path;
  std::string command;
  std::set<std::string> keys;
};

std::string StoppedPath(const std::string& folder, const std::string& command) {
  return absl::StrCat(folder, "/", kStopped, "/", Sha256(command));
}

std::vector<StoppedRun> StoppedRuns(const std::string& folder) {
  const std::string stopped = absl::StrCat(folder, "/", kStopped);
  std::vector<StoppedRun> runs;
  for (const std::string& name : NamesIn(stopped)) {
    StoppedRun run;
    run.path = absl::StrCat(stopped, "/", name);
    struct stat info;
    const absl::StatusOr<std::string> content = ReadFile(run.path);
    if (!content.ok() || stat(run.path.c_str(), &info) != 0 ||
        absl::Now() - absl::TimeFromTimespec(info.st_mtim) > kStoppedRunsLast) {
      continue;
    }
    const std::vector<std::string> lines = absl::StrSplit(*content, '\n');
    run.command = lines[0];
    run.keys.insert(lines.begin() + 1, lines.end());
    run.keys.erase("");
    runs.push_back(std::move(run));
  }
  return runs;
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

StageStore::StageStore(std::string folder, std::string command, bool for_run)
    : folder_(std::move(folder)),
      command_(absl::StrReplaceAll(command, {{"\n", " "}})),
      for_run_(for_run) {}

StageStore::~StageStore() {
  if (!for_run_) return;
  WriteDigests();
  if (lock_fd_ < 0) return;
  // The lock's content is of no use once nobody holds it.
  (void)!ftruncate(lock_fd_, 0);
  close(lock_fd_);
}

absl::StatusOr<std::unique_ptr<StageStore>> StageStore::OpenForRun(
    const std::string& folder, const std::string& command) {
  std::unique_ptr<StageStore> store(new StageStore(folder, command, true));
  REQUANT_RETURN_IF_ERROR(MakeFolder(folder));
  REQUANT_RETURN_IF_ERROR(store->TakeLock());
  for (const char* part : {kCache, kTmp, kLast, kStopped}) {
    REQUANT_RETURN_IF_ERROR(MakeFolder(absl::StrCat(folder, "/", part)));
  }
  // No one else uses the folder, so no one needs what is in tmp/.
  const std::string tmp = absl::StrCat(folder, "/", kTmp);
  for (const std::string& name : NamesIn(tmp)) {
    if (absl::StartsWith(name, kTmpPrefix)) {
      RemoveTree(absl::StrCat(tmp, "/", name));
    }
  }
  store->ReadDigests();
  return store;
}

std::unique_ptr<StageStore> StageStore::OpenToLook(const std::string& folder) {
  std::unique_ptr<StageStore> store(new StageStore(folder, "", false));
  store->ReadDigests();
  return store;
}

absl::Status StageStore::TakeLock() {
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
        content.ok() && !content->empty() ? *content : "another run",
        "; wait for it to end, or use another work folder (--work_dir of "
        "requant run)"));
  }
  (void)!ftruncate(lock_fd_, 0);
  return WriteAll(
      lock_fd_, absl::StrCat("process ", getpid(), " on ", HostName(),
                             ", running \"", command_, "\" since ",
                             absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::Now(),
                                              absl::LocalTimeZone())));
}

std::string StageStore::PathOf(const std::string& key,
                               const std::string& file) const {
  return absl::StrCat(folder_, "/", kCache, "/", key, "/", file);
}

absl::StatusOr<CachedTask> StageStore::ReadTask(const std::string& key) const {
  const std::string path = PathOf(key, kResult);
  REQUANT_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  const std::optional<std::string_view> unsealed = Unsealed(content);
  CachedTask task;
  if (!unsealed.has_value() || !task.ParseFromString(*unsealed)) {
    return Changed(path);
  }
  return task;
}

absl::StatusOr<CachedTask> StageStore::Find(const std::string& key) {
  REQUANT_ASSIGN_OR_RETURN(CachedTask task, ReadTask(key));
  for (const FileRecord& output : task.work().output()) {
    const std::string path = PathOf(key, output.path());
    const absl::StatusOr<int64_t> bytes = BytesOf(path);
    if (!bytes.ok() || *bytes != output.bytes()) return Changed(path);
  }
  Use(key);
  return task;
}

std::optional<CachedTask> StageStore::LastOf(const std::string& task) const {
  const absl::StatusOr<std::string> key =
      ReadFile(absl::StrCat(folder_, "/", kLast, "/", FileNameOf(task)), 1000);
  if (!key.ok()) return std::nullopt;
  absl::StatusOr<CachedTask> last = ReadTask(*key);
  if (!last.ok()) return std::nullopt;
  return *std::move(last);
}

absl::Status StageStore::Check(const std::string& key,
                               const FileRecord& output) const {
  const std::string path = PathOf(key, output.path());
  const absl::StatusOr<PathDigest> digest = DigestOfPath(path);
  return digest.ok() && digest->sha256 == output.sha256() ? absl::OkStatus()
                                                          : Changed(path);
}

absl::StatusOr<std::string> StageStore::NewFolder() {
  std::string path;
  {
    const absl::MutexLock lock(&mutex_);
    path = absl::StrCat(folder_, "/", kTmp, "/", kTmpPrefix, ++next_folder_);
  }
  REQUANT_RETURN_IF_ERROR(MakeFolder(path));
  return path;
}

absl::Status StageStore::Publish(const std::string& tmp_folder,
                                 const std::string& key,
                                 const CachedTask& task) {
  const std::string result = absl::StrCat(tmp_folder, "/", kResult);
  REQUANT_RETURN_IF_ERROR(
      WriteFileAtomically(result, Sealed(task.SerializeAsString())));
  REQUANT_RETURN_IF_ERROR(SyncFilesIn(tmp_folder));
  Use(key);
  const std::string cache = absl::StrCat(folder_, "/", kCache);
  const std::string place = absl::StrCat(cache, "/", key);
  if (access(place.c_str(), F_OK) == 0) REQUANT_RETURN_IF_ERROR(Remove(key));
  REQUANT_RETURN_IF_ERROR(Rename(tmp_folder, place));
  REQUANT_RETURN_IF_ERROR(SyncPath(cache, O_DIRECTORY));
  // This is only used in explanations, so it may fail or be incomplete.
  std::ofstream(absl::StrCat(folder_, "/", kLast, "/", FileNameOf(task.task())))
      << key;
  return absl::OkStatus();
}

absl::Status StageStore::Remove(const std::string& key) {
  REQUANT_ASSIGN_OR_RETURN(const std::string old, NewFolder());
  absl::Cleanup remove_old = [&] { RemoveTree(old); };
  return Rename(absl::StrCat(folder_, "/", kCache, "/", key), old);
}

void StageStore::Use(const std::string& key) {
  if (!for_run_) return;
  // If the time or the note is lost, the result may be removed too early.
  utimensat(AT_FDCWD, PathOf(key, "").c_str(), nullptr, 0);
  const absl::MutexLock lock(&mutex_);
  if (!used_.insert(key).second) return;
  const std::string path = StoppedPath(folder_, command_);
  std::string line = absl::StrCat(key, "\n");
  if (access(path.c_str(), F_OK) != 0) {
    line = absl::StrCat(command_, "\n", line);
  }
  std::ofstream(path, std::ios::app) << line;
}

void StageStore::RunEnded(bool finished) {
  const absl::MutexLock lock(&mutex_);
  for (const StoppedRun& run : StoppedRuns(folder_)) {
    if (std::includes(used_.begin(), used_.end(), run.keys.begin(),
                      run.keys.end())) {
      unlink(run.path.c_str());
    }
  }
  const std::string path = StoppedPath(folder_, command_);
  unlink(path.c_str());
  if (finished) return;
  std::ofstream(path) << command_ << "\n" << absl::StrJoin(used_, "\n");
}

std::vector<StoredResult> StageStore::Results() const {
  std::map<std::string, std::string> needed_by;
  for (const StoppedRun& run : StoppedRuns(folder_)) {
    for (const std::string& key : run.keys) needed_by[key] = run.command;
  }
  {
    const absl::MutexLock lock(&mutex_);
    for (const std::string& key : used_) needed_by[key] = command_;
  }
  std::vector<StoredResult> results;
  for (const std::string& key : NamesIn(absl::StrCat(folder_, "/", kCache))) {
    struct stat info;
    // A folder without a result is not ours.
    if (access(PathOf(key, kResult).c_str(), F_OK) != 0 ||
        stat(PathOf(key, "").c_str(), &info) != 0) {
      continue;
    }
    StoredResult& result = results.emplace_back();
    result.key = key;
    const absl::StatusOr<CachedTask> task = ReadTask(key);
    if (task.ok()) result.task = task->task();
    result.bytes = BytesOf(PathOf(key, "")).value_or(0);
    result.last_used = absl::TimeFromTimespec(info.st_mtim);
    const auto needed = needed_by.find(key);
    if (needed != needed_by.end()) result.needed_by = needed->second;
  }
  std::sort(results.begin(), results.end(),
            [](const StoredResult& a, const StoredResult& b) {
              return std::tie(a.last_used, a.key) <
                     std::tie(b.last_used, b.key);
            });
  return results;
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
    const absl::MutexLock lock(&mutex_);
    const auto known = digests_.find(digest.path());
    if (known != digests_.end() && Known(known->second) == Known(digest)) {
      return PathDigest{known->second.sha256(), known->second.bytes()};
    }
  }
  const int64_t now = absl::ToUnixNanos(absl::Now());
  REQUANT_ASSIGN_OR_RETURN(const PathDigest read, DigestOfFile(path));
  if (std::max(digest.modified_ns(), digest.changed_ns()) + kYoungNs < now) {
    digest.set_sha256(read.sha256);
    const absl::MutexLock lock(&mutex_);
    digests_[digest.path()] = digest;
    digests_changed_ = true;
  }
  return read;
}

void StageStore::ReadDigests() {
  const absl::StatusOr<std::string> content =
      ReadFile(absl::StrCat(folder_, "/", kDigests));
  if (!content.ok()) return;
  // Without digests, files are read again.
  const std::optional<std::string_view> unsealed = Unsealed(*content);
  FileDigests digests;
  if (!unsealed.has_value() || !digests.ParseFromString(*unsealed)) return;
  const absl::MutexLock lock(&mutex_);
  for (const FileDigest& file : digests.file()) digests_[file.path()] = file;
}

void StageStore::WriteDigests() {
  const absl::MutexLock lock(&mutex_);
  if (!digests_changed_) return;
  FileDigests digests;
  for (const auto& [path, digest] : digests_) *digests.add_file() = digest;
  // Without digests, a run only takes longer.
  (void)WriteFileAtomically(absl::StrCat(folder_, "/", kDigests),
                            Sealed(digests.SerializeAsString()));
}

std::optional<int64_t> StageStore::FreeBytes() const {
  struct statvfs info;
  if (statvfs(folder_.c_str(), &info) != 0) return std::nullopt;
  return static_cast<int64_t>(info.f_bavail) *
         static_cast<int64_t>(info.f_frsize);
}

absl::StatusOr<Pruned> PruneStore(const PruneLimits& limits,
                                  StageStore* store) {
  const std::vector<StoredResult> results = store->Results();
  Pruned pruned;
  for (const StoredResult& result : results) pruned.kept_bytes += result.bytes;
  for (const StoredResult& result : results) {
    if (!result.needed_by.empty()) {
      pruned.needed_bytes += result.bytes;
    } else if (result.last_used < limits.unused_since ||
               pruned.kept_bytes > limits.max_bytes) {
      REQUANT_RETURN_IF_ERROR(store->Remove(result.key));
      ++pruned.results;
      pruned.bytes += result.bytes;
      pruned.kept_bytes -= result.bytes;
    }
  }
  return pruned;
}

std::string PrunedText(const Pruned& pruned) {
  return absl::StrCat("removed ", CountText(pruned.results, "result"),
                      " of former runs (", SizeText(pruned.bytes), ")");
}

}  // namespace requant
