#include "launch/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

namespace requant::launch::engine_test {
namespace {

using testing::HasSubstr;

Answer Said(const std::string& error) {
  Answer answer;
  answer.exit_code = 1;
  answer.error = error;
  return answer;
}

TEST(ParseInfo, ReadsVersionAndSizeOfTheMachine) {
  const std::optional<Engine> engine = ParseInfo("20.10.24|2|25274793984\n");
  ASSERT_TRUE(engine.has_value());
  EXPECT_EQ(engine->version, "20.10.24");
  EXPECT_EQ(engine->cpus, 2);
  EXPECT_EQ(engine->memory_bytes, 25274793984);
  // Docker's client prints this before its complaint on stderr.
  EXPECT_FALSE(ParseInfo("|0|0\n").has_value());
  EXPECT_FALSE(ParseInfo("").has_value());
  EXPECT_FALSE(ParseInfo("20.10.24|2").has_value());
}

TEST(ExplainSilence, KnowsTheUsualReasons) {
  Answer slow;
  slow.timed_out = true;
  EXPECT_THAT(ExplainSilence(slow).message, HasSubstr("does not answer"));
  const std::map<std::string, std::string> sentences = {
      {"", "Docker does not work here: no message"},
      {"first line\nsomething else\n",
       "Docker does not work here: something else"},
      {"Is the docker daemon running?", "Docker is not running: start"},
      {"permission denied while trying to connect",
       "no permission to use Docker"}};
  for (const auto& [error, sentence] : sentences) {
    EXPECT_THAT(ExplainSilence(Said(error)).message, HasSubstr(sentence));
  }
  setenv("DOCKER_HOST", "tcp://example:2375", 1);
  EXPECT_THAT(ExplainSilence(Said("Cannot connect to the Docker daemon at tcp"))
                  .message,
              HasSubstr("DOCKER_HOST=tcp://example:2375"));
  unsetenv("DOCKER_HOST");
}

TEST(ExplainMissingImage, KnowsAWrongNameAndPassesOtherReasonsOn) {
  EXPECT_THAT(
      ExplainMissingImage("x:latest", Said("Error response from daemon: no "
                                           "such image: x: No such image"))
          .message,
      HasSubstr("has no image x:latest: build it with docker/build"));
  EXPECT_THAT(ExplainMissingImage("X", Said("invalid reference")).message,
              HasSubstr("not a valid image name"));
  EXPECT_THAT(ExplainMissingImage("x", Said("disk error")).message,
              HasSubstr("cannot look at image x: disk error"));
}

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
}  // namespace requant::launch::engine_test
