#include "launch/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace requant::launch::supervisor_test {
namespace {

using testing::HasSubstr;

std::string Explained(int exit_code, const std::vector<std::string>& command,
                      int signal = 0) {
  Session session;
  session.options.command = command;
  SessionEnd end;
  end.exit_code = exit_code;
  end.signal = signal;
  return ExplainEnd(session, end);
}

TEST(ExplainEnd, KnowsTheEnginesOwnCodes) {
  EXPECT_THAT(Explained(125, {}), HasSubstr("did not start the container"));
  EXPECT_THAT(Explained(126, {"x"}), HasSubstr("could not be started"));
  EXPECT_THAT(Explained(127, {"x y"}), HasSubstr("'x y' was not found"));
  EXPECT_THAT(Explained(137, {"x"}), HasSubstr("raise --memory"));
}

TEST(ExplainEnd, LeavesTheCommandsOwnCodesAlone) {
  for (int code : {0, 1, 2, 3, 130, 143}) {
    EXPECT_EQ(Explained(code, {"x"}), "") << code;
  }
  EXPECT_EQ(Explained(137, {"x"}, 15), "");
}

TEST(ExplainEnd, LeavesShellsThatPeopleEndedAlone) {
  EXPECT_EQ(Explained(127, {}), "");
}

TEST(ExplainEnd, AsksForTheImageWhenItHasNoSelfTest) {
  Session session;
  session.options.test = true;
  SessionEnd end;
  end.exit_code = 127;
  EXPECT_THAT(ExplainEnd(session, end),
              HasSubstr("is quantization:latest an image of Requant?"));
}

}  // namespace
}  // namespace requant::launch::supervisor_test
