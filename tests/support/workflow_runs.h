#ifndef REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_
#define REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_

// For tests of `requant run`: the published recipe on few records, a tiny
// workflow, and what runs left.

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

// Returns the tasks that a run did, by what it says on stderr. Those that it
// took from the cache are not among them.
std::set<std::string> TasksDone(const std::string& error);

// Returns the graphs and range tables in a run's folder, by name.
std::map<std::string, std::string> GraphsAndRanges(const std::string& out);
// Expects them to be the same in both folders.
void ExpectSameGraphsAndRanges(const std::string& a, const std::string& b);

// A workflow that takes seconds and has an output of every kind: texts, graphs,
// a SavedModel, ranges, predictions and verdicts. One of its gates fails. It is
// in a folder of its own, with the work folder "work" and the run's folder
// "out".
class TinyWorkflow {
 public:
  TinyWorkflow();

  // Runs `requant run` of the workflow, to its end.
  ProgramRun Run(const Words& more = {}) const;
  // Returns the arguments of that.
  Words Arguments() const;

  TestFolder folder;
};

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_
