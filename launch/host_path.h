#ifndef REQUANT_LAUNCH_HOST_PATH_H_
#define REQUANT_LAUNCH_HOST_PATH_H_

// Files and directories of this machine, looked at before an engine is.

#include <sys/statvfs.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/identity.h"
#include "launch/result.h"

namespace requant::launch {

// The absolute path of `path` without symlinks. `flag` is the one that it came
// with, for the message.
Result<std::string> ResolvePath(const std::string& flag,
                                const std::string& path);

// Checks the model directory, which ResolvePath gave: that it is one and that
// `identity` can read and search it, and that its disk has space. What does not
// stand in the way of a session, such as that nothing can be written, is added
// to `warnings`.
std::optional<Failure> CheckModelDirectory(const std::string& directory,
                                           const Identity& identity,
                                           std::vector<std::string>* warnings);

// The part of it that is about the disk.
std::optional<Failure> CheckSpace(const std::string& directory,
                                  const struct statvfs& disk,
                                  std::vector<std::string>* warnings);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_HOST_PATH_H_
