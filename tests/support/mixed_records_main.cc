// Writes the records of tests/data/mixed_layers to a file, for training its
// model and for trying commands by hand:
//   write_mixed_records train|calibration|eval ROWS FILE.npz

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "tests/support/mixed_records.h"

int main(int argc, char** argv) {
  const std::map<std::string, requant::MixedSplit> splits = {
      {"train", requant::MixedSplit::kTrain},
      {"calibration", requant::MixedSplit::kCalibration},
      {"eval", requant::MixedSplit::kEval}};
  if (argc != 4 || splits.count(argv[1]) == 0 || std::atoi(argv[2]) < 1) {
    std::fputs("usage: write_mixed_records train|calibration|eval ROWS FILE\n",
               stderr);
    return 2;
  }
  const absl::Status status = requant::WriteMixedRecords(
      argv[3], splits.at(argv[1]), std::atoi(argv[2]));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
