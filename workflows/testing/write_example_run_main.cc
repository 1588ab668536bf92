// Writes the files of the example runs, to look at them in a browser.

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/program/flags.h"
#include "workflows/report/run_folder.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_runs.h"

namespace requant {
namespace {

constexpr char kProgram[] = "write_example_run";

int Run(const std::string& folder) {
  const std::vector<std::pair<std::string, RunRecord>> runs = {
      {"passed", PassedRun()},
      {"refused", RefusedRun()},
      {"interrupted", InterruptedRun()},
      {"one_stage", OneStageRun()}};
  for (const auto& [name, record] : runs) {
    const std::string path = absl::StrCat(folder, "/", name);
    std::error_code error;
    std::filesystem::create_directories(path, error);
    const absl::Status status = WriteRunFiles(record, path);
    if (!status.ok()) return ReportFailure(kProgram, status);
  }
  return kExitOk;
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  std::vector<std::string> positional;
  const requant::ProgramHelp help = {
      requant::kProgram,
      "writes the files of four example runs into a folder for each.",
      "write_example_run FOLDER",
      {__FILE__},
      ""};
  if (auto code = requant::ParseFlags(argc, argv, help, &positional)) {
    return *code;
  }
  if (positional.size() != 1) {
    return requant::ReportUsage(requant::kProgram, "give one folder");
  }
  return requant::Run(positional[0]);
}
