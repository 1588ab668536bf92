#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/message_text.h"
#include "base/program/flags.h"
#include "base/text/printable.h"
#include "workflows/commands/commands.h"
#include "workflows/report/run_folder.h"

namespace requant {
namespace {

constexpr char kVerifyProgram[] = "requant verify";

// Returns a line such as "changed output final.pb (12 bytes, were 34)".
std::string Line(const FileCheck& check) {
  std::string more = check.message;
  if (check.state == FileState::kGone) more = "not checked";
  return absl::StrFormat(
      "%-10s  %-6s  %s%s\n", FileStateName(check.state),
      check.input ? "input" : "output", Printable(check.path),
      more.empty() ? "" : absl::StrCat(" (", Printable(more), ")"));
}

// Returns a summary such as "12 files: 10 ok, 1 changed, 1 gone".
std::string Summary(const std::vector<FileCheck>& checks) {
  std::map<FileState, int> counts;
  for (const FileCheck& check : checks) ++counts[check.state];
  std::string text = CountText(checks.size(), "file");
  std::string_view separator = ": ";
  for (const auto& [state, count] : counts) {
    absl::StrAppend(&text, separator, count, " ", FileStateName(state));
    separator = ", ";
  }
  return text + "\n";
}

}  // namespace

int RunVerifyCommand(const std::vector<std::string>& args) {
  const ProgramHelp help = {
      kVerifyProgram,
      "digests the files of a run anew and says which of them are no longer "
      "what its manifest.json says: outputs in the manifest's folder, inputs "
      "where they were, as long as they are there.",
      "requant verify out/wide_deep/RUN/manifest.json\n"
      "requant verify out/wide_deep/RUN",
      {__FILE__},
      "Exit code: 0 when every output, and every input that is still there, is "
      "the same, else 1."};
  std::vector<std::string> positional;
  if (auto code = ParseFlags(args, help, &positional)) return *code;
  if (positional.size() != 1) {
    return ReportUsage(kVerifyProgram,
                       "give one manifest.json, or a run's folder");
  }
  std::string path = positional[0];
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) path += "/manifest.json";
  const absl::StatusOr<std::vector<FileCheck>> checks = CheckManifest(path);
  if (!checks.ok()) return ReportFailure(kVerifyProgram, checks.status());
  for (const FileCheck& check : *checks)
    std::fputs(Line(check).c_str(), stdout);
  std::fputs(Summary(*checks).c_str(), stdout);
  return AllWell(*checks) ? kExitOk : kExitFailed;
}

}  // namespace requant
