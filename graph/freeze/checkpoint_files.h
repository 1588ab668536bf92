#ifndef REQUANT_GRAPH_FREEZE_CHECKPOINT_FILES_H_
#define REQUANT_GRAPH_FREEZE_CHECKPOINT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace requant {

// The files of the checkpoint that exist: `prefix` with ".index", ".meta" and
// ".data-…", and those that `prefix` itself names, sorted.
std::vector<std::string> CheckpointFiles(const std::string& prefix);

// Refuses a checkpoint with a pipe or device among its files, which TensorFlow
// would wait for.
absl::Status CheckCheckpointFiles(const std::string& prefix);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_CHECKPOINT_FILES_H_
