#ifndef REQUANT_BASE_FILES_STAGED_FOLDER_H_
#define REQUANT_BASE_FILES_STAGED_FOLDER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// A folder that is filled under a temporary name and then moved into place:
//
//   auto folder = StagedFolder::Create("model", /*replace=*/false);
//   ... write into (*folder)->path() ...
//   (*folder)->Commit();
//
// A killed process leaves either the former state or the complete new "model".
// Until then the folder is ".model.tmp.PID" (TemporaryName), which is locked.
// The next Create for the same place removes what killed processes left,
// including the former folder, which stays as ".model.old.PID" where a file
// system cannot exchange two folders.
class StagedFolder {
 public:
  // Follows links in `target`. Fails when `target` is a file or, unless
  // `replace`, a folder that is not empty, and when its parent folder does not
  // exist or is not writable.
  static absl::StatusOr<std::unique_ptr<StagedFolder>> Create(
      const std::string& target, bool replace);

  // Removes the folder unless it was committed.
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::string& path() const { return path_; }

  // Syncs the directories (their files are synced already) and moves the folder
  // into place, unless `last_check`, which is called just before that, fails.
  // With `replace` the former one is then removed; without it, returns
  // AlreadyExistsError if one has appeared meanwhile.
  absl::Status Commit(
      const std::function<absl::Status()>& last_check = absl::OkStatus);

 private:
  StagedFolder(std::string name, std::string target, std::string path,
               bool replace, int lock_fd);

  absl::Status Exchange();

  // The target as the caller named it, for messages.
  const std::string name_;
  const std::string target_;
  const std::string path_;
  const bool replace_;
  const int lock_fd_;
  bool committed_ = false;
};

}  // namespace requant

#endif  // REQUANT_BASE_FILES_STAGED_FOLDER_H_
