#ifndef REQUANT_WORKFLOWS_PLAN_EFFECTIVE_GATES_H_
#define REQUANT_WORKFLOWS_PLAN_EFFECTIVE_GATES_H_

// Which limits hold for a verification, of all that a workflow sets.

#include <string>

#include "workflows/plan/plan_tasks.h"
#include "workflows/workflow.pb.h"

namespace requant {

// The limits that hold for a verification: the stage's, then the evaluation's,
// then the workflow's, then the defaults. None without a baseline.
Gates EffectiveGates(const Plan& plan, const Task& task);

// Whether one of these places limits the drop of accuracy.
bool LimitsAccuracyDrop(const Plan& plan, const Task& task);

// The first gate on layers that holds for a verification whose layers are not
// compared, so that it would be for naught; "": there is none.
std::string UselessLayerGate(const Plan& plan, const Task& task);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_EFFECTIVE_GATES_H_
