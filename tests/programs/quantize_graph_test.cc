// Tests quantize_graph as the published recipe's sixth step calls it.

#include "absl/strings/match.h"
#include "tests/support/program_runs.h"

namespace requant::quantize_graph_test {
namespace {

constexpr char kProgram[] = "transforms/quantize_graph";

// Returns x -> hidden/Relu -> logits -> y and a node that y does not need.
std::string Classifier() {
  return GraphText(R"(
    x = Placeholder dtype=float shape=<?,2>
    hidden/w = float<2,2>{1,2,-3,4}
    hidden/MatMul = MatMul(x, hidden/w) T=float
    hidden/Relu = Relu(hidden/MatMul) T=float
    logits/w = float<2,2>{1,2,-3,4}
    logits = MatMul(hidden/Relu, logits/w) T=float
    y = Softmax(logits) T=float
    unneeded = Neg(x) T=float
  )");
}

class QuantizeGraphProgram : public testing::Test {
 protected:
  ProgramRun Quantize(const Words& more = {},
                      const std::string& outputs = "y") {
    Words arguments = {"--input", folder_.Write("in.pbtxt", Classifier()),
                       "--output", folder_.Path("out.pb")};
    if (!outputs.empty()) {
      arguments.insert(arguments.end(), {"--output_node_names", outputs});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(kProgram, arguments);
  }

  TestFolder folder_;
};

TEST_F(QuantizeGraphProgram, TakesTheRecipesFlags) {
  ASSERT_THAT(Quantize({"--mode=eightbit", "--intel_cpu_eightbitize=True",
                        "--model_name=wide_deep_large_ds"}),
              AllOf(Prints("quantizes 2 of 2 MatMuls",
                           "--model_name=wide_deep_large_ds makes "
                           "no difference"),
                    Exits(0, "")));
  const auto graph = folder_.ReadGraphFile("out.pb");
  EXPECT_TRUE(HasNode(graph, "hidden/MatMul_eightbit_requantize"));
  EXPECT_FALSE(HasNode(graph, "unneeded"));
}

TEST_F(QuantizeGraphProgram, TakesValuesAfterASpace) {
  ASSERT_THAT(Quantize({"--mode", "eightbit", "--intel_cpu_eightbitize", "1",
                        "--per_channel", "false", "--target", "vnni",
                        "--excluded_nodes", "logits"}),
              Prints("for the target \"vnni\""));
  EXPECT_EQ(NodeNamed(folder_.ReadGraphFile("out.pb"), "logits").op(),
            "MatMul");
}

TEST_F(QuantizeGraphProgram, TakesTheOriginalsOtherFlags) {
  ASSERT_THAT(Quantize(), Exits(0));
  const GraphDef graph = folder_.ReadGraphFile("out.pb");
  const std::string bytes = folder_.Read("out.pb");
  ASSERT_THAT(Quantize(), Exits(0));
  EXPECT_EQ(folder_.Read("out.pb"), bytes) << "not the same every time";
  ASSERT_THAT(
      Quantize({"--input_binary", "--output_binary=False", "--print_nodes",
                "--bitdepth", "8", "--test_input_dims=1,2",
                "--strip_redundant_quantization", "--logtostderr"}),
      Prints("MatMul:hidden/MatMul\n", Not(HasSubstr("unneeded"))));
  EXPECT_THAT(folder_.Read("out.pb"), HasSubstr("op: \"Requantize\""));
  EXPECT_EQ(folder_.ReadGraphFile("out.pb").DebugString(), graph.DebugString());
}

TEST_F(QuantizeGraphProgram, FailsWhenNothingIsQuantized) {
  const std::string convolution = GraphText(R"(
    x = Placeholder dtype=float shape=<?,4,4,1>
    w = float<1,1,1,1>{2}
    y = Conv2D(x, w) T=float padding='SAME' strides=[1,1,1,1]
  )");
  const std::string unfrozen = GraphText(R"(
    x = Placeholder dtype=float shape=<?,2>
    w = VariableV2 dtype=float shape=<2,2>
    y = MatMul(x, w) T=float
  )");
  for (const auto& [graph, message] :
       std::vector<std::pair<std::string, std::string>>{
           {convolution, "other layers stay float: 1 Conv2D"},
           {unfrozen, "requant freeze"}}) {
    const ProgramRun run = RunProgram(
        kProgram, {"--input", folder_.Write("in.pbtxt", graph), "--output",
                   folder_.Path("out.pb"), "--output_node_names=y"});
    EXPECT_THAT(run, Fails("in.pbtxt: there is nothing to quantize: no "
                           "MatMul has constant float weights",
                           message, "nothing was written"));
    EXPECT_EQ(absl::StrContains(run.error, "freeze"), graph == unfrozen);
    EXPECT_EQ(folder_.Names(), std::vector<std::string>{"in.pbtxt"});
  }
  EXPECT_THAT(Quantize({"--excluded_ops=MatMul"}),
              Fails("\"hidden/MatMul\" stays float: "));
}

// Each of the original's other modes is refused with the equivalent command.
TEST_F(QuantizeGraphProgram, NamesTheTransformForAnotherMode) {
  for (const auto& [mode, transforms] :
       std::vector<std::pair<std::string, std::string>>{
           {"weights", "quantize_weights"},
           {"weights_rounded", "round_weights"},
           {"round", "round_weights"},
           {"quantize",
            "'add_default_attributes quantize_weights quantize_nodes'"}}) {
    const ProgramRun run = Quantize({"--mode=" + mode});
    EXPECT_THAT(run, Exits(2));
    const size_t start = run.error.find("requant transform ");
    const size_t end = run.error.find("; see ");
    ASSERT_TRUE(start < end && end < run.error.size()) << run.error;
    const std::string command = run.error.substr(start, end - start);
    EXPECT_THAT(command, EndsWith(" --transforms=" + transforms));
    const ProgramRun followed = RunProgram(
        "/bin/sh", {"-c", absl::StrCat("requant() { shift; ", kTransformGraph,
                                       " \"$@\"; }; ", command)});
    EXPECT_EQ(followed.exit_code, 0) << command << followed.error;
  }
}

TEST_F(QuantizeGraphProgram, SaysWhatIsNotSupported) {
  for (const auto& [flag, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"--mode=sixteenbit", "only --mode=eightbit; see"},
           {"--bitdepth=16", "--bitdepth=16 is not supported"},
           {"--strip_redundant_quantization=False", "is not supported"},
           {"--quantized_input", "unknown flag --quantized_input"},
           {"--intel_cpu_eightbitize=False", "oneDNN only"},
           {"--intel_cpu_eightbitize=maybe", "True or False"},
           {"--per_channel=perhaps", "True or False"},
           {"--target=i386", "no target \"i386\""}}) {
    EXPECT_THAT(Quantize({flag}), Misused(message)) << flag;
  }
  EXPECT_THAT(Quantize({}, ""), Misused("--output_node_names is missing"));
}

TEST_F(QuantizeGraphProgram, WritesNothingWhenItFails) {
  EXPECT_THAT(Quantize({}, "logit"), Fails("did you mean \"logits\"?"));
  EXPECT_THAT(Quantize({"--per_channel=True"}), Exits(1));
  EXPECT_THAT(Quantize({"--excluded_nodes=none"}), Exits(1));
  EXPECT_EQ(folder_.Names(), std::vector<std::string>{"in.pbtxt"});
}

}  // namespace
}  // namespace requant::quantize_graph_test
