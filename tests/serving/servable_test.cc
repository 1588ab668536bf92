// Tests the way of people's own models: SavedModels as Keras 3 and tf.Module
// write them become eight-bit SavedModels that stock TensorFlow loads in every
// way it has, in any environment.

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/saved_models.h"
#include "re2/re2.h"
#include "runtime/evaluation.pb.h"
#include "runtime/servable/tensorflow_versions.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tests/support/pages.h"
#include "tests/support/stock_python.h"

namespace requant::servable_test {
namespace {

namespace fs = std::filesystem;

constexpr char kQuantize[] = "runtime/quantize_model";
constexpr char kCheckServing[] = "runtime/check_serving";

// What is declared of each model's records.
const std::map<std::string, std::string>& Declarations() {
  static const auto* const declarations =
      new std::map<std::string, std::string>{
          {"tabular", R"(csv { files: "data.csv" }
         input { feature: "age" placeholder: "age" dtype: "float" shape: 1 }
         input { feature: "income" placeholder: "income" dtype: "float"
                 shape: 1 }
         input { feature: "city" placeholder: "city" dtype: "string" shape: 1 }
         label { feature: "label" dtype: "int64" })"},
          {"resnet", R"(numpy { files: "data.npz" }
         input { feature: "image" placeholder: "image" dtype: "float"
                 shape: [12, 12, 3] })"},
          {"transformer", R"(jsonl { files: "data.jsonl" }
         input { feature: "text" placeholder: "text" dtype: "string" })"},
          {"recurrent", R"(tfrecord { files: "data.tfrecord" }
         input { feature: "series" placeholder: "series" dtype: "float"
                 shape: [12, 4] }
         prediction { kind: VALUE tensor: "output_0" })"},
          {"two_signatures", R"(jsonl { files: "data.jsonl" }
         input { feature: "x" placeholder: "x" dtype: "float" shape: 24 }
         input { feature: "color" placeholder: "color" dtype: "string" }
         prediction { tensor: "scores" })"}};
  return *declarations;
}

class Servable : public testing::Test {
 protected:
  // Making the models takes most of the time, so it is done once.
  static void SetUpTestSuite() {
    if (!HasPython()) return;
    folder_ = new TestFolder;
    const ProgramRun made =
        RunPython({"tests/serving/make_models.py", folder_->path()});
    ASSERT_THAT(made, Exits(0));
    for (const auto& [name, declaration] : Declarations()) {
      folder_->Write(name + "/data.textproto", declaration);
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  void SetUp() override {
    if (folder_ != nullptr) return;
    GTEST_SKIP() << "no Python TensorFlow";
  }

  static ProgramRun Quantize(const std::string& name, const std::string& output,
                             const Words& more = {}) {
    return RunProgram(
        kQuantize,
        Joined({"--saved_model=" + folder_->Path(name + "/model"),
                "--dataset=" + folder_->Path(name + "/data.textproto"),
                "--output=" + folder_->Path(absl::StrCat(name, "/", output)),
                name == "two_signatures" ? "--signature=classify"
                                         : "--signature="},
               more));
  }

  static TestFolder* folder_;
};

TestFolder* Servable::folder_ = nullptr;

// Splits the lines that compare_models.py prints.
std::vector<Words> LinesOf(const std::string& out) {
  std::vector<Words> lines;
  for (const auto line : absl::StrSplit(out, '\n', absl::SkipEmpty())) {
    lines.push_back(absl::StrSplit(line, ' '));
  }
  return lines;
}

TEST_F(Servable, AnswersAsTheOriginalInEveryLoaderAndEnvironment) {
  for (const auto& [name, declaration] : Declarations()) {
    EXPECT_THAT(Quantize(name, "int8"),
                Prints("a SavedModel with a graph of",
                       "calibrated on 480 records, compared on 120 others"))
        << name;
  }
  std::string first;
  // Without the variable, the CPU decides between the two.
  for (const std::string variable :
       {"TF_ENABLE_ONEDNN_OPTS=0", "TF_ENABLE_ONEDNN_OPTS=1"}) {
    const ProgramRun run =
        RunPython({"tests/serving/compare_models.py", folder_->path(), "int8"},
                  {variable});
    ASSERT_THAT(run, Exits(0));
    const std::vector<Words> lines = LinesOf(run.out);
    // Keras's models have two signatures of one output. They are loaded in
    // four ways, less those that the original does not support either.
    EXPECT_EQ(lines.size(), 6 + 3 * 7 + 2 * 3 + 4u) << run.out;
    for (const Words& line : lines) {
      ASSERT_EQ(line.size(), 6u);
      // The share of answers of another class, or the difference as a share of
      // the largest value.
      EXPECT_LE(std::stod(line[4]), 0.05 * std::stod(line[5]))
          << absl::StrJoin(line, " ");
    }
    if (first.empty()) first = run.out;
    EXPECT_EQ(run.out, first) << variable;
  }
  // The same holds with all weights in variables.
  for (const auto& [name, declaration] : Declarations()) {
    ASSERT_OK_AND_ASSIGN(
        const ExportedModel exported,
        FreezeAndExport(folder_->Path(name + "/int8"), /*most_graph_bytes=*/0,
                        folder_->Path(name + "/moved")));
    EXPECT_GT(exported.variables, 0) << name;
  }
  const ProgramRun run =
      RunPython({"tests/serving/compare_models.py", folder_->path(), "moved"});
  ASSERT_THAT(run, Exits(0));
  EXPECT_EQ(run.out, first);
}

TEST_F(Servable, WritesOneMetaGraphWithoutVariablesAndARequestToWarmUpWith) {
  ASSERT_THAT(Quantize("tabular", "1"), Exits(0));
  const std::string model = folder_->Path("tabular/1");
  ASSERT_OK_AND_ASSIGN(const SavedModelContent content,
                       ReadSavedModelContent(model));
  ASSERT_EQ(content.model.meta_graphs_size(), 1);
  EXPECT_THAT(content.model.meta_graphs(0).meta_info_def().tags(),
              ElementsAre("serve"));
  EXPECT_TRUE(fs::exists(model + "/assets.extra/tf_serving_warmup_requests"));
  for (const std::string variable :
       {"TF_ENABLE_ONEDNN_OPTS=0", "TF_ENABLE_ONEDNN_OPTS=1"}) {
    EXPECT_THAT(RunProgram(kCheckServing, {model}, {variable}),
                Prints("1 answer as when it was made"));
  }
  // Keras's two names for the model share one graph.
  const GraphDef& graph = content.model.meta_graphs(0).graph_def();
  EXPECT_EQ(NodesOf(graph, "_QuantizedMatMul").size(), 3u);
}

TEST_F(Servable, SaysThatAModelGivesOtherAnswersHere) {
  ASSERT_THAT(Quantize("tabular", "other"), Exits(0));
  const std::string file = "assets.extra/tf_serving_warmup_requests";
  ASSERT_THAT(Quantize("resnet", "other"), Exits(0));
  fs::copy_file(folder_->Path("resnet/other/" + file),
                folder_->Path("tabular/other/" + file),
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(RunProgram(kCheckServing, {folder_->Path("tabular/other")}),
              Fails("no placeholder \"image\""));
  EXPECT_THAT(RunProgram(kCheckServing, {folder_->Path("tabular/model")}),
              Fails("carries no request with an answer"));
  EXPECT_THAT(RunProgram(kCheckServing,
                         {folder_->Path("resnet/other"), "--tolerance=-1"}),
              Misused("--tolerance"));
}

TEST_F(Servable, NeedsOneDnnWithTheOlderOps) {
  ASSERT_THAT(Quantize("resnet", "legacy", {"--ops=legacy"}), Exits(0));
  const std::string model = folder_->Path("resnet/legacy");
  EXPECT_THAT(RunProgram(kCheckServing, {model}, {"TF_ENABLE_ONEDNN_OPTS=0"}),
              Fails("set TF_ENABLE_ONEDNN_OPTS=1 before TensorFlow loads"));
  EXPECT_THAT(RunProgram(kCheckServing, {model}, {"TF_ENABLE_ONEDNN_OPTS=1"}),
              Prints("as when it was made", "TensorFlow 2.15 or later"));
}

TEST_F(Servable, NeedsTheCpuThatItWasQuantizedFor) {
  ASSERT_THAT(Quantize("resnet", "vnni", {"--target=vnni"}), Exits(0));
  ASSERT_THAT(Quantize("resnet", "any"), Exits(0));
  // Under the cap, oneDNN's sums saturate as on a CPU without VNNI.
  const Words capped = {"ONEDNN_MAX_CPU_ISA=AVX2", "TF_ENABLE_ONEDNN_OPTS=1"};
  EXPECT_THAT(RunProgram(kCheckServing, {folder_->Path("resnet/vnni")}, capped),
              Fails("--target=vnni", "quantize it with --target=any"));
  EXPECT_THAT(RunProgram(kCheckServing, {folder_->Path("resnet/any")}, capped),
              Prints("as when it was made"));
}

TEST_F(Servable, ComesOfTheCommandThatASummaryEndsWith) {
  for (const auto& [name, data] :
       std::map<std::string, std::string>{{"tabular", "data.csv"},
                                          {"resnet", "data.npz"},
                                          {"transformer", "data.jsonl"},
                                          {"recurrent", "data.tfrecord"},
                                          {"two_signatures", "data.jsonl"}}) {
    const ProgramRun summary = RunProgram(
        "workflows/requant",
        {"summarize", "--in_graph=" + folder_->Path(name + "/model")});
    if (name != "two_signatures") {
      EXPECT_THAT(summary.out,
                  HasSubstr("Most likely output: (name=StatefulPartitionedCall"
                            "_1, op=StatefulPartitionedCall)\n"));
    }
    const Words lines = absl::StrSplit(summary.out, '\n', absl::SkipEmpty());
    std::string command = lines.back();
    ASSERT_TRUE(RE2::Replace(&command, "^requant quantize (.*)=RECORDS",
                             absl::StrCat("workflows/requant quantize \\1=",
                                          folder_->Path(name + "/" + data))));
    ASSERT_THAT(RunProgram("/bin/sh", {"-c", command}), Exits(0)) << command;
    EXPECT_THAT(
        RunProgram(kCheckServing, {folder_->Path(name + "/model_int8/1")}),
        Prints("as when it was made"));
  }
}

TEST_F(Servable, NeedsTheVersionThatHasItsOperations) {
  ASSERT_THAT(Quantize("tabular", "new"), Exits(0));
  const std::string model = folder_->Path("tabular/new");
  EXPECT_THAT(RunProgram(kCheckServing, {model, "--target_tensorflow=2.17"}),
              Prints("TensorFlow 2.17 or later"));
  EXPECT_THAT(RunProgram(kCheckServing, {model, "--target_tensorflow=2.16"}),
              Fails("_QuantizedMatMul, which came with TensorFlow 2.17"));
  EXPECT_THAT(RunProgram(kCheckServing, {model, "--target_tensorflow=2.1"}),
              Misused("these were: 2.15, 2.16"));
  std::string content = folder_->Read("tabular/new/saved_model.pb");
  absl::StrReplaceAll({{"_QuantizedMatMul", "_QuantizedMatMuX"}}, &content);
  folder_->Write("tabular/new/saved_model.pb", content);
  EXPECT_THAT(RunProgram(kCheckServing, {model}),
              Fails("has the operation _QuantizedMatMuX, which TensorFlow"));
}

TEST_F(Servable, IsMadeForAnOlderTensorFlow) {
  ASSERT_THAT(Quantize("tabular", "old", {"--target_tensorflow=2.15"}),
              Exits(0));
  const std::string model = folder_->Path("tabular/old");
  ASSERT_OK_AND_ASSIGN(const tensorflow::MetaGraphDef meta,
                       ReadSavedModel(model));
  EXPECT_THAT(NodesOf(meta.graph_def(), "_QuantizedMatMul"), IsEmpty());
  // TensorFlow 2.15 does not know the last two attributes of MatMul, which all
  // graphs of TensorFlow 2.21 have.
  for (const NodeDef& node : meta.graph_def().node()) {
    EXPECT_EQ(node.attr().count("grad_a"), 0u) << node.name();
    EXPECT_EQ(node.attr().count("ensure_minimum_range") > 0,
              node.op() == "QuantizeV2")
        << node.name();
  }
  EXPECT_THAT(RunProgram(kCheckServing, {model, "--target_tensorflow=2.15"},
                         {"TF_ENABLE_ONEDNN_OPTS=1"}),
              Prints("as when it was made"));
  EXPECT_THAT(
      Quantize("tabular", "no", {"--target_tensorflow=2.16", "--ops=portable"}),
      Misused("--ops=portable needs TensorFlow 2.17 or later"));
  EXPECT_THAT(Quantize("tabular", "no", {"--target_tensorflow=2.14"}),
              Misused("was not tried; these were: 2.15"));
}

TEST(TensorFlowTable, OfThePageIsWhatWasTried) {
  const std::string page = ReadFile("docs/serving.md").value();
  for (const TensorFlowVersion& version : TriedVersions().version()) {
    std::string row = absl::StrCat("| ", version.wheel(), " |");
    for (const char* made_with : {"portable", "legacy", "target"}) {
      for (const Trial& trial : version.trial()) {
        if (trial.made_with() != made_with) continue;
        absl::StrAppend(&row, " ", trial.right(), " of ", trial.models(), " |");
      }
    }
    EXPECT_THAT(page, HasSubstr(row + "\n"));
  }
}

TEST_F(Servable, WritesTheSameBytesTwice) {
  ASSERT_THAT(Quantize("two_signatures", "a"), Exits(0));
  ASSERT_THAT(Quantize("two_signatures", "b"), Exits(0));
  ASSERT_THAT(Quantize("two_signatures", "b", {"--overwrite"}), Exits(0));
  for (const char* file : {"saved_model.pb", "fingerprint.pb"}) {
    EXPECT_TRUE(folder_->Read(absl::StrCat("two_signatures/a/", file)) ==
                folder_->Read(absl::StrCat("two_signatures/b/", file)))
        << file;
  }
}

TEST_F(Servable, CalibratesEachSignatureOnItsOwnRecords) {
  const std::string records = folder_->Read("two_signatures/data.jsonl");
  const Words lines = absl::StrSplit(records, '\n', absl::SkipEmpty());
  const auto half = [&](const std::string& name, int first, int count) {
    const Words part(lines.begin() + first, lines.begin() + first + count);
    return folder_->Write("two_signatures/" + name, absl::StrJoin(part, "\n"));
  };
  const std::string classify = half("classify.jsonl", 0, 400);
  const std::string encode = half("encode.jsonl", 400, 200);
  const std::string declaration =
      folder_->Path("two_signatures/data.textproto");
  const std::string output = folder_->Path("two_signatures/own");
  const auto quantize = [&](const Words& more) {
    return RunProgram(
        kQuantize,
        Joined({"--saved_model=" + folder_->Path("two_signatures/model"),
                "--output=" + output},
               more));
  };
  ASSERT_THAT(
      quantize({"--dataset=classify=" + declaration,
                "--data=classify=" + classify, "--data=encode=" + encode}),
      Prints("signature \"classify\": calibrated on 320 records, "
             "compared on 80 others",
             "signature \"encode\": calibrated on 160 records, "
             "compared on 40 others"));
  EXPECT_THAT(RunProgram(kCheckServing, {output}),
              Prints("3 answers as when it was made"));
  fs::remove_all(output);
  EXPECT_THAT(quantize({"--data=classify=" + classify, "--data=encod=e.jsonl"}),
              Fails("did you mean \"encode\"?"));
  EXPECT_THAT(quantize({"--dataset=classify=" + declaration,
                        "--dataset=" + declaration}),
              Fails("declarations for the same signature"));
  EXPECT_FALSE(fs::exists(output));
}

TEST_F(Servable, WritesNothingWhenTheDiskIsFull) {
  const SmallDisk disk(folder_->Path("disk"), "size=64k");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small disk";
  EXPECT_THAT(Quantize("resnet", "../disk/versions/1"),
              Fails("No space left on device"));
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST_F(Servable, WritesAGraphWhenTheNameSaysSo) {
  EXPECT_THAT(Quantize("resnet", "int8.pb"), Prints("int8.pb"));
  EXPECT_OK(ReadGraph(folder_->Path("resnet/int8.pb")).status());
}

TEST_F(Servable, WorksAsThePageSays) {
  constexpr char kPage[] = "docs/serving.md";
  const TestFolder folder;
  MakeLikeRepository(folder);
  WriteBlocks(kPage, "python", folder);
  folder.Write("ask.cc", Blocks(kPage, "cpp").front());
  // The wheel's folder; ./requant setup keeps its parts.
  const std::string libraries = TensorFlowLibraryFolder().value();
  fs::create_directory(folder.Path("tf"));
  fs::create_symlink(libraries + "/../include", folder.Path("tf/include"));
  for (const std::string name : {"cc", "framework"}) {
    const std::string file = absl::StrCat("libtensorflow_", name, ".so.2");
    fs::create_symlink(absl::StrCat(libraries, "/", file),
                       folder.Path("tf/" + file));
  }
  int commands = 0;
  for (const std::string& block : Blocks(kPage, "sh")) {
    for (const auto command : absl::StrSplit(block, '\n', absl::SkipEmpty())) {
      ++commands;
      const ProgramRun run =
          RunIn(folder, "/bin/sh", {"-c", std::string(command)},
                {"PYTHONPATH=" + PythonFolder(), "PATH=/usr/bin:/bin",
                 "TF=" + folder.Path("tf")});
      EXPECT_THAT(run, Exits(0)) << command << "\n" << run.out;
    }
  }
  EXPECT_EQ(commands, 9);
  EXPECT_THAT(folder.Read("churn_int8/1/README.md"),
              HasSubstr("compared on 400 others"));
}

TEST_F(Servable, ComesOutOfTheWorkflowThatInitWrites) {
  constexpr char kRequant[] = "workflows/requant";
  for (const auto& [name, data] :
       std::map<std::string, std::string>{{"recurrent", "data.tfrecord"},
                                          {"tabular", "data.csv"},
                                          {"two_signatures", "data.jsonl"}}) {
    const TestFolder work;
    const std::string folder = folder_->Path(name + "/init");
    EXPECT_THAT(
        RunProgram(kRequant,
                   {"init", folder_->Path(name + "/model"),
                    absl::StrCat("--data=", folder_->Path(name + "/" + data)),
                    "--output=" + folder,
                    name == "two_signatures" ? "--signature=classify"
                                             : "--signature="}),
        Prints("of the 600 records, the first 480 are for calibration",
               Not(HasSubstr("Left to do"))));
    EXPECT_THAT(
        RunProgram(kRequant, {"run", folder + "/workflow.textproto", "--set",
                              "seconds=0.01", "--work_dir=" + work.Path("work"),
                              "--output=" + folder_->Path(name + "/run")}),
        Exits(0));
    EvaluateResult result;
    ASSERT_TRUE(result.ParseFromString(
        folder_->Read(name + "/run/int8.evaluation.pb")));
    EXPECT_EQ(result.timing().records(), 120);
    // A sum is taken as a number.
    EXPECT_EQ(result.prediction_kind() == PredictionSpec::VALUE,
              name == "recurrent");
    EXPECT_NE(result.comparison().has_agreement(), name == "recurrent");
  }
  const ProgramRun run = RunPython({"tests/serving/compare_models.py",
                                    folder_->path(), "run/int8_saved_model"});
  ASSERT_THAT(run, Exits(0));
  std::set<std::string> names;
  for (const Words& line : LinesOf(run.out)) {
    ASSERT_EQ(line.size(), 6u);
    names.insert(line[0]);
    EXPECT_LE(std::stod(line[4]), 0.05 * std::stod(line[5]))
        << absl::StrJoin(line, " ");
  }
  EXPECT_THAT(names, ElementsAre("recurrent", "tabular", "two_signatures"));
}

TEST_F(Servable, RefusesWithOneSentenceAndWritesNothing) {
  folder_->Write("tabular/taken/file", "mine");
  EXPECT_THAT(Quantize("tabular", "taken"), Fails("it exists"));
  EXPECT_THAT(Quantize("tabular", "taken", {"--overwrite"}),
              Fails("other things than a SavedModel"));
  EXPECT_EQ(folder_->Read("tabular/taken/file"), "mine");
  EXPECT_THAT(Quantize("tabular", "model/inner"), Fails("is inside"));
  EXPECT_THAT(Quantize("tabular", "no", {"--signature=servin_default"}),
              Fails("did you mean \"serving_default\"?"));
  EXPECT_THAT(
      Quantize("tabular", "no", {"--data=" + folder_->Path("resnet/data.npz")}),
      Fails("resnet/data.npz"));
  EXPECT_THAT(
      Quantize("tabular", "no",
               {"--dataset=", "--data=" + folder_->Path("resnet/data.npz")}),
      Fails("no column \"age\""));
  EXPECT_THAT(
      Quantize("tabular", "no", {"--saved_model=" + folder_->Path("resnet")}),
      Fails("is not a SavedModel"));
  const std::string model = folder_->Read("tabular/model/saved_model.pb");
  EXPECT_THAT(Quantize("tabular", "model/saved_model.pb"), Exits(1));
  EXPECT_TRUE(folder_->Read("tabular/model/saved_model.pb") == model);
  EXPECT_THAT(Quantize("tabular", "no", {"--graph=x.pb"}),
              Misused("--saved_model and --graph exclude each other"));
  EXPECT_THAT(Quantize("tabular", "no", {"--format=xml"}),
              Misused("--format is text, or json with --saved_model"));
  EXPECT_THAT(Quantize("tabular", "no", {"--ops=fast"}),
              Misused("--ops is portable or legacy"));
  EXPECT_THAT(
      Quantize("tabular", "no", {"--memory_limit=100M"}),
      Fails("the model needs about 0.3 GB of memory, and --memory_limit "
            "allows 0.1 GB"));
  EXPECT_THAT(Quantize("tabular", "no/1", {"--data=absent.csv"}), Exits(1));
  EXPECT_THAT(Quantize("tabular", "no/1/2"), Fails("cannot write"));
  EXPECT_FALSE(fs::exists(folder_->Path("tabular/no")));
}

// Gives the largest difference between the answers of two models.
constexpr char kLargestDifference[] = R"(
import sys, numpy, tensorflow
records = {name: tensorflow.constant(values)
           for name, values in numpy.load(sys.argv[1]).items()}
answers = [tensorflow.saved_model.load(model)
           .signatures["serving_default"](**records)["scores"].numpy()
           for model in sys.argv[2:]]
print("difference", abs(answers[0] - answers[1]).max())
)";

// A graph of so many weights could not be written, nor read.
TEST(LargeModel, PassesInTwiceTheMemoryOfItsWeights) {
  constexpr int64_t kNeededMemory = 8'000'000'000, kNeededDisk = 5'000'000'000;
  const TestFolder folder;
  const int64_t memory = ReadMemoryLimits().usable().value_or(0);
  const int64_t disk = fs::space(folder.path()).available;
  if (!fs::exists(PythonFolder() + "/installed") || memory < kNeededMemory ||
      disk < kNeededDisk) {
    GTEST_SKIP() << "this needs Python's TensorFlow, 8 GB of memory (there are "
                 << memory << " bytes) and 5 GB of disk (" << disk << ")";
  }
  ASSERT_THAT(RunPython({"tests/serving/make_large_model.py", folder.path()}),
              Exits(0));
  const std::string model = folder.Path("model"), int8 = folder.Path("int8");
  const int64_t bytes =
      fs::file_size(model + "/variables/variables.data-00000-of-00001");
  ASSERT_GT(bytes, int64_t{1} << 31);
  const Words quantize = {"--saved_model=" + model, "--output=" + int8,
                          "--data=" + folder.Path("data.npz"),
                          "--moment_records=0"};
  EXPECT_THAT(RunProgram(kQuantize, Joined(quantize, {"--memory_limit=4G"})),
              Fails("the model needs about 5.0 GB of memory"));
  EXPECT_THAT(
      RunProgram(kQuantize, Joined(quantize, {"--memory_limit=5100M"})),
      Prints("20 of 20 matrix products", "become 140800000", "variables of"));
  EXPECT_THAT(RunProgram(kCheckServing, {int8}), Prints("1 answer as when"));
  const ProgramRun run = RunPython(
      {"-c", kLargestDifference, folder.Path("data.npz"), int8, model});
  ASSERT_THAT(run, Exits(0));
  EXPECT_LT(NumberIn(run.out, "difference (.*)\n"), 0.25);
}

}  // namespace
}  // namespace requant::servable_test
