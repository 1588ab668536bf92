#ifndef REQUANT_BASE_PROCESS_SIBLING_PROGRAM_H_
#define REQUANT_BASE_PROCESS_SIBLING_PROGRAM_H_

// Other programs of this project, found beside the running one.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Returns the path of program `name` of the package `package` ("transforms"),
// given the real path of the running program: ../PACKAGE/NAME as Bazel lays
// programs out, or NAME in the same folder, as where they are installed. The
// error names both.
absl::StatusOr<std::string> SiblingProgram(const std::string& own_path,
                                           const std::string& package,
                                           const std::string& name);

// Turns this process into the program `path`, which is looked for on PATH
// unless it has a slash, with `args`; returns only on an error. A program of
// ours then names itself `typed` in messages (ProgramName in
// base/program/flags.h), unless that is empty.
absl::Status BecomeProgram(const std::string& path,
                           const std::vector<std::string>& args,
                           const std::string& typed = "");

// Does the same for a program of this project.
absl::Status BecomeSiblingProgram(const std::string& package,
                                  const std::string& name,
                                  const std::vector<std::string>& args,
                                  const std::string& typed = "");

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_SIBLING_PROGRAM_H_
