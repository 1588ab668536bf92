#include "launch/mount.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/shell_quote.h"

namespace requant::launch {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

// "/a//b/../c/" as "/a/c".
std::string Normalized(std::string_view path) {
  std::string normal = std::filesystem::path(path).lexically_normal();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

// Whether `path` is below `folder`; both are normalized.
bool IsBelow(std::string_view path, std::string_view folder) {
  return folder == "/" ||
         (path.size() > folder.size() && path[folder.size()] == '/' &&
          path.substr(0, folder.size()) == folder);
}

bool IsAtOrBelow(std::string_view path, std::string_view folder) {
  return path == folder || IsBelow(path, folder);
}

Failure InTheWay(const Mount& volume, const std::string& why) {
  return Failure{"--volume: nothing can be mounted at " + volume.target + ", " +
                 why + ": choose another target"};
}

std::optional<Failure> CheckTarget(const Mount& volume) {
  if (volume.target == "/") {
    return InTheWay(volume, "the container's own root");
  }
  for (const char* system : {"/proc", "/sys", "/dev"}) {
    if (IsAtOrBelow(volume.target, system)) {
      return InTheWay(volume, "which belongs to the kernel");
    }
  }
  for (const char* own : {kModelTarget, kWorkTarget, kTemporaryTarget}) {
    if (volume.target == own) return InTheWay(volume, "which is taken");
    if (IsBelow(own, volume.target)) {
      return InTheWay(volume, std::string("which would hide ") + own);
    }
  }
  return std::nullopt;
}

// The length of the UTF-8 character at the start of `text`; 0: it is none.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is beyond the last character.
  const bool out_of_range =
      (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return out_of_range ? 0 : length;
}

// A field of a CSV record, in quotes where it needs them.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "\\,") {
      parts.back() += ',';
      ++i;
    } else if (text[i] == ',') {
      parts.emplace_back();
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

Result<Mount> ParseVolume(std::string_view text) {
  const std::string typed(text);
  Mount mount;
  if (EndsWith(text, ":ro") || EndsWith(text, ":rw")) {
    mount.read_only = EndsWith(text, ":ro");
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
  if (std::optional<Failure> bad = CheckName(text.substr(colon + 1))) {
    return *bad;
  }
  mount.target = Normalized(text.substr(colon + 1));
  return mount;
}

std::optional<Failure> CheckTargets(const std::vector<Mount>& volumes,
                                    const std::string& model_dir) {
  for (size_t i = 0; i < volumes.size(); ++i) {
    const Mount& volume = volumes[i];
    if (std::optional<Failure> taken = CheckTarget(volume)) return taken;
    for (size_t j = 0; j < i; ++j) {
      if (volume.target == volumes[j].target) {
        return InTheWay(volume, "where another --volume is");
      }
    }
    // The engine would make the folder in the user's directory, as root.
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
  for (size_t i = 0; i < path.size();) {
    const size_t length = CharacterLength(path.substr(i));
    if (length == 0) {
      return Failure{"the path " + ShellQuoted(path) +
                     " is not valid UTF-8, which engines cannot mount: rename "
                     "it"};
    }
    i += length;
  }
  return std::nullopt;
}

std::string MountArgument(const Mount& mount) {
  return "type=bind," + CsvField("source=" + mount.source) + "," +
         CsvField("target=" + mount.target) +
         (mount.read_only ? ",readonly" : "");
}

}  // namespace requant::launch
