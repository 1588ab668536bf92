// Tests that every command line that requant summarize proposes works.

#include <filesystem>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "graph/testing/program.h"

namespace requant::summarize_commands_test {
namespace {

namespace fs = std::filesystem;

constexpr char kRequant[] = "workflows/requant";

class SummarizeCommands : public testing::Test {
 protected:
  // Runs the commands proposed for the model at `path` in order, and returns
  // their number.
  int Follow(const std::string& path) {
    const ProgramRun summary =
        RunProgram(kRequant, {"summarize", "--in_graph=" + path});
    EXPECT_THAT(summary, Exits(0));
    report_ = summary.out;
    int commands = 0;
    for (std::string_view line : absl::StrSplit(summary.out, '\n')) {
      EXPECT_FALSE(absl::StartsWith(line, "bazel")) << line;
      if (!absl::StartsWith(line, "requant ")) continue;
      ++commands;
      const ProgramRun run = RunProgram(
          "/bin/sh",
          {"-c", absl::StrCat("requant() { ", kRequant, " \"$@\"; }; ", line)});
      EXPECT_EQ(run.exit_code, 0) << line << "\n" << run.error;
    }
    return commands;
  }

  TestFolder folder_;
  std::string report_;
};

TEST_F(SummarizeCommands, OfSavedModelsWork) {
  int number = 0;
  for (const auto& [model, commands] : std::vector<std::pair<std::string, int>>{
           {"graph/testdata/functions", 2},
           {"graph/testdata/partitioned_variables", 2},
           {"graph/testdata/ref_variables", 2},
           {"graph/testdata/resource_variables", 2},
           {"graph/testdata/vocabulary_v1", 2},
           {"graph/testdata/vocabulary_v2", 2},
           {"workflows/gptj_tiny/saved_model/1", 2},
           {"workflows/wide_deep/model", 2}}) {
    const std::string copy = folder_.Path(absl::StrCat("a model ", number++));
    fs::copy(model, copy, fs::copy_options::recursive);
    EXPECT_EQ(Follow(copy), commands) << model << "\n" << report_;
  }
}

TEST_F(SummarizeCommands, OfGraphsWork) {
  const std::string convolution = GraphText(R"(
    image = Placeholder dtype=float shape=<?,4,4,1>
    w = float<1,1,1,1>{2}
    conv = Conv2D(image, w) T=float padding='SAME' strides=[1,1,1,1]
    same = Identity(conv) T=float
    probabilities = Softmax(same) T=float
  )");
  const std::string training = GraphText(R"(
    x = Placeholder dtype=float shape=<?,2>
    w = VariableV2 dtype=float shape=<2,2>
    logits = MatMul(x, w) T=float
  )");
  for (const auto& [graph, commands] : std::vector<std::pair<std::string, int>>{
           {convolution, 1},
           {training, 0},
           {FloatConst("lonely", {1}, {1}), 0},
           {Placeholder("x"), 0},
           {absl::StrCat(Placeholder("a"), Node("b", "Relu", {"a"}, {kFloat}),
                         Node("c", "Neg", {"a"}, {kFloat})),
            1}}) {
    EXPECT_EQ(Follow(folder_.Write("graph.pbtxt", graph)), commands) << report_;
    EXPECT_EQ(absl::StrContains(report_, "freeze"), graph == training);
  }
  folder_.Write("frozen.pb", folder_.Read("graph_optimized.pb"));
  EXPECT_EQ(Follow(folder_.Path("frozen.pb")), 1);
}

}  // namespace
}  // namespace requant::summarize_commands_test
