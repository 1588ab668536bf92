#ifndef REQUANT_WORKFLOWS_PLAN_PLAN_DRAFT_H_
#define REQUANT_WORKFLOWS_PLAN_PLAN_DRAFT_H_

// A plan while it is made: what the workflow's names mean, the tasks so far,
// and the mistakes that were found.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/message/text_proto.h"
#include "workflows/language/workflow_checks.h"
#include "workflows/language/workflow_file.h"
#include "workflows/plan/plan_tasks.h"
#include "workflows/workflow.pb.h"

namespace requant {

// As a sentence names a thing.
std::string InQuotes(std::string_view text);

class PlanDraft {
 public:
  // Reads the names of evaluations and stages, and which stages are left out or
  // given; there is no task yet. `file` must outlive the draft.
  explicit PlanDraft(const WorkflowFile& file);

  const Workflow& workflow() const { return workflow_; }
  const FieldPlaces& places() const { return places_; }
  FieldPlaces StagePlaces(int stage) const {
    return places_.Nested("stage", stage);
  }
  FieldPlaces EvaluationPlaces(int evaluation) const {
    return places_.Nested("evaluation", evaluation);
  }

  // --- Mistakes.

  FileProblems* problems() { return &problems_; }
  // What starts a sentence: "stage \"fuse\"".
  std::string StageTitle(int stage) const;
  std::string EvaluationTitle(int evaluation) const;
  CheckContext StageContext(int stage) {
    return {StageTitle(stage), &problems_};
  }
  // `sentence` goes on behind the stage's title.
  void Refuse(int line, int stage, std::string_view sentence);

  // --- Names.

  // -1 after telling that there is no such stage; `reader` starts the sentence.
  int FindStage(const std::string& name, int line, const std::string& reader);
  // Of a name that some stage has. One that is no name a stage may have is from
  // then on taken for the first stage's, so that no more is told of it.
  int StageNamed(const std::string& name) { return stages_[name]; }
  // -1: there is none.
  int FindEvaluation(const std::string& name) const;
  // Sorted.
  std::vector<std::string> EvaluationNames() const;
  bool IsLeftOut(int stage) const { return !plan_.left_out_by[stage].empty(); }
  bool IsGiven(int stage) const { return !plan_.given_graph[stage].empty(); }

  // --- Tasks.

  Plan* plan() { return &plan_; }
  Task& task(int index) { return plan_.tasks[index]; }
  // Behind all others; `stage` is that of which it is a task or, for a
  // baseline, of the first task that is compared with it. Its index.
  int AddTask(Task::Kind kind, int stage, const std::string& name);
  // The stage's graph, for a task that reads it.
  TaskInput GraphOf(int stage, const std::string& role) const;
  // Makes the task wait for the tasks of a stage.
  void Wait(int task, int stage) { waits_for_[task].insert(stage); }
  const std::set<int>& waits_for(int task) const { return waits_for_[task]; }
  // Puts each task behind all that it is `after`, otherwise as in the file. To
  // be called last, as indices of tasks change. Tasks that wait for each other,
  // each for the next; none when there is an order.
  std::vector<int> PutInOrder();

 private:
  void NameEvaluations();
  void NameStages();

  const Workflow& workflow_;
  const FieldPlaces places_;
  FileProblems problems_;
  Plan plan_;
  std::map<std::string, int> stages_;
  std::map<std::string, int> evaluations_;
  // By task: where it stands in the file, before the order is known.
  std::vector<std::tuple<int, int>> positions_;
  // By task: stages whose tasks it waits for.
  std::vector<std::set<int>> waits_for_;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_PLAN_DRAFT_H_
