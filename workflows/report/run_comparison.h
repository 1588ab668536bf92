#ifndef REQUANT_WORKFLOWS_REPORT_RUN_COMPARISON_H_
#define REQUANT_WORKFLOWS_REPORT_RUN_COMPARISON_H_

// Several runs side by side, from what is in their folders: verdicts and
// figures, and what differed. All texts are printable (base/text/printable.h).

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/terminal/terminal_text.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {

struct ComparedStage {
  std::string name;
  // As in results.json; the verdict is empty if there is none.
  std::string state;
  std::string verdict;
  std::optional<int64_t> bytes;
  // By the keys of Figures() (workflows/report/figures.h).
  std::map<std::string, Estimate> figures;
  // The digests of what its verification read, but for the graph itself, and
  // which of the records it took. Figures of stages for which they are the same
  // can be compared.
  std::set<std::string> verified_on;
};

// Something that may differ between runs: a variable, a file that was read
// ("input", whose value has its digest), a stage, a version.
struct RunFact {
  // Empty for facts that are single.
  std::string kind;
  std::string name;
  std::string value;
};

struct ComparedRun {
  // The path as it was given.
  std::string path;
  std::string workflow;
  std::string outcome;
  std::string started;
  double seconds = 0;
  // What people must know about it, such as the gate that stopped it.
  std::vector<std::string> remarks;
  std::vector<ComparedStage> stages;
  // The last stage with a baseline, or "", and its speed and size against that.
  std::string final_stage;
  std::optional<Estimate> speed;
  std::optional<double> size_ratio;
  std::vector<RunFact> facts;
};

// Facts that are not the same in all runs.
struct RunDifference {
  std::string what;
  // For each run, in their order; empty if it has none.
  std::vector<std::string> values;
};

struct RunComparison {
  std::vector<ComparedRun> runs;
  std::vector<RunDifference> differences;
};

// Reads the results of a run from its folder. The error is one sentence.
absl::StatusOr<ComparedRun> ReadRun(const std::string& folder);

RunComparison CompareRuns(std::vector<ComparedRun> runs);

// Return the comparison as tables and lines for a terminal of that width (0: no
// limit), and as an HTML page that needs no other file. A figure is called
// better or worse than the first run's if both were measured on the same
// records and against the same baseline, and their 95 % intervals do not
// overlap.
std::string ComparisonText(const RunComparison& comparison, int columns,
                           bool color);
std::string ComparisonHtml(const RunComparison& comparison);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_RUN_COMPARISON_H_
