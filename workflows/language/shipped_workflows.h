#ifndef REQUANT_WORKFLOWS_LANGUAGE_SHIPPED_WORKFLOWS_H_
#define REQUANT_WORKFLOWS_LANGUAGE_SHIPPED_WORKFLOWS_H_

// The workflow files that come with Requant, which people name without a path:
// `requant run wide_deep_fast`.

#include <string>

#include "absl/status/statusor.h"

namespace requant {

// The workflow that runs when none is named.
inline constexpr char kDefaultWorkflow[] = "wide_deep";

// Where shipped workflows may be; tests have places of their own.
struct WorkflowPlaces {
  // The folder that contains workflows/, as ./requant sets it, or "" if it is
  // not set.
  std::string home;
  // The current folder, or a path to it.
  std::string current = ".";
  // The real path of the running program.
  std::string program;

  // Returns the places from the variable REQUANT_HOME and this process.
  static WorkflowPlaces OfThisProcess();
};

// Returns the path of the file that `name` means: a shipped workflow by its
// bare name, or the path itself if it has a slash, ends in ".textproto" or is a
// file here. "" means the default workflow. The error for an unknown name
// suggests the nearest one and lists them all; paths are not checked.
absl::StatusOr<std::string> FindWorkflow(
    const std::string& name,
    const WorkflowPlaces& places = WorkflowPlaces::OfThisProcess());

// Returns a line for each shipped workflow, its name and its summary, indented
// by two blanks; or nothing if they are not found.
std::string ShippedWorkflowsText(
    const WorkflowPlaces& places = WorkflowPlaces::OfThisProcess());

// Returns the folder of the shipped workflows: home's, else the current
// folder's, else the nearest above the program.
absl::StatusOr<std::string> ShippedWorkflowsFolder(
    const WorkflowPlaces& places = WorkflowPlaces::OfThisProcess());

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_SHIPPED_WORKFLOWS_H_
