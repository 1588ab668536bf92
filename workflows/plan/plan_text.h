#ifndef REQUANT_WORKFLOWS_PLAN_PLAN_TEXT_H_
#define REQUANT_WORKFLOWS_PLAN_PLAN_TEXT_H_

// A plan for people: as a list, as a graph, as data.

#include <string>
#include <vector>

#include "workflows/plan/plan.h"

namespace requant {

// What would become of a task if the workflow ran now.
struct TaskState {
  // Done by a former run.
  bool cached = false;
  // Why it would run, as a clause: "never ran", "its input graph changed".
  std::string why;
  // Whether it is among those that the run is about.
  bool asked_for = true;
};

// `states` are in the order of the plan's tasks, or empty when nothing is known
// of them.
std::string PlanAsText(const Plan& plan, const std::vector<TaskState>& states);
std::string PlanAsJson(const Plan& plan, const std::vector<TaskState>& states);
// For Graphviz, and for Markdown on GitHub.
std::string PlanAsDot(const Plan& plan, const std::vector<TaskState>& states);
std::string PlanAsMermaid(const Plan& plan,
                          const std::vector<TaskState>& states);

// "fuse feature columns into table lookups", or a few words of its kind.
std::string TaskSummary(const Plan& plan, const Task& task);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_PLAN_TEXT_H_
