// requant run as people use it, on the published recipe with few records.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/process/subprocess.h"
#include "base/text/shell_quote.h"
#include "graph/testing/program.h"
#include "tests/support/workflow_runs.h"

namespace requant::workflow_run_test {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// Two graphs of the first run against each other; GATE is the second's.
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

// All tests share one work folder that has everything.
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
  // A run with what the first one did, into a folder of its own.
  ProgramRun Again(const std::vector<std::string>& more) {
    return RunSmall(Work(), own_.Path("out"), more);
  }

  // A run of kJudged.
  ProgramRun Judge(const std::string& gate, const std::string& records,
                   const std::vector<std::string>& more = {}) {
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
    std::vector<std::string> arguments = {
        "run", file, absl::StrCat("--work_dir=", own_.Path("work")),
        absl::StrCat("--out=", own_.Path("out"))};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(kRequant, arguments);
  }

  static TestFolder* folder_;
  static ProgramRun* first_;
  TestFolder own_;
};

TestFolder* WorkflowRun::folder_ = nullptr;
ProgramRun* WorkflowRun::first_ = nullptr;

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
  EXPECT_TRUE(absl::StrContains(first_->out, "PASSED")) << first_->out;
  EXPECT_EQ(RunProgram(kRequant, {"verify", Made("manifest.json")}).exit_code,
            0);
}

TEST_F(WorkflowRun, DoesNothingTheSecondTimeAndSaysSo) {
  const ProgramRun run = Again({});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(TasksDone(run.error), Names());
  EXPECT_TRUE(absl::StrContains(run.out, "Nothing had to run")) << run.out;
}

TEST_F(WorkflowRun, GivesTheSameBytesInAnotherFolder) {
  const ProgramRun run =
      RunSmall(own_.Path("work"), own_.Path("out"), {"--only=fuse"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  const auto first = GraphsAndRanges(Out());
  const auto second = GraphsAndRanges(own_.Path("out"));
  EXPECT_EQ(first.size(), 14);
  EXPECT_EQ(second.size(), first.size());
  for (const auto& [name, content] : first) {
    const auto other = second.find(name);
    ASSERT_NE(other, second.end()) << name;
    EXPECT_TRUE(other->second == content) << name << " differs";
  }
}

TEST_F(WorkflowRun, DoesAForcedStageAgainAndNothingElse) {
  const ProgramRun run = Again({"--force=summarize"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(TasksDone(run.error), Names{"summarize"});
}

TEST_F(WorkflowRun, DoesAStageAndAllBehindItAgain) {
  const ProgramRun run = Again({"--from=fuse", "--only=fuse"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(TasksDone(run.error), (Names{"fuse", "fuse/verify"}));
}

TEST_F(WorkflowRun, LeavesOutWhatIsNotAskedFor) {
  const ProgramRun run = Again({"--only=trim"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_TRUE(fs::exists(own_.Path("out/wide_deep_fp32_graph.pb")));
  EXPECT_FALSE(fs::exists(own_.Path("out/optimized_wide_deep_fp32_graph.pb")));
}

TEST_F(WorkflowRun, SaysWhatWouldRunAndRunsNothing) {
  const ProgramRun all = Again({"--dry_run"});
  EXPECT_EQ(all.exit_code, 0) << all.error;
  EXPECT_TRUE(absl::StrContains(all.out, "0 would run")) << all.out;
  const ProgramRun none =
      RunSmall(own_.Path("work"), own_.Path("out"), {"--dry_run"});
  EXPECT_EQ(none.exit_code, 0) << none.error;
  EXPECT_TRUE(absl::StrContains(none.out, "it never ran here")) << none.out;
  EXPECT_EQ(own_.Names(), std::vector<std::string>());
}

TEST_F(WorkflowRun, IsRefusedAWorkFolderInUse) {
  const int lock =
      open(absl::StrCat(Work(), "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  const ProgramRun run = Again({});
  close(lock);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(run.error, "is in use by")) << run.error;
  EXPECT_TRUE(absl::StrContains(run.error, "--work_dir")) << run.error;
}

TEST_F(WorkflowRun, IsRefusedAWorkFolderThatCannotBeWritten) {
  const ProgramRun run = RunSmall("/proc/work", own_.Path("out"));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(run.error, "/proc/work")) << run.error;
}

TEST_F(WorkflowRun, DoesNotWriteOverAFolderOfTheUsers) {
  own_.Write("mine", "");
  const ProgramRun run = RunSmall(Work(), own_.Path(""));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(own_.Names(), std::vector<std::string>{"mine"});
}

TEST_F(WorkflowRun, ReplacesAFormerRunOfTheSameFolder) {
  EXPECT_EQ(Again({"--only=trim"}).exit_code, 0);
  EXPECT_EQ(Again({"--only=optimize"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(own_.Path("out/optimized_wide_deep_fp32_graph.pb")));
  EXPECT_EQ(own_.Names(), std::vector<std::string>{"out"});
}

TEST_F(WorkflowRun, RefusesAnUnknownStage) {
  const ProgramRun run = Again({"--only=fuze"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(absl::StrContains(run.error, "did you mean \"fuse\"?"))
      << run.error;
}

// Interrupts a run when `line` is seen on its stderr.
ProgramRun Interrupted(const std::vector<std::string>& arguments,
                       std::string_view line_end) {
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
  std::vector<std::string> arguments =
      SmallRun(own_.Path("work"), own_.Path("out"), {"--only=trim"});
  arguments.insert(arguments.end(), {"--force", "--from", "summarize"});
  const ProgramRun stopped = Interrupted(arguments, " freeze  done");
  EXPECT_EQ(stopped.exit_code, 130) << stopped.error;
  EXPECT_TRUE(absl::StrContains(stopped.out, " tasks are done."))
      << stopped.out;
  EXPECT_TRUE(fs::is_empty(own_.Path("work/tmp")));
  EXPECT_TRUE(fs::exists(own_.Path("out/wide_deep_frozen_fp32_graph.pb")));
  const Names before = TasksDone(stopped.error);
  EXPECT_TRUE(before.count("freeze") > 0 && before.count("trim") == 0);
  // It is told to go on with what would not do everything again.
  arguments.resize(arguments.size() - 3);
  std::string command = "  requant";
  for (const std::string& argument : arguments) {
    absl::StrAppend(&command, " ", ShellQuoted(argument));
  }
  EXPECT_TRUE(absl::StrContains(stopped.out, command + "\n")) << stopped.out;
  const ProgramRun resumed = RunProgram(kRequant, arguments);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  for (const std::string& task : TasksDone(resumed.error)) {
    EXPECT_EQ(before.count(task), 0) << task << " was done twice";
  }
}

// A small disk of its own, which only root may have.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    fs::create_directories(path);
    mounted_ = mount("tmpfs", path.c_str(), "tmpfs", 0, "size=120m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  std::string Path(const std::string& name) const {
    return absl::StrCat(path_, "/", name);
  }

 private:
  std::string path_;
  bool mounted_;
};

TEST_F(WorkflowRun, StopsWhenTheDiskIsFullAndGoesOnLater) {
  const SmallDisk disk(own_.Path("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small disk";
  // The first time that stage freeze is done, something else takes all space.
  const std::string filler = own_.Write(
      "fill", absl::StrReplaceAll("#!/bin/sh\n"
                                  "[ -e FILLED ] && exit 0\n"
                                  ": >FILLED\n"
                                  "cat /dev/zero >BALLAST 2>/dev/null\n"
                                  "exit 0\n",
                                  {{"FILLED", own_.Path("filled")},
                                   {"BALLAST", disk.Path("ballast")}}));
  fs::permissions(filler, fs::perms::owner_all);
  const std::vector<std::string> arguments =
      SmallRun(disk.Path("work"), own_.Path("out"),
               {"--only=trim", absl::StrCat("--tamper=freeze=", filler)});
  const ProgramRun stopped = RunProgram(kRequant, arguments);
  EXPECT_EQ(stopped.exit_code, 1) << stopped.error;
  EXPECT_TRUE(absl::StrContains(stopped.out, "No space left on device"))
      << stopped.out;
  fs::remove(disk.Path("ballast"));
  const ProgramRun resumed = RunProgram(kRequant, arguments);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  EXPECT_EQ(TasksDone(resumed.error).count("raw_data"), 0);
  EXPECT_EQ(TasksDone(resumed.error).count("trim"), 1);
}

TEST_F(WorkflowRun, EndsWithCode3BehindAGateThatFails) {
  const ProgramRun run = Judge("max_mean_output_change: 1e-6", "");
  EXPECT_EQ(run.exit_code, 3) << run.error;
  EXPECT_EQ(TasksDone(run.error).count("behind"), 0);
  EXPECT_TRUE(absl::StrContains(run.out, "mean output change")) << run.out;
  // Judged anew with another limit, from what is cached.
  const ProgramRun passed = Judge("max_mean_output_change: 0.1", "");
  EXPECT_EQ(passed.exit_code, 0) << passed.error;
  EXPECT_EQ(TasksDone(passed.error), Names{"behind"});
}

// Of 4000 records 500 are taken first, then 2000, then all.
TEST_F(WorkflowRun, TakesMoreRecordsBeforeItIsNotCertain) {
  const std::string gate = "max_accuracy_drop: 0.0001";
  const ProgramRun run = Judge(gate, "records: '500'");
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_TRUE(absl::StrContains(run.out, "INCONCLUSIVE")) << run.out;
  EXPECT_TRUE(
      absl::StrContains(own_.Read("out/results.json"),
                        "not certain on 500 records, so 4000 were taken"));
  const ProgramRun again = Judge(gate, "records: '500'");
  EXPECT_EQ(TasksDone(again.error), Names());
  const ProgramRun strict = Judge(gate, "records: '500'", {"--strict"});
  EXPECT_EQ(strict.exit_code, 3) << strict.error;
}

}  // namespace
}  // namespace requant::workflow_run_test
