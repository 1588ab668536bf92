#include "tests/support/stock_python.h"

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/program.h"

namespace requant {
namespace {

// Where ./requant keeps both: beside TensorFlow's C++ files.
std::string PythonFolder() {
  return absl::StrCat(TensorFlowLibraryFolder().value(), "/../../python");
}

}  // namespace

bool HasStockPython() {
  if (std::filesystem::exists(PythonFolder() + "/installed")) return true;
  std::printf(
      "*** Python's TensorFlow is not installed: what needs it is skipped.\n"
      "./requant test fetches it.\n");
  return false;
}

ProgramRun RunStockPython(const std::string& script,
                          const std::vector<std::string>& arguments,
                          const std::vector<std::string>& variables) {
  std::vector<std::string> line = {"-i", "PATH=/usr/bin:/bin",
                                   absl::StrCat("PYTHONPATH=", PythonFolder())};
  line.insert(line.end(), variables.begin(), variables.end());
  line.insert(line.end(), {"/usr/bin/python3", "-c", script});
  line.insert(line.end(), arguments.begin(), arguments.end());
  return RunProgram("/usr/bin/env", line);
}

}  // namespace requant
