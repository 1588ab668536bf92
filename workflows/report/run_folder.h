#ifndef REQUANT_WORKFLOWS_REPORT_RUN_FOLDER_H_
#define REQUANT_WORKFLOWS_REPORT_RUN_FOLDER_H_

// What remains of a run for people: a folder with the stages' outputs, the
// commands that make them, and the report.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "workflows/plan/plan.h"
#include "workflows/run/runner.h"
#include "workflows/run/stage_store.h"

namespace requant {

inline constexpr char kCommandsFile[] = "commands.sh";
inline constexpr char kManifestFile[] = "manifest.json";

// Returns the path of a new folder for a run: below `parent`, named by the time
// in UTC, "20261116-161530", with "-2" after it when that is taken.
std::string NewRunFolder(const std::string& parent, absl::Time now);

// Fails unless a run may be written to `folder`: it is not there, is empty, or
// holds a former run and nothing else, also in folders that the run made, which
// is then replaced, with whatever was changed in the run's own files; and
// neither it nor `work_dir` is inside the other. What killed runs into the same
// folder left beside it is removed.
absl::Status PrepareRunFolder(const std::string& folder,
                              const std::string& work_dir);

// Writes commands.sh, which is `commands`, report.html, results.json,
// results.csv, TensorBoard's event file and manifest.json into an existing
// folder. Each file is whole or not there; the manifest, which has the digests
// of the others, is the last. `made` is what is in the folder already, as the
// manifest's "files" lists it.
absl::Status WriteRunFiles(const RunRecord& record, const std::string& folder,
                           const std::string& commands = "",
                           std::vector<std::string> made = {});

// Builds the folder beside its place and moves it there when it is whole
// (StagedFolder): there is the old one or the new one at any time. Large
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

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_RUN_FOLDER_H_
