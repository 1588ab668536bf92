#include "base/terminal/terminal_block.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "base/testing/fake_terminal.h"

namespace requant::terminal_block_test {
namespace {

TEST(TerminalBlock, RewritesItselfInOneWrite) {
  FakeTerminal terminal(40, 10);
  TerminalBlock block(terminal.Environment(), false);
  terminal.Write("$ requant run\n");
  block.Show({}, {{{"one"}}, {{"a longer line"}}});
  block.Show({}, {{{"two"}}, {{"short"}}});
  EXPECT_EQ(terminal.Text(), "$ requant run\ntwo\nshort\n");
  EXPECT_EQ(terminal.writes(), 2);
}

TEST(TerminalBlock, LetsLinesScrollUpAboveIt) {
  FakeTerminal terminal(20, 4);
  TerminalBlock block(terminal.Environment(), false);
  block.Show({}, {{{"running"}}, {{"waiting"}}});
  block.Show({{{"a warning that is wider than the terminal"}}},
             {{{"running"}}, {{"waiting"}}});
  block.Show({{{"done"}}}, {{{"running"}}});
  EXPECT_EQ(terminal.Text(),
            "a warning that is wi\n"
            "der than the termina\n"
            "l\n"
            "done\n"
            "running\n");
}

TEST(TerminalBlock, WipesAwayWhatTheTerminalEchoes) {
  FakeTerminal terminal(20, 4);
  TerminalBlock block(terminal.Environment(), false);
  block.Show({}, {{{"running"}}});
  terminal.Write("^C");
  block.Show({}, {{{"stopping"}}});
  EXPECT_EQ(terminal.Text(), "stopping\n");
}

TEST(TerminalBlock, StartsAnewBelowTheShellsLinesAfterAPause) {
  FakeTerminal terminal(20, 10);
  TerminalBlock block(terminal.Environment(), false);
  block.Show({}, {{{"running"}}, {{"waiting"}}});
  terminal.Write("^Z\n[1]+ Stopped\n$ fg\n");
  ++terminal.pauses;
  block.Show({}, {{{"running"}}, {{"waiting"}}});
  block.Show({}, {{{"done"}}, {{"running"}}});
  EXPECT_EQ(terminal.Text(),
            "running\nwaiting\n^Z\n[1]+ Stopped\n$ fg\ndone\nrunning\n");
}

TEST(TerminalBlock, LeavesNothingBehindWhenTheTerminalNarrows) {
  FakeTerminal terminal(30, 10);
  TerminalBlock block(terminal.Environment(), false);
  terminal.Write("$ requant run\n");
  block.Show({}, {{{"a line of almost thirty column"}}, {{"b"}}});
  terminal.Resize(14, 10);
  EXPECT_EQ(terminal.Text(),
            "$ requant run\na line of almo\nst thirty colu\nm\nb\n");
  block.Show({}, {{{"a line of almost thirty column"}}, {{"b"}}});
  EXPECT_EQ(terminal.Text(), "$ requant run\na line of alm\nb\n");
}

TEST(TerminalBlock, WritesNothingWhenNothingChanged) {
  FakeTerminal terminal(30, 10);
  TerminalBlock block(terminal.Environment(), false);
  for (int i = 0; i < 5; ++i) block.Show({}, {{{"same"}}});
  EXPECT_EQ(terminal.writes(), 1);
}

TEST(TerminalBlock, NeitherHidesTheCursorNorClearsTheScreen) {
  FakeTerminal terminal(30, 10);
  TerminalBlock block(terminal.Environment(), true);
  block.Show({{{"x", Style::kBad}}}, {{{"y", Style::kGood}}});
  block.Show({}, {});
  EXPECT_FALSE(absl::StrContains(terminal.raw(), "?25l"));
  EXPECT_FALSE(absl::StrContains(terminal.raw(), "2J"));
  EXPECT_EQ(terminal.Text(), "x\n");
}

}  // namespace
}  // namespace requant::terminal_block_test
