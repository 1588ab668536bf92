// Tests requant benchmark as people run it.

#include "absl/strings/str_replace.h"
#include "base/files/file.h"
#include "google/protobuf/struct.pb.h"
#include "runtime/session/job.pb.h"
#include "tests/support/program_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::benchmark_graph_test {
namespace {

using google::protobuf::Value;

constexpr char kBenchmarkGraph[] = "runtime/benchmark_graph";

// predict = x + x.
constexpr char kLight[] = R"(
  x = Placeholder dtype=float shape=<?,1>
  predict = AddV2(x, x) T=float
)";

// Returns predict = x times a row of 256, times ten matrices, which is more
// than a thousand times the work of kLight.
std::string Heavy() {
  std::string text = R"(
    x = Placeholder dtype=float shape=<?,1>
    row_shape = int32<2>{1,256}
    matrix_shape = int32<2>{256,256}
    value = float{0.01}
    row = Fill(row_shape, value) T=float
    matrix = Fill(matrix_shape, value) T=float
    layer0 = MatMul(x, row) T=float
  )";
  for (int i = 1; i <= 10; ++i) {
    absl::StrAppend(&text, i == 10 ? "predict" : absl::StrCat("layer", i),
                    " = MatMul(layer", i - 1, ", matrix) T=float\n");
  }
  return text;
}

// Fails in every run, because three values per record do not fit.
constexpr char kFailing[] = R"(
  x = Placeholder dtype=float shape=<?,1>
  shape = int32<1>{3}
  predict = Reshape(x, shape) T=float Tshape=int32
)";

class BenchmarkGraphTest : public testing::Test {
 protected:
  BenchmarkGraphTest() {
    WriteGraphFile("light.pbtxt", kLight);
    std::string rows = "x,label\n";
    for (int i = 0; i < 300; ++i) {
      absl::StrAppend(&rows, 0.01f * i, ",", i % 2, "\n");
    }
    folder_.Write("data.csv", rows);
    folder_.Write("x.textproto", CsvDeclaration(1));
  }

  void WriteGraphFile(const std::string& name, const std::string& text) {
    folder_.WriteText(name, GraphFromText(text));
  }

  // Runs it as briefly as possible with --graph=... for each of `graphs`.
  ProgramRun Benchmark(const Words& graphs, Words more = {},
                       const Words& datasets = {"x.textproto"}) {
    Words arguments = {"--batch_size=128", "--seconds=0.01"};
    for (const std::string& graph : graphs) {
      arguments.push_back("--graph=" + graph);
    }
    for (const std::string& dataset : datasets) {
      arguments.push_back("--dataset=" + dataset);
    }
    return RunIn(folder_, kBenchmarkGraph, Joined(arguments, more),
                 {"TMPDIR=" + folder_.Path("")});
  }

  TestFolder folder_;
};

TEST_F(BenchmarkGraphTest, ComparesGraphsWithTheFirst) {
  WriteGraphFile("heavy.pbtxt", Heavy());
  const ProgramRun run =
      Benchmark({"light.pbtxt", "heavy.pbtxt"},
                {"--streams=1", "--threads=1", "--format=json"});
  ASSERT_THAT(run, Exits(0, ""));
  const Value json = ParseJson(run.out);
  const auto number = [&](const char* path) {
    return At(json, path).number_value();
  };
  EXPECT_EQ(number("preloaded_batches"), 2);
  EXPECT_EQ(number("preloaded_records"), 256);
  ASSERT_EQ(At(json, "graphs").list_value().values_size(), 2);
  EXPECT_EQ(number("graphs/0/speed_ratio"), 1);
  EXPECT_EQ(number("graphs/0/cpu_time_ratio"), 1);
  // The work is hundreds of times as much; a fraction of that is sure proof.
  EXPECT_GT(number("graphs/1/cpu_time_ratio"), 3);
  EXPECT_LT(number("graphs/1/speed_ratio"), 1);
  EXPECT_EQ(At(json, "graphs/1/rounds").list_value().values_size(), 9);
}

TEST_F(BenchmarkGraphTest, WritesItsFiguresAsAMessage) {
  EXPECT_THAT(
      Benchmark({"light.pbtxt"}, {"--rounds=2", "--seconds=0", "--streams=1",
                                  "--threads=1", "--result_out=result.pb"}),
      Exits(0));
  BenchmarkResult result;
  ASSERT_TRUE(result.ParseFromString(folder_.Read("result.pb")));
  ASSERT_EQ(result.entry_size(), 1);
  EXPECT_EQ(result.entry(0).round_size(), 2);
}

TEST_F(BenchmarkGraphTest, FindsStreamsAndThreadsByItself) {
  WriteGraphFile("other.pbtxt", kLight);
  ASSERT_THAT(Benchmark({"light.pbtxt", "other.pbtxt"}),
              Prints(" thread", " on ", "  light.pbtxt\n", "  other.pbtxt\n"));
}

TEST_F(BenchmarkGraphTest, RunsSeveralStreamsOfSeveralThreads) {
  ASSERT_THAT(Benchmark({"light.pbtxt"}, {"--streams=3", "--threads=2"}),
              Prints("\n3 streams x 2 threads on "));
}

TEST_F(BenchmarkGraphTest, TakesADatasetForEachGraph) {
  WriteGraphFile("other.pbtxt",
                 "y = Placeholder dtype=float; predict = Neg(y) T=float");
  folder_.Write("y.textproto", CsvDeclaration(1, /*label=*/true, "y"));
  const Words graphs = {"light.pbtxt", "other.pbtxt"};
  EXPECT_THAT(Benchmark(graphs, {"--streams=1", "--threads=1"},
                        {"x.textproto", "y.textproto"}),
              Exits(0));
  EXPECT_THAT(Benchmark(graphs, {}, {"y.textproto", "x.textproto"}),
              Refuses("light.pbtxt has no placeholder \"y\""));
  EXPECT_THAT(
      Benchmark(graphs, {}, {"x.textproto", "x.textproto", "x.textproto"}),
      Misused("there are 3 datasets for 2 graphs"));
}

TEST_F(BenchmarkGraphTest, ProfilesTheOperations) {
  WriteGraphFile("heavy.pbtxt", Heavy());
  EXPECT_THAT(
      Benchmark({"light.pbtxt", "heavy.pbtxt"},
                {"--streams=1", "--threads=1", "--rounds=1", "--profile"}),
      Prints("\nProfile of light.pbtxt: ", "\nProfile of heavy.pbtxt: ",
             "  layer3\n", "  predict\n"));
}

TEST_F(BenchmarkGraphTest, NamesAGraphThatIsMissingOrFails) {
  EXPECT_THAT(Benchmark({"light.pbtxt", "missing.pb"}), Refuses("missing.pb"));
  WriteGraphFile("failing.pbtxt", kFailing);
  EXPECT_THAT(Benchmark({"light.pbtxt", "failing.pbtxt"}),
              Refuses("failing.pbtxt: records "));
}

TEST_F(BenchmarkGraphTest, NamesTheGraphThatCrashes) {
  LetSegfaultsPass();
  folder_.Write("segv_kernel.pbtxt",
                ReadFile("tests/data/hostile/segv_kernel.pbtxt").value());
  folder_.Write("four.csv", "x,label\n1 2 3 4,1\n");
  folder_.Write(
      "four.textproto",
      absl::StrReplaceAll(CsvDeclaration(4), {{"data.csv", "four.csv"}}));
  EXPECT_THAT(Benchmark({"light.pbtxt", "segv_kernel.pbtxt"}, {},
                        {"x.textproto", "four.textproto"}),
              Refuses("segv_kernel.pbtxt failed: the worker process was ended "
                      "by SIGSEGV"));
}

TEST_F(BenchmarkGraphTest, ChecksRecordsAndTheResultFileBeforeItRuns) {
  EXPECT_THAT(Benchmark({"light.pbtxt"},
                        {"--result_out=" + folder_.Path("missing/result")}),
              Refuses("missing"));
  folder_.Write("data.csv", "x,label\n");
  EXPECT_THAT(Benchmark({"light.pbtxt"}), Refuses("no records in "));
}

TEST_F(BenchmarkGraphTest, RefusesUsageThatMakesNoSense) {
  EXPECT_THAT(Benchmark({}), Misused("--graph or --saved_model is missing"));
  EXPECT_THAT(Benchmark({"light.pbtxt"}, {}, {}),
              Misused("--dataset is missing"));
  for (const char* flag : {"--rounds=0", "--seconds=nan", "--streams=-1",
                           "--format=xml", "stray"}) {
    const std::string word(flag);
    EXPECT_THAT(Benchmark({"light.pbtxt"}, {word}),
                Misused(word.substr(0, word.find('='))));
  }
}

}  // namespace
}  // namespace requant::benchmark_graph_test
