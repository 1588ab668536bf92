#ifndef REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_
#define REQUANT_TESTS_SUPPORT_WORKFLOW_RUNS_H_

// For tests of `requant run`: the workflows that the repository carries, a tiny
// one, and what runs found.

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

// A model that the shipped workflows can run.
struct RunModel {
  std::string name;
  // What `requant run` needs: "--set=model=…".
  Words settings;
};

// Returns the embedded model, then those of tests/data/wide_deep_small_*.
const std::vector<RunModel>& RunModels();

struct JudgedRun {
  int exit_code = -1;
  // What it printed, for messages.
  std::string text;
  // The stage whose work or verification ended the run; "": none did.
  std::string stopped_at;
  // The gates of that stage that failed.
  std::vector<std::string> failed_gates;
  // Gates of any stage that are not certain, as "stage: sentence".
  std::vector<std::string> uncertain;
};

// Runs `requant run` on a shipped workflow, such as "wide_deep", in a work
// folder that all runs of this object share, so that each does only what none
// before it has done. `variables` are added to the environment.
class RunJudge {
 public:
  JudgedRun Run(const std::string& workflow, const Words& arguments,
                const Words& variables = {});

 private:
  TestFolder folder_;
  int runs_ = 0;
};

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
