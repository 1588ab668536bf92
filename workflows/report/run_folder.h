#ifndef REQUANT_WORKFLOWS_REPORT_RUN_FOLDER_H_
#define REQUANT_WORKFLOWS_REPORT_RUN_FOLDER_H_

// What remains of a run for people: a folder with the stages' outputs, the
// commands that make them, and the report.

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "workflows/plan/plan.h"
#include "workflows/report/manifest.pb.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/run/runner.h"
#include "workflows/run/stage_store.h"

namespace requant {

inline constexpr char kCommandsFile[] = "commands.sh";
inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kResultsFile[] = "results.json";

// --- The folder.

// Returns the path of a new folder for a run below `parent`, named after the
// time in UTC, such as "20261116-161530", with "-2" appended if that is taken.
std::string NewRunFolder(const std::string& parent, absl::Time now);

// Fails unless a run may be written to `folder`: it must be missing, empty, or
// hold only an earlier run, which will be replaced even if its files were
// changed; and neither it nor `work_dir` may be inside the other. Removes what
// killed runs into the same folder left beside it.
absl::Status PrepareRunFolder(const std::string& folder,
                              const std::string& work_dir);

// Writes commands.sh (which is `commands`), report.html, results.json,
// results.csv, TensorBoard's event file and manifest.json into an existing
// folder. Each file is written whole or not at all. The manifest is the last
// one and has the others' digests. `made` lists what is in the folder already,
// as the manifest's "files" does.
absl::Status WriteRunFiles(const RunRecord& record, const std::string& folder,
                           const std::string& commands = "",
                           std::vector<std::string> made = {});

// Builds the folder beside its place and moves it there when it is complete
// (StagedFolder), so that either the old or the new one is always there. Large
// outputs are links to the store's files. `program` is the path of requant, for
// the commands.
absl::Status FillRunFolder(const Plan& plan, const RunResult& result,
                           const StageStore& store, const std::string& program,
                           const std::string& folder);

// Makes `link` point to `folder`, which is beside it. Fails if something other
// than a link has that name.
absl::Status LinkLatest(const std::string& link, const std::string& folder);

// Returns the commands of a run, in the plan's order, as a shell script.
std::string CommandScript(const Plan& plan, const RunRecord& record,
                          const std::string& program);

// --- manifest.json: it lists the files that a run read and made, with their
// digests and origins, so that changes can be found later.

// Returns the text of manifest.json. Inputs get absolute paths; the record's
// are relative to the current folder. `more_outputs` are files of the run that
// no task made, such as its report. `files` lists everything in the run's
// folder by relative path, folders with a slash at the end.
std::string ManifestJson(const RunRecord& record,
                         const std::vector<FileRecord>& more_outputs,
                         const std::vector<std::string>& files);

// Returns a JSON object with one more member at its end: the digest of all text
// before it, which reveals a changed manifest.
std::string WithOwnDigest(std::string_view json);

enum class FileState {
  kOk,
  kChanged,
  kMissing,
  // An input that is no longer where it was; nothing is known about it.
  kGone,
  // A file that cannot be read; `message` says why.
  kUnreadable,
};

struct FileCheck {
  // The path that was given to the run.
  std::string path;
  bool input = false;
  FileState state = FileState::kOk;
  std::string message;
};

// Reads a manifest and checks that it is as the run wrote it. An error is one
// sentence that says what is wrong with it.
absl::StatusOr<ManifestProto> ReadManifest(const std::string& path);

// Digests every file of a manifest again; relative paths start at its folder.
// Inputs come first, then outputs, both in the manifest's order. An error is
// one sentence that says what is wrong with the manifest itself.
absl::StatusOr<std::vector<FileCheck>> CheckManifest(const std::string& path);

// Returns "ok", "changed", "missing", "gone" or "unreadable".
std::string_view FileStateName(FileState state);

// Returns whether nothing is changed, missing or unreadable.
bool AllWell(const std::vector<FileCheck>& checks);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_RUN_FOLDER_H_
