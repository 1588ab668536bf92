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

// Returns what is wrong with a workflow's name, which is also that of a folder;
// "" for nothing.
std::string WorkflowNameProblem(const std::string& name);

// Returns what is wrong with the name of a file that a run leaves; "" for
// nothing. The file goes into folders together with what the runner writes.
std::string OutputNameProblem(const std::string& name);

// A message of the file that is checked.
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

// Checks the fields that the stage's kind needs, numbers, words, transforms,
// and that `verify` and `use_file` are where there is a graph.
void CheckStage(const Stage& stage, const CheckedPart& part);

void CheckGates(const Gates& gates, const CheckedPart& part);

// Checks gates, the expectation and what its error is relative to; that the
// evaluation exists is the caller's to check.
void CheckVerify(const Verify& verify, const CheckedPart& part);

void CheckEvaluation(const Evaluation& evaluation, const CheckedPart& part);

// Checks numbers, and that there is a declaration. Does not look at files.
void CheckRecords(const Records& records, const CheckedPart& part);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_CHECKS_H_
