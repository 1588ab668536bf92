#include "runtime/session/job_flags.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace requant::job_flags_test
