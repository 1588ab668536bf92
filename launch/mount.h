#ifndef REQUANT_LAUNCH_MOUNT_H_
#define REQUANT_LAUNCH_MOUNT_H_

// Determines which files of this machine the container sees, where, and as
// which user. All of this is checked before looking for an engine.

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace requant::launch {

// Why something failed, in one sentence for the user, without a full stop.
struct Failure {
  std::string message;
};

// A value or the reason why there is none. absl has an equivalent, but it comes
// with TensorFlow, to which this program is not linked.
template <typename T>
class Result {
 public:
  // Is implicit, so that a function can return either.
  Result(T value) : content_(std::move(value)) {}
  Result(Failure failure) : content_(std::move(failure)) {}

  bool ok() const { return std::holds_alternative<T>(content_); }

  // Returns the value; requires ok().
  const T& operator*() const { return std::get<T>(content_); }
  const T* operator->() const { return &std::get<T>(content_); }

  // Returns why there is no value; requires !ok().
  const Failure& failure() const { return std::get<Failure>(content_); }

 private:
  std::variant<T, Failure> content_;
};

// Where the published recipe expects its folders in the container.
inline constexpr char kModelTarget[] = "/workspace/quantization";
inline constexpr char kWorkTarget[] = "/workspace/tensorflow";
inline constexpr char kTemporaryTarget[] = "/tmp";

struct Mount {
  std::string source;
  std::string target;
  bool read_only = false;
};

// The user who owns the files that the container creates.
struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  // Supplementary groups.
  std::vector<gid_t> groups;
};

// Parses SRC:DST[:ro|:rw]. DST is absolute and has no colon, but SRC may have
// some. The target is returned without "..", double and trailing slashes, and
// the source as typed.
Result<Mount> ParseVolume(std::string_view text);

// Fails if two mounts, or a mount and a part of the container, would conflict;
// `model_dir`, unless empty, is mounted at kModelTarget.
std::optional<Failure> CheckTargets(const std::vector<Mount>& volumes,
                                    const std::string& model_dir);

// Fails if a path cannot be passed to an engine, which parses it as CSV, where
// "\r\n" becomes "\n", and passes it on as JSON, which is UTF-8.
std::optional<Failure> CheckName(std::string_view path);

// Returns the value of the engine's --mount flag.
std::string MountArgument(const Mount& mount);

// Returns the calling user, which under sudo is the one who called sudo.
Identity CallingUser();

// Returns whether a file's mode gives `identity` all of `bits` (4 read, 2
// write, 1 search). Root gets no special treatment, because it has no
// capabilities in the container.
bool ModeAllows(const struct stat& file, const Identity& identity, int bits);

// Returns the absolute path of `path` without symlinks. `flag`, which had the
// path as its value, is for the message.
Result<std::string> ResolvePath(const std::string& flag,
                                const std::string& path);

// Fails if the path from ResolvePath is not a directory, or if `identity`
// cannot read and search it. Sets `warning` if nothing can be written there,
// which does not prevent a session.
std::optional<Failure> CheckModelDirectory(const std::string& directory,
                                           const Identity& identity,
                                           std::string* warning);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_MOUNT_H_
