#ifndef REQUANT_DOCKER_PYTHON_SCRIPTS_H_
#define REQUANT_DOCKER_PYTHON_SCRIPTS_H_

// What `python SCRIPT ARGUMENT...` means in the image, which has no Python:
// the scripts that the published recipe calls are programs here.

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace requant {

// A program and its room, as base/sibling_program.h takes them, and what it
// gets as arguments.
struct ScriptCommand {
  std::string room;
  std::string program;
  std::vector<std::string> arguments;
};

// The names of the known scripts, in order.
std::vector<std::string> KnownScripts();

// What python's arguments ask for: a script is known by its name, in whatever
// folder; python's own flags before it are skipped when they would not matter.
// The error says what is known.
absl::StatusOr<ScriptCommand> ScriptCommandOf(
    const std::vector<std::string>& args);

}  // namespace requant

#endif  // REQUANT_DOCKER_PYTHON_SCRIPTS_H_
