// Runs of the shipped workflows, with the gates as shipped, in which nothing is
// wrong: none is stopped, whatever the records and the model.

#include "absl/strings/str_join.h"
#include "base/program/flags.h"
#include "base/testing/fuzz_rounds.h"
#include "tests/support/workflow_runs.h"

namespace requant::clean_runs_test {
namespace {

struct CleanRun {
  RunModel model;
  std::string workflow;
  // All but the benchmark is needed for it.
  std::string last_stage;
  int data_seed;
};

// Lets every model with either workflow take its turn, each time with other
// records: two runs, or fifty in the long test.
std::vector<CleanRun> CleanRuns() {
  const std::vector<RunModel>& models = RunModels();
  const int count = FuzzRounds(2);
  std::vector<CleanRun> runs;
  for (int i = 0; i < count; ++i) {
    // Small models first: the default run is short.
    const RunModel& model = models[(i + 1) % models.size()];
    const bool fast = i % 2 != 0;
    runs.push_back({model, fast ? "wide_deep_fast" : "wide_deep",
                    fast ? "quantize" : "fuse", i + 2});
  }
  return runs;
}

class Clean : public testing::TestWithParam<CleanRun> {};

TEST_P(Clean, RunPasses) {
  Words arguments = GetParam().model.settings;
  arguments.push_back(absl::StrCat("--set=data_seed=", GetParam().data_seed));
  arguments.push_back(absl::StrCat("--only=", GetParam().last_stage));
  arguments.push_back("--set=eval_records=20480");
  arguments.push_back("--set=calibration_records=20480");
  const JudgedRun run = RunJudge().Run(GetParam().workflow, arguments);
  EXPECT_EQ(run.exit_code, kExitOk) << run.text;
  EXPECT_EQ(run.stopped_at, "") << absl::StrJoin(run.failed_gates, ", ");
  EXPECT_TRUE(run.uncertain.empty()) << absl::StrJoin(run.uncertain, "\n");
}

INSTANTIATE_TEST_SUITE_P(Runs, Clean, testing::ValuesIn(CleanRuns()),
                         [](const auto& info) {
                           return absl::StrCat(info.param.workflow, "_",
                                               info.param.model.name, "_",
                                               info.param.data_seed);
                         });

}  // namespace
}  // namespace requant::clean_runs_test
