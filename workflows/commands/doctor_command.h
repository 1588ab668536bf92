#ifndef REQUANT_WORKFLOWS_COMMANDS_DOCTOR_COMMAND_H_
#define REQUANT_WORKFLOWS_COMMANDS_DOCTOR_COMMAND_H_

#include <string>
#include <vector>

namespace requant {

// The word that, as this program's first argument, makes it the child process
// of `requant doctor` which loads TensorFlow (RunTensorFlowCheckCommand).
inline constexpr char kTensorFlowCheckCommand[] = "__tensorflow_check";

// `requant doctor`: looks at the machine and prints what it found. Returns the
// exit code: 0 without an error among the checks.
int RunDoctorCommand(const std::vector<std::string>& args);

// Loads TensorFlow, runs an int8 layer, and reports to the parent on the way.
int RunTensorFlowCheckCommand(const std::vector<std::string>& args);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_DOCTOR_COMMAND_H_
