#include "launch/mount.h"

#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/text/printable.h"

namespace requant::launch {
namespace {

// Returns "/a/c" for "/a//b/../c/".
std::string Normalized(std::string_view path) {
  std::string normal = std::filesystem::path(path).lexically_normal();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

// Returns whether `path` is below `folder`; both are normalized.
bool IsBelow(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path[folder.size()] == '/' &&
         path.substr(0, folder.size()) == folder;
}

Failure InTheWay(const Mount& volume, const std::string& why) {
  return {"--volume: nothing can be mounted at " + volume.target + ", " + why +
          ": choose another target"};
}

std::optional<Failure> CheckTarget(const Mount& volume) {
  const std::string& target = volume.target;
  if (target == "/") return InTheWay(volume, "the container's own root");
  for (const char* system : {"/proc", "/sys", "/dev"}) {
    if (target == system || IsBelow(target, system)) {
      return InTheWay(volume, "which belongs to the kernel");
    }
  }
  for (const char* own : {kModelTarget, kWorkTarget, kTemporaryTarget}) {
    if (target == own) return InTheWay(volume, "which is taken");
    if (IsBelow(own, target)) {
      return InTheWay(volume, std::string("which would hide ") + own);
    }
  }
  return std::nullopt;
}

// Returns a field of a CSV record, quoted if necessary.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// Sets `id` to the number in the environment variable `name`, if it is one.
bool IdInEnvironment(const char* name, unsigned* id) {
  const char* value = getenv(name);
  if (value == nullptr) return false;
  const char* end = value + std::strlen(value);
  const std::from_chars_result read = std::from_chars(value, end, *id);
  return read.ec == std::errc() && read.ptr == end;
}

// Returns what to do about a path that does not resolve.
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

Result<Mount> ParseVolume(std::string_view text) {
  const std::string typed(text);
  const std::string_view mode =
      text.substr(text.size() - std::min<size_t>(text.size(), 3));
  Mount mount;
  if (mode == ":ro" || mode == ":rw") {
    mount.read_only = mode == ":ro";
    text.remove_suffix(3);
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 ||
      text.substr(colon, 2) != ":/") {
    return Failure{
        "--volume takes SRC:DST or SRC:DST:ro with an absolute DST, not " +
        (typed.empty() ? "an empty text" : ShellQuoted(typed)) +
        " (a comma in a name is written \\,)"};
  }
  mount.source = text.substr(0, colon);
  if (auto bad = CheckName(text.substr(colon + 1))) return *bad;
  mount.target = Normalized(text.substr(colon + 1));
  return mount;
}

std::optional<Failure> CheckTargets(const std::vector<Mount>& volumes,
                                    const std::string& model_dir) {
  for (size_t i = 0; i < volumes.size(); ++i) {
    const Mount& volume = volumes[i];
    if (auto taken = CheckTarget(volume)) return taken;
    for (size_t j = 0; j < i; ++j) {
      if (volume.target == volumes[j].target) {
        return InTheWay(volume, "where another --volume is");
      }
    }
    // The engine would create the folder in the user's directory as root.
    if (!model_dir.empty() && IsBelow(volume.target, kModelTarget)) {
      const std::string point =
          model_dir + volume.target.substr(sizeof(kModelTarget) - 1);
      struct stat info;
      if (stat(point.c_str(), &info) != 0) {
        return InTheWay(volume,
                        "because there is no " + ShellQuoted(point) + " yet");
      }
    }
  }
  return std::nullopt;
}

std::optional<Failure> CheckName(std::string_view path) {
  if (path.find("\r\n") != std::string_view::npos) {
    return Failure{"the path " + ShellQuoted(path) +
                   " has a carriage return with a line feed, of which engines "
                   "lose one: rename it"};
  }
  for (std::string_view rest = path; !rest.empty();) {
    const Character character = FirstCharacter(rest);
    if (character.code == kStray) {
      return Failure{"the path " + ShellQuoted(path) +
                     " is not valid UTF-8, which engines cannot mount: rename "
                     "it"};
    }
    rest.remove_prefix(character.bytes);
  }
  return std::nullopt;
}

std::string MountArgument(const Mount& mount) {
  return "type=bind," + CsvField("source=" + mount.source) + "," +
         CsvField("target=" + mount.target) +
         (mount.read_only ? ",readonly" : "");
}

Identity CallingUser() {
  Identity identity;
  if (geteuid() == 0 && IdInEnvironment("SUDO_UID", &identity.uid) &&
      IdInEnvironment("SUDO_GID", &identity.gid)) {
    return identity;
  }
  identity = {geteuid(), getegid(), {}};
  identity.groups.resize(std::max(0, getgroups(0, nullptr)));
  identity.groups.resize(
      std::max(0, getgroups(identity.groups.size(), identity.groups.data())));
  return identity;
}

bool ModeAllows(const struct stat& file, const Identity& identity, int bits) {
  const bool is_member =
      file.st_gid == identity.gid ||
      std::find(identity.groups.begin(), identity.groups.end(), file.st_gid) !=
          identity.groups.end();
  const int shift = file.st_uid == identity.uid ? 6 : is_member ? 3 : 0;
  return ((file.st_mode >> shift) & bits) == static_cast<mode_t>(bits);
}

Result<std::string> ResolvePath(const std::string& flag,
                                const std::string& path) {
  if (path.empty()) return Failure{flag + " has an empty path"};
  const std::unique_ptr<char, decltype(&free)> resolved(
      realpath(path.c_str(), nullptr), &free);
  if (resolved == nullptr) {
    return Failure{flag + ": " + ShellQuoted(path) + " " + Remedy(errno, path)};
  }
  if (auto bad = CheckName(resolved.get())) {
    return Failure{flag + ": " + bad->message};
  }
  return std::string(resolved.get());
}

std::optional<Failure> CheckModelDirectory(const std::string& directory,
                                           const Identity& identity,
                                           std::string* warning) {
  const std::string name = ShellQuoted(directory);
  const std::string described = "--pre-trained-model-dir: " + name;
  const std::string user =
      std::to_string(identity.uid) + ":" + std::to_string(identity.gid);
  struct stat info;
  struct statvfs disk;
  if (stat(directory.c_str(), &info) != 0 ||
      statvfs(directory.c_str(), &disk) != 0) {
    return Failure{described + " " + Remedy(errno, directory)};
  }
  if (!S_ISDIR(info.st_mode)) {
    return Failure{described +
                   " is not a directory: name the directory that has the "
                   "model"};
  }
  if (directory == "/") {
    return Failure{described +
                   " would give the container this whole machine: name the "
                   "directory that has the model"};
  }
  if (!ModeAllows(info, identity, 4 | 1)) {
    return Failure{described + " cannot be read by user " + user +
                   ", as which the container runs: chmod or chown it, or "
                   "choose another --user"};
  }
  const bool read_only = (disk.f_flag & ST_RDONLY) != 0;
  if (!read_only && ModeAllows(info, identity, 2)) return std::nullopt;
  *warning = name +
             (read_only ? " is on a read-only file system"
                        : " cannot be written by user " + user) +
             ", as which the container runs: results cannot be written to "
             "/workspace/quantization";
  return std::nullopt;
}

}  // namespace requant::launch
