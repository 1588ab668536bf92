#ifndef REQUANT_WORKFLOWS_PLAN_TASK_BASELINES_H_
#define REQUANT_WORKFLOWS_PLAN_TASK_BASELINES_H_

// What verifications are compared with: another stage, or a file, whose run is
// a task of its own.

#include <map>
#include <string>
#include <tuple>

#include "base/message/text_proto.h"
#include "workflows/plan/plan_draft.h"
#include "workflows/workflow.pb.h"

namespace requant {

class TaskBaselines {
 public:
  explicit TaskBaselines(PlanDraft* draft) : draft_(draft) {}

  // Adds to a verification by an evaluation the inputs that it is compared
  // with, unless it has no baseline, and the task that runs a baseline's file,
  // unless there is one. All tasks of stages, and the verification's records,
  // are in the draft; mistakes are told to it.
  void Add(int task);

 private:
  // A verification's baseline, and where the file says so.
  struct Chosen {
    const Baseline* baseline = nullptr;
    FieldPlaces places;
    bool is_evaluations = false;
  };

  Chosen Choose(int task) const;
  void AddStage(const Chosen& chosen, int task);
  void AddFile(const Chosen& chosen, int task);
  int TaskOf(int evaluation, const Baseline& baseline, int first_reader);
  bool SameRecords(int stage, int task) const;

  PlanDraft* const draft_;
  // By evaluation, file and records.
  std::map<std::tuple<int, std::string, std::string>, int> tasks_;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_TASK_BASELINES_H_
