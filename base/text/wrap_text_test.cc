#include "base/text/wrap_text.h"

#include <gtest/gtest.h>

#include <string>

namespace requant::wrap_text_test {
namespace {

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
}  // namespace requant::wrap_text_test
