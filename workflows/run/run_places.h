#ifndef REQUANT_WORKFLOWS_RUN_RUN_PLACES_H_
#define REQUANT_WORKFLOWS_RUN_RUN_PLACES_H_

// Where in a RunRecord the tasks of a plan are written down.

#include "workflows/plan/plan.h"
#include "workflows/run/run_machine.h"
#include "workflows/run/run_observer.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// The record before anything ran: workflow, variables, machine and stages.
RunRecord StartRecord(const Plan& plan, const RunMachine& machine);

TaskPlace PlaceOf(const Plan& plan, int task);

// The task's own record, in a record of the same plan.
TaskRecord* WorkOf(const Plan& plan, int task, RunRecord* record);
const TaskRecord& WorkOf(const Plan& plan, int task, const RunRecord& record);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_RUN_PLACES_H_
