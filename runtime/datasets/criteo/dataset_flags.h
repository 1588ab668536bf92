#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_DATASET_FLAGS_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_DATASET_FLAGS_H_

// What the commands of the program `dataset` have in common.

#include <gflags/gflags.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/program/flags.h"
#include "runtime/datasets/criteo/criteo_writer.h"

DECLARE_string(format);
DECLARE_string(out);
DECLARE_string(ranges);
DECLARE_int64(buckets);

namespace requant {

// The file that defines the common flags, for ProgramHelp.flag_files.
std::string CommonFlagsFile();

// ParseFlags, which in addition takes the other command's flags for unknown.
std::optional<int> ParseCommandFlags(const std::vector<std::string>& args,
                                     const ProgramHelp& help,
                                     std::vector<std::string>* positional);

// --format, which is `standard` unless given; --buckets is checked too.
absl::StatusOr<CriteoFormat> FormatFlag(CriteoFormat standard);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_DATASET_FLAGS_H_
