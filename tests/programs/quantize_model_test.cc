// Tests requant quantize as people run it: one command turns a float graph into
// an eight-bit one.

#include <cstdlib>
#include <tuple>

#include "absl/strings/match.h"
#include "tests/support/mixed_records.h"
#include "tests/support/program_runs.h"

namespace requant::quantize_model_test {
namespace {

constexpr char kQuantizeModel[] = "runtime/quantize_model";
constexpr char kGraph[] = "tests/data/mixed_layers/frozen.pb";
constexpr char kDataset[] = "tests/data/mixed_layers/dataset.textproto";

int QuantizedMatMuls(const GraphDef& graph) {
  return std::count_if(graph.node().begin(), graph.node().end(),
                       [](const NodeDef& node) {
                         return absl::StartsWith(node.op(), "QuantizedMatMul");
                       });
}

class QuantizeModel : public testing::Test {
 protected:
  QuantizeModel() {
    EXPECT_OK(WriteMixedRecords(folder_.Path("train.npz"),
                                MixedSplit::kCalibration, 2000));
  }

  // Runs the program without records.
  ProgramRun Run(const Words& arguments, const std::string& graph = kGraph) {
    return RunProgram(
        kQuantizeModel,
        Joined({"--graph=" + graph, "--output=" + folder_.Path("q.pb")},
               arguments),
        {"TMPDIR=" + folder_.Path("")});
  }

  ProgramRun Quantize(const Words& more = {},
                      const std::string& graph = kGraph) {
    return Run(Joined({absl::StrCat("--dataset=", kDataset),
                       "--data=" + folder_.Path("train.npz")},
                      more),
               graph);
  }

  TestFolder folder_;
};

TEST_F(QuantizeModel, PrintsTheLayersTheSizesAndTheCommandThatVerifies) {
  ASSERT_THAT(Quantize(),
              Prints("calibrated on 2000 records\n",
                     "quantizes 7 of 8 MatMuls for the target \"any\"",
                     "head/logits/MatMul", "match/MatMul", " kB (-",
                     absl::StrCat("requant evaluate --graph=",
                                  folder_.Path("q.pb"), " --baseline=", kGraph,
                                  " --dataset=", kDataset, " --data=RECORDS\n"),
                     "on RECORDS that it was not calibrated on",
                     Not(HasSubstr("train.npz"))));
  EXPECT_EQ(QuantizedMatMuls(folder_.ReadGraphFile("q.pb")), 7);
}

// `requant run` itself says this at its end.
TEST_F(QuantizeModel, SaysHowToServeItUnlessItIsPartOfARun) {
  EXPECT_THAT(Quantize(), Prints("docs/quantization.md"));
  setenv("REQUANT_PROGRESS_FD", "2", 1);
  EXPECT_THAT(Quantize(), Prints(Not(HasSubstr("docs/quantization.md"))));
  unsetenv("REQUANT_PROGRESS_FD");
}

TEST_F(QuantizeModel, WritesWhatCalibrateAndTransformWouldTogether) {
  ASSERT_THAT(Quantize(), Exits(0));
  ASSERT_THAT(RunProgram("runtime/calibrate_graph",
                         {absl::StrCat("--graph=", kGraph),
                          absl::StrCat("--dataset=", kDataset),
                          "--data=" + folder_.Path("train.npz"),
                          "--output=" + folder_.Path("model.ranges")}),
              Exits(0));
  ASSERT_THAT(
      RunProgram(kTransformGraph,
                 {absl::StrCat("--in_graph=", kGraph),
                  "--out_graph=" + folder_.Path("steps.pb"),
                  "--outputs=head/probabilities",
                  absl::StrCat("--transforms=quantize_static(ranges_file=\"",
                               folder_.Path("model.ranges"),
                               "\") strip_unused_nodes quantize_embeddings "
                               "strip_unused_nodes")}),
      Exits(0));
  EXPECT_TRUE(folder_.Read("q.pb") == folder_.Read("steps.pb"));
}

TEST_F(QuantizeModel, KeepsTheRangesForTheNextTime) {
  ASSERT_THAT(Quantize({"--ranges_output=" + folder_.Path("kept.ranges")}),
              Exits(0));
  const std::string first = folder_.Read("q.pb");
  ASSERT_THAT(Run({"--ranges=" + folder_.Path("kept.ranges"),
                   "--outputs=head/probabilities"}),
              Prints(Not(HasSubstr("calibrated on"))));
  EXPECT_TRUE(folder_.Read("q.pb") == first);
}

TEST_F(QuantizeModel, KeepsExcludedNodesAndFurtherOutputsInFloat) {
  ASSERT_THAT(Quantize({"--excluded_nodes=head/mix/MatMul,head/logits/MatMul",
                        "--outputs=head/hidden/Relu"}),
              Exits(0));
  const auto graph = folder_.ReadGraphFile("q.pb");
  EXPECT_EQ(NodeNamed(graph, "head/mix/MatMul").op(), "MatMul");
  EXPECT_EQ(NodeNamed(graph, "head/logits/MatMul").op(), "MatMul");
  EXPECT_TRUE(HasNode(graph, "head/hidden/Relu"));
}

TEST_F(QuantizeModel, TakesThisMachinesTarget) {
  ASSERT_THAT(Quantize({"--target=host"}),
              Prints(testing::ContainsRegex("for the target \"(vnni|avx2)\"")));
}

TEST_F(QuantizeModel, RefusesWrongUsage) {
  for (const auto& [flags, message] :
       std::vector<std::pair<Words, std::string>>{
           {{}, "--dataset is missing"},
           {{"--ranges=r"}, "--ranges needs --dataset"},
           {{"--ranges=r", "--ranges_output=s"}, "exclude each other"},
           {{"--target=i386"}, "no target \"i386\""},
           {{"--method=best"}, "best"},
           {{"--batch_size=0"}, "--batch_size"},
           {{"stray"}, "unexpected argument \"stray\""}}) {
    EXPECT_THAT(Run(flags), Misused(message));
  }
}

TEST_F(QuantizeModel, WritesNothingWhenItFails) {
  folder_.Write("nothing.pbtxt", GraphText(R"(
    signal = Placeholder dtype=float shape=<?,21>
    context = Placeholder dtype=float shape=<?,10>
    head/probabilities = Neg(signal) T=float
  )"));
  const std::vector<std::string> before = folder_.Names();
  for (const auto& [flag, graph, message] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"--excluded_nodes=head/mix/MatMull", kGraph, "head/mix/MatMul"},
           {"--outputs=head/probability", kGraph, "head/probability"},
           {"--excluded_ops=MatMul", kGraph, "nothing to quantize"},
           {"--max_records=0", folder_.Path("nothing.pbtxt"),
            "nothing.pbtxt has nothing to calibrate: no node computes ranges, "
            "and no MatMul has constant float weights; requant calibrate "
            "--tensors observes any tensor"},
           {"--max_records=0", folder_.Path("absent.pb"), "absent.pb"},
           {"--ranges=" + folder_.Path("train.npz"), kGraph, "train.npz"},
           {"--ranges_output=" + folder_.Path("no/r"), kGraph, "no"},
           {"--ranges_output=" + folder_.Path("q.pb"), kGraph, "q.pb"}}) {
    EXPECT_THAT(Quantize({flag}, graph), Fails("quantize_model: ", message));
    EXPECT_EQ(folder_.Names(), before) << flag;
  }
}

}  // namespace
}  // namespace requant::quantize_model_test
