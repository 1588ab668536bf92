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

// Returns the whole file. Errors name the path: missing, a directory, larger
// than `max_bytes`, unreadable.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes = INT64_MAX);

// Writes all of `data` to a descriptor. An error does not name the file.
absl::Status WriteAll(int fd, std::string_view data);

// Lets `write` fill a temporary file beside `path` through its descriptor, then
// syncs it and renames it to `path`: other processes see the old file or the
// whole new one. On any error the temporary file is gone and `path` is
// untouched. A symbolic link is followed; a `path` that is not a regular file
// (a pipe, /dev/null) is written directly.
absl::Status WriteFileAtomically(
    const std::string& path, const std::function<absl::Status(int fd)>& write);
absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view contents);

// Does the same for several files, which are filled in this order: none is
// renamed before all of them are whole.
struct FileToWrite {
  std::string path;
  std::function<absl::Status(int fd)> write;
};
absl::Status WriteFilesAtomically(const std::vector<FileToWrite>& files);

// Makes SIGINT, SIGTERM and SIGHUP remove the temporary files of
// WriteFileAtomically, say so on stderr as `program`, and end the process with
// exit code 128 + signal. A signal that is ignored, as by nohup, stays ignored.
void CleanUpWhenInterrupted(const std::string& program);

// Refuses an output that is also one of the inputs, or two outputs that are the
// same file, by whatever names. Pipes and devices may be named twice.
absl::Status CheckDistinct(const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs);

// Refuses a pipe, a device or a directory, which may block when opened. A
// missing file is left to be found missing.
absl::Status CheckRegular(const std::string& path);

// Fails if WriteFileAtomically(path, ...) could not start now: the folder must
// exist and be writable, and `path` be no directory. Called before long work.
absl::Status CheckWritable(const std::string& path);

// Returns the absolute path that `path` and the links in it lead to, without a
// slash at its end; what is at its end need not exist.
std::string ResolvedPath(const std::string& path);

// Removes a file, or a folder with all in it, as far as that is possible.
void RemoveTree(const std::string& path);

// Returns the temporary name that process `pid` uses for `path`; a process that
// outlives a killed writer removes it.
std::string TemporaryName(const std::string& path, pid_t pid);

}  // namespace requant

#endif  // REQUANT_BASE_FILES_FILE_H_
