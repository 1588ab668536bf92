#include "benchmarks/frame.h"

#include <stdlib.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/process/subprocess.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"

namespace requant {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

}  // namespace

int BenchmarkMain(int argc, char** argv, const ProgramHelp& help,
                  absl::Status (*run)()) {
  std::vector<std::string> positional;
  if (const auto code = ParseFlags(argc, argv, help, &positional)) return *code;
  const absl::Status status = run();
  return status.ok() ? kExitOk : ReportFailure(help.name, status);
}

absl::Status WithFolder(
    const std::function<absl::Status(const std::string& folder)>& work) {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no folder for temporary files ($TMPDIR): ", error.message()));
  }
  std::string folder = parent / "requant_benchmark.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot create ", folder, ": ", std::strerror(errno)));
  }
  absl::Cleanup remove = [&] { std::filesystem::remove_all(folder); };
  return work(folder);
}

absl::StatusOr<std::vector<std::string>> RunSelf(
    const std::vector<std::string>& arguments) {
  ChildOptions options;
  REQUANT_ASSIGN_OR_RETURN(const std::string self, OwnPath());
  options.argv = {self};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> lines;
  options.on_report = [&](std::string_view line) { lines.emplace_back(line); };
  REQUANT_ASSIGN_OR_RETURN(const ChildResult result, RunChild(options));
  if (result.exit_code == 0 && !lines.empty()) return lines;
  return absl::InternalError(absl::StrCat("the child with ",
                                          absl::StrJoin(arguments, " "), " ",
                                          DescribeEnd(result, options)));
}

absl::StatusOr<Cost> CostOf(const std::function<absl::Status()>& work) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu = CpuSeconds();
  REQUANT_RETURN_IF_ERROR(work());
  return Cost{SecondsSince(start), CpuSeconds() - cpu};
}

const char* MetText(bool met) { return met ? "met" : "MISSED"; }

absl::StatusOr<std::vector<int>> NumbersOf(const std::string& flag,
                                           const std::string& list, int least) {
  std::vector<int> numbers;
  for (std::string_view text : absl::StrSplit(list, ',')) {
    int number;
    if (!absl::SimpleAtoi(text, &number) || number < least) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, ": \"", text, "\" is no number of at least ", least));
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace requant
