// Tests the embedded Wide & Deep model as people use it: records, a frozen
// graph, and the accuracy that the training script recorded.

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "tests/support/recipe.h"

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
  // The tolerance is a hundredth of a point.
  EXPECT_NEAR(NumberIn(run.out, kCorrectPredictions), recorded,
              kRecords / 10000);
}

TEST_F(EmbeddedWideDeepTest, IsTheSameFrozenAndAsASavedModel) {
  MakeRecords(2000);
  Freeze();
  const ProgramRun run = Evaluate(
      "raw", "eval.tfrecord",
      {absl::StrCat("--baseline=", kFolder, "model"), "--format=json"});
  EXPECT_LE(
      NumberIn(run.out, "\"output_change\":\\s*{[^}]*\"max\":\\s*([-+.e0-9]+)"),
      1e-6);
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

// Removes the categories from a third of a text file's rows, because the
// challenge's files have empty fields too.
std::string WithoutSomeCategories(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (size_t row = 0; row + 1 < lines.size(); row += 3) {
    std::vector<std::string> fields = absl::StrSplit(lines[row], ',');
    std::fill(fields.begin() + 14, fields.end(), "");
    lines[row] = absl::StrJoin(fields, ",");
  }
  return absl::StrJoin(lines, "\n");
}

// The original's preprocessing and training mapped these to different words.
TEST_F(EmbeddedWideDeepTest, TakesMissingValuesAsPreprocessingDoes) {
  WideDeepRecipe recipe(1, 1);
  recipe.MakeFloatGraph();
  MakeRecords(1500, "csv");
  const std::string text = folder_.Write(
      "gaps.csv", WithoutSomeCategories(folder_.Read("eval.csv")));
  const std::string records = folder_.Path("eval.tfrecords");
  MustRun("runtime/datasets/dataset",
          {"preprocess", absl::StrCat("--ranges=", kFolder, "ranges.json"),
           "--out=" + records, text});
  const auto log_loss = [&](const char* graph, const std::string& declaration,
                            const std::string& data) {
    folder_.Write("frozen.pb", recipe.folder.Read(graph));
    return NumberIn(Evaluate(declaration, data, {"--format=json"}).out,
                    "\"log_loss\": ([-+.e0-9]+)");
  };
  EXPECT_NEAR(log_loss(kFloatGraph, "preprocessed", "eval.tfrecords"),
              log_loss(kTrimmedGraph, "criteo_csv", "gaps.csv"), 1e-6);
}

TEST(WideDeepGraph, TellsItsInputsAndItsOutput) {
  const auto summarize = [](const std::string& graph) {
    return RunProgram("transforms/summarize_graph",
                      {absl::StrCat("--in_graph=", kFolder, graph),
                       "--print_structure=false"});
  };
  EXPECT_THAT(summarize("model"), Prints("Found 39 possible inputs",
                                         "name=Placeholder_38", kOutput));
  // This is step 1 of the published recipe, on the training graph, which also
  // has the label.
  const std::string output = absl::StrCat("(name=", kOutput);
  EXPECT_THAT(
      summarize("graph.pbtxt.gz"),
      Prints("Found 40 possible inputs: ", "Most likely output: " + output,
             testing::ContainsRegex(
                 absl::StrCat("Found [0-9]+ possible outputs: \\", output))));
}

}  // namespace
}  // namespace requant::wide_deep_test
