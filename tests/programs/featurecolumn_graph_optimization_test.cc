// featurecolumn_graph_optimization as the published recipe's fourth step calls
// it, and what its result makes of preprocessed records.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/testing/program.h"
#include "graph/testing/testing.h"
#include "re2/re2.h"

namespace requant::featurecolumn_graph_optimization_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

  void MustRun(const std::string& program,
               const std::vector<std::string>& arguments) {
    const ProgramRun run = RunProgram(program, arguments);
    ASSERT_EQ(run.exit_code, 0) << run.error;
  }

  // Correct predictions of `graph` on the first records for evaluation, in
  // `format`, as `declaration` says.
  int64_t Correct(const std::string& graph, const std::string& format,
                  const std::string& declaration) {
    std::vector<std::string> arguments = {"synthesize", "--split=eval",
                                          "--rows=3000", "--format=" + format,
                                          "--out=" + folder_.Path(format)};
    if (format == "preprocessed") {
      arguments.push_back(absl::StrCat("--ranges=", kModel, "ranges.json"));
    }
    MustRun("runtime/datasets/dataset", arguments);
    const ProgramRun run =
        RunProgram("runtime/evaluate_graph",
                   {"--graph=" + folder_.Path(graph),
                    absl::StrCat("--dataset=", kModel, declaration),
                    "--data=" + folder_.Path(format)});
    EXPECT_EQ(run.exit_code, 0) << run.error;
    int64_t correct = -1;
    EXPECT_TRUE(RE2::PartialMatch(
        run.out, "No of correct predicitons    :  (\\d+)\n", &correct))
        << run.out;
    return correct;
  }

  TestFolder folder_;
};

TEST_F(FeatureColumnProgram, FusesOnTrue) {
  const ProgramRun run = Optimize(kColumns, "True");
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto graph = folder_.ReadGraphFile("out.pb");
  EXPECT_TRUE(HasNode(graph, "new_categorical_placeholder"));
  EXPECT_TRUE(HasNode(graph, "new_numeric_placeholder"));
  EXPECT_TRUE(HasNode(graph, absl::StrCat("import/", kOutput)));
  EXPECT_THAT(run.out, HasSubstr("categorical column 0: \"in_"));
}

TEST_F(FeatureColumnProgram, OnlySimplifiesOnFalse) {
  const ProgramRun run = Optimize(kColumns, "False");
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto graph = folder_.ReadGraphFile("out.pb");
  EXPECT_FALSE(HasNode(graph, "new_categorical_placeholder"));
  EXPECT_TRUE(HasNode(graph, "import/in_hashed"));
}

TEST_F(FeatureColumnProgram, TakesNothingButTrueAndFalse) {
  const ProgramRun run = Optimize(kColumns, "maybe");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error, AllOf(HasSubstr("True or False"), HasSubstr("maybe")));
}

TEST_F(FeatureColumnProgram, WritesNothingWhenItFails) {
  const std::string plain = folder_.Write(
      "plain.pbtxt",
      "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { "
      "type: DT_FLOAT } } }");
  EXPECT_EQ(Optimize(plain, "True", "x").exit_code, 1);
  EXPECT_EQ(Optimize(kColumns, "True", "head/predictions/none").exit_code, 1);
  EXPECT_EQ(Optimize(folder_.Path("absent.pb"), "True").exit_code, 1);
  EXPECT_EQ(folder_.Names(), std::vector<std::string>{"plain.pbtxt"});
}

TEST_F(FeatureColumnProgram, SaysThatAGraphIsFusedAlready) {
  ASSERT_EQ(Optimize(kColumns, "True").exit_code, 0);
  const std::string fused = folder_.Write("fused.pb", folder_.Read("out.pb"));
  const ProgramRun run =
      Optimize(fused, "True", absl::StrCat("import/", kOutput));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("fused already"));
}

TEST_F(FeatureColumnProgram, PredictsTheSameFromPreprocessedRecords) {
  MustRun("graph/freeze_graph",
          {absl::StrCat("--input_saved_model_dir=", kModel, "model"),
           "--output_graph=" + folder_.Path("frozen.pb"),
           absl::StrCat("--output_node_names=", kOutput)});
  const ProgramRun run = Optimize(folder_.Path("frozen.pb"), "True");
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const int64_t raw = Correct("frozen.pb", "tfrecord", "raw.textproto");
  EXPECT_GT(raw, 2000);
  // Rounding may turn a record whose probability is one half.
  EXPECT_NEAR(Correct("out.pb", "preprocessed", "preprocessed.textproto"), raw,
              1);
}

}  // namespace
}  // namespace requant::featurecolumn_graph_optimization_test
