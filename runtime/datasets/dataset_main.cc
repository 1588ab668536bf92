// dataset: makes the records that Wide & Deep models read.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/text/nearest_name.h"
#include "base/version.h"
#include "runtime/datasets/criteo/dataset_commands.h"

namespace requant {
namespace {

const char* const kName = ProgramName();

std::string Help() {
  ProgramHelp help;
  help.name = kName;
  help.summary = "makes the records that Wide & Deep models read.";
  help.usage = "$0 COMMAND [FLAGS]\n$0 COMMAND --help";
  help.footer =
      "Commands:\n"
      "  preprocess  text files of the Criteo challenge to records\n"
      "  synthesize  rows like the challenge's, from a known distribution";
  return HelpText(help);
}

int Run(const std::vector<std::string>& args) {
  if (args.empty()) {
    std::fputs(Help().c_str(), stderr);
    return kExitUsage;
  }
  const std::vector<std::string> rest(args.begin() + 1, args.end());
  if (args[0] == "synthesize") return RunSynthesize(rest);
  if (args[0] == "preprocess") return RunPreprocess(rest);
  if (args[0] == "help" || args[0] == "--help" || args[0] == "-h") {
    std::fputs(Help().c_str(), stdout);
    return kExitOk;
  }
  if (args[0] == "--version") {
    std::printf("%s\n", VersionLine().c_str());
    return kExitOk;
  }
  return ReportUsage(
      kName, absl::StrCat("unknown command \"", args[0], "\"",
                          DidYouMean(args[0], {"preprocess", "synthesize"})));
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  requant::CleanUpWhenInterrupted(requant::kName);
  return requant::FinishOutput(requant::kName,
                               requant::Run({argv + 1, argv + argc}));
}
