#include "workflows/plan/task_choice.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace requant::task_choice_test {
namespace {

// a, b behind a, c behind b, and d alone; b is verified.
Plan FourStages() {
  Plan plan;
  plan.file.path = "four.textproto";
  for (const char* name : {"a", "b", "c", "d"}) {
    plan.file.workflow.add_stage()->set_name(name);
  }
  const auto add = [&](int stage, const std::vector<int>& after) {
    Task task;
    task.stage = stage;
    task.after = after;
    plan.tasks.push_back(task);
  };
  add(0, {});
  add(1, {0});
  add(1, {1});
  add(2, {1, 2});
  add(3, {});
  return plan;
}

using Flags = std::vector<bool>;

TEST(ChooseTasks, ChoosesAllByDefaultAndForcesNone) {
  const TaskChoice tasks = ChooseTasks(FourStages(), {});
  EXPECT_EQ(tasks.chosen, Flags({true, true, true, true, true}));
  EXPECT_EQ(tasks.forced, Flags({false, false, false, false, false}));
}

TEST(ChooseTasks, OnlyChoosesWhatIsNeededToo) {
  StageChoice choice;
  choice.only = {"b"};
  EXPECT_EQ(ChooseTasks(FourStages(), choice).chosen,
            Flags({true, true, true, false, false}));
}

TEST(ChooseTasks, FromForcesAllThatIsBehind) {
  StageChoice choice;
  choice.from = {"b"};
  EXPECT_EQ(ChooseTasks(FourStages(), choice).forced,
            Flags({false, true, true, true, false}));
}

TEST(ChooseTasks, ForceIsForTheStageAlone) {
  StageChoice choice;
  choice.force = {"b"};
  EXPECT_EQ(ChooseTasks(FourStages(), choice).forced,
            Flags({false, true, true, false, false}));
}

TEST(CheckStageNames, SuggestsTheNearest) {
  Plan plan;
  plan.file.path = "w.textproto";
  plan.file.workflow.add_stage()->set_name("quantize");
  EXPECT_TRUE(CheckStageNames(plan, {"quantize"}).ok());
  EXPECT_EQ(CheckStageNames(plan, {"quantise"}).message(),
            "w.textproto has no stage \"quantise\" (did you mean "
            "\"quantize\"?)");
}

}  // namespace
}  // namespace requant::task_choice_test
