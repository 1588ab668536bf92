#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "base/terminal_guard.h"
#include "workflows/commands/commands.h"
#include "workflows/report/run_comparison.h"
#include "workflows/report/run_folder.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kCompareProgram[] = "requant compare_runs";

ProgramHelp CompareHelp() {
  ProgramHelp help;
  help.name = kCompareProgram;
  help.summary =
      "shows several runs side by side: their verdicts and figures, stage by "
      "stage, and what differed: files that they read, variables, versions, "
      "CPU. A RUN is a run's folder. Figures are called better or worse than "
      "the first run's only where that is certain.";
  help.usage =
      "requant compare_runs RUN RUN...\n"
      "requant compare_runs out/wide_deep/latest out/wide_deep_fast/latest "
      "--output=compare.html";
  help.flag_files = {OutputFlagFile()};
  help.aliases = {{"out", "output"}};
  help.descriptions = {{"output", "An HTML page to write (.html)."}};
  help.footer = "Exit codes: 0 done, 1 a folder is no run's, 2 wrong usage.";
  return help;
}

}  // namespace

int RunCompareRunsCommand(const std::vector<std::string>& args) {
  std::vector<std::string> folders;
  if (auto code = ParseFlags(args, CompareHelp(), &folders)) return *code;
  if (folders.size() < 2) {
    return ReportUsage(kCompareProgram, "name at least two runs' folders");
  }
  int exit_code = kExitOk;
  std::vector<ComparedRun> runs;
  std::vector<std::string> files;
  for (const std::string& folder : folders) {
    absl::StatusOr<ComparedRun> run = ReadRun(folder);
    if (run.ok()) {
      runs.push_back(*std::move(run));
      for (const char* file : {kResultsFile, kManifestFile}) {
        files.push_back(absl::StrCat(folder, "/", file));
      }
    } else {
      exit_code = ReportFailure(kCompareProgram, run.status());
    }
  }
  if (exit_code != kExitOk) return exit_code;
  const RunComparison comparison = CompareRuns(std::move(runs));
  if (!OutputFlag().empty()) {
    absl::Status written = CheckDistinct(files, {OutputFlag()});
    const fs::path page(OutputFlag());
    std::error_code error;
    if (written.ok() && fs::is_regular_file(page, error) &&
        page.extension() != ".html" && page.extension() != ".htm") {
      written = absl::AlreadyExistsError(absl::StrCat(
          OutputFlag(), " exists and is not named as an HTML page (.html)"));
    }
    if (written.ok()) {
      written = WriteFileAtomically(OutputFlag(), ComparisonHtml(comparison));
    }
    if (!written.ok()) return ReportFailure(kCompareProgram, written);
  }
  const bool tty = isatty(STDOUT_FILENO) != 0;
  const int columns = tty ? ProgressEnvironment::Stderr().columns() : 0;
  PrintStyled(stdout,
              ComparisonText(comparison, columns, tty && ColorIsWelcome()));
  return kExitOk;
}

}  // namespace requant
