#ifndef REQUANT_TESTS_SUPPORT_STOCK_PYTHON_H_
#define REQUANT_TESTS_SUPPORT_STOCK_PYTHON_H_

// A stock Python TensorFlow such as users' servers and scripts run.

#include <string>

#include "tests/support/program_runs.h"

namespace requant {

// Returns the folder, beside the C++ files, where ./requant test keeps it, as
// an entry for PYTHONPATH.
std::string PythonFolder();

// Returns whether it is there; says so if not.
bool HasPython();

// Runs a script with it and no variables but the given ones, of which a
// PYTHONPATH replaces its own.
ProgramRun RunPython(const Words& arguments, const Words& variables = {});

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_STOCK_PYTHON_H_
