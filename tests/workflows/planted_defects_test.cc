// Runs of the shipped workflows, with the gates as shipped, in which one stage
// has a defect (tests/defects): each must be stopped at the right stage.

#include <iostream>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "base/program/flags.h"
#include "base/testing/fuzz_rounds.h"
#include "tests/defects/defect.h"
#include "tests/support/workflow_runs.h"

namespace requant::planted_defects_test {
namespace {

// Returns a few, of each kind of stage, in the default run; all of them in the
// long one.
std::vector<Defect> ChosenDefects() {
  std::vector<Defect> defects = AllDefects();
  if (FuzzRounds(1) > 1) return defects;
  const std::vector<std::string_view> few = {
      "half_precision", "next_column", "log_of_sister_model", "bias_scale"};
  defects.erase(std::remove_if(defects.begin(), defects.end(),
                               [&](const Defect& defect) {
                                 return !absl::c_linear_search(few,
                                                               defect.name);
                               }),
                defects.end());
  return defects;
}

class PlantedDefect : public testing::TestWithParam<Defect> {
 protected:
  static void SetUpTestSuite() { runner_ = new RunJudge; }
  static void TearDownTestSuite() {
    delete runner_;
    runner_ = nullptr;
  }

  // Uses enough records for verdicts that are certain, and a small model where
  // it must not take long.
  static JudgedRun Run(const Defect& defect) {
    const bool fast = defect.workflow == Defect::Workflow::kFast;
    Words arguments = RunModels()[FuzzRounds(1) > 1 ? 0 : 1].settings;
    for (const std::string& argument :
         {absl::StrCat("--only=", fast ? "quantize" : "fuse"),
          std::string("--set=eval_records=20480"),
          std::string("--set=calibration_records=20480"),
          absl::StrCat("--tamper=", defect.planted_in,
                       "=tests/support/plant_defect ", defect.name)}) {
      arguments.push_back(argument);
    }
    Words variables;
    if (defect.needs_saturation) variables = {"ONEDNN_MAX_CPU_ISA=AVX2"};
    return runner_->Run(fast ? "wide_deep_fast" : "wide_deep", arguments,
                        variables);
  }

  static inline RunJudge* runner_ = nullptr;
};

TEST_P(PlantedDefect, StopsTheRun) {
  const Defect& defect = GetParam();
  const JudgedRun run = Run(defect);
  EXPECT_EQ(run.stopped_at, defect.stopped_at) << run.text;
  if (defect.gate.empty()) {
    EXPECT_EQ(run.exit_code, kExitFailed) << run.text;
    return;
  }
  EXPECT_EQ(run.exit_code, kExitAccuracyGate) << run.text;
  EXPECT_THAT(run.failed_gates, Contains(defect.gate)) << run.text;
  std::cout << defect.name << ": " << absl::StrJoin(run.failed_gates, ", ")
            << "\n";
}

INSTANTIATE_TEST_SUITE_P(Runs, PlantedDefect,
                         testing::ValuesIn(ChosenDefects()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace requant::planted_defects_test
