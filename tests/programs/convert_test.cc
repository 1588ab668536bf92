// requant convert, dump_graph and pb_to_pbtxt as people run them.

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>

#include "base/files/copy_file.h"
#include "base/files/file.h"
#include "base/files/files_below.h"
#include "base/sanitized.h"
#include "google/protobuf/text_format.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/gptj_model.h"
#include "graph/testing/program.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/support/processes.h"

namespace requant::convert_test {
namespace {

namespace fs = std::filesystem;

using tensorflow::MetaGraphDef;
using tensorflow::SavedModel;

constexpr char kConvert[] = "runtime/convert_model";
constexpr char kTiny[] = "workflows/gptj_tiny";
constexpr char kTinyModel[] = "workflows/gptj_tiny/saved_model/1";
constexpr char kData[] = "variables/variables.data-00000-of-00001";

std::string Content(const std::string& path) {
  const auto content = ReadFile(path);
  EXPECT_OK(content);
  return content.ok() ? *content : "";
}

// The files below a folder, by their paths from it on.
std::set<std::string> FilesIn(const std::string& folder) {
  const auto files = FilesBelow(folder);
  EXPECT_OK(files);
  return {files->begin(), files->end()};
}

void ExpectSameFiles(const std::string& a, const std::string& b) {
  ASSERT_EQ(FilesIn(a), FilesIn(b));
  for (const std::string& file : FilesIn(a)) {
    EXPECT_EQ(Content(absl::StrCat(a, "/", file)),
              Content(absl::StrCat(b, "/", file)))
        << file;
  }
}

int CountOp(const GraphDef& graph, const std::string& op) {
  int count = 0;
  const auto add = [&](const auto& nodes) {
    for (const NodeDef& node : nodes) count += node.op() == op;
  };
  add(graph.node());
  for (const auto& function : graph.library().function()) {
    add(function.node_def());
  }
  return count;
}

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

class Convert : public testing::Test {
 protected:
  // Runs in the test's folder, so that what has a default is there.
  ProgramRun Run(std::vector<std::string> arguments,
                 const std::string& program = kConvert) {
    std::string line = absl::StrCat("cd ", folder.Path(""), " && exec ",
                                    fs::absolute(program).string());
    for (const std::string& argument : arguments) {
      absl::StrAppend(&line, " '", argument, "'");
    }
    return RunProgram("/bin/sh", {"-c", line});
  }
  static std::string Absolute(const std::string& path) {
    return fs::absolute(path).string();
  }
  // Without the two graphs.
  ProgramRun ConvertOnly(std::vector<std::string> arguments) {
    arguments.push_back("--extracted_graph_def=");
    arguments.push_back("--converted_graph_def=");
    return Run(std::move(arguments));
  }
  // A copy of a model whose files may be changed.
  std::string Copy(const std::string& model, const std::string& name) {
    for (const std::string& file : FilesIn(model)) {
      const fs::path path = absl::StrCat(folder.Path(name), "/", file);
      fs::create_directories(path.parent_path());
      EXPECT_OK(
          WriteFileAtomically(path, Content(absl::StrCat(model, "/", file))));
    }
    return folder.Path(name);
  }
  // Exit code 1, one sentence with all of this, and nothing but `left` there.
  void ExpectRefused(const ProgramRun& run, const std::string& message,
                     const std::vector<std::string>& left) {
    EXPECT_THAT(run, Exits(1));
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.error, MatchesRegex("convert_model: [^\n]*\n"));
    EXPECT_THAT(run.error, HasSubstr(message));
    EXPECT_THAT(folder.Names(), testing::UnorderedElementsAreArray(left));
  }

  TestFolder folder;
};

TEST_F(Convert, WritesAModelBackToTheByte) {
  ASSERT_THAT(Run({"--saved_model=" + Absolute(kTiny)}), Exits(0, ""));
  EXPECT_THAT(folder.Names(), UnorderedElementsAre("converted_gptj_tiny",
                                                   "converted_graph_def.pb",
                                                   "extracted_graph_def.pb"));
  ExpectSameFiles(kTinyModel, folder.Path("converted_gptj_tiny"));
  EXPECT_EQ(folder.Read("extracted_graph_def.pb"),
            folder.Read("converted_graph_def.pb"));
  ASSERT_OK_AND_ASSIGN(const auto graph, ReadGraph(kTinyModel));
  EXPECT_TRUE(
      SameMessage(graph, folder.ReadGraphFile("extracted_graph_def.pb")));
  EXPECT_EQ(
      MeanSquaredError(
          LoadedModel(kTinyModel).Run(Characters()),
          LoadedModel(folder.Path("converted_gptj_tiny")).Run(Characters())),
      0.0);
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
  ASSERT_THAT(Run({"--saved_model=" + Absolute(kTiny), "--insert_qdq"}),
              Exits(0, HasSubstr("all ranges are -1 to 1")));
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
  const double error = MeanSquaredError(
      LoadedModel(kTinyModel).Run(Characters()),
      LoadedModel(folder.Path("converted_gptj_tiny")).Run(Characters()));
  EXPECT_GT(error, 0);
}

TEST_F(Convert, MeasuresRangesAndKeepsThem) {
  const std::string model = "--saved_model=" + Absolute(kTiny);
  ASSERT_THAT(ConvertOnly({model, "--insert_qdq", "--out=fixed"}), Exits(0));
  ASSERT_THAT(
      ConvertOnly(
          {model, "--insert_qdq", "--out=measured", "--ranges=calibrate",
           "--dataset=" + Absolute("workflows/gptj_tiny/calibration.textproto"),
           "--ranges_output=gptj.ranges"}),
      Exits(0));
  const Tensor logits = LoadedModel(kTinyModel).Run(Characters());
  const double fixed = MeanSquaredError(
      logits, LoadedModel(folder.Path("fixed")).Run(Characters()));
  const double measured = MeanSquaredError(
      logits, LoadedModel(folder.Path("measured")).Run(Characters()));
  EXPECT_GT(measured, 0);
  EXPECT_LT(measured, 0.01 * fixed);
  ASSERT_THAT(ConvertOnly({model, "--insert_qdq", "--out=again",
                           "--ranges=gptj.ranges"}),
              Exits(0));
  ExpectSameFiles(folder.Path("measured"), folder.Path("again"));
}

// A MatMul for each signature, and one under a condition.
std::string BranchingModel() {
  const AttributeText type = {"Tin", "list { type: DT_FLOAT }"};
  const std::string graph = absl::StrCat(
      Library({Function(
          "branch", {"a"}, {{"r", "p:product:0"}},
          absl::StrCat(FloatConst("v", {2, 2}, {1, 2, 3, 4}),
                       Node("p", "MatMul", {"a", "v:output:0"}, {kFloat})))}),
      Placeholder("x", {-1, 2}), Placeholder("z", {-1, 2}),
      FloatConst("w", {2, 2}, {1, -1, 0.5, 2}),
      Node("m", "MatMul", {"x", "w"}, {kFloat}),
      Node("other", "MatMul", {"z", "w"}, {kFloat}),
      Node("yes", "Const", {},
           {{"dtype", "type: DT_BOOL"},
            {"value",
             "tensor { dtype: DT_BOOL tensor_shape {} bool_val: true }"}}),
      Node("choice", "StatelessIf", {"yes", "m"},
           {type,
            {"Tout", type.second},
            {"Tcond", "type: DT_BOOL"},
            {"output_shapes", "list {}"},
            {"then_branch", "func { name: \"branch\" }"},
            {"else_branch", "func { name: \"branch\" }"}}));
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
// other signature reads.
TEST_F(Convert, LeavesInFloatWhatCannotBeMeasured) {
  fs::create_directory(folder.Path("model"));
  folder.Write("model/saved_model.pbtxt", BranchingModel());
  folder.Write("data.csv", "x\n1 2\n-3 4\n");
  folder.Write("data.textproto", R"pb(
    csv { files: "data.csv" }
    input { feature: "x" placeholder: "x" dtype: "float" shape: 2 }
    prediction { tensor: "y" kind: SCORES }
  )pb");
  const std::vector<std::string> flags = {"--saved_model=model", "--insert_qdq",
                                          "--dataset=data.textproto",
                                          "--method=minmax"};
  std::vector<std::string> skip = flags, error = flags;
  skip.insert(skip.end(), {"--out=out", "--ranges_output=a.ranges"});
  const ProgramRun run = ConvertOnly(skip);
  ASSERT_THAT(run, Exits(0));
  EXPECT_THAT(
      run.error,
      AllOf(HasSubstr("the range of z:0 is not observed: the signature "
                      "serving_default does not compute it (--signature "),
            HasSubstr("the range of branch::a:0 is not observed: it is in a "
                      "loop or under a condition (While, If)"),
            HasSubstr("left in float, for want of a range: ")));
  // Of x and of w, which both signatures read.
  EXPECT_EQ(CountOp(*ReadGraph(folder.Path("out")), "QuantizeV2"), 2);
  Tensor input(tensorflow::DT_FLOAT, {1, 2});
  input.flat<float>().setConstant(1);
  EXPECT_LT(MeanSquaredError(LoadedModel(folder.Path("model")).Run(input),
                             LoadedModel(folder.Path("out")).Run(input)),
            0.1);
  error.insert(error.end(), {"--out=strict", "--missing=error"});
  const ProgramRun strict = ConvertOnly(error);
  EXPECT_THAT(strict, Exits(1, HasSubstr("missing=skip")));
  // Files are taken to have all.
  const std::vector<std::string> files = {flags[0], flags[1], "--out=strict",
                                          "--ranges=a.ranges"};
  EXPECT_THAT(ConvertOnly(files), Exits(1));
  EXPECT_THAT(folder.Names(),
              UnorderedElementsAre("a.ranges", "data.csv", "data.textproto",
                                   "model", "out"));
  EXPECT_THAT(
      ConvertOnly({flags[0], flags[1], files[2], files[3], "--missing=skip"}),
      Exits(0));
}

// What is wrong is told at once, not after hours of measuring.
TEST_F(Convert, ChecksAllBeforeItCalibrates) {
  fs::create_directories(folder.Path("taken/photos"));
  const std::vector<std::vector<std::string>> wrong = {
      {"--out=taken", "cannot write taken: it exists"},
      {"--out=no/such", "No such file or directory"},
      {"--signature=serving", "has no signature \"serving\""},
      {"--tags=train", "has no graph tagged {train}"}};
  for (const std::vector<std::string>& flag : wrong) {
    ExpectRefused(
        ConvertOnly({"--saved_model=" + Absolute(kTiny), "--insert_qdq",
                     "--dataset=missing.textproto", flag[0]}),
        flag[1], {"taken"});
  }
}

TEST_F(Convert, InterruptedWhileCalibratingSaysBySignal) {
  const Running running = StartUntilItHasAWorker(
      kConvert,
      {absl::StrCat("--saved_model=", kTiny), "--out=" + folder.Path("out"),
       "--extracted_graph_def=", "--converted_graph_def=", "--insert_qdq",
       "--dataset=workflows/gptj_tiny/calibration.textproto"});
  // The folder of the result is made just before.
  while (folder.Names().empty() && IsAlive(running.program)) {
    std::this_thread::yield();
  }
  ASSERT_EQ(kill(running.program, SIGTERM), 0);
  EXPECT_EQ(WaitForExitCode(running.program), 128 + SIGTERM);
  EXPECT_THAT(folder.Names(), ElementsAre());
}

TEST_F(Convert, TakesFixedRangesToTheLastDigit) {
  ASSERT_THAT(Run({"--saved_model=" + Absolute(kTiny), "--insert_qdq",
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

TEST_F(Convert, LeavesNothingWhenCalibrationFails) {
  EXPECT_THAT(ConvertOnly({"--saved_model=" + Absolute(kTiny), "--insert_qdq",
                           "--out=out", "--dataset=missing.textproto"}),
              Exits(1, AllOf(HasSubstr("missing.textproto"),
                             HasSubstr("the calibration failed"))));
  EXPECT_THAT(folder.Names(), ElementsAre());
}

TEST_F(Convert, KeepsAllButTheGraph) {
  ASSERT_THAT(ConvertOnly({"--saved_model=" + Absolute(kTiny), "--insert_qdq",
                           "--out=" + folder.Path("out")}),
              Exits(0));
  EXPECT_EQ(FilesIn(kTinyModel), FilesIn(folder.Path("out")));
  EXPECT_EQ(Content(absl::StrCat(kTinyModel, "/", kData)),
            folder.Read(absl::StrCat("out/", kData)));
  SavedModel before, after;
  ASSERT_TRUE(before.ParseFromString(
      Content(absl::StrCat(kTinyModel, "/saved_model.pb"))));
  ASSERT_TRUE(after.ParseFromString(folder.Read("out/saved_model.pb")));
  std::set<std::string> ops;
  for (const auto& op :
       after.meta_graphs(0).meta_info_def().stripped_op_list().op()) {
    ops.insert(op.name());
  }
  EXPECT_THAT(ops, AllOf(Contains("QuantizeV2"), Contains("Dequantize"),
                         Contains("MatMul")));
  for (SavedModel* model : {&before, &after}) {
    MetaGraphDef* meta = model->mutable_meta_graphs(0);
    meta->clear_graph_def();
    meta->mutable_meta_info_def()->clear_stripped_op_list();
  }
  EXPECT_TRUE(SameMessage(before, after));
}

TEST_F(Convert, GivesTheSameBytesEveryTime) {
  for (const char* name : {"a", "b"}) {
    ASSERT_THAT(ConvertOnly({"--saved_model=" + Absolute(kTiny), "--insert_qdq",
                             "--out=" + folder.Path(name)}),
                Exits(0));
  }
  ExpectSameFiles(folder.Path("a"), folder.Path("b"));
}

TEST_F(Convert, ConvertedAgainChangesNothingMore) {
  const std::vector<std::string> flags = {"--insert_qdq",
                                          "--ranges=fixed(-4,4)"};
  std::vector<std::string> first = flags, second = flags;
  first.insert(first.end(), {"--saved_model=" + Absolute(kTiny), "--out=a"});
  second.insert(second.end(), {"--saved_model=a", "--out=b"});
  ASSERT_THAT(ConvertOnly(first), Exits(0));
  const ProgramRun run = ConvertOnly(second);
  ASSERT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, HasSubstr("graph: unchanged"));
  ExpectSameFiles(folder.Path("a"), folder.Path("b"));
}

// Two signatures of one model call the same function.
TEST_F(Convert, EditsAFunctionThatSignaturesShareOnce) {
  const std::string model = Copy(kTinyModel, "model");
  SavedModel saved;
  ASSERT_TRUE(saved.ParseFromString(Content(model + "/saved_model.pb")));
  auto& signatures = *saved.mutable_meta_graphs(0)->mutable_signature_def();
  signatures["second"] = signatures["serving_default"];
  folder.Write("model/saved_model.pb", DeterministicBytes(saved));
  ASSERT_THAT(ConvertOnly({"--saved_model=" + model, "--insert_qdq",
                           "--out=out", "--signature=second"}),
              Exits(0));
  ASSERT_THAT(ConvertOnly({"--saved_model=" + Absolute(kTiny), "--insert_qdq",
                           "--out=plain"}),
              Exits(0));
  EXPECT_EQ(CountOp(*ReadGraph(folder.Path("out")), "QuantizeV2"),
            CountOp(*ReadGraph(folder.Path("plain")), "QuantizeV2"));
  LoadedModel loaded(folder.Path("out"));
  EXPECT_EQ(MeanSquaredError(loaded.Run(Characters()),
                             loaded.Run(Characters(), "second")),
            0.0);
}

TEST_F(Convert, KeepsTheGraphsOfOtherTags) {
  const std::string model = Copy(kTinyModel, "model");
  SavedModel saved;
  ASSERT_TRUE(saved.ParseFromString(Content(model + "/saved_model.pb")));
  MetaGraphDef* other = saved.add_meta_graphs();
  *other = saved.meta_graphs(0);
  other->mutable_meta_info_def()->add_tags("gpu");
  folder.Write("model/saved_model.pb", DeterministicBytes(saved));
  ASSERT_THAT(ConvertOnly({"--saved_model=model", "--insert_qdq", "--out=out",
                           "--tags=serve,gpu"}),
              Exits(0));
  EXPECT_EQ(CountOp(*ReadGraph(folder.Path("out"), {"serve"}), "QuantizeV2"),
            0);
  EXPECT_GT(
      CountOp(*ReadGraph(folder.Path("out"), {"serve", "gpu"}), "QuantizeV2"),
      0);
}

TEST_F(Convert, ConvertsAModelInText) {
  const std::string model = Copy("graph/testdata/functions", "model");
  SavedModel saved;
  ASSERT_TRUE(saved.ParseFromString(Content(model + "/saved_model.pb")));
  fs::remove(model + "/saved_model.pb");
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(saved, &text));
  folder.Write("model/saved_model.pbtxt", text);
  ASSERT_THAT(ConvertOnly({"--saved_model=model", "--insert_qdq", "--out=out"}),
              Exits(0));
  EXPECT_FALSE(fs::exists(folder.Path("out/saved_model.pb")));
  EXPECT_GT(CountOp(*ReadGraph(folder.Path("out")), "QuantizeV2"), 0);
  LoadedModel loaded(folder.Path("out"));
}

// An op that only a library of the user's has.
TEST_F(Convert, PassesCustomOpsThroughAndSaysSo) {
  const std::string model = Copy(kTinyModel, "model");
  SavedModel saved;
  ASSERT_TRUE(saved.ParseFromString(Content(model + "/saved_model.pb")));
  NodeDef* node = saved.mutable_meta_graphs(0)->mutable_graph_def()->add_node();
  node->set_name("mine");
  node->set_op("MyOwnOp");
  folder.Write("model/saved_model.pb", DeterministicBytes(saved));
  ASSERT_THAT(ConvertOnly({"--saved_model=model", "--insert_qdq", "--out=out"}),
              Exits(0, AllOf(HasSubstr("warning: "), HasSubstr("MyOwnOp"))));
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

TEST_F(Convert, RefusesTransformsThatTakeAwayWhatTheModelNames) {
  EXPECT_THAT(
      ConvertOnly({"--saved_model=" + Absolute(kTiny), "--out=out",
                   "--transforms=rename_node(old_node_name=\"saver_filename\", "
                   "new_node_name=\"other\")"}),
      Exits(1, HasSubstr("removed the node \"saver_filename\", which "
                         "the saver of the model names")));
  EXPECT_THAT(folder.Names(), ElementsAre());
}

TEST_F(Convert, RefusesWrongTransformsAsUsage) {
  EXPECT_THAT(ConvertOnly({"--saved_model=" + Absolute(kTiny), "--out=out",
                           "--transforms=insert_qqdq"}),
              Exits(2, HasSubstr("did you mean \"insert_qdq\"?")));
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
  for (std::vector<std::string> flags : wrong) {
    flags.push_back("--saved_model=" + Absolute(kTiny));
    EXPECT_EQ(ConvertOnly(flags).exit_code, 2) << flags[0];
  }
  EXPECT_THAT(folder.Names(), ElementsAre());
}

TEST_F(Convert, TellsBadModelsInASentence) {
  const std::string model = Copy(kTinyModel, "model");
  fs::create_directory(folder.Path("empty"));
  const std::vector<std::string> left = {"model", "empty"};
  const auto refuse = [&](const std::vector<std::string>& flags,
                          const std::string& message) {
    std::vector<std::string> all = {"--out=out"};
    all.insert(all.end(), flags.begin(), flags.end());
    ExpectRefused(ConvertOnly(all), message, left);
  };
  refuse({"--saved_model=missing"}, "No such file or directory");
  refuse({"--saved_model=empty"}, "empty is an empty folder");
  refuse({"--saved_model=model", "--tags=train"},
         "has no graph tagged {train}; it has {serve}");
  refuse({"--saved_model=model", "--signature=serving"},
         "has no signature \"serving\"");
  fs::resize_file(model + "/" + kData, 10);
  refuse({"--saved_model=model"}, "is cut short: it has 10 of");
  fs::remove(model + "/" + kData);
  refuse({"--saved_model=model"}, "is missing");
  fs::remove_all(model + "/variables");
  refuse({"--saved_model=model"}, "has variables but not their values");
  folder.Write(
      "model/saved_model.pb",
      Content(std::string(kTinyModel) + "/saved_model.pb").substr(0, 100000));
  refuse({"--saved_model=model"}, "saved_model.pb is damaged");
  ASSERT_EQ(truncate((model + "/saved_model.pb").c_str(), int64_t{3} << 30), 0);
  refuse({"--saved_model=model"}, "2 GB");
  folder.Write("model/saved_model.pb", "");
  refuse({"--saved_model=model"}, "saved_model.pb is empty");
}

TEST_F(Convert, TellsBadTargetsInASentence) {
  const std::string model = Copy(kTinyModel, "model");
  fs::create_directories(folder.Path("taken/photos"));
  folder.Write("file", "text");
  const std::vector<std::string> left = {"model", "taken", "file"};
  const auto refuse = [&](const std::vector<std::string>& flags,
                          const std::string& message) {
    std::vector<std::string> all = {"--saved_model=model"};
    all.insert(all.end(), flags.begin(), flags.end());
    ExpectRefused(ConvertOnly(all), message, left);
  };
  refuse({"--out=taken"}, "cannot write taken: it exists; --overwrite");
  refuse({"--out=taken", "--overwrite"}, "other things than a SavedModel");
  refuse({"--out=file", "--overwrite"}, "it is a file");
  refuse({"--out=model", "--overwrite"}, "it is the model that is read");
  refuse({"--out=model/out"}, "it is inside the model that is read");
  refuse({"--out=.", "--overwrite"}, "the model that is read is inside it");
  refuse({"--out=no/such"}, "No such file or directory");
  refuse({"--out=/proc/out"}, "cannot write /proc/out");
  ExpectSameFiles(kTinyModel, model);
}

TEST_F(Convert, DoesNotWriteGraphsOverTheModel) {
  const std::string model = Copy(kTinyModel, "model");
  ExpectRefused(Run({"--saved_model=model", "--out=out",
                     "--extracted_graph_def=model/saved_model.pb"}),
                "it is also read", {"model"});
  ExpectRefused(
      Run({"--saved_model=model", "--out=out", "--extracted_graph_def=a.pb",
           "--converted_graph_def=a.pb"}),
      "two outputs", {"model"});
  Copy(kTinyModel, "out");
  for (const char* flag : {"--extracted_graph_def=out/graph.pb",
                           "--converted_graph_def=./out/variables/graph.pb"}) {
    ExpectRefused(
        Run({"--saved_model=model", "--out=out", "--overwrite", flag}),
        "it is inside out, which is written as a whole", {"model", "out"});
  }
  ExpectSameFiles(kTinyModel, folder.Path("out"));
}

TEST_F(Convert, ReplacesAModelOnlyWhenAsked) {
  const std::vector<std::string> flags = {"--saved_model=" + Absolute(kTiny)};
  ASSERT_THAT(ConvertOnly(flags), Exits(0));
  EXPECT_THAT(ConvertOnly(flags),
              Exits(1, HasSubstr("--overwrite replaces it")));
  EXPECT_THAT(ConvertOnly({flags[0], "--overwrite", "--insert_qdq"}), Exits(0));
  EXPECT_THAT(folder.Names(), ElementsAre("converted_gptj_tiny"));
  EXPECT_GT(
      CountOp(*ReadGraph(folder.Path("converted_gptj_tiny")), "QuantizeV2"), 0);
}

TEST_F(Convert, CopiesWhereItCannotLink) {
  const std::string disk = folder.Path("disk");
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0) {
    GTEST_SKIP() << "may not mount a small disk";
  }
  const std::vector<std::string> flags = {"--saved_model=" + Absolute(kTiny),
                                          "--out=disk/out"};
  EXPECT_THAT(ConvertOnly({flags[0], flags[1], "--copy=link"}),
              Exits(1, HasSubstr("--copy=auto")));
  EXPECT_TRUE(fs::is_empty(disk));
  const ProgramRun run = ConvertOnly(flags);
  EXPECT_THAT(run, Exits(0));
  if (run.exit_code == 0) ExpectSameFiles(kTinyModel, disk + "/out");
  umount2(disk.c_str(), MNT_DETACH);
}

TEST_F(Convert, AsksForRoomBeforeItCopies) {
  const std::string disk = folder.Path("disk");
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "may not mount a small disk";
  }
  EXPECT_THAT(
      ConvertOnly({"--saved_model=" + Absolute(kTiny), "--out=disk/out"}),
      Exits(1, AllOf(HasSubstr("cannot write disk/out: it takes"),
                     HasSubstr("are free there"))));
  EXPECT_TRUE(fs::is_empty(disk));
  umount2(disk.c_str(), MNT_DETACH);
}

TEST_F(Convert, LeavesNothingWhenATransformCrashes) {
  ExpectRefused(
      ConvertOnly({"--saved_model=" + Absolute(kTiny), "--out=out",
                   "--plugins=" + Absolute("tests/plugins/odd_plugin.so"),
                   "--transforms=abort"}),
      "the transform \"abort\" (1 of 1) was ended by SIGABRT", {});
}

// Killed without a chance to clean up, in the middle of its work.
TEST_F(Convert, KilledLeavesNoModelAndTheNextRunTidiesUp) {
  const Running running = StartUntilItHasAWorker(
      kConvert,
      {absl::StrCat("--saved_model=", kTiny), "--out=" + folder.Path("out"),
       "--extracted_graph_def=", "--converted_graph_def=",
       "--plugins=tests/plugins/odd_plugin.so",
       absl::StrCat("--transforms=leave_temporary_file(path=\"",
                    folder.Path("mark"), "\", wait=true)")});
  while (folder.Names().size() < 2 && IsAlive(running.program)) {
    std::this_thread::yield();
  }
  ASSERT_EQ(kill(running.program, SIGKILL), 0);
  WaitForExitCode(running.program);
  while (IsAlive(running.worker)) std::this_thread::yield();
  EXPECT_THAT(folder.Names(),
              Contains(absl::StrCat(".out.tmp.", running.worker)));
  EXPECT_THAT(folder.Names(), Not(Contains("out")));
  ASSERT_THAT(ConvertOnly({"--saved_model=" + Absolute(kTiny), "--out=out"}),
              Exits(0));
  EXPECT_THAT(folder.Names(),
              AllOf(Contains("out"),
                    Not(Contains(absl::StrCat(".out.tmp.", running.worker)))));
}

// The file of variables is one hole of 20 GB: whoever reads it needs that time,
// and whoever loads it that memory.
TEST_F(Convert, NeverReadsVariables) {
  constexpr int64_t kBytes = int64_t{20} << 30;
  constexpr int64_t kMostKilobytes = 1'000'000;
  ASSERT_OK(WriteGptjModel(folder.Path("gpt-j-6B"), GptjShape(), kBytes));
  for (const char* copy : {"link", "copy"}) {
    ASSERT_THAT(ConvertOnly({"--saved_model=gpt-j-6B", "--insert_qdq",
                             absl::StrCat("--copy=", copy),
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
}

TEST_F(Convert, EditsAModelOfGptJsSize) {
  const GptjShape shape;
  ASSERT_OK(WriteGptjModel(folder.Path("gpt-j-6B"), shape, 1024));
  ASSERT_THAT(ConvertOnly({"--saved_model=gpt-j-6B", "--insert_qdq",
                           "--ops=MatMul", "--out=out"}),
              Exits(0));
  ASSERT_OK_AND_ASSIGN(const auto graph, ReadGraph(folder.Path("out")));
  EXPECT_GT(CountNodes(graph), 10000);
  // Six projections a layer and one behind them. The three projections of
  // attention and the first of the feed-forward part read reshaped values of
  // their own, so that each MatMul has a pair for its values and one for its
  // weights.
  EXPECT_EQ(CountOp(graph, "QuantizeV2"),
            2 * shape.functions * (6 * shape.layers + 1));
}

TEST_F(Convert, DumpsTheGraphAndPrintsItAsText) {
  ASSERT_THAT(Run({"--saved_model=" + Absolute(kTiny), "--insert_qdq"}),
              Exits(0));
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

TEST_F(Convert, ToolsForDumpsTellBadInputInASentence) {
  ProgramRun run = Run({}, "graph/pb_to_pbtxt");
  EXPECT_THAT(run, Exits(1, HasSubstr("cannot read converted_graph_def.pb")));
  folder.Write("a.pb", "no graph");
  EXPECT_THAT(Run({"a.pb"}, "graph/pb_to_pbtxt"), Exits(1));
  EXPECT_THAT(Run({"a", "b", "c"}, "graph/pb_to_pbtxt"), Exits(2));
  run = Run({"a.pb", "a.pb"}, "graph/pb_to_pbtxt");
  EXPECT_THAT(run.error, HasSubstr("it is also read"));
  EXPECT_THAT(Run({}, "graph/dump_graph"), Exits(2));
  run = Run({"--input_model=nowhere"}, "graph/dump_graph");
  EXPECT_THAT(run, Exits(1));
  run = Run({"--input_model=" + Absolute(kTiny), "--tags=gpu"},
            "graph/dump_graph");
  EXPECT_THAT(run.error, HasSubstr("it has {serve}"));
  EXPECT_THAT(folder.Names(), ElementsAre("a.pb"));
}

}  // namespace
}  // namespace requant::convert_test
