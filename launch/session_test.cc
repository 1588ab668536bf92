#include "launch/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace requant::launch::session_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

Session Usual() {
  Session session;
  session.engine.path = "/usr/bin/docker";
  session.engine.cpus = 8;
  session.engine.memory_bytes = 1000;
  session.user = {1000, 1001, {}};
  session.mounts = {{"/home/me/model", kModelTarget}};
  session.id = "launch_quantization-1";
  session.input = true;
  return session;
}

// tests/programs/launch_quantization_test.cc covers the whole command line.
TEST(ContainerCommand, EndsWithTheImageAndWhatRunsInIt) {
  Session session = Usual();
  session.options.image = "other:1";
  EXPECT_EQ(ContainerCommand(session).back(), "other:1");
  session.options.test = true;
  EXPECT_THAT(ContainerCommand(session), Contains("other:1"));
  EXPECT_EQ(ContainerCommand(session).back(), "requant-self-test");
}

TEST(ContainerCommand, AsksForATerminalOnlyWhenThereIsOne) {
  Session session = Usual();
  EXPECT_THAT(ContainerCommand(session), Not(Contains("--tty")));
  session.terminal = true;
  EXPECT_THAT(ContainerCommand(session), Contains("--tty"));
  session.terminal = session.input = false;
  EXPECT_THAT(ContainerCommand(session), Not(Contains("--interactive")));
}

TEST(ContainerCommand, IsRelaxedByFlags) {
  Session session = Usual();
  Options& options = session.options;
  options.network = "bridge";
  options.writable_root = true;
  options.allow_new_privileges = true;
  options.added_capabilities = {"SYS_PTRACE", "NET_RAW"};
  options.user = "root";
  options.memory_bytes = 0;
  options.cpus = 0;
  options.pids_limit = 0;
  const std::vector<std::string> words = ContainerCommand(session);
  EXPECT_THAT(words, IsSupersetOf({"--network=bridge", "--cap-drop=ALL",
                                   "--cap-add=SYS_PTRACE", "--cap-add=NET_RAW",
                                   "--user=root", "--pids-limit=-1"}));
  EXPECT_THAT(words, Not(Contains(testing::ContainsRegex(
                         "^--read-only|no-new-privileges|^--memory|^--cpus"))));
}

TEST(ContainerCommand, PrivilegedDropsNothing) {
  Session session = Usual();
  session.options.privileged = true;
  EXPECT_THAT(ContainerCommand(session),
              AllOf(IsSupersetOf({"--privileged", "--network=none"}),
                    Not(Contains("--cap-drop=ALL"))));
}

TEST(ContainerCommand, RunsAsTheCallerAndSetsAVariableOnce) {
  Session session = Usual();
  session.groups = {50};
  session.options.environment = {"HOME=/x", "A"};
  // An unknown machine has no default limits.
  session.engine = {};
  const std::vector<std::string> words = ContainerCommand(session);
  EXPECT_THAT(words, IsSupersetOf({"--user=1000:1001", "--group-add=50",
                                   "HOME=/x", "A"}));
  EXPECT_THAT(words, Not(Contains("HOME=/tmp")));
  EXPECT_THAT(words, Not(Contains(testing::StartsWith("--memory"))));
}

TEST(ExplainEnd, LeavesTheCommandsOwnCodesAlone) {
  Session session;
  session.options.command = {"x"};
  for (int code : {0, 1, 2, 3, 130, 143}) {
    EXPECT_EQ(ExplainEnd(session, {code}), "") << code;
  }
  EXPECT_EQ(ExplainEnd({}, {127}), "") << "a person's shell had that last";
  EXPECT_THAT(ExplainEnd(session, {126}), HasSubstr("x could not be started"));
  EXPECT_THAT(ExplainEnd(session, {127}), HasSubstr("x was not found in the"));
  EXPECT_THAT(ExplainEnd(session, {137}), HasSubstr("raise --memory"));
  EXPECT_EQ(ExplainEnd(session, {137, /*signal=*/15}), "");
  session.options.test = true;
  EXPECT_THAT(ExplainEnd(session, {127}),
              HasSubstr("is quantization:latest an image of Requant?"));
}

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
  // Docker's client prints this before its error on stderr.
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

TEST(Ask, GivesBothStreamsAndTheExitCode) {
  // The output exceeds a pipe's capacity, and standard input is empty.
  const Answer answer = Ask(
      {"/bin/sh", "-c",
       "cat; head -c 300000 /dev/zero; echo \"$0\" >&2; exit 3", "'\"$(x)\n"},
      60);
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_EQ(answer.out, std::string(300000, '\0'));
  EXPECT_EQ(answer.error, "'\"$(x)\n\n");
  EXPECT_FALSE(answer.timed_out);
  EXPECT_EQ(Ask({"/nonexistent"}, 60).exit_code, 127);
}

TEST(Ask, KillsAProgramThatDoesNotAnswer) {
  const Answer answer = Ask({"/bin/sleep", "1000"}, 0.05);
  EXPECT_TRUE(answer.timed_out);
  EXPECT_EQ(answer.exit_code, 128 + 9);
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
}  // namespace requant::launch::session_test
