#include "tests/support/recipe.h"

#include <cmath>

#include "base/files/file.h"
#include "re2/re2.h"
#include "runtime/evaluation.pb.h"
#include "tests/support/mixed_records.h"

namespace requant {
namespace {

constexpr char kWideDeep[] = "workflows/wide_deep/";
constexpr char kMixedLayers[] = "tests/data/mixed_layers/";
constexpr char kEvaluate[] = "runtime/evaluate_graph";
// Without the prefix that step 4 gives it.
constexpr char kProbabilities[] = "head/predictions/probabilities";
constexpr char kTrimming[] =
    "strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) "
    "remove_attribute(attribute_name=_class)";
constexpr char kEvaluateResult[] = "evaluate_result.pb";
constexpr int kLayerRecords = 2048;
constexpr char kNumber[] = "([-+.e0-9]+)";

// Reads the layers' part of a verdict from a binary EvaluateResult.
void ReadLayers(const std::string& bytes, RecipeVerdict* verdict) {
  EvaluateResult result;
  EXPECT_TRUE(result.ParseFromString(bytes));
  if (result.unmatched_layer_size() > 0 || result.layer_size() == 0) return;
  verdict->layer_error = 0;
  verdict->layer_shift = 0;
  for (const ComparedLayer& layer : result.layer()) {
    verdict->layer_error =
        std::max(verdict->layer_error, layer.rms_error() / layer.step());
    verdict->layer_shift =
        std::max(verdict->layer_shift,
                 std::abs(layer.worst_channel_shift()) / layer.step());
  }
}

}  // namespace

const char kRecipeInputs[] =
    R"(--inputs=Placeholder,Placeholder_1,Placeholder_2,Placeholder_3,Placeholder_4, \
        Placeholder_5,Placeholder_6,Placeholder_7,Placeholder_8,Placeholder_9,Placeholder_10, \
        Placeholder_11,Placeholder_12,Placeholder_13,Placeholder_14,Placeholder_15,Placeholder_16, \
        Placeholder_17,Placeholder_18,Placeholder_19,Placeholder_20,Placeholder_21,Placeholder_22, \
        Placeholder_23,Placeholder_24,Placeholder_25,Placeholder_26,Placeholder_27,Placeholder_28,  \
        Placeholder_29,Placeholder_30,Placeholder_31,Placeholder_32,Placeholder_33,Placeholder_34,   \
        Placeholder_35,Placeholder_36,Placeholder_37,Placeholder_38)";

std::string Recipe::Transform(const std::string& in, const std::string& out,
                              const std::string& transforms,
                              const Words& more) {
  return MustRun(kTransformGraph, Joined({"--in_graph=" + folder.Path(in),
                                          "--out_graph=" + folder.Path(out),
                                          "--transforms=" + transforms},
                                         more))
      .out;
}

void Recipe::MakeDynamicGraph() {
  MustRun("transforms/quantize_graph",
          {"--input=" + folder.Path(kFloatGraph),
           "--output=" + folder.Path(kDynamicGraph),
           "--output_node_names=" + output, "--mode=eightbit",
           "--intel_cpu_eightbitize=True", "--model_name=wide_deep_large_ds"});
}

void Recipe::Log(const std::string& in, const std::string& logged,
                 const std::string& op, const std::string& message,
                 const std::string& log) {
  Transform(in, logged,
            absl::StrCat("insert_logging(op=", op,
                         ", show_name=true, message=\"", message, "\")"));
  MustRun(kEvaluate, {"--graph=" + folder.Path(logged), "--dataset=" + dataset_,
                      "--data=" + folder.Path(calibration_),
                      "--batch_size=1024", "--log_file=" + folder.Path(log)});
}

void Recipe::FreezeAsPublished() {
  const auto freeze = [this](const std::string& in, const std::string& out,
                             const std::string& transform,
                             const std::string& log) {
    Transform(in, out,
              absl::StrCat(transform, "(min_max_log_file=\"", folder.Path(log),
                           "\")"));
  };
  Log(kDynamicGraph, "logged_int8_dynamic_range_wide_deep.pb",
      "RequantizationRange", "__requant_min_max:", kRangesLog);
  freeze(kDynamicGraph, kRangesGraph, "freeze_requantization_ranges",
         kRangesLog);
  const std::string logged = "logged_freezed_range_int8_wide_deep.pb";
  Log(kRangesGraph, logged, "Min", "__min:", kMinLog);
  freeze(kRangesGraph, kMinGraph, "freeze_min", kMinLog);
  // The graph that is logged is not the one that is frozen, as published.
  Log(kRangesGraph, logged, "Max", "__max:", kMaxLog);
  freeze(kMinGraph, kMinMaxGraph, "freeze_max", kMaxLog);
}

void Recipe::Fuse() {
  Transform(kMinMaxGraph, kFinalGraph,
            "fuse_quantized_matmul_and_requantize strip_unused_nodes",
            {"--outputs=" + output});
}

void Recipe::QuantizeFast() {
  MustRun("runtime/calibrate_graph",
          {"--graph=" + folder.Path(kFloatGraph), "--dataset=" + dataset_,
           "--data=" + folder.Path(calibration_),
           "--output=" + folder.Path(kRangeTable)});
  const std::string outputs = "--outputs=" + output;
  Transform(kFloatGraph, kStaticGraph,
            absl::StrCat("quantize_static(ranges_file=\"",
                         folder.Path(kRangeTable), "\") strip_unused_nodes"),
            {outputs});
  Transform(kStaticGraph, kFastGraph, "quantize_embeddings strip_unused_nodes",
            {outputs});
}

ProgramRun Recipe::RunEvaluation(const std::string& graph, int records,
                                 const Words& variables) {
  return RunProgram(
      kEvaluate,
      {"--graph=" + folder.Path(graph),
       "--baseline=" + folder.Path(kFloatGraph), "--dataset=" + dataset_,
       "--data=" + folder.Path(evaluation_),
       absl::StrCat("--records=", records), "--max_accuracy_drop=0.5",
       "--format=json", "--streams=2",
       absl::StrCat("--layer_records=", kLayerRecords),
       "--result_out=" + folder.Path(kEvaluateResult)},
      variables);
}

RecipeVerdict Recipe::Evaluate(const std::string& graph, int records,
                               const Words& variables) {
  const ProgramRun run = RunEvaluation(graph, records, variables);
  EXPECT_EQ(run.exit_code, 0) << graph << ": " << run.error;
  const std::string& text = run.out;
  RecipeVerdict verdict;
  EXPECT_TRUE(
      RE2::PartialMatch(text, "\"verdict\": \"([^\"]*)\"", &verdict.gate))
      << text;
  verdict.accuracy = NumberIn(text, absl::StrCat("\"accuracy\": ", kNumber));
  verdict.least_accuracy_change = NumberIn(
      text, absl::StrCat("\"difference_points\": [^,]*, \"interval_95\": \\[",
                         kNumber));
  verdict.agreement = NumberIn(text, absl::StrCat("\"share\": ", kNumber));
  verdict.mean_output_change =
      NumberIn(text, absl::StrCat("\"output_change\": {\"mean\": ", kNumber));
  ReadLayers(folder.Read(kEvaluateResult), &verdict);
  return verdict;
}

WideDeepRecipe::WideDeepRecipe(int calibration_records, int evaluation_records)
    : Recipe(absl::StrCat("import/", kProbabilities),
             absl::StrCat(kWideDeep, "preprocessed.textproto")) {
  calibration_ = "dataset_preprocessed_train.tfrecords";
  evaluation_ = "dataset_preprocessed_eval.tfrecords";
  const auto draw = [this](const char* split, int records,
                           const std::string& file) {
    MustRun("runtime/datasets/dataset",
            {"synthesize", absl::StrCat("--split=", split),
             absl::StrCat("--rows=", records), "--format=preprocessed",
             absl::StrCat("--ranges=", kWideDeep, "ranges.json"),
             "--out=" + folder.Path(file)});
  };
  draw("train", calibration_records, calibration_);
  draw("eval", evaluation_records, evaluation_);
}

ProgramRun WideDeepRecipe::Summarize() {
  return MustRun("transforms/summarize_graph",
                 {absl::StrCat("--in_graph=", kWideDeep, "graph.pbtxt.gz"),
                  "--print_structure=false"});
}

void WideDeepRecipe::Freeze() {
  MustRun("graph/freeze_graph",
          {absl::StrCat("--input_saved_model_dir=", kWideDeep, "model"),
           // The published command has a blank here.
           "--output_graph=", folder.Path("wide_deep_frozen_fp32_graph.pb"),
           absl::StrCat("--output_node_names=", kProbabilities)});
}

void WideDeepRecipe::Trim() {
  Transform("wide_deep_frozen_fp32_graph.pb", kTrimmedGraph, kTrimming,
            {kRecipeInputs, absl::StrCat("--outputs=", kProbabilities)});
}

void WideDeepRecipe::FuseColumns() {
  MustRun("transforms/featurecolumn_graph_optimization",
          {"--input-graph", folder.Path(kTrimmedGraph), "--output-graph",
           folder.Path(kFloatGraph), "--output-nodes", kProbabilities,
           "--wide_and_deep_large_ds", "True"});
}

std::string WideDeepRecipe::EvaluateFloatGraph() {
  return MustRun(kEvaluate, {"--graph=" + folder.Path(kFloatGraph),
                             absl::StrCat("--dataset=", kWideDeep,
                                          "preprocessed.textproto"),
                             "--data=" + folder.Path(evaluation_)})
      .out;
}

MixedLayersRecipe::MixedLayersRecipe(int calibration_records,
                                     int evaluation_records)
    : Recipe("head/probabilities",
             absl::StrCat(kMixedLayers, "dataset.textproto")) {
  calibration_ = "calibration.npz";
  evaluation_ = "evaluation.npz";
  const auto draw = [this](MixedSplit split, int records,
                           const std::string& file) {
    const absl::Status status =
        WriteMixedRecords(folder.Path(file), split, records);
    EXPECT_TRUE(status.ok()) << status;
  };
  draw(MixedSplit::kCalibration, calibration_records, calibration_);
  draw(MixedSplit::kEval, evaluation_records, evaluation_);
}

void MixedLayersRecipe::TakeFrozenGraph() {
  const auto graph = ReadFile(absl::StrCat(kMixedLayers, "frozen.pb"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  folder.Write(kFloatGraph, *graph);
}

void MixedLayersRecipe::Trim() {
  TakeFrozenGraph();
  Transform(kFloatGraph, kFloatGraph, kTrimming,
            {"--inputs=signal,context", "--outputs=" + output});
}

}  // namespace requant
