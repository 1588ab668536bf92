// Tests the tiny GPT-J, a model that keeps its variables: the shipped workflow,
// and its calibration and benchmark. The workflow's own gates check that the
// model otherwise stays the same.

#include <cmath>

#include "google/protobuf/struct.pb.h"
#include "tests/support/workflow_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::gptj_tiny_test {
namespace {

using google::protobuf::Value;

constexpr char kModel[] = "workflows/gptj_tiny/saved_model/1";

TEST(GptjTiny, PredictsMoreThanFrequenciesDo) {
  const ProgramRun run = RunProgram(
      "runtime/evaluate_graph", {absl::StrCat("--graph=", kModel),
                                 "--dataset=workflows/gptj_tiny/eval.textproto",
                                 "--batch_size=64", "--format=json"});
  ASSERT_THAT(run, Exits(0));
  const Value json = ParseJson(run.out);
  EXPECT_EQ(At(json, "positions_per_record").number_value(), 64);
  EXPECT_EQ(At(json, "metrics/records").number_value(), 512 * 64);
  const double perplexity =
      std::exp(At(json, "metrics/log_loss").number_value());
  // A model that knows only the frequency of each character cannot reach less
  // than 20.1 on these texts.
  EXPECT_LE(perplexity, 20.1 / 2);
  EXPECT_GT(perplexity, 1);
}

TEST(GptjTiny, LosesLittleWithCalibratedRanges) {
  const TestFolder folder;
  // The run finds no Python.
  ASSERT_THAT(RunProgram(kRequant,
                         {"run", "gptj_tiny_qdq", "--set=eval_records=192",
                          "--work_dir=" + folder.Path("work"),
                          "--out=" + folder.Path("out")},
                         {"PATH=/nowhere"}),
              Exits(0));
  const Value results = ParseJson(folder.Read("out/results.json"));
  // Returns a figure from a stage's comparison with the original.
  const auto figure = [&](const std::string& name, const std::string& path) {
    for (const Value& stage : At(results, "stages").list_value().values()) {
      if (At(stage, "name").string_value() != name) continue;
      return At(stage, "verification/comparison/" + path).number_value();
    }
    ADD_FAILURE() << "no stage " << name;
    return -1.0;
  };
  // The published ranges must do harm, or the share means nothing.
  const double mse = figure("fixed", "squared_change/mean");
  EXPECT_GT(mse, 0.1);
  EXPECT_LE(figure("calibrated", "squared_change/mean"), 0.01 * mse);
  EXPECT_GE(figure("calibrated", "agreement/share"), 0.98);
  EXPECT_LT(figure("fixed", "agreement/share"),
            figure("calibrated", "agreement/share"));
  EXPECT_THAT(folder.Read("out/speed.txt"),
              AllOf(HasSubstr("MSE of the output logits between two models = "),
                    HasSubstr("Top-1 agreement = ")));
}

TEST(GptjTiny, BenchmarkSaysWhatIsWrong) {
  const auto error = [](const std::string& flag) {
    return RunProgram("runtime/benchmark_graph",
                      {absl::StrCat("--saved_model=", kModel), flag});
  };
  EXPECT_THAT(error("--signature=serving_defualt"),
              Fails("has no signature \"serving_defualt\" (did you mean "
                    "\"serving_default\"?)"));
  EXPECT_THAT(error("--output=logit"), Fails("\"logit\""));
  EXPECT_THAT(
      error("--synthetic_ids=500"),
      Fails("made up for it (--synthetic_ids=500", "is not in [0, 43)"));
  EXPECT_THAT(error("--graph=x.pb"),
              Misused("--graph and --saved_model exclude each other"));
  EXPECT_THAT(error("--synthetic_ids=0"),
              Misused("--synthetic_ids must be 1 to"));
}

// Runs a calibration of the model with these flags.
ProgramRun Calibrate(const std::string& output, const Words& flags) {
  return RunProgram(
      "runtime/calibrate_graph",
      Joined({absl::StrCat("--graph=", kModel), "--output=" + output,
              "--dataset=workflows/gptj_tiny/calibration.textproto"},
             flags));
}

// All tensors of a batch together take 12 MB.
TEST(GptjTinyCalibration, IsTheSameInSeveralRunsPerBatch) {
  const TestFolder folder;
  for (const std::string held : {"512", "1"}) {
    EXPECT_THAT(Calibrate(folder.Path(held),
                          {"--qdq_ops=MatMul,BatchMatMulV2", "--max_records=32",
                           "--batch_size=16", "--held_mb=" + held}),
                AllOf(Prints("::"), Warns(Not(HasSubstr("not observed")))));
  }
  EXPECT_EQ(folder.Read("512"), folder.Read("1"));
}

TEST(GptjTinyCalibration, NamesOpsThatItCannotObserve) {
  const TestFolder folder;
  EXPECT_THAT(Calibrate(folder.Path("tiny.ranges"), {"--qdq_ops=Matmul"}),
              Fails("did you mean \"MatMul\"?"));
}

}  // namespace
}  // namespace requant::gptj_tiny_test
