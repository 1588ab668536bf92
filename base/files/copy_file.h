#ifndef REQUANT_BASE_FILES_COPY_FILE_H_
#define REQUANT_BASE_FILES_COPY_FILE_H_

// Files of any size put in another place without passing through memory.

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace requant {

// Each of these makes `to`, which must not exist, of `from` or of what that
// links to. On an error `to` does not exist.

// A file of its own with the same content and permissions. Where `from` has
// holes `to` has holes. It is on the disk on return.
absl::Status CopyFile(const std::string& from, const std::string& to);

// The same, at once and without taking space: both files share their blocks
// until one of them is written to. Fails on the many file systems that cannot.
absl::Status CloneFile(const std::string& from, const std::string& to);

// A second name of the same file. Fails where the system does not allow that:
// across file systems, and for files of others.
absl::Status LinkFile(const std::string& from, const std::string& to);

// The disk space that a file takes; holes take none. 0 for a missing one.
int64_t AllocatedBytes(const std::string& path);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_COPY_FILE_H_
