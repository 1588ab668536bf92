// requant quantize as people run it: one command from a float graph to an
// eight-bit one.

#include <signal.h>

#include <algorithm>
#include <thread>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "graph/testing/program.h"
#include "re2/re2.h"
#include "tests/support/mixed_records.h"
#include "tests/support/processes.h"

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
  ASSERT_THAT(run, Exits(0));
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
  ASSERT_THAT(Quantize(), Exits(0));
  ASSERT_OK(
      WriteMixedRecords(folder_.Path("eval.npz"), MixedSplit::kEval, 4000));
  const ProgramRun run = RunProgram(
      "runtime/evaluate_graph",
      {"--graph=" + folder_.Path("q.pb"), absl::StrCat("--baseline=", kGraph),
       absl::StrCat("--dataset=", kDataset),
       "--data=" + folder_.Path("eval.npz"), "--format=json"});
  ASSERT_THAT(run, Exits(0));
  double share = 0;
  ASSERT_TRUE(RE2::PartialMatch(
      run.out, "\"agreement\":\\s*{[^}]*\"share\":\\s*([0-9.]+)", &share))
      << run.out;
  EXPECT_GT(share, 0.98);
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
  const ProgramRun run = Run({"--ranges=" + folder_.Path("kept.ranges"),
                              "--outputs=head/probabilities"});
  ASSERT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, Not(HasSubstr("calibrated on")));
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
  const ProgramRun run = Quantize({"--target=host"});
  ASSERT_THAT(run, Exits(0));
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
  ASSERT_OK(
      WriteMixedRecords(folder_.Path("many.npz"), MixedSplit::kTrain, 20000));
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
  EXPECT_THAT(Quantize({"--timeout=0.001"}), Exits(1));
  EXPECT_EQ(folder_.Read("q.pb"), "old");
}

}  // namespace
}  // namespace requant::quantize_model_test
