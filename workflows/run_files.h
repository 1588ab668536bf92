#ifndef REQUANT_WORKFLOWS_RUN_FILES_H_
#define REQUANT_WORKFLOWS_RUN_FILES_H_

// What remains of a run beside the graphs, logs and ranges of its stages.

#include <string>

#include "absl/status/status.h"
#include "workflows/run_record.pb.h"

namespace requant {

// Writes report.html, results.json, results.csv, TensorBoard's event file and
// manifest.json into an existing folder. Each file is whole or not there; the
// manifest, which has the digests of the others, is the last.
absl::Status WriteRunFiles(const RunRecord& record, const std::string& folder);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_FILES_H_
