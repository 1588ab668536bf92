#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace requant::json_test {
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

TEST(ValidUtf8, ReplacesOnlyWhatIsNot) {
  EXPECT_EQ(ValidUtf8("\xc3\xa9\xff\xc3"), "\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(JsonNumber, IsTheShortestThatReadsBack) {
  EXPECT_EQ(JsonNumber(0.1), "0.1");
  EXPECT_EQ(JsonNumber(-3), "-3");
  EXPECT_EQ(JsonNumber(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(JsonNumber(1e300), "1e+300");
}

TEST(JsonNumber, IsNullForWhatJsonCannotHold) {
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(JsonNumber(-std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonObject, QuotesNamesAndKeepsValues) {
  EXPECT_EQ(JsonObject({}), "{}");
  EXPECT_EQ(JsonObject({{"a\"", "1"}, {"b", "[2]"}}),
            R"({"a\"": 1, "b": [2]})");
}

TEST(JsonArray, KeepsValuesInOrder) {
  EXPECT_EQ(JsonArray({}), "[]");
  EXPECT_EQ(JsonArray({"2", "\"a\"", "{}"}), R"([2, "a", {}])");
}

TEST(IndentedJson, LeavesShortValuesOnOneLine) {
  EXPECT_EQ(IndentedJson("{\"a\": [1, 2]}"), "{\"a\": [1, 2]}\n");
}

TEST(IndentedJson, GivesMembersOfLongValuesALineEach) {
  const std::string text = JsonString(std::string(90, 'x'));
  EXPECT_EQ(
      IndentedJson(JsonObject({{"a", JsonArray({"1", text})}, {"b", "{}"}})),
      "{\n  \"a\": [\n    1,\n    " + text + "\n  ],\n  \"b\": {}\n}\n");
}

TEST(IndentedJson, HasNoLinesForEmptyValues) {
  const std::string name(110, 'x');
  EXPECT_EQ(IndentedJson(JsonObject({{name, "{}"}})),
            "{\n  \"" + name + "\": {}\n}\n");
}

TEST(IndentedJson, DoesNotBreakInsideTexts) {
  const std::string text =
      JsonString("a\", [1, 2], {\\" + std::string(90, 'x'));
  EXPECT_EQ(IndentedJson(JsonArray({text, "2"})),
            "[\n  " + text + ",\n  2\n]\n");
}

}  // namespace
}  // namespace requant::json_test
