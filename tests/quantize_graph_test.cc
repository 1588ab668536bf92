// quantize_graph as the published recipe's sixth step calls it, and how well
// the graphs of the steps behind it agree with the float one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/testing.h"
#include "re2/re2.h"
#include "tests/graph_text.h"
#include "tests/program.h"

namespace requant {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kProgram[] = "transforms/quantize_graph";
constexpr char kModel[] = "workflows/wide_deep/";
constexpr char kOutput[] = "import/head/predictions/probabilities";

// x -> hidden/Relu -> logits -> y, and a node that y does not need.
std::string Classifier() {
  return absl::StrCat(
      Placeholder("x", {-1, 2}), FloatConst("hidden/w", {2, 2}, {1, 2, -3, 4}),
      Node("hidden/MatMul", "MatMul", {"x", "hidden/w"}, {kFloat}),
      Node("hidden/Relu", "Relu", {"hidden/MatMul"}, {kFloat}),
      FloatConst("logits/w", {2, 2}, {1, 2, -3, 4}),
      Node("logits", "MatMul", {"hidden/Relu", "logits/w"}, {kFloat}),
      Node("y", "Softmax", {"logits"}, {kFloat}),
      Node("unneeded", "Neg", {"x"}, {kFloat}));
}

class QuantizeGraphProgram : public testing::Test {
 protected:
  void MustRun(const std::string& program,
               const std::vector<std::string>& arguments) {
    const ProgramRun run = RunProgram(program, arguments);
    ASSERT_EQ(run.exit_code, 0) << run.error;
  }

  ProgramRun Quantize(const std::vector<std::string>& more = {},
                      const std::string& outputs = "y") {
    std::vector<std::string> arguments = {
        "--input", folder_.Write("in.pbtxt", Classifier()), "--output",
        folder_.Path("out.pb")};
    if (!outputs.empty()) {
      arguments.insert(arguments.end(), {"--output_node_names", outputs});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(kProgram, arguments);
  }

  TestFolder folder_;
};

TEST_F(QuantizeGraphProgram, TakesTheRecipesFlags) {
  const ProgramRun run =
      Quantize({"--mode=eightbit", "--intel_cpu_eightbitize=True",
                "--model_name=wide_deep_large_ds"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(run.error, "");
  EXPECT_THAT(run.out, AllOf(HasSubstr("quantizes 2 of 2 MatMuls"),
                             HasSubstr("--model_name=wide_deep_large_ds makes "
                                       "no difference")));
  const auto graph = folder_.ReadGraphFile("out.pb");
  EXPECT_TRUE(HasNode(graph, "hidden/MatMul_eightbit_requantize"));
  EXPECT_FALSE(HasNode(graph, "unneeded"));
}

TEST_F(QuantizeGraphProgram, TakesValuesAfterASpace) {
  const ProgramRun run = Quantize(
      {"--mode", "eightbit", "--intel_cpu_eightbitize", "1", "--per_channel",
       "false", "--target", "vnni", "--excluded_nodes", "logits"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("for the target \"vnni\""));
  EXPECT_EQ(NodeNamed(folder_.ReadGraphFile("out.pb"), "logits").op(),
            "MatMul");
}

TEST_F(QuantizeGraphProgram, SaysWhatIsNotSupported) {
  for (const auto& [flag, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"--mode=weights", "only --mode=eightbit"},
           {"--intel_cpu_eightbitize=False", "oneDNN only"},
           {"--intel_cpu_eightbitize=maybe", "True or False"},
           {"--per_channel=perhaps", "True or False"},
           {"--target=i386", "no target \"i386\""}}) {
    const ProgramRun run = Quantize({flag});
    EXPECT_EQ(run.exit_code, 2) << flag;
    EXPECT_THAT(run.error, HasSubstr(message));
  }
  const ProgramRun outputs = Quantize({}, "");
  EXPECT_EQ(outputs.exit_code, 2);
  EXPECT_THAT(outputs.error, HasSubstr("--output_node_names is missing"));
}

TEST_F(QuantizeGraphProgram, WritesNothingWhenItFails) {
  const ProgramRun absent = Quantize({}, "logit");
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_THAT(absent.error, HasSubstr("did you mean \"logits\"?"));
  EXPECT_EQ(Quantize({"--per_channel=True"}).exit_code, 1);
  EXPECT_EQ(Quantize({"--excluded_nodes=none"}).exit_code, 1);
  EXPECT_EQ(folder_.Names(), std::vector<std::string>{"in.pbtxt"});
}

TEST_F(QuantizeGraphProgram, WritesTheSameBytesEveryTime) {
  ASSERT_EQ(Quantize().exit_code, 0);
  const std::string first = folder_.Read("out.pb");
  ASSERT_EQ(Quantize().exit_code, 0);
  EXPECT_EQ(folder_.Read("out.pb"), first);
}

// Steps 2 to 10 of the recipe on the embedded model. Its embeddings are
// negative as often as not, for which the original's graphs are garbage.
class WideDeepSteps : public QuantizeGraphProgram {
 protected:
  void MakeFloatGraph() {
    MustRun("graph/freeze_graph",
            {absl::StrCat("--input_saved_model_dir=", kModel, "model"),
             "--output_graph=" + folder_.Path("frozen.pb"),
             "--output_node_names=head/predictions/probabilities"});
    MustRun(
        "transforms/featurecolumn_graph_optimization",
        {"--input-graph", folder_.Path("frozen.pb"), "--output-graph",
         folder_.Path("fp32.pb"), "--output-nodes",
         "head/predictions/probabilities", "--wide_and_deep_large_ds", "True"});
    for (const char* split : {"train", "eval"}) {
      MustRun("runtime/datasets/dataset",
              {"synthesize", absl::StrCat("--split=", split), "--rows=5000",
               "--format=preprocessed",
               absl::StrCat("--ranges=", kModel, "ranges.json"),
               "--out=" + folder_.Path(split)});
    }
  }

  void Transform(const std::string& in, const std::string& out,
                 const std::string& transforms) {
    MustRun(
        kTransformGraph,
        {"--in_graph=" + folder_.Path(in), "--out_graph=" + folder_.Path(out),
         absl::StrCat("--outputs=", kOutput), "--transforms=" + transforms});
  }

  ProgramRun Evaluate(const std::string& graph, const std::string& data,
                      const std::string& flag) {
    return RunProgram(
        "runtime/evaluate_graph",
        {"--graph=" + folder_.Path(graph),
         absl::StrCat("--dataset=", kModel, "preprocessed.textproto"),
         "--data=" + folder_.Path(data), "--format=json", flag});
  }

  // The share of records for which `graph` predicts what the float graph does.
  double Agreement(const std::string& graph) {
    const ProgramRun run =
        Evaluate(graph, "eval", "--baseline=" + folder_.Path("fp32.pb"));
    EXPECT_EQ(run.exit_code, 0) << run.error;
    double share = 0;
    EXPECT_TRUE(RE2::PartialMatch(
        run.out, "\"agreement\":\\s*{[^}]*\"share\":\\s*([0-9.]+)", &share))
        << run.out;
    return share;
  }

  // Freezes the ranges of `in` as its Print operations log them.
  void Freeze(const std::string& in, const std::string& out) {
    std::string logging, freezing;
    const std::string log = folder_.Path("ranges.txt");
    for (const auto& [op, kind, transform] :
         std::vector<std::array<std::string, 3>>{
             {"RequantizationRange", "requant_min_max",
              "freeze_requantization_ranges"},
             {"Min", "min", "freeze_min"},
             {"Max", "max", "freeze_max"}}) {
      absl::StrAppend(&logging, "insert_logging(op=", op,
                      ", show_name=true, message=\"__", kind, ":\") ");
      absl::StrAppend(&freezing, transform, "(min_max_log_file=\"", log,
                      "\") ");
    }
    Transform(in, "logged.pb", logging);
    const ProgramRun run = Evaluate("logged.pb", "train", "--log_file=" + log);
    ASSERT_EQ(run.exit_code, 0) << run.error;
    Transform(in, out, freezing);
  }
};

TEST_F(WideDeepSteps, EveryStageAgreesWithTheFloatGraph) {
  MakeFloatGraph();
  MustRun(kProgram, {"--input=" + folder_.Path("fp32.pb"),
                     "--output=" + folder_.Path("dynamic.pb"),
                     absl::StrCat("--output_node_names=", kOutput)});
  EXPECT_GT(Agreement("dynamic.pb"), 0.985);
  Freeze("dynamic.pb", "frozen_ranges.pb");
  EXPECT_GT(Agreement("frozen_ranges.pb"), 0.985);
  Transform("frozen_ranges.pb", "final.pb",
            "fuse_quantized_matmul_and_requantize strip_unused_nodes");
  EXPECT_GT(Agreement("final.pb"), 0.985);
}

}  // namespace
}  // namespace requant
