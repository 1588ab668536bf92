#ifndef REQUANT_RUNTIME_SERVABLE_SIGNATURE_FILES_H_
#define REQUANT_RUNTIME_SERVABLE_SIGNATURE_FILES_H_

// Tells which files are for which signature of a SavedModel.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/session/job.pb.h"

namespace requant {

struct SignatureFiles {
  // "" for the one that is taken if none is named.
  std::string signature;
  // A declaration's path; "" if there is none.
  std::string declaration;
  // Files or globs with records; none if the declaration names them.
  std::vector<std::string> data;
};

// Groups `declarations` and `data` by signature. Of "NAME=x", "y" and "OTHER=z"
// the first two are for NAME and the third is for OTHER; what comes before any
// name is for the signature of `model`. That one comes first if it has any
// files. Existing files, as in "day=1.csv", and paths, as in "logs/day=1.csv",
// name no signature. Fails if the SavedModel does not have one.
absl::StatusOr<std::vector<SignatureFiles>> FilesBySignature(
    const ModelSpec& model, const std::vector<std::string>& declarations,
    const std::vector<std::string>& data);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SERVABLE_SIGNATURE_FILES_H_
