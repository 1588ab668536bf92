#ifndef REQUANT_TESTS_SUPPORT_STOCK_PYTHON_H_
#define REQUANT_TESTS_SUPPORT_STOCK_PYTHON_H_

// For end-to-end tests: a stock Python TensorFlow, as users' servers and
// scripts run one. `./requant test` installs it.

#include <string>
#include <vector>

#include "graph/testing/program.h"

namespace requant {

// Whether it is installed. If not, says so aloud: the test is to be skipped.
bool HasStockPython();

// Runs `script` with `arguments` in an environment that has `variables`
// ("NAME=value") and no others that TensorFlow reads.
ProgramRun RunStockPython(const std::string& script,
                          const std::vector<std::string>& arguments,
                          const std::vector<std::string>& variables = {});

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_STOCK_PYTHON_H_
