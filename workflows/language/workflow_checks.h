#ifndef REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_CHECKS_H_
#define REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_CHECKS_H_

// What can be said of one part of a workflow without knowing the others.

#include <string>
#include <string_view>

#include "base/message/text_proto.h"
#include "workflows/workflow.pb.h"

namespace requant {

// Whether a stage or an evaluation may be called so: letters, digits, "_", "-"
// and ".", starting with a letter or "_".
bool IsPlainName(std::string_view name);

// What is wrong with a workflow's name, which is also that of a folder; "" for
// nothing.
std::string WorkflowNameProblem(const std::string& name);

// What is wrong with the name of a file that a run leaves; "" for nothing. It
// goes into folders together with what the runner itself writes.
std::string OutputNameProblem(const std::string& name);

// `whose` starts each sentence, such as "stage \"fuse\"".
struct CheckContext {
  std::string whose;
  FileProblems* problems;
};

void CheckRelativeMse(const RelativeMse& relative, const FieldPlaces& places,
                      const CheckContext& context);

// Fields that the stage's kind needs, numbers, words, transforms, and that
// `verify` and `use_file` are where there is a graph.
void CheckStage(const Stage& stage, const FieldPlaces& places,
                const CheckContext& context);

void CheckGates(const Gates& gates, const FieldPlaces& places,
                const CheckContext& context);

void CheckExpect(const Expect& expect, const FieldPlaces& places,
                 const CheckContext& context);

// Numbers, and that there is a declaration. Files are not looked at.
void CheckRecords(const Records& records, const FieldPlaces& places,
                  const CheckContext& context);

// A number from 1 on, unless it is unset.
void CheckCount(const std::string& value, const FieldPlaces& places,
                const std::string& field, const CheckContext& context);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_CHECKS_H_
