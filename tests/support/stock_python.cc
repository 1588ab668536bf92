#include "tests/support/stock_python.h"

#include <cstdio>
#include <filesystem>

#include "graph/tensorflow_library.h"

namespace requant {

std::string PythonFolder() {
  return absl::StrCat(TensorFlowLibraryFolder().value(), "/../../python");
}

bool HasPython() {
  const bool has = std::filesystem::exists(PythonFolder() + "/installed");
  if (!has) {
    std::printf(
        "*** Python's TensorFlow is not installed: what needs it is skipped."
        "\n./requant test fetches it.\n");
  }
  return has;
}

ProgramRun RunPython(const Words& arguments, const Words& variables) {
  return RunProgram(
      "/usr/bin/env",
      Joined(Joined({"-i", "PATH=/usr/bin:/bin", "HOME=/nonexistent",
                     "PYTHONPATH=" + PythonFolder()},
                    variables),
             Joined({"/usr/bin/python3"}, arguments)));
}

}  // namespace requant
