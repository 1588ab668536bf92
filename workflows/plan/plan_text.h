#ifndef REQUANT_WORKFLOWS_PLAN_PLAN_TEXT_H_
#define REQUANT_WORKFLOWS_PLAN_PLAN_TEXT_H_

// A plan for people: as a list, as a graph, as data.

#include <string>
#include <vector>

#include "workflows/plan/plan.h"

namespace requant {

// In the order of the plan's tasks, or empty when nothing is known of them.
using TaskOutlooks = std::vector<TaskOutlook>;

std::string PlanAsText(const Plan& plan, const TaskOutlooks& outlooks);
std::string PlanAsJson(const Plan& plan, const TaskOutlooks& outlooks);
// Return text for Graphviz, and for Markdown on GitHub.
std::string PlanAsDot(const Plan& plan, const TaskOutlooks& outlooks);
std::string PlanAsMermaid(const Plan& plan, const TaskOutlooks& outlooks);

// Returns "fuse feature columns into table lookups", or a few words of its
// kind.
std::string TaskSummary(const Plan& plan, const Task& task);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_PLAN_TEXT_H_
