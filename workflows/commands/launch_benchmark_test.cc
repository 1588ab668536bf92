#include "workflows/commands/launch_benchmark.h"

#include <gflags/gflags.h>
#include <sched.h>

#include <filesystem>

#include "graph/testing/program.h"

namespace requant::launch_benchmark_test {
namespace {

// The published flags, which a test can change.
class LaunchBenchmark : public testing::Test {
 protected:
  LaunchBenchmark() {
    Set("in_graph", "final_wide_deep_Int8_graph.pb");
    Set("model_name", "wide_deep_large_ds");
    Set("framework", "tensorflow");
    Set("precision", "int8");
    Set("mode", "inference");
    Set("data_location", "dataset_preprocessed_eval.tfrecords");
    Set("batch_size", "1000");
  }
  static void Set(const std::string& flag, const std::string& value) {
    EXPECT_NE(gflags::SetCommandLineOption(flag.c_str(), value.c_str()), "");
  }

 private:
  gflags::FlagSaver saver_;
};

tensorflow::GraphDef GraphOf(const std::string& op) {
  tensorflow::GraphDef graph;
  graph.add_node()->set_op("Const");
  graph.add_node()->set_op(op);
  return graph;
}

TEST_F(LaunchBenchmark, EvaluatesAsThePublishedFlagsSay) {
  Set("num_intra_threads", "2");
  Set("num_inter_threads", "1");
  EXPECT_THAT(
      *EvaluateArguments("/opt/workflows"),
      ElementsAre("--graph=final_wide_deep_Int8_graph.pb",
                  "--dataset=/opt/workflows/wide_deep/preprocessed.textproto",
                  "--data=dataset_preprocessed_eval.tfrecords",
                  "--batch_size=1000", "--threads=2", "--inter_op_threads=1",
                  "--log_file=-"));
}

TEST_F(LaunchBenchmark, RefusesWhatIsMissingOrCannotBeHonoured) {
  struct Case {
    std::string flag, value, right, error;
  };
  for (const Case& wrong : std::vector<Case>{
           {"data_location", "", "x", "--data-location is missing"},
           {"in_graph", "", "x", "--in-graph is missing"},
           {"model_name", "", "", "--model-name is missing"},
           {"model_name", "resnet50", kBenchmarkModel, "requant evaluate"},
           {"framework", "pytorch", "",
            "--framework \"pytorch\": only tensorflow is known"},
           {"mode", "training", "", "--mode \"training\""},
           {"precision", "bfloat16", "", "--precision \"bfloat16\""},
           {"batch_size", "0", "1", "--batch-size"}}) {
    Set(wrong.flag, wrong.value);
    EXPECT_THAT(std::string(EvaluateArguments("x").status().message()),
                HasSubstr(wrong.error));
    Set(wrong.flag, wrong.right);
  }
}

TEST_F(LaunchBenchmark, SaysThatTheImageAndSpeedAloneAreIgnored) {
  EXPECT_THAT(IgnoredFlags(absl::NotFoundError("")), IsEmpty());
  Set("docker_image", "intelaipg/intel-optimized-tensorflow:latest");
  Set("benchmark_only", "true");
  EXPECT_THAT(IgnoredFlags(absl::NotFoundError("")),
              ElementsAre(HasSubstr("intel-optimized-tensorflow:latest is "
                                    "ignored"),
                          HasSubstr("--benchmark-only is ignored")));
}

TEST_F(LaunchBenchmark, SaysThatTheGraphIsOfAnotherPrecision) {
  EXPECT_THAT(IgnoredFlags(GraphOf("QuantizedMatMulWithBias")), IsEmpty());
  EXPECT_THAT(IgnoredFlags(GraphOf("MatMul")),
              ElementsAre(EndsWith("is a graph of fp32")));
  Set("precision", "fp32");
  EXPECT_THAT(IgnoredFlags(GraphOf("MatMul")), IsEmpty());
  EXPECT_THAT(IgnoredFlags(GraphOf("_QuantizedMatMul")),
              ElementsAre(EndsWith("is a graph of int8")));
  Set("precision", "");
  EXPECT_THAT(IgnoredFlags(GraphOf("MatMul")), IsEmpty());
}

TEST(SocketCpus, ReadsRangesAndSingleCpus) {
  TestFolder nodes;
  std::filesystem::create_directories(nodes.Path("node1"));
  nodes.Write("node1/cpulist", "4-6,12\n");
  EXPECT_THAT(*SocketCpus(1, nodes.Path("")), ElementsAre(4, 5, 6, 12));
  EXPECT_THAT(*SocketCpus(-1, nodes.Path("")), IsEmpty()) << "all sockets";
  EXPECT_THAT(SocketCpus(0, nodes.Path("")).status().message(),
              HasSubstr("shows no socket 0"));
  for (const char* list : {"", "x", "3-1", "-2", "0-99999999", "1-2-3"}) {
    nodes.Write("node1/cpulist", list);
    EXPECT_FALSE(SocketCpus(1, nodes.Path("")).ok()) << list;
  }
}

TEST(StayOnCpus, KeepsToThoseItMayUse) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  EXPECT_TRUE(StayOnCpus({first, CPU_SETSIZE - 1}).ok());
  cpu_set_t now;
  ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
  EXPECT_TRUE(CPU_ISSET(first, &now));
  EXPECT_EQ(CPU_COUNT(&now), 1);
  EXPECT_FALSE(StayOnCpus({CPU_SETSIZE - 1}).ok());
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace requant::launch_benchmark_test
