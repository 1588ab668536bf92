#include "launch/host_path.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text/shell_quote.h"
#include "launch/mount.h"
#include "launch/quantity.h"

namespace requant::launch {
namespace {

// With less than this nothing useful can be written.
constexpr int64_t kFullDisk = 1 << 20;
// The recipe's graphs, logs and records take this much, and some more.
constexpr int64_t kLittleSpace = int64_t{1} << 30;

// What to do about a path that cannot be resolved.
std::string Remedy(int error, const std::string& path) {
  switch (error) {
    case ENOENT:
      return path[0] == '~'
                 ? "does not exist (the shell did not expand the ~: write "
                   "\"$HOME\")"
                 : "does not exist: check the name, or make it with mkdir";
    case ENOTDIR:
      return "does not exist, because a part of it is a file: check the name";
    case EACCES:
      return "cannot be reached: you may not search a directory above it";
    case ELOOP:
      return "cannot be reached: its symbolic links lead in a circle";
    case ENAMETOOLONG:
      return "cannot be reached: the name is too long";
    default:
      return std::string("cannot be reached: ") + std::strerror(error);
  }
}

}  // namespace

Result<std::string> ResolvePath(const std::string& flag,
                                const std::string& path) {
  if (path.empty()) return Failure{flag + " has an empty path"};
  const std::unique_ptr<char, decltype(&free)> resolved(
      realpath(path.c_str(), nullptr), &free);
  if (resolved == nullptr) {
    return Failure{flag + ": " + ShellQuoted(path) + " " + Remedy(errno, path)};
  }
  const std::string absolute = resolved.get();
  if (std::optional<Failure> bad = CheckName(absolute)) {
    return Failure{flag + ": " + bad->message};
  }
  return absolute;
}

std::optional<Failure> CheckSpace(const std::string& directory,
                                  const struct statvfs& disk,
                                  std::vector<std::string>* warnings) {
  const std::string name = ShellQuoted(directory);
  const int64_t free = static_cast<int64_t>(disk.f_bavail) * disk.f_frsize;
  // Some file systems have no blocks or no fixed number of files to count.
  if (disk.f_blocks > 0 && free < kFullDisk) {
    return Failure{"the disk of " + name +
                   " is full, so that no result could be written: make space "
                   "first"};
  }
  if (disk.f_files > 0 && disk.f_favail == 0) {
    return Failure{"the disk of " + name +
                   " can hold no more files, so that no result could be "
                   "written: delete some first"};
  }
  if (disk.f_blocks > 0 && free < kLittleSpace) {
    warnings->push_back("the disk of " + name + " has only " +
                        FormatBytes(free) + " left");
  }
  return std::nullopt;
}

std::optional<Failure> CheckModelDirectory(const std::string& directory,
                                           const Identity& identity,
                                           std::vector<std::string>* warnings) {
  const std::string flag = "--pre-trained-model-dir: ";
  const std::string name = ShellQuoted(directory);
  const std::string user =
      std::to_string(identity.uid) + ":" + std::to_string(identity.gid);
  struct stat info;
  struct statvfs disk;
  if (stat(directory.c_str(), &info) != 0 ||
      statvfs(directory.c_str(), &disk) != 0) {
    return Failure{flag + name + " " + Remedy(errno, directory)};
  }
  if (!S_ISDIR(info.st_mode)) {
    return Failure{flag + name +
                   " is not a directory: name the directory that has the "
                   "model"};
  }
  if (directory == "/") {
    return Failure{flag +
                   "/ would give the container this whole machine: name the "
                   "directory that has the model"};
  }
  if (!ModeAllows(info, identity, 4 | 1)) {
    return Failure{flag + name + " cannot be read by user " + user +
                   ", as which the container runs: chmod or chown it, or "
                   "choose another --user"};
  }
  const bool read_only = (disk.f_flag & ST_RDONLY) != 0;
  if (read_only || !ModeAllows(info, identity, 2)) {
    warnings->push_back(
        name +
        (read_only ? " is on a read-only file system"
                   : " cannot be written by user " + user) +
        ", as which the container runs: results cannot be written to "
        "/workspace/quantization");
    return std::nullopt;
  }
  return CheckSpace(directory, disk, warnings);
}

}  // namespace requant::launch
