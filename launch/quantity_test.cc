#include "launch/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace requant::launch::quantity_test {
namespace {

TEST(ParseBytes, TakesUnitsInEitherCase) {
  EXPECT_EQ(ParseBytes("1048576"), 1048576);
  EXPECT_EQ(ParseBytes("0"), 0);
  EXPECT_EQ(ParseBytes("512b"), 512);
  EXPECT_EQ(ParseBytes("2k"), 2048);
  EXPECT_EQ(ParseBytes("512M"), 512 << 20);
  EXPECT_EQ(ParseBytes("1.5g"), int64_t{3} << 29);
  EXPECT_EQ(ParseBytes("6GB"), int64_t{6} << 30);
  EXPECT_EQ(ParseBytes("1t"), int64_t{1} << 40);
  EXPECT_EQ(ParseBytes("25274793984"), 25274793984);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text :
       {"", "g", "b", "-1g", "1x", "1gg", "1 g", " 1g", "1e9", "0x10", "1.g",
        ".5g", "1,5g", "nan", "inf", "99999999999999999999", "999999999t"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

TEST(ParseDecimal, TakesPlainNumbersOnly) {
  EXPECT_EQ(ParseDecimal("2"), 2.0);
  EXPECT_EQ(ParseDecimal("2.5"), 2.5);
  EXPECT_EQ(ParseDecimal("0.01"), 0.01);
  for (const char* text : {"", ".", "2.", ".5", "-1", "1e3", "nan", "1.2.3",
                           "0x1", "2 ", "12345678901"}) {
    EXPECT_EQ(ParseDecimal(text), std::nullopt) << text;
  }
}

TEST(ParseCount, TakesDigitsOnly) {
  EXPECT_EQ(ParseCount("0"), 0);
  EXPECT_EQ(ParseCount("4096"), 4096);
  for (const char* text : {"", "-1", "+1", "1.0", "1k", "99999999999"}) {
    EXPECT_EQ(ParseCount(text), std::nullopt) << text;
  }
}

TEST(FormatBytes, ShowsGigabytesOrMegabytes) {
  EXPECT_EQ(FormatBytes(int64_t{3} << 29), "1.5 GB");
  EXPECT_EQ(FormatBytes(800 << 20), "800 MB");
  EXPECT_EQ(FormatBytes(0), "0 MB");
}

}  // namespace
}  // namespace requant::launch::quantity_test
