#include "workflows/commands/format_flag.h"

#include <gflags/gflags.h>

#include <string>

DEFINE_string(format, "text",
              "How to print the result: text or json; a plan also as dot or "
              "mermaid.");

namespace requant {

const std::string& OutputFormatFlag() { return FLAGS_format; }

std::string OutputFormatFlagFile() { return __FILE__; }

}  // namespace requant
