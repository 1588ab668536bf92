#ifndef REQUANT_TESTS_SUPPORT_RECIPE_H_
#define REQUANT_TESTS_SUPPORT_RECIPE_H_

// Runs the Wide & Deep recipe for tests as people do, command by command, on
// the models in the repository.

#include <string>
#include <vector>

#include "runtime/evaluation.pb.h"
#include "tests/support/program_runs.h"

namespace requant {

// The files of the published run, in the order of the steps that make them.
inline constexpr char kTrimmedGraph[] = "wide_deep_fp32_graph.pb";
inline constexpr char kFloatGraph[] = "optimized_wide_deep_fp32_graph.pb";
inline constexpr char kDynamicGraph[] = "int8_dynamic_range_wide_deep_graph.pb";
inline constexpr char kRangesGraph[] = "freezed_range_int8_wide_deep.pb";
inline constexpr char kMinGraph[] = "freezed_range_int8_wide_deep_freezemin.pb";
inline constexpr char kMinMaxGraph[] =
    "freezed_range_int8_wide_deep_minmaxfreeze.pb";
inline constexpr char kFinalGraph[] = "final_int8_wide_deep.pb";
// The files of steps 6 to 10, each of which is evaluated.
inline constexpr const char* kInt8Stages[] = {
    kDynamicGraph, kRangesGraph, kMinGraph, kMinMaxGraph, kFinalGraph};

inline constexpr char kRangesLog[] = "wide_deep_min_max_log.txt";
inline constexpr char kMinLog[] = "wide_deep_min_log.txt";
inline constexpr char kMaxLog[] = "wide_deep_max_log.txt";

// The files of the fast way: the calibrated ranges, and the graph before and
// after its embeddings are quantized.
inline constexpr char kRangeTable[] = "calibrated.ranges";
inline constexpr char kStaticGraph[] = "static_int8.pb";
inline constexpr char kFastGraph[] = "fast_int8.pb";

// Draws records of a split ("train", "eval") for the embedded model into a file
// of `folder`, and returns its name.
std::string DrawWideDeepRecords(const std::string& folder,
                                const std::string& split, int rows);

// A model on its way through the recipe, in a folder of its own. If a command
// fails, the test fails.
class Recipe {
 public:
  virtual ~Recipe() = default;

  // Runs the steps before step 6.
  virtual void MakeFloatGraph() = 0;
  // Runs these steps, then steps 6 to 10 on kFloatGraph as published, and the
  // fast way: one calibration, then quantize_static and quantize_embeddings.
  void GoBothWays();

  // Runs transform_graph.
  void Transform(const std::string& in, const std::string& out,
                 const std::string& transforms, const Words& more = {});
  // Compares `graph` with kFloatGraph by evaluate_graph on the first `records`
  // evaluation records, with a gate at the recipe's half a point. `result` gets
  // the figures.
  ProgramRun Evaluate(const std::string& graph, int records,
                      EvaluateResult* result, const Words& variables = {});

  // The name of the node that gives predictions.
  const std::string output;
  TestFolder folder;

 protected:
  // `dataset` declares the records in the folder's files `calibration` and
  // `evaluation`.
  Recipe(const std::string& output_name, const std::string& dataset)
      : output(output_name), dataset_(dataset) {}

  std::string calibration_;
  std::string evaluation_;

 private:
  void MakeDynamicGraph();
  void FreezeAsPublished();
  void QuantizeFast();
  // Makes `in`'s nodes of `op` log to `log` while the calibration records run.
  void Log(const std::string& in, const std::string& logged,
           const std::string& op, const std::string& message,
           const std::string& log);

  const std::string dataset_;
};

// The embedded model. About half of its embedding values are negative.
class WideDeepRecipe : public Recipe {
 public:
  WideDeepRecipe(int calibration_records, int evaluation_records);

  // Runs steps 2 to 4.
  void MakeFloatGraph() override;
};

// The model of tests/data/mixed_layers.
class MixedLayersRecipe : public Recipe {
 public:
  // Step 3 trims the frozen graph if `trimmed`; otherwise it is used unchanged.
  MixedLayersRecipe(int calibration_records, int evaluation_records,
                    bool trimmed);

  void MakeFloatGraph() override;

 private:
  const bool trimmed_;
};

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_RECIPE_H_
