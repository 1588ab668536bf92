// Tests featurecolumn_graph_optimization as the published recipe's fourth step
// calls it. feature_columns_test.cc tests its result on preprocessed records.

#include "tests/support/program_runs.h"

namespace requant::featurecolumn_graph_optimization_test {
namespace {

constexpr char kProgram[] = "transforms/featurecolumn_graph_optimization";
constexpr char kColumns[] = "transforms/testdata/columns.pb.gz";
constexpr char kOutput[] = "head/predictions/probabilities";

class FeatureColumnProgram : public testing::Test {
 protected:
  ProgramRun Optimize(const std::string& in, const std::string& fuse,
                      const std::string& output = kOutput) {
    return RunProgram(kProgram, {"--input-graph", in, "--output-graph",
                                 folder_.Path("out.pb"), "--output-nodes",
                                 output, "--wide_and_deep_large_ds", fuse});
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
  const std::string plain = folder_.Write("plain.pbtxt", Placeholder("x"));
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

}  // namespace
}  // namespace requant::featurecolumn_graph_optimization_test
