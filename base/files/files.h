#ifndef REQUANT_BASE_FILES_FILES_H_
#define REQUANT_BASE_FILES_FILES_H_

// Finds files, and copies or links files of any size without reading them into
// memory.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Returns the existing files and folders that match a shell pattern
// ("eval-*.tfrecords"), sorted by name.
std::vector<std::string> MatchingFiles(const std::string& pattern);

// How to treat dangling links, pipes and anything else that is neither a file
// nor a folder.
enum class OtherEntries {
  // They are errors that name the entry, because a copy would lack it.
  kRefuse,
  // They are skipped, for callers that only look at the files.
  kLeaveOut,
};

// Returns the regular files below a folder, as sorted paths relative to it.
// Links to files and folders count as what they lead to; link cycles, and links
// to an implausible number of folders, are errors. Errors name the folder.
// `folders`, if given, receives the folders below it in the same form, parents
// first.
absl::StatusOr<std::vector<std::string>> FilesBelow(
    const std::string& folder, std::vector<std::string>* folders = nullptr,
    OtherEntries others = OtherEntries::kRefuse);

// Returns the size of a regular file, or of all files below a folder.
absl::StatusOr<int64_t> BytesOf(const std::string& path);

// Returns the disk space that a file takes, not counting holes, or 0 if it is
// missing.
int64_t AllocatedBytes(const std::string& path);

// Each of the following creates `to`, which must not exist, from the file that
// `from` is or links to. On an error `to` does not exist.

// Makes an independent file with the same content, permissions and holes. It
// has been synced to disk on return.
absl::Status CopyFile(const std::string& from, const std::string& to);

// Does the same instantly and without taking space: both files share blocks
// until one of them is written. Fails on the many file systems that cannot.
absl::Status CloneFile(const std::string& from, const std::string& to);

// Makes a hard link. Fails where the system does not allow that: across file
// systems, and for other users' files.
absl::Status LinkFile(const std::string& from, const std::string& to);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_FILES_H_
