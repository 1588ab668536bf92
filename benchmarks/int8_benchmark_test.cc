// int8_benchmark as people run it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "benchmarks/wide_deep_graph.h"
#include "benchmarks/wide_deep_records.h"
#include "google/protobuf/text_format.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"

namespace requant::int8_benchmark_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr char kBenchmark[] = "benchmarks/int8_benchmark";

class Int8Benchmark : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteGraph(Int8WideDeepGraph(), folder_.Path("graph.pb"),
                           GraphFormat::kBinary)
                    .ok());
    const std::string records = folder_.Path("records.tfrecords");
    ASSERT_TRUE(WriteWideDeepRecords(records, 64).ok());
    std::string declaration;
    ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(
        WideDeepDataset(records), &declaration));
    folder_.Write("data.textproto", declaration);
  }

  ProgramRun Run(const std::string& more) {
    const std::string graph = folder_.Path("graph.pb");
    return RunProgram(kBenchmark,
                      {"--fp32=" + graph, "--int8=" + graph,
                       "--dataset=" + folder_.Path("data.textproto"),
                       "--batch_size=32", "--streams=1", "--threads=1",
                       "--rounds=1", "--seconds=0", "--quantize_runs=1", more});
  }

  TestFolder folder_;
};

TEST_F(Int8Benchmark, FindsAGraphToBeLikeItself) {
  const ProgramRun run = Run("--quantize=true");
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("64 records in batches of 32"));
  EXPECT_THAT(run.out, ContainsRegex("agreement with fp32 .* 1.0000 .* met"));
  EXPECT_THAT(run.out, ContainsRegex("file size / fp32 .* 1.000 .* MISSED"));
  EXPECT_THAT(run.out, ContainsRegex("fp32 to int8, seconds .* met"));
  EXPECT_THAT(run.out, ContainsRegex("ours' matmul chain +[0-9]"));
}

TEST_F(Int8Benchmark, EndsWhenTheQuantizationFails) {
  const ProgramRun run = Run("--quantize=false");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.error, HasSubstr("the command failed: false"));
}

}  // namespace
}  // namespace requant::int8_benchmark_test
