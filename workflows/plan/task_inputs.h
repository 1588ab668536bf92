#ifndef REQUANT_WORKFLOWS_PLAN_TASK_INPUTS_H_
#define REQUANT_WORKFLOWS_PLAN_TASK_INPUTS_H_

// What the tasks of a plan read: which task makes it, or where it is.

#include <string>

#include "base/message/text_proto.h"
#include "workflows/plan/plan_draft.h"
#include "workflows/workflow.pb.h"

namespace requant {

// What is wrong with a graph that no stage makes; "" for nothing.
std::string GraphPathProblem(const std::string& path);

// The functions below add inputs to a task of the draft, all tasks of stages
// being in it. The task waits for the stages that it reads. What cannot be
// found is told to the draft.

// What the task's stage reads, except records.
void AddStageInputs(int task, PlanDraft* draft);

// What the task's stage reads by a path that is no Input.
void AddStagePaths(int task, PlanDraft* draft);

// Records: their declaration, the files that it names, and the data. `places`
// are those of `records`; `whose` starts a sentence about them, such as
// "stage \"fuse\"".
void AddRecords(const Records& records, const FieldPlaces& places,
                const std::string& whose, int task, PlanDraft* draft);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_TASK_INPUTS_H_
