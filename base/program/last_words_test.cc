#include "base/program/last_words.h"

#include <gtest/gtest.h>

#include <string>

namespace requant::last_words_test {
namespace {

TEST(LastWords, FindsAFailedCheckBehindItsPlace) {
  std::string reason;
  EXPECT_TRUE(IsLastWord(
      "F0000 00:00:1 7 tensor.cc:12] Check failed: a == b (1 vs. 2)", &reason));
  EXPECT_EQ(reason, "Check failed: a == b (1 vs. 2)");
}

TEST(LastWords, FindsAFatalMessage) {
  std::string reason;
  EXPECT_TRUE(IsLastWord("F1116 main.cc:3] out of luck \n", &reason));
  EXPECT_EQ(reason, "out of luck");
}

TEST(LastWords, FindsAnUncaughtException) {
  std::string reason;
  EXPECT_TRUE(IsLastWord(
      "terminate called after throwing an instance of 'std::bad_alloc'",
      &reason));
  EXPECT_EQ(reason,
            "terminate called after throwing an instance of 'std::bad_alloc'");
}

TEST(LastWords, LeavesOtherLinesAlone) {
  std::string reason = "untouched";
  EXPECT_FALSE(IsLastWord("Fine so far", &reason));
  EXPECT_FALSE(IsLastWord("W1116 x.cc:1] Careful", &reason));
  EXPECT_EQ(reason, "untouched");
}

TEST(LastWords, KnowsWhatTensorFlowAlwaysSays) {
  EXPECT_TRUE(IsTensorFlowNoise(
      "I0000 port.cc:153] oneDNN custom operations are on. You may see"));
  EXPECT_FALSE(IsTensorFlowNoise(";node__print__;__min:[-1]"));
}

}  // namespace
}  // namespace requant::last_words_test
