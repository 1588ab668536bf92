#ifndef REQUANT_WORKFLOWS_COMMANDS_FORMAT_FLAG_H_
#define REQUANT_WORKFLOWS_COMMANDS_FORMAT_FLAG_H_

#include <string>

namespace requant {

// --format, of every command that prints its result in one of several ways.
const std::string& OutputFormatFlag();

// The file that defines it, for ProgramHelp::flag_files.
std::string OutputFormatFlagFile();

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_FORMAT_FLAG_H_
