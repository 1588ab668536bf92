#ifndef REQUANT_RUNTIME_DATASETS_DATASET_SPEC_H_
#define REQUANT_RUNTIME_DATASETS_DATASET_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"

namespace requant {

// Stands in a declaration for a text that its user has yet to fill in.
inline constexpr char kFillIn[] = "FILL_IN";

// Reads and checks a declaration with its vocabulary, and replaces its names
// and globs with the paths of existing files. Errors are one sentence with file
// and line. `files`, unless empty, replace those of the declaration; they may
// also be globs and are relative to the current folder.
absl::StatusOr<DatasetSpec> ReadDatasetSpec(
    const std::string& path, const std::vector<std::string>& files = {});

// Does the same for records that are yet to be made: the files that the
// declaration names may be missing, and their names are left as they are.
absl::StatusOr<DatasetSpec> ReadDatasetDeclaration(const std::string& path);

// Returns the files that `names`, which may be globs, mean in the current
// folder; a glob's files are sorted. Fails if there is none.
absl::StatusOr<std::vector<std::string>> ExistingFiles(
    const std::vector<std::string>& names);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_DATASET_SPEC_H_
