// requant calibrate as people run it, and the two ways to ranges against each
// other: Print nodes and a log, or one pass that observes the tensors.

#include <algorithm>
#include <cstdlib>
#include <random>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/testing/program.h"
#include "ranges/range_table.h"

namespace requant::calibration_test {
namespace {

constexpr char kCalibrateGraph[] = "runtime/calibrate_graph";
constexpr char kEvaluateGraph[] = "runtime/evaluate_graph";
constexpr char kParseLog[] = "logs_parser/parse_min_max_log";
constexpr char kDynamicClassifier[] = "tests/data/dynamic_classifier.pbtxt";

std::vector<float> Weights(int count, int seed) {
  std::mt19937 random(seed);
  std::vector<float> weights(count);
  for (float& weight : weights) weight = random() % 2001 / 1000.0f - 1;
  return weights;
}

// x [?, 4], concatenated from two halves, through two layers to two classes.
std::string FloatClassifier() {
  const AttributeText concat_size = {"N", "i: 2"};
  const AttributeText index = {"Tidx", "type: DT_INT32"};
  return absl::StrCat(
      Placeholder("a", {-1, 2}), Placeholder("b", {-1, 2}),
      IntConst("axis", {}, {1}),
      Node("x", "ConcatV2", {"a", "b", "axis"}, {kFloat, concat_size, index}),
      FloatConst("w", {4, 8}, Weights(32, 1)),
      FloatConst("b0", {8}, Weights(8, 2)),
      Node("m", "MatMul", {"x", "w"}, {kFloat}),
      Node("biased", "BiasAdd", {"m", "b0"}, {kFloat}),
      Node("hidden", "Relu", {"biased"}, {kFloat}),
      FloatConst("w1", {8, 2}, Weights(16, 3)),
      FloatConst("b1", {2}, Weights(2, 4)),
      Node("m1", "MatMul", {"hidden", "w1"}, {kFloat}),
      Node("logits", "BiasAdd", {"m1", "b1"}, {kFloat}),
      Node("predict", "Softmax", {"logits"}, {kFloat}));
}

// Rows of a CSV file: four numbers and a label.
std::string Rows(int count, int seed) {
  std::mt19937 random(seed);
  std::string rows;
  for (int i = 0; i < count; ++i) {
    const auto pair = [&] {
      return absl::StrFormat("%.6f %.6f", random() % 4001 / 1000.0 - 2,
                             random() % 3001 / 1000.0 - 1);
    };
    absl::StrAppend(&rows, pair(), ",", pair(), ",", random() % 2, "\n");
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
    folder_.Write("four.textproto", R"pb(
      csv { files: "four.csv" }
      input { feature: "x" placeholder: "x" dtype: "float" shape: 4 }
      label { feature: "label" dtype: "int64" }
      prediction { tensor: "predict" }
    )pb");
    std::string four = "x,label\n";
    const std::string rows = Rows(100, 7);
    for (absl::string_view row :
         absl::StrSplit(rows, '\n', absl::SkipEmpty())) {
      const std::vector<std::string> parts = absl::StrSplit(row, ',');
      absl::StrAppend(&four, parts[0], " ", parts[1], ",", parts[2], "\n");
    }
    folder_.Write("four.csv", four);
  }

  void WriteRecords(const std::string& name, const std::string& rows) {
    folder_.Write(name, absl::StrCat("a,b,label\n", rows));
  }

  ProgramRun Calibrate(const std::string& output,
                       std::vector<std::string> more = {},
                       const std::string& graph = "float.pbtxt") {
    std::vector<std::string> arguments = {
        "--graph=" + folder_.Path(graph),
        "--dataset=" + folder_.Path("data.textproto"), "--batch_size=16",
        "--output=" + folder_.Path(output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(kCalibrateGraph, arguments,
                      {"TMPDIR=" + folder_.Path("")});
  }

  std::string Transform(const std::string& transforms, const std::string& graph,
                        const std::string& output) {
    EXPECT_THAT(RunProgram(kTransformGraph,
                           {"--in_graph=" + graph,
                            "--out_graph=" + folder_.Path(output),
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
  const ProgramRun run = Calibrate("t.ranges");
  EXPECT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, AllOf(HasSubstr("hidden:0\n"), HasSubstr("5 ranges")));
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
  EXPECT_THAT(Calibrate("t.ranges", {"--moment_records=50"}).error,
              Not(HasSubstr("is up to date")));
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
  folder_.WriteText(
      "float.pbtxt",
      GraphFromText(absl::StrCat(
          Placeholder("a", {-1, 2}), Placeholder("b", {-1, 2}),
          FloatConst("w", {2, channels}, Weights(2 * channels, 1)),
          Node("m", "MatMul", {"a", "w"}, {kFloat}),
          FloatConst("w1", {channels, 2}, Weights(2 * channels, 2)),
          Node("m1", "MatMul", {"m", "w1"}, {kFloat}),
          Node("predict", "Softmax", {"m1"}, {kFloat}))));
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

TEST_F(CalibrationTest, DoesNothingWhenTheTableIsUpToDate) {
  ASSERT_THAT(Calibrate("t.ranges"), Exits(0));
  const ProgramRun again = Calibrate("t.ranges");
  EXPECT_THAT(again, Exits(0, HasSubstr("is up to date")));
  EXPECT_THAT(again.out, HasSubstr("5 ranges"));
  EXPECT_THAT(Calibrate("t.ranges", {"--force"}).error,
              Not(HasSubstr("is up to date")));
  EXPECT_THAT(Calibrate("t.ranges", {"--max_records=50"}).error,
              Not(HasSubstr("is up to date")));
  EXPECT_EQ(Table("t.ranges").Find("x")->records, 50);
  WriteRecords("data.csv", Rows(100, 2));
  EXPECT_THAT(Calibrate("t.ranges", {"--max_records=50"}).error,
              Not(HasSubstr("is up to date")));
}

TEST_F(CalibrationTest, MakesATableAgainInWhichABitChanged) {
  ASSERT_THAT(Calibrate("t.ranges"), Exits(0));
  const std::string whole = folder_.Read("t.ranges");
  std::string changed = whole;
  changed[changed.size() / 2] ^= 1;
  folder_.Write("t.ranges", changed);
  EXPECT_THAT(Calibrate("t.ranges").error,
              HasSubstr("t.ranges was changed since it was made"));
  EXPECT_EQ(folder_.Read("t.ranges"), whole);
}

TEST_F(CalibrationTest, TablesOfSeveralMachinesAddUpToOne) {
  const std::string first = Rows(32, 1), second = Rows(20, 2);
  const auto of = [&](const std::string& rows, const std::string& output) {
    WriteRecords("data.csv", rows);
    // Sums of moments are rounded.
    EXPECT_THAT(Calibrate(output, {"--moment_records=0"}), Exits(0));
  };
  of(first, "first.ranges");
  of(second, "second.ranges");
  of(first + second, "whole.ranges");
  EXPECT_THAT(
      RunProgram(kCalibrateGraph, {"--merge=" + folder_.Path("first.ranges"),
                                   "--merge=" + folder_.Path("second.ranges"),
                                   "--output=" + folder_.Path("sum.ranges")}),
      Exits(0));
  RangeTable whole = Table("whole.ranges");
  whole.set_made_from("");
  EXPECT_EQ(*SerializeRangeTable(whole), folder_.Read("sum.ranges"));
}

TEST_F(CalibrationTest, ATableIsPrinted) {
  ASSERT_THAT(Calibrate("t.ranges"), Exits(0));
  const ProgramRun run = RunProgram(
      kCalibrateGraph, {"--print=" + folder_.Path("t.ranges"), "--method=mse"});
  EXPECT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, AllOf(HasSubstr("by mse"), HasSubstr("hidden:0\n"),
                             HasSubstr("of 7 batches")));
  EXPECT_THAT(RunProgram(kParseLog, {folder_.Path("t.ranges")}), Exits(0));
}

TEST_F(CalibrationTest, ObservesTheTensorsAskedFor) {
  EXPECT_THAT(
      Calibrate("t.ranges", {"--tensors=biased,a:0", "--tensors=predict"}),
      Exits(0));
  EXPECT_THAT(Names(Table("t.ranges")),
              ElementsAre("a:0", "biased:0", "predict:0"));
}

TEST_F(CalibrationTest, ObservesWhatIsFedWithoutRunningAnything) {
  EXPECT_THAT(Calibrate("t.ranges", {"--tensors=a"}), Exits(0));
  EXPECT_EQ(Table("t.ranges").Find("a")->records, 100);
}

TEST_F(CalibrationTest, NamesTheRecordOfAValueThatIsNotFinite) {
  WriteRecords("data.csv", Rows(20, 1) + "1 nan,1 1,0\n" + Rows(20, 2));
  EXPECT_THAT(Calibrate("t.ranges"),
              Exits(0, HasSubstr("a:0: 1 value not finite, the first at "
                                 "tensor a:0 record 20")));
  EXPECT_EQ(Table("t.ranges").Find("a")->not_finite.count, 1);
}

TEST_F(CalibrationTest, WarnsOfARangeThatStillMoves) {
  WriteRecords("data.csv", Rows(40, 1) + "9 9,9 9,0\n");
  EXPECT_THAT(Calibrate("t.ranges").error,
              HasSubstr("still moved by more than 1 %"));
}

TEST_F(CalibrationTest, SaysWhatIsWrong) {
  EXPECT_THAT(Calibrate("t.ranges", {"--tensors=hiden"}).error,
              HasSubstr("did you mean \"hidden\"?"));
  EXPECT_THAT(Calibrate("t.ranges", {"--tensors=axis"}).error,
              HasSubstr("the tensor axis:0 has no range"));
  EXPECT_THAT(Calibrate("t.ranges", {}, "none.pb").error, HasSubstr("none.pb"));
  EXPECT_THAT(Calibrate("no/folder/t.ranges").error, HasSubstr("no/folder"));
  folder_.WriteText("nothing.pbtxt",
                    GraphFromText(absl::StrCat(
                        Placeholder("a"), Placeholder("b"),
                        Node("predict", "Add", {"a", "b"}, {kFloat}))));
  EXPECT_THAT(Calibrate("t.ranges", {}, "nothing.pbtxt").error,
              HasSubstr("nothing to calibrate"));
  EXPECT_THAT(Calibrate("float.pbtxt").error, HasSubstr("float.pbtxt"));
  EXPECT_THAT(Calibrate("data.csv").error, HasSubstr("data.csv"));
  EXPECT_THAT(folder_.Read("float.pbtxt"), HasSubstr("MatMul"));
  EXPECT_THAT(Calibrate("t.ranges", {"--method=kl"}), Exits(2));
  EXPECT_THAT(Calibrate("t.ranges", {"--batch_size=0"}), Exits(2));
  EXPECT_THAT(Calibrate("t.ranges", {"--moment_records=-1"}), Exits(2));
  EXPECT_THAT(Calibrate("t.ranges", {"--print=x"}), Exits(2));
  folder_.Write("data.textproto", R"pb(
    in_graph { files: "data.csv" initializer: "start" }
    prediction { tensor: "predict" }
  )pb");
  EXPECT_THAT(Calibrate("t.ranges").error, HasSubstr("in_graph"));
  for (const std::string& name : folder_.Names()) {
    EXPECT_NE(name, "t.ranges");
  }
}

// Of a graph that computes ranges as it runs, both ways observe the same: Print
// writes as many digits as give the same float back.
class BothWaysTest : public CalibrationTest {
 protected:
  // Runs `graph` with Print nodes over all records; returns the log's path.
  std::string Log(const std::string& graph, const std::string& dataset) {
    const std::string logged = Transform(
        "insert_logging(op=RequantizationRange, show_name=true, "
        "message=\"__requant_min_max:\") "
        "insert_logging(op=Min, show_name=true, message=\"__min:\") "
        "insert_logging(op=Max, show_name=true, message=\"__max:\")",
        graph, "logged.pb");
    EXPECT_THAT(
        RunProgram(
            kEvaluateGraph,
            {"--graph=" + logged, "--dataset=" + folder_.Path(dataset),
             "--batch_size=16", "--log_file=" + folder_.Path("log.txt")}),
        Exits(0));
    return folder_.Path("log.txt");
  }

  void ExpectSameTables(const std::string& graph, const std::string& dataset) {
    const std::string log = Log(graph, dataset);
    ASSERT_THAT(
        RunProgram(kParseLog,
                   {log, "--strict", "--output=" + folder_.Path("log.ranges")}),
        Exits(0));
    const ProgramRun run = RunProgram(
        kCalibrateGraph,
        {"--graph=" + graph, "--dataset=" + folder_.Path(dataset),
         "--batch_size=16", "--output=" + folder_.Path("run.ranges")});
    ASSERT_THAT(run, Exits(0));
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
  ExpectSameTables(kDynamicClassifier, "four.textproto");
  EXPECT_EQ(Table("run.ranges").entries().size(), 4);
}

TEST_F(BothWaysTest, GiveTheSameTableOfAQuantizedGraph) {
  ExpectSameTables(
      Transform("quantize_eightbit", folder_.Path("float.pbtxt"), "dynamic.pb"),
      "data.textproto");
}

// Also where there is a log from before.
TEST_F(BothWaysTest, ALogHasOneLineForEachNodeAndBatch) {
  for (int repeat = 0; repeat < 2; ++repeat) {
    Log(kDynamicClassifier, "four.textproto");
    const std::string log = folder_.Read("log.txt");
    int lines = 0;
    for (absl::string_view line : absl::StrSplit(log, '\n')) {
      lines += line.find("__print__;") != line.npos;
    }
    EXPECT_EQ(lines, 4 * 7) << log;
  }
}

// The mean absolute change of class 1's probability from the float graph's.
double MeanChange(const ProgramRun& comparison) {
  const std::string key = "\"class_1_change\": {\"mean\": ";
  const size_t at = comparison.out.find(key);
  EXPECT_NE(at, std::string::npos) << comparison.out << comparison.error;
  if (at == std::string::npos) return 1;
  return std::strtod(comparison.out.c_str() + at + key.size(), nullptr);
}

TEST_F(CalibrationTest, TheFloatGraphsRangesFreezeTheQuantizedGraph) {
  ASSERT_THAT(Calibrate("t.ranges"), Exits(0));
  for (const char* method : {"", ", method=mse"}) {
    const std::string table = absl::StrCat(
        "(ranges_file=\"", folder_.Path("t.ranges"), "\"", method, ")");
    const std::string frozen = Transform(
        absl::StrCat("quantize_eightbit freeze_requantization_ranges", table,
                     " freeze_min", table, " freeze_max", table),
        folder_.Path("float.pbtxt"), "frozen.pb");
    const GraphDef graph = folder_.ReadGraphFile("frozen.pb");
    for (const auto& node : graph.node()) {
      EXPECT_NE(node.op(), "RequantizationRange");
      EXPECT_NE(node.op(), "Min");
      EXPECT_NE(node.op(), "Max");
    }
    const ProgramRun run = RunProgram(
        kEvaluateGraph,
        {"--graph=" + frozen, "--baseline=" + folder_.Path("float.pbtxt"),
         "--dataset=" + folder_.Path("data.textproto"), "--format=json"});
    EXPECT_THAT(run, Exits(0));
    EXPECT_LT(MeanChange(run), 0.01) << method;
  }
}

}  // namespace
}  // namespace requant::calibration_test
