#include "runtime/session/job_flags.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>

DECLARE_string(memory_limit);
DECLARE_double(stall_timeout);

namespace requant::job_flags_test {
namespace {

TEST(ParseBytes, KnowsDecimalAndBinaryUnits) {
  EXPECT_EQ(*ParseBytes("1000000"), 1'000'000);
  EXPECT_EQ(*ParseBytes("8G"), 8'000'000'000);
  EXPECT_EQ(*ParseBytes("512MB"), 512'000'000);
  EXPECT_EQ(*ParseBytes("1.5GiB"), 1'610'612'736);
  EXPECT_EQ(*ParseBytes(" 2 ki "), 2048);
}

TEST(ParseBytes, RefusesWhatIsNoAmount) {
  for (const char* text : {"", "G", "-1G", "0", "8X", "8Gi8", "i", "nan", "inf",
                           "1e30", "8 G B"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(SetLimitsFromFlags, NamesTheFlagThatIsWrong) {
  gflags::FlagSaver saver;
  FLAGS_memory_limit = "lots";
  IsolationOptions isolation;
  EXPECT_EQ(SetLimitsFromFlags(&isolation).message(),
            "--memory_limit: \"lots\" is no amount of memory; write 8G or "
            "512M");
  FLAGS_memory_limit = "";
  FLAGS_stall_timeout = -1;
  EXPECT_FALSE(SetLimitsFromFlags(&isolation).ok());
}

}  // namespace
}  // namespace requant::job_flags_test
