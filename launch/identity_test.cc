#include "launch/identity.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace requant::launch::identity_test {
namespace {

struct stat File(mode_t mode, uid_t uid, gid_t gid) {
  struct stat file = {};
  file.st_mode = mode;
  file.st_uid = uid;
  file.st_gid = gid;
  return file;
}

TEST(ModeAllows, LooksAtTheOwnersBitsOnlyForTheOwner) {
  const Identity owner{1000, 1000, {}};
  EXPECT_TRUE(ModeAllows(File(0700, 1000, 1000), owner, 7));
  EXPECT_FALSE(ModeAllows(File(0500, 1000, 1000), owner, 2));
  EXPECT_FALSE(ModeAllows(File(0077, 1000, 1000), owner, 4));
}

TEST(ModeAllows, LooksAtTheGroupsBitsForMembers) {
  const Identity member{1000, 1000, {27, 50}};
  EXPECT_TRUE(ModeAllows(File(0070, 0, 50), member, 7));
  EXPECT_TRUE(ModeAllows(File(0070, 0, 1000), member, 7));
  EXPECT_FALSE(ModeAllows(File(0707, 0, 50), member, 4));
  EXPECT_FALSE(ModeAllows(File(0070, 0, 51), member, 4));
}

// The container's root has no capabilities.
TEST(ModeAllows, HasNoExceptionForRoot) {
  EXPECT_FALSE(ModeAllows(File(0755, 1000, 1000), {0, 0, {}}, 2));
}

TEST(CallingUser, IsWhoCalledSudo) {
  unsetenv("SUDO_UID");
  unsetenv("SUDO_GID");
  EXPECT_EQ(CallingUser().uid, geteuid());
  EXPECT_EQ(CallingUser().gid, getegid());
  setenv("SUDO_UID", "1234", 1);
  setenv("SUDO_GID", "5678", 1);
  // Anyone can set the variables; they count for root only.
  EXPECT_EQ(CallingUser().uid, geteuid() == 0 ? 1234 : geteuid());
  EXPECT_EQ(CallingUser().gid, geteuid() == 0 ? 5678 : getegid());
  setenv("SUDO_UID", "nobody", 1);
  EXPECT_EQ(CallingUser().uid, geteuid());
}

}  // namespace
}  // namespace requant::launch::identity_test
