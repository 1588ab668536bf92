#ifndef REQUANT_BASE_FILE_H_
#define REQUANT_BASE_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Returns the whole file. Errors name the path: missing, a directory, larger
// than `max_bytes`, unreadable.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes = INT64_MAX);

// Lets `write` fill a temporary file beside `path` through its descriptor, then
// syncs it and renames it to `path`: other processes see the old file or the
// whole new one. On any error the temporary file is gone and `path` is
// untouched. A symbolic link is followed; a `path` that is not a regular file
// (a pipe, /dev/null) is written directly.
absl::Status WriteFileAtomically(
    const std::string& path, const std::function<absl::Status(int fd)>& write);
absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view contents);

// Whether WriteFileAtomically(path, ...) could start now: the folder exists and can
// be written to, and `path` is no directory. Asked before long work.
absl::Status CheckWritable(const std::string& path);

// The temporary name that process `pid` uses for `path`; whoever outlives a
// killed writer removes it.
std::string TemporaryName(const std::string& path, pid_t pid);

}  // namespace requant

#endif  // REQUANT_BASE_FILE_H_
