#ifndef REQUANT_WORKFLOWS_WORKFLOW_FILE_H_
#define REQUANT_WORKFLOWS_WORKFLOW_FILE_H_

// Reading a workflow file (workflow.proto): its text, its variables, and where
// in the file everything is.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/text_format.h"
#include "workflows/workflow.pb.h"

namespace requant {

struct VariableValue {
  std::string value;
  // "default", "command line" or "environment".
  std::string from;
};

struct WorkflowFile {
  // As typed, and what it holds.
  std::string path;
  std::string content;
  // With the variables' values in place; a transform's own files
  // ("${log}") are left as they are. Paths start at the current folder.
  Workflow workflow;
  std::map<std::string, VariableValue> variables;
  // Lines of the file's fields, for messages.
  std::shared_ptr<const google::protobuf::TextFormat::ParseInfoTree> positions;
};

struct WorkflowSettings {
  // From --set name=value.
  std::map<std::string, std::string> variables;
  // The value of an environment variable; unset: std::getenv.
  std::optional<std::string> (*environment)(const std::string& name) = nullptr;
};

// Errors start with FILE:LINE where they are about one.
absl::StatusOr<WorkflowFile> ReadWorkflowFile(const std::string& path,
                                              const WorkflowSettings& settings);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_WORKFLOW_FILE_H_
