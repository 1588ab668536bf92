// requant quantize as people run it: one command from a float graph to an
// eight-bit one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/testing/graph_text.h"
#include "graph/testing/program.h"
#include "graph/testing/testing.h"
#include "re2/re2.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tests/support/mixed_records.h"
#include "tests/support/processes.h"

namespace requant::quantize_model_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kQuantizeModel[] = "runtime/quantize_model";
constexpr char kGraph[] = "tests/data/mixed_layers/frozen.pb";
constexpr char kDataset[] = "tests/data/mixed_layers/dataset.textproto";

int QuantizedMatMuls(const tensorflow::GraphDef& graph) {
  return std::count_if(graph.node().begin(), graph.node().end(),
                       [](const tensorflow::NodeDef& node) {
                         return absl::StartsWith(node.op(), "QuantizedMatMul");
                       });
}

class QuantizeModel : public testing::Test {
 protected:
  QuantizeModel() {
    const absl::Status written = WriteMixedRecords(
        folder_.Path("train.npz"), MixedSplit::kCalibration, 2000);
    EXPECT_TRUE(written.ok()) << written;
  }

  // Without records.
  ProgramRun Run(std::vector<std::string> arguments,
                 const std::string& graph = kGraph) {
    arguments.insert(arguments.begin(),
                     {"--graph=" + graph, "--output=" + folder_.Path("q.pb")});
    return RunProgram(kQuantizeModel, arguments,
                      {"TMPDIR=" + folder_.Path("")});
  }

  ProgramRun Quantize(std::vector<std::string> more = {},
                      const std::string& graph = kGraph) {
    more.insert(more.begin(), {absl::StrCat("--dataset=", kDataset),
                               "--data=" + folder_.Path("train.npz")});
    return Run(std::move(more), graph);
  }

  TestFolder folder_;
};

TEST_F(QuantizeModel, PrintsTheLayersTheSizesAndTheCommandThatVerifies) {
  const ProgramRun run = Quantize();
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(
      run.out,
      AllOf(HasSubstr("calibrated on 2000 records\n"),
            HasSubstr("quantizes 7 of 8 MatMuls for the target \"any\""),
            HasSubstr("head/logits/MatMul"), HasSubstr("match/MatMul"),
            HasSubstr(" kB (-"),
            HasSubstr(
                absl::StrCat("requant evaluate --graph=", folder_.Path("q.pb"),
                             " --baseline=", kGraph, " --dataset=", kDataset,
                             " --data=RECORDS\n")),
            HasSubstr("on RECORDS that it was not calibrated on"),
            Not(HasSubstr("train.npz"))));
  EXPECT_EQ(QuantizedMatMuls(folder_.ReadGraphFile("q.pb")), 7);
}

TEST_F(QuantizeModel, AgreesWithTheFloatGraphOnOtherRecords) {
  ASSERT_EQ(Quantize().exit_code, 0);
  ASSERT_TRUE(
      WriteMixedRecords(folder_.Path("eval.npz"), MixedSplit::kEval, 4000)
          .ok());
  const ProgramRun run = RunProgram(
      "runtime/evaluate_graph",
      {"--graph=" + folder_.Path("q.pb"), absl::StrCat("--baseline=", kGraph),
       absl::StrCat("--dataset=", kDataset),
       "--data=" + folder_.Path("eval.npz"), "--format=json"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  double share = 0;
  ASSERT_TRUE(RE2::PartialMatch(
      run.out, "\"agreement\":\\s*{[^}]*\"share\":\\s*([0-9.]+)", &share))
      << run.out;
  EXPECT_GT(share, 0.98);
}

TEST_F(QuantizeModel, WritesWhatCalibrateAndTransformWouldTogether) {
  ASSERT_EQ(Quantize().exit_code, 0);
  const ProgramRun calibrated = RunProgram(
      "runtime/calibrate_graph",
      {absl::StrCat("--graph=", kGraph), absl::StrCat("--dataset=", kDataset),
       "--data=" + folder_.Path("train.npz"),
       "--output=" + folder_.Path("model.ranges")});
  ASSERT_EQ(calibrated.exit_code, 0) << calibrated.error;
  const ProgramRun transformed =
      RunProgram(kTransformGraph,
                 {absl::StrCat("--in_graph=", kGraph),
                  "--out_graph=" + folder_.Path("steps.pb"),
                  "--outputs=head/probabilities",
                  absl::StrCat("--transforms=quantize_static(ranges_file=\"",
                               folder_.Path("model.ranges"),
                               "\") strip_unused_nodes quantize_embeddings "
                               "strip_unused_nodes")});
  ASSERT_EQ(transformed.exit_code, 0) << transformed.error;
  EXPECT_TRUE(folder_.Read("q.pb") == folder_.Read("steps.pb"));
}

TEST_F(QuantizeModel, KeepsTheRangesForTheNextTime) {
  ASSERT_EQ(
      Quantize({"--ranges_output=" + folder_.Path("kept.ranges")}).exit_code,
      0);
  const std::string first = folder_.Read("q.pb");
  const ProgramRun run = Run({"--ranges=" + folder_.Path("kept.ranges"),
                              "--outputs=head/probabilities"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, Not(HasSubstr("calibrated on")));
  EXPECT_TRUE(folder_.Read("q.pb") == first);
}

TEST_F(QuantizeModel, KeepsExcludedNodesAndFurtherOutputsInFloat) {
  const ProgramRun run =
      Quantize({"--excluded_nodes=head/mix/MatMul,head/logits/MatMul",
                "--outputs=head/hidden/Relu"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto graph = folder_.ReadGraphFile("q.pb");
  EXPECT_EQ(NodeNamed(graph, "head/mix/MatMul").op(), "MatMul");
  EXPECT_EQ(NodeNamed(graph, "head/logits/MatMul").op(), "MatMul");
  EXPECT_TRUE(HasNode(graph, "head/hidden/Relu"));
}

TEST_F(QuantizeModel, TakesThisMachinesTarget) {
  const ProgramRun run = Quantize({"--target=host"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_TRUE(RE2::PartialMatch(run.out, "for the target \"(vnni|avx2)\""))
      << run.out;
}

TEST_F(QuantizeModel, RefusesWrongUsage) {
  for (const auto& [flags, message] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "--dataset is missing"},
           {{"--ranges=r"}, "--ranges needs --dataset"},
           {{"--ranges=r", "--ranges_output=s"}, "exclude each other"},
           {{"--target=i386"}, "no target \"i386\""},
           {{"--method=best"}, "best"},
           {{"--batch_size=0"}, "--batch_size"},
           {{"stray"}, "unexpected argument \"stray\""}}) {
    const ProgramRun run = Run(flags);
    EXPECT_EQ(run.exit_code, 2) << message;
    EXPECT_THAT(run.error, HasSubstr(message));
  }
}

TEST_F(QuantizeModel, WritesNothingWhenItFails) {
  folder_.Write("nothing.pbtxt", absl::StrCat(Placeholder("signal", {-1, 21}),
                                              Placeholder("context", {-1, 10}),
                                              Node("head/probabilities", "Neg",
                                                   {"signal"}, {kFloat})));
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
    const ProgramRun run = Quantize({flag}, graph);
    EXPECT_EQ(run.exit_code, 1) << flag << run.error;
    EXPECT_THAT(run.error,
                AllOf(HasSubstr("quantize_model: "), HasSubstr(message)));
    EXPECT_EQ(folder_.Names(), before) << flag;
  }
}

TEST_F(QuantizeModel, EndsWithTheSignalsExitCodeWhenInterrupted) {
  ASSERT_TRUE(
      WriteMixedRecords(folder_.Path("many.npz"), MixedSplit::kTrain, 20000)
          .ok());
  const std::vector<std::string> before = folder_.Names();
  // Two million records: it is not done before the signal comes.
  const std::vector<std::string> data(100, folder_.Path("many.npz"));
  for (const int signal : {SIGINT, SIGTERM}) {
    const Running running = StartUntilItHasAWorker(
        kQuantizeModel,
        {absl::StrCat("--graph=", kGraph), absl::StrCat("--dataset=", kDataset),
         "--data=" + absl::StrJoin(data, ","), "--max_records=0",
         "--output=" + folder_.Path("q.pb")});
    ASSERT_NE(running.worker, 0);
    kill(running.program, signal);
    EXPECT_EQ(WaitForExitCode(running.program), 128 + signal);
    while (IsAlive(running.worker)) std::this_thread::yield();
    EXPECT_EQ(folder_.Names(), before);
  }
}

TEST_F(QuantizeModel, LeavesTheOldGraphWhenItFails) {
  folder_.Write("q.pb", "old");
  EXPECT_EQ(Quantize({"--timeout=0.001"}).exit_code, 1);
  EXPECT_EQ(folder_.Read("q.pb"), "old");
}

}  // namespace
}  // namespace requant::quantize_model_test
