#include "workflows/run/runner.h"

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "base/files/file.h"
#include "graph/testing/program.h"
#include "workflows/language/workflow_file.h"
#include "workflows/plan/plan.h"
#include "workflows/run/run_record.h"
#include "workflows/run/stage_store.h"

namespace requant::runner_test {
namespace {

namespace fs = std::filesystem;

constexpr char kGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Neg" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1882 })";

constexpr char kTwoStages[] = R"text(
name: "two"
stage { name: "first" transform { graph { file: "graph.pbtxt" } outputs: "z"
        transforms: "rename_op(old_op_name=Neg, new_op_name=Abs)" } }
stage { name: "second" transform { graph { stage: "first" } outputs: "z"
        transforms: "SECOND" } })text";

// A stage that fails when it runs, one that reads it, and an independent one.
constexpr char kBroken[] = R"(
stage { name: "broken" transform { graph { file: "broken.pbtxt" }
        transforms: "sort_by_execution_order" } })";
constexpr char kReader[] = R"(
stage { name: "reader" transform { graph { stage: "broken" }
        transforms: "sort_by_execution_order" } })";
constexpr char kBeside[] = R"(
stage { name: "beside" transform { graph { file: "graph.pbtxt" }
        transforms: "sort_by_execution_order" } })";

// Notes the calls of an observer.
class Listener : public RunObserver {
 public:
  void RunStarted(const RunRecord&) override { calls.push_back("run"); }
  void TaskStarted(const RunRecord& record, const TaskPlace& place) override {
    calls.push_back(absl::StrCat("start ", record.stage(place.stage).name()));
  }
  void TaskEnded(const RunRecord& record, const TaskPlace& place) override {
    calls.push_back(absl::StrCat("end ", record.stage(place.stage).name()));
  }
  void Said(std::string_view line) override { said.emplace_back(line); }
  void RunEnded(const RunRecord&) override { calls.push_back("done"); }

  std::vector<std::string> calls;
  std::vector<std::string> said;
};

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() {
    folder_.Write("graph.pbtxt", kGraph);
    folder_.Write("broken.pbtxt", "node {");
  }

  Plan PlanWorkflow(const std::string& text) {
    const auto file = ReadWorkflowFile(folder_.Write("w.textproto", text), {});
    EXPECT_OK(file);
    const auto plan = MakePlan(*file);
    EXPECT_OK(plan);
    return *plan;
  }

  RunResult RunWorkflow(const std::string& text, RunOptions options) {
    const Plan plan = PlanWorkflow(text);
    const auto machine = ThisMachine();
    auto store = StageStore::OpenForRun(folder_.Path("work"), "a test");
    EXPECT_OK(store);
    options.run_folder = folder_.Path("run");
    listener_ = Listener();
    const auto result =
        RunPlan(plan, *machine, options, StartRecord(plan, *machine),
                store->get(), &listener_);
    EXPECT_OK(result);
    return *result;
  }

  // Returns a plan of two stages; `second` is what the second does.
  Plan MakePlanOf(const std::string& second) {
    return PlanWorkflow(absl::StrReplaceAll(kTwoStages, {{"SECOND", second}}));
  }
  RunResult RunStages(const std::string& second = "strip_unused_nodes",
                      const RunOptions& options = {}) {
    return RunWorkflow(absl::StrReplaceAll(kTwoStages, {{"SECOND", second}}),
                       options);
  }
  RunResult RunWith(const RunOptions& options) {
    return RunStages("strip_unused_nodes", options);
  }
  // Runs the plan with a shell script that gets the first stage's outputs.
  RunResult RunWithScript(const std::string& script) {
    RunOptions options;
    options.tamper["first"] =
        absl::StrCat("/bin/sh ", folder_.Write("tamper.sh", script));
    return RunWith(options);
  }

  // Changes a file in the cache but not its size; returns its path.
  std::string Damage(const std::string& key, const std::string& file) {
    const std::string path =
        folder_.Path(absl::StrCat("work/cache/", key, "/", file));
    std::string content = *ReadFile(path);
    content.back() ^= 1;
    std::ofstream(path) << content;
    return path;
  }

  const TestFolder folder_;
  Listener listener_;
};

TaskRecord::State StateOf(const RunResult& result, int stage) {
  return result.record.stage(stage).work().state();
}

TEST_F(RunnerTest, RunsStagesInOrderAndTellsObservers) {
  const RunResult result = RunStages();
  EXPECT_EQ(result.record.outcome(), RunRecord::PASSED);
  EXPECT_EQ(ExitCodeOf(result, false), 0);
  EXPECT_THAT(listener_.calls,
              ElementsAre("run", "start first", "end first", "start second",
                          "end second", "done"));
  const StageRecord& first = result.record.stage(0);
  EXPECT_EQ(first.work().state(), TaskRecord::DONE);
  EXPECT_EQ(first.graph().nodes(), 3);
  ASSERT_EQ(first.work().command_size(), 1);
  EXPECT_EQ(first.work().command(0),
            "requant transform --in_graph=../graph.pbtxt --out_graph=first.pb "
            "--outputs=z '--transforms=rename_op(old_op_name=Neg, "
            "new_op_name=Abs)'");
}

TEST_F(RunnerTest, DoesOnlyWhatChanged) {
  RunStages();
  const RunResult result = RunStages("sort_by_execution_order");
  EXPECT_EQ(StateOf(result, 0), TaskRecord::CACHED);
  EXPECT_EQ(StateOf(result, 1), TaskRecord::DONE);
}

TEST_F(RunnerTest, TellsAProgramsLastWords) {
  const RunResult result = RunWorkflow(kBroken, {});
  EXPECT_EQ(result.record.outcome(), RunRecord::FAILED);
  EXPECT_EQ(ExitCodeOf(result, false), 1);
  const TaskRecord& work = result.record.stage(0).work();
  EXPECT_EQ(work.state(), TaskRecord::FAILED);
  EXPECT_THAT(work.message(), HasSubstr("broken.pbtxt"));
  EXPECT_TRUE(fs::is_empty(folder_.Path("work/tmp")));
}

TEST_F(RunnerTest, MakesAChangedResultAgainWithAWarning) {
  const RunResult before = RunStages();
  for (const char* file : {"first.pb", "result.pb"}) {
    const std::string path = Damage(before.keys[0], file);
    const std::string content = *ReadFile(path);
    listener_.said.clear();
    const RunResult result = RunStages();
    EXPECT_EQ(StateOf(result, 0), TaskRecord::DONE);
    // The repeated work has the same result, so nothing after it runs.
    EXPECT_EQ(StateOf(result, 1), TaskRecord::CACHED);
    EXPECT_THAT(
        listener_.said,
        ElementsAre(absl::StrCat(
            "warning: ", path,
            " was changed since it was made; \"first\" is done again")));
    EXPECT_NE(*ReadFile(path), content);
  }
}

// The change is found only after the first stage has run.
TEST_F(RunnerTest, SaysThatAResultBehindAForcedStageWasChanged) {
  const RunResult before = RunStages();
  Damage(before.keys[1], "result.pb");
  RunOptions options;
  options.choice.force = {"first"};
  const RunResult result = RunWith(options);
  EXPECT_EQ(StateOf(result, 1), TaskRecord::DONE);
  EXPECT_THAT(listener_.said,
              ElementsAre(HasSubstr("\"second\" is done again")));
}

TEST_F(RunnerTest, LeavesOutWhatIsNotAskedFor) {
  RunOptions options;
  options.choice.only = {"first"};
  const RunResult result = RunWith(options);
  EXPECT_EQ(result.record.outcome(), RunRecord::PASSED);
  EXPECT_EQ(StateOf(result, 0), TaskRecord::DONE);
  EXPECT_EQ(StateOf(result, 1), TaskRecord::NOT_RUN);
  EXPECT_EQ(result.record.stage(1).work().message(), "not asked for");
}

TEST_F(RunnerTest, LetsAProgramTamperWithOutputs) {
  RunStages();
  const RunResult result = RunWithScript("for f; do : > \"$f\"; done");
  const TaskRecord& first = result.record.stage(0).work();
  EXPECT_EQ(first.state(), TaskRecord::DONE);
  EXPECT_EQ(first.output(0).bytes(), 0);
  EXPECT_THAT(first.warning(), ElementsAre(HasSubstr("tampered")));
  // Without the script, everything comes from the cache.
  EXPECT_EQ(RunStages().cached, 2);
}

TEST_F(RunnerTest, LooksAheadAndSaysWhy) {
  const auto reasons = [this](const std::string& second) {
    const Plan plan = MakePlanOf(second);
    const auto machine = ThisMachine();
    const auto store = StageStore::OpenToLook(folder_.Path("work"));
    const auto outlooks = LookAhead(plan, *machine, {}, store.get());
    EXPECT_OK(outlooks);
    std::vector<std::string> texts;
    for (const TaskOutlook& outlook : *outlooks) {
      texts.push_back(outlook.cached ? "cached" : outlook.reason);
    }
    return texts;
  };
  EXPECT_THAT(
      reasons("strip_unused_nodes"),
      ElementsAre("it never ran here", "its input \"graph\" is made anew"));
  RunStages();
  EXPECT_THAT(reasons("strip_unused_nodes"), ElementsAre("cached", "cached"));
  EXPECT_THAT(
      reasons("sort_by_execution_order"),
      ElementsAre("cached",
                  "the parameter --transforms of transform changed from "
                  "strip_unused_nodes to sort_by_execution_order"));
  folder_.Write("graph.pbtxt", absl::StrCat(kGraph, " "));
  EXPECT_EQ(reasons("strip_unused_nodes")[0], "its input \"graph\" changed");
}

TEST_F(RunnerTest, GoesOnWithWhatDoesNotDependOnAFailure) {
  const std::string three = absl::StrCat(kBroken, kReader, kBeside);
  RunOptions options;
  options.jobs = 1;
  const RunResult stopped = RunWorkflow(three, options);
  EXPECT_EQ(StateOf(stopped, 2), TaskRecord::NOT_RUN);
  EXPECT_EQ(stopped.record.stage(1).work().message(),
            "\"broken\" did not succeed");
  EXPECT_EQ(stopped.record.stage(2).work().message(), "the run stopped before");
  options.keep_going = true;
  const RunResult result = RunWorkflow(three, options);
  EXPECT_EQ(result.record.outcome(), RunRecord::FAILED);
  EXPECT_EQ(StateOf(result, 0), TaskRecord::FAILED);
  EXPECT_EQ(StateOf(result, 1), TaskRecord::NOT_RUN);
  EXPECT_EQ(StateOf(result, 2), TaskRecord::DONE);
}

TEST_F(RunnerTest, EndsWithTheSignalThatCame) {
  const RunResult result = RunWithScript("kill -TERM $PPID; exec sleep 1000");
  EXPECT_EQ(result.record.outcome(), RunRecord::INTERRUPTED);
  EXPECT_EQ(ExitCodeOf(result, false), 128 + SIGTERM);
  EXPECT_EQ(StateOf(result, 0), TaskRecord::INTERRUPTED);
  EXPECT_EQ(StateOf(result, 1), TaskRecord::NOT_RUN);
  EXPECT_EQ(result.done, 0);
  EXPECT_TRUE(fs::is_empty(folder_.Path("work/tmp")));
}

// Each level has two stages after both of the level before: 2^60 paths.
TEST_F(RunnerTest, ExplainsALadderOfStagesAtOnce) {
  std::string text = kBroken;
  for (int level = 0; level < 60; ++level) {
    for (const char* side : {"a", "b"}) {
      absl::StrAppend(&text, "stage { name: '", side, level, "' ");
      if (level > 0) {
        absl::StrAppend(&text, "after: ['a", level - 1, "', 'b", level - 1,
                        "'] ");
      }
      absl::StrAppend(&text,
                      "transform { graph { file: 'graph.pbtxt' } "
                      "transforms: 'sort_by_execution_order' } }\n");
    }
  }
  RunOptions options;
  options.jobs = 1;
  const RunResult result = RunWorkflow(text, options);
  EXPECT_EQ(result.record.stage(120).work().message(),
            "the run stopped before");
}

TEST_F(RunnerTest, AnInputThatChangesWhileItIsReadGivesNoResult) {
  const RunResult result =
      RunWithScript(absl::StrCat("echo >> ", folder_.Path("graph.pbtxt")));
  EXPECT_EQ(StateOf(result, 0), TaskRecord::FAILED);
  EXPECT_THAT(result.record.stage(0).work().message(),
              EndsWith("/graph.pbtxt changed while it was read; run again"));
  EXPECT_TRUE(fs::is_empty(folder_.Path("work/cache")));
}

TEST_F(RunnerTest, RefusesMoreDataThanAnyDiskHolds) {
  const Plan plan = PlanWorkflow(absl::StrCat(
      kBroken,
      "stage { name: 'd' after: 'broken' dataset { synthesize { rows: "
      "'9223372036854775807' } } }"));
  const auto machine = ThisMachine();
  auto store = StageStore::OpenForRun(folder_.Path("work"), "a test");
  ASSERT_OK(store);
  const auto result = RunPlan(plan, *machine, {}, StartRecord(plan, *machine),
                              store->get(), &listener_);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted)
      << result.status();
}

}  // namespace
}  // namespace requant::runner_test
