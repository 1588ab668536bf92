// Tests the way of people's own models: SavedModels as Keras 3 and tf.Module
// write them become eight-bit SavedModels that stock TensorFlow loads in every
// way it has, in any environment.

#include <cstdio>
#include <filesystem>
#include <map>

#include "absl/strings/str_split.h"
#include "base/process/machine.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tests/support/pages.h"

namespace requant::servable_test {
namespace {

namespace fs = std::filesystem;

constexpr char kQuantize[] = "runtime/quantize_model";
constexpr char kCheckServing[] = "runtime/check_serving";

// Returns the folder, beside the C++ files, where ./requant test keeps a stock
// Python TensorFlow such as users' servers and scripts run.
std::string PythonFolder() {
  return absl::StrCat(TensorFlowLibraryFolder().value(), "/../../python");
}

// Runs a script with stock TensorFlow and no variables but the given ones.
ProgramRun RunPython(const Words& arguments, const Words& variables = {}) {
  return RunProgram(
      "/usr/bin/env",
      Joined(Joined({"-i", "PATH=/usr/bin:/bin", "HOME=/nonexistent",
                     "PYTHONPATH=" + PythonFolder()},
                    variables),
             Joined({"/usr/bin/python3"}, arguments)));
}

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
    if (!fs::exists(PythonFolder() + "/installed")) return;
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
    std::printf(
        "*** Python's TensorFlow is not installed: what needs it is skipped."
        "\n./requant test fetches it.\n");
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
    // Keras's models have two signatures of one output and are loaded in two
    // or three ways.
    EXPECT_EQ(lines.size(), 4 + 3 * 6 + 2 * 2 + 3u) << run.out;
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
              Fails("TensorFlow cannot run it here"));
  EXPECT_THAT(RunProgram(kCheckServing, {model}, {"TF_ENABLE_ONEDNN_OPTS=1"}),
              Prints("as when it was made"));
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

TEST_F(Servable, WritesAGraphWhenTheNameSaysSo) {
  EXPECT_THAT(Quantize("resnet", "int8.pb"), Prints("int8.pb"));
  EXPECT_OK(ReadGraph(folder_->Path("resnet/int8.pb")).status());
}

TEST_F(Servable, WorksAsThePageSays) {
  constexpr char kPage[] = "docs/serving.md";
  const TestFolder folder;
  MakeLikeRepository(folder);
  WriteBlocks(kPage, "python", folder);
  int commands = 0;
  for (const std::string& block : Blocks(kPage, "sh")) {
    for (const auto command : absl::StrSplit(block, '\n', absl::SkipEmpty())) {
      ++commands;
      const ProgramRun run =
          RunIn(folder, "/bin/sh", {"-c", std::string(command)},
                {"PYTHONPATH=" + PythonFolder(), "PATH=/usr/bin:/bin"});
      EXPECT_THAT(run, Exits(0)) << command << "\n" << run.out;
    }
  }
  EXPECT_EQ(commands, 4);
  EXPECT_THAT(folder.Read("churn_int8/1/README.md"),
              HasSubstr("compared on 400 others"));
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
      Exits(1));
  EXPECT_THAT(
      Quantize("tabular", "no", {"--saved_model=" + folder_->Path("resnet")}),
      Fails("is not a SavedModel"));
  const std::string model = folder_->Read("tabular/model/saved_model.pb");
  EXPECT_THAT(Quantize("tabular", "model/saved_model.pb"), Exits(1));
  EXPECT_TRUE(folder_->Read("tabular/model/saved_model.pb") == model);
  EXPECT_THAT(Quantize("tabular", "no", {"--graph=x.pb"}),
              Misused("--saved_model and --graph exclude each other"));
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
