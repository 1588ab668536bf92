#include "launch/identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "launch/quantity.h"

namespace requant::launch {
namespace {

std::optional<int64_t> NumberInEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : ParseCount(value);
}

}  // namespace

Identity CallingUser() {
  Identity identity{geteuid(), getegid(), {}};
  if (identity.uid == 0) {
    const std::optional<int64_t> uid = NumberInEnvironment("SUDO_UID");
    const std::optional<int64_t> gid = NumberInEnvironment("SUDO_GID");
    if (uid.has_value() && gid.has_value()) {
      identity.uid = *uid;
      identity.gid = *gid;
      return identity;
    }
  }
  const int count = getgroups(0, nullptr);
  if (count > 0) {
    identity.groups.resize(count);
    identity.groups.resize(
        std::max(0, getgroups(count, identity.groups.data())));
  }
  return identity;
}

bool ModeAllows(const struct stat& file, const Identity& identity, int bits) {
  int shift = 0;
  if (file.st_uid == identity.uid) {
    shift = 6;
  } else if (file.st_gid == identity.gid ||
             std::find(identity.groups.begin(), identity.groups.end(),
                       file.st_gid) != identity.groups.end()) {
    shift = 3;
  }
  return ((file.st_mode >> shift) & bits) == static_cast<mode_t>(bits);
}

}  // namespace requant::launch
