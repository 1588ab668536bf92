// Writes the records of tests/data/mixed_layers to a file, for training it and
// for trying commands on it by hand.

#include <gflags/gflags.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/program/flags.h"
#include "tests/support/mixed_records.h"

DEFINE_string(split, "eval", "train, calibration or eval");
DEFINE_int32(rows, 20000, "How many records.");
DEFINE_string(out, "", "The .npz file to write.");

namespace {

constexpr char kName[] = "write_mixed_records";

requant::ProgramHelp Help() {
  requant::ProgramHelp help;
  help.name = kName;
  help.summary = "writes the records of tests/data/mixed_layers.";
  help.usage = "write_mixed_records --split=train --rows=60000 --out=train.npz";
  help.flag_files = {__FILE__};
  return help;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> positional;
  if (const auto code = requant::ParseFlags(argc, argv, Help(), &positional)) {
    return *code;
  }
  const std::map<std::string, requant::MixedSplit> splits = {
      {"train", requant::MixedSplit::kTrain},
      {"calibration", requant::MixedSplit::kCalibration},
      {"eval", requant::MixedSplit::kEval}};
  const auto split = splits.find(FLAGS_split);
  if (split == splits.end()) {
    return requant::ReportUsage(
        kName, absl::StrCat("--split is train, calibration or eval, not \"",
                            FLAGS_split, "\""));
  }
  if (FLAGS_rows < 1 || FLAGS_out.empty() || !positional.empty()) {
    return requant::ReportUsage(kName, "takes --rows of at least 1 and --out");
  }
  const absl::Status status =
      requant::WriteMixedRecords(FLAGS_out, split->second, FLAGS_rows);
  return status.ok() ? requant::kExitOk : requant::ReportFailure(kName, status);
}
