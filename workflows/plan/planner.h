#ifndef REQUANT_WORKFLOWS_PLAN_PLANNER_H_
#define REQUANT_WORKFLOWS_PLAN_PLANNER_H_

// How MakePlan (plan.h) makes a plan.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "base/message/text_proto.h"
#include "workflows/language/stage_fields.h"
#include "workflows/language/workflow_checks.h"
#include "workflows/language/workflow_file.h"
#include "workflows/plan/plan.h"
#include "workflows/workflow.pb.h"

namespace requant {

// Returns `text` in quotes, for use in a sentence.
std::string InQuotes(std::string_view text);

// Returns what is wrong with a graph that no stage makes, or "".
std::string GraphPathProblem(const std::string& path);

class Planner {
 public:
  // `file` must outlive the planner.
  explicit Planner(const WorkflowFile& file);

  absl::StatusOr<Plan> Make();

 private:
  // --- Places in the file, and mistakes.

  FieldPlaces StagePlaces(int stage) const {
    return places_.Nested("stage", stage);
  }
  FieldPlaces EvaluationPlaces(int evaluation) const {
    return places_.Nested("evaluation", evaluation);
  }
  // Returns the start of a sentence, such as "stage \"fuse\"".
  std::string StageTitle(int stage) const;
  std::string EvaluationTitle(int evaluation) const;
  CheckedPart StagePart(int stage) {
    return {StagePlaces(stage), StageTitle(stage), &problems_};
  }
  CheckedPart EvaluationPart(int evaluation) {
    return {EvaluationPlaces(evaluation), EvaluationTitle(evaluation),
            &problems_};
  }
  CheckedPart RecordsPart(int stage);
  // Reports a mistake; `sentence` continues after the stage's title.
  void Refuse(int line, int stage, std::string_view sentence);

  // --- Names.

  void NameEvaluations();
  void NameStages();
  // Returns a stage's index, or -1 after reporting that it does not exist;
  // `reader` starts the sentence.
  int FindStage(const std::string& name, int line, const std::string& reader);
  // Returns -1 if there is none.
  int FindEvaluation(const std::string& name) const;
  bool IsLeftOut(int stage) const { return !plan_.left_out_by[stage].empty(); }
  bool IsGiven(int stage) const { return !plan_.given_graph[stage].empty(); }
  const Stage& StageOf(int task) const {
    return workflow_.stage(plan_.tasks[task].stage);
  }

  // --- Checks.

  void CheckWorkflow();
  // Checks that the evaluation exists.
  void CheckVerification(int stage, const Verify& verify,
                         const FieldPlaces& places);
  void CheckOutputNames();
  void CheckLayerGates(const Task& task);

  // --- Tasks.

  // Adds a task after all others and returns its index. `stage` is the task's
  // stage or, for a baseline, that of the first task that is compared with it.
  int AddTask(Task::Kind kind, int stage, const std::string& name);
  void AddTasks(int stage);
  void FillMakeTask(int task);
  void FillVerifyTask(int task);
  void WaitForReference(int task);
  // Makes the task wait for the tasks of a stage.
  void Wait(int task, int stage) { waits_for_[task].insert(stage); }
  void FillAfter(int task);
  // Puts each task after all that it waits for, otherwise in the file's order.
  // Must be called last because tasks' indices change. If there is no such
  // order, returns a cycle of tasks of which each waits for the next.
  std::vector<int> PutInOrder();
  std::vector<int> FindCycle(const std::vector<bool>& waits) const;
  void Renumber(const std::vector<int>& order);
  void ReportCycle(const std::vector<int>& cycle);

  // --- What tasks read (task_inputs.cc). All stages' tasks must exist. A task
  // waits for the stages that it reads; what cannot be found is reported.

  // Adds what the task's stage reads, except records.
  void AddStageInputs(int task);
  // Adds what the task's stage reads by a path rather than an Input.
  void AddStagePaths(int task);
  // Adds the declaration of records, the files that it names, and the data.
  void AddRecords(const Records& records, const CheckedPart& part, int task);
  void AddDeclaration(const Records& records, const FieldPlaces& places,
                      int task);
  void ResolveStage(const StageInput& input, int task);
  void ResolveFile(const StageInput& input, int task);
  // Returns the output of stage `source` that `input` means, or "" after
  // reporting that there is none.
  std::string ChooseOutput(const StageInput& input, int source, int reader);
  // Returns the stage's graph, for a task that reads it.
  TaskInput GraphOf(int stage, const std::string& role) const;

  // --- What verifications are compared with (task_inputs.cc): another stage,
  // or a file, whose run is a task of its own.

  // A verification's baseline, and where the file names it.
  struct ChosenBaseline {
    const Baseline* baseline;
    FieldPlaces places;
    bool is_evaluations;
  };
  // Adds the baseline of an evaluation's verification, if it has one, to the
  // verification's inputs, and a task that runs the baseline's file unless
  // there is one already. The verification must have its records.
  void AddBaseline(int task);
  void AddBaselineStage(const ChosenBaseline& chosen, int task);
  void AddBaselineFile(const ChosenBaseline& chosen, int task);
  // Returns the task that runs the file; `first_reader` is compared with it.
  int BaselineTask(int evaluation, const Baseline& baseline, int first_reader);

  const Workflow& workflow_;
  const FieldPlaces places_;
  FileProblems problems_;
  Plan plan_;
  std::map<std::string, int> stages_;
  std::map<std::string, int> evaluations_;
  // For each task, its position in the file, and its index.
  std::vector<std::tuple<int, int, int>> positions_;
  // For each task, the stages whose tasks it waits for.
  std::vector<std::set<int>> waits_for_;
  // What was said of declarations, which several tasks may read.
  std::set<std::string> declaration_problems_;
  // The baselines' tasks by evaluation, file and records.
  std::map<std::tuple<int, std::string, std::string>, int> baseline_tasks_;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_PLANNER_H_
