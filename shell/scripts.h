#ifndef REQUANT_SHELL_SCRIPTS_H_
#define REQUANT_SHELL_SCRIPTS_H_

// Defines what `python SCRIPT ARGUMENT...` means in a session, in the image and
// in `requant shell`: the scripts that the published documents call are
// programs here.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace requant {

// A program and its package folder, as base/process/sibling_program.h takes
// them, and its arguments.
struct ScriptCommand {
  // The script's path as typed.
  std::string path;
  std::string folder;
  // "" for prepare_model.py, which python itself implements.
  std::string program;
  std::vector<std::string> arguments;
  // Whether other people's scripts also have this name; an existing file with
  // that name is then preferred.
  bool is_common_name = false;
};

// Returns what python's arguments request, or nullopt if that is not a known
// script. A script is known by its name, in any folder; python's own flags
// before it are skipped if they make no difference. The document's defaults
// precede the arguments unless these have the same flag.
std::optional<ScriptCommand> ScriptCommandOf(
    const std::vector<std::string>& args);

// Returns the path of the Python that `name` ("python3") means without this
// program: the first on `search_path`, a PATH, outside `own_folder`; otherwise
// one named python3 or python; "" if there is none.
std::string RealPython(const std::string& name, const std::string& search_path,
                       const std::string& own_folder);

// Returns the error for arguments that only a real Python could handle; it
// lists what is known.
absl::Status NoPythonError(const std::vector<std::string>& args);

}  // namespace requant

#endif  // REQUANT_SHELL_SCRIPTS_H_
