#include "base/text/shell_quote.h"

#include <gtest/gtest.h>

namespace requant::shell_quote_test {
namespace {

TEST(ShellQuoted, LeavesPlainWordsAsTheyAre) {
  EXPECT_EQ(ShellQuoted("a/b-c_1.pb,d:0"), "a/b-c_1.pb,d:0");
  EXPECT_EQ(ShellQuoted(""), "");
}

TEST(ShellQuoted, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(ShellQuoted("my graph.pb"), "'my graph.pb'");
  EXPECT_EQ(ShellQuoted("*.tfrecords"), "'*.tfrecords'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace requant::shell_quote_test
