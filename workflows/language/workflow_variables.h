#ifndef REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_VARIABLES_H_
#define REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_VARIABLES_H_

// The variables of a workflow file: what values they have, and "${name}" in the
// fields that use them.

#include <map>
#include <optional>
#include <string>

#include "base/message/text_proto.h"
#include "workflows/workflow.pb.h"

namespace requant {

struct VariableValue {
  std::string value;
  // "default", "command line" or "environment".
  std::string from;
};

struct WorkflowSettings {
  // The values from --set name=value.
  std::map<std::string, std::string> variables;
  // Returns an environment variable's value; unset: std::getenv.
  std::optional<std::string> (*environment)(const std::string& name) = nullptr;
};

// Puts values where the fields of type bytes have "${name}", and paths from the
// current folder where fields are paths; `folder` is the workflow file's ("" or
// with a slash at its end). Returns the variables that have a value. Variables
// that are used by nothing that runs need none: stages that are left out, those
// whose graph is given, and evaluations that only such stages name.
//
// `missing` gets one line, with the help, for each variable that needs a value
// and has none.
std::map<std::string, VariableValue> ExpandVariables(
    const WorkflowSettings& settings, const std::string& folder,
    const FieldPlaces& places, Workflow* workflow, FileProblems* problems,
    std::string* missing);

// Returns `transforms` of a TransformStage with paths for its files' names:
// "${log}" becomes paths.at("log"), in double quotes unless it is in some, and
// "$${" becomes "${". A path may contain anything.
std::string FillInFiles(const std::string& transforms,
                        const std::map<std::string, std::string>& paths);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_VARIABLES_H_
