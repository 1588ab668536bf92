#ifndef REQUANT_WORKFLOWS_STAGE_STORE_H_
#define REQUANT_WORKFLOWS_STAGE_STORE_H_

// The work folder of a workflow: what tasks made, by what it was made from.
//
//   cache/<key>/   a finished task's outputs, and result.pb (CachedTask)
//   tmp/           what running tasks write
//   last/<task>    the key of what the task made last, for "why does it run?"
//   digests.pb     digests of files from elsewhere
//   lock           held while a run uses the folder
//
// A folder of cache/ appears whole or not at all, whenever a run is killed.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "workflows/stage_store.pb.h"

namespace requant {

// The key of work that depends on these.
std::string KeyOf(const std::vector<KeyPart>& parts);

// Why work is done again: what differs, as a clause for people. "the program
// transform_graph changed".
std::string WhatChanged(const CachedTask& before,
                        const std::vector<KeyPart>& parts);

// Thread-safe.
class StageStore {
 public:
  // For a run: makes the folder, takes its lock and removes what killed runs
  // left. `command` is told to who finds the lock taken.
  static absl::StatusOr<std::unique_ptr<StageStore>> OpenForRun(
      const std::string& folder, const std::string& command);
  // To look at what is there, if anything; writes nothing.
  static std::unique_ptr<StageStore> OpenToLook(const std::string& folder);
  // Gives the lock back and keeps the digests.
  ~StageStore();
  StageStore(const StageStore&) = delete;
  StageStore& operator=(const StageStore&) = delete;

  const std::string& folder() const { return folder_; }

  // A finished task, if there is one whose files have the sizes they should
  // have. The files' contents are not looked at (Check).
  std::optional<CachedTask> Find(const std::string& key) const;
  // What the task of that name made last, if it is still there.
  std::optional<CachedTask> LastOf(const std::string& task) const;
  // Whether an output still has its digest.
  bool Check(const std::string& key, const FileRecord& output) const;
  std::string PathOf(const std::string& key, const std::string& file) const;

  // An empty folder in tmp/ for a task to write to.
  absl::StatusOr<std::string> NewFolder();
  // Removes it.
  void Discard(const std::string& tmp_folder);
  // Makes what is in it the result of `key`, whole and synced, instead of any
  // other there is.
  absl::Status Publish(const std::string& tmp_folder, const std::string& key,
                       const CachedTask& task);

  // The digest of a file or folder from elsewhere. One that did not change
  // since it was last read is not read again.
  absl::StatusOr<PathDigest> Hash(const std::string& path);

  // Free bytes where the folder is; unset when that cannot be told.
  std::optional<int64_t> FreeBytes() const;

 private:
  StageStore(std::string folder, bool for_run);
  absl::Status TakeLock(const std::string& command);
  void ReadDigests();
  void WriteDigests();
  absl::StatusOr<PathDigest> HashFile(const std::string& path);

  const std::string folder_;
  const bool for_run_;
  int lock_fd_ = -1;
  std::mutex mutex_;
  int next_folder_ = 0;
  std::map<std::string, FileDigest> digests_;
  bool digests_changed_ = false;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_STAGE_STORE_H_
