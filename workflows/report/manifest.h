#ifndef REQUANT_WORKFLOWS_REPORT_MANIFEST_H_
#define REQUANT_WORKFLOWS_REPORT_MANIFEST_H_

// manifest.json: all files that a run read and made, with their digests, and
// how they came about; and whether they are still the same.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// Returns the text of manifest.json. Inputs have absolute paths: the record's
// are from the current folder on. `more_outputs` are files of the run that no
// task made, such as its report. `files` is all that is in the run's folder, by
// paths from it on, folders with a slash at the end.
std::string ManifestJson(const RunRecord& record,
                         const std::vector<FileRecord>& more_outputs,
                         const std::vector<std::string>& files);

// Returns a JSON object with one more member at its end: the digest of all text
// before it, by which a manifest that was changed is known.
std::string WithOwnDigest(std::string_view json);

enum class FileState {
  kOk,
  kChanged,
  kMissing,
  // An input that is no longer where it was; nothing is known of it.
  kGone,
  // Such as one without permission to read; `message` says why.
  kUnreadable,
};

struct FileCheck {
  // The path that was given to the run.
  std::string path;
  bool input = false;
  FileState state = FileState::kOk;
  std::string message;
};

// Digests every file of a manifest anew; relative paths are from the manifest's
// folder on. Inputs come first, each group in the manifest's order. An error is
// one sentence on what is wrong with the manifest itself.
absl::StatusOr<std::vector<FileCheck>> CheckManifest(const std::string& path);

// Returns all files in the folder of a manifest's run, as in ManifestJson.
absl::StatusOr<std::vector<std::string>> FilesOfManifest(
    const std::string& path);

// Returns a word: "ok", "changed", "missing", "gone" or "unreadable".
std::string_view FileStateName(FileState state);

// Returns whether nothing is changed, missing or unreadable.
bool AllWell(const std::vector<FileCheck>& checks);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_MANIFEST_H_
