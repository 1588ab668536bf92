#ifndef REQUANT_LAUNCH_MOUNT_H_
#define REQUANT_LAUNCH_MOUNT_H_

// What of this machine the container sees, where, and as which user. All of it
// is looked at before an engine is.

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace requant::launch {

// What stands in the way, in one sentence for the user, without a full stop.
struct Failure {
  std::string message;
};

// A value, or why there is none: absl, which has the like, comes with
// TensorFlow, to which this program is not linked.
template <typename T>
class Result {
 public:
  // Is implicit, so that a function returns either.
  Result(T value) : content_(std::move(value)) {}
  Result(Failure failure) : content_(std::move(failure)) {}

  bool ok() const { return std::holds_alternative<T>(content_); }

  // Returns the value; only when ok().
  const T& operator*() const { return std::get<T>(content_); }
  const T* operator->() const { return &std::get<T>(content_); }

  // Returns why there is no value; only when not ok().
  const Failure& failure() const { return std::get<Failure>(content_); }

 private:
  std::variant<T, Failure> content_;
};

// Where the published recipe expects things in the container.
inline constexpr char kModelTarget[] = "/workspace/quantization";
inline constexpr char kWorkTarget[] = "/workspace/tensorflow";
inline constexpr char kTemporaryTarget[] = "/tmp";

struct Mount {
  std::string source;
  std::string target;
  bool read_only = false;
};

// Whose files the container's results are.
struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  // Supplementary groups.
  std::vector<gid_t> groups;
};

// Reads SRC:DST[:ro|:rw]. DST is absolute and has no colon, SRC may have some.
// The target comes back without "..", double and trailing slashes; the source
// as it was typed.
Result<Mount> ParseVolume(std::string_view text);

// Fails if two mounts, or a mount and a part of the container, would be in each
// other's way; `model_dir` is mounted at kModelTarget unless it is empty.
std::optional<Failure> CheckTargets(const std::vector<Mount>& volumes,
                                    const std::string& model_dir);

// Fails if a path cannot be given to an engine, which takes it as CSV, where
// "\r\n" becomes "\n", and passes it on as JSON, which is UTF-8.
std::optional<Failure> CheckName(std::string_view path);

// Returns the value of an engine's --mount flag.
std::string MountArgument(const Mount& mount);

// Returns the user who called: under sudo the one who called sudo.
Identity CallingUser();

// Returns whether a file's mode lets `identity` do all of `bits` (4 read, 2
// write, 1 search). Root gets no special treatment: in the container it has no
// capabilities.
bool ModeAllows(const struct stat& file, const Identity& identity, int bits);

// Returns the absolute path of `path` without symlinks. `flag` is the one that
// it came with, for the message.
Result<std::string> ResolvePath(const std::string& flag,
                                const std::string& path);

// Fails if the model directory, which ResolvePath gave, is none, or if
// `identity` cannot read and search it. Sets `warning` if nothing can be
// written there, which does not stand in the way of a session.
std::optional<Failure> CheckModelDirectory(const std::string& directory,
                                           const Identity& identity,
                                           std::string* warning);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_MOUNT_H_
