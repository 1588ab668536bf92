#include "workflows/report/run_comparison.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/testing/program.h"
#include "workflows/report/run_folder.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_runs.h"

namespace requant::run_comparison_test {
namespace {

namespace fs = std::filesystem;

constexpr char kQuantized[] = "fuse";

StageRecord& StageIn(RunRecord* record, std::string_view name) {
  for (StageRecord& stage : *record->mutable_stage()) {
    if (stage.name() == name) return stage;
  }
  ADD_FAILURE() << "no stage " << name;
  return *record->mutable_stage(0);
}

Comparison& ComparisonIn(RunRecord* record) {
  return *StageIn(record, kQuantized)
              .mutable_verification()
              ->mutable_result()
              ->mutable_comparison();
}

// Gives the verification of `fuse` records with this digest.
void VerifyOn(const std::string& digest, RunRecord* record) {
  FileRecord& file = *StageIn(record, kQuantized)
                          .mutable_verification()
                          ->mutable_work()
                          ->add_input();
  file.set_role("data");
  file.set_path("eval.tfrecords");
  file.set_sha256(digest);
  file.set_bytes(1000);
}

RunRecord VerifiedRun(const std::string& digest = std::string(64, 'a')) {
  RunRecord record = PassedRun();
  VerifyOn(digest, &record);
  return record;
}

class CompareRunsTest : public testing::Test {
 protected:
  std::string Write(const RunRecord& record) {
    const std::string folder =
        folder_.Path(absl::StrCat("run", ++number_of_runs_));
    fs::create_directories(folder);
    EXPECT_OK(WriteRunFiles(record, folder));
    return folder;
  }

  RunComparison Compare(const std::vector<RunRecord>& records) {
    std::vector<ComparedRun> runs;
    for (const RunRecord& record : records) {
      auto run = ReadRun(Write(record));
      EXPECT_OK(run.status());
      if (run.ok()) runs.push_back(*std::move(run));
    }
    return CompareRuns(std::move(runs));
  }

  // Returns which figures of `fuse` the second run has better and worse.
  std::string Changes(const RunRecord& first, const RunRecord& second) {
    const std::vector<std::string> lines = absl::StrSplit(
        ComparisonText(Compare({first, second}), 0, false), '\n');
    std::string header, row;
    for (const std::string& line : lines) {
      if (absl::StartsWith(line, "stage ")) header = line;
      if (absl::StartsWith(line, kQuantized)) row = line;
    }
    EXPECT_THAT(row, testing::ContainsRegex("^fuse +2 "));
    std::string changes;
    for (const std::string title :
         {"accuracy", "diff (points)", "agreement", "mean change", "MSE"}) {
      // Cells end where their column's title does.
      std::string_view cell =
          std::string_view(row).substr(0, header.find(title) + title.size());
      cell.remove_prefix(cell.rfind("  ") + 2);
      for (const char* change : {"better ", "worse "}) {
        if (absl::StartsWith(cell, change)) {
          absl::StrAppend(&changes, change, title, "\n");
        }
      }
    }
    return changes;
  }

  const TestFolder folder_;
  int number_of_runs_ = 0;
};

// Returns "WHAT: VALUE | VALUE" for each difference.
std::vector<std::string> DifferencesOf(const RunComparison& comparison) {
  std::vector<std::string> lines;
  for (const auto& [what, values] : comparison.differences) {
    lines.push_back(absl::StrCat(what, ": ", absl::StrJoin(values, " | ")));
  }
  return lines;
}

TEST_F(CompareRunsTest, FindsNoDifferenceBetweenTheSameRuns) {
  const RunComparison comparison = Compare({PassedRun(), PassedRun()});
  EXPECT_THAT(comparison.differences, IsEmpty());
  EXPECT_THAT(ComparisonText(comparison, 0, false),
              AllOf(HasSubstr("Nothing that the runs were given differs."),
                    Not(HasSubstr(" worse 0")), Not(HasSubstr(" better 0"))));
}

TEST_F(CompareRunsTest, FindsWhatDiffers) {
  RunRecord other = VerifiedRun(std::string(64, 'b'));
  other.mutable_tool()->set_tensorflow("2.20.0");
  other.mutable_tool()->add_cpu_feature("amx");
  other.mutable_variable(0)->set_value("other");
  other.mutable_stage()->RemoveLast();
  const RunRecord first = VerifiedRun();
  EXPECT_THAT(
      DifferencesOf(Compare({first, first, other})),
      testing::UnorderedElementsAre(
          "TensorFlow: 2.21.0 | 2.21.0 | 2.20.0",
          "CPU feature amx:  |  | has it",
          absl::StrCat("variable ", first.variable(0).name(), ": \"",
                       first.variable(0).value(), "\" | \"",
                       first.variable(0).value(), "\" | \"other\""),
          absl::StrCat("stage ", first.stage(first.stage_size() - 1).name(),
                       ": has it | has it | "),
          "input data of fuse/verify: 1.00 kB, sha256 aaaaaaaaaaaa | 1.00 kB, "
          "sha256 aaaaaaaaaaaa | 1.00 kB, sha256 bbbbbbbbbbbb"));
}

TEST_F(CompareRunsTest, SumsUpWhatARunLacks) {
  RunRecord record = VerifiedRun();
  for (const char* feature : {"amx", "amx2", "amx3", "amx4", "amx5"}) {
    record.mutable_tool()->add_cpu_feature(feature);
  }
  for (const char* name : {"one", "two"}) {
    SettingRecord& variable = *record.add_variable();
    variable.set_name(name);
    variable.set_value(name);
  }
  EXPECT_THAT(DifferencesOf(Compare({VerifiedRun(), record})),
              testing::UnorderedElementsAre(
                  "CPU feature amx, amx2, amx3, amx4 and 1 other:  | has these",
                  "variable one, two:  | has these"));
}

TEST_F(CompareRunsTest, TellsFilesByTheirDigestsAndNotTheirNames) {
  RunRecord moved = VerifiedRun();
  StageIn(&moved, kQuantized)
      .mutable_verification()
      ->mutable_work()
      ->mutable_input()
      ->rbegin()
      ->set_path("elsewhere/eval.tfrecords");
  EXPECT_THAT(DifferencesOf(Compare({VerifiedRun(), moved})), IsEmpty());
}

TEST_F(CompareRunsTest, JudgesOnlyWhereIntervalsHaveNothingInCommon) {
  const RunRecord first = VerifiedRun();
  RunRecord second = first;
  EXPECT_EQ(Changes(first, second), "");
  auto* agreement = ComparisonIn(&second).mutable_agreement();
  const Interval old = agreement->interval();
  agreement->mutable_interval()->set_high(old.low() - 1e-9);
  agreement->mutable_interval()->set_low(old.low() - 1e-4);
  EXPECT_EQ(Changes(first, second), "worse agreement\n");
  EXPECT_EQ(Changes(second, first), "better agreement\n");
  // One end in common.
  agreement->mutable_interval()->set_high(old.low());
  EXPECT_EQ(Changes(first, second), "");
  // Less is better.
  RunRecord third = first;
  auto* change = ComparisonIn(&third).mutable_class_1_change();
  change->mutable_interval()->set_low(0);
  change->mutable_interval()->set_high(1e-9);
  EXPECT_EQ(Changes(first, third), "better mean change\n");
}

TEST_F(CompareRunsTest, JudgesNothingOnOtherRecordsOrUnknownOnes) {
  RunRecord other = VerifiedRun(std::string(64, 'b'));
  RunRecord unknown = PassedRun();
  for (RunRecord* record : {&other, &unknown}) {
    ComparisonIn(record).mutable_agreement()->mutable_interval()->set_low(0);
    ComparisonIn(record).mutable_agreement()->mutable_interval()->set_high(0.1);
  }
  RunRecord fewer = unknown;
  VerifyOn(std::string(64, 'a'), &fewer);
  RunRecord later = fewer;
  auto& scores = *StageIn(&fewer, kQuantized)
                      .mutable_verification()
                      ->mutable_result()
                      ->mutable_scores();
  scores.set_records(scores.records() - 1);
  StageIn(&later, kQuantized)
      .mutable_verification()
      ->mutable_work()
      ->add_command("requant evaluate --skip_records=5 --max_records=9");
  EXPECT_EQ(Changes(VerifiedRun(), other), "");
  EXPECT_EQ(Changes(VerifiedRun(), fewer), "");
  EXPECT_EQ(Changes(VerifiedRun(), later), "");
  EXPECT_EQ(Changes(PassedRun(), unknown), "");
}

TEST_F(CompareRunsTest, SaysWhyARunDidNotPass) {
  RunRecord unfinished = PassedRun();
  unfinished.set_outcome(RunRecord::UNKNOWN);
  RunRecord baseline = PassedRun();
  baseline.mutable_baseline(0)->set_name("raw/baseline");
  baseline.mutable_baseline(0)->mutable_work()->set_state(TaskRecord::FAILED);
  baseline.mutable_baseline(0)->mutable_work()->set_message("no memory");
  const RunComparison comparison = Compare(
      {RefusedRun(), InterruptedRun(), OneStageRun(), unfinished, baseline});
  EXPECT_THAT(comparison.runs[0].remarks,
              Contains(HasSubstr(" of stage fuse failed: ")));
  EXPECT_THAT(comparison.runs[1].remarks,
              Contains("stage freeze_min was interrupted"));
  EXPECT_THAT(comparison.runs[2].remarks,
              ElementsAre("stage freeze failed: model: no SavedModel "
                          "there: saved_model.pb is missing"));
  EXPECT_THAT(comparison.runs[3].remarks, Contains("it has not ended"));
  EXPECT_THAT(comparison.runs[4].remarks,
              Contains("stage raw/baseline failed: no memory"));
}

TEST_F(CompareRunsTest, SaysThatResultsAreNotAsTheRunWroteThem) {
  const std::string folder = Write(PassedRun());
  const std::string results =
      folder_.Read(fs::path(folder).filename().string() + "/results.json");
  folder_.Write(fs::path(folder).filename().string() + "/results.json",
                absl::StrReplaceAll(results, {{"passed", "failed"}}));
  const auto run = ReadRun(folder);
  ASSERT_OK(run.status());
  EXPECT_THAT(run->remarks,
              ElementsAre("results.json was changed since the run wrote it"));
}

TEST_F(CompareRunsTest, RefusesWhatIsNoRunInOneSentence) {
  const auto problem = [&](const std::string& name, const std::string& text) {
    folder_.Write(name + "/results.json", text);
    return std::string(ReadRun(folder_.Path(name)).status().message());
  };
  for (const char* name : {"cut", "list", "other", "typed", "deep"}) {
    fs::create_directories(folder_.Path(name));
  }
  const std::string whole = folder_.Read(
      fs::path(Write(PassedRun())).filename().string() + "/results.json");
  EXPECT_THAT(problem("cut", whole.substr(0, whole.size() / 2)),
              HasSubstr("is damaged"));
  EXPECT_THAT(problem("deep", std::string(100000, '[')),
              HasSubstr("is damaged"));
  EXPECT_THAT(problem("list", "[]"), HasSubstr("does not hold a run's"));
  EXPECT_THAT(problem("other", "{\"format\": \"x\"}"),
              HasSubstr("does not hold a run's"));
  // What has another type than it should is unknown.
  folder_.Write("typed/results.json",
                R"({"format": "requant results 1", "outcome": "passed",
                    "stages": [7, {"name": {}, "figures": [1]},
                      {"figures": {"accuracy": -1e300, "bytes": 1e300,
                                   "records_per_second": 1e300}}],
                    "variables": "x", "tool": null, "seconds": 1e300})");
  const auto typed = ReadRun(folder_.Path("typed"));
  ASSERT_OK(typed.status());
  EXPECT_THAT(ComparisonText(CompareRuns({*typed, *typed}), 0, false),
              HasSubstr("Nothing that the runs were given differs."));
  EXPECT_THAT(std::string(ReadRun(folder_.Path("")).status().message()),
              HasSubstr("it has no results.json"));
  EXPECT_THAT(std::string(ReadRun(folder_.Path("none")).status().message()),
              HasSubstr("has one when it has ended"));
}

TEST_F(CompareRunsTest, ShowsWhatTheTitlesSay) {
  const std::string text =
      ComparisonText(Compare({PassedRun(), RefusedRun()}), 0, false);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const auto& [title, cell] :
       {std::pair("outcome", "gate failed"), std::pair("workflow", "wide_deep"),
        std::pair("last compared", "fuse")}) {
    const size_t column = lines[0].find(title);
    ASSERT_NE(column, std::string::npos) << title;
    EXPECT_EQ(lines[2].find(cell), column) << lines[2];
  }
  EXPECT_THAT(text,
              testing::ContainsRegex("\nfuse +2 +[0-9.]+ % .* MB +fail\n"));
}

TEST_F(CompareRunsTest, DropsColumnsOnANarrowTerminal) {
  const RunComparison comparison = Compare({PassedRun(), RefusedRun()});
  const std::string wide = ComparisonText(comparison, 0, false);
  const std::string narrow = ComparisonText(comparison, 60, false);
  EXPECT_THAT(wide, HasSubstr("records/s"));
  EXPECT_THAT(narrow, Not(HasSubstr("records/s")));
  for (const std::string_view line : absl::StrSplit(narrow, '\n')) {
    if (absl::StartsWith(line, "fuse")) {
      EXPECT_LE(line.size(), 60u) << line;
    }
  }
}

TEST_F(CompareRunsTest, ShowsNamesAsTexts) {
  RunRecord record = RefusedRun();
  AppendToEveryText("<script>\x1b[31m\n&\"'", &record);
  const RunComparison comparison = Compare({record, PassedRun()});
  EXPECT_THAT(ComparisonText(comparison, 0, false), Not(HasSubstr("\x1b")));
  const std::string page = ComparisonHtml(comparison);
  EXPECT_THAT(page, AllOf(HasSubstr("default-src 'none'; style-src"),
                          HasSubstr("&lt;script&gt;\\x1b[31m\\x0a&amp;"),
                          Not(HasSubstr("<script")), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace requant::run_comparison_test
