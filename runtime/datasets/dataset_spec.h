#ifndef REQUANT_RUNTIME_DATASETS_DATASET_SPEC_H_
#define REQUANT_RUNTIME_DATASETS_DATASET_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"

namespace requant {

// Reads and checks a declaration, and puts the paths of existing files where it
// has names and globs. Errors are one sentence with file and line. `files`,
// unless empty, replace those of the declaration; they may be globs too and are
// relative to the current folder.
absl::StatusOr<DatasetSpec> ReadDatasetSpec(
    const std::string& path, const std::vector<std::string>& files = {});

// Does the same, but the files that the declaration names may be missing and
// are left as they are: for records that are yet to be made.
absl::StatusOr<DatasetSpec> ReadDatasetDeclaration(const std::string& path);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_DATASET_SPEC_H_
