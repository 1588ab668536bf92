#ifndef REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_CHECKS_H_
#define REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_CHECKS_H_

// What can be said of one part of a workflow without knowing the others.

#include <string>
#include <string_view>

#include "base/message/text_proto.h"
#include "workflows/workflow.pb.h"

namespace requant {

// Returns whether a stage or an evaluation may have this name: letters, digits,
// "_", "-" and ".", starting with a letter or "_".
bool IsPlainName(std::string_view name);

// Returns what is wrong with a workflow's name, which is also a folder's name,
// or "".
std::string WorkflowNameProblem(const std::string& name);

// Returns what is wrong with the name of a file that a run leaves, or "". The
// file shares folders with files that the runner writes.
std::string OutputNameProblem(const std::string& name);

// A message in the file that is being checked.
struct CheckedPart {
  FieldPlaces places;
  // Starts each sentence, such as "stage \"fuse\"".
  std::string whose;
  FileProblems* problems;

  // Reports a mistake in a field of the message.
  void Refuse(const std::string& field, std::string_view sentence) const;
  CheckedPart Nested(const std::string& field, int index = -1) const {
    return {places.Nested(field, index), whose, problems};
  }
};

// Checks the fields that the stage's kind needs, numbers, words and transforms,
// and that only stages with a graph have `verify` and `use_file`.
void CheckStage(const Stage& stage, const CheckedPart& part);

void CheckGates(const Gates& gates, const CheckedPart& part);

// Checks gates, the expectation and what its error is relative to. The caller
// must check that the evaluation exists.
void CheckVerify(const Verify& verify, const CheckedPart& part);

void CheckEvaluation(const Evaluation& evaluation, const CheckedPart& part);

// Checks numbers, and that there is a declaration; does not look at files.
void CheckRecords(const Records& records, const CheckedPart& part);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_CHECKS_H_
