#ifndef REQUANT_WORKFLOWS_PLAN_PLAN_H_
#define REQUANT_WORKFLOWS_PLAN_PLAN_H_

// A workflow as tasks: what makes what, what waits for what, which limits hold,
// and which tasks a run is about.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workflows/language/workflow_file.h"
#include "workflows/workflow.pb.h"

namespace requant {

// A file or folder that a task reads.
struct TaskInput {
  // What it is to the task: "graph" (of a benchmark several, in order), "data",
  // "dataset", "ranges", "baseline", "baseline_predictions", "saved_model",
  // "checkpoint" (a path before ".index"), "plugin", or the name of a
  // transform's file. "declared_data" are the files that a declaration itself
  // names: no command line has them, but their content counts.
  std::string role;
  // The task that makes it, and which of its outputs; -1: no task does.
  int task = -1;
  std::string output;
  // What no task makes: a path from the current folder. Data may be several
  // paths and globs, separated by commas.
  std::string path;
};

struct TaskOutput {
  // "graph", "log", "ranges", "logged_graph", "data", "text", "predictions",
  // "result".
  std::string role;
  // Its name, without a folder.
  std::string file;
};

// Making a stage's outputs and verifying its graph are two tasks; the run of a
// baseline that is a file is one too.
struct Task {
  enum class Kind { kMake, kVerify, kBaseline };

  // The stage's name, followed by "/verify" for a verification, or
  // "<evaluation>/baseline".
  std::string name;
  Kind kind = Kind::kMake;
  // Index into workflow().stage(); for kBaseline -1.
  int stage = -1;
  // For kBaseline: how many of them are before it in the plan.
  int baseline = -1;
  // Index into workflow().evaluation(), for kVerify (unless the stage is a
  // CompareStage) and kBaseline.
  int evaluation = -1;
  // For kBaseline: Baseline.records of the baseline that it runs, which may be
  // a verification's own; "": as many as the evaluation takes.
  std::string baseline_records;
  std::vector<TaskInput> inputs;
  std::vector<TaskOutput> outputs;
  // Tasks that must have succeeded first, gates and all: those that make
  // inputs, and their verifications. Ascending, without repetition.
  std::vector<int> after;
  // What the user should know of, such as a baseline that is left out.
  std::vector<std::string> notes;

  // Returns the first input of the role; null: there is none.
  const TaskInput* Find(std::string_view input_role) const;
};

struct Plan {
  WorkflowFile file;
  // Each after all that it waits for.
  std::vector<Task> tasks;
  // By stage: its task of kMake and of kVerify; -1: it has none.
  std::vector<int> make_task;
  std::vector<int> verify_task;
  // By stage: the file that is its graph (Stage.use_file); "": it is made.
  std::vector<std::string> given_graph;
  // By stage: the variable that left it out; "": it is not.
  std::vector<std::string> left_out_by;
};

// Resolves names, finds the order, and checks all that can be checked before
// anything runs. An error is one sentence for each mistake, a line each, that
// starts with FILE:LINE.
absl::StatusOr<Plan> MakePlan(const WorkflowFile& file);

// --- Limits.

// Returns the limits that hold for a verification: the stage's, then the
// evaluation's, then the workflow's, then the defaults. None without a
// baseline.
Gates EffectiveGates(const Plan& plan, const Task& task);

// Returns whether one of these places limits the drop of accuracy.
bool LimitsAccuracyDrop(const Plan& plan, const Task& task);

// --- Which tasks a run is about.

// Names of stages, as the flags of `requant run` give them.
struct StageChoice {
  // Stages to do, with what they need; empty: all.
  std::set<std::string> only;
  // These stages and all after them are done again.
  std::set<std::string> from;
  // These stages are done again.
  std::set<std::string> force;
  bool force_all = false;
};

// What a run is about, by task.
struct TaskChoice {
  std::vector<bool> chosen;
  // Whether it is done even if the cache has it.
  std::vector<bool> forced;
};

// Fails if a name is no stage's; the error names the nearest stage.
absl::Status CheckStageNames(const Plan& plan,
                             const std::set<std::string>& names);

TaskChoice ChooseTasks(const Plan& plan, const StageChoice& choice);

// --- For people (plan_text.cc): as a list, as a graph, as data.

// What would become of a task if the workflow ran now.
struct TaskOutlook {
  // Whether a former run did it.
  bool cached = false;
  // Why it would run, as a clause: "it never ran here".
  std::string reason;
  // Whether it is among those that the run is about.
  bool chosen = true;
};

// In the order of the plan's tasks, or empty when nothing is known of them.
using TaskOutlooks = std::vector<TaskOutlook>;

std::string PlanAsText(const Plan& plan, const TaskOutlooks& outlooks);
std::string PlanAsJson(const Plan& plan, const TaskOutlooks& outlooks);
// Return text for Graphviz, and for Markdown on GitHub.
std::string PlanAsDot(const Plan& plan, const TaskOutlooks& outlooks);
std::string PlanAsMermaid(const Plan& plan, const TaskOutlooks& outlooks);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_PLAN_H_
