#include "base/terminal/styled_text.h"

#include <gtest/gtest.h>

namespace requant::styled_text_test {
namespace {

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

}  // namespace
}  // namespace requant::styled_text_test
