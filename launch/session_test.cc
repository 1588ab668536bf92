#include "launch/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// tests/programs/launch_quantization_test.cc has the whole command line.
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
  // The limits of an unknown machine are unknown.
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

}  // namespace
}  // namespace requant::launch::session_test
