// Tests runs of the shipped workflows with the gates as shipped: a run without
// defects passes, whatever the records and the model, and a run in which a
// stage has a defect (tests/defects) is stopped at the right stage.

#include <iostream>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/testing/fuzz_rounds.h"
#include "google/protobuf/struct.pb.h"
#include "tests/defects/defect.h"
#include "tests/support/workflow_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::shipped_gates_test {
namespace {

using google::protobuf::Value;

// A model that the shipped workflows can run.
struct Model {
  std::string name;
  // The arguments that `requant run` needs: "--set=model=…".
  Words settings;
};

// Returns the embedded model, then those of tests/data/wide_deep_small_*.
std::vector<Model> Models() {
  std::vector<Model> models = {{"embedded", {}}};
  for (const auto& [letter, buckets] : {std::pair("a", 200), {"b", 300}}) {
    const std::string folder =
        absl::StrCat("tests/data/wide_deep_small_", letter, "/");
    models.push_back({absl::StrCat("small_", letter),
                      {absl::StrCat("--set=model=", folder, "model"),
                       absl::StrCat("--set=ranges=", folder, "ranges.json"),
                       absl::StrCat("--set=buckets=", buckets)}});
  }
  return models;
}

struct JudgedRun {
  int exit_code = -1;
  // The run's output, for messages.
  std::string text;
  // The stage whose work or verification ended the run; "" if none did.
  std::string stopped_at;
  // The gates of that stage that failed.
  std::vector<std::string> failed_gates;
  // Gates of any stage with an uncertain verdict, as "stage: sentence".
  std::vector<std::string> uncertain;
};

bool Failed(const Value& work) {
  return work.has_struct_value() &&
         At(work, "state").string_value() == "failed";
}

void ReadStage(const Value& stage, JudgedRun* run) {
  const std::string& name = At(stage, "name").string_value();
  bool stopped = Failed(At(stage, "work"));
  std::vector<std::string> failed_gates;
  if (const Value& verification = At(stage, "verification");
      verification.has_struct_value()) {
    stopped |= Failed(At(verification, "work"));
    for (const Value& gate : At(verification, "gates").list_value().values()) {
      const std::string& verdict = At(gate, "verdict").string_value();
      if (verdict == "fail") {
        failed_gates.push_back(At(gate, "name").string_value());
      } else if (verdict == "inconclusive") {
        run->uncertain.push_back(
            absl::StrCat(name, ": ", At(gate, "sentence").string_value()));
      }
    }
  }
  if (run->stopped_at.empty() && (stopped || !failed_gates.empty())) {
    run->stopped_at = name;
    run->failed_gates = failed_gates;
  }
}

const char* NameOf(bool fast) { return fast ? "wide_deep_fast" : "wide_deep"; }

// Runs the published workflow, or the fast one, without the benchmark, in a
// work folder that runs may share, so that each does only what no earlier one
// has done. There are enough records for certain verdicts.
JudgedRun RunShipped(const TestFolder& folder, bool fast, const Model& model,
                     const Words& more, const Words& variables = {}) {
  static int runs = 0;
  const std::string out = folder.Path(absl::StrCat("run_", ++runs));
  const ProgramRun ended = RunProgram(
      kRequant,
      Joined(
          Joined({"run", absl::StrCat("workflows/", NameOf(fast), ".textproto"),
                  fast ? "--only=quantize" : "--only=fuse",
                  "--set=eval_records=20480", "--set=calibration_records=20480",
                  "--work_dir=" + folder.Path("work"), "--out=" + out},
                 model.settings),
          more),
      variables);
  JudgedRun run;
  run.exit_code = ended.exit_code;
  run.text = absl::StrCat(ended.out, ended.error);
  const auto json = ReadFile(absl::StrCat(out, "/results.json"));
  EXPECT_TRUE(json.ok()) << json.status() << "\n" << run.text;
  if (!json.ok()) return run;
  const Value results = ParseJson(*json);
  for (const Value& stage : At(results, "stages").list_value().values()) {
    ReadStage(stage, &run);
  }
  return run;
}

struct CleanRun {
  Model model;
  bool fast;
  int data_seed;
};

// Returns runs that cycle through the models and both workflows, each with
// other records: two runs, or fifty in the long test.
std::vector<CleanRun> CleanRuns() {
  const std::vector<Model> models = Models();
  const int count = FuzzRounds(2);
  std::vector<CleanRun> runs;
  for (int i = 0; i < count; ++i) {
    // Small models come first, so that the default run is short.
    runs.push_back({models[(i + 1) % models.size()], i % 2 != 0, i + 2});
  }
  return runs;
}

class Clean : public testing::TestWithParam<CleanRun> {};

TEST_P(Clean, RunPasses) {
  const TestFolder folder;
  const JudgedRun run =
      RunShipped(folder, GetParam().fast, GetParam().model,
                 {absl::StrCat("--set=data_seed=", GetParam().data_seed)});
  EXPECT_EQ(run.exit_code, kExitOk) << run.text;
  EXPECT_EQ(run.stopped_at, "") << absl::StrJoin(run.failed_gates, ", ");
  EXPECT_TRUE(run.uncertain.empty()) << absl::StrJoin(run.uncertain, "\n");
}

INSTANTIATE_TEST_SUITE_P(Runs, Clean, testing::ValuesIn(CleanRuns()),
                         [](const auto& info) {
                           return absl::StrCat(NameOf(info.param.fast), "_",
                                               info.param.model.name, "_",
                                               info.param.data_seed);
                         });

// Returns a few defects of each kind of stage in the default run, all of them
// in the long one.
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
  static void SetUpTestSuite() { folder_ = new TestFolder; }
  static void TearDownTestSuite() { delete folder_; }

  static inline TestFolder* folder_ = nullptr;
};

// A small model is used where the test must not take long.
TEST_P(PlantedDefect, StopsTheRun) {
  const Defect& defect = GetParam();
  Words variables;
  if (defect.needs_saturation) variables = {"ONEDNN_MAX_CPU_ISA=AVX2"};
  const JudgedRun run =
      RunShipped(*folder_, defect.workflow == Defect::Workflow::kFast,
                 Models()[FuzzRounds(1) > 1 ? 0 : 1],
                 {absl::StrCat("--tamper=", defect.planted_in,
                               "=tests/support/plant_defect ", defect.name)},
                 variables);
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
}  // namespace requant::shipped_gates_test
