#include "workflows/display/run_display.h"

#include <memory>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/terminal/progress.h"
#include "base/testing/fake_terminal.h"
#include "base/testing/golden_cases.h"
#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"

namespace requant::run_display_test {
namespace {

using google::protobuf::TextFormat;
using Words = std::vector<std::string>;

// Returns the number in word `i` of a line.
double Number(const Words& words, size_t i) {
  double number = 0;
  EXPECT_TRUE(absl::SimpleAtod(words.at(i), &number)) << words.at(i);
  return number;
}
int Whole(const Words& words, size_t i) {
  return static_cast<int>(Number(words, i));
}

// A run that a test drives by lines. In those about a task, the first word
// after the command is the stage's index (in "progress" it follows the time
// that passed). "start" and "end" are about the stage's own work, all others
// about its verification.
class MovedRun {
 public:
  // Carries out a line such as "progress 0 2 50000 200000 accuracy 78.40 %".
  void Obey(std::string_view line) {
    const Words words = absl::StrSplit(line, ' ');
    const std::string& command = words[0];
    const auto rest = [&](int count) -> std::string {
      const Words parts = absl::StrSplit(line, absl::MaxSplits(' ', count));
      return parts.size() > static_cast<size_t>(count) ? parts.back() : "";
    };
    if (command == "record") {
      EXPECT_TRUE(TextFormat::MergeFromString(rest(1), &record_));
    } else if (command == "options") {
      options_ = {rest(1) != "ascii", rest(1) == "color", rest(1) == "erase"};
    } else if (command == "show") {
      Show(Whole(words, 1), Whole(words, 2), rest(3));
    } else if (command == "elsewhere") {
      is_terminal_ = false;
      Show(200, 24);
    } else if (absl::StartsWith(command, "start")) {
      Start({Whole(words, 1), -1, command == "start-verify"});
    } else if (command == "progress") {
      Progress(
          Number(words, 1), Whole(words, 2),
          {Whole(words, 3), Whole(words, 4), "evaluating", "records", rest(5)});
    } else if (absl::StartsWith(command, "end")) {
      End({Whole(words, 1), -1, command == "end-verify"}, rest(2));
    } else if (command == "found") {
      EXPECT_TRUE(TextFormat::MergeFromString(
          rest(2),
          record_.mutable_stage(Whole(words, 1))->mutable_verification()));
    } else if (command == "tick") {
      terminal_->now += Number(words, 1);
      display_->Tick();
    } else if (command == "say") {
      std::string text;
      EXPECT_TRUE(absl::CUnescape(rest(1), &text));
      display_->Said(text);
    } else {
      EXPECT_EQ(line, "finish");
      display_->RunEnded(record_);
    }
  }
  void ObeyAll(std::string_view lines) {
    for (std::string_view line : absl::StrSplit(lines, '\n')) Obey(line);
  }

  FakeTerminal& terminal() { return *terminal_; }
  // Returns what is visible on the terminal or in the log.
  std::string Seen() const {
    return is_terminal_ ? terminal_->Text() : terminal_->raw();
  }

 private:
  // Starts the display, on a terminal of this size or as a log.
  void Show(int columns, int rows, const std::string& already_there = "") {
    terminal_ = std::make_unique<FakeTerminal>(columns, rows);
    if (!already_there.empty()) terminal_->Write(already_there + "\n");
    ProgressEnvironment environment = terminal_->Environment();
    environment.is_terminal = is_terminal_;
    display_ = MakeRunDisplay(options_, environment);
    display_->RunStarted(record_);
  }
  void Start(const TaskPlace& place) {
    WorkOf(place, &record_)->set_state(TaskRecord::RUNNING);
    display_->TaskStarted(record_, place);
  }
  // Shows progress of the stage's verification after `seconds` have passed.
  void Progress(double seconds, int stage, const TaskProgress& progress) {
    terminal_->now += seconds;
    display_->TaskProgressed(record_, {stage, -1, true}, progress);
  }
  // Ends a task; `work` is added to its record.
  void End(const TaskPlace& place, const std::string& work) {
    EXPECT_TRUE(TextFormat::MergeFromString(work, WorkOf(place, &record_)));
    display_->TaskEnded(record_, place);
  }

  RunDisplayOptions options_ = {true, false, false};
  RunRecord record_;
  bool is_terminal_ = true;
  std::unique_ptr<FakeTerminal> terminal_;
  std::unique_ptr<RunObserver> display_;
};

TEST(RunDisplay, ShowsWhereARunIs) {
  CheckGoldenCases("workflows/display/run_display_cases.txt",
                   [](const std::string& in) {
                     MovedRun run;
                     run.ObeyAll(in);
                     const std::string seen = run.Seen();
                     return std::string(absl::StripSuffix(seen, "\n"));
                   });
}

TEST(RunDisplay, LeavesNothingBehindWhenTheWidthChanges) {
  for (int columns = 1; columns < 130; ++columns) {
    MovedRun run;
    run.ObeyAll(absl::StrCat(
        "record stage { name: 'fuse_feature_columns' verification {} } "
        "stage { name: 'quantize' verification {} }\nshow ",
        columns, " 200 $\nstart-verify 1\nprogress 1 1 50000 200000 note"));
    run.terminal().Resize(131 - columns, 200);
    run.Obey("tick 1");
    run.terminal().Resize(100, 200);
    run.Obey("finish");
    EXPECT_EQ(run.Seen(), R"($
  stage                    time   accuracy  difference  agreement   change  verdict
· fuse_feature_columns           not run
▸ quantize
)");
  }
}

TEST(RunDisplay, NeedsNoRowsAtAll) {
  for (int rows = 0; rows < 3; ++rows) {
    MovedRun run;
    run.ObeyAll(absl::StrCat(
        "record stage { name: 'a' verification {} } stage { name: 'b' }\nshow "
        "80 ",
        rows,
        "\nstart 0\ntick 1\nend 0 state: DONE\nend-verify 0 state: DONE\n",
        "tick 1\nfinish"));
    EXPECT_THAT(run.Seen(), HasSubstr("✓ a"));
  }
}

TEST(RunDisplay, DrawsTenTimesASecondAtMost) {
  MovedRun run;
  run.ObeyAll("record stage { name: 'a' }\nshow 80 24\nstart-verify 0");
  for (int i = 0; i < 1000; ++i) {
    run.Obey(absl::StrCat("progress ", 1.0 / 1024, " 0 ", i, " 1000"));
  }
  EXPECT_LE(run.terminal().writes(), 11);
  EXPECT_GE(run.terminal().writes(), 9);
}

TEST(RunDisplay, ColoursOnlyWhenAsked) {
  MovedRun run;
  run.ObeyAll("record stage { name: 'a' work { state: CACHED } }\nshow 80 24");
  EXPECT_THAT(run.terminal().raw(), Not(HasSubstr("\x1b[32m")));
  run.ObeyAll("options color\nshow 80 24");
  EXPECT_THAT(run.terminal().raw(), HasSubstr("\x1b[32m✓\x1b[0m a"));
}

}  // namespace
}  // namespace requant::run_display_test
