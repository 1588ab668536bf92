#include "workflows/runner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "workflows/plan.h"
#include "workflows/run_machine.h"
#include "workflows/run_observer.h"
#include "workflows/run_places.h"
#include "workflows/stage_store.h"
#include "workflows/workflow_file.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Neg" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1882 })";

constexpr char kTwoStages[] = R"pb(
  name: "two"
  stage {
    name: "first"
    transform {
      graph { file: "graph.pbtxt" }
      outputs: "z"
      transforms: "rename_op(old_op_name=Neg, new_op_name=Abs)"
    }
  }
  stage {
    name: "second"
    transform {
      graph { stage: "first" }
      outputs: "z"
      transforms: "SECOND"
    }
  })pb";

// Notes what observers are told.
class Listener : public RunObserver {
 public:
  void RunStarted(const RunRecord&) override { calls.push_back("run"); }
  void TaskStarted(const RunRecord& record, const TaskPlace& place) override {
    calls.push_back(absl::StrCat("start ", record.stage(place.stage).name()));
  }
  void TaskProgressed(const RunRecord&, const TaskPlace&,
                      const TaskProgress&) override {}
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
    folder_ = absl::StrCat(
        testing::TempDir(), "/runner_",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Write("graph.pbtxt", kGraph);
  }

  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(
        WriteFileAtomically(absl::StrCat(folder_, "/", name), content).ok());
  }

  // Runs two stages; `second` is what the second does.
  RunResult RunStages(const std::string& second = "strip_unused_nodes",
                      RunOptions options = {}) {
    Write("two.textproto",
          absl::StrReplaceAll(kTwoStages, {{"SECOND", second}}));
    const auto file =
        ReadWorkflowFile(absl::StrCat(folder_, "/two.textproto"), {});
    EXPECT_TRUE(file.ok()) << file.status();
    const auto plan = MakePlan(*file);
    EXPECT_TRUE(plan.ok()) << plan.status();
    const auto machine = ThisMachine();
    auto store =
        StageStore::OpenForRun(absl::StrCat(folder_, "/work"), "a test");
    EXPECT_TRUE(store.ok()) << store.status();
    options.run_folder = absl::StrCat(folder_, "/run");
    listener_ = Listener();
    const auto result =
        RunPlan(*plan, *machine, options, StartRecord(*plan, *machine),
                store->get(), {&listener_});
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  }

  std::string folder_;
  Listener listener_;
};

TaskRecord::State StateOf(const RunResult& result, int stage) {
  return result.record.stage(stage).work().state();
}

TEST_F(RunnerTest, RunsStagesInOrderAndTellsObservers) {
  const RunResult result = RunStages();
  EXPECT_EQ(result.record.outcome(), RunRecord::PASSED);
  EXPECT_EQ(ExitCodeOf(result, false), 0);
  EXPECT_EQ(listener_.calls,
            (std::vector<std::string>{"run", "start first", "end first",
                                      "start second", "end second", "done"}));
  const StageRecord& first = result.record.stage(0);
  EXPECT_EQ(first.work().state(), TaskRecord::DONE);
  EXPECT_EQ(first.graph().nodes(), 3);
  ASSERT_EQ(first.work().command_size(), 1);
  EXPECT_EQ(first.work().command(0),
            "requant transform --in_graph=../graph.pbtxt --out_graph=first.pb "
            "--outputs=z '--transforms=rename_op(old_op_name=Neg, "
            "new_op_name=Abs)'");
}

TEST_F(RunnerTest, DoesNothingTheSecondTime) {
  RunStages();
  const RunResult result = RunStages();
  EXPECT_EQ(result.record.outcome(), RunRecord::PASSED);
  EXPECT_EQ(StateOf(result, 0), TaskRecord::CACHED);
  EXPECT_EQ(StateOf(result, 1), TaskRecord::CACHED);
  EXPECT_EQ(result.cached, 2);
  EXPECT_EQ(listener_.calls, (std::vector<std::string>{"run", "done"}));
}

}  // namespace
}  // namespace requant
