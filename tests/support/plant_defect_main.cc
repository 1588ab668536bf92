// Plants a defect in what a stage of a workflow made: the program behind
// `requant run --tamper=STAGE="plant_defect KIND"`.

#include <gflags/gflags.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/program/flags.h"
#include "tests/defects/defect.h"

DEFINE_bool(list, false,
            "Print all kinds: name, workflow, the stage whose output is "
            "edited, the stage that must stop the run, the gate that must name "
            "it, and a sentence.");

namespace requant {
namespace {

constexpr char kName[] = "plant_defect";

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kName;
  help.summary =
      "edits the files that a stage made, in place, so that they have a known "
      "defect, and says what it did.";
  help.usage =
      "plant_defect bias_scale final_int8_wide_deep.pb\n"
      "plant_defect --list";
  help.flag_files = {__FILE__};
  return help;
}

void PrintList() {
  for (const Defect& defect : AllDefects()) {
    absl::PrintF("%s\t%s\t%s\t%s\t%s\t%s\n", defect.name,
                 defect.workflow == Defect::Workflow::kFast ? "wide_deep_fast"
                                                            : "wide_deep",
                 defect.planted_in, defect.stopped_at,
                 defect.gate.empty() ? "refused" : defect.gate,
                 defect.sentence);
  }
}

int Run(int argc, char** argv) {
  std::vector<std::string> arguments;
  if (const auto code = ParseFlags(argc, argv, Help(), &arguments)) {
    return *code;
  }
  if (FLAGS_list) {
    PrintList();
    return kExitOk;
  }
  if (arguments.size() < 2) {
    return ReportUsage(kName, "takes a kind of defect and files");
  }
  const std::vector<Defect> defects = AllDefects();
  const auto defect = std::find_if(
      defects.begin(), defects.end(),
      [&](const Defect& kind) { return kind.name == arguments[0]; });
  if (defect == defects.end()) {
    return ReportUsage(kName,
                       absl::StrCat("knows no defect \"", arguments[0], "\""));
  }
  arguments.erase(arguments.begin());
  const absl::StatusOr<std::string> done = Plant(*defect, arguments);
  if (!done.ok()) return ReportFailure(kName, done.status());
  absl::PrintF("%s: %s\n", defect->name, *done);
  return kExitOk;
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kName, requant::Run(argc, argv));
}
