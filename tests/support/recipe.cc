#include "tests/support/recipe.h"

#include "base/files/file.h"
#include "tests/support/mixed_records.h"

namespace requant {
namespace {

constexpr char kWideDeep[] = "workflows/wide_deep/";
constexpr char kMixedLayers[] = "tests/data/mixed_layers/";
constexpr char kEvaluate[] = "runtime/evaluate_graph";
// The name lacks the prefix that step 4 gives it.
constexpr char kProbabilities[] = "head/predictions/probabilities";
constexpr char kTrimming[] =
    "strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) "
    "remove_attribute(attribute_name=_class)";

// Step 3's flag, as pasted between quotes.
constexpr char kRecipeInputs[] =
    R"(--inputs=Placeholder,Placeholder_1,Placeholder_2,Placeholder_3,Placeholder_4, \
        Placeholder_5,Placeholder_6,Placeholder_7,Placeholder_8,Placeholder_9,Placeholder_10, \
        Placeholder_11,Placeholder_12,Placeholder_13,Placeholder_14,Placeholder_15,Placeholder_16, \
        Placeholder_17,Placeholder_18,Placeholder_19,Placeholder_20,Placeholder_21,Placeholder_22, \
        Placeholder_23,Placeholder_24,Placeholder_25,Placeholder_26,Placeholder_27,Placeholder_28,  \
        Placeholder_29,Placeholder_30,Placeholder_31,Placeholder_32,Placeholder_33,Placeholder_34,   \
        Placeholder_35,Placeholder_36,Placeholder_37,Placeholder_38)";

}  // namespace

void Recipe::Transform(const std::string& in, const std::string& out,
                       const std::string& transforms, const Words& more) {
  MustRun(kTransformGraph, Joined({"--in_graph=" + folder.Path(in),
                                   "--out_graph=" + folder.Path(out),
                                   "--transforms=" + transforms},
                                  more));
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
  // As published, the graph that is logged is not the one that is frozen.
  Log(kRangesGraph, logged, "Max", "__max:", kMaxLog);
  freeze(kMinGraph, kMinMaxGraph, "freeze_max", kMaxLog);
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

void Recipe::GoBothWays() {
  MakeFloatGraph();
  MakeDynamicGraph();
  FreezeAsPublished();
  const Words outputs = {"--outputs=" + output};
  Transform(kMinMaxGraph, kFinalGraph,
            "fuse_quantized_matmul_and_requantize strip_unused_nodes", outputs);
  QuantizeFast();
}

ProgramRun Recipe::Evaluate(const std::string& graph, int records,
                            EvaluateResult* result, const Words& variables) {
  ProgramRun run = RunProgram(
      kEvaluate,
      {"--graph=" + folder.Path(graph),
       "--baseline=" + folder.Path(kFloatGraph), "--dataset=" + dataset_,
       "--data=" + folder.Path(evaluation_),
       absl::StrCat("--records=", records), "--max_accuracy_drop=0.5",
       "--format=json", "--streams=2", "--layer_records=2048",
       "--result_out=" + folder.Path("evaluate_result.pb")},
      variables);
  EXPECT_TRUE(result->ParseFromString(folder.Read("evaluate_result.pb")))
      << graph << ": " << run.error;
  return run;
}

std::string DrawWideDeepRecords(const std::string& folder,
                                const std::string& split, int rows) {
  const std::string name =
      absl::StrCat("dataset_preprocessed_", split, ".tfrecords");
  MustRun("runtime/datasets/dataset",
          {"synthesize", "--split=" + split, absl::StrCat("--rows=", rows),
           "--format=preprocessed",
           absl::StrCat("--ranges=", kWideDeep, "ranges.json"),
           absl::StrCat("--out=", folder, "/", name)});
  return name;
}

WideDeepRecipe::WideDeepRecipe(int calibration_records, int evaluation_records)
    : Recipe(absl::StrCat("import/", kProbabilities),
             absl::StrCat(kWideDeep, "preprocessed.textproto")) {
  calibration_ =
      DrawWideDeepRecords(folder.path(), "train", calibration_records);
  evaluation_ = DrawWideDeepRecords(folder.path(), "eval", evaluation_records);
}

void WideDeepRecipe::MakeFloatGraph() {
  const std::string frozen = "wide_deep_frozen_fp32_graph.pb";
  MustRun("graph/freeze_graph",
          {absl::StrCat("--input_saved_model_dir=", kWideDeep, "model"),
           // The published command has a blank here.
           "--output_graph=", folder.Path(frozen),
           absl::StrCat("--output_node_names=", kProbabilities)});
  Transform(frozen, kTrimmedGraph, kTrimming,
            {kRecipeInputs, absl::StrCat("--outputs=", kProbabilities)});
  MustRun("transforms/featurecolumn_graph_optimization",
          {"--input-graph", folder.Path(kTrimmedGraph), "--output-graph",
           folder.Path(kFloatGraph), "--output-nodes", kProbabilities,
           "--wide_and_deep_large_ds", "True"});
}

MixedLayersRecipe::MixedLayersRecipe(int calibration_records,
                                     int evaluation_records, bool trimmed)
    : Recipe("head/probabilities",
             absl::StrCat(kMixedLayers, "dataset.textproto")),
      trimmed_(trimmed) {
  calibration_ = "calibration.npz";
  evaluation_ = "evaluation.npz";
  EXPECT_OK(WriteMixedRecords(folder.Path(calibration_),
                              MixedSplit::kCalibration, calibration_records));
  EXPECT_OK(WriteMixedRecords(folder.Path(evaluation_), MixedSplit::kEval,
                              evaluation_records));
}

void MixedLayersRecipe::MakeFloatGraph() {
  ASSERT_OK_AND_ASSIGN(const std::string graph,
                       ReadFile(absl::StrCat(kMixedLayers, "frozen.pb")));
  folder.Write(kFloatGraph, graph);
  if (!trimmed_) return;
  Transform(kFloatGraph, kFloatGraph, kTrimming,
            {"--inputs=signal,context", "--outputs=" + output});
}

}  // namespace requant
