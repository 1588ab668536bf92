// Tests requant calibrate as people run it, and compares the two ways to get
// ranges: Print nodes with a log, and one pass that observes the tensors.

#include <filesystem>
#include <random>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "ranges/range_table.h"
#include "tests/support/program_runs.h"

namespace requant::calibration_test {
namespace {

constexpr char kCalibrateGraph[] = "runtime/calibrate_graph";
constexpr char kEvaluateGraph[] = "runtime/evaluate_graph";
constexpr char kParseLog[] = "logs_parser/parse_min_max_log";

std::string DynamicClassifier() {
  return std::filesystem::absolute("tests/data/dynamic_classifier.pbtxt");
}

std::vector<float> Weights(int count, int seed) {
  std::mt19937 random(seed);
  std::vector<float> weights(count);
  for (float& weight : weights) weight = random() % 2001 / 1000.0f - 1;
  return weights;
}

// Returns x [?, 4], joined from two halves, with two layers and two classes.
std::string FloatClassifier() {
  return absl::StrCat(FloatConst("w", {4, 8}, Weights(32, 1)),
                      FloatConst("b0", {8}, Weights(8, 2)),
                      FloatConst("w1", {8, 2}, Weights(16, 3)),
                      FloatConst("b1", {2}, Weights(2, 4)), R"(
    a = Placeholder dtype=float shape=<?,2>
    b = Placeholder dtype=float shape=<?,2>
    axis = int32{1}
    x = ConcatV2(a, b, axis) T=float N=2 Tidx=int32
    m = MatMul(x, w) T=float
    biased = BiasAdd(m, b0) T=float
    hidden = Relu(biased) T=float
    m1 = MatMul(hidden, w1) T=float
    logits = BiasAdd(m1, b1) T=float
    predict = Softmax(logits) T=float
  )");
}

// Returns rows of a CSV file with two pairs of numbers and a label each.
std::string Rows(int count, int seed, char between_pairs = ',') {
  std::mt19937 random(seed);
  std::string rows;
  for (int i = 0; i < count; ++i) {
    const auto pair = [&] {
      return absl::StrFormat("%.6f %.6f", random() % 4001 / 1000.0 - 2,
                             random() % 3001 / 1000.0 - 1);
    };
    absl::StrAppend(&rows, pair(), std::string(1, between_pairs), pair(), ",",
                    random() % 2, "\n");
  }
  return rows;
}

class CalibrationTest : public testing::Test {
 protected:
  CalibrationTest() {
    folder_.WriteText("float.pbtxt", GraphFromText(FloatClassifier()));
    WriteRecords("data.csv", Rows(100, 1));
    folder_.Write("data.textproto", R"pb(
      csv { files: "data.csv" }
      input { feature: "a" placeholder: "a" dtype: "float" shape: 2 }
      input { feature: "b" placeholder: "b" dtype: "float" shape: 2 }
      label { feature: "label" dtype: "int64" }
      prediction { tensor: "predict" }
    )pb");
    folder_.Write(
        "four.textproto",
        absl::StrReplaceAll(CsvDeclaration(4), {{"data.csv", "four.csv"}}));
    folder_.Write("four.csv", "x,label\n" + Rows(100, 7, ' '));
  }

  void WriteRecords(const std::string& name, const std::string& rows) {
    folder_.Write(name, absl::StrCat("a,b,label\n", rows));
  }

  // Runs a program in the test's folder.
  ProgramRun Run(const std::string& program, const Words& arguments) {
    return RunIn(folder_, program, arguments, {"TMPDIR=" + folder_.Path("")});
  }

  ProgramRun Calibrate(const std::string& output, const Words& more = {},
                       const std::string& graph = "float.pbtxt") {
    return Run(kCalibrateGraph,
               Joined({"--graph=" + graph, "--dataset=data.textproto",
                       "--batch_size=16", "--output=" + output},
                      more));
  }

  std::string Transform(const std::string& transforms, const std::string& graph,
                        const std::string& output) {
    EXPECT_THAT(
        Run(kTransformGraph,
            {"--in_graph=" + graph, "--out_graph=" + folder_.Path(output),
             "--outputs=predict", "--transforms=" + transforms}),
        Exits(0));
    return folder_.Path(output);
  }

  RangeTable Table(const std::string& name) {
    const auto table = ReadRangeTable(folder_.Path(name));
    EXPECT_OK(table);
    return table.ok() ? *table : RangeTable();
  }

  TestFolder folder_;
};

std::vector<std::string> Names(const RangeTable& table) {
  std::vector<std::string> names;
  for (const auto& [key, entry] : table.entries()) {
    names.push_back(absl::StrCat(key.first, ":", key.second));
  }
  return names;
}

TEST_F(CalibrationTest, ObservesTheLayersOfAFloatGraph) {
  EXPECT_THAT(Calibrate("t.ranges"), Prints("hidden:0\n", "5 ranges"));
  const RangeTable table = Table("t.ranges");
  EXPECT_THAT(Names(table),
              ElementsAre("a:0", "b:0", "hidden:0", "logits:0", "x:0"));
  const RangeEntry& hidden = *table.Find("hidden");
  EXPECT_EQ(hidden.count, 7);
  EXPECT_EQ(hidden.records, 100);
  EXPECT_EQ(hidden.histogram->total(), 800);
  EXPECT_EQ(hidden.channel_maxs.size(), 8);
  EXPECT_EQ(*std::min_element(hidden.mins.begin(), hidden.mins.end()), 0);
  EXPECT_EQ(*std::max_element(hidden.maxs.begin(), hidden.maxs.end()),
            *std::max_element(hidden.channel_maxs.begin(),
                              hidden.channel_maxs.end()));
}

TEST_F(CalibrationTest, KeepsMomentsOfLayersInputs) {
  ASSERT_THAT(Calibrate("t.ranges", {"--moment_records=40"}), Exits(0));
  RangeTable table = Table("t.ranges");
  EXPECT_EQ(table.Find("x")->moments->rows(), 40);
  EXPECT_EQ(table.Find("x")->moments->channels(), 4);
  EXPECT_EQ(table.Find("hidden")->moments->channels(), 8);
  EXPECT_FALSE(table.Find("a")->moments.has_value());
  EXPECT_FALSE(table.Find("logits")->moments.has_value());
  ASSERT_THAT(
      Calibrate("t.ranges", {"--moment_records=50", "--max_records=60"}),
      Exits(0));
  EXPECT_EQ(Table("t.ranges").Find("x")->records, 60);
  EXPECT_EQ(Table("t.ranges").Find("x")->moments->rows(), 50);
  ASSERT_THAT(Calibrate("t.ranges", {"--moment_records=0"}), Exits(0));
  EXPECT_FALSE(Table("t.ranges").Find("x")->moments.has_value());
  ASSERT_THAT(Calibrate("t.ranges", {"--tensors=hidden,biased"}), Exits(0));
  table = Table("t.ranges");
  EXPECT_EQ(table.Find("hidden")->moments->rows(), 100);
  EXPECT_FALSE(table.Find("biased")->moments.has_value());
}

TEST_F(CalibrationTest, KeepsMomentsOfManyChannels) {
  const int channels = 1100;
  const std::vector<float> weights = Weights(2 * channels, 1);
  folder_.WriteText(
      "float.pbtxt",
      GraphFromText(absl::StrCat(FloatConst("w", {2, channels}, weights),
                                 FloatConst("w1", {channels, 2}, weights), R"(
    a = Placeholder dtype=float shape=<?,2>
    b = Placeholder dtype=float shape=<?,2>
    m = MatMul(a, w) T=float
    m1 = MatMul(m, w1) T=float
    predict = Softmax(m1) T=float
  )")));
  ASSERT_THAT(Calibrate("t.ranges"), Exits(0));
  EXPECT_EQ(Table("t.ranges").Find("m")->moments->channels(), channels);
}

TEST_F(CalibrationTest, IsTheSameWithAnyNumberOfThreads) {
  ASSERT_THAT(Calibrate("one.ranges", {"--threads=1"}), Exits(0));
  ASSERT_THAT(
      Calibrate("three.ranges", {"--threads=3", "--inter_op_threads=2"}),
      Exits(0));
  EXPECT_EQ(folder_.Read("one.ranges"), folder_.Read("three.ranges"));
}

TEST_F(CalibrationTest, TablesOfSeveralMachinesAddUpToOne) {
  const std::string first = Rows(32, 1), second = Rows(20, 2);
  const auto of = [&](const std::string& rows, const std::string& output) {
    WriteRecords("data.csv", rows);
    // Moments are left out, because their sums are rounded.
    EXPECT_THAT(Calibrate(output, {"--moment_records=0"}), Exits(0));
  };
  of(first, "first.ranges");
  of(second, "second.ranges");
  of(first + second, "whole.ranges");
  EXPECT_THAT(
      Run(kCalibrateGraph, {"--merge=first.ranges", "--merge=second.ranges",
                            "--output=sum.ranges"}),
      Exits(0));
  RangeTable whole = Table("whole.ranges");
  whole.set_made_from("");
  EXPECT_EQ(*SerializeRangeTable(whole), folder_.Read("sum.ranges"));
}

TEST_F(CalibrationTest, ATableIsPrinted) {
  ASSERT_THAT(Calibrate("t.ranges"), Exits(0));
  EXPECT_THAT(Run(kCalibrateGraph, {"--print=t.ranges", "--method=mse"}),
              Prints("by mse", "hidden:0\n", "of 7 batches"));
  EXPECT_THAT(Run(kParseLog, {folder_.Path("t.ranges")}), Exits(0));
}

TEST_F(CalibrationTest, ObservesTheTensorsAskedFor) {
  EXPECT_THAT(
      Calibrate("t.ranges", {"--tensors=biased,a:0", "--tensors=predict"}),
      Exits(0));
  EXPECT_THAT(Names(Table("t.ranges")),
              ElementsAre("a:0", "biased:0", "predict:0"));
  // A tensor that is fed needs no run of the graph.
  EXPECT_THAT(Calibrate("t.ranges", {"--tensors=a"}), Exits(0));
  EXPECT_EQ(Table("t.ranges").Find("a")->records, 100);
}

TEST_F(CalibrationTest, NamesTheRecordOfAValueThatIsNotFinite) {
  WriteRecords("data.csv", Rows(20, 1) + "1 nan,1 1,0\n" + Rows(20, 2));
  EXPECT_THAT(Calibrate("t.ranges"),
              Warns("a:0: 1 value not finite, the first at "
                    "tensor a:0 record 20"));
  EXPECT_EQ(Table("t.ranges").Find("a")->not_finite.count, 1);
}

TEST_F(CalibrationTest, SaysWhatIsWrong) {
  folder_.WriteText("nothing.pbtxt", GraphFromText(R"(
    a = Placeholder dtype=float
    b = Placeholder dtype=float
    predict = Add(a, b) T=float
  )"));
  const struct {
    const char *output, *flag, *graph, *sentence;
  } kCases[] = {
      {"t.ranges", "--tensors=hiden", "float.pbtxt",
       "did you mean \"hidden\"?"},
      {"t.ranges", "--tensors=axis", "float.pbtxt",
       "the tensor axis:0 has no range"},
      {"t.ranges", "--threads=1", "none.pb", "none.pb"},
      {"no/folder/t.ranges", "--threads=1", "float.pbtxt", "no/folder"},
      {"t.ranges", "--threads=1", "nothing.pbtxt", "nothing to calibrate"},
      {"float.pbtxt", "--threads=1", "float.pbtxt", "float.pbtxt"},
      {"data.csv", "--threads=1", "float.pbtxt", "data.csv"}};
  for (const auto& test : kCases) {
    EXPECT_THAT(Calibrate(test.output, {test.flag}, test.graph),
                Fails(test.sentence));
  }
  EXPECT_THAT(folder_.Read("float.pbtxt"), HasSubstr("MatMul"));
  for (const char* flag :
       {"--method=kl", "--batch_size=0", "--moment_records=-1", "--print=x"}) {
    EXPECT_THAT(Calibrate("t.ranges", {flag}), Exits(2)) << flag;
  }
  folder_.Write("data.textproto", R"pb(
    in_graph { files: "data.csv" initializer: "start" }
    prediction { tensor: "predict" }
  )pb");
  EXPECT_THAT(Calibrate("t.ranges").error, HasSubstr("in_graph"));
  EXPECT_THAT(folder_.Names(), Not(Contains("t.ranges")));
}

// For a graph that computes ranges as it runs, both ways observe the same,
// because Print writes enough digits to restore the same float.
class BothWaysTest : public CalibrationTest {
 protected:
  // Runs `graph` with Print nodes over all records. Returns the path of the
  // log, which replaces any earlier one.
  std::string Log(const std::string& graph, const std::string& dataset) {
    const std::string logged = Transform(
        "insert_logging(op=RequantizationRange, show_name=true, "
        "message=\"__requant_min_max:\") "
        "insert_logging(op=Min, show_name=true, message=\"__min:\") "
        "insert_logging(op=Max, show_name=true, message=\"__max:\")",
        graph, "logged.pb");
    folder_.Write("log.txt", ";before__print__;__min:[1]\n");
    EXPECT_THAT(Run(kEvaluateGraph,
                    {"--graph=" + logged, "--dataset=" + folder_.Path(dataset),
                     "--batch_size=16", "--log_file=log.txt"}),
                Exits(0));
    return folder_.Path("log.txt");
  }

  void ExpectSameTables(const std::string& graph, const std::string& dataset) {
    const std::string log = Log(graph, dataset);
    ASSERT_THAT(Run(kParseLog, {log, "--strict", "--output=log.ranges"}),
                Exits(0));
    ASSERT_THAT(Run(kCalibrateGraph,
                    {"--graph=" + graph, "--dataset=" + folder_.Path(dataset),
                     "--batch_size=16", "--output=run.ranges"}),
                Exits(0));
    const RangeTable by_log = Table("log.ranges"), by_run = Table("run.ranges");
    EXPECT_EQ(Names(by_log), Names(by_run));
    for (const auto& [key, entry] : by_run.entries()) {
      const RangeEntry* logged = by_log.Find(key.first, key.second);
      ASSERT_NE(logged, nullptr) << key.first;
      EXPECT_EQ(entry.count, 7) << key.first;
      EXPECT_EQ(entry.count, logged->count) << key.first;
      EXPECT_EQ(entry.mins, logged->mins) << key.first;
      EXPECT_EQ(entry.maxs, logged->maxs) << key.first;
    }
  }
};

TEST_F(BothWaysTest, GiveTheSameTable) {
  ExpectSameTables(DynamicClassifier(), "four.textproto");
  EXPECT_EQ(Table("run.ranges").entries().size(), 4);
}

TEST_F(BothWaysTest, GiveTheSameTableOfAQuantizedGraph) {
  ExpectSameTables(
      Transform("quantize_eightbit", folder_.Path("float.pbtxt"), "dynamic.pb"),
      "data.textproto");
}

}  // namespace
}  // namespace requant::calibration_test
