#ifndef REQUANT_BASE_FILES_STAGED_FOLDER_H_
#define REQUANT_BASE_FILES_STAGED_FOLDER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// A folder that is filled beside its place and then put there at once:
//
//   auto folder = StagedFolder::Create("model", /*replace=*/false);
//   ... write into (*folder)->path() ...
//   (*folder)->Commit();
//
// Whenever the process is killed, there is either no "model" (or the former
// one) or the whole new one. While it is filled it is ".model.tmp.PID" in the
// same folder (TemporaryName) and locked; those that killed processes left are
// removed by the next Create for the same place, as is the former folder that
// stays as ".model.old.PID" where a file system cannot exchange two folders.
class StagedFolder {
 public:
  // Links in `target` are followed. Fails when `target` is a file or, unless
  // `replace`, a folder that is not empty, and when its parent folder does not
  // exist or cannot be written to.
  static absl::StatusOr<std::unique_ptr<StagedFolder>> Create(
      const std::string& target, bool replace);

  // Without Commit the folder is removed.
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::string& path() const { return path_; }

  // Writes the directories, of which the files are synced already, to the disk
  // and puts the folder in its place, unless `last_check` fails, which is
  // called just before. With `replace` the former one is removed after that;
  // else it is an AlreadyExistsError when one came meanwhile.
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
