#ifndef REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_FILE_H_
#define REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_FILE_H_

// Reading a workflow file (workflow.proto): its text, its variables, and where
// in the file everything is.

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/message/text_proto.h"
#include "google/protobuf/text_format.h"
#include "workflows/workflow.pb.h"

namespace requant {

struct VariableValue {
  std::string value;
  // "default", "command line" or "environment".
  std::string from;
};

struct WorkflowFile {
  // The path as typed, and the file's content.
  std::string path;
  std::string content;
  // The workflow with variables replaced by their values, paths that start at
  // the current folder, and a name. The transforms of a TransformStage have yet
  // to go through FillInFiles.
  Workflow workflow;
  // The variables that have a value.
  std::map<std::string, VariableValue> variables;
  std::shared_ptr<const google::protobuf::TextFormat::ParseInfoTree> positions;

  // Returns lines of the file's fields, for messages. Must not outlive this.
  FieldPlaces places() const {
    return FieldPlaces(Workflow::descriptor(), positions.get());
  }
};

// Reads a file. `settings` are the values of variables from --set name=value.
// Variables that only unused parts use need none: stages that are left out or
// whose graph is given, and evaluations that only such stages name. An error
// has a line for each mistake, one sentence that starts with FILE:LINE if it is
// about a line, and then the missing variables with their help.
absl::StatusOr<WorkflowFile> ReadWorkflowFile(
    const std::string& path,
    const std::map<std::string, std::string>& settings);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_WORKFLOW_FILE_H_
