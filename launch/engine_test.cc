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

TEST(ParseInfo, ReadsVersionAndSizeOfTheMachine) {
  const std::optional<Engine> engine = ParseInfo("20.10.24|2|25274793984\n");
  ASSERT_TRUE(engine.has_value());
  EXPECT_EQ(engine->version, "20.10.24");
  EXPECT_EQ(engine->cpus, 2);
  EXPECT_EQ(engine->memory_bytes, 25274793984);
}

// Docker's client prints this before its complaint on stderr.
TEST(ParseInfo, KnowsAnEngineThatDoesNotAnswer) {
  EXPECT_FALSE(ParseInfo("|0|0\n").has_value());
  EXPECT_FALSE(ParseInfo("").has_value());
  EXPECT_FALSE(ParseInfo("20.10.24|2").has_value());
}

TEST(ExplainSilence, KnowsTheThreeUsualReasons) {
  unsetenv("DOCKER_HOST");
  EXPECT_THAT(ExplainSilence(
                  Said("Cannot connect to the Docker daemon at unix:///var/run/"
                       "docker.sock. Is the docker daemon running?"))
                  .message,
              HasSubstr("start it (sudo systemctl start docker)"));
  EXPECT_THAT(ExplainSilence(
                  Said("permission denied while trying to connect to the "
                       "Docker daemon socket at unix:///var/run/docker.sock"))
                  .message,
              HasSubstr("usermod -aG docker"));
  Answer slow;
  slow.timed_out = true;
  EXPECT_THAT(ExplainSilence(slow).message, HasSubstr("does not answer"));
}

TEST(ExplainSilence, NamesDockerHost) {
  setenv("DOCKER_HOST", "tcp://example:2375", 1);
  EXPECT_THAT(ExplainSilence(Said("Cannot connect to the Docker daemon at tcp"))
                  .message,
              HasSubstr("DOCKER_HOST=tcp://example:2375"));
  unsetenv("DOCKER_HOST");
}

TEST(ExplainSilence, PassesOtherReasonsOn) {
  EXPECT_EQ(
      ExplainSilence(Said("time=... level=warning\nError: broken\n\n")).message,
      "Docker does not work here: Error: broken");
  EXPECT_EQ(ExplainSilence(Said("")).message,
            "Docker does not work here: no message");
}

TEST(ExplainMissingImage, OffersToBuildIt) {
  for (const char* error :
       {"Error response from daemon: no such image: x: No such image: x:latest",
        "Error: No such image: x"}) {
    EXPECT_THAT(ExplainMissingImage("x:latest", Said(error)).message,
                HasSubstr("has no image x:latest: build it with docker/build"));
  }
  EXPECT_THAT(ExplainMissingImage("X", Said("invalid reference")).message,
              HasSubstr("not a valid image name"));
  EXPECT_THAT(ExplainMissingImage("x", Said("disk error")).message,
              HasSubstr("cannot look at image x: disk error"));
}

}  // namespace
}  // namespace requant::launch::engine_test
