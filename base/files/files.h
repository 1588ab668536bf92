#ifndef REQUANT_BASE_FILES_FILES_H_
#define REQUANT_BASE_FILES_FILES_H_

// Finding files, and putting files of any size in another place without passing
// them through memory.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Returns the existing files and folders that a shell's pattern
// ("eval-*.tfrecords") matches, by name.
std::vector<std::string> MatchingFiles(const std::string& pattern);

// What becomes of links to nothing, pipes and whatever else is neither a file
// nor a folder.
enum class OtherEntries {
  // An error that names the entry: for copies, which would lack it.
  kRefuse,
  // For callers that only look at the files.
  kLeaveOut,
};

// Returns the regular files below a folder, by their paths from it on, sorted.
// Links to files and to folders count as what they lead to; those that lead
// around in a circle, or to more folders than anybody has, are refused. Errors
// name the folder. `folders`, if given, gets the folders below it in the same
// way, each before those in it.
absl::StatusOr<std::vector<std::string>> FilesBelow(
    const std::string& folder, std::vector<std::string>* folders = nullptr,
    OtherEntries others = OtherEntries::kRefuse);

// Returns the bytes of a regular file, or of all files below a folder together.
absl::StatusOr<int64_t> BytesOf(const std::string& path);

// Returns the disk space that a file takes; holes take none. 0 for a missing
// one.
int64_t AllocatedBytes(const std::string& path);

// Each of the following makes `to`, which must not exist, of `from` or of what
// that links to. On an error `to` does not exist.

// Makes a file of its own with the same content and permissions. Where `from`
// has holes `to` has holes. It is on the disk on return.
absl::Status CopyFile(const std::string& from, const std::string& to);

// Does the same at once and without taking space: both files share their blocks
// until one of them is written to. Fails on the many file systems that cannot.
absl::Status CloneFile(const std::string& from, const std::string& to);

// Makes a second name of the same file. Fails where the system does not allow
// that: across file systems, and for files of others.
absl::Status LinkFile(const std::string& from, const std::string& to);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_FILES_H_
