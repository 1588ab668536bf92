// requant evaluate as people run it: figures, comparisons, and graphs that
// crash, never end or eat memory.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/graph_io.h"
#include "graph/testing/graph_text.h"
#include "graph/testing/program.h"
#include "graph/testing/testing.h"
#include "runtime/datasets/testing/testing.h"
#include "runtime/session/worker.pb.h"
#include "tests/support/processes.h"

namespace requant::evaluate_graph_test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr char kEvaluateGraph[] = "runtime/evaluate_graph";

// predict = [1 - x, x].
std::string TwoClasses() {
  return absl::StrCat(
      Placeholder("x", {-1, 1}), FloatConst("one", {}, {1}),
      Node("not_x", "Sub", {"one", "x"}, {kFloat}), IntConst("axis", {}, {1}),
      Node("predict", "ConcatV2", {"not_x", "x", "axis"},
           {kFloat, {"N", "i: 2"}, {"Tidx", "type: DT_INT32"}}));
}

// predict = softmax([x, x]), so that every class is as likely.
std::string Undecided() {
  return absl::StrCat(Placeholder("x", {-1, 1}), IntConst("axis", {}, {1}),
                      Node("both", "ConcatV2", {"x", "x", "axis"},
                           {kFloat, {"N", "i: 2"}, {"Tidx", "type: DT_INT32"}}),
                      Node("predict", "Softmax", {"both"}, {kFloat}));
}

// A layer MatMul "m", BiasAdd "add", Relu "relu" with the bias `bias`, and the
// prediction [1 - x, x] as above.
std::string WithALayer(float bias) {
  return absl::StrCat(TwoClasses(), FloatConst("w", {1, 2}, {10, -10}),
                      FloatConst("b", {2}, {bias, 5}),
                      Node("m", "MatMul", {"x", "w"}, {kFloat}),
                      Node("add", "BiasAdd", {"m", "b"}, {kFloat}),
                      Node("relu", "Relu", {"add"}, {kFloat}));
}

// The same with the layer's output in codes of 0 to 25.5.
std::string WithACodedLayer() {
  return absl::StrCat(
      WithALayer(1), FloatConst("low", {}, {-32}), FloatConst("high", {}, {32}),
      FloatConst("min", {}, {0}), FloatConst("max", {}, {25.5}),
      Node("sums", "QuantizeV2", {"relu", "low", "high"},
           {{"T", "type: DT_QINT32"}}),
      Node("m_eightbit_requantize", "Requantize",
           {"sums", "sums:1", "sums:2", "min", "max"},
           {{"Tinput", "type: DT_QINT32"}, {"out_type", "type: DT_QUINT8"}}));
}

// Reads numbers from a text file, two at a time, and predicts [1 - x, x]; a
// label is whether its number is above `limit`.
std::string GraphWithItsOwnData(float limit = 0.6) {
  const AttributeText types = {"output_types", "list { type: DT_STRING }"};
  const AttributeText shapes = {"output_shapes",
                                "list { shape { dim { size: -1 } } }"};
  const auto constant = [](const std::string& name, const std::string& type,
                           const std::string& value) {
    return Node(name, "Const", {},
                {{"dtype", "type: " + type},
                 {"value", absl::StrCat("tensor { dtype: ", type,
                                        " tensor_shape {} ", value, " }")}});
  };
  return absl::StrCat(
      Node("file", "Placeholder", {}, {{"dtype", "type: DT_STRING"}}),
      constant("plain", "DT_STRING", "string_val: ''"),
      constant("buffer", "DT_INT64", "int64_val: 4096"),
      constant("two", "DT_INT64", "int64_val: 2"),
      constant("keep_rest", "DT_BOOL", "bool_val: false"),
      Node("lines", "TextLineDataset", {"file", "plain", "buffer"}),
      Node("batches", "BatchDatasetV2", {"lines", "two", "keep_rest"},
           {types, shapes}),
      Node("iterator", "IteratorV2", {},
           {types, shapes, {"shared_name", "s: ''"}, {"container", "s: ''"}}),
      Node("start", "MakeIterator", {"batches", "iterator"}),
      Node("next", "IteratorGetNext", {"iterator"}, {types, shapes}),
      Node("number", "StringToNumber", {"next"},
           {{"out_type", "type: DT_FLOAT"}}),
      FloatConst("limit", {}, {limit}),
      Node("label", "Greater", {"number", "limit"}, {kFloat}),
      IntConst("axis", {}, {1}),
      Node("x", "ExpandDims", {"number", "axis"},
           {kFloat, {"Tdim", "type: DT_INT32"}}),
      FloatConst("one", {}, {1}), Node("not_x", "Sub", {"one", "x"}, {kFloat}),
      Node("predict", "ConcatV2", {"not_x", "x", "axis"},
           {kFloat, {"N", "i: 2"}, {"Tidx", "type: DT_INT32"}}));
}

class EvaluateGraphTest : public testing::Test {
 protected:
  EvaluateGraphTest() {
    WriteGraphFile("two.pbtxt", TwoClasses());
    // Four records; the second and third are predicted wrongly.
    folder_.Write("data.csv", "x,label\n0.9,1\n0.8,0\n0.1,1\n0.2,0\n");
    folder_.Write("data.textproto", R"pb(
      csv { files: "data.csv" }
      input { feature: "x" placeholder: "x" dtype: "float" shape: 1 }
      label { feature: "label" dtype: "int64" }
      prediction { tensor: "predict" }
    )pb");
  }

  std::string WriteGraphFile(const std::string& name, const std::string& text) {
    return folder_.WriteText(name, GraphFromText(text));
  }

  std::vector<std::string> Arguments(const std::string& graph,
                                     std::vector<std::string> more = {}) {
    more.push_back("--graph=" + folder_.Path(graph));
    more.push_back("--dataset=" + folder_.Path("data.textproto"));
    return more;
  }

  ProgramRun Evaluate(const std::string& graph,
                      const std::vector<std::string>& more = {}) {
    return RunProgram(kEvaluateGraph, Arguments(graph, more),
                      {"TMPDIR=" + folder_.Path("")});
  }

  EvaluateResult ResultIn(const std::string& name) const {
    EvaluateResult result;
    EXPECT_TRUE(result.ParseFromString(folder_.Read(name)));
    return result;
  }

  // The logs that workers left.
  std::vector<std::string> Logs() const {
    std::vector<std::string> logs;
    for (const std::string& name : folder_.Names()) {
      if (absl::StartsWith(name, "requant-worker")) logs.push_back(name);
    }
    return logs;
  }

  TestFolder folder_;
};

TEST_F(EvaluateGraphTest, PrintsTheRecipesLogTail) {
  const ProgramRun run = Evaluate("two.pbtxt", {"--batch_size=2"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  const std::vector<std::string> lines =
      absl::StrSplit(run.out, '\n', absl::SkipEmpty());
  ASSERT_GE(lines.size(), 10u) << run.out;
  const std::vector<std::string> tail(lines.end() - 10, lines.end());
  const std::string dashes(50, '-');
  EXPECT_EQ(tail[0], dashes);
  EXPECT_EQ(tail[1], "Total test records           :  4");
  EXPECT_EQ(tail[2], "Batch size is                :  2");
  EXPECT_EQ(tail[3], "Number of batches            :  2");
  EXPECT_THAT(tail[4],
              MatchesRegex("Throughput is \\(records/sec\\)  :  [0-9.]+"));
  EXPECT_THAT(tail[5],
              MatchesRegex("Inference duration \\(seconds\\) :  [0-9.]+"));
  EXPECT_THAT(tail[6],
              MatchesRegex("Latency \\(millisecond/batch\\)  :  [0-9.]+"));
  EXPECT_THAT(tail[7],
              MatchesRegex("Classification accuracy \\(%\\)  :  50(.0*)?"));
  EXPECT_EQ(tail[8], "No of correct predicitons    :  2");
  EXPECT_EQ(tail[9], dashes);
  EXPECT_EQ(run.error, "");
  EXPECT_TRUE(Logs().empty());
}

TEST_F(EvaluateGraphTest, StopsAfterTheRecordsAskedFor) {
  const ProgramRun run = Evaluate("two.pbtxt", {"--records=1"});
  EXPECT_THAT(run.out, AllOf(HasSubstr("Total test records           :  1\n"),
                             HasSubstr("No of correct predicitons    :  1\n")));
}

TEST_F(EvaluateGraphTest, ComparesWithABaseline) {
  WriteGraphFile("undecided.pbtxt", Undecided());
  const ProgramRun run =
      Evaluate("undecided.pbtxt",
               {"--baseline=" + folder_.Path("two.pbtxt"), "--format=json"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  // Class 0 for every record: right on the second and fourth.
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"correct\": 2"),
                             HasSubstr("\"comparison\": {")));
}

TEST_F(EvaluateGraphTest, WritesItsFiguresAsAMessage) {
  const ProgramRun run =
      Evaluate("two.pbtxt", {"--result_out=" + folder_.Path("result.pb")});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(ResultIn("result.pb").scores().correct(), 2);
  EXPECT_EQ(ResultIn("result.pb").timing().records(), 4);
}

TEST_F(EvaluateGraphTest, ComparesWithStoredPredictionsAsWithABaseline) {
  WriteGraphFile("undecided.pbtxt", Undecided());
  ASSERT_EQ(Evaluate("two.pbtxt",
                     {"--predictions_out=" + folder_.Path("two.predictions")})
                .exit_code,
            0);
  const ProgramRun stored =
      Evaluate("undecided.pbtxt",
               {"--baseline_predictions=" + folder_.Path("two.predictions"),
                "--batch_size=3", "--result_out=" + folder_.Path("stored.pb")});
  EXPECT_EQ(stored.exit_code, 0) << stored.error;
  EXPECT_THAT(stored.out, HasSubstr(absl::StrCat(
                              "against ", folder_.Path("two.predictions"))));
  const ProgramRun run =
      Evaluate("undecided.pbtxt", {"--baseline=" + folder_.Path("two.pbtxt"),
                                   "--result_out=" + folder_.Path("run.pb")});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(ResultIn("stored.pb").comparison().SerializeAsString(),
            ResultIn("run.pb").comparison().SerializeAsString());
  EXPECT_EQ(ResultIn("stored.pb").baseline_scores().SerializeAsString(),
            ResultIn("run.pb").baseline_scores().SerializeAsString());
  EXPECT_FALSE(ResultIn("stored.pb").has_baseline_timing());
}

TEST_F(EvaluateGraphTest, ComparesOnlyRecordsOfWhichThereArePredictions) {
  ASSERT_EQ(Evaluate("two.pbtxt",
                     {"--records=3",
                      "--predictions_out=" + folder_.Path("three.predictions")})
                .exit_code,
            0);
  for (const auto& [records, compared] :
       std::vector<std::pair<int, int>>{{4, 3}, {2, 2}}) {
    const ProgramRun run =
        Evaluate("two.pbtxt",
                 {"--baseline_predictions=" + folder_.Path("three.predictions"),
                  "--batch_size=2", absl::StrCat("--records=", records),
                  "--result_out=" + folder_.Path("result.pb")});
    EXPECT_EQ(run.exit_code, 0) << run.error;
    const EvaluateResult result = ResultIn("result.pb");
    EXPECT_EQ(result.scores().records(), records);
    EXPECT_EQ(result.comparison().records(), compared);
    EXPECT_EQ(result.baseline_scores().records(), compared);
  }
}

TEST_F(EvaluateGraphTest, RefusesPredictionsOfOtherRecords) {
  const std::string predictions = folder_.Path("two.predictions");
  ASSERT_EQ(
      Evaluate("two.pbtxt", {"--predictions_out=" + predictions}).exit_code, 0);
  folder_.Write("data.csv", "x,label\n0.9,1\n0.8,0\n0.1,0\n0.2,0\n");
  ProgramRun run =
      Evaluate("two.pbtxt", {"--baseline_predictions=" + predictions});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("the records differ from record 2 on"));
  const std::string content = folder_.Read("two.predictions");
  folder_.Write("two.predictions", content.substr(0, content.size() - 1));
  run = Evaluate("two.pbtxt", {"--baseline_predictions=" + predictions});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("is no whole file of predictions"));
}

TEST_F(EvaluateGraphTest, RefusesToWriteOverWhatItReads) {
  const ProgramRun run =
      Evaluate("two.pbtxt", {"--result_out=" + folder_.Path("data.csv")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("it is also read"));
}

TEST_F(EvaluateGraphTest, GivesTheSameFiguresForAnyNumberOfStreams) {
  std::string rows = "x,label\n";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&rows, (i * 37 % 1000) / 1000.0, ",", i * 7 % 11 < 5, "\n");
  }
  folder_.Write("data.csv", rows);
  WriteGraphFile("undecided.pbtxt", Undecided());
  std::vector<std::string> figures;
  std::vector<std::string> predictions;
  for (const int streams : {1, 2, 5}) {
    const ProgramRun run = Evaluate(
        "two.pbtxt", {"--baseline=" + folder_.Path("undecided.pbtxt"),
                      absl::StrCat("--streams=", streams), "--batch_size=7",
                      "--predictions_out=" + folder_.Path("predictions"),
                      "--result_out=" + folder_.Path("result.pb")});
    ASSERT_EQ(run.exit_code, 0) << run.error;
    EvaluateResult result = ResultIn("result.pb");
    EXPECT_GT(result.timing().timed_seconds(), 0);
    EXPECT_GT(result.baseline_timing().timed_seconds(), 0);
    EXPECT_EQ(result.timing().batches(), 143);
    result.clear_timing();
    result.clear_baseline_timing();
    figures.push_back(result.SerializeAsString());
    predictions.push_back(folder_.Read("predictions"));
  }
  EXPECT_EQ(figures[1], figures[0]);
  EXPECT_EQ(figures[2], figures[0]);
  EXPECT_EQ(predictions[1], predictions[0]);
  EXPECT_EQ(predictions[2], predictions[0]);
}

TEST_F(EvaluateGraphTest, NamesTheRecordsThatFailInAStream) {
  WriteGraphFile("checked.pbtxt",
                 absl::StrCat(TwoClasses(),
                              Node("checked", "CheckNumerics", {"predict"},
                                   {kFloat, {"message", "s: 'not again'"}})));
  folder_.Write("data.csv", "x,label\n0.9,1\n0.8,0\nnan,1\n0.2,0\n");
  const ProgramRun run = Evaluate(
      "checked.pbtxt", {"--output=checked", "--streams=2", "--batch_size=1"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, AllOf(HasSubstr("checked.pbtxt: records 2 to 2: "),
                               HasSubstr("not again")));
}

TEST_F(EvaluateGraphTest, ComparesLayersOfAFloatGraph) {
  const std::string baseline = WriteGraphFile("float.pbtxt", WithALayer(1));
  WriteGraphFile("shifted.pbtxt", WithALayer(1.5));
  const ProgramRun run =
      Evaluate("shifted.pbtxt",
               {"--baseline=" + baseline, "--layer_records=2", "--batch_size=1",
                "--result_out=" + folder_.Path("result.pb")});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("layers on 2 records, the noisiest first:\n"));
  const EvaluateResult result = ResultIn("result.pb");
  EXPECT_EQ(result.scores().records(), 4);
  ASSERT_EQ(result.layer_size(), 1);
  const ComparedLayer& layer = result.layer(0);
  EXPECT_EQ(layer.name(), "m");
  EXPECT_EQ(layer.tensor(), "relu:0");
  EXPECT_EQ(layer.records(), 2);
  EXPECT_EQ(layer.worst_channel(), 0);
  EXPECT_NEAR(layer.worst_channel_shift(), 0.5, 1e-5);
}

TEST_F(EvaluateGraphTest, ComparesCodesByTheRangeThatComesWithThem) {
  const std::string baseline = WriteGraphFile("float.pbtxt", WithALayer(1));
  WriteGraphFile("coded.pbtxt", WithACodedLayer());
  const std::string predictions = folder_.Path("float.predictions");
  ASSERT_EQ(
      Evaluate("float.pbtxt", {"--predictions_out=" + predictions}).exit_code,
      0);
  // The baseline runs for its layers only.
  const ProgramRun run = Evaluate(
      "coded.pbtxt",
      {"--baseline=" + baseline, "--baseline_predictions=" + predictions,
       "--layer_records=100", "--streams=2", "--batch_size=1",
       "--result_out=" + folder_.Path("result.pb")});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  const EvaluateResult result = ResultIn("result.pb");
  EXPECT_FALSE(result.has_baseline_timing());
  ASSERT_EQ(result.layer_size(), 1);
  const ComparedLayer& layer = result.layer(0);
  EXPECT_TRUE(layer.quantized());
  EXPECT_EQ(layer.tensor(), "m_eightbit_requantize:0");
  EXPECT_EQ(layer.records(), 4);
  EXPECT_NEAR(layer.step(), 0.1, 1e-6);
  EXPECT_EQ(layer.range().high(), 25.5);
  EXPECT_NEAR(layer.observed().high(), 10, 1e-5);
  EXPECT_LT(layer.max_error(), 0.1);
  EXPECT_EQ(layer.clipped_share(), 0);
}

TEST_F(EvaluateGraphTest, NamesLayersThatTheGraphDoesNotHave) {
  const std::string baseline = WriteGraphFile("float.pbtxt", WithALayer(1));
  const ProgramRun run = Evaluate(
      "two.pbtxt",
      {"--baseline=" + baseline, "--layer_records=2", "--format=json"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("\"layers\": [], \"unmatched_layers\": "
                                 "[\"m\"]"));
}

TEST_F(EvaluateGraphTest, WarnsOfABaselineWithoutLayers) {
  const ProgramRun run = Evaluate(
      "two.pbtxt",
      {"--baseline=" + folder_.Path("two.pbtxt"), "--layer_records=2"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.error, HasSubstr("has no layers to compare"));
}

TEST_F(EvaluateGraphTest, ExitsWith3WhenAccuracyCertainlyDrops) {
  std::string rows = "x,label\n";
  for (int i = 0; i < 500; ++i) absl::StrAppend(&rows, "0.9,1\n");
  folder_.Write("data.csv", rows);
  WriteGraphFile("undecided.pbtxt", Undecided());
  const ProgramRun run = Evaluate(
      "undecided.pbtxt",
      {"--baseline=" + folder_.Path("two.pbtxt"), "--max_accuracy_drop=0.5"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.error, HasSubstr("accuracy drops by more than 0.5 points"));
  EXPECT_EQ(Evaluate("two.pbtxt", {"--baseline=" + folder_.Path("two.pbtxt"),
                                   "--max_accuracy_drop=0.5"})
                .exit_code,
            0);
}

TEST_F(EvaluateGraphTest, FailsWhenTheGateHasNoAccuracyToJudge) {
  folder_.Write("data.textproto", R"pb(
    csv { files: "data.csv" }
    input { feature: "x" placeholder: "x" dtype: "float" shape: 1 }
    prediction { tensor: "predict" }
  )pb");
  const ProgramRun run =
      Evaluate("two.pbtxt", {"--baseline=" + folder_.Path("two.pbtxt"),
                             "--max_accuracy_drop=1", "--format=json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("has no accuracy to judge"));
  EXPECT_THAT(run.out, HasSubstr("\"verdict\": null"));
}

TEST_F(EvaluateGraphTest, ComparesNoProbabilitiesWithScores) {
  // Doubled, the values do not sum to 1.
  WriteGraphFile(
      "double.pbtxt",
      absl::StrCat(TwoClasses(),
                   Node("twice", "AddV2", {"predict", "predict"}, {kFloat})));
  folder_.Write("data.csv", "x,label\n0.9,1\n");
  WriteGraphFile("single.pbtxt",
                 absl::StrCat(TwoClasses(), Node("twice", "Identity",
                                                 {"predict"}, {kFloat})));
  const ProgramRun run = Evaluate(
      "single.pbtxt",
      {"--baseline=" + folder_.Path("double.pbtxt"), "--output=twice"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error,
              AllOf(HasSubstr("single.pbtxt look like PROBABILITIES"),
                    HasSubstr("double.pbtxt like SCORES"),
                    HasSubstr("prediction { kind: ... }")));
}

TEST_F(EvaluateGraphTest, PassesOnNamesThatAreNotUtf8) {
  const ProgramRun no_graph = Evaluate("g\xff.pbtxt");
  EXPECT_EQ(no_graph.exit_code, 1);
  EXPECT_THAT(no_graph.error,
              AllOf(HasSubstr("g\\xff.pbtxt"), Not(HasSubstr("worker"))));
  folder_.Write("data.csv", "x\xff,label\n0.9,1\n");
  const ProgramRun no_column = Evaluate("two.pbtxt");
  EXPECT_EQ(no_column.exit_code, 1);
  EXPECT_THAT(no_column.error, AllOf(HasSubstr("has no column \"x\""),
                                     Not(HasSubstr("worker"))));
  for (const ProgramRun& run : {no_graph, no_column}) {
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1)
        << run.error;
  }
}

TEST_F(EvaluateGraphTest, NamesTheFirstBadRecordsAndCountsTheRest) {
  std::string rows = "x,label\n0.9,1\n";
  for (int i = 0; i < 12; ++i) absl::StrAppend(&rows, "oops,0\n");
  folder_.Write("data.csv", rows);
  const ProgramRun run = Evaluate("two.pbtxt", {"--max_bad_records=20"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.error,
              AllOf(HasSubstr("data.csv:12: "), Not(HasSubstr("data.csv:13: ")),
                    HasSubstr("12 bad records in all")));
}

TEST_F(EvaluateGraphTest, SkipsSoManyBadRecordsAndNamesThem) {
  folder_.Write("data.csv", "x,label\n0.9,1\noops,0\n0.2,0\n");
  const ProgramRun refused = Evaluate("two.pbtxt");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("data.csv"));
  EXPECT_EQ(refused.out, "");
  const ProgramRun run = Evaluate("two.pbtxt", {"--max_bad_records=1"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("Total test records           :  2\n"));
  EXPECT_THAT(run.error, HasSubstr("oops"));
}

TEST_F(EvaluateGraphTest, ExplainsADatasetThatDoesNotFitTheGraph) {
  folder_.Write("data.textproto", R"pb(
    csv { files: "data.csv" }
    input { feature: "x" placeholder: "y" dtype: "float" shape: 1 }
    label { feature: "label" dtype: "int64" }
    prediction { tensor: "predict" }
  )pb");
  const ProgramRun run = Evaluate("two.pbtxt");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("has no placeholder \"y\""));
}

TEST_F(EvaluateGraphTest, RefusesUsageThatMakesNoSense) {
  EXPECT_EQ(Evaluate("two.pbtxt", {"--batch_size=0"}).exit_code, 2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--max_accuracy_drop=1"}).exit_code, 2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--baseline=" + folder_.Path("two.pbtxt"),
                                   "--max_accuracy_drop=nan"})
                .exit_code,
            2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--memory_limit=lots"}).exit_code, 2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--streams=0"}).exit_code, 2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--layer_records=1"}).exit_code, 2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--baseline=" + folder_.Path("two.pbtxt"),
                                   "--baseline_predictions=p"})
                .exit_code,
            2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--format=xml"}).exit_code, 2);
  EXPECT_EQ(RunProgram(kEvaluateGraph, {"--graph=a.pb"}).exit_code, 2);
}

TEST_F(EvaluateGraphTest, KeepsTheLogThatIsAskedFor) {
  WriteGraphFile(
      "printing.pbtxt",
      absl::StrCat(TwoClasses(), Node("said", "Print", {"predict", "x"},
                                      {kFloat,
                                       {"U", "list { type: DT_FLOAT }"},
                                       {"message", "s: \"__min:\""}})));
  const ProgramRun run =
      Evaluate("printing.pbtxt",
               {"--output=said", "--log_file=" + folder_.Path("said.log")});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(folder_.Read("said.log"), HasSubstr("__min:[[0.9][0.8]"));
  EXPECT_THAT(
      Evaluate("printing.pbtxt", {"--output=said", "--log_file=-"}).error,
      HasSubstr("__min:[[0.9][0.8]"));
}

class OwnDataTest : public EvaluateGraphTest {
 protected:
  OwnDataTest() {
    WriteGraphFile("own.pbtxt", GraphWithItsOwnData());
    folder_.Write("a.txt", "0.9\n0.55\n0.1\n");
    folder_.Write("b.txt", "0.2\n");
    folder_.Write("data.textproto", R"pb(
      in_graph {
        files: "a.txt"
        files: "b.txt"
        file_name: "file"
        initializer: "start"
        label_tensor: "label"
      }
      prediction { tensor: "predict" }
    )pb");
  }
};

TEST_F(OwnDataTest, IsReadByTheGraph) {
  const ProgramRun run =
      Evaluate("own.pbtxt", {"--baseline=" + folder_.Path("own.pbtxt")});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  // 0.55 is predicted as class 1 and is none.
  EXPECT_THAT(run.out, AllOf(HasSubstr("Total test records           :  4\n"),
                             HasSubstr("Batch size is                :  2\n"),
                             HasSubstr("Number of batches            :  3\n"),
                             HasSubstr("No of correct predicitons    :  3\n"),
                             HasSubstr("agreement 100")));
}

TEST_F(OwnDataTest, EndsAtTheRecordsAskedForWithinABatch) {
  const ProgramRun run = Evaluate("own.pbtxt", {"--records=1"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, AllOf(HasSubstr("Total test records           :  1\n"),
                             HasSubstr("Batch size is                :  2\n"),
                             HasSubstr("No of correct predicitons    :  1\n")));
}

TEST_F(OwnDataTest, RefusesFlagsThatHaveNoEffectOnIt) {
  for (const char* flag : {"--batch_size=7", "--max_bad_records=1"}) {
    const ProgramRun run = Evaluate("own.pbtxt", {flag});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.error, HasSubstr("have no effect"));
  }
}

TEST_F(OwnDataTest, IsReadInOneStream) {
  const ProgramRun run = Evaluate("own.pbtxt", {"--streams=2"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("leave --streams and --layer_records out"));
}

TEST_F(OwnDataTest, IsComparedWithStoredPredictions) {
  const std::string predictions = folder_.Path("own.predictions");
  ASSERT_EQ(
      Evaluate("own.pbtxt", {"--predictions_out=" + predictions}).exit_code, 0);
  const ProgramRun run =
      Evaluate("own.pbtxt", {"--baseline_predictions=" + predictions});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("agreement 100"));
}

TEST_F(OwnDataTest, HasToHaveTheLabelsOfTheBaseline) {
  WriteGraphFile("other.pbtxt", GraphWithItsOwnData(0.5));
  const ProgramRun run =
      Evaluate("own.pbtxt", {"--baseline=" + folder_.Path("other.pbtxt")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("read different labels from "));
}

// Graphs of tests/data/hostile, which take four numbers per record.
class HostileGraphTest : public EvaluateGraphTest {
 protected:
  HostileGraphTest() {
    const std::string record = RecordBytes(ExampleBytes(R"pb(
      features {
        feature {
          key: "x"
          value { float_list { value: [ 1, 2, 3, 4 ] } }
        }
        feature {
          key: "label"
          value { int64_list { value: 1 } }
        }
      }
    )pb"));
    folder_.Write("data.tfrecords", record + record);
    folder_.Write("data.textproto", R"pb(
      tfrecord { files: "data.tfrecords" }
      input { feature: "x" placeholder: "x" dtype: "float" shape: 4 }
      label { feature: "label" dtype: "int64" }
      prediction { tensor: "predict" }
    )pb");
  }

  static void SetUpTestSuite() { LetSegfaultsPass(); }

  // One sentence on stderr, nothing on stdout, exit code 1.
  std::string FailureOf(const std::string& graph,
                        const std::vector<std::string>& flags) {
    const std::string path = "tests/data/hostile/" + graph;
    std::filesystem::copy(path, folder_.Path(graph),
                          std::filesystem::copy_options::overwrite_existing);
    const ProgramRun run = Evaluate(graph, flags);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1)
        << run.error;
    return run.error;
  }
};

TEST_F(HostileGraphTest, SurvivesACrashInAKernel) {
  EXPECT_THAT(FailureOf("segv_kernel.pbtxt", {}),
              AllOf(HasSubstr("running "), HasSubstr("segv_kernel.pbtxt"),
                    HasSubstr("SIGSEGV (invalid memory access)")));
  EXPECT_TRUE(Logs().empty());
}

TEST_F(HostileGraphTest, SurvivesACrashInAGraphPass) {
  EXPECT_THAT(FailureOf("segv_optimizer.pbtxt", {}), HasSubstr("SIGSEGV"));
}

TEST_F(HostileGraphTest, TellsWhatAFailedCheckSaid) {
  EXPECT_THAT(
      FailureOf("abort.pbtxt", {}),
      AllOf(HasSubstr("SIGABRT"), HasSubstr("its last words: Check failed: "),
            HasSubstr("its log: " + folder_.Path("") + "/requant-worker-")));
  ASSERT_EQ(Logs().size(), 1u);
  EXPECT_THAT(folder_.Read(Logs().front()), HasSubstr("Check failed: "));
}

TEST_F(HostileGraphTest, StopsAGraphThatNeverEnds) {
  EXPECT_THAT(FailureOf("endless.pbtxt", {"--stall_timeout=4"}),
              AllOf(HasSubstr("stopped after 4 s without progress"),
                    HasSubstr("--stall_timeout")));
  EXPECT_THAT(FailureOf("endless.pbtxt", {"--timeout=3"}),
              AllOf(HasSubstr("stopped after 3 s"), HasSubstr("--timeout")));
}

TEST_F(HostileGraphTest, StopsAGraphThatEatsMemory) {
  EXPECT_THAT(FailureOf("memory_loop.pbtxt", {"--memory_limit=1G"}),
              AllOf(AnyOf(HasSubstr("used more than 1.0 GB of memory"),
                          // TensorFlow may be refused memory before.
                          HasSubstr("OOM when allocating")),
                    HasSubstr("--memory_limit")));
}

TEST_F(HostileGraphTest, PassesOnTensorFlowsWordOnATensorThatIsTooLarge) {
  EXPECT_THAT(FailureOf("huge_tensor.pbtxt", {}),
              AllOf(HasSubstr("huge_tensor.pbtxt"), HasSubstr("OOM")));
  EXPECT_TRUE(Logs().empty());
}

TEST_F(HostileGraphTest, LeavesNeitherWorkerNorLogBehindWhenItIsKilled) {
  std::filesystem::copy("tests/data/hostile/endless.pbtxt",
                        folder_.Path("endless.pbtxt"));
  setenv("TMPDIR", folder_.Path("").c_str(), 1);
  const Running running =
      StartUntilItHasAWorker(kEvaluateGraph, Arguments("endless.pbtxt"));
  unsetenv("TMPDIR");
  ASSERT_NE(running.worker, 0);
  kill(running.program, SIGKILL);
  waitpid(running.program, nullptr, 0);
  // Ends by the test's own time limit if the worker does not.
  while (IsAlive(running.worker)) std::this_thread::yield();
  const int nameless = open(folder_.Path("").c_str(), O_TMPFILE | O_RDWR, 0600);
  if (nameless < 0) return;  // Logs have names on this file system.
  close(nameless);
  EXPECT_TRUE(Logs().empty());
}

TEST_F(HostileGraphTest, EndsWithTheSignalsExitCodeWhenInterrupted) {
  std::filesystem::copy("tests/data/hostile/endless.pbtxt",
                        folder_.Path("endless.pbtxt"));
  for (const int signal : {SIGINT, SIGTERM}) {
    const Running running =
        StartUntilItHasAWorker(kEvaluateGraph, Arguments("endless.pbtxt"));
    ASSERT_NE(running.worker, 0);
    kill(running.program, signal);
    EXPECT_EQ(WaitForExitCode(running.program), 128 + signal);
    while (IsAlive(running.worker)) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace requant::evaluate_graph_test
