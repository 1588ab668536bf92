#ifndef REQUANT_SHELL_SCRIPTS_H_
#define REQUANT_SHELL_SCRIPTS_H_

// What `python SCRIPT ARGUMENT...` means in a session, in the image and in
// `requant shell`: the scripts that the published documents call are programs
// here.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace requant {

// A program and its package folder, as base/process/sibling_program.h takes
// them, and what it gets as arguments.
struct ScriptCommand {
  // As it was typed.
  std::string path;
  std::string folder;
  // "" for prepare_model.py, which python itself is.
  std::string program;
  std::vector<std::string> arguments;
  // Whether other people's scripts have this name too: a file of that name is
  // then meant, if there is one.
  bool is_common_name = false;
};

// Returns what python's arguments ask for, nullopt if that is no known script.
// A script is known by its name, in whatever folder; python's own flags before
// it are skipped when they would not matter. The document's defaults stand
// before the arguments, unless these have the same flag.
std::optional<ScriptCommand> ScriptCommandOf(
    const std::vector<std::string>& args);

// Returns the path of the Python that `name` ("python3") is without this
// program: the first on `search_path`, a PATH, outside of `own_folder`; one of
// another name, python3 or python, if need be; "" if there is none.
std::string RealPython(const std::string& name, const std::string& search_path,
                       const std::string& own_folder);

// Returns the error for arguments that only a real Python could do something
// with; it says what is known.
absl::Status NoPythonError(const std::vector<std::string>& args);

}  // namespace requant

#endif  // REQUANT_SHELL_SCRIPTS_H_
