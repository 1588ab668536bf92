#ifndef REQUANT_BASE_FILES_FILES_BELOW_H_
#define REQUANT_BASE_FILES_FILES_BELOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace requant {

// What becomes of links to nothing, pipes and whatever else is neither a file
// nor a folder.
enum class OtherEntries {
  // An error that names the entry: for copies, which would lack it.
  kRefuse,
  // For those who only look at the files.
  kLeaveOut,
};

// The regular files below a folder, by their paths from it on, sorted. Links to
// files and to folders count as what they lead to, as for whoever opens them;
// those that lead around in a circle, or to more folders than anybody has, are
// refused. Errors name the folder. `folders`, if given, gets the folders below
// it in the same way, each before those in it.
absl::StatusOr<std::vector<std::string>> FilesBelow(
    const std::string& folder, std::vector<std::string>* folders = nullptr,
    OtherEntries others = OtherEntries::kRefuse);

// The bytes of a regular file, or of all files below a folder together.
absl::StatusOr<int64_t> BytesOf(const std::string& path);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_FILES_BELOW_H_
