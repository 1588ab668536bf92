#include <gflags/gflags.h>

#include <string>

#include "workflows/commands/commands.h"

// This is the file's only flag, so that other commands can share the file.
DEFINE_string(output, "",
              "Of run: the folder for the results; empty: out/WORKFLOW/TIME. "
              "Of init: the folder for the files; empty: MODEL_workflow. "
              "Of compare_runs: an HTML page to write.");

namespace requant {

const std::string& OutputFlag() { return FLAGS_output; }

std::string OutputFlagFile() { return __FILE__; }

}  // namespace requant
