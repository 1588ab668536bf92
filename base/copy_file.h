#ifndef REQUANT_BASE_COPY_FILE_H_
#define REQUANT_BASE_COPY_FILE_H_

// Files of any size put in another place without passing through memory.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// How a file came to its new place.
enum class FilePlacement {
  // A file of its own that shares its blocks with the old one until either is
  // written to, as some file systems can.
  kCloned,
  // A second name of the same file.
  kLinked,
  kCopied,
};

// Makes `to`, which must not exist, a file with the content and the permissions
// of `from`, or of what that links to. Where `from` has holes `to` has holes,
// and what is copied is on the disk on return. On an error `to` does not exist.
absl::StatusOr<FilePlacement> CloneOrCopyFile(const std::string& from,
                                              const std::string& to);

// Makes `to`, which must not exist, a second name of `from`, or of what that
// links to. Fails where the system does not allow that: across file systems,
// and for files of others.
absl::Status LinkFile(const std::string& from, const std::string& to);

// The disk space that a file takes; holes take none. 0 for a missing one.
int64_t AllocatedBytes(const std::string& path);

}  // namespace requant

#endif  // REQUANT_BASE_COPY_FILE_H_
