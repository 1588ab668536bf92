// quantize_graph as the published recipe's sixth step calls it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/testing.h"
#include "tests/graph_text.h"
#include "tests/program.h"

namespace requant {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kProgram[] = "transforms/quantize_graph";

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

}  // namespace
}  // namespace requant
