// featurecolumn_graph_optimization as the published recipe's fourth step calls
// it, and what its result makes of preprocessed records.

#include "tests/support/program_runs.h"

namespace requant::featurecolumn_graph_optimization_test {
namespace {

constexpr char kProgram[] = "transforms/featurecolumn_graph_optimization";
constexpr char kColumns[] = "transforms/testdata/columns.pb.gz";
constexpr char kModel[] = "workflows/wide_deep/";
constexpr char kOutput[] = "head/predictions/probabilities";

class FeatureColumnProgram : public testing::Test {
 protected:
  ProgramRun Optimize(const std::string& in, const std::string& fuse,
                      const std::string& output = kOutput) {
    return RunProgram(kProgram, {"--input-graph", in, "--output-graph",
                                 folder_.Path("out.pb"), "--output-nodes",
                                 output, "--wide_and_deep_large_ds", fuse});
  }

  // Returns how many predictions of `graph` on the first records for
  // evaluation, in `format`, are correct, as `declaration` says.
  double Correct(const std::string& graph, const std::string& format,
                 const std::string& declaration) {
    Words arguments = {"synthesize", "--split=eval", "--rows=3000",
                       "--format=" + format, "--out=" + folder_.Path(format)};
    if (format == "preprocessed") {
      arguments.push_back(absl::StrCat("--ranges=", kModel, "ranges.json"));
    }
    MustRun("runtime/datasets/dataset", arguments);
    return NumberIn(MustRun("runtime/evaluate_graph",
                            {"--graph=" + folder_.Path(graph),
                             absl::StrCat("--dataset=", kModel, declaration),
                             "--data=" + folder_.Path(format)})
                        .out,
                    kCorrectPredictions);
  }

  TestFolder folder_;
};

TEST_F(FeatureColumnProgram, FusesOnTrue) {
  const ProgramRun run = Optimize(kColumns, "True");
  ASSERT_THAT(run, Exits(0));
  const auto graph = folder_.ReadGraphFile("out.pb");
  EXPECT_TRUE(HasNode(graph, "new_categorical_placeholder"));
  EXPECT_TRUE(HasNode(graph, "new_numeric_placeholder"));
  EXPECT_TRUE(HasNode(graph, absl::StrCat("import/", kOutput)));
  EXPECT_THAT(run.out, HasSubstr("categorical column 0: \"in_"));
}

TEST_F(FeatureColumnProgram, OnlySimplifiesOnFalse) {
  ASSERT_THAT(Optimize(kColumns, "False"), Exits(0));
  const auto graph = folder_.ReadGraphFile("out.pb");
  EXPECT_FALSE(HasNode(graph, "new_categorical_placeholder"));
  EXPECT_TRUE(HasNode(graph, "import/in_hashed"));
}

TEST_F(FeatureColumnProgram, TakesNothingButTrueAndFalse) {
  EXPECT_THAT(Optimize(kColumns, "maybe"), Misused("True or False", "maybe"));
}

TEST_F(FeatureColumnProgram, WritesNothingWhenItFails) {
  const std::string plain = folder_.Write(
      "plain.pbtxt",
      "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { "
      "type: DT_FLOAT } } }");
  EXPECT_THAT(Optimize(plain, "True", "x"), Exits(1));
  EXPECT_THAT(Optimize(kColumns, "True", "head/predictions/none"), Exits(1));
  EXPECT_THAT(Optimize(folder_.Path("absent.pb"), "True"), Exits(1));
  EXPECT_EQ(folder_.Names(), std::vector<std::string>{"plain.pbtxt"});
}

TEST_F(FeatureColumnProgram, SaysThatAGraphIsFusedAlready) {
  ASSERT_THAT(Optimize(kColumns, "True"), Exits(0));
  const std::string fused = folder_.Write("fused.pb", folder_.Read("out.pb"));
  EXPECT_THAT(Optimize(fused, "True", absl::StrCat("import/", kOutput)),
              Fails("fused already"));
}

TEST_F(FeatureColumnProgram, PredictsTheSameFromPreprocessedRecords) {
  MustRun("graph/freeze_graph",
          {absl::StrCat("--input_saved_model_dir=", kModel, "model"),
           "--output_graph=" + folder_.Path("frozen.pb"),
           absl::StrCat("--output_node_names=", kOutput)});
  ASSERT_THAT(Optimize(folder_.Path("frozen.pb"), "True"), Exits(0));
  const double raw = Correct("frozen.pb", "tfrecord", "raw.textproto");
  EXPECT_GT(raw, 2000);
  // Rounding may turn a record whose probability is one half.
  EXPECT_NEAR(Correct("out.pb", "preprocessed", "preprocessed.textproto"), raw,
              1);
}

}  // namespace
}  // namespace requant::featurecolumn_graph_optimization_test
