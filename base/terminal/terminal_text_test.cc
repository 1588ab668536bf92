#include "base/terminal/terminal_text.h"

#include <cstdlib>

#include "base/testing/testing.h"

namespace requant::terminal_text_test {
namespace {

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("\u00e4\u2713"), 2);
  EXPECT_EQ(DisplayWidth("\u5c42\U0001f600"), 4);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);
  EXPECT_EQ(DisplayWidth("\xff\xe2\x9c"), 3);
}

TEST(CutToWidth, CutsNoCharacterInTwo) {
  EXPECT_EQ(CutToWidth("a\u5c42b", 2), "a");
  EXPECT_EQ(CutToWidth("a\u5c42b", 3), "a\u5c42");
  EXPECT_EQ(CutToWidth("e\u0301x", 1), "e\u0301");
  EXPECT_EQ(CutToWidth("abc", 0), "");
  EXPECT_EQ(CutToWidth("abc", -1), "");
}

TEST(Shortened, MarksOnlyWhatWasCut) {
  EXPECT_EQ(Shortened("quantize", 8, "~"), "quantize");
  EXPECT_EQ(Shortened("quantize", 5, "~"), "quan~");
  EXPECT_EQ(Shortened("quantize", 0, "~"), "");
}

TEST(Padded, CountsColumns) {
  EXPECT_EQ(PaddedRight("\u5c42", 4), "\u5c42  ");
  EXPECT_EQ(PaddedLeft("\u00e4", 3), "  \u00e4");
  EXPECT_EQ(PaddedLeft("abc", 2), "abc");
}

TEST(PrintableLine, LetsNothingMoveTheCursor) {
  EXPECT_EQ(PrintableLine("a\nb\x1b[2J\u009b\u202e\xff\u00e4", true),
            "a b [2J  ?\u00e4");
  EXPECT_EQ(PrintableLine("a\u00e4", false), "a?");
}

TEST(PrintableLine, TakesNoOverlongFormOrSurrogate) {
  EXPECT_EQ(PrintableLine("\xc0\x9b\xe0\x80\x9b\xed\xa0\x80", true),
            "????????");
}

TEST(LocaleIsUtf8, TakesTheFirstVariableThatIsSet) {
  setenv("LC_ALL", "", 1);
  setenv("LC_CTYPE", "de_DE.utf8", 1);
  setenv("LANG", "C", 1);
  EXPECT_TRUE(LocaleIsUtf8());
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(LocaleIsUtf8());
}

TEST(ColorIsWelcome, UnlessTheEnvironmentSaysNo) {
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(ColorIsWelcome());
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(ColorIsWelcome());
  setenv("NO_COLOR", "", 1);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(ColorIsWelcome());
}

TEST(Render, ColoursTextButNoBlanks) {
  const StyledLine line = {{"ok  ", Style::kGood}, {"  "}, {"x "}, {"  "}};
  EXPECT_EQ(Render(line, 80, true).text, "\x1b[32mok\x1b[0m    x");
  EXPECT_EQ(Render(line, 80, false).text, "ok    x");
  EXPECT_EQ(Render(line, 80, true).width, 7);
}

TEST(Render, CutsByColumns) {
  const StyledLine line = {{"a\u5c42", Style::kBad}, {"b"}};
  EXPECT_EQ(Render(line, 3, true).text, "\x1b[31ma\u5c42\x1b[0m");
  EXPECT_EQ(Render(line, 2, true).text, "\x1b[31ma\x1b[0m");
  EXPECT_EQ(Render(line, 2, true).width, 1);
  EXPECT_EQ(Render(line, 0, true).text, "");
}

Table Fruits() {
  Table table;
  table.AddColumn("name", Table::kAlways, /*left=*/true);
  table.AddColumn("count", 2);
  table.AddColumn("price", 1);
  table.AddColumn("note", 3);
  table.AddRow({{"apple"}, {"12"}, {"0.25"}, {""}});
  table.AddRow({{"kumquat"}, {"7"}, {""}, {""}});
  return table;
}

TEST(Table, HasAColumnForWhatHasText) {
  EXPECT_EQ(Fruits().Text(0, false),
            "name     count  price\n"
            "apple       12   0.25\n"
            "kumquat      7\n");
}

TEST(Table, LeavesTheLeastImportantColumnsOutFirst) {
  EXPECT_EQ(Fruits().Text(21, false), Fruits().Text(0, false));
  EXPECT_EQ(Fruits().Text(20, false),
            "name     count\n"
            "apple       12\n"
            "kumquat      7\n");
}

TEST(Table, CutsNoCellHoweverNarrowTheTerminal) {
  EXPECT_EQ(Fruits().Text(3, false), "name\napple\nkumquat\n");
}

TEST(Table, ColoursCellsWhenAsked) {
  Table table;
  table.AddColumn("verdict", Table::kAlways);
  table.AddRow({{"FAIL", Style::kBad}});
  EXPECT_EQ(table.Text(0, false), "verdict\n   FAIL\n");
  EXPECT_THAT(table.Text(0, true), HasSubstr("\x1b[31m"));
}

}  // namespace
}  // namespace requant::terminal_text_test
