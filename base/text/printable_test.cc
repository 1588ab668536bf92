#include "base/text/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace requant::printable_test {
namespace {

TEST(Printable, EscapesWhatATerminalMayObeyAndNothingElse) {
  EXPECT_EQ(Printable("a\x1b[1m\r\n\t\"gr\u00f6\u00dfe\" \\ \x7f\xff \u5c42"),
            "a\\x1b[1m\\x0d\\x0a\\x09\"gr\u00f6\u00dfe\" \\ \\x7f\\xff "
            "\u5c42");
  // The second block of control characters, a turned direction, a line
  // separator, and characters that are broken or written too long.
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
  // No character is torn.
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

}  // namespace
}  // namespace requant::printable_test
