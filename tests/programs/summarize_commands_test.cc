// Tests that every command line that requant summarize proposes works.

#include <filesystem>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/testing/program.h"
#include "re2/re2.h"

namespace requant::summarize_commands_test {
namespace {

namespace fs = std::filesystem;

constexpr char kRequant[] = "workflows/requant";

std::string WideDeepRecord() {
  std::string record = R"({"C26": "c")";
  for (int i = 1; i < 26; ++i) {
    absl::StrAppend(&record, ", \"C", i, "\": \"c\"");
    if (i <= 13) absl::StrAppend(&record, ", \"I", i, "\": 1");
  }
  return record + "}";
}

class SummarizeCommands : public testing::Test {
 protected:
  // Runs the commands proposed for the model at `path` in order, with `record`,
  // a JSON object, as all records, and returns their number.
  int Follow(const std::string& path, const std::string& record = "") {
    const ProgramRun summary =
        RunProgram(kRequant, {"summarize", "--in_graph=" + path});
    EXPECT_THAT(summary, Exits(0));
    report_ = summary.out;
    int commands = 0;
    for (std::string_view line : absl::StrSplit(summary.out, '\n')) {
      EXPECT_FALSE(absl::StartsWith(line, "bazel")) << line;
      if (!absl::StartsWith(line, "requant ")) continue;
      ++commands;
      // Files are told apart by what is in them.
      const std::string records = folder_.Write(
          "records", absl::StrJoin(std::vector<std::string>(20, record), "\n"));
      std::string command(line);
      RE2::Replace(&command, "--data=RECORDS", "--data=" + records);
      const ProgramRun run =
          RunProgram("/bin/sh", {"-c", absl::StrCat("requant() { ", kRequant,
                                                    " \"$@\"; }; ", command)});
      EXPECT_EQ(run.exit_code, 0) << line << "\n" << run.error;
    }
    return commands;
  }

  TestFolder folder_;
  std::string report_;
};

TEST_F(SummarizeCommands, OfSavedModelsWork) {
  int number = 0;
  for (const auto& [model, record] :
       std::vector<std::pair<std::string, std::string>>{
           {"graph/testdata/functions", ""},
           {"graph/testdata/partitioned_variables",
            R"({"x": [0, 1, 2, 3, 4, 5], "ids": 1})"},
           {"graph/testdata/ref_variables", R"({"x": [0, 1, 2, 3]})"},
           {"graph/testdata/resource_variables",
            R"({"x": [0, 1, 2, 3], "ids": 1})"},
           {"graph/testdata/vocabulary_v1", R"({"words": "a"})"},
           {"graph/testdata/vocabulary_v2", R"({"words": "a"})"},
           {"workflows/gptj_tiny/saved_model/1", R"({"input_ids": [1, 2, 3]})"},
           {"workflows/wide_deep/model", WideDeepRecord()}}) {
    const std::string copy = folder_.Path(absl::StrCat("a model ", number++));
    fs::copy(model, copy, fs::copy_options::recursive);
    // Where two outputs are alike, it is unknown which is the prediction.
    const bool is_quantized = !record.empty();
    EXPECT_EQ(Follow(copy, record), is_quantized ? 3 : 2) << model << "\n"
                                                          << report_;
    EXPECT_EQ(fs::exists(copy + "_int8/1/saved_model.pb"), is_quantized)
        << model;
  }
}

TEST_F(SummarizeCommands, OfAFrozenGraphThatKeptItsNamesWork) {
  const std::string frozen = folder_.Path("frozen.pb");
  ASSERT_THAT(RunProgram(kRequant, {"freeze", "--output_graph=" + frozen,
                                    "--input_saved_model_dir=graph/testdata/"
                                    "vocabulary_v2"}),
              Exits(0));
  EXPECT_EQ(Follow(frozen, R"({"words": "a"})"), 2) << report_;
  EXPECT_TRUE(fs::exists(folder_.Path("frozen_int8.pb")));
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
