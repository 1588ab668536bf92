#include "logs_parser/escape_stripper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace requant::escape_stripper_test {
namespace {

// The text left when it comes in pieces of `piece` bytes.
std::string Strip(std::string text, size_t piece = 1000) {
  EscapeStripper stripper;
  std::string left;
  for (size_t i = 0; i < text.size(); i += piece) {
    const size_t size = std::min(piece, text.size() - i);
    left.append(text, i, stripper.Strip(&text[i], size));
  }
  return left;
}

TEST(EscapeStripper, KeepsTextWithoutEscapes) {
  EXPECT_EQ(Strip("[1;31m a\r\n\tb\x80"), "[1;31m a\r\n\tb\x80");
}

TEST(EscapeStripper, RemovesColours) {
  EXPECT_EQ(Strip("a\x1b[01;31m\x1b[Kb\x1b[m\x1b[Kc"), "abc");
}

TEST(EscapeStripper, RemovesTitlesAndLinks) {
  EXPECT_EQ(Strip("a\x1b]0;title\x07z"), "az");
  EXPECT_EQ(Strip("a\x1b]8;;http://x\x1b\\z"), "az");
}

TEST(EscapeStripper, RemovesCharacterSetsAndSingleEscapes) {
  EXPECT_EQ(Strip("a\x1b(Bb\x1b=c\x1b"
                  "7d"),
            "abcd");
}

TEST(EscapeStripper, EndsABrokenSequenceAtTheLineBreak) {
  EXPECT_EQ(Strip("a\x1b[01;\nb\x1b]0;title\nc\x1b\nd"), "a\nb\nc\nd");
}

TEST(EscapeStripper, KeepsAByteThatNoSequenceCanHave) {
  EXPECT_EQ(Strip("a\x1b[1\x80z"), "a\x80z");
}

TEST(EscapeStripper, StartsAnewAtAnEscapeInsideASequence) {
  EXPECT_EQ(Strip("a\x1b[01\x1b[0mz"), "az");
}

TEST(EscapeStripper, JoinsSequencesSpreadOverPieces) {
  const std::string text =
      "a\x1b[01;31mb\x1b]8;;x\x1b\\c\x1b(Bd\n\x1b[\ne\x1b]t\x07"
      "f";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    EXPECT_EQ(Strip(text, piece), "abcd\n\nef") << "pieces of " << piece;
  }
}

}  // namespace
}  // namespace requant::escape_stripper_test
