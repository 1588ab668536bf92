// Tests requant run as people use it, on the published recipe with few records.

#include <signal.h>

#include <filesystem>
#include <set>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/process/subprocess.h"
#include "base/text/printable.h"
#include "tests/support/workflow_runs.h"

namespace requant::workflow_run_test {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// Matches a run that succeeds and does these tasks.
auto Does(const Names& tasks) {
  return Exits(0, testing::ResultOf(TasksDone, tasks));
}

// Compares two graphs of the first run; GATE is the second graph's.
constexpr char kJudged[] = R"pb(
  evaluation {
    name: "records"
    on {
      dataset: "DECLARATION"
      data { file: "OUT/dataset_preprocessed_eval.tfrecords" } RECORDS
    }
    baseline { stage: "float" }
  }
  stage {
    name: "float"
    evaluate {
      graph { file: "OUT/optimized_wide_deep_fp32_graph.pb" }
      verify { evaluation: "records" }
    }
  }
  stage {
    name: "int8"
    evaluate {
      graph { file: "OUT/final_int8_wide_deep.pb" }
      verify { evaluation: "records" gates { GATE } }
    }
  }
  stage {
    name: "behind"
    summarize { graph { file: "OUT/final_int8_wide_deep.pb" } }
    after: "int8"
  })pb";

// All tests share one work folder with all results.
class WorkflowRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TestFolder;
    first_ = new ProgramRun(RunSmall(Work(), Out()));
    ASSERT_EQ(first_->exit_code, 0) << first_->out << first_->error;
  }
  static void TearDownTestSuite() {
    delete first_;
    delete folder_;
  }
  void SetUp() override { ASSERT_EQ(first_->exit_code, 0); }

  static std::string Work() { return folder_->Path("work"); }
  static std::string Out() { return folder_->Path("out"); }
  static std::string Made(const std::string& name) {
    return absl::StrCat(Out(), "/", name);
  }
  // Runs with the results of the first run, into a new folder.
  ProgramRun Again(const Words& more) {
    return RunSmall(Work(), own_.Path("out"), more);
  }

  // Runs kJudged.
  ProgramRun Judge(const std::string& gate, const std::string& records,
                   const Words& more = {}) {
    const std::string file = own_.Write(
        "judged.textproto",
        absl::StrReplaceAll(
            kJudged,
            {{"OUT", Out()},
             {"GATE", gate},
             {"RECORDS", records},
             {"DECLARATION",
              fs::absolute("workflows/wide_deep/preprocessed.textproto")
                  .string()}}));
    return RunProgram(
        kRequant,
        Joined({"run", file, absl::StrCat("--work_dir=", own_.Path("work")),
                absl::StrCat("--out=", own_.Path("out"))},
               more));
  }

  static inline TestFolder* folder_ = nullptr;
  static inline ProgramRun* first_ = nullptr;
  TestFolder own_;
};

TEST_F(WorkflowRun, LeavesThePublishedFilesAndTheReport) {
  for (const char* name :
       {"model_nodes.txt", "wide_deep_frozen_fp32_graph.pb",
        "wide_deep_fp32_graph.pb", "optimized_wide_deep_fp32_graph.pb",
        "int8_dynamic_range_wide_deep_graph.pb",
        "logged_int8_dynamic_range_wide_deep.pb", "wide_deep_min_max_log.txt",
        "freezed_range_int8_wide_deep.pb", "wide_deep_min_log.txt",
        "freezed_range_int8_wide_deep_freezemin.pb", "wide_deep_max_log.txt",
        "freezed_range_int8_wide_deep_minmaxfreeze.pb",
        "final_int8_wide_deep.pb", "report.html", "results.json", "results.csv",
        "manifest.json", "commands.sh"}) {
    EXPECT_TRUE(fs::exists(Made(name))) << name;
  }
  EXPECT_THAT(first_->out, HasSubstr("PASSED"));
  // Only these two are benchmarked; the SavedModel is judged after them.
  EXPECT_THAT(first_->out, HasSubstr("\nfuse against optimize\n"));
  EXPECT_THAT(RunProgram("runtime/check_serving",
                         {Made("final_int8_wide_deep_saved_model")}),
              Prints("as when it was made"));
  EXPECT_THAT(RunProgram(kRequant, {"verify", Made("manifest.json")}),
              Exits(0));
}

// The tests of workflows/run cover each of its flags.
TEST_F(WorkflowRun, DoesWhatIsAskedForAndNothingTwice) {
  EXPECT_THAT(RunSmall(own_.Path("work"), own_.Path("out"), {"--dry_run"}),
              Prints("it never ran here"));
  EXPECT_THAT(Again({"--dry_run"}), Prints("0 would run"));
  EXPECT_THAT(Again({"--only=fuze"}), Misused("did you mean \"fuse\"?"));
  EXPECT_THAT(own_.Names(), IsEmpty());
  EXPECT_THAT(Again({}), AllOf(Prints("Nothing had to run"), Does({})));
  EXPECT_THAT(Again({"--force=summarize"}), Does({"summarize"}));
  EXPECT_THAT(Again({"--from=fuse", "--only=fuse"}),
              Does({"fuse", "fuse/verify"}));
  EXPECT_THAT(own_.Names(), ElementsAre("out"));
}

TEST_F(WorkflowRun, GivesTheSameBytesInAnotherFolder) {
  EXPECT_THAT(RunSmall(own_.Path("work"), own_.Path("out"), {"--only=fuse"}),
              Exits(0));
  EXPECT_EQ(GraphsAndRanges(Out()).size(), 14);
  ExpectSameGraphsAndRanges(Out(), own_.Path("out"));
}

// Interrupts a run once its stderr has a line that contains `line_end`.
ProgramRun Interrupted(const Words& arguments, std::string_view line_end) {
  ProgramRun run;
  ChildOptions options;
  options.argv = CommandLine(kRequant, arguments);
  options.on_stdout = [&](std::string_view line) {
    run.out.append(line).append("\n");
  };
  options.on_stderr = [&](std::string_view line) {
    run.error.append(line).append("\n");
    if (absl::StrContains(line, line_end)) raise(SIGINT);
  };
  const auto result = RunChild(options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (result.ok()) run.exit_code = result->exit_code;
  return run;
}

TEST_F(WorkflowRun, StopsWhenInterruptedAndGoesOnLater) {
  Words arguments =
      SmallRun(own_.Path("work"), own_.Path("out"), {"--only=trim"});
  arguments.insert(arguments.end(), {"--force", "--from", "summarize"});
  const ProgramRun stopped = Interrupted(arguments, " freeze  done");
  EXPECT_THAT(stopped, Exits(130));
  EXPECT_THAT(stopped.out, HasSubstr(" tasks are done."));
  EXPECT_TRUE(fs::is_empty(own_.Path("work/tmp")));
  EXPECT_TRUE(fs::exists(own_.Path("out/wide_deep_frozen_fp32_graph.pb")));
  const Names before = TasksDone(stopped.error);
  EXPECT_TRUE(before.count("freeze") > 0 && before.count("trim") == 0);
  // The command to continue leaves out what would repeat everything.
  arguments.resize(arguments.size() - 3);
  std::string command = "  requant";
  for (const std::string& argument : arguments) {
    absl::StrAppend(&command, " ", ShellQuoted(argument));
  }
  EXPECT_THAT(stopped.out, HasSubstr(command + "\n"));
  const ProgramRun resumed = RunProgram(kRequant, arguments);
  EXPECT_THAT(resumed, Exits(0));
  for (const std::string& task : TasksDone(resumed.error)) {
    EXPECT_EQ(before.count(task), 0) << task << " was done twice";
  }
}

TEST_F(WorkflowRun, StopsWhenTheDiskIsFullAndGoesOnLater) {
  const SmallDisk disk(own_.Path("disk"), "size=120m");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small disk";
  // When stage freeze is first done, another file takes up all disk space.
  const std::string filler = own_.Write(
      "fill", absl::StrReplaceAll("#!/bin/sh\n"
                                  "[ -e FILLED ] && exit 0\n"
                                  ": >FILLED\n"
                                  "cat /dev/zero >BALLAST 2>/dev/null\n"
                                  "exit 0\n",
                                  {{"FILLED", own_.Path("filled")},
                                   {"BALLAST", disk.path() + "/ballast"}}));
  fs::permissions(filler, fs::perms::owner_all);
  const Words arguments =
      SmallRun(disk.path() + "/work", own_.Path("out"),
               {"--only=trim", absl::StrCat("--tamper=freeze=", filler)});
  const ProgramRun stopped = RunProgram(kRequant, arguments);
  EXPECT_THAT(stopped, Exits(1));
  // Where lines are wrapped depends on the folder's path.
  EXPECT_THAT(stopped.out,
              testing::ContainsRegex("No[ \n]+space[ \n]+left[ \n]+on[ \n]+"
                                     "device"));
  fs::remove(disk.path() + "/ballast");
  const ProgramRun resumed = RunProgram(kRequant, arguments);
  EXPECT_THAT(resumed, Exits(0));
  EXPECT_EQ(TasksDone(resumed.error).count("raw_data"), 0);
  EXPECT_EQ(TasksDone(resumed.error).count("trim"), 1);
}

TEST_F(WorkflowRun, EndsWithCode3BehindAGateThatFails) {
  const ProgramRun run = Judge("max_mean_output_change: 1e-6", "");
  EXPECT_THAT(run, Exits(3));
  EXPECT_EQ(TasksDone(run.error).count("behind"), 0);
  EXPECT_THAT(run.out, HasSubstr("mean output change"));
  // The results are judged again with another limit, from cached data.
  EXPECT_THAT(Judge("max_mean_output_change: 0.1", ""), Does({"behind"}));
}

// Of 4000 records, 500 are taken first, then 2000, then all.
TEST_F(WorkflowRun, TakesMoreRecordsBeforeItIsNotCertain) {
  const std::string gate = "max_accuracy_drop: 0.0001";
  EXPECT_THAT(Judge(gate, "records: '500'"), Prints("INCONCLUSIVE"));
  EXPECT_THAT(own_.Read("out/results.json"),
              HasSubstr("not certain on 500 records, so 4000 were taken"));
  EXPECT_THAT(Judge(gate, "records: '500'"), Does({}));
  EXPECT_THAT(Judge(gate, "records: '500'", {"--strict"}), Exits(3));
}

}  // namespace
}  // namespace requant::workflow_run_test
