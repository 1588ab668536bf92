#ifndef REQUANT_LAUNCH_IDENTITY_H_
#define REQUANT_LAUNCH_IDENTITY_H_

// Whose files the container's results are.

#include <sys/stat.h>
#include <sys/types.h>

#include <vector>

namespace requant::launch {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  // Supplementary groups.
  std::vector<gid_t> groups;
};

// The user who called: under sudo the one who called sudo.
Identity CallingUser();

// Whether a file's mode lets `identity` do all of `bits` (4 read, 2 write, 1
// search). Root gets no special treatment: in the container it has no
// capabilities.
bool ModeAllows(const struct stat& file, const Identity& identity, int bits);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_IDENTITY_H_
