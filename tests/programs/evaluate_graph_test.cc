// Tests requant evaluate as people run it: figures, comparisons, and graphs
// that crash, never end or exhaust memory.

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "runtime/evaluation.pb.h"
#include "tests/support/program_runs.h"

namespace requant::evaluate_graph_test {
namespace {

using testing::AnyOf;

constexpr char kEvaluateGraph[] = "runtime/evaluate_graph";

// predict = [1 - x, x].
constexpr char kTwoClasses[] = R"(
  x = Placeholder dtype=float shape=<?,1>
  one = float{1}
  not_x = Sub(one, x) T=float
  axis = int32{1}
  predict = ConcatV2(not_x, x, axis) T=float N=2 Tidx=int32
)";

// predict = softmax([x, x]), so that both classes are equally likely.
constexpr char kUndecided[] = R"(
  x = Placeholder dtype=float shape=<?,1>
  axis = int32{1}
  both = ConcatV2(x, x, axis) T=float N=2 Tidx=int32
  predict = Softmax(both) T=float
)";

// Returns a layer MatMul "m", BiasAdd "add", Relu "relu" with the bias `bias`,
// and the prediction [1 - x, x] as above.
std::string WithALayer(float bias) {
  return absl::StrCat(kTwoClasses, FloatConst("b", {2}, {bias, 5}), R"(
    w = float<1,2>{10,-10}
    m = MatMul(x, w) T=float
    add = BiasAdd(m, b) T=float
    relu = Relu(add) T=float
  )");
}

// Returns that graph with the layer's output in codes for 0 to 25.5.
std::string WithACodedLayer() {
  return absl::StrCat(WithALayer(1), R"(
    low = float{-32}
    high = float{32}
    min = float{0}
    max = float{25.5}
    sums = QuantizeV2(relu, low, high) T=qint32
    m_eightbit_requantize = Requantize(sums, sums:1, sums:2, min, max)
        Tinput=qint32 out_type=quint8
  )");
}

// Returns a graph that reads numbers from a text file, two at a time, and
// predicts [1 - x, x]. The label is whether the number is above `limit`.
std::string GraphWithItsOwnData(float limit = 0.6) {
  return absl::StrCat(FloatConst("limit", {}, {limit}), R"(
    file = Placeholder dtype=string
    plain = string{''}
    buffer = int64{4096}
    two = int64{2}
    keep_rest = bool{false}
    lines = TextLineDataset(file, plain, buffer)
    batches = BatchDatasetV2(lines, two, keep_rest) output_types=[string]
        output_shapes=[<?>]
    iterator = IteratorV2 output_types=[string] output_shapes=[<?>]
        shared_name='' container=''
    start = MakeIterator(batches, iterator)
    next = IteratorGetNext(iterator) output_types=[string] output_shapes=[<?>]
    number = StringToNumber(next) out_type=float
    label = Greater(number, limit) T=float
    axis = int32{1}
    x = ExpandDims(number, axis) T=float Tdim=int32
    one = float{1}
    not_x = Sub(one, x) T=float
    predict = ConcatV2(not_x, x, axis) T=float N=2 Tidx=int32
  )");
}

class EvaluateGraphTest : public testing::Test {
 protected:
  EvaluateGraphTest() {
    WriteGraphFile("two.pbtxt", kTwoClasses);
    // There are four records; the second and third are predicted wrongly.
    folder_.Write("data.csv", "x,label\n0.9,1\n0.8,0\n0.1,1\n0.2,0\n");
    folder_.Write("data.textproto", CsvDeclaration(1));
  }

  std::string WriteGraphFile(const std::string& name, const std::string& text) {
    return folder_.WriteText(name, GraphFromText(text));
  }

  ProgramRun Evaluate(const std::string& graph, const Words& more = {}) {
    return RunIn(folder_, kEvaluateGraph,
                 Joined({"--graph=" + folder_.Path(graph),
                         "--dataset=" + folder_.Path("data.textproto")},
                        more),
                 {"TMPDIR=" + folder_.Path("")});
  }

  EvaluateResult ResultIn(const std::string& name) const {
    EvaluateResult result;
    EXPECT_TRUE(result.ParseFromString(folder_.Read(name)));
    return result;
  }

  // Returns the logs that workers left behind.
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
  EXPECT_THAT(Evaluate("two.pbtxt", {"--batch_size=2"}),
              AllOf(Prints(testing::ContainsRegex(
                        "-{50}\nTotal test records           :  4\n"
                        "Batch size is                :  2\n"
                        "Number of batches            :  2\n"
                        "Throughput is \\(records/sec\\)  :  [0-9.]+\n"
                        "Inference duration \\(seconds\\) :  [0-9.]+\n"
                        "Latency \\(millisecond/batch\\)  :  [0-9.]+\n"
                        "Classification accuracy \\(%\\)  :  50(.0*)?\n"
                        "No of correct predicitons    :  2\n-{50}\n+$")),
                    Exits(0, "")));
  EXPECT_TRUE(Logs().empty());
}

TEST_F(EvaluateGraphTest, ComparesWithStoredPredictionsAsWithABaseline) {
  WriteGraphFile("undecided.pbtxt", kUndecided);
  ASSERT_THAT(Evaluate("two.pbtxt", {"--predictions_out=two.predictions"}),
              Exits(0));
  EXPECT_THAT(
      Evaluate("undecided.pbtxt", {"--baseline_predictions=two.predictions",
                                   "--batch_size=3", "--result_out=stored.pb"}),
      Prints("against two.predictions"));
  EXPECT_THAT(Evaluate("undecided.pbtxt",
                       {"--baseline=two.pbtxt", "--result_out=run.pb"}),
              Exits(0));
  EXPECT_EQ(ResultIn("stored.pb").comparison().SerializeAsString(),
            ResultIn("run.pb").comparison().SerializeAsString());
  EXPECT_EQ(ResultIn("stored.pb").baseline_scores().SerializeAsString(),
            ResultIn("run.pb").baseline_scores().SerializeAsString());
  EXPECT_FALSE(ResultIn("stored.pb").has_baseline_timing());
}

TEST_F(EvaluateGraphTest, ComparesOnlyRecordsOfWhichThereArePredictions) {
  ASSERT_THAT(Evaluate("two.pbtxt",
                       {"--records=3", "--predictions_out=three.predictions"}),
              Exits(0));
  for (const auto& [records, compared] :
       std::vector<std::pair<int, int>>{{4, 3}, {2, 2}}) {
    EXPECT_THAT(Evaluate("two.pbtxt",
                         {"--baseline_predictions=three.predictions",
                          "--batch_size=2", absl::StrCat("--records=", records),
                          "--result_out=result.pb"}),
                Exits(0));
    const EvaluateResult result = ResultIn("result.pb");
    EXPECT_EQ(result.timing().records(), records);
    EXPECT_EQ(result.scores().records(), records);
    EXPECT_EQ(result.comparison().records(), compared);
    EXPECT_EQ(result.baseline_scores().records(), compared);
  }
}

TEST_F(EvaluateGraphTest, RefusesToWriteOverWhatItReads) {
  EXPECT_THAT(Evaluate("two.pbtxt", {"--result_out=data.csv"}),
              Fails("it is also read"));
}

TEST_F(EvaluateGraphTest, GivesTheSameFiguresForAnyNumberOfStreams) {
  std::string rows = "x,label\n";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&rows, (i * 37 % 1000) / 1000.0, ",", i * 7 % 11 < 5, "\n");
  }
  folder_.Write("data.csv", rows);
  WriteGraphFile("undecided.pbtxt", kUndecided);
  std::vector<std::string> figures;
  std::vector<std::string> predictions;
  for (const int streams : {1, 2, 5}) {
    ASSERT_THAT(
        Evaluate("two.pbtxt",
                 {"--baseline=undecided.pbtxt",
                  absl::StrCat("--streams=", streams), "--batch_size=7",
                  "--predictions_out=predictions", "--result_out=result.pb"}),
        Exits(0));
    EvaluateResult result = ResultIn("result.pb");
    EXPECT_GT(result.timing().timed_seconds(), 0);
    EXPECT_GT(result.baseline_timing().timed_seconds(), 0);
    EXPECT_EQ(result.timing().batches(), 143);
    result.clear_timing();
    result.clear_baseline_timing();
    figures.push_back(result.SerializeAsString());
    predictions.push_back(folder_.Read("predictions"));
  }
  EXPECT_THAT(figures, Each(figures[0]));
  EXPECT_THAT(predictions, Each(predictions[0]));
}

TEST_F(EvaluateGraphTest, NamesTheRecordsThatFailInAStream) {
  WriteGraphFile(
      "checked.pbtxt",
      absl::StrCat(
          kTwoClasses,
          "checked = CheckNumerics(predict) T=float message='not again'"));
  folder_.Write("data.csv", "x,label\n0.9,1\n0.8,0\nnan,1\n0.2,0\n");
  EXPECT_THAT(
      Evaluate("checked.pbtxt",
               {"--output=checked", "--streams=2", "--batch_size=1"}),
      Fails("checked.pbtxt: records 2 to 2 (counted from 0): ", "not again"));
}

TEST_F(EvaluateGraphTest, ComparesLayersOfAFloatGraph) {
  const std::string baseline = WriteGraphFile("float.pbtxt", WithALayer(1));
  WriteGraphFile("shifted.pbtxt", WithALayer(1.5));
  EXPECT_THAT(
      Evaluate("shifted.pbtxt", {"--baseline=" + baseline, "--layer_records=2",
                                 "--batch_size=1", "--result_out=result.pb"}),
      Prints("layers on 2 records, the noisiest first:\n"));
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
  ASSERT_THAT(Evaluate("float.pbtxt", {"--predictions_out=" + predictions}),
              Exits(0));
  // The baseline runs only for its layers.
  EXPECT_THAT(
      Evaluate("coded.pbtxt",
               {"--baseline=" + baseline,
                "--baseline_predictions=" + predictions, "--layer_records=100",
                "--streams=2", "--batch_size=1", "--result_out=result.pb"}),
      Exits(0));
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
  EXPECT_THAT(
      Evaluate("two.pbtxt", {"--baseline=two.pbtxt", "--layer_records=2"}),
      Warns("has no layers to compare"));
  const std::string baseline = WriteGraphFile("float.pbtxt", WithALayer(1));
  EXPECT_THAT(Evaluate("two.pbtxt", {"--baseline=" + baseline,
                                     "--layer_records=2", "--format=json"}),
              Prints("\"layers\": [], \"unmatched_layers\": "
                     "[\"m\"]"));
}

TEST_F(EvaluateGraphTest, LeavesOutALayerThatCannotBeCompared) {
  const std::string layers = absl::StrCat(WithALayer(1), R"(
    other = MatMul(x, w) T=float
  )");
  const std::string baseline = WriteGraphFile("float.pbtxt", layers);
  WriteGraphFile("narrow.pbtxt",
                 absl::StrReplaceAll(layers, {{"Relu(add)", "Relu(x)"}}));
  const ProgramRun run =
      Evaluate("narrow.pbtxt", {"--baseline=" + baseline, "--layer_records=2",
                                "--batch_size=2", "--result_out=result.pb"});
  EXPECT_THAT(run, Warns("\"m\" is left out: ", "[2,1]", "[2,2]"));
  const EvaluateResult result = ResultIn("result.pb");
  ASSERT_EQ(result.layer_size(), 1);
  EXPECT_EQ(result.layer(0).name(), "other");
  EXPECT_THAT(result.unmatched_layer(), ElementsAre("m"));
}

TEST_F(EvaluateGraphTest, ExitsWith3WhenAccuracyCertainlyDrops) {
  std::string rows = "x,label\n";
  for (int i = 0; i < 500; ++i) absl::StrAppend(&rows, "0.9,1\n");
  folder_.Write("data.csv", rows);
  WriteGraphFile("undecided.pbtxt", kUndecided);
  EXPECT_THAT(Evaluate("undecided.pbtxt",
                       {"--baseline=two.pbtxt", "--max_accuracy_drop=0.5"}),
              Exits(3, HasSubstr("accuracy drops by more than 0.5 points")));
  EXPECT_THAT(Evaluate("two.pbtxt",
                       {"--baseline=two.pbtxt", "--max_accuracy_drop=0.5"}),
              Exits(0));
}

TEST_F(EvaluateGraphTest, FailsWhenTheGateHasNoAccuracyToJudge) {
  folder_.Write("data.textproto", CsvDeclaration(1, /*label=*/false));
  const ProgramRun run = Evaluate(
      "two.pbtxt",
      {"--baseline=two.pbtxt", "--max_accuracy_drop=1", "--format=json"});
  EXPECT_THAT(run, Exits(1, HasSubstr("has no accuracy to judge")));
  EXPECT_THAT(run.out, HasSubstr("\"verdict\": null"));
}

TEST_F(EvaluateGraphTest, ComparesNoProbabilitiesWithScores) {
  // Doubled values do not sum to 1.
  WriteGraphFile(
      "double.pbtxt",
      absl::StrCat(kTwoClasses, "twice = AddV2(predict, predict) T=float"));
  folder_.Write("data.csv", "x,label\n0.9,1\n");
  WriteGraphFile(
      "single.pbtxt",
      absl::StrCat(kTwoClasses, "twice = Identity(predict) T=float"));
  EXPECT_THAT(
      Evaluate("single.pbtxt", {"--baseline=double.pbtxt", "--output=twice"}),
      Fails("single.pbtxt look like PROBABILITIES", "double.pbtxt like SCORES",
            "prediction { kind: ... }"));
}

TEST_F(EvaluateGraphTest, TellsNumbersByTheValuesOfTheBaseline) {
  constexpr char kTimes[] = R"(
    x = Placeholder dtype=float shape=<?,1>
    factor = float{$0}
    predict = Mul(x, factor) T=float
  )";
  WriteGraphFile("inside.pbtxt", absl::Substitute(kTimes, "1"));
  WriteGraphFile("outside.pbtxt", absl::Substitute(kTimes, "2"));
  EXPECT_THAT(Evaluate("inside.pbtxt", {"--baseline=outside.pbtxt"}),
              Prints("  predictions read as VALUE (a guess", "  output: mean",
                     Not(HasSubstr("agreement"))));
  EXPECT_THAT(
      Evaluate("outside.pbtxt", {"--baseline=inside.pbtxt"}),
      Prints("  predictions read as PROBABILITY (a guess", "  agreement "));
  EXPECT_THAT(Evaluate("outside.pbtxt", {"--predictions_out=p"}),
              Prints("predictions read as VALUE (a guess"));
  EXPECT_THAT(Evaluate("inside.pbtxt", {"--baseline_predictions=p"}),
              Prints("  predictions read as VALUE (a guess"));
}

// Later code does not check the sizes again.
TEST_F(EvaluateGraphTest, ComparesNoPredictionsOfDifferentSizes) {
  WriteGraphFile("small.pbtxt",
                 absl::StrCat(kTwoClasses, "some = Identity(predict) T=float"));
  WriteGraphFile(
      "large.pbtxt",
      absl::StrCat(kTwoClasses,
                   "some = ConcatV2(predict, x, axis) T=float N=2 Tidx=int32"));
  EXPECT_THAT(
      Evaluate("large.pbtxt", {"--baseline=small.pbtxt", "--output=some"}),
      Fails("large.pbtxt and ", "small.pbtxt give predictions of different ",
            "sizes: they cannot be compared"));
}

TEST_F(EvaluateGraphTest, NamesTheFirstBadRecordsAndCountsTheRest) {
  std::string rows = "x,label\n0.9,1\n";
  for (int i = 0; i < 12; ++i) absl::StrAppend(&rows, "oops,0\n");
  folder_.Write("data.csv", rows);
  EXPECT_THAT(Evaluate("two.pbtxt", {"--max_bad_records=11"}),
              Fails("data.csv"));
  EXPECT_THAT(
      Evaluate("two.pbtxt", {"--max_bad_records=12"}),
      AllOf(Prints("Total test records           :  1\n"),
            Warns("data.csv:12: ", "oops", Not(HasSubstr("data.csv:13: ")),
                  "12 bad records were left out while evaluating")));
}

TEST_F(EvaluateGraphTest, RefusesUsageThatMakesNoSense) {
  for (const Words& flags :
       std::vector<Words>{{"--batch_size=0"},
                          {"--max_accuracy_drop=1"},
                          {"--baseline=two.pbtxt", "--max_accuracy_drop=nan"},
                          {"--stall_timeout=-1"},
                          {"--streams=0"},
                          {"--layer_records=1"},
                          {"--baseline=two.pbtxt", "--baseline_predictions=p"},
                          {"--format=xml"}}) {
    EXPECT_THAT(Evaluate("two.pbtxt", flags), Exits(2)) << flags.back();
  }
  EXPECT_THAT(RunProgram(kEvaluateGraph, {"--graph=a.pb"}), Exits(2));
  EXPECT_THAT(Evaluate("two.pbtxt", {"--memory_limit=lots"}),
              Misused("--memory_limit: \"lots\" is no amount of memory; write "
                      "8G or 512M"));
}

class OwnDataTest : public EvaluateGraphTest {
 protected:
  OwnDataTest() {
    WriteGraphFile("own.pbtxt", GraphWithItsOwnData());
    folder_.Write("a.txt", "0.9\n0.55\n0.1\n");
    folder_.Write("b.txt", "0.2\n");
    folder_.Write("data.textproto", R"(
      in_graph { files: "a.txt" files: "b.txt" file_name: "file"
                 initializer: "start" label_tensor: "label" }
      prediction { tensor: "predict" }
    )");
  }
};

TEST_F(OwnDataTest, IsReadByTheGraph) {
  // 0.55 is predicted as class 1 but is not in it.
  EXPECT_THAT(Evaluate("own.pbtxt", {"--baseline=own.pbtxt"}),
              Prints("Total test records           :  4\n"
                     "Batch size is                :  2\n"
                     "Number of batches            :  3\n",
                     "No of correct predicitons    :  3\n", "agreement 100"));
}

TEST_F(OwnDataTest, EndsAtTheRecordsAskedForWithinABatch) {
  EXPECT_THAT(Evaluate("own.pbtxt", {"--records=1"}),
              Prints("Total test records           :  1\n",
                     "Batch size is                :  2\n",
                     "No of correct predicitons    :  1\n"));
}

TEST_F(OwnDataTest, RefusesFlagsThatHaveNoEffectOnIt) {
  for (const char* flag : {"--batch_size=7", "--max_bad_records=1"}) {
    EXPECT_THAT(Evaluate("own.pbtxt", {flag}), Fails("have no effect"));
  }
  EXPECT_THAT(Evaluate("own.pbtxt", {"--streams=2"}),
              Fails("leave --streams and --layer_records out"));
}

TEST_F(OwnDataTest, IsComparedWithStoredPredictions) {
  const std::string predictions = folder_.Path("own.predictions");
  ASSERT_THAT(Evaluate("own.pbtxt", {"--predictions_out=" + predictions}),
              Exits(0));
  EXPECT_THAT(Evaluate("own.pbtxt", {"--baseline_predictions=" + predictions}),
              Prints("agreement 100"));
}

TEST_F(OwnDataTest, HasToHaveTheLabelsOfTheBaseline) {
  WriteGraphFile("other.pbtxt", GraphWithItsOwnData(0.5));
  EXPECT_THAT(Evaluate("own.pbtxt", {"--baseline=other.pbtxt"}),
              Fails("read different labels from "));
}

// Runs graphs of tests/data/hostile, which take four numbers per record.
class HostileGraphTest : public EvaluateGraphTest {
 protected:
  HostileGraphTest() {
    folder_.Write("data.csv", "x,label\n1 2 3 4,1\n1 2 3 4,1\n");
    folder_.Write("data.textproto", CsvDeclaration(4));
  }

  static void SetUpTestSuite() { LetSegfaultsPass(); }

  ProgramRun EvaluateHostile(const std::string& graph,
                             const Words& flags = {}) {
    std::filesystem::copy("tests/data/hostile/" + graph, folder_.Path(graph),
                          std::filesystem::copy_options::overwrite_existing);
    return Evaluate(graph, flags);
  }
};

TEST_F(HostileGraphTest, SurvivesACrashInAKernelOrAGraphPass) {
  for (const auto& [graph, activity] :
       {std::pair("segv_kernel.pbtxt", "running "),
        std::pair("segv_optimizer.pbtxt", "loading ")}) {
    EXPECT_THAT(EvaluateHostile(graph),
                Refuses(activity, graph, "SIGSEGV (invalid memory access)"));
    EXPECT_TRUE(Logs().empty());
  }
}

TEST_F(HostileGraphTest, TellsWhatAFailedCheckSaid) {
  EXPECT_THAT(EvaluateHostile("abort.pbtxt"),
              Refuses("SIGABRT", "its last words: Check failed: ",
                      "its log: " + folder_.Path("") + "/requant-worker-"));
  ASSERT_EQ(Logs().size(), 1u);
  EXPECT_THAT(folder_.Read(Logs().front()), HasSubstr("Check failed: "));
}

TEST_F(HostileGraphTest, StopsAGraphThatNeverEnds) {
  EXPECT_THAT(EvaluateHostile("endless.pbtxt", {"--stall_timeout=4"}),
              Refuses("stopped after 4 s without progress", "--stall_timeout"));
  EXPECT_THAT(EvaluateHostile("endless.pbtxt", {"--timeout=1"}),
              Refuses("stopped after 1 s", "--timeout"));
}

// isolation_test.cc tests what becomes of the child.
TEST_F(HostileGraphTest, LeavesNoLogWhenASignalEndsIt) {
  const std::string graph =
      std::filesystem::absolute("tests/data/hostile/endless.pbtxt");
  for (const auto& [signal, code] : {std::pair("KILL", 137), {"INT", 130}}) {
    EXPECT_THAT(RunIn(folder_, "/usr/bin/timeout",
                      {"--foreground", "--preserve-status",
                       absl::StrCat("--signal=", signal), "2",
                       std::filesystem::absolute(kEvaluateGraph).string(),
                       "--graph=" + graph, "--dataset=data.textproto"},
                      {"TMPDIR=" + folder_.Path("")}),
                Exits(code));
    const int nameless =
        open(folder_.Path("").c_str(), O_TMPFILE | O_RDWR, 0600);
    if (nameless < 0) return;  // Logs have names on this file system.
    close(nameless);
    EXPECT_THAT(Logs(), IsEmpty());
  }
}

TEST_F(HostileGraphTest, StopsAGraphThatEatsMemory) {
  EXPECT_THAT(EvaluateHostile("memory_loop.pbtxt", {"--memory_limit=1G"}),
              Refuses(AnyOf(HasSubstr("used more than 1.0 GB of memory"),
                            // TensorFlow may be refused memory earlier.
                            HasSubstr("OOM when allocating")),
                      "--memory_limit"));
}

TEST_F(HostileGraphTest, PassesOnTensorFlowsWordOnATensorThatIsTooLarge) {
  EXPECT_THAT(EvaluateHostile("huge_tensor.pbtxt"),
              Refuses("huge_tensor.pbtxt", "OOM"));
  EXPECT_TRUE(Logs().empty());
}

}  // namespace
}  // namespace requant::evaluate_graph_test
