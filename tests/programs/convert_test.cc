// Tests what requant convert, dump_graph and pb_to_pbtxt make of models, and
// what they refuse. The tests of graph/saved_model and base/files cover all
// errors in a model or a target, and that models are written completely.

#include <sys/resource.h>

#include <filesystem>
#include <set>

#include "base/files/file.h"
#include "base/files/files.h"
#include "base/sanitized.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/gptj_model.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/support/program_runs.h"

namespace requant::convert_test {
namespace {

namespace fs = std::filesystem;

constexpr char kConvert[] = "runtime/convert_model";
constexpr char kTinyModel[] = "workflows/gptj_tiny/saved_model/1";
constexpr char kData[] = "variables/variables.data-00000-of-00001";

// Returns the files below a folder, by their relative paths.
std::vector<std::string> FilesIn(const std::string& folder) {
  const auto files = FilesBelow(folder);
  EXPECT_OK(files);
  return {files->begin(), files->end()};
}

void ExpectSameFiles(const std::string& a, const std::string& b) {
  ASSERT_EQ(FilesIn(a), FilesIn(b));
  for (const std::string& file : FilesIn(a)) {
    EXPECT_EQ(ReadFile(absl::StrCat(a, "/", file)).value(),
              ReadFile(absl::StrCat(b, "/", file)).value())
        << file;
  }
}

int CountOp(const GraphDef& graph, const std::string& op) {
  int count = NodesOf(graph, op).size();
  for (const auto& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) count += node.op() == op;
  }
  return count;
}

// Loads a model with TensorFlow's own loader, feeds the only input of its
// signature and returns its only output.
Tensor RunModel(const std::string& directory, const Tensor& input) {
  EXPECT_OK(LoadTensorFlow());
  tensorflow::SavedModelBundle bundle;
  EXPECT_OK(tensorflow::LoadSavedModel(tensorflow::SessionOptions(),
                                       tensorflow::RunOptions(), directory,
                                       {"serve"}, &bundle));
  const auto& signature = bundle.GetSignatures().at("serving_default");
  std::vector<Tensor> outputs;
  EXPECT_OK(bundle.session->Run(
      {{signature.inputs().begin()->second.name(), input}},
      {signature.outputs().begin()->second.name()}, {}, &outputs));
  return outputs.at(0);
}

// Returns the mean squared difference between two models' outputs.
double MeanSquaredError(const std::string& a, const std::string& b,
                        const Tensor& input) {
  const std::vector<float> x = ValuesOf(RunModel(a, input));
  const std::vector<float> y = ValuesOf(RunModel(b, input));
  EXPECT_EQ(x.size(), y.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum / x.size();
}

// Does the same for a model and the tiny one.
double ChangeBy(const std::string& model) {
  std::vector<int> characters;
  for (int i = 0; i < 2 * 64; ++i) characters.push_back(i * 7 % 43);
  return MeanSquaredError(kTinyModel, model,
                          TensorOf<int>({2, 64}, characters));
}

std::string Absolute(const std::string& path) {
  return fs::absolute(path).string();
}

class Convert : public testing::Test {
 protected:
  // Runs in the test's folder, so that default outputs are written there.
  ProgramRun Run(const Words& arguments,
                 const std::string& program = kConvert) {
    return RunIn(folder, program, arguments);
  }
  // Converts without writing the two graphs.
  ProgramRun ConvertOnly(const Words& arguments) {
    return Run(Joined(arguments,
                      {"--extracted_graph_def=", "--converted_graph_def="}));
  }
  ProgramRun ConvertTiny(const Words& flags) {
    return ConvertOnly(Joined({tiny}, flags));
  }
  ProgramRun ConvertModel(const Words& flags) {
    return ConvertOnly(Joined({"--saved_model=model"}, flags));
  }
  // Returns the number of QuantizeV2 nodes in a model.
  int Pairs(const std::string& model, const std::set<std::string>& tags = {}) {
    return CountOp(*ReadGraph(folder.Path(model), tags), "QuantizeV2");
  }
  // Expects one sentence with all of these parts, and no files but `left`.
  void ExpectRefused(const ProgramRun& run, const std::string& message,
                     const Words& left) {
    EXPECT_THAT(run, Refuses(message));
    EXPECT_THAT(folder.Names(), testing::UnorderedElementsAreArray(left));
  }

  const std::string tiny = "--saved_model=" + Absolute("workflows/gptj_tiny");
  TestFolder folder;
};

TEST_F(Convert, WritesAModelBackToTheByte) {
  ASSERT_THAT(Run({tiny}), Exits(0, ""));
  EXPECT_THAT(folder.Names(), UnorderedElementsAre("converted_gptj_tiny",
                                                   "converted_graph_def.pb",
                                                   "extracted_graph_def.pb"));
  ExpectSameFiles(kTinyModel, folder.Path("converted_gptj_tiny"));
  EXPECT_EQ(folder.Read("extracted_graph_def.pb"),
            folder.Read("converted_graph_def.pb"));
  ASSERT_OK_AND_ASSIGN(const auto graph, ReadGraph(kTinyModel));
  EXPECT_TRUE(
      SameMessage(graph, folder.ReadGraphFile("extracted_graph_def.pb")));
  EXPECT_EQ(ChangeBy(folder.Path("converted_gptj_tiny")), 0.0);
}

TEST_F(Convert, WritesEveryFixtureBackToTheByte) {
  for (const char* name :
       {"functions", "partitioned_variables", "ref_variables",
        "resource_variables", "vocabulary_v1", "vocabulary_v2"}) {
    const std::string model = absl::StrCat("graph/testdata/", name);
    ASSERT_THAT(ConvertOnly({"--saved_model=" + Absolute(model),
                             "--out=" + folder.Path(name)}),
                Exits(0));
    ExpectSameFiles(model, folder.Path(name));
  }
}

TEST_F(Convert, InsertsPairsIntoFunctionsAndTheModelStillRuns) {
  ASSERT_THAT(Run({tiny, "--insert_qdq"}), Warns("all ranges are -1 to 1"));
  const GraphDef before = folder.ReadGraphFile("extracted_graph_def.pb");
  const GraphDef after = folder.ReadGraphFile("converted_graph_def.pb");
  EXPECT_EQ(CountOp(before, "QuantizeV2"), 0);
  EXPECT_GT(CountOp(after, "QuantizeV2"), 0);
  EXPECT_EQ(CountOp(after, "QuantizeV2"), CountOp(after, "Dequantize"));
  EXPECT_EQ(CountOp(after, "MatMul"), CountOp(before, "MatMul"));
  // The dumped graphs are those of the model.
  ASSERT_OK_AND_ASSIGN(const auto written,
                       ReadGraph(folder.Path("converted_gptj_tiny")));
  EXPECT_TRUE(SameMessage(written, after));
  EXPECT_GT(ChangeBy(folder.Path("converted_gptj_tiny")), 0);
}

TEST_F(Convert, MeasuresRangesAndKeepsThem) {
  ASSERT_THAT(ConvertTiny({"--insert_qdq", "--out=fixed"}), Exits(0));
  ASSERT_THAT(
      ConvertTiny(
          {"--insert_qdq", "--out=measured", "--ranges=calibrate",
           "--dataset=" + Absolute("workflows/gptj_tiny/calibration.textproto"),
           "--ranges_output=gptj.ranges"}),
      Exits(0));
  EXPECT_GT(ChangeBy(folder.Path("measured")), 0);
  EXPECT_LT(ChangeBy(folder.Path("measured")),
            0.01 * ChangeBy(folder.Path("fixed")));
  ASSERT_THAT(
      ConvertTiny({"--insert_qdq", "--out=again", "--ranges=gptj.ranges"}),
      Exits(0));
  ExpectSameFiles(folder.Path("measured"), folder.Path("again"));
}

// Returns a model with a MatMul for each signature, and one under a condition.
std::string BranchingModel() {
  const std::string graph = GraphText(R"(
    x = Placeholder dtype=float shape=<?,2>
    z = Placeholder dtype=float shape=<?,2>
    w = float<2,2>{1,-1,0.5,2}
    m = MatMul(x, w) T=float
    other = MatMul(z, w) T=float
    yes = bool{true}
    choice = StatelessIf(yes, m) Tin=[float] Tout=[float] Tcond=bool
        output_shapes=[] then_branch=@branch else_branch=@branch
    function branch(a) -> (r=p:product:0) {
      v = float<2,2>{1,2,3,4}
      p = MatMul(a, v:output:0) T=float
    }
  )");
  const auto signature = [](const std::string& name, const std::string& input,
                            const std::string& output) {
    const auto tensor = [](const std::string& tensor) {
      return absl::StrCat("value { name: \"", tensor,
                          ":0\" dtype: DT_FLOAT } }");
    };
    return absl::StrCat("signature_def { key: \"", name,
                        "\" value { inputs { key: \"x\" ", tensor(input),
                        " outputs { key: \"y\" ", tensor(output), " } }");
  };
  return absl::StrCat("saved_model_schema_version: 1 meta_graphs { ",
                      "meta_info_def { tags: \"serve\" } graph_def {\n", graph,
                      "versions { producer: 1882 } }",
                      signature("serving_default", "x", "choice"),
                      signature("second", "z", "other"), " }");
}

// The calibration of one signature measures neither the branch nor what the
// other signature reads. A model in text format stays in text format.
TEST_F(Convert, LeavesInFloatWhatCannotBeMeasured) {
  folder.Write("model/saved_model.pbtxt", BranchingModel());
  folder.Write("data.csv", "x\n1 2\n-3 4\n");
  folder.Write("data.textproto", R"pb(
    csv { files: "data.csv" }
    input { feature: "x" placeholder: "x" dtype: "float" shape: 2 }
    prediction { tensor: "y" kind: SCORES }
  )pb");
  const Words flags = {"--insert_qdq", "--dataset=data.textproto",
                       "--method=minmax"};
  ASSERT_THAT(
      ConvertModel(Joined(flags, {"--out=out", "--ranges_output=a.ranges"})),
      Warns("the range of z:0 is not observed: the signature "
            "serving_default does not compute it (--signature ",
            "the range of branch::a:0 is not observed: it is in a "
            "loop or under a condition (While, If)",
            "left in float, for want of a range: "));
  EXPECT_THAT(FilesIn(folder.Path("out")), ElementsAre("saved_model.pbtxt"));
  // The pairs are for x and w, which both signatures read.
  EXPECT_EQ(Pairs("out"), 2);
  EXPECT_LT(MeanSquaredError(folder.Path("model"), folder.Path("out"),
                             TensorOf<float>({1, 2}, {1, 1})),
            0.1);
  EXPECT_THAT(ConvertModel(Joined(flags, {"--out=strict", "--missing=error"})),
              Fails("missing=skip"));
  // Range files are expected to have all ranges.
  const Words files = {"--insert_qdq", "--out=strict", "--ranges=a.ranges"};
  EXPECT_THAT(ConvertModel(files), Exits(1));
  EXPECT_THAT(folder.Names(),
              UnorderedElementsAre("a.ranges", "data.csv", "data.textproto",
                                   "model", "out"));
  EXPECT_THAT(ConvertModel(Joined(files, {"--missing=skip"})), Exits(0));
}

TEST_F(Convert, TakesFixedRangesToTheLastDigit) {
  ASSERT_THAT(
      Run({tiny, "--insert_qdq", "--ranges=fixed(-0.123456789, 0.123456789)"}),
      Exits(0));
  std::set<float> maxima;
  const GraphDef graph = folder.ReadGraphFile("converted_graph_def.pb");
  for (const auto& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) {
      if (node.name().find("_eightbit_max_") == std::string::npos) continue;
      Tensor tensor;
      ASSERT_TRUE(tensor.FromProto(node.attr().at("value").tensor()));
      maxima.insert(tensor.flat<float>()(0));
    }
  }
  EXPECT_THAT(maxima, ElementsAre(0.123456789f));
}

TEST_F(Convert, KeepsTheGraphsOfOtherTags) {
  tensorflow::SavedModel saved;
  folder.Copy(kTinyModel, "model");
  ASSERT_TRUE(saved.ParseFromString(folder.Read("model/saved_model.pb")));
  *saved.add_meta_graphs() = saved.meta_graphs(0);
  saved.mutable_meta_graphs(1)->mutable_meta_info_def()->add_tags("gpu");
  folder.Write("model/saved_model.pb", saved.SerializeAsString());
  ASSERT_THAT(ConvertModel({"--insert_qdq", "--out=out", "--tags=serve,gpu"}),
              Exits(0));
  EXPECT_EQ(Pairs("out", {"serve"}), 0);
  EXPECT_GT(Pairs("out", {"serve", "gpu"}), 0);
}

// Custom ops are those that only a library of the user has.
TEST_F(Convert, PassesCustomOpsThroughAndSaysSo) {
  tensorflow::SavedModel saved;
  folder.Copy(kTinyModel, "model");
  ASSERT_TRUE(saved.ParseFromString(folder.Read("model/saved_model.pb")));
  AddNodes("mine = MyOwnOp", saved.mutable_meta_graphs(0)->mutable_graph_def());
  folder.Write("model/saved_model.pb", saved.SerializeAsString());
  ASSERT_THAT(ConvertModel({"--insert_qdq", "--out=out"}),
              Warns("warning: ", "MyOwnOp"));
  ASSERT_OK_AND_ASSIGN(const auto graph, ReadGraph(folder.Path("out")));
  EXPECT_EQ(CountOp(graph, "MyOwnOp"), 1);
  EXPECT_GT(CountOp(graph, "QuantizeV2"), 0);
}

TEST_F(Convert, RunsAnyTransforms) {
  ASSERT_THAT(
      ConvertTiny({"--out=out", "--transforms=sort_by_execution_order"}),
      Exits(0));
  EXPECT_EQ(ChangeBy(folder.Path("out")), 0);
}

// The file of variables is a sparse file of 20 GB, so reading it would take
// much time, and loading it much memory.
TEST_F(Convert, EditsAModelOfGptJsSizeAndNeverReadsVariables) {
  constexpr int64_t kBytes = int64_t{20} << 30;
  constexpr int64_t kMostKilobytes = 1'000'000;
  const GptjShape shape;
  ASSERT_OK(WriteGptjModel(folder.Path("gpt-j-6B"), shape, kBytes));
  for (const char* copy : {"link", "copy"}) {
    ASSERT_THAT(ConvertOnly({"--saved_model=gpt-j-6B", "--insert_qdq",
                             "--ops=MatMul", absl::StrCat("--copy=", copy),
                             absl::StrCat("--out=", copy)}),
                Exits(0));
    const std::string data = folder.Path(absl::StrCat(copy, "/", kData));
    EXPECT_EQ(fs::file_size(data), kBytes);
    EXPECT_LT(AllocatedBytes(data), 1 << 20);
    EXPECT_EQ(fs::hard_link_count(data), copy == std::string("link") ? 2 : 1);
  }
  rusage usage;
  ASSERT_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
  // A sanitizer keeps freed memory for a while.
  if (!kSanitized) {
    EXPECT_LT(usage.ru_maxrss, kMostKilobytes);
  }
  ASSERT_OK_AND_ASSIGN(const auto graph, ReadGraph(folder.Path("link")));
  EXPECT_GT(CountNodes(graph), 10000);
  // There are six projections per layer and one after the layers. The three
  // projections of attention and the first of the feed-forward part each read
  // their own reshaped values, so each MatMul has a pair for its values and one
  // for its weights.
  EXPECT_EQ(CountOp(graph, "QuantizeV2"),
            2 * shape.functions * (6 * shape.layers + 1));
}

TEST_F(Convert, DumpsTheGraphAndPrintsItAsText) {
  ASSERT_THAT(Run({tiny, "--insert_qdq"}), Exits(0));
  ASSERT_THAT(Run({"--input_model=converted_gptj_tiny"}, "graph/dump_graph"),
              Exits(0));
  EXPECT_EQ(folder.Read("dumped_graph.pb"),
            folder.Read("converted_graph_def.pb"));
  ASSERT_THAT(Run({}, "graph/pb_to_pbtxt"), Exits(0));
  const std::string text = folder.Read("converted_graph_def.pbtxt");
  EXPECT_THAT(text, HasSubstr("_eightbit_quantize_"));
  EXPECT_THAT(text, HasSubstr("Tensordot/MatMul_dequantize:output:0"));
  EXPECT_TRUE(SameMessage(folder.ReadGraphFile("converted_graph_def.pbtxt"),
                          folder.ReadGraphFile("converted_graph_def.pb")));
  EXPECT_THAT(
      Run({"extracted_graph_def.pb", "before.txt"}, "graph/pb_to_pbtxt"),
      Exits(0));
  EXPECT_THAT(folder.Read("before.txt"), Not(HasSubstr("eightbit")));
}

// Errors are reported at once, not after hours of measuring.
TEST_F(Convert, ChecksAllBeforeItCalibrates) {
  fs::create_directories(folder.Path("taken/photos"));
  for (const auto& [flag, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"--out=out", "missing.textproto"},
           {"--out=taken", "cannot write taken: it exists; --overwrite"},
           {"--out=no/such", "No such file or directory"},
           {"--signature=serving", "has no signature \"serving\""},
           {"--tags=train", "has no graph tagged {train}; it has {serve}"}}) {
    ExpectRefused(
        ConvertTiny({"--insert_qdq", "--dataset=missing.textproto", flag}),
        message, {"taken"});
  }
}

TEST_F(Convert, RefusesTransformsThatTakeAwayWhatTheModelNames) {
  EXPECT_THAT(
      ConvertTiny({"--out=out",
                   "--transforms=rename_node(old_node_name=\"saver_filename\", "
                   "new_node_name=\"other\")"}),
      Fails("removed the node \"saver_filename\", which "
            "the saver of the model names"));
  EXPECT_THAT(folder.Names(), ElementsAre());
}

TEST_F(Convert, RefusesWrongTransformsAsUsage) {
  EXPECT_THAT(ConvertTiny({"--out=out", "--transforms=insert_qqdq"}),
              Misused("did you mean \"insert_qdq\"?"));
  const std::vector<std::vector<std::string>> wrong = {
      {"--ranges=fixed(-1,1)"},
      {"--insert_qdq", "--ranges=fixed(1,-1)"},
      {"--insert_qdq", "--ranges=calibrate"},
      {"--insert_qdq", "--ranges=a.ranges", "--dataset=d.textproto"},
      {"--insert_qdq", "--max_records=3"},
      {"--insert_qdq", "--ranges=a.ranges", "--batch_size=3"},
      {"--max_records=3"},
      {"--insert_qdq", "--missing=skip"},
      {"--insert_qdq", "--ranges=a.ranges", "--missing=no"},
      {"--copy=move"},
      {"--transforms=a("},
      {"stray"}};
  for (Words flags : wrong) {
    flags.push_back(tiny);
    EXPECT_EQ(ConvertOnly(flags).exit_code, 2) << flags[0];
  }
  EXPECT_THAT(folder.Names(), ElementsAre());
}

TEST_F(Convert, DoesNotWriteGraphsOverTheModel) {
  folder.Copy(kTinyModel, "model");
  ExpectRefused(Run({"--saved_model=model", "--out=out",
                     "--extracted_graph_def=model/saved_model.pb"}),
                "it is also read", {"model"});
  ExpectRefused(
      Run({"--saved_model=model", "--out=out", "--extracted_graph_def=a.pb",
           "--converted_graph_def=a.pb"}),
      "two outputs", {"model"});
  folder.Copy(kTinyModel, "out");
  for (const char* flag : {"--extracted_graph_def=out/graph.pb",
                           "--converted_graph_def=./out/variables/graph.pb"}) {
    ExpectRefused(
        Run({"--saved_model=model", "--out=out", "--overwrite", flag}),
        "it is inside out, which is written as a whole", {"model", "out"});
  }
  ExpectSameFiles(kTinyModel, folder.Path("out"));
}

TEST_F(Convert, CopiesWhereItCannotLink) {
  const SmallDisk disk(folder.Path("disk"), "size=4m");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small disk";
  EXPECT_THAT(ConvertTiny({"--out=disk/out", "--copy=link"}),
              Fails("--copy=auto"));
  EXPECT_TRUE(fs::is_empty(disk.path()));
  ASSERT_THAT(ConvertTiny({"--out=disk/out"}), Exits(0));
  ExpectSameFiles(kTinyModel, disk.path() + "/out");
}

TEST_F(Convert, AsksForRoomBeforeItCopies) {
  const SmallDisk disk(folder.Path("disk"), "size=256k");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small disk";
  EXPECT_THAT(ConvertTiny({"--out=disk/out"}),
              Fails("cannot write disk/out: it takes", "are free there"));
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST_F(Convert, LeavesNothingWhenATransformCrashes) {
  ExpectRefused(
      ConvertTiny({"--out=out",
                   "--plugins=" + Absolute("tests/plugins/odd_plugin.so"),
                   "--transforms=abort"}),
      "the transform \"abort\" (1 of 1) was ended by SIGABRT", {});
}

TEST_F(Convert, ToolsForDumpsTellBadInputInASentence) {
  EXPECT_THAT(Run({}, "graph/pb_to_pbtxt"),
              Fails("cannot read converted_graph_def.pb"));
  folder.Write("a.pb", "no graph");
  EXPECT_THAT(Run({"a.pb"}, "graph/pb_to_pbtxt"), Exits(1));
  EXPECT_THAT(Run({"a", "b", "c"}, "graph/pb_to_pbtxt"), Exits(2));
  EXPECT_THAT(Run({"a.pb", "a.pb"}, "graph/pb_to_pbtxt").error,
              HasSubstr("it is also read"));
  EXPECT_THAT(Run({}, "graph/dump_graph"), Exits(2));
  EXPECT_THAT(Run({"--input_model=nowhere"}, "graph/dump_graph"), Exits(1));
  EXPECT_THAT(Run({"--input_model=" + Absolute(kTinyModel), "--tags=gpu"},
                  "graph/dump_graph")
                  .error,
              HasSubstr("it has {serve}"));
  EXPECT_THAT(folder.Names(), ElementsAre("a.pb"));
}

}  // namespace
}  // namespace requant::convert_test
