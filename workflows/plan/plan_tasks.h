#ifndef REQUANT_WORKFLOWS_PLAN_PLAN_TASKS_H_
#define REQUANT_WORKFLOWS_PLAN_PLAN_TASKS_H_

// What a plan consists of.

#include <string>
#include <vector>

#include "workflows/language/workflow_file.h"

namespace requant {

// A file or folder that a task reads.
struct TaskInput {
  // What it is to the task: "graph" (of a benchmark several, in order), "data",
  // "dataset", "ranges", "baseline", "baseline_predictions", "saved_model",
  // "checkpoint" (a path before ".index"), "plugin", or the name of a
  // transform's file. "declared_data" are the files that a declaration itself
  // names: nothing is told of them on a command line, but their content counts.
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

  // The stage's name, with "/verify" behind it for a verification, or
  // "<evaluation>/baseline".
  std::string name;
  Kind kind = Kind::kMake;
  // Index into workflow().stage(); for kBaseline -1.
  int stage = -1;
  // Index into workflow().evaluation(), for kVerify (unless the stage is a
  // CompareStage) and kBaseline.
  int evaluation = -1;
  // Of kBaseline: Baseline.records of the baseline that it runs, which may be a
  // verification's own; "": as many as the evaluation takes.
  std::string baseline_records;
  std::vector<TaskInput> inputs;
  std::vector<TaskOutput> outputs;
  // Tasks that must have succeeded first, gates and all: those that make
  // inputs, and their verifications. Ascending, without repetition.
  std::vector<int> after;
  // What the user should know of, such as a baseline that is left out.
  std::vector<std::string> notes;
};

struct Plan {
  WorkflowFile file;
  // Each behind all that it waits for.
  std::vector<Task> tasks;
  // By stage: its task of kMake and of kVerify; -1: it has none.
  std::vector<int> make_task;
  std::vector<int> verify_task;
  // By stage: the file that is its graph (Stage.use_file); "": it is made.
  std::vector<std::string> given_graph;
  // By stage: the variable that left it out; "": it is not.
  std::vector<std::string> left_out_by;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_PLAN_TASKS_H_
