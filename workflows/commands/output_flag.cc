#include <gflags/gflags.h>

#include <string>

#include "workflows/commands/commands.h"

// This is the file's only flag, so that other commands can share the file.
// Each command describes it in its help.
DEFINE_string(output, "", "Where to write.");

namespace requant {

const std::string& OutputFlag() { return FLAGS_output; }

std::string OutputFlagFile() { return __FILE__; }

}  // namespace requant
