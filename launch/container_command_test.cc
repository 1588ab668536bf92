#include "launch/container_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace requant::launch::container_command_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
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

// The words from `first` on.
std::vector<std::string> From(const std::vector<std::string>& words,
                              const std::string& first) {
  return {std::find(words.begin(), words.end(), first), words.end()};
}

TEST(ContainerCommand, IsSafeByDefault) {
  EXPECT_THAT(
      ContainerCommand(Usual()),
      ElementsAre(
          "/usr/bin/docker", "run", "--rm", "--init", "--pull=never",
          "--name=launch_quantization-1",
          "--label=requant.session=launch_quantization-1", "--interactive",
          "--network=none", "--hostname=quantization", "--user=1000:1001",
          "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
          "--memory=800", "--cpus=8", "--pids-limit=4096", "--mount",
          "type=bind,source=/home/me/model,target=/workspace/quantization",
          "--tmpfs",
          "/workspace/tensorflow:rw,exec,nosuid,nodev,mode=1777,size="
          "4294967296",
          "--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777,size=4294967296",
          "--workdir=/workspace/tensorflow", "--env", "HOME=/tmp",
          "quantization:latest"));
}

TEST(ContainerCommand, EndsWithTheImageAndTheCommand) {
  Session session = Usual();
  session.options.image = "other:1";
  session.options.command = {"requant", "run", "--out=a b"};
  EXPECT_THAT(From(ContainerCommand(session), "other:1"),
              ElementsAre("other:1", "requant", "run", "--out=a b"));
  session.options.command = {};
  session.options.test = true;
  EXPECT_THAT(From(ContainerCommand(session), "other:1"),
              ElementsAre("other:1", "requant-self-test"));
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
  EXPECT_THAT(words, Not(Contains("--read-only")));
  EXPECT_THAT(words, Not(Contains(testing::HasSubstr("no-new-privileges"))));
  EXPECT_THAT(words, Not(Contains(testing::StartsWith("--memory"))));
  EXPECT_THAT(words, Not(Contains(testing::StartsWith("--cpus"))));
}

TEST(ContainerCommand, PrivilegedDropsNothing) {
  Session session = Usual();
  session.options.privileged = true;
  const std::vector<std::string> words = ContainerCommand(session);
  EXPECT_THAT(words, Contains("--privileged"));
  EXPECT_THAT(words, Contains("--network=none"));
  EXPECT_THAT(words, Not(Contains("--cap-drop=ALL")));
}

TEST(ContainerCommand, RunsAsTheCaller) {
  Session session = Usual();
  session.groups = {50};
  EXPECT_THAT(ContainerCommand(session),
              IsSupersetOf({"--user=1000:1001", "--group-add=50"}));
}

TEST(ContainerCommand, SetsAVariableOnce) {
  Session session = Usual();
  session.options.environment = {"HOME=/x", "A"};
  const std::vector<std::string> words = ContainerCommand(session);
  EXPECT_THAT(words, IsSupersetOf({"HOME=/x", "A"}));
  EXPECT_THAT(words, Not(Contains("HOME=/tmp")));
}

TEST(ContainerCommand, KnowsNoLimitsOfAnUnknownMachine) {
  Session session = Usual();
  session.engine.cpus = 0;
  session.engine.memory_bytes = 0;
  EXPECT_THAT(ContainerCommand(session),
              Not(Contains(testing::StartsWith("--memory"))));
}

TEST(CommandText, IsForAShell) {
  EXPECT_EQ(CommandText({"docker", "run", "a b", "", "it's", "x=1"}),
            "docker run 'a b' '' 'it'\\''s' x=1");
}

}  // namespace
}  // namespace requant::launch::container_command_test
