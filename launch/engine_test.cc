#include "launch/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

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

TEST(ParseInfo, ReadsDockers) {
  const std::optional<Engine> engine =
      ParseInfo(EngineKind::kDocker,
                "20.10.24|2|25274793984|[name=seccomp,profile=default]\n");
  ASSERT_TRUE(engine.has_value());
  EXPECT_EQ(engine->version, "20.10.24");
  EXPECT_EQ(engine->cpus, 2);
  EXPECT_EQ(engine->memory_bytes, 25274793984);
  EXPECT_FALSE(engine->rootless || engine->remaps_users || engine->selinux);
  EXPECT_TRUE(engine->limits_memory && engine->limits_cpus);
}

TEST(ParseInfo, ReadsDockersSecurityOptions) {
  EXPECT_TRUE(
      ParseInfo(EngineKind::kDocker, "1|1|1|[name=rootless]")->rootless);
  EXPECT_TRUE(
      ParseInfo(EngineKind::kDocker, "1|1|1|[name=userns]")->remaps_users);
  EXPECT_TRUE(ParseInfo(EngineKind::kDocker, "1|1|1|[name=selinux]")->selinux);
}

// So Docker's client prints it, before its complaint on stderr.
TEST(ParseInfo, KnowsAnEngineThatDoesNotAnswer) {
  EXPECT_FALSE(ParseInfo(EngineKind::kDocker, "|0|0|[]\n").has_value());
  EXPECT_FALSE(ParseInfo(EngineKind::kDocker, "").has_value());
  EXPECT_FALSE(ParseInfo(EngineKind::kPodman, "4.3.1|2").has_value());
}

TEST(ParseInfo, ReadsPodmansAndWhichLimitsItCanKeep) {
  const std::optional<Engine> root = ParseInfo(
      EngineKind::kPodman,
      "4.3.1|2|1024|rootless=false selinux=true|[cpuset cpu memory pids]\n");
  ASSERT_TRUE(root.has_value());
  EXPECT_TRUE(root->selinux);
  EXPECT_FALSE(root->rootless);
  EXPECT_TRUE(root->limits_memory && root->limits_cpus && root->limits_pids);
  const std::optional<Engine> user =
      ParseInfo(EngineKind::kPodman,
                "4.3.1|2|1024|rootless=true selinux=false|[memory pids]\n");
  ASSERT_TRUE(user.has_value());
  EXPECT_TRUE(user->rootless);
  EXPECT_TRUE(user->limits_memory && user->limits_pids);
  EXPECT_FALSE(user->limits_cpus);
  EXPECT_FALSE(ParseInfo(EngineKind::kPodman,
                         "4.3.1|2|1|rootless=true selinux=false|[cpuset]")
                   ->limits_cpus);
}

TEST(ExplainSilence, KnowsTheThreeUsualReasons) {
  unsetenv("DOCKER_HOST");
  EXPECT_THAT(ExplainSilence(
                  EngineKind::kDocker,
                  Said("Cannot connect to the Docker daemon at unix:///var/run/"
                       "docker.sock. Is the docker daemon running?"))
                  .message,
              HasSubstr("start it (sudo systemctl start docker)"));
  EXPECT_THAT(ExplainSilence(
                  EngineKind::kDocker,
                  Said("permission denied while trying to connect to the "
                       "Docker daemon socket at unix:///var/run/docker.sock"))
                  .message,
              HasSubstr("usermod -aG docker"));
  Answer slow;
  slow.timed_out = true;
  EXPECT_THAT(ExplainSilence(EngineKind::kDocker, slow).message,
              HasSubstr("does not answer"));
}

TEST(ExplainSilence, NamesDockerHost) {
  setenv("DOCKER_HOST", "tcp://example:2375", 1);
  EXPECT_THAT(ExplainSilence(EngineKind::kDocker,
                             Said("Cannot connect to the Docker daemon at tcp"))
                  .message,
              HasSubstr("DOCKER_HOST=tcp://example:2375"));
  unsetenv("DOCKER_HOST");
}

TEST(ExplainSilence, PassesOtherReasonsOn) {
  EXPECT_EQ(ExplainSilence(EngineKind::kPodman,
                           Said("time=... level=warning\nError: broken\n\n"))
                .message,
            "Podman does not work here: Error: broken");
  EXPECT_EQ(ExplainSilence(EngineKind::kPodman, Said("")).message,
            "Podman does not work here: no message");
}

TEST(ExplainMissingImage, OffersToBuildIt) {
  for (const char* error :
       {"Error response from daemon: no such image: x: No such image: x:latest",
        "Error: No such image: x",
        "Error: inspecting object: x: image not known"}) {
    EXPECT_THAT(
        ExplainMissingImage(EngineKind::kDocker, "x:latest", Said(error))
            .message,
        HasSubstr("has no image x:latest: build it with docker/build"));
  }
  EXPECT_THAT(
      ExplainMissingImage(EngineKind::kPodman, "X", Said("invalid reference"))
          .message,
      HasSubstr("not a valid image name"));
  EXPECT_THAT(
      ExplainMissingImage(EngineKind::kPodman, "x", Said("disk error")).message,
      HasSubstr("cannot look at image x: disk error"));
}

}  // namespace
}  // namespace requant::launch::engine_test
