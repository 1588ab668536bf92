#ifndef REQUANT_WORKFLOWS_RUN_STAGE_STORE_H_
#define REQUANT_WORKFLOWS_RUN_STAGE_STORE_H_

// The work folder of a workflow: what tasks made, by what it was made from.
//
//   cache/<key>/   a finished task's outputs, and result.pb (CachedTask); the
//                  folder's time is when a run last used it
//   tmp/           what running tasks write, and what is being removed
//   last/<task>    the key of what the task made last, for "why does it run?"
//   stopped/       the keys that runs which did not finish need to go on
//   digests.pb     digests of files from elsewhere
//   lock           held while a run uses the folder
//
// A folder of cache/ appears and disappears as a whole, whenever a run is
// killed. The .pb files are sealed (base/files/sha256.h).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/files/sha256.h"
#include "workflows/run/stage_store.pb.h"

namespace requant {

// Returns the key of work that depends on these parts.
std::string KeyOf(const std::vector<KeyPart>& parts);

// Returns why work is done again, as a clause for people that says what
// differs: "the program transform_graph changed".
std::string WhatChanged(const CachedTask& before,
                        const std::vector<KeyPart>& parts);

// A folder in cache/.
struct StoredResult {
  std::string key;
  // The task that made it; empty if result.pb cannot be read.
  std::string task;
  int64_t bytes = 0;
  absl::Time last_used;
  // The command of a run that needs it: the one that has the store open, or one
  // that was stopped in the last two weeks and can resume. Otherwise empty.
  std::string needed_by;
};

// Keeps tasks' results in a work folder. Is thread-safe.
class StageStore {
 public:
  // Opens it for a run: makes the folder, takes its lock and removes what
  // killed runs left. Anyone who finds the lock taken is shown `command`.
  static absl::StatusOr<std::unique_ptr<StageStore>> OpenForRun(
      const std::string& folder, const std::string& command);
  // Opens it to read what is there, if anything; writes nothing.
  static std::unique_ptr<StageStore> OpenToLook(const std::string& folder);
  // Releases the lock and saves the digests. Unless RunEnded was called, what
  // this run and earlier runs of the same command used stays needed.
  ~StageStore();
  StageStore(const StageStore&) = delete;
  StageStore& operator=(const StageStore&) = delete;

  const std::string& folder() const { return folder_; }

  // Returns a finished task whose files have the right sizes; their contents
  // are not read (see Check). Fails with NotFound if there is none, and with
  // DataLoss, saying what changed, if it changed since it was made.
  absl::StatusOr<CachedTask> Find(const std::string& key);
  // Returns what the task with this name made last, if it is still there.
  std::optional<CachedTask> LastOf(const std::string& task) const;
  // Fails with DataLoss, like Find, unless an output still has its digest.
  absl::Status Check(const std::string& key, const FileRecord& output) const;
  std::string PathOf(const std::string& key, const std::string& file) const;

  // Returns an empty folder in tmp/ that a task is to write to and then to
  // publish or remove.
  absl::StatusOr<std::string> NewFolder();
  // Makes the folder's content the result of `key`, whole and synced, replacing
  // any other.
  absl::Status Publish(const std::string& tmp_folder, const std::string& key,
                       const CachedTask& task);

  // Returns what is in cache/, least recently used first. Entries that appear
  // or disappear meanwhile may or may not be included.
  std::vector<StoredResult> Results() const;
  // Takes a result out of cache/ at once, then deletes it.
  absl::Status Remove(const std::string& key);
  // Notes that the run ended by itself. Unless it is `finished`, what it used
  // stays needed, so that it can resume. Stopped runs that used no more than
  // this one no longer need anything.
  void RunEnded(bool finished);

  // Returns the digest of a file or folder outside the store, which is read
  // again only if it changed since it was last read.
  absl::StatusOr<PathDigest> Hash(const std::string& path);

  // Returns the free bytes of the folder's disk, or nothing if not known.
  std::optional<int64_t> FreeBytes() const;

 private:
  StageStore(std::string folder, std::string command, bool for_run);
  absl::Status TakeLock();
  absl::StatusOr<CachedTask> ReadTask(const std::string& key) const;
  // Notes that the run needs the result of `key`.
  void Use(const std::string& key);
  void ReadDigests();
  void WriteDigests();
  absl::StatusOr<PathDigest> HashFile(const std::string& path);

  const std::string folder_;
  const std::string command_;
  const bool for_run_;
  int lock_fd_ = -1;
  mutable absl::Mutex mutex_;
  std::set<std::string> used_ ABSL_GUARDED_BY(mutex_);
  int next_folder_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, FileDigest> digests_ ABSL_GUARDED_BY(mutex_);
  bool digests_changed_ ABSL_GUARDED_BY(mutex_) = false;
};

// The functions below keep a work folder's cache from growing forever.

struct PruneLimits {
  // Results that no run has used since then are removed.
  absl::Time unused_since = absl::InfinitePast();
  // All results together may have this many bytes; the least recently used ones
  // are removed until they fit.
  int64_t max_bytes = INT64_MAX;
};

struct Pruned {
  int results = 0;
  int64_t bytes = 0;
  // What remains, and how much of that runs need (StoredResult::needed_by).
  int64_t kept_bytes = 0;
  int64_t needed_bytes = 0;
};

// Removes results beyond the limits that no run needs. `store` must be open for
// a run. A kill at any time leaves each result whole or gone. Fails at the
// first result that cannot be removed.
absl::StatusOr<Pruned> PruneStore(const PruneLimits& limits, StageStore* store);

// Returns "removed 3 results of former runs (1.20 GB)".
std::string PrunedText(const Pruned& pruned);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_STAGE_STORE_H_
