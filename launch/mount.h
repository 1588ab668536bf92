#ifndef REQUANT_LAUNCH_MOUNT_H_
#define REQUANT_LAUNCH_MOUNT_H_

// What of this machine the container sees, and where.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/result.h"

namespace requant::launch {

// Where the published recipe expects things in the container.
inline constexpr char kModelTarget[] = "/workspace/quantization";
inline constexpr char kWorkTarget[] = "/workspace/tensorflow";
inline constexpr char kTemporaryTarget[] = "/tmp";

struct Mount {
  std::string source;
  std::string target;
  bool read_only = false;
};

// Splits at commas; "\," is a comma that does not split.
std::vector<std::string> SplitList(std::string_view text);

// SRC:DST[:ro|:rw]. DST is absolute and has no colon, SRC may have some. The
// target comes back without "..", double and trailing slashes; the source as it
// was typed.
Result<Mount> ParseVolume(std::string_view text);

// Whether two mounts or a mount and a part of the container would be in each
// other's way; `model_dir` is mounted at kModelTarget unless it is empty.
std::optional<Failure> CheckTargets(const std::vector<Mount>& volumes,
                                    const std::string& model_dir);

// Why a path cannot be given to an engine, which takes it as CSV, where "\r\n"
// becomes "\n", and passes it on as JSON, which is UTF-8.
std::optional<Failure> CheckName(std::string_view path);

// The value of an engine's --mount flag.
std::string MountArgument(const Mount& mount);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_MOUNT_H_
