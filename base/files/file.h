#ifndef REQUANT_BASE_FILES_FILE_H_
#define REQUANT_BASE_FILES_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Returns the whole file. Errors name the path: it is missing, a directory,
// larger than `max_bytes` or unreadable.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes = INT64_MAX);

// Writes all of `data` to a descriptor. An error does not name the file.
absl::Status WriteAll(int fd, std::string_view data);

// Lets `write` fill a temporary file next to `path` through its descriptor,
// then syncs it and renames it to `path`, so that other processes see either
// the old file or the whole new one. On any error the temporary file is removed
// and `path` is untouched. Symbolic links are followed; a `path` that is not a
// regular file (a pipe, /dev/null) is written directly.
absl::Status WriteFileAtomically(
    const std::string& path, const std::function<absl::Status(int fd)>& write);
absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view contents);

// Does the same for several files, which are filled in this order; none is
// renamed before all of them are complete.
struct FileToWrite {
  std::string path;
  std::function<absl::Status(int fd)> write;
};
absl::Status WriteFilesAtomically(const std::vector<FileToWrite>& files);

// Makes SIGINT, SIGTERM and SIGHUP remove the temporary files of
// WriteFileAtomically, report it on stderr as `program`, and end the process
// with exit code 128 + signal. Ignored signals (as under nohup) stay ignored.
void CleanUpWhenInterrupted(const std::string& program);

// Refuses an output that is also an input, and two outputs that are the same
// file, whatever names are used. Pipes and devices may be named twice.
absl::Status CheckDistinct(const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs);

// Refuses a pipe, a device or a directory, which may block when opened. Accepts
// a missing file, which opening it will report.
absl::Status CheckRegular(const std::string& path);

// Fails early if WriteFileAtomically(path, ...) could not start: the folder
// must exist and be writable, and `path` must not be a directory.
absl::Status CheckWritable(const std::string& path);

// Returns the absolute path that `path` and its links lead to, without a
// trailing slash. The last component need not exist.
std::string ResolvedPath(const std::string& path);

// Waits until a file, or which entries a folder has, is on the disk.
absl::Status SyncPath(const std::string& path);

// Removes a file, or a folder and its contents, as far as possible.
void RemoveTree(const std::string& path);

// Returns the temporary name that process `pid` uses for `path`. If the writer
// is killed, a process that outlives it removes that file.
std::string TemporaryName(const std::string& path, pid_t pid);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_FILE_H_
