// Tests that records need no declaration if they are named as a SavedModel's
// inputs, and that names of its signature also fit the graphs made of it.

#include <filesystem>

#include "graph/graph_io.h"
#include "graph/signature_names.h"
#include "runtime/evaluation.pb.h"
#include "tests/support/mixed_records.h"
#include "tests/support/program_runs.h"

namespace requant::named_data_test {
namespace {

constexpr char kEvaluateGraph[] = "runtime/evaluate_graph";
// Its inputs are x [?,4] and ids [?], its outputs y [?,3] and norm [?]. Both
// outputs are of one call, and they have other names in the frozen graph.
constexpr char kModel[] = "graph/testdata/functions";

class NamedData : public testing::Test {
 protected:
  NamedData() {
    std::string rows = "x,ids,label\n", unlabeled = "x,ids\n";
    for (int i = 0; i < 24; ++i) {
      const std::string row =
          absl::StrCat("0.", i, " -1.", i % 7, " ", i % 3, " -0.5,", i % 7);
      absl::StrAppend(&rows, row, ",", i % 3, "\n");
      absl::StrAppend(&unlabeled, row, "\n");
    }
    folder_.Write("data.csv", rows);
    folder_.Write("unlabeled.csv", unlabeled);
  }

  std::string Model() const { return std::filesystem::absolute(kModel); }

  void Freeze() {
    ASSERT_THAT(RunProgram("graph/freeze_graph",
                           {"--input_saved_model_dir=" + Model(),
                            "--output_graph=" + folder_.Path("frozen.pb")}),
                Exits(0));
  }

  ProgramRun Evaluate(const std::string& graph, const Words& more) {
    return RunIn(folder_, kEvaluateGraph, Joined({"--graph=" + graph}, more),
                 {"TMPDIR=" + folder_.Path("")});
  }

  TestFolder folder_;
};

TEST_F(NamedData, FitADeclarationToEveryGraphOfTheModel) {
  folder_.Write("data.textproto", R"(csv { files: "data.csv" }
    input { feature: "x" placeholder: "x" dtype: "float" shape: 4 }
    input { feature: "ids" placeholder: "ids" dtype: "int32" }
    label { feature: "label" dtype: "int64" }
    prediction { tensor: "y" })");
  Freeze();
  ASSERT_THAT(RunProgram(kTransformGraph,
                         {"--in_graph=" + folder_.Path("frozen.pb"),
                          "--out_graph=" + folder_.Path("changed.pb"),
                          "--inputs=serving_default_x,serving_default_ids",
                          "--outputs=StatefulPartitionedCall",
                          "--transforms=strip_unused_nodes fold_constants("
                          "ignore_errors=true) remove_nodes(op=Identity) "
                          "merge_duplicate_nodes obfuscate_names "
                          "sort_by_execution_order"}),
              Exits(0));
  for (const char* graph : {"frozen.pb", "changed.pb"}) {
    EXPECT_THAT(
        Evaluate(graph, {"--baseline=" + Model(), "--dataset=data.textproto"}),
        Prints("Total test records           :  24\n", "agreement 100"))
        << graph;
  }
  // The other output of the same node has one value per record.
  EXPECT_THAT(
      Evaluate("changed.pb", {"--dataset=data.textproto", "--output=norm"}),
      Fails("is 2; the prediction has 2 classes"));
  EXPECT_THAT(
      Evaluate("frozen.pb", {"--dataset=data.textproto", "--output=normal"}),
      Fails("did you mean \"norm\""));
}

TEST_F(NamedData, NeedNoDeclaration) {
  EXPECT_THAT(
      Evaluate(Model(), {"--data=data.csv", "--output=y"}),
      AllOf(Prints("Total test records           :  24\n",
                   "No of correct predicitons"),
            Warns("note: no --dataset is given: data.csv is read as CSV, and "
                  "the columns \"ids\" and \"x\" feed the model's inputs",
                  "note: the column \"label\" is taken as the label\n")));
  const Words rest = {"--data=data.csv", "--output=y"};
  EXPECT_THAT(Evaluate(Model(), Joined(rest, {"--skip_records=20"})),
              Prints("Total test records           :  4\n"));
  EXPECT_THAT(Evaluate(Model(), Joined(rest, {"--skip_records=24"})),
              Fails("no records in data.csv after the first 24"));
  EXPECT_THAT(Evaluate(Model(), Joined(rest, {"--skip_records=-1"})),
              Misused("--skip_records must be at least 0"));
  Freeze();
  EXPECT_THAT(Evaluate("frozen.pb",
                       {"--baseline=" + Model(), "--output=y", "--data=*.csv"}),
              Fails("unlabeled.csv"));
  EXPECT_THAT(Evaluate("frozen.pb", {"--baseline=" + Model(), "--output=y",
                                     "--data=data.csv", "--format=json"}),
              Prints("\"dataset\": \"data.csv\""));
}

TEST_F(NamedData, NeedNoLabels) {
  const Words data = {"--data=unlabeled.csv", "--output=y"};
  EXPECT_THAT(Evaluate(Model(), Joined(data, {"--predictions_out=stored"})),
              AllOf(Prints(Not(HasSubstr("predicitons"))),
                    Warns("note: there is no label, and so no accuracy: no "
                          "column is named like a label")));
  Freeze();
  for (const Words& baseline : std::vector<Words>{
           {"--baseline=" + Model()}, {"--baseline_predictions=stored"}}) {
    EXPECT_THAT(Evaluate("frozen.pb", Joined(data, baseline)),
                Prints("agreement 100"));
  }
  EXPECT_THAT(Evaluate("frozen.pb", Joined(data, {"--baseline=" + Model(),
                                                  "--max_accuracy_drop=1"})),
              Fails("the data have no labels"));
}

TEST_F(NamedData, SayWhatIsUnclear) {
  EXPECT_THAT(Evaluate(Model(), {"--data=data.csv"}),
              Refuses("which of the model's outputs \"norm\" and \"y\" is the "
                      "prediction? Name it by --output"));
  folder_.Write("other.csv", "X,id\n1,2\n");
  EXPECT_THAT(Evaluate(Model(), {"--data=other.csv", "--output=y"}),
              Refuses("other.csv has no columns \"ids\" (did you mean \"id\"?) "
                      "and \"x\" (did you mean \"X\"?)",
                      "it has \"X\" and \"id\""));
  folder_.WriteText("silent.pbtxt",
                    GraphFromText("x = Placeholder dtype=float"));
  EXPECT_THAT(Evaluate("silent.pbtxt", {"--data=data.csv"}),
              Refuses("silent.pbtxt does not say what feeds it"));
  EXPECT_THAT(Evaluate(Model(), {}), RefusesUsage("--dataset is missing"));
}

TEST_F(NamedData, CalibrateASavedModelAndWhatWasFrozenOfIt) {
  Freeze();
  for (const std::string& graph : {Model(), std::string("frozen.pb")}) {
    EXPECT_THAT(RunIn(folder_, "runtime/calibrate_graph",
                      {"--graph=" + graph, "--data=data.csv",
                       "--output=model.ranges", "--tensors=y,norm"}),
                AllOf(Prints("2 ranges", "24 records"),
                      Warns("data.csv is read as CSV")));
  }
}

// The model of mixed layers, as if it had been exported by TensorFlow 2.
class NamedMixedLayers : public NamedData {
 protected:
  NamedMixedLayers() {
    auto graph = ReadGraph("tests/data/mixed_layers/frozen.pb");
    EXPECT_OK(graph);
    tensorflow::SignatureDef signature;
    for (const char* name : {"signal", "context"}) {
      (*signature.mutable_inputs())[name].set_name(absl::StrCat(name, ":0"));
    }
    (*signature.mutable_outputs())["output_0"].set_name("head/probabilities:0");
    KeepSignatureNames(signature, &*graph);
    EXPECT_OK(
        WriteGraph(*graph, folder_.Path("named.pb"), GraphFormat::kBinary));
    EXPECT_OK(WriteMixedRecords(folder_.Path("train.npz"),
                                MixedSplit::kCalibration, 500));
    EXPECT_OK(
        WriteMixedRecords(folder_.Path("eval.npz"), MixedSplit::kEval, 500));
  }
};

TEST_F(NamedMixedLayers, AreQuantizedAndVerifiedWithoutADeclaration) {
  ASSERT_THAT(RunIn(folder_, "runtime/quantize_model",
                    {"--graph=named.pb", "--data=train.npz", "--output=q.pb"}),
              AllOf(Prints("calibrated on 400 records\n",
                           "requant evaluate --graph=q.pb --baseline=named.pb "
                           "--data=RECORDS\n"),
                    Warns("train.npz is read as NumPy arrays")));
  const tensorflow::SignatureDef kept =
      KeptSignature(folder_.ReadGraphFile("q.pb"));
  EXPECT_EQ(kept.inputs().at("signal").name(), "signal:0");
  EXPECT_EQ(kept.outputs().at("output_0").name(), "head/probabilities:0");
  const ProgramRun run = Evaluate(
      "q.pb", {"--baseline=named.pb", "--data=eval.npz", "--result_out=r.pb"});
  ASSERT_THAT(run, Exits(0));
  EvaluateResult result;
  ASSERT_TRUE(result.ParseFromString(folder_.Read("r.pb")));
  EXPECT_EQ(result.timing().records(), 500);
  EXPECT_GT(result.scores().accuracy(), 0.8);
  EXPECT_GT(result.comparison().agreement().records(), 450);
}

}  // namespace
}  // namespace requant::named_data_test
