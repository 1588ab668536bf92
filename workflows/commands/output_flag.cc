#include <gflags/gflags.h>

#include <string>

#include "workflows/commands/commands.h"

// This is the file's only flag, so that several commands can share the file.
DEFINE_string(output, "",
              "The folder to write; empty: out/WORKFLOW/TIME for a run, "
              "MODEL_workflow for a new workflow.");

namespace requant {

const std::string& OutputFolderFlag() { return FLAGS_output; }

std::string OutputFolderFlagFile() { return __FILE__; }

}  // namespace requant
