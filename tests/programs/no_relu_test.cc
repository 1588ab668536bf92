// Tests the published way on a model without Relu, whose eight-bit graph has no
// RequantizationRange: the step that logs those makes a copy, the step that
// freezes them does nothing, and the others work as usual.

#include "tests/support/program_runs.h"

namespace requant::no_relu_test {
namespace {

// Returns a logging stage and a freezing stage.
std::string LogAndFreeze(const std::string& transform, const std::string& from,
                         const std::string& op, const std::string& message) {
  return absl::StrCat(
      "stage { name: 'log_", transform, "' calibrate { graph { stage: '", from,
      "' } on { dataset: 'data.textproto' batch_size: '8' } logging { op: '",
      op, "' message: '", message, "' logged_graph: 'logged_", transform,
      ".pb' log: '", transform, ".log' } } }\n", "stage { name: '", transform,
      "' transform { graph { stage: '", from,
      "' } file { name: 'log' from { stage: 'log_", transform,
      "' } } transforms: '", transform,
      "(min_max_log_file=\"${log}\")' output: '", transform, ".pb' } }\n");
}

TEST(PublishedWay, GoesOnWithoutRequantizationRanges) {
  const TestFolder folder;
  folder.Write(
      "fp32.pbtxt",
      absl::StrCat(Placeholder("x", {-1, 1}), FloatConst("w", {1, 2}, {1, -2}),
                   Node("logits", "MatMul", {"x", "w"}, {kFloat}),
                   Node("predict", "Softmax", {"logits"}, {kFloat})));
  folder.Write("data.textproto", CsvDeclaration(1, /*label=*/false));
  std::string rows = "x\n";
  for (int i = 0; i < 80; ++i) absl::StrAppend(&rows, i * 37 % 80 - 40, "\n");
  folder.Write("data.csv", rows);
  const std::string file = folder.Write(
      "w.textproto",
      absl::StrCat(
          "stage { name: 'quantize' quantize { graph { file: 'fp32.pbtxt' } "
          "dynamic {} output_node: 'predict' output: 'dynamic.pb' } }\n",
          LogAndFreeze("freeze_requantization_ranges", "quantize",
                       "RequantizationRange", "__requant_min_max:"),
          LogAndFreeze("freeze_min", "freeze_requantization_ranges", "Min",
                       "__min:"),
          LogAndFreeze("freeze_max", "freeze_min", "Max", "__max:")));
  const std::string out = folder.Path("out");
  ASSERT_THAT(RunProgram("workflows/requant",
                         {"run", file, "--work_dir=" + folder.Path("work"),
                          "--out=" + out}),
              Warns("logs nothing, the graph stays as it is: there is no "
                    "node with op=RequantizationRange"));
  EXPECT_THAT(
      folder.Read("out/results.json"),
      AllOf(HasSubstr("nothing to freeze: no quantization of this graph uses a "
                      "RequantizationRange"),
            HasSubstr("freezes 1 Min node"), HasSubstr("freezes 1 Max node")));
  EXPECT_TRUE(folder.Read("out/logged_freeze_requantization_ranges.pb") ==
              folder.Read("out/dynamic.pb"));
}

}  // namespace
}  // namespace requant::no_relu_test
