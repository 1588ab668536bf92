#include "launch/child.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace requant::launch::child_test {
namespace {

constexpr double kLong = 60;

TEST(Ask, GivesBothStreamsAndTheExitCode) {
  const Answer answer =
      Ask({"/bin/sh", "-c", "echo out; echo error >&2; exit 3"}, kLong);
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_EQ(answer.out, "out\n");
  EXPECT_EQ(answer.error, "error\n");
  EXPECT_FALSE(answer.timed_out);
}

TEST(Ask, PassesArgumentsAsTheyAre) {
  EXPECT_EQ(
      Ask({"/usr/bin/printf", "%s|", "a b", "", "$(x)", "'\"\n"}, kLong).out,
      "a b||$(x)|'\"\n|");
}

TEST(Ask, LetsTheProgramReadNothing) {
  EXPECT_EQ(Ask({"/bin/cat"}, kLong).exit_code, 0);
}

TEST(Ask, ReadsMoreThanAPipeHolds) {
  const Answer answer =
      Ask({"/bin/sh", "-c",
           "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"},
          kLong);
  EXPECT_EQ(answer.out.size(), 300000);
  EXPECT_EQ(answer.error.size(), 300000);
}

TEST(Ask, KillsAProgramThatDoesNotAnswer) {
  const Answer answer = Ask({"/bin/sleep", "1000"}, 0.05);
  EXPECT_TRUE(answer.timed_out);
  EXPECT_EQ(answer.exit_code, 128 + 9);
}

TEST(Ask, SaysThatThereIsNoSuchProgram) {
  EXPECT_EQ(Ask({"/nonexistent"}, kLong).exit_code, 127);
}

TEST(FindOnPath, FindsTheFirstExecutableFile) {
  namespace fs = std::filesystem;
  const std::string base = testing::TempDir() + "/find_on_path";
  for (const char* folder : {"/a/tool", "/b", "/c"}) {
    fs::create_directories(base + folder);
  }
  std::ofstream(base + "/b/tool") << "not executable";
  std::ofstream(base + "/c/tool") << "#!/bin/sh\n";
  chmod((base + "/b/tool").c_str(), 0644);
  chmod((base + "/c/tool").c_str(), 0755);
  const std::string path =
      base + "/none::" + base + "/a:" + base + "/b:" + base + "/c";
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(FindOnPath("tool"), base + "/c/tool");
  EXPECT_EQ(FindOnPath("other"), "");
}

}  // namespace
}  // namespace requant::launch::child_test
