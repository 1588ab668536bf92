#ifndef REQUANT_BASE_PROCESS_SIBLING_PROGRAM_H_
#define REQUANT_BASE_PROCESS_SIBLING_PROGRAM_H_

// Finds this project's other programs relative to the running one.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

// Returns the path of program `name` of the package `package` ("transforms"),
// given the real path of the running program: ../PACKAGE/NAME as Bazel places
// programs, or NAME in the same folder as in an installation. The error names
// both.
absl::StatusOr<std::string> SiblingProgram(const std::string& own_path,
                                           const std::string& package,
                                           const std::string& name);

// Turns this process into the program `path`, which is searched on PATH unless
// it has a slash, with `args`. Returns only on an error. If `typed` is not
// empty, a program of ours uses it as its name in messages (ProgramName in
// base/program/flags.h).
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
