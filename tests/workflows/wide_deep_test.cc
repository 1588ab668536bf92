// The embedded Wide & Deep model as people use it: records, a frozen graph, and
// the accuracy that the training script recorded.

#include "base/files/file.h"
#include "re2/re2.h"
#include "tests/support/program_runs.h"

namespace requant::wide_deep_test {
namespace {

constexpr char kFolder[] = "workflows/wide_deep/";
constexpr char kOutput[] = "head/predictions/probabilities";

class EmbeddedWideDeepTest : public testing::Test {
 protected:
  void MakeRecords(int rows, const std::string& format = "tfrecord") {
    MustRun("runtime/datasets/dataset",
            {"synthesize", "--split=eval", absl::StrCat("--rows=", rows),
             "--format=" + format, "--out=" + folder_.Path("eval." + format)});
  }

  void Freeze() {
    MustRun("graph/freeze_graph",
            {absl::StrCat("--input_saved_model_dir=", kFolder, "model"),
             "--output_graph=" + folder_.Path("frozen.pb"),
             absl::StrCat("--output_node_names=", kOutput)});
  }

  // Evaluates the frozen graph.
  ProgramRun Evaluate(const std::string& declaration, const std::string& data,
                      const Words& more = {}) {
    return MustRun(
        "runtime/evaluate_graph",
        Joined({"--graph=" + folder_.Path("frozen.pb"),
                absl::StrCat("--dataset=", kFolder, declaration, ".textproto"),
                "--data=" + folder_.Path(data)},
               more));
  }

  TestFolder folder_;
};

TEST_F(EmbeddedWideDeepTest, HasTheAccuracyThatItsTrainingRecorded) {
  constexpr int kRecords = 100000;
  const std::string card =
      ReadFile(absl::StrCat(kFolder, "model.json")).value();
  const double recorded = NumberIn(
      card, absl::StrCat("\"combined\": \\[\\s*{\\s*\"records\": ", kRecords,
                         ",\\s*\"correct\": (\\d+)"));
  MakeRecords(kRecords);
  Freeze();
  const ProgramRun run = Evaluate("raw", "eval.tfrecord");
  ASSERT_THAT(run, Prints("Total test records           :  100000\n"));
  // A hundredth of a point.
  EXPECT_NEAR(NumberIn(run.out, kCorrectPredictions), recorded,
              kRecords / 10000);
}

TEST_F(EmbeddedWideDeepTest, IsTheSameFrozenAndAsASavedModel) {
  MakeRecords(2000);
  Freeze();
  const ProgramRun run = Evaluate(
      "raw", "eval.tfrecord",
      {absl::StrCat("--baseline=", kFolder, "model"), "--format=json"});
  double mean = 1;
  double max = 1;
  EXPECT_TRUE(RE2::PartialMatch(
      run.out,
      "\"output_change\":\\s*{\\s*\"mean\":\\s*([-+.e0-9]+),[^}]*\"max\":\\s*"
      "([-+.e0-9]+)",
      &mean, &max))
      << run.out;
  EXPECT_LE(mean, 1e-6);
  EXPECT_LE(max, 1e-6);
}

TEST_F(EmbeddedWideDeepTest, ReadsTheSameFromCsv) {
  MakeRecords(2000);
  MakeRecords(2000, "csv");
  Freeze();
  const double correct =
      NumberIn(Evaluate("raw", "eval.tfrecord").out, kCorrectPredictions);
  EXPECT_EQ(
      NumberIn(Evaluate("criteo_csv", "eval.csv").out, kCorrectPredictions),
      correct);
  EXPECT_GT(correct, 1000);
}

TEST(WideDeepGraph, TellsItsInputsAndItsOutput) {
  const auto summarize = [](const std::string& graph) {
    return RunProgram("transforms/summarize_graph",
                      {absl::StrCat("--in_graph=", kFolder, graph),
                       "--print_structure=false"});
  };
  EXPECT_THAT(summarize("model"), Prints("Found 39 possible inputs",
                                         "name=Placeholder_38", kOutput));
  // Step 1 of the published recipe, on the training graph, which has the label
  // too.
  const std::string output = absl::StrCat("(name=", kOutput);
  EXPECT_THAT(
      summarize("graph.pbtxt.gz"),
      Prints("Found 40 possible inputs: ", "Most likely output: " + output,
             testing::ContainsRegex(
                 absl::StrCat("Found [0-9]+ possible outputs: \\", output))));
}

}  // namespace
}  // namespace requant::wide_deep_test
