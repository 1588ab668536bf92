#include "workflows/commands/launch_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace requant::launch_benchmark_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

BenchmarkFlags PublishedFlags() {
  BenchmarkFlags flags;
  flags.in_graph = "final_wide_deep_Int8_graph.pb";
  flags.model_name = "wide_deep_large_ds";
  flags.framework = "tensorflow";
  flags.precision = "int8";
  flags.mode = "inference";
  flags.data_location = "dataset_preprocessed_eval.tfrecords";
  flags.docker_image = "docker.io/intelaipg/intel-optimized-tensorflow:latest";
  flags.batch_size = 1000;
  return flags;
}

std::string UsageError(const BenchmarkFlags& flags) {
  const auto arguments = EvaluateArguments(flags, "workflows");
  return std::string(arguments.status().message());
}

tensorflow::GraphDef GraphOf(const std::string& op) {
  tensorflow::GraphDef graph;
  graph.add_node()->set_op("Const");
  graph.add_node()->set_op(op);
  return graph;
}

TEST(EvaluateArguments, AreWhatThePublishedFlagsMean) {
  BenchmarkFlags flags = PublishedFlags();
  flags.threads = 2;
  flags.inter_op_threads = 1;
  EXPECT_THAT(
      *EvaluateArguments(flags, "/opt/workflows"),
      ElementsAre("--graph=final_wide_deep_Int8_graph.pb",
                  "--dataset=/opt/workflows/wide_deep/preprocessed.textproto",
                  "--data=dataset_preprocessed_eval.tfrecords",
                  "--batch_size=1000", "--threads=2", "--inter_op_threads=1",
                  "--log_file=-"));
}

TEST(EvaluateArguments, NameTheFlagThatIsMissing) {
  BenchmarkFlags flags = PublishedFlags();
  flags.data_location = "";
  EXPECT_EQ(UsageError(flags), "--data-location is missing");
  flags = PublishedFlags();
  flags.in_graph = "";
  EXPECT_EQ(UsageError(flags), "--in-graph is missing");
  flags = PublishedFlags();
  flags.model_name = "";
  EXPECT_EQ(UsageError(flags), "--model-name is missing");
}

TEST(EvaluateArguments, RefuseWhatCannotBeHonoured) {
  BenchmarkFlags flags = PublishedFlags();
  flags.model_name = "resnet50";
  EXPECT_THAT(UsageError(flags), HasSubstr("requant evaluate"));
  flags = PublishedFlags();
  flags.framework = "pytorch";
  EXPECT_EQ(UsageError(flags),
            "--framework \"pytorch\": only tensorflow is known");
  flags = PublishedFlags();
  flags.mode = "training";
  EXPECT_THAT(UsageError(flags), HasSubstr("--mode \"training\""));
  flags = PublishedFlags();
  flags.precision = "bfloat16";
  EXPECT_THAT(UsageError(flags), HasSubstr("--precision \"bfloat16\""));
  flags = PublishedFlags();
  flags.batch_size = 0;
  EXPECT_THAT(UsageError(flags), HasSubstr("--batch-size"));
}

TEST(IgnoredFlags, AreTheImageAndSpeedAlone) {
  BenchmarkFlags flags = PublishedFlags();
  flags.benchmark_only = true;
  EXPECT_THAT(IgnoredFlags(flags),
              ElementsAre(HasSubstr("intel-optimized-tensorflow:latest is "
                                    "ignored"),
                          HasSubstr("--benchmark-only is ignored")));
  EXPECT_THAT(IgnoredFlags(BenchmarkFlags()), IsEmpty());
}

TEST(PrecisionRemark, ComesWhenTheGraphIsOfAnother) {
  BenchmarkFlags flags = PublishedFlags();
  EXPECT_EQ(PrecisionRemark(flags, GraphOf("QuantizedMatMulWithBias")), "");
  EXPECT_THAT(PrecisionRemark(flags, GraphOf("MatMul")),
              HasSubstr("is a graph of fp32"));
  flags.precision = "fp32";
  EXPECT_EQ(PrecisionRemark(flags, GraphOf("MatMul")), "");
  EXPECT_THAT(PrecisionRemark(flags, GraphOf("_QuantizedMatMul")),
              HasSubstr("is a graph of int8"));
  flags.precision = "";
  EXPECT_EQ(PrecisionRemark(flags, GraphOf("MatMul")), "");
}

class SocketCpusTest : public testing::Test {
 protected:
  SocketCpusTest() : nodes_(testing::TempDir() + "/nodes") {
    fs::remove_all(nodes_);
  }
  ~SocketCpusTest() override { fs::remove_all(nodes_); }

  void AddNode(int node, const std::string& list) {
    const fs::path folder = nodes_ / ("node" + std::to_string(node));
    fs::create_directories(folder);
    std::ofstream(folder / "cpulist") << list;
  }

  fs::path nodes_;
};

TEST_F(SocketCpusTest, ReadsRangesAndSingleCpus) {
  AddNode(1, "4-6,12\n");
  EXPECT_THAT(*SocketCpus(1, nodes_), ElementsAre(4, 5, 6, 12));
}

TEST_F(SocketCpusTest, TakesMinusOneForAll) {
  EXPECT_THAT(*SocketCpus(-1, nodes_), IsEmpty());
}

TEST_F(SocketCpusTest, NamesTheSocketThatIsMissing) {
  AddNode(0, "0-1\n");
  EXPECT_THAT(SocketCpus(1, nodes_).status().message(),
              HasSubstr("shows no socket 1"));
}

TEST_F(SocketCpusTest, RefusesWhatIsNoListOfCpus) {
  for (const char* list : {"", "x", "3-1", "-2", "0-99999999", "1-2-3"}) {
    AddNode(0, list);
    EXPECT_FALSE(SocketCpus(0, nodes_).ok()) << list;
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
