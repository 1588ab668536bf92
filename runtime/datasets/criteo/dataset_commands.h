#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_DATASET_COMMANDS_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_DATASET_COMMANDS_H_

// The commands of the program `dataset`, and what they have in common.

#include <gflags/gflags.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/program/flags.h"
#include "runtime/datasets/criteo/criteo_files.h"

DECLARE_string(format);
DECLARE_string(out);
DECLARE_string(ranges);
DECLARE_int64(buckets);

namespace requant {

// `dataset preprocess` and `dataset synthesize`: each gets what follows the
// command's name and returns the exit code.
int RunPreprocess(const std::vector<std::string>& args);
int RunSynthesize(const std::vector<std::string>& args);

// Returns the file that defines the common flags, for ProgramHelp.flag_files.
std::string CommonFlagsFile();

// Does what ParseFlags does, and takes the other command's flags for unknown.
std::optional<int> ParseCommandFlags(const std::vector<std::string>& args,
                                     const ProgramHelp& help,
                                     std::vector<std::string>* positional);

// Returns --format, which is `standard` unless given; --buckets is checked too.
absl::StatusOr<CriteoFormat> FormatFlag(CriteoFormat standard);

// Fails if an output cannot be written, or is named twice or read too.
absl::Status CheckFiles(std::vector<std::string> inputs,
                        const std::vector<std::string>& outputs);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_DATASET_COMMANDS_H_
