// requant benchmark as people run it.

#include "base/files/file.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "graph/testing/program.h"
#include "runtime/datasets/testing/testing.h"
#include "runtime/session/worker.pb.h"

namespace requant::benchmark_graph_test {
namespace {

using google::protobuf::Struct;

constexpr char kBenchmarkGraph[] = "runtime/benchmark_graph";

// predict = x + x.
std::string Light(const std::string& input = "x") {
  return absl::StrCat(Placeholder(input, {-1, 1}),
                      Node("predict", "AddV2", {input, input}, {kFloat}));
}

std::string MatMulNode(const std::string& name, const std::string& a,
                       const std::string& b) {
  return Node(name, "MatMul", {a, b}, {kFloat});
}

// predict = x times a row of 256, times ten matrices: a thousand times the work
// of Light and more.
std::string Heavy() {
  std::string text = absl::StrCat(
      Placeholder("x", {-1, 1}), IntConst("row_shape", {2}, {1, 256}),
      IntConst("matrix_shape", {2}, {256, 256}),
      FloatConst("value", {}, {0.01}),
      Node("row", "Fill", {"row_shape", "value"}, {kFloat}),
      Node("matrix", "Fill", {"matrix_shape", "value"}, {kFloat}),
      MatMulNode("layer0", "x", "row"));
  for (int i = 1; i <= 10; ++i) {
    absl::StrAppend(&text,
                    MatMulNode(i == 10 ? "predict" : absl::StrCat("layer", i),
                               absl::StrCat("layer", i - 1), "matrix"));
  }
  return text;
}

// Fails in every run: three values per record do not fit.
std::string Failing() {
  return absl::StrCat(Placeholder("x", {-1, 1}), IntConst("shape", {1}, {3}),
                      Node("predict", "Reshape", {"x", "shape"},
                           {kFloat, {"Tshape", "type: DT_INT32"}}));
}

// A declaration whose feature "x" feeds `placeholder`.
std::string Declaration(const std::string& placeholder) {
  return absl::StrCat(
      "tfrecord { files: \"data.tfrecords\" }\n"
      "input { feature: \"x\" placeholder: \"",
      placeholder,
      "\" dtype: \"float\" shape: 1 }\n"
      "prediction { tensor: \"predict\" }\n");
}

class BenchmarkGraphTest : public testing::Test {
 protected:
  BenchmarkGraphTest() {
    WriteGraphFile("light.pbtxt", Light());
    std::string records;
    for (int i = 0; i < 300; ++i) {
      records += RecordBytes(SmallExample(0.01f * i, i % 2));
    }
    folder_.Write("data.tfrecords", records);
    folder_.Write("x.textproto", Declaration("x"));
  }

  void WriteGraphFile(const std::string& name, const std::string& text) {
    folder_.WriteText(name, GraphFromText(text));
  }

  // With --graph=... for each of `graphs`, in as little time as possible.
  ProgramRun Benchmark(const std::vector<std::string>& graphs,
                       std::vector<std::string> more = {},
                       const std::vector<std::string>& datasets = {
                           "x.textproto"}) {
    std::vector<std::string> arguments = {"--batch_size=128", "--seconds=0.01"};
    for (const std::string& graph : graphs) {
      arguments.push_back("--graph=" + folder_.Path(graph));
    }
    for (const std::string& dataset : datasets) {
      arguments.push_back("--dataset=" + folder_.Path(dataset));
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(kBenchmarkGraph, arguments,
                      {"TMPDIR=" + folder_.Path("")});
  }

  static Struct Parse(const std::string& text) {
    Struct json;
    const auto status =
        google::protobuf::util::JsonStringToMessage(text, &json);
    EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << text;
    return json;
  }

  // A failure in one line that names what is wrong, and nothing else.
  static void ExpectFailure(const ProgramRun& run, const std::string& message) {
    EXPECT_THAT(run, Exits(1));
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.error, AllOf(MatchesRegex("benchmark_graph: [^\n]*\n"),
                                 HasSubstr(message)));
  }

  static void ExpectUsageError(const ProgramRun& run,
                               const std::string& message) {
    EXPECT_THAT(run, Exits(2, HasSubstr(message)));
  }

  TestFolder folder_;
};

TEST_F(BenchmarkGraphTest, ComparesGraphsWithTheFirst) {
  WriteGraphFile("heavy.pbtxt", Heavy());
  const ProgramRun run =
      Benchmark({"light.pbtxt", "heavy.pbtxt"},
                {"--streams=1", "--threads=1", "--format=json"});
  ASSERT_THAT(run, Exits(0, ""));
  const Struct json = Parse(run.out);
  EXPECT_EQ(json.fields().at("preloaded_batches").number_value(), 2);
  EXPECT_EQ(json.fields().at("preloaded_records").number_value(), 256);
  const auto& graphs = json.fields().at("graphs").list_value();
  ASSERT_EQ(graphs.values_size(), 2);
  const auto& light = graphs.values(0).struct_value().fields();
  const auto& heavy = graphs.values(1).struct_value().fields();
  EXPECT_EQ(light.at("speed_ratio").number_value(), 1);
  EXPECT_EQ(light.at("cpu_time_ratio").number_value(), 1);
  // Hundreds of times the work; a fraction of that is enough to be sure.
  EXPECT_GT(heavy.at("cpu_time_ratio").number_value(), 3);
  EXPECT_LT(heavy.at("speed_ratio").number_value(), 1);
  EXPECT_EQ(heavy.at("rounds").list_value().values_size(), 9);
}

TEST_F(BenchmarkGraphTest, WritesItsFiguresAsAMessage) {
  EXPECT_THAT(
      Benchmark({"light.pbtxt"},
                {"--rounds=2", "--seconds=0", "--streams=1", "--threads=1",
                 "--result_out=" + folder_.Path("result.pb")}),
      Exits(0));
  BenchmarkResult result;
  ASSERT_TRUE(result.ParseFromString(folder_.Read("result.pb")));
  ASSERT_EQ(result.entry_size(), 1);
  EXPECT_EQ(result.entry(0).round_size(), 2);
}

TEST_F(BenchmarkGraphTest, FindsStreamsAndThreadsByItself) {
  WriteGraphFile("other.pbtxt", Light());
  const ProgramRun run = Benchmark({"light.pbtxt", "other.pbtxt"});
  ASSERT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, AllOf(HasSubstr(" thread"), HasSubstr(" on "),
                             HasSubstr("  light.pbtxt\n"),
                             HasSubstr("  other.pbtxt\n")));
}

TEST_F(BenchmarkGraphTest, RunsSeveralStreamsOfSeveralThreads) {
  const ProgramRun run =
      Benchmark({"light.pbtxt"}, {"--streams=3", "--threads=2"});
  ASSERT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, HasSubstr("\n3 streams x 2 threads on "));
}

TEST_F(BenchmarkGraphTest, TakesADatasetForEachGraph) {
  WriteGraphFile("other.pbtxt", Light("y"));
  folder_.Write("y.textproto", Declaration("y"));
  const std::vector<std::string> graphs = {"light.pbtxt", "other.pbtxt"};
  EXPECT_THAT(Benchmark(graphs, {"--streams=1", "--threads=1"},
                        {"x.textproto", "y.textproto"}),
              Exits(0));
  ExpectFailure(Benchmark(graphs, {}, {"y.textproto", "x.textproto"}),
                "light.pbtxt has no placeholder \"y\"");
  ExpectUsageError(
      Benchmark(graphs, {}, {"x.textproto", "x.textproto", "x.textproto"}),
      "there are 3 datasets for 2 graphs");
}

TEST_F(BenchmarkGraphTest, ProfilesTheOperations) {
  WriteGraphFile("heavy.pbtxt", Heavy());
  const ProgramRun run =
      Benchmark({"light.pbtxt", "heavy.pbtxt"},
                {"--streams=1", "--threads=1", "--rounds=1", "--profile"});
  ASSERT_THAT(run, Exits(0));
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("\nProfile of light.pbtxt: "),
                    HasSubstr("\nProfile of heavy.pbtxt: "),
                    HasSubstr("  layer3\n"), HasSubstr("  predict\n")));
}

TEST_F(BenchmarkGraphTest, NamesAGraphThatIsMissing) {
  ExpectFailure(Benchmark({"light.pbtxt", "missing.pb"}), "missing.pb");
}

TEST_F(BenchmarkGraphTest, NamesAGraphThatFails) {
  WriteGraphFile("failing.pbtxt", Failing());
  ExpectFailure(Benchmark({"light.pbtxt", "failing.pbtxt"}),
                "failing.pbtxt: records ");
}

TEST_F(BenchmarkGraphTest, NamesTheGraphThatCrashes) {
  LetSegfaultsPass();
  folder_.Write("segv_kernel.pbtxt",
                ReadFile("tests/data/hostile/segv_kernel.pbtxt").value());
  folder_.Write("four.tfrecords", RecordBytes(ExampleBytes(R"(features {
    feature { key: "x" value { float_list { value: [ 1, 2, 3, 4 ] } } }
  })")));
  folder_.Write("four.textproto", R"pb(
    tfrecord { files: "four.tfrecords" }
    input { feature: "x" placeholder: "x" dtype: "float" shape: 4 }
    prediction { tensor: "predict" }
  )pb");
  const ProgramRun run = Benchmark({"light.pbtxt", "segv_kernel.pbtxt"}, {},
                                   {"x.textproto", "four.textproto"});
  ExpectFailure(run,
                "segv_kernel.pbtxt failed: the worker process was ended "
                "by SIGSEGV");
}

TEST_F(BenchmarkGraphTest, RefusesAnEmptyDataset) {
  folder_.Write("data.tfrecords", "");
  ExpectFailure(Benchmark({"light.pbtxt"}), "no records in ");
}

TEST_F(BenchmarkGraphTest, ChecksTheResultFileBeforeItRuns) {
  ExpectFailure(Benchmark({"light.pbtxt"},
                          {"--result_out=" + folder_.Path("missing/result")}),
                "missing");
}

TEST_F(BenchmarkGraphTest, RefusesUsageThatMakesNoSense) {
  ExpectUsageError(Benchmark({}), "--graph or --saved_model is missing");
  ExpectUsageError(Benchmark({"light.pbtxt"}, {}, {}), "--dataset is missing");
  ExpectUsageError(Benchmark({"light.pbtxt"}, {"--rounds=0"}), "--rounds");
  ExpectUsageError(Benchmark({"light.pbtxt"}, {"--seconds=nan"}), "--seconds");
  ExpectUsageError(Benchmark({"light.pbtxt"}, {"--streams=-1"}), "--streams");
  ExpectUsageError(Benchmark({"light.pbtxt"}, {"--format=xml"}), "--format");
  ExpectUsageError(Benchmark({"light.pbtxt"}, {"stray"}), "\"stray\"");
}

}  // namespace
}  // namespace requant::benchmark_graph_test
