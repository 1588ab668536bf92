// What requant convert, dump_graph and pb_to_pbtxt make of models.

#include <sys/resource.h>

#include "base/files/files.h"
#include "base/sanitized.h"
#include "graph/graph_index.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/gptj_model.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tests/support/convert_fixture.h"

namespace requant::convert_test {
namespace {

namespace fs = std::filesystem;

using tensorflow::MetaGraphDef;
using tensorflow::SavedModel;

// What TensorFlow's own loader makes of a model.
class LoadedModel {
 public:
  explicit LoadedModel(const std::string& directory) {
    EXPECT_OK(LoadTensorFlow());
    EXPECT_OK(tensorflow::LoadSavedModel(tensorflow::SessionOptions(),
                                         tensorflow::RunOptions(), directory,
                                         {"serve"}, &bundle_));
  }

  // Feeds the only input of the signature and fetches its only output.
  Tensor Run(const Tensor& input,
             const std::string& signature = "serving_default") {
    const auto& signatures = bundle_.GetSignatures();
    const auto found = signatures.find(signature);
    std::vector<Tensor> outputs;
    if (found == signatures.end()) {
      ADD_FAILURE() << "no signature " << signature;
      return Tensor();
    }
    EXPECT_OK(bundle_.session->Run(
        {{found->second.inputs().begin()->second.name(), input}},
        {found->second.outputs().begin()->second.name()}, {}, &outputs));
    return outputs.empty() ? Tensor() : outputs[0];
  }

 private:
  tensorflow::SavedModelBundle bundle_;
};

Tensor Characters() {
  Tensor input(tensorflow::DT_INT32, {2, 64});
  for (int i = 0; i < input.NumElements(); ++i) {
    input.flat<int>()(i) = (i * 7) % 43;
  }
  return input;
}

double MeanSquaredError(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.NumElements(), b.NumElements());
  EXPECT_GT(a.NumElements(), 0);
  double sum = 0;
  for (int i = 0; i < a.NumElements(); ++i) {
    const double difference = a.flat<float>()(i) - b.flat<float>()(i);
    sum += difference * difference;
  }
  return sum / a.NumElements();
}

// Returns the mean squared difference between a model's output and the tiny's.
double ChangeBy(const std::string& model) {
  return MeanSquaredError(LoadedModel(kTinyModel).Run(Characters()),
                          LoadedModel(model).Run(Characters()));
}

class Convert : public ConvertTest {};

TEST_F(Convert, WritesAModelBackToTheByte) {
  ASSERT_THAT(Run({TinyFlag()}), Exits(0, ""));
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
  ASSERT_THAT(Run({TinyFlag(), "--insert_qdq"}),
              Warns("all ranges are -1 to 1"));
  const GraphDef before = folder.ReadGraphFile("extracted_graph_def.pb");
  const GraphDef after = folder.ReadGraphFile("converted_graph_def.pb");
  EXPECT_EQ(CountOp(before, "QuantizeV2"), 0);
  EXPECT_GT(CountOp(after, "QuantizeV2"), 0);
  EXPECT_EQ(CountOp(after, "QuantizeV2"), CountOp(after, "Dequantize"));
  EXPECT_EQ(CountOp(after, "MatMul"), CountOp(before, "MatMul"));
  // What is dumped is what the model has.
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

// Returns a MatMul for each signature, and one under a condition.
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
// other signature reads. A model in text stays in text.
TEST_F(Convert, LeavesInFloatWhatCannotBeMeasured) {
  fs::create_directory(folder.Path("model"));
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
  Tensor input(tensorflow::DT_FLOAT, {1, 2});
  input.flat<float>().setConstant(1);
  EXPECT_LT(MeanSquaredError(LoadedModel(folder.Path("model")).Run(input),
                             LoadedModel(folder.Path("out")).Run(input)),
            0.1);
  EXPECT_THAT(ConvertModel(Joined(flags, {"--out=strict", "--missing=error"})),
              Fails("missing=skip"));
  // Files are taken to have all.
  const Words files = {"--insert_qdq", "--out=strict", "--ranges=a.ranges"};
  EXPECT_THAT(ConvertModel(files), Exits(1));
  EXPECT_THAT(folder.Names(),
              UnorderedElementsAre("a.ranges", "data.csv", "data.textproto",
                                   "model", "out"));
  EXPECT_THAT(ConvertModel(Joined(files, {"--missing=skip"})), Exits(0));
}

TEST_F(Convert, TakesFixedRangesToTheLastDigit) {
  ASSERT_THAT(Run({TinyFlag(), "--insert_qdq",
                   "--ranges=fixed(-0.123456789, 0.123456789)"}),
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

TEST_F(Convert, ConvertedAgainChangesNothingMore) {
  const Words flags = {"--insert_qdq", "--ranges=fixed(-4,4)"};
  ASSERT_THAT(ConvertTiny(Joined(flags, {"--out=a"})), Exits(0));
  ASSERT_THAT(ConvertOnly(Joined(flags, {"--saved_model=a", "--out=b"})),
              Prints("graph: unchanged"));
  ExpectSameFiles(folder.Path("a"), folder.Path("b"));
}

// Two signatures of one model call the same function.
TEST_F(Convert, EditsAFunctionThatSignaturesShareOnce) {
  CopyTinyModel([](SavedModel* saved) {
    auto& signatures = *saved->mutable_meta_graphs(0)->mutable_signature_def();
    signatures["second"] = signatures["serving_default"];
  });
  ASSERT_THAT(ConvertModel({"--insert_qdq", "--out=out", "--signature=second"}),
              Exits(0));
  ASSERT_THAT(ConvertTiny({"--insert_qdq", "--out=plain"}), Exits(0));
  EXPECT_EQ(Pairs("out"), Pairs("plain"));
  LoadedModel loaded(folder.Path("out"));
  EXPECT_EQ(MeanSquaredError(loaded.Run(Characters()),
                             loaded.Run(Characters(), "second")),
            0.0);
}

TEST_F(Convert, KeepsTheGraphsOfOtherTags) {
  CopyTinyModel([](SavedModel* saved) {
    MetaGraphDef* other = saved->add_meta_graphs();
    *other = saved->meta_graphs(0);
    other->mutable_meta_info_def()->add_tags("gpu");
  });
  ASSERT_THAT(ConvertModel({"--insert_qdq", "--out=out", "--tags=serve,gpu"}),
              Exits(0));
  EXPECT_EQ(Pairs("out", {"serve"}), 0);
  EXPECT_GT(Pairs("out", {"serve", "gpu"}), 0);
}

// An op that only a library of the user's has.
TEST_F(Convert, PassesCustomOpsThroughAndSaysSo) {
  CopyTinyModel([](SavedModel* saved) {
    AddNodes("mine = MyOwnOp",
             saved->mutable_meta_graphs(0)->mutable_graph_def());
  });
  ASSERT_THAT(ConvertModel({"--insert_qdq", "--out=out"}),
              Warns("warning: ", "MyOwnOp"));
  ASSERT_OK_AND_ASSIGN(const auto graph, ReadGraph(folder.Path("out")));
  EXPECT_EQ(CountOp(graph, "MyOwnOp"), 1);
  EXPECT_GT(CountOp(graph, "QuantizeV2"), 0);
}

TEST_F(Convert, RunsAnyTransforms) {
  ASSERT_THAT(
      ConvertOnly({"--saved_model=" + Absolute("graph/testdata/ref_variables"),
                   "--out=out", "--transforms=sort_by_execution_order"}),
      Exits(0));
  LoadedModel loaded(folder.Path("out"));
}

// The file of variables is one hole of 20 GB: whoever reads it needs that time,
// and whoever loads it that memory.
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
  // A sanitizer keeps what is freed for a while.
  if (!kSanitized) {
    EXPECT_LT(usage.ru_maxrss, kMostKilobytes);
  }
  ASSERT_OK_AND_ASSIGN(const auto graph, ReadGraph(folder.Path("link")));
  EXPECT_GT(CountNodes(graph), 10000);
  // There are six projections a layer and one after them. The three projections
  // of attention and the first of the feed-forward part read reshaped values of
  // their own, so that each MatMul has a pair for its values and one for its
  // weights.
  EXPECT_EQ(CountOp(graph, "QuantizeV2"),
            2 * shape.functions * (6 * shape.layers + 1));
}

TEST_F(Convert, DumpsTheGraphAndPrintsItAsText) {
  ASSERT_THAT(Run({TinyFlag(), "--insert_qdq"}), Exits(0));
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

}  // namespace
}  // namespace requant::convert_test
