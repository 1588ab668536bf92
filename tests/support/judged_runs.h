#ifndef REQUANT_TESTS_SUPPORT_JUDGED_RUNS_H_
#define REQUANT_TESTS_SUPPORT_JUDGED_RUNS_H_

// For tests: shipped workflows, run as people run them, and what they found.

#include <string>
#include <vector>

#include "graph/testing/program.h"

namespace requant {

// A model that the shipped workflows can run.
struct RunModel {
  std::string name;
  // What `requant run` needs: "--set=model=…".
  std::vector<std::string> settings;
};

// The embedded model, then those of tests/data/wide_deep_small_*.
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
  JudgedRun Run(const std::string& workflow,
                const std::vector<std::string>& arguments,
                const std::vector<std::string>& variables = {});

 private:
  TestFolder folder_;
  int runs_ = 0;
};

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_JUDGED_RUNS_H_
