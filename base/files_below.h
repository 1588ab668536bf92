#ifndef REQUANT_BASE_FILES_BELOW_H_
#define REQUANT_BASE_FILES_BELOW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace requant {

// The regular files below a folder, by their paths from it on, sorted. Links to
// files and to folders count as what they lead to, as for whoever opens them;
// those that lead around in a circle, or to more folders than anybody has, are
// refused. Errors name the folder.
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& folder);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_BELOW_H_
