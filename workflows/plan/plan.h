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
  // Its role in the task: "graph" (a benchmark has several, in order), "data",
  // "dataset", "ranges", "baseline", "baseline_predictions", "saved_model",
  // "checkpoint" (the path without ".index"), "plugin", or the name of a
  // transform's file. "declared_data" are the files that a declaration itself
  // names, and "vocabulary" is that of its label: they are on no command line,
  // but their content counts.
  std::string role;
  // The task that makes it, or -1 if none does, and which of its outputs it is.
  int task = -1;
  std::string output;
  // If no task makes it: its path from the current folder. Data may be several
  // paths and globs, separated by commas.
  std::string path;
};

struct TaskOutput {
  // One of "graph", "log", "ranges", "logged_graph", "data", "text",
  // "predictions" and "result".
  std::string role;
  // The file's name, without a folder.
  std::string file;
};

// Making a stage's outputs and verifying its graph are separate tasks, as is
// running a baseline that is a file.
struct Task {
  enum class Kind { kMake, kVerify, kBaseline };

  // The stage's name, followed by "/verify" for a verification, or
  // "<evaluation>/baseline".
  std::string name;
  Kind kind = Kind::kMake;
  // Index into workflow().stage(), or -1 for kBaseline.
  int stage = -1;
  // For kBaseline, the number of other baselines before it in the plan.
  int baseline = -1;
  // Index into workflow().evaluation(), for kVerify (unless the stage is a
  // CompareStage) and kBaseline.
  int evaluation = -1;
  // For kBaseline, Baseline.records of the baseline that it runs, which may be
  // a verification's own. If empty, it runs on as many as the evaluation takes.
  std::string baseline_records;
  std::vector<TaskInput> inputs;
  std::vector<TaskOutput> outputs;
  // Tasks that must have succeeded first, gates included: those that make
  // inputs, and their verifications. They are unique and in ascending order.
  std::vector<int> after;
  // Whether the declaration of its records has no label.
  bool lacks_labels = false;
  // What the user should know, such as that a baseline is left out.
  std::vector<std::string> notes;

  // Returns the first input with this role, or null if there is none.
  const TaskInput* Find(std::string_view input_role) const;
};

struct Plan {
  WorkflowFile file;
  // Each task comes after all that it waits for.
  std::vector<Task> tasks;
  // For each stage, its kMake and its kVerify task, or -1 if it has none.
  std::vector<int> make_task;
  std::vector<int> verify_task;
  // For each stage, the file that is its graph (Stage.use_file), or "".
  std::vector<std::string> given_graph;
  // For each stage, the variable that leaves it out, or "".
  std::vector<std::string> left_out_by;
};

// Resolves names, finds the order, and checks everything that can be checked
// before a run. An error has a line for each mistake: one sentence that starts
// with FILE:LINE.
absl::StatusOr<Plan> MakePlan(const WorkflowFile& file);

// --- Limits.

// Returns the limits that apply to a verification: the stage's, or else the
// evaluation's, the workflow's or the defaults. There are none without a
// baseline.
Gates EffectiveGates(const Plan& plan, const Task& task);

// Returns whether one of these places limits the drop of accuracy.
bool LimitsAccuracyDrop(const Plan& plan, const Task& task);

// --- Which tasks a run is about.

// Names of stages, as the flags of `requant run` give them.
struct StageChoice {
  // Stages to do, with what they need. If empty, all are done.
  std::set<std::string> only;
  // These stages and all after them are done again.
  std::set<std::string> from;
  // These stages are done again.
  std::set<std::string> force;
  bool force_all = false;
};

// Which tasks a run is about, by their indices.
struct TaskChoice {
  std::vector<bool> chosen;
  // Whether the task is done even if the cache has its result.
  std::vector<bool> forced;
};

// Fails if a name is not a stage's; the error names the nearest stage.
absl::Status CheckStageNames(const Plan& plan,
                             const std::set<std::string>& names);

TaskChoice ChooseTasks(const Plan& plan, const StageChoice& choice);

// --- Plans as lists, graphs and data (plan_text.cc).

// What would happen to a task if the workflow ran now.
struct TaskOutlook {
  // Whether an earlier run did it.
  bool cached = false;
  // Why it would run, as a clause: "it never ran here".
  std::string reason;
  // Whether it is among the chosen tasks.
  bool chosen = true;
};

// In the order of the plan's tasks, or empty if nothing is known about them.
using TaskOutlooks = std::vector<TaskOutlook>;

std::string PlanAsText(const Plan& plan, const TaskOutlooks& outlooks);
std::string PlanAsJson(const Plan& plan, const TaskOutlooks& outlooks);
// Return text for Graphviz, and for Markdown on GitHub.
std::string PlanAsDot(const Plan& plan, const TaskOutlooks& outlooks);
std::string PlanAsMermaid(const Plan& plan, const TaskOutlooks& outlooks);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_PLAN_H_
