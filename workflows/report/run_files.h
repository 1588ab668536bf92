#ifndef REQUANT_WORKFLOWS_REPORT_RUN_FILES_H_
#define REQUANT_WORKFLOWS_REPORT_RUN_FILES_H_

// What remains of a run beside the graphs, logs and ranges of its stages.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

inline constexpr char kCommandsFile[] = "commands.sh";
inline constexpr char kManifestFile[] = "manifest.json";

// Writes commands.sh, which is `commands`, report.html, results.json,
// results.csv, TensorBoard's event file and manifest.json into an existing
// folder. Each file is whole or not there; the manifest, which has the digests
// of the others, is the last. `made` is what is in the folder already, as the
// manifest's "files" lists it.
absl::Status WriteRunFiles(const RunRecord& record, const std::string& folder,
                           const std::string& commands = "",
                           std::vector<std::string> made = {});

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_RUN_FILES_H_
