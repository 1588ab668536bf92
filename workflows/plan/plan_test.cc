#include "workflows/plan/plan.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/testing/fuzz_rounds.h"
#include "base/testing/golden_cases.h"
#include "graph/testing/testing.h"
#include "workflows/language/workflow_file.h"

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

// Writes the files that these tests' workflows read.
void WriteFiles() {
  for (const char *folder : {"saved", "empty"}) {
    std::filesystem::create_directories(Folder() + folder);
  }
  for (const char *name : {"model.pb", "odd\x1b.pb", "records", "check.index",
                           "p.so", "saved/saved_model.pb"}) {
    Write(name, "");
  }
  Write("bad.textproto", "tfrecord { file: 'x' }");
  Write("words.txt", "no\nyes\n");
  Write("words.textproto",
        "tfrecord { files: 'records' }\n"
        "input { feature: 'x' placeholder: 'p' dtype: 'float' }\n"
        "label { feature: 'l' dtype: 'string' vocabulary_file: 'words.txt' }");
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
  const auto file = ReadWorkflowFile(Folder() + "w.textproto", variables);
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

std::string PlanText(const Plan &plan, const TaskOutlooks &) {
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

using Renderer = std::string (*)(const Plan &, const TaskOutlooks &);

// Removes a line such as "as dot" from the start of an input.
Renderer TakeRenderer(std::string *input) {
  for (const auto &[line, renderer] :
       std::map<std::string, Renderer>{{"as text\n", PlanAsText},
                                       {"as json\n", PlanAsJson},
                                       {"as dot\n", PlanAsDot},
                                       {"as mermaid\n", PlanAsMermaid}}) {
    if (!absl::StartsWith(*input, line)) continue;
    input->erase(0, line.size());
    return renderer;
  }
  return PlanText;
}

// Removes a line such as "outlooks: cached, it never ran", which says what
// would happen to each task, from the start of an input.
TaskOutlooks TakeOutlooks(std::string *input) {
  TaskOutlooks outlooks;
  std::string_view line = *input;
  line = line.substr(0, line.find('\n'));
  const size_t size = line.size() + 1;
  if (!absl::ConsumePrefix(&line, "outlooks: ")) return outlooks;
  for (const std::string_view word : absl::StrSplit(line, ", ")) {
    const std::string reason(word);
    const bool cached = reason == "cached";
    outlooks.push_back(
        {cached, cached ? "" : reason, reason != "not asked for"});
  }
  input->erase(0, size);
  return outlooks;
}

// The input may begin with lines such as "--set given=T/model.pb", "as dot" and
// "outlooks: cached, it never ran".
TEST(MakePlan, MakesTasksOrSaysWhatIsWrong) {
  WriteFiles();
  CheckGoldenCases("workflows/plan/plan_cases.txt", [](std::string text) {
    const auto variables = TakeSettings(Folder(), &text);
    const Renderer render = TakeRenderer(&text);
    const TaskOutlooks outlooks = TakeOutlooks(&text);
    const auto plan = Make(text, variables);
    if (!plan.ok()) return Shown(plan.status().message());
    CheckPlan(*plan);
    const std::string rendered = render(*plan, outlooks);
    return Shown(absl::StripSuffix(rendered, "\n"));
  });
}

// Returns a plan of a, b after a, c after b, and d alone; b is verified.
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

// Returns a letter for each task: "c" if it is chosen, "f" if it is forced as
// well, "." if it is not chosen.
std::string Chosen(const StageChoice &choice) {
  const TaskChoice tasks = ChooseTasks(FourStages(), choice);
  std::string text;
  for (size_t i = 0; i < tasks.chosen.size(); ++i) {
    text += !tasks.chosen[i] ? '.' : tasks.forced[i] ? 'f' : 'c';
  }
  return text;
}

TEST(ChooseTasks, TakesWhatIsNeededAndForcesWhatIsAskedFor) {
  EXPECT_EQ(Chosen({}), "ccccc");
  EXPECT_EQ(Chosen({{"b"}, {}, {}}), "ccc..") << "only, and what it needs";
  EXPECT_EQ(Chosen({{}, {"b"}, {}}), "cfffc") << "from, and all after it";
  EXPECT_EQ(Chosen({{}, {}, {"b"}}), "cffcc") << "force, and nothing else";
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

// Whatever the file says, there is a plan or a problem.
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
      // Most edits are of whole words, so that many texts still parse.
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
