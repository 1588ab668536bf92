#include "base/json.h"

#include <gtest/gtest.h>

namespace requant {
namespace {

TEST(JsonString, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(JsonString("a\"b\\c\n\x7f"), R"("a\"b\\c\u000a\u007f")");
}

TEST(JsonString, KeepsUtf8) {
  EXPECT_EQ(JsonString("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

TEST(JsonString, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(JsonString("a\xff"
                       "b"),
            R"("a\ufffdb")");
  EXPECT_EQ(JsonString("\xc3"), R"("\ufffd")");            // cut short
  EXPECT_EQ(JsonString("\xc0\xaf"), R"("\ufffd\ufffd")");  // overlong
  EXPECT_EQ(JsonString("\xed\xa0\x80"),
            R"("\ufffd\ufffd\ufffd")");  // surrogate
}

}  // namespace
}  // namespace requant
