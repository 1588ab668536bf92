#ifndef REQUANT_BENCHMARKS_FRAME_H_
#define REQUANT_BENCHMARKS_FRAME_H_

// Utilities that the benchmark programs share.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/program/flags.h"

namespace requant {

// Serves as main of a program without positional arguments: parses flags, calls
// `run` and reports its failure.
int BenchmarkMain(int argc, char** argv, const ProgramHelp& help,
                  absl::Status (*run)());

// Calls `work` with a new folder in the one for temporary files ($TMPDIR or
// /tmp), and removes it at the end.
absl::Status WithFolder(
    const std::function<absl::Status(const std::string& folder)>& work);

// Runs this program with other arguments in a separate process, and returns the
// lines that it reports (ReportToParent).
absl::StatusOr<std::vector<std::string>> RunSelf(
    const std::vector<std::string>& arguments);

// What some work took: seconds of wall time, and CPU seconds of all threads,
// which other work on the machine does not affect.
struct Cost {
  double wall = 0;
  double cpu = 0;
};
absl::StatusOr<Cost> CostOf(const std::function<absl::Status()>& work);

// Returns "met" or "MISSED".
const char* MetText(bool met);

// Returns the numbers of a list such as "10,20"; fails unless each is at least
// `least`.
absl::StatusOr<std::vector<int>> NumbersOf(const std::string& flag,
                                           const std::string& list, int least);

}  // namespace requant

#endif  // REQUANT_BENCHMARKS_FRAME_H_
