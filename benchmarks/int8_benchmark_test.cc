// Runs int8_benchmark as people do.

#include "benchmarks/graphs.h"
#include "google/protobuf/text_format.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"

namespace requant::int8_benchmark_test {
namespace {

using testing::ContainsRegex;

constexpr char kBenchmark[] = "benchmarks/int8_benchmark";

class Int8Benchmark : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(WriteGraph(Int8WideDeepGraph(), folder_.Path("graph.pb"),
                         GraphFormat::kBinary));
    const std::string records = folder_.Path("records.tfrecords");
    ASSERT_OK(WriteWideDeepRecords(records, 64));
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
  EXPECT_THAT(run, Exits(0));
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("64 records in batches of 32"),
                    ContainsRegex("agreement with fp32 .* 1.0000 .* met"),
                    ContainsRegex("file size / fp32 .* 1.000 .* MISSED"),
                    ContainsRegex("fp32 to int8, seconds .* met"),
                    ContainsRegex("ours' matmul chain +[0-9]")));
}

TEST_F(Int8Benchmark, EndsWhenTheQuantizationFails) {
  const ProgramRun run = Run("--quantize=false");
  EXPECT_THAT(run, Exits(1, HasSubstr("the command failed: false")));
  EXPECT_EQ(run.out, "");
}

}  // namespace
}  // namespace requant::int8_benchmark_test
