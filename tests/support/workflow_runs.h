#ifndef REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_
#define REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_

// Support for tests of `requant run`: the published recipe on few records, a
// tiny workflow, and the files that runs leave.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/program_runs.h"

namespace requant {

inline constexpr char kRequant[] = "workflows/requant";

// Returns the arguments of a run of the published recipe on few records.
Words SmallRun(const std::string& work_dir, const std::string& out,
               const Words& more = {});

ProgramRun RunSmall(const std::string& work_dir, const std::string& out,
                    const Words& more = {});

// Returns the tasks that a run did according to its stderr, without those that
// it took from the cache.
std::set<std::string> TasksDone(const std::string& error);

// Returns the graphs and range tables in a run's folder, by name.
std::map<std::string, std::string> GraphsAndRanges(const std::string& out);
// Expects the graphs and range tables to be the same in both folders.
void ExpectSameGraphsAndRanges(const std::string& a, const std::string& b);

// A workflow that takes seconds and has outputs of every kind: texts, graphs, a
// SavedModel, ranges, predictions and verdicts. One of its gates fails. It is
// in its own folder, with the work folder "work" and the run's folder "out".
class TinyWorkflow {
 public:
  TinyWorkflow();

  // Runs the workflow to its end by `requant run`.
  ProgramRun Run(const Words& more = {}) const;
  // Returns the arguments of that command.
  Words Arguments() const;

  TestFolder folder;
};

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_
