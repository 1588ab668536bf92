#include "base/terminal/progress.h"

#include "base/testing/fake_terminal.h"
#include "base/testing/testing.h"

namespace requant::progress_test {
namespace {

// Provides a clock, a width and a stream that the test controls.
class ProgressTest : public testing::Test {
 protected:
  ProgressEnvironment Environment(bool is_terminal) {
    ProgressEnvironment environment;
    environment.is_terminal = is_terminal;
    environment.now = [this] { return now_; };
    environment.time_of_day = [] { return "12:34:56"; };
    environment.columns = [this] { return columns_; };
    environment.write = [this](std::string_view text) {
      writes_.emplace_back(text);
    };
    return environment;
  }

  double now_ = 100;
  int columns_ = 80;
  std::vector<std::string> writes_;
};

TEST(HumanCount, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(HumanCount(0), "0");
  EXPECT_EQ(HumanCount(999), "999");
  EXPECT_EQ(HumanCount(1000), "1k");
  EXPECT_EQ(HumanCount(1234), "1.23k");
  EXPECT_EQ(HumanCount(12345), "12.3k");
  EXPECT_EQ(HumanCount(312400), "312k");
  EXPECT_EQ(HumanCount(2000000), "2M");
  EXPECT_EQ(HumanCount(INT64_MAX), "9.22E");
}

TEST(HumanCount, RoundsUpIntoTheNextUnit) {
  EXPECT_EQ(HumanCount(9999), "10.0k");
  EXPECT_EQ(HumanCount(99960), "100k");
  EXPECT_EQ(HumanCount(999499), "999k");
  EXPECT_EQ(HumanCount(999500), "1.00M");
}

TEST(HumanRate, HasDecimalsWhenSmall) {
  EXPECT_EQ(HumanRate(0), "0.00");
  EXPECT_EQ(HumanRate(3.251), "3.25");
  EXPECT_EQ(HumanRate(45.67), "45.7");
  EXPECT_EQ(HumanRate(999.4), "999");
  EXPECT_EQ(HumanRate(999.6), "1k");
  EXPECT_EQ(HumanRate(312345.6), "312k");
}

TEST(HumanDuration, ShowsHoursOnlyWhenThereAreAny) {
  EXPECT_EQ(HumanDuration(0.2), "0:00");
  EXPECT_EQ(HumanDuration(59.6), "1:00");
  EXPECT_EQ(HumanDuration(65), "1:05");
  EXPECT_EQ(HumanDuration(7383), "2:03:03");
  EXPECT_EQ(HumanDuration(1e300), "888888:53:20");
}

TEST_F(ProgressTest, RewritesOneLineOnATerminal) {
  Progress progress({"evaluating", "records", 2000000}, Environment(true));
  now_ += 2;
  progress.Update(500000, "accuracy 77.5 %");
  EXPECT_THAT(writes_,
              ElementsAre("\revaluating [=>   ]  25 %  500k/2M records  250k/s"
                          "  0:06 left  accuracy 77.5 %\x1b[K"));
}

TEST_F(ProgressTest, FillsTheRoomLeftWithABar) {
  Progress progress({"evaluating", "records", 2000000}, Environment(true));
  now_ += 2;
  progress.Update(500000);
  EXPECT_EQ(writes_.at(0),
            "\revaluating [=====>              ]  25 %  500k/2M records  "
            "250k/s  0:06 left\x1b[K");
}

TEST_F(ProgressTest, FollowsTheTerminalsWidth) {
  Progress progress({"evaluating", "records", 2000000}, Environment(true));
  columns_ = 20;
  now_ += 1;
  progress.Update(500000);
  columns_ = 0;
  now_ += 1;
  progress.Update(500000);
  columns_ = 1000;
  now_ += 1;
  progress.Update(2000000);
  EXPECT_EQ(writes_.at(0), "\revaluating  25 %\x1b[K");
  EXPECT_EQ(writes_.at(1), "\r\x1b[K");
  EXPECT_THAT(writes_.at(2), HasSubstr("[" + std::string(40, '=') + "] 100 %"));
}

TEST_F(ProgressTest, LeavesOutWhatDoesNotFitWhole) {
  Progress progress({"evaluating", "records", 2000000}, Environment(true));
  columns_ = 60;
  now_ += 1;
  progress.Update(500000, "accuracy 77.5 %");
  EXPECT_EQ(writes_.at(0),
            "\revaluating  25 %  500k/2M records  500k/s  0:03 left\x1b[K");
}

// The text has four characters in six bytes.
TEST_F(ProgressTest, CutsNoCharacterInTwo) {
  Progress progress({"ab\xc3\xa4\xc3\xb6", "y"}, Environment(true));
  now_ += 1;
  columns_ = 4;
  progress.Update(1);
  EXPECT_EQ(writes_.at(0), "\rab\xc3\xa4\x1b[K");
}

TEST_F(ProgressTest, StaysOneLineWhateverTheNote) {
  Progress progress({"x", "y"}, Environment(true));
  now_ += 1;
  progress.Update(1, "a\nb\x1b");
  EXPECT_EQ(writes_.at(0), "\rx  1 y  1.00/s  0:01  a b \x1b[K");
}

TEST_F(ProgressTest, DrawsTenTimesASecondAtMost) {
  Progress progress({"evaluating", "records", 1000}, Environment(true));
  for (int i = 0; i < 1000; ++i) {
    now_ += 1.0 / 1024;
    progress.Update(i);
  }
  EXPECT_EQ(writes_.size(), 9);
}

TEST_F(ProgressTest, WritesAPlainLineEveryTenSecondsElsewhere) {
  Progress progress({"evaluating", "records", 4000}, Environment(false));
  for (int i = 1; i <= 25; ++i) {
    now_ += 1;
    progress.Update(100 * i, "accuracy 77.5 %");
  }
  EXPECT_THAT(writes_,
              ElementsAre("12:34:56 evaluating: 1k/4k records (25 %), 100/s, "
                          "0:30 left, accuracy 77.5 %\n",
                          "12:34:56 evaluating: 2k/4k records (50 %), 100/s, "
                          "0:20 left, accuracy 77.5 %\n"));
}

TEST_F(ProgressTest, EndsLongWorkButNotShortWorkWithALineElsewhere) {
  for (const int seconds : {9, 16}) {
    EXPECT_THAT(writes_, IsEmpty());
    Progress progress({"evaluating", "records", 4000}, Environment(false));
    now_ += seconds;
    progress.Update(4000);
    progress.Finish();
    progress.Finish();
  }
  EXPECT_THAT(
      writes_,
      ElementsAre(HasSubstr("4k/4k records"),
                  "12:34:56 evaluating: done, 4k records in 0:16, 250/s\n"));
}

TEST_F(ProgressTest, ErasesTheLineAtTheEndOrWhenWorkIsAbandoned) {
  for (const bool finishes : {true, false}) {
    writes_.clear();
    {
      Progress progress({"evaluating", "records", 4000}, Environment(true));
      now_ += 16;
      progress.Update(4000);
      if (finishes) progress.Finish();
      if (finishes) progress.Update(4000);
    }
    EXPECT_THAT(writes_, ElementsAre(HasSubstr("4k/4k"), "\r\x1b[K"));
  }
}

TEST_F(ProgressTest, WritesNothingWhenNothingWasShown) {
  {
    Progress progress({"evaluating", "records", 4000}, Environment(true));
    progress.Update(1);
    progress.Finish();
  }
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(ProgressTest, GivesMessagesALineOfTheirOwn) {
  Progress progress({"evaluating", "records", 4000}, Environment(true));
  now_ += 1;
  progress.Update(1);
  progress.Say("record 7 is bad");
  EXPECT_THAT(writes_,
              ElementsAre(HasSubstr("1/4k"), "\r\x1b[K", "record 7 is bad\n"));
}

TEST_F(ProgressTest, ShowsTheRateOfTheLastTenSeconds) {
  Progress progress({"reading", "bytes"}, Environment(true));
  int64_t done = 0;
  for (int second = 0; second < 60; ++second) {
    now_ += 1;
    done += second < 40 ? 1000000 : 50;
    progress.Update(done);
  }
  EXPECT_EQ(writes_.back(), "\rreading  40.0M bytes  50.0/s  1:00\x1b[K");
}

TEST_F(ProgressTest, TakesATotalThatIsLearnedOnTheWay) {
  Progress progress({"reading", "records"}, Environment(true));
  progress.SetTotal(200);
  now_ += 1;
  progress.Update(100);
  EXPECT_THAT(writes_.at(0), HasSubstr("50 %  100/200 records"));
}

TEST_F(ProgressTest, ReportsToAParentInsteadOfDrawing) {
  std::vector<std::string> reports;
  ProgressEnvironment environment = Environment(true);
  environment.report = [&](std::string_view text) {
    reports.emplace_back(text);
  };
  Progress progress({"evaluating", "records", 4000}, environment);
  now_ += 1;
  progress.Update(100, "accuracy\t77.5 %");
  progress.Update(4000, "accuracy 78 %");
  progress.Finish();
  EXPECT_THAT(
      reports,
      ElementsAre(
          "progress\t100\t4000\tevaluating\trecords\taccuracy 77.5 %\n",
          "progress\t4000\t4000\tevaluating\trecords\taccuracy 78 %\n"));
  EXPECT_THAT(writes_, IsEmpty());
}

TEST(ProgressReport, IsReadAsItWasWritten) {
  const auto report = ParseProgressReport(
      FormatProgressReport({7, 9, "evaluating", "records", "accuracy 7 %"}));
  EXPECT_THAT(report, testing::Optional(testing::FieldsAre(
                          7, 9, "evaluating", "records", "accuracy 7 %")));
}

TEST(ProgressReport, IsNothingElse) {
  for (const char* line :
       {"", "progress\t7", "progress\tx\t9\ta\tb\tc", "fuse_columns"}) {
    EXPECT_FALSE(ParseProgressReport(line).has_value()) << line;
  }
}

TEST_F(ProgressTest, StaysFullBeyondTheTotal) {
  Progress progress({"evaluating", "records", 100}, Environment(true));
  now_ += 1;
  progress.Update(150);
  EXPECT_EQ(writes_.at(0),
            "\revaluating [===================================] 100 %  150/100 "
            "records  150/s\x1b[K");
}

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
  EXPECT_THAT(terminal.raw(),
              AllOf(Not(HasSubstr("?25l")), Not(HasSubstr("2J"))));
  EXPECT_EQ(terminal.Text(), "x\n");
}

}  // namespace
}  // namespace requant::progress_test
