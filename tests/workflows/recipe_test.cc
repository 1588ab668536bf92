// The ten steps of the published recipe and the fast way from its fifth step,
// from the command line, on the embedded model and on one of another kind:
// every stage keeps the float graph's accuracy, and every graph is made of op
// combinations that are right on today's TensorFlow.

#include "tests/support/recipe.h"

#include <iostream>
#include <memory>

#include "absl/strings/match.h"
#include "graph/const_node.h"
#include "graph/testing/testing.h"
#include "re2/re2.h"
#include "tests/support/emitted_ops.h"

namespace requant::recipe_test {
namespace {

// The recipe's batches of 1024 divide it.
constexpr int kCalibrationRecords = 10240;
constexpr int kEvaluationRecords = 20000;
// Enough for the wider bounds of the embedded model's stages.
constexpr int kStageRecords = 10000;

// What a graph must keep, on this many records.
struct Bounds {
  int records;
  double least_agreement;
  double greatest_mean_change;
};

void ExpectKept(Recipe& recipe, const std::string& graph,
                const Bounds& bounds) {
  const RecipeVerdict verdict = recipe.Evaluate(graph, bounds.records);
  std::cout << graph << ": accuracy " << verdict.accuracy << " ("
            << verdict.least_accuracy_change << " points at least), agreement "
            << verdict.agreement << ", mean change "
            << verdict.mean_output_change << ", layers within "
            << verdict.layer_error << " steps, shifted by "
            << verdict.layer_shift << "\n";
  EXPECT_EQ(verdict.gate, "PASS") << graph;
  EXPECT_GE(verdict.agreement, bounds.least_agreement) << graph;
  EXPECT_LE(verdict.mean_output_change, bounds.greatest_mean_change) << graph;
  // Rounding alone is 0.29 of a step.
  EXPECT_LE(verdict.layer_error, 1.5) << graph;
  EXPECT_LE(verdict.layer_shift, 1.5) << graph;
}

void ExpectRightCombinations(const Recipe& recipe, const std::string& file) {
  const GraphDef graph = recipe.folder.ReadGraphFile(file);
  EXPECT_THAT(WrongCombinations(graph), IsEmpty()) << file;
  EXPECT_THAT(OverflowingPairs(graph), IsEmpty()) << file;
}

// Ranges of the float graph in place of those that three runs of quantized
// graphs log.
void FreezeByOneCalibration(Recipe& recipe, const std::string& out) {
  const std::string ranges =
      absl::StrCat("(ranges_file=\"", recipe.folder.Path(kRangeTable), "\") ");
  recipe.Transform(
      kDynamicGraph, out,
      absl::StrCat("freeze_requantization_ranges", ranges, "freeze_min", ranges,
                   "freeze_max", ranges,
                   "fuse_quantized_matmul_and_requantize strip_unused_nodes"),
      {"--outputs=" + recipe.output});
}

// Returns a dynamic graph with its layers as the original made them, where they
// read a QuantizeV2: MIN_FIRST, and the bias as it is.
GraphDef AsTheOriginal(GraphDef graph) {
  for (NodeDef& node : *graph.mutable_node()) {
    if (!absl::StartsWith(node.op(), "QuantizedMatMul")) continue;
    const std::string source = node.input(0);
    if (NodeNamed(graph, source).op() != "QuantizeV2") continue;
    (*node.mutable_attr())["input_quant_mode"].set_s("MIN_FIRST");
    node.set_input(2, NodeNamed(graph, node.input(2)).input(0));
    node.set_input(3, source + ":1");
    node.set_input(4, source + ":2");
  }
  return graph;
}

void ExpectTheOriginalIsSeen(Recipe& recipe) {
  const GraphDef original =
      AsTheOriginal(recipe.folder.ReadGraphFile(kDynamicGraph));
  EXPECT_THAT(WrongCombinations(original),
              Contains(HasSubstr("MIN_FIRST with a float bias")));
  recipe.folder.Write("original.pb", original.SerializeAsString());
  const ProgramRun run = recipe.RunEvaluation("original.pb", 5000);
  EXPECT_THAT(run, Exits(3));
  EXPECT_THAT(run.out, HasSubstr("\"verdict\": \"FAIL\""));
}

// A suite whose tests look at one run of a recipe.
template <typename Run>
class SharedRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    run_ = std::make_unique<typename Run::Model>(kCalibrationRecords,
                                                 kEvaluationRecords);
    Run::Make(*run_);
  }
  static void TearDownTestSuite() { run_.reset(); }

  static inline std::unique_ptr<typename Run::Model> run_;
};

// Goes all ways from the float graph on.
void QuantizeBothWays(Recipe& recipe) {
  recipe.MakeDynamicGraph();
  recipe.FreezeAsPublished();
  recipe.Fuse();
  recipe.QuantizeFast();
}

struct WideDeepRun {
  using Model = WideDeepRecipe;
  static void Make(WideDeepRecipe& recipe) {
    recipe.MakeFloatGraph();
    QuantizeBothWays(recipe);
  }
};

using WideDeepTest = SharedRun<WideDeepRun>;

TEST_F(WideDeepTest, Step1TellsInputsAndOutputOfATrainingGraph) {
  const ProgramRun run = run_->Summarize();
  // 39 features and the label.
  EXPECT_THAT(run.out, HasSubstr("Found 40 possible inputs: "));
  EXPECT_THAT(run.out, HasSubstr("Most likely output: "
                                 "(name=head/predictions/probabilities"));
  EXPECT_TRUE(RE2::PartialMatch(
      run.out,
      "Found \\d+ possible outputs: \\(name=head/predictions/probabilities"));
}

TEST_F(WideDeepTest, Step3KeepsTheInputsAndNoIdentity) {
  const GraphDef graph = run_->folder.ReadGraphFile(kTrimmedGraph);
  EXPECT_THAT(NodesOf(graph, "Placeholder"), SizeIs(39));
  EXPECT_THAT(NodesOf(graph, "Identity"), IsEmpty());
  EXPECT_THAT(NodesOf(graph, "CheckNumerics"), IsEmpty());
}

TEST_F(WideDeepTest, Step5PrintsTheAccuracyOfTheFloatGraph) {
  const std::string log = run_->EvaluateFloatGraph();
  EXPECT_THAT(log, HasSubstr("Total test records           :  20000\n"));
  double accuracy = 0;
  ASSERT_TRUE(RE2::PartialMatch(
      log, "Classification accuracy \\(%\\)  :  ([0-9.]+)\n", &accuracy))
      << log;
  EXPECT_GT(accuracy, 75);
}

// Measured: agreement .9948 to .9952, mean change .0039 to .0040.
TEST_F(WideDeepTest, EveryInt8StageKeepsTheAccuracy) {
  for (const char* stage : kInt8Stages) {
    ExpectKept(*run_, stage, {kStageRecords, 0.993, 0.005});
  }
}

TEST_F(WideDeepTest, TheFinalGraphHasFourFusedLayersAndHalfTheSize) {
  const GraphDef graph = run_->folder.ReadGraphFile(kFinalGraph);
  EXPECT_THAT(NodesOf(graph, "QuantizedMatMulWithBiasAndReluAndRequantize"),
              SizeIs(3));
  EXPECT_THAT(NodesOf(graph, "QuantizedMatMulWithBiasAndDequantize"),
              SizeIs(1));
  for (const char* op : {"MatMul", "Requantize", "Min", "Max"}) {
    EXPECT_THAT(NodesOf(graph, op), IsEmpty());
  }
  EXPECT_LT(run_->folder.Read(kFinalGraph).size(),
            0.53 * run_->folder.Read(kFloatGraph).size());
}

// Measured: agreement .9984, mean change .0012.
TEST_F(WideDeepTest, TheFastWayIsCloser) {
  ExpectKept(*run_, kFastGraph, {kEvaluationRecords, 0.997, 0.0016});
}

TEST_F(WideDeepTest, OneCalibrationServesAllFreezes) {
  FreezeByOneCalibration(*run_, "calibrated.pb");
  ExpectKept(*run_, "calibrated.pb", {kStageRecords, 0.993, 0.005});
}

// Garbage, and no kernel says so.
TEST_F(WideDeepTest, TheGateSeesTheOriginalsDynamicGraph) {
  ExpectTheOriginalIsSeen(*run_);
}

TEST_F(WideDeepTest, TheFastWayLeavesAQuarterOfTheFile) {
  EXPECT_LT(run_->folder.Read(kFastGraph).size(),
            0.27 * run_->folder.Read(kFloatGraph).size());
}

TEST_F(WideDeepTest, NoStageHoldsAWrongCombination) {
  for (const char* stage : kInt8Stages) ExpectRightCombinations(*run_, stage);
  for (const char* stage : {kStaticGraph, kFastGraph}) {
    ExpectRightCombinations(*run_, stage);
  }
}

// On CPUs with VNNI this is another kernel, which saturates where weights
// allow it.
TEST_F(WideDeepTest, FinalGraphsAreAsGoodWithoutVnni) {
  const std::vector<std::string> avx2 = {"ONEDNN_MAX_CPU_ISA=AVX2"};
  EXPECT_GE(run_->Evaluate(kFinalGraph, kStageRecords, avx2).agreement, 0.993);
  EXPECT_GE(run_->Evaluate(kFastGraph, kStageRecords, avx2).agreement, 0.997);
}

struct MixedLayersRun {
  using Model = MixedLayersRecipe;
  static void Make(MixedLayersRecipe& recipe) {
    recipe.TakeFrozenGraph();
    QuantizeBothWays(recipe);
  }
};

using MixedLayersTest = SharedRun<MixedLayersRun>;

// Measured: agreement .9937 to .9948, mean change .0024 to .0025.
TEST_F(MixedLayersTest, EveryInt8StageKeepsTheAccuracy) {
  for (const char* stage : kInt8Stages) {
    ExpectKept(*run_, stage, {kEvaluationRecords, 0.991, 0.0035});
  }
}

// Measured: agreement .9982, mean change .0010.
TEST_F(MixedLayersTest, TheFastWayIsCloser) {
  ExpectKept(*run_, kFastGraph, {kEvaluationRecords, 0.9945, 0.0023});
}

TEST_F(MixedLayersTest, OneCalibrationServesAllFreezes) {
  FreezeByOneCalibration(*run_, "calibrated.pb");
  ExpectKept(*run_, "calibrated.pb", {kEvaluationRecords, 0.991, 0.0035});
}

TEST_F(MixedLayersTest, TheGateSeesTheOriginalsDynamicGraph) {
  ExpectTheOriginalIsSeen(*run_);
}

TEST_F(MixedLayersTest, NoStageHoldsAWrongCombination) {
  for (const char* stage : kInt8Stages) ExpectRightCombinations(*run_, stage);
  ExpectRightCombinations(*run_, kFastGraph);
}

TEST_F(MixedLayersTest, OnlyTheProductOfTwoActivationsStaysFloat) {
  for (const char* stage : {kDynamicGraph, kFinalGraph, kFastGraph}) {
    const GraphDef graph = run_->folder.ReadGraphFile(stage);
    EXPECT_THAT(NodesOf(graph, "MatMul"), ElementsAre("match/MatMul")) << stage;
  }
  const GraphDef graph = run_->folder.ReadGraphFile(kFinalGraph);
  EXPECT_THAT(NodesOf(graph, "QuantizedMatMulWithBiasAndReluAndRequantize"),
              SizeIs(4));
  EXPECT_THAT(NodesOf(graph, "QuantizedMatMulWithBiasAndDequantize"),
              SizeIs(3));
}

TEST_F(MixedLayersTest, ASharedKernelIsOneConstant) {
  const GraphDef graph = run_->folder.ReadGraphFile(kFinalGraph);
  std::vector<std::string> readers;
  for (const NodeDef& node : graph.node()) {
    if (absl::StartsWith(node.op(), "QuantizedMatMul") &&
        node.input(1) == "tower/shared/kernel_qint8_const") {
      readers.push_back(node.name());
    }
  }
  EXPECT_THAT(readers, SizeIs(2));
}

TEST_F(MixedLayersTest, Relu6EndsAtSix) {
  const GraphDef graph = run_->folder.ReadGraphFile(kFinalGraph);
  const NodeDef& layer =
      NodeNamed(graph, "tower/signal/projection/MatMul_eightbit_requantize");
  EXPECT_EQ(ScalarConstValue(NodeNamed(graph, layer.input(8))).value(), 6);
}

TEST_F(MixedLayersTest, FinalGraphsAreAsGoodWithoutVnni) {
  const std::vector<std::string> avx2 = {"ONEDNN_MAX_CPU_ISA=AVX2"};
  EXPECT_GE(run_->Evaluate(kFinalGraph, kStageRecords, avx2).agreement, 0.991);
  EXPECT_GE(run_->Evaluate(kFastGraph, kStageRecords, avx2).agreement, 0.996);
}

struct TrimmedMixedLayersRun {
  using Model = MixedLayersRecipe;
  static void Make(MixedLayersRecipe& recipe) {
    recipe.Trim();
    recipe.MakeDynamicGraph();
    recipe.FreezeAsPublished();
    recipe.Fuse();
  }
};

using MixedLayersFromStep3Test = SharedRun<TrimmedMixedLayersRun>;

TEST_F(MixedLayersFromStep3Test, HasNoIdentities) {
  const GraphDef graph = run_->folder.ReadGraphFile(kFloatGraph);
  EXPECT_THAT(NodesOf(graph, "Identity"), IsEmpty());
}

TEST_F(MixedLayersFromStep3Test, EveryInt8StageKeepsTheAccuracy) {
  for (const char* stage : kInt8Stages) {
    ExpectKept(*run_, stage, {kEvaluationRecords, 0.991, 0.0035});
  }
}

}  // namespace
}  // namespace requant::recipe_test
