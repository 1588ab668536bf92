// Tests the ten steps of the published recipe, and the fast way from its fifth
// step, on the command line, with the embedded model and one of another kind:
// every stage keeps the float graph's accuracy, and every graph has only op
// combinations that are right in the current TensorFlow.

#include "tests/support/recipe.h"

#include <cmath>
#include <iostream>
#include <memory>

#include "absl/strings/match.h"
#include "graph/testing/testing.h"
#include "tests/support/emitted_ops.h"

namespace requant::recipe_test {
namespace {

// A multiple of the recipe's batch size of 1024.
constexpr int kCalibrationRecords = 10240;
constexpr int kEvaluationRecords = 20000;
// These are enough for the wider bounds of the embedded model's stages.
constexpr int kStageRecords = 10000;

// The bounds that a graph must meet on this many records.
struct Bounds {
  int records;
  double least_agreement;
  double greatest_mean_change;
};

void ExpectKept(Recipe& recipe, const std::string& graph,
                const Bounds& bounds) {
  EvaluateResult result;
  EXPECT_THAT(recipe.Evaluate(graph, bounds.records, &result),
              Prints("\"verdict\": \"PASS\""))
      << graph;
  const Comparison& comparison = result.comparison();
  double error = 0, shift = 0;
  for (const ComparedLayer& layer : result.layer()) {
    error = std::max(error, layer.rms_error() / layer.step());
    shift =
        std::max(shift, std::abs(layer.worst_channel_shift()) / layer.step());
  }
  std::cout << graph << ": accuracy " << result.scores().accuracy() << " ("
            << comparison.accuracy().interval().low()
            << " points at least), agreement " << comparison.agreement().share()
            << ", mean change " << comparison.output_change().mean()
            << ", layers within " << error << " steps, shifted by " << shift
            << "\n";
  EXPECT_GE(comparison.agreement().share(), bounds.least_agreement) << graph;
  EXPECT_LE(comparison.output_change().mean(), bounds.greatest_mean_change)
      << graph;
  EXPECT_THAT(result.layer(), Not(IsEmpty())) << graph;
  EXPECT_THAT(result.unmatched_layer(), IsEmpty()) << graph;
  // Rounding alone causes 0.29 of a step.
  EXPECT_LE(error, 1.5) << graph;
  EXPECT_LE(shift, 1.5) << graph;
}

void ExpectRightCombinations(const Recipe& recipe, const std::string& file) {
  const GraphDef graph = recipe.folder.ReadGraphFile(file);
  EXPECT_THAT(WrongCombinations(graph), IsEmpty()) << file;
  EXPECT_THAT(OverflowingPairs(graph), IsEmpty()) << file;
}

// Freezes ranges of the float graph instead of those that three runs of
// quantized graphs log.
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

// Returns a dynamic graph with the layers that read a QuantizeV2 as the
// original made them: MIN_FIRST, with an unchanged bias.
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
  EvaluateResult result;
  const ProgramRun run = recipe.Evaluate("original.pb", 5000, &result);
  EXPECT_THAT(run, Exits(3));
  EXPECT_THAT(run.out, HasSubstr("\"verdict\": \"FAIL\""));
}

// The models, with the bounds for their int8 stages and their fast graph.
struct WideDeep {
  static constexpr char kName[] = "WideDeep";
  // Measured: agreement .9948 to .9952, mean change .0039 to .0040.
  static constexpr Bounds kStages = {kStageRecords, 0.993, 0.005};
  // Measured: agreement .9984, mean change .0012.
  static constexpr Bounds kFast = {kEvaluationRecords, 0.997, 0.0016};
  static constexpr double kFastAgreementWithoutVnni = 0.997;
  static Recipe* NewRecipe() {
    return new WideDeepRecipe(kCalibrationRecords, kEvaluationRecords);
  }
};

template <bool trimmed>
struct MixedLayersModel {
  static constexpr const char* kName =
      trimmed ? "MixedLayersFromStep3" : "MixedLayers";
  // Measured: agreement .9937 to .9948, mean change .0024 to .0025.
  static constexpr Bounds kStages = {kEvaluationRecords, 0.991, 0.0035};
  // Measured: agreement .9958, mean change .0021.
  static constexpr Bounds kFast = {kEvaluationRecords, 0.9945, 0.0023};
  static constexpr double kFastAgreementWithoutVnni = 0.996;
  static Recipe* NewRecipe() {
    return new MixedLayersRecipe(kCalibrationRecords, kEvaluationRecords,
                                 trimmed);
  }
};
using MixedLayers = MixedLayersModel<false>;
using MixedLayersFromStep3 = MixedLayersModel<true>;

// Returns the run of a model's recipe that all tests share.
template <typename Model>
Recipe& RunOf() {
  static const std::unique_ptr<Recipe> run = [] {
    std::unique_ptr<Recipe> recipe(Model::NewRecipe());
    recipe->GoBothWays();
    return recipe;
  }();
  return *run;
}

template <typename Model>
class RecipeTest : public testing::Test {};

struct ModelNames {
  template <typename Model>
  static std::string GetName(int) {
    return Model::kName;
  }
};
using Models = testing::Types<WideDeep, MixedLayers, MixedLayersFromStep3>;
TYPED_TEST_SUITE(RecipeTest, Models, ModelNames);

TYPED_TEST(RecipeTest, EveryInt8StageKeepsTheAccuracy) {
  for (const char* stage : kInt8Stages) {
    ExpectKept(RunOf<TypeParam>(), stage, TypeParam::kStages);
  }
}

TYPED_TEST(RecipeTest, TheFastWayIsCloser) {
  ExpectKept(RunOf<TypeParam>(), kFastGraph, TypeParam::kFast);
}

TYPED_TEST(RecipeTest, OneCalibrationServesAllFreezes) {
  FreezeByOneCalibration(RunOf<TypeParam>(), "calibrated.pb");
  ExpectKept(RunOf<TypeParam>(), "calibrated.pb", TypeParam::kStages);
}

// The graph computes garbage, and no kernel reports it.
TYPED_TEST(RecipeTest, TheGateSeesTheOriginalsDynamicGraph) {
  ExpectTheOriginalIsSeen(RunOf<TypeParam>());
}

TYPED_TEST(RecipeTest, NoStageHoldsAWrongCombination) {
  for (const char* stage : kInt8Stages) {
    ExpectRightCombinations(RunOf<TypeParam>(), stage);
  }
  for (const char* stage : {kStaticGraph, kFastGraph}) {
    ExpectRightCombinations(RunOf<TypeParam>(), stage);
  }
}

// On CPUs with VNNI this uses another kernel, which saturates if the weights
// are too large.
TYPED_TEST(RecipeTest, FinalGraphsAreAsGoodWithoutVnni) {
  const Words avx2 = {"ONEDNN_MAX_CPU_ISA=AVX2"};
  const auto agreement = [&](const char* graph) {
    EvaluateResult result;
    EXPECT_THAT(
        RunOf<TypeParam>().Evaluate(graph, kStageRecords, &result, avx2),
        Exits(0));
    return result.comparison().agreement().share();
  };
  EXPECT_GE(agreement(kFinalGraph), TypeParam::kStages.least_agreement);
  EXPECT_GE(agreement(kFastGraph), TypeParam::kFastAgreementWithoutVnni);
}

template <typename Model>
GraphDef GraphOf(const std::string& file) {
  return RunOf<Model>().folder.ReadGraphFile(file);
}

TEST(WideDeepTest, Step3KeepsTheInputsAndNoIdentity) {
  const GraphDef graph = GraphOf<WideDeep>(kTrimmedGraph);
  EXPECT_THAT(NodesOf(graph, "Placeholder"), SizeIs(39));
  EXPECT_THAT(NodesOf(graph, "Identity"), IsEmpty());
  EXPECT_THAT(NodesOf(graph, "CheckNumerics"), IsEmpty());
}

TEST(WideDeepTest, TheFinalGraphHasFourFusedLayersAndHalfTheSize) {
  const GraphDef graph = GraphOf<WideDeep>(kFinalGraph);
  EXPECT_THAT(NodesOf(graph, "QuantizedMatMulWithBiasAndReluAndRequantize"),
              SizeIs(3));
  EXPECT_THAT(NodesOf(graph, "QuantizedMatMulWithBiasAndDequantize"),
              SizeIs(1));
  for (const char* op : {"MatMul", "Requantize", "Min", "Max"}) {
    EXPECT_THAT(NodesOf(graph, op), IsEmpty());
  }
  const TestFolder& folder = RunOf<WideDeep>().folder;
  EXPECT_LT(folder.Read(kFinalGraph).size(),
            0.53 * folder.Read(kFloatGraph).size());
  EXPECT_LT(folder.Read(kFastGraph).size(),
            0.27 * folder.Read(kFloatGraph).size());
}

TEST(WideDeepTest, QuantizedEmbeddingsPredictTheSameToTheLastBit) {
  Recipe& recipe = RunOf<WideDeep>();
  recipe.Transform(
      kFinalGraph, "moved.pb", "quantize_embeddings",
      {"--inputs=new_numeric_placeholder,new_categorical_placeholder",
       "--outputs=" + recipe.output});
  EXPECT_THAT(
      RunProgram("runtime/evaluate_graph",
                 {"--graph=" + recipe.folder.Path("moved.pb"),
                  "--baseline=" + recipe.folder.Path(kFinalGraph),
                  "--dataset=workflows/wide_deep/preprocessed.textproto",
                  "--data=" + recipe.folder.Path(
                                  "dataset_preprocessed_eval.tfrecords")}),
      Prints("mean |change| 0, largest 0 "));
  EXPECT_LT(recipe.folder.Read("moved.pb").size(),
            0.27 * recipe.folder.Read(kFloatGraph).size());
}

TEST(MixedLayersTest, OnlyTheProductOfTwoActivationsStaysFloat) {
  for (const char* stage : {kDynamicGraph, kFinalGraph, kFastGraph}) {
    EXPECT_THAT(NodesOf(GraphOf<MixedLayers>(stage), "MatMul"),
                ElementsAre("match/MatMul"))
        << stage;
  }
  const GraphDef graph = GraphOf<MixedLayers>(kFinalGraph);
  EXPECT_THAT(NodesOf(graph, "QuantizedMatMulWithBiasAndReluAndRequantize"),
              SizeIs(4));
  EXPECT_THAT(NodesOf(graph, "QuantizedMatMulWithBiasAndDequantize"),
              SizeIs(3));
}

TEST(MixedLayersTest, ASharedKernelIsOneConstant) {
  const GraphDef graph = GraphOf<MixedLayers>(kFinalGraph);
  std::vector<std::string> readers;
  for (const NodeDef& node : graph.node()) {
    if (absl::StartsWith(node.op(), "QuantizedMatMul") &&
        node.input(1) == "tower/shared/kernel_qint8_const") {
      readers.push_back(node.name());
    }
  }
  EXPECT_THAT(readers, SizeIs(2));
}

TEST(MixedLayersTest, Relu6EndsAtSix) {
  const GraphDef graph = GraphOf<MixedLayers>(kFinalGraph);
  const NodeDef& layer =
      NodeNamed(graph, "tower/signal/projection/MatMul_eightbit_requantize");
  EXPECT_EQ(ScalarNamed(graph, layer.input(8)), 6);
}

}  // namespace
}  // namespace requant::recipe_test
