#include "workflows/plan/plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/testing/fuzz_rounds.h"
#include "workflows/language/workflow_file.h"
#include "workflows/testing/golden_cases.h"

namespace requant::plan_test {
namespace {

std::string Folder() { return testing::TempDir() + "/"; }

void Write(const std::string &name, const std::string &text) {
  std::ofstream(Folder() + name, std::ios::binary) << text;
}

// Returns the text with the test's folder as T/.
std::string Shown(std::string_view text) {
  return absl::StrReplaceAll(
      text, {{Folder() + "w.textproto", "F"}, {Folder(), "T/"}});
}

// Writes the files that workflows of these tests read.
void WriteFiles() {
  for (const char *folder : {"saved", "empty"}) {
    std::filesystem::create_directories(Folder() + folder);
  }
  for (const char *name :
       {"model.pb", "records", "check.index", "p.so", "saved/saved_model.pb"}) {
    Write(name, "");
  }
  Write("bad.textproto", "tfrecord { file: 'x' }");
  for (const auto &[name, input] :
       {std::make_pair("data.textproto", "feature: 'x' placeholder: 'p'"),
        std::make_pair("other.textproto", "feature: 'y' placeholder: 'q'")}) {
    Write(name, absl::StrCat("tfrecord { files: 'records' }\ninput { ", input,
                             " dtype: 'float' }"));
  }
}

absl::StatusOr<Plan> Make(const std::string &text,
                          const std::map<std::string, std::string> &variables) {
  Write("w.textproto", text);
  WorkflowSettings settings;
  settings.variables = variables;
  const auto file = ReadWorkflowFile(Folder() + "w.textproto", settings);
  if (!file.ok()) return file.status();
  return MakePlan(*file);
}

// Returns "a/verify after a by e: graph=a:graph > predictions=a.predictions".
std::string TaskText(const Plan &plan, const Task &task) {
  std::vector<std::string> after;
  for (const int other : task.after) after.push_back(plan.tasks[other].name);
  std::string text = task.name;
  if (!after.empty()) {
    absl::StrAppend(&text, " after ", absl::StrJoin(after, ", "));
  }
  if (task.evaluation >= 0) {
    absl::StrAppend(&text, " by ",
                    plan.file.workflow.evaluation(task.evaluation).name());
  }
  if (!task.baseline_records.empty()) {
    absl::StrAppend(&text, " on ", task.baseline_records);
  }
  text += ":";
  for (const TaskInput &input : task.inputs) {
    absl::StrAppend(&text, " ", input.role, "=",
                    input.task < 0 ? input.path
                                   : absl::StrCat(plan.tasks[input.task].name,
                                                  ":", input.output));
  }
  text += " >";
  for (const TaskOutput &output : task.outputs) {
    absl::StrAppend(&text, " ", output.role, "=", output.file);
  }
  for (const std::string &note : task.notes) {
    absl::StrAppend(&text, "\n  note: ", note);
  }
  return text;
}

std::string PlanText(const Plan &plan) {
  std::vector<std::string> lines;
  for (const Task &task : plan.tasks) lines.push_back(TaskText(plan, task));
  for (int i = 0; i < plan.file.workflow.stage_size(); ++i) {
    const std::string &name = plan.file.workflow.stage(i).name();
    if (!plan.left_out_by[i].empty()) {
      lines.push_back(
          absl::StrCat(name, " is left out by ", plan.left_out_by[i]));
    }
    if (!plan.given_graph[i].empty()) {
      lines.push_back(absl::StrCat(name, " is ", plan.given_graph[i]));
    }
  }
  return absl::StrJoin(lines, "\n");
}

// Checks what holds for every plan.
void CheckPlan(const Plan &plan) {
  int baselines = 0;
  for (int i = 0; i < static_cast<int>(plan.tasks.size()); ++i) {
    const Task &task = plan.tasks[i];
    for (const int other : task.after) EXPECT_LT(other, i);
    if (task.kind == Task::Kind::kMake) {
      EXPECT_EQ(plan.make_task[task.stage], i);
    } else if (task.kind == Task::Kind::kVerify) {
      EXPECT_EQ(plan.verify_task[task.stage], i);
    } else {
      EXPECT_EQ(task.baseline, baselines++);
    }
  }
}

// The input may begin with lines such as "--set given=T/model.pb".
TEST(MakePlan, MakesTasksOrSaysWhatIsWrong) {
  WriteFiles();
  CheckGoldenCases("workflows/plan/plan_cases.txt", [](std::string text) {
    const auto variables = TakeSettings(Folder(), &text);
    const auto plan = Make(text, variables);
    if (!plan.ok()) return Shown(plan.status().message());
    CheckPlan(*plan);
    return Shown(PlanText(*plan));
  });
}

// Returns the limits of a stage that is judged by a baseline.
Gates GatesFor(const std::string &workflow, const std::string &evaluation,
               const std::string &stage,
               const std::string &baseline = "file: 'model.pb'") {
  WriteFiles();
  const auto plan = Make(
      absl::StrCat("gates { ", workflow,
                   " } evaluation { name: 'e' on { dataset: 'data.textproto' } "
                   "baseline { ",
                   baseline, " } layer_records: '1' gates { ", evaluation,
                   " } } stage { name: 'a' summarize { graph { file: "
                   "'model.pb' } } } stage { name: 'b' transform { graph { "
                   "file: 'model.pb' } transforms: 'sort_by_execution_order' } "
                   "verify { evaluation: 'e' gates { ",
                   stage, " } } }"),
      {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  for (const Task &task : plan->tasks) {
    const Gates gates = EffectiveGates(*plan, task);
    if (task.name == "b/verify") return gates;
    EXPECT_FALSE(gates.has_max_accuracy_drop()) << task.name;
  }
  return {};
}

TEST(EffectiveGates, TakeTheNarrowestPlacePerField) {
  const Gates gates =
      GatesFor("max_accuracy_drop: 1 min_agreement: .1 max_layer_shift: 3",
               "min_agreement: .2 max_output_change: .5", "min_agreement: .3");
  EXPECT_EQ(gates.max_accuracy_drop(), 1);
  EXPECT_EQ(gates.min_agreement(), .3);
  EXPECT_EQ(gates.max_output_change(), .5);
  EXPECT_EQ(gates.max_layer_shift(), 3);
  EXPECT_FALSE(gates.has_max_mean_output_change());
}

TEST(EffectiveGates, LoseALimitToANegativeOne) {
  const Gates gates = GatesFor("min_agreement: .1", "",
                               "min_agreement: -1 max_accuracy_drop: -1");
  EXPECT_FALSE(gates.has_min_agreement());
  EXPECT_FALSE(gates.has_max_accuracy_drop());
}

TEST(EffectiveGates, LimitTheDropToHalfAPointUnlessSet) {
  EXPECT_EQ(GatesFor("", "", "").max_accuracy_drop(), .5);
  const Gates gates = GatesFor("", "max_accuracy_drop: 0", "");
  EXPECT_TRUE(gates.has_max_accuracy_drop());
  EXPECT_EQ(gates.max_accuracy_drop(), 0);
}

TEST(EffectiveGates, JudgeNothingWithoutABaseline) {
  const Gates gates = GatesFor("min_agreement: .5", "", "", "");
  EXPECT_FALSE(gates.has_min_agreement());
  EXPECT_FALSE(gates.has_max_accuracy_drop());
}

// Returns a, b after a, c after b, and d alone; b is verified.
Plan FourStages() {
  Plan plan;
  plan.file.path = "four.textproto";
  for (const char *name : {"a", "b", "c", "d"}) {
    plan.file.workflow.add_stage()->set_name(name);
  }
  const std::pair<int, std::vector<int>> tasks[] = {
      {0, {}}, {1, {0}}, {1, {1}}, {2, {1, 2}}, {3, {}}};
  for (const auto &[stage, after] : tasks) {
    plan.tasks.emplace_back().stage = stage;
    plan.tasks.back().after = after;
  }
  return plan;
}

using Flags = std::vector<bool>;

TEST(ChooseTasks, ChoosesAllByDefaultAndForcesNone) {
  const TaskChoice tasks = ChooseTasks(FourStages(), {});
  EXPECT_EQ(tasks.chosen, Flags({true, true, true, true, true}));
  EXPECT_EQ(tasks.forced, Flags({false, false, false, false, false}));
}

TEST(ChooseTasks, OnlyChoosesWhatIsNeededToo) {
  EXPECT_EQ(ChooseTasks(FourStages(), {{"b"}, {}, {}}).chosen,
            Flags({true, true, true, false, false}));
}

TEST(ChooseTasks, FromForcesAllThatIsAfterIt) {
  EXPECT_EQ(ChooseTasks(FourStages(), {{}, {"b"}, {}}).forced,
            Flags({false, true, true, true, false}));
}

TEST(ChooseTasks, ForceIsForTheStageAlone) {
  EXPECT_EQ(ChooseTasks(FourStages(), {{}, {}, {"b"}}).forced,
            Flags({false, true, true, false, false}));
}

TEST(CheckStageNames, SuggestsTheNearest) {
  Plan plan = FourStages();
  plan.file.workflow.add_stage()->set_name("quantize");
  EXPECT_TRUE(CheckStageNames(plan, {"quantize"}).ok());
  EXPECT_EQ(CheckStageNames(plan, {"quantise"}).message(),
            "four.textproto has no stage \"quantise\" (did you mean "
            "\"quantize\"?)");
}

constexpr char kSeed[] = R"(
variable { name: 'given' default_value: '' }
evaluation { name: 'e' on { dataset: 'data.textproto' } baseline { stage: 'a' } }
stage { name: 'a' transform { graph { file: 'model.pb' } transforms: 'remove_nodes(op=Identity)' } skip_if: 'given' verify { evaluation: 'e' } }
stage { name: 'b' transform { graph { stage: 'a' } transforms: 'remove_nodes(op=Identity)' } use_file: '${given}' verify { evaluation: 'e' } }
stage { name: 'c' transform { graph { stage: 'b' } transforms: 'remove_nodes(op=Identity)' } verify { evaluation: 'e' } }
stage { name: 'log' calibrate { graph { file: 'model.pb' } on { dataset: 'data.textproto' } logging { op: 'Min' message: '__min:' } } }
stage { name: 'freeze' transform { graph { file: 'model.pb' } file { name: 'log' from { stage: 'log' } } transforms: 'freeze_min(min_max_log_file="${log}")' } }
stage { name: 's' compare { graph { stage: 'a' } baseline { stage: 'b' } on { dataset: 'data.textproto' } } })";

// Whatever the file says, a plan or a problem.
TEST(MakePlan, SurvivesMutations) {
  WriteFiles();
  std::mt19937 random(1);
  const std::string pieces[] = {"stage: 'a'",
                                "'b'",
                                "verify {",
                                "}",
                                "transform {",
                                "{",
                                "'",
                                "baseline {",
                                "file: ''",
                                "'a'",
                                "-1",
                                "after: 'c'",
                                "output: 'log'",
                                "''",
                                "skip_if: 'given' "};
  const int rounds = FuzzRounds(300);
  int plans = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string text = kSeed;
    for (int i = random() % 3; i >= 0; --i) {
      // Mostly whole words, so that many texts still parse.
      const size_t at = text.find(' ', random() % text.size());
      if (at == std::string::npos) continue;
      const size_t end = text.find(' ', at + 1);
      if (random() % 2 == 0) text.erase(at, end - at);
      if (random() % 2 == 0) {
        text.insert(at, " " + pieces[random() % std::size(pieces)]);
      }
    }
    const auto plan = Make(text, {});
    if (!plan.ok()) continue;
    ++plans;
    CheckPlan(*plan);
    for (const Task &task : plan->tasks) EffectiveGates(*plan, task);
  }
  EXPECT_GT(plans, 0);
}

}  // namespace
}  // namespace requant::plan_test
