#include <gtest/gtest.h>

#include <string>

#include "base/text/nearest_name.h"
#include "base/text/printable.h"

namespace requant::text_test {
namespace {

TEST(NearestName, FindsAMisspelling) {
  EXPECT_EQ(
      NearestName("fold_constant", {"fold_batch_norms", "fold_constants"}),
      "fold_constants");
}

TEST(NearestName, CountsASwapAsOneEdit) {
  EXPECT_EQ(NearestName("imn", {"max", "min"}), "min");
}

TEST(NearestName, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(NearestName("quantize", {"min", "max"}), "");
  EXPECT_EQ(DidYouMean("quantize", {}), "");
}

TEST(NearestName, TakesTheFirstOnATie) {
  EXPECT_EQ(NearestName("freeze_mxx", {"freeze_min", "freeze_max"}),
            "freeze_max");
  EXPECT_EQ(NearestName("abc", {"abd", "abe"}), "abd");
}

TEST(Printable, EscapesWhatATerminalMayObeyAndNothingElse) {
  EXPECT_EQ(Printable("a\x1b[1m\r\n\t\"gr\u00f6\u00dfe\" \\ \x7f\xff \u5c42"),
            "a\\x1b[1m\\x0d\\x0a\\x09\"gr\u00f6\u00dfe\" \\ \\x7f\\xff "
            "\u5c42");
  // These are a C1 control character, a change of direction, a line separator,
  // and invalid and overlong characters.
  EXPECT_EQ(Printable("\u009b2J\u202e\u2028"),
            "\\xc2\\x9b2J\\xe2\\x80\\xae\\xe2\\x80\\xa8");
  EXPECT_EQ(Printable("\xe5\xb1 \xc1\x81 \xed\xa0\x80"),
            "\\xe5\\xb1 \\xc1\\x81 \\xed\\xa0\\x80");
}

TEST(Printable, CutsLongWordsAndTextsInTheMiddle) {
  const std::string word(300, 'w');
  EXPECT_EQ(Printable("the " + word + " is"), "the " + word + " is");
  EXPECT_EQ(Printable("<" + std::string(1 << 20, 'w') + ">"),
            "<" + std::string(129, 'w') + "[... 1048318 bytes ...]" +
                std::string(129, 'w') + ">");
  std::string blanks;
  for (int i = 0; i < 1 << 19; ++i) blanks += "a ";
  EXPECT_LT(Printable(blanks).size(), 4000);
  // No character is cut.
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "\u5c42";
  EXPECT_EQ(Printable(wide).find("\\x"), std::string::npos);
}

TEST(Printable, LeavesWhatIsPrintable) {
  for (const std::string& text :
       {std::string(1 << 20, 'w'), std::string(1 << 20, '\x1b'),
        std::string("a\nb"), std::string(5000, ' ')}) {
    EXPECT_EQ(Printable(Printable(text)), Printable(text));
  }
}

TEST(PrintableLines, KeepsLineBreaksAndTabs) {
  const std::string word(5000, 'w');
  EXPECT_EQ(PrintableLines("a\tb\n\x1b[2J\r" + word),
            "a\tb\n\\x1b[2J\\x0d" + word);
}

TEST(ShellQuoted, LeavesPlainWordsAsTheyAre) {
  EXPECT_EQ(ShellQuoted("a/b-c_1.pb,d:0"), "a/b-c_1.pb,d:0");
  EXPECT_EQ(ShellQuoted(""), "");
}

TEST(ShellQuoted, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(ShellQuoted("my graph.pb"), "'my graph.pb'");
  EXPECT_EQ(ShellQuoted("*.tfrecords"), "'*.tfrecords'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
}

std::string Wrapped(std::string_view text, size_t indent) {
  std::string out = ">";
  AppendWrapped(text, indent, &out);
  return out;
}

TEST(AppendWrapped, BreaksAtEightyColumns) {
  const std::string word(25, 'w');
  EXPECT_EQ(Wrapped(word + "  " + word + " " + word + " w " + word, 2),
            ">  " + word + " " + word + " " + word + "\n  w " + word + "\n");
}

TEST(AppendWrapped, KeepsALongWordWhole) {
  const std::string word(100, 'w');
  EXPECT_EQ(Wrapped("a " + word + " b", 1), "> a\n " + word + "\n b\n");
}

TEST(AppendWrapped, NothingIsAnEmptyLine) { EXPECT_EQ(Wrapped("", 4), ">\n"); }

}  // namespace
}  // namespace requant::text_test
