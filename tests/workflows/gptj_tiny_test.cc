// The tiny GPT-J, a model that keeps its variables: the shipped workflow, and
// what calibration and benchmark make of it.

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "base/files/file.h"
#include "google/protobuf/struct.pb.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/statistics/prediction_tensor.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tests/support/workflow_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::gptj_tiny_test {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Value;
using tensorflow::FunctionDef;

constexpr char kModel[] = "workflows/gptj_tiny/saved_model/1";
constexpr char kEval[] = "workflows/gptj_tiny/eval.textproto";
constexpr char kCalibration[] = "workflows/gptj_tiny/calibration.textproto";

// All tests share one run, which finds no Python.
class GptjTiny : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TestFolder;
    ASSERT_THAT(Requant({"run", "gptj_tiny_qdq", WorkDir(), Out()}), Exits(0));
    results_ = ParseJson(folder_->Read("out/results.json"));
  }
  static void TearDownTestSuite() { delete folder_; }

  static ProgramRun Requant(const Words& arguments) {
    return RunProgram(kRequant, arguments, {"PATH=/nowhere"});
  }
  static std::string WorkDir() { return "--work_dir=" + folder_->Path("work"); }
  static std::string Out() { return "--out=" + folder_->Path("out"); }
  static std::string OutPath(const std::string& name) {
    return folder_->Path("out/" + name);
  }

  // Returns a figure of a stage's comparison with the original.
  static double Figure(const std::string& stage, const std::string& path) {
    for (const Value& value : At(results_, "stages").list_value().values()) {
      if (At(value, "name").string_value() != stage) continue;
      return At(value, "verification/comparison/" + path).number_value();
    }
    ADD_FAILURE() << "no stage " << stage;
    return -1;
  }
  static double Mse(const std::string& stage) {
    return Figure(stage, "squared_change/mean");
  }

  static inline TestFolder* folder_ = nullptr;
  static inline Value results_;
};

// Returns exp of the entropy of the characters that are to be predicted: no
// model that knows only how frequent each is can do better on them.
double UnigramPerplexity() {
  auto source =
      OpenBatchSource(ReadDatasetSpec(kEval, {}).value(), BatchOptions());
  std::map<double, double> counts;
  double all = 0;
  Batch batch;
  while ((*source)->Next(&batch).value()) {
    const std::vector<double> labels = LabelValues(batch.labels).value();
    for (const double label : labels) {
      ++counts[label];
      ++all;
    }
  }
  double entropy = 0;
  for (const auto& [label, count] : counts) {
    entropy -= count / all * std::log(count / all);
  }
  return std::exp(entropy);
}

TEST_F(GptjTiny, PredictsMoreThanFrequenciesDo) {
  const ProgramRun run = RunProgram(
      "runtime/evaluate_graph",
      {absl::StrCat("--graph=", kModel), absl::StrCat("--dataset=", kEval),
       "--batch_size=64", "--format=json"});
  ASSERT_THAT(run, Exits(0));
  const Value json = ParseJson(run.out);
  EXPECT_EQ(At(json, "positions_per_record").number_value(), 64);
  EXPECT_EQ(At(json, "metrics/records").number_value(), 512 * 64);
  const double perplexity =
      std::exp(At(json, "metrics/log_loss").number_value());
  EXPECT_LE(perplexity, UnigramPerplexity() / 2);
  EXPECT_GT(perplexity, 1);
}

TEST_F(GptjTiny, ComesBackAsItWas) {
  EXPECT_EQ(Mse("round_trip"), 0);
  EXPECT_EQ(Figure("round_trip", "agreement/share"), 1);
  const std::string model(kModel);
  for (const std::string file :
       {"saved_model.pb", "variables/variables.index",
        "variables/variables.data-00000-of-00001", "fingerprint.pb"}) {
    EXPECT_EQ(ReadFile(OutPath("round_trip_gptj_tiny/" + file)).value(),
              ReadFile(absl::StrCat(model, "/", file)).value())
        << file;
  }
}

TEST_F(GptjTiny, LosesLittleWithCalibratedRanges) {
  // The published ranges must do harm, or the share says nothing.
  EXPECT_GT(Mse("fixed"), 0.1);
  EXPECT_LE(Mse("calibrated"), 0.01 * Mse("fixed"));
  EXPECT_GE(Figure("calibrated", "agreement/share"), 0.98);
  EXPECT_LT(Figure("fixed", "agreement/share"),
            Figure("calibrated", "agreement/share"));
}

// In the published dump one layer's QuantizeV2 takes another's constants.
TEST_F(GptjTiny, HasConstantsForEachTensorInItsFunctions) {
  const GraphDef graph = ReadGraph(OutPath("converted_graph_def.pb")).value();
  int pairs = 0;
  std::set<std::string> values;
  for (const FunctionDef& function : graph.library().function()) {
    std::map<std::string, const NodeDef*> nodes;
    for (const NodeDef& node : function.node_def()) nodes[node.name()] = &node;
    std::set<std::string> ranges;
    for (const auto& [name, node] : nodes) {
      if (node->op() != "QuantizeV2") continue;
      ++pairs;
      const std::string layer =
          name.substr(0, name.find("_eightbit_quantize_"));
      for (const int input : {1, 2}) {
        const std::string range(
            node->input(input).substr(0, node->input(input).find(':')));
        EXPECT_TRUE(absl::StartsWith(
            range, absl::StrCat(layer, input == 1 ? "_eightbit_min_"
                                                  : "_eightbit_max_")))
            << name << " takes " << range;
        ASSERT_EQ(nodes.count(range), 1) << range;
        EXPECT_EQ(nodes[range]->op(), "Const");
        EXPECT_TRUE(ranges.insert(range).second) << range << " is shared";
        values.insert(nodes[range]->attr().at("value").SerializeAsString());
      }
    }
  }
  // Three layers of six projections and the head, activations and weights, but
  // those that several projections read have one pair for all.
  EXPECT_GE(pairs, 2 * 3 * 4);
  EXPECT_GT(static_cast<int>(values.size()), pairs);
}

TEST_F(GptjTiny, IsDoneOnce) {
  EXPECT_THAT(Requant({"plan", "gptj_tiny_qdq", WorkDir()}).out,
              HasSubstr(" 0 would run"));
  EXPECT_THAT(Requant({"run", "gptj_tiny_qdq", WorkDir(), Out()}), Exits(0));
}

TEST_F(GptjTiny, IsVerifiedFileByFile) {
  EXPECT_THAT(Requant({"verify", folder_->Path("out")}), Exits(0));
  const TestFolder other;
  fs::copy(folder_->Path("out"), other.Path("out"),
           fs::copy_options::recursive);
  fs::remove(other.Path("out/converted_gptj_tiny/variables/variables.index"));
  const ProgramRun run = Requant({"verify", other.Path("out")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("changed     output  converted_gptj_tiny"));
}

TEST_F(GptjTiny, HasTheBenchmarksTextInTheRunsFolder) {
  EXPECT_THAT(ReadFile(OutPath("speed.txt")).value(),
              AllOf(HasSubstr("MSE of the output logits between two models = "),
                    HasSubstr("Top-1 agreement = ")));
}

TEST_F(GptjTiny, IsMadeAgainWhenAFileOfTheStoreChanges) {
  for (const auto& entry :
       fs::recursive_directory_iterator(folder_->Path("work/cache"))) {
    if (entry.path().filename() == "fingerprint.pb") fs::remove(entry.path());
  }
  EXPECT_THAT(Requant({"run", "gptj_tiny_qdq", WorkDir(), Out()}), Exits(0));
  EXPECT_TRUE(fs::exists(OutPath("converted_gptj_tiny/fingerprint.pb")));
}

// On inputs that are made up, from the signature alone.
TEST(GptjTinyBenchmark, PrintsThePublishedLines) {
  const std::string model = absl::StrCat("--saved_model=", kModel);
  ASSERT_THAT(
      RunProgram("runtime/benchmark_graph",
                 {model, model, "--name=gpt-j", "--rounds=1", "--seconds=0"}),
      Prints("The infrence results of original gpt-j with TF2.x API\n"
             "Batch size = 8\n",
             "MSE of the output logits between two models = 0.0\n"
             "Cosine similarity of the output logits = 1.0\n"
             "Top-1 agreement = 100.0000 % (256 of 256 rows of the output)\n"));
}

TEST(GptjTinyBenchmark, SaysWhatIsWrong) {
  const auto error = [](const std::string& flag) {
    return RunProgram("runtime/benchmark_graph",
                      {absl::StrCat("--saved_model=", kModel), flag});
  };
  EXPECT_THAT(error("--signature=serving_defualt"),
              Fails("has no signature \"serving_defualt\" (did you mean "
                    "\"serving_default\"?)"));
  EXPECT_THAT(error("--output=logit"), Fails("\"logit\""));
  EXPECT_THAT(
      error("--synthetic_ids=500"),
      Fails("made up for it (--synthetic_ids=500", "is not in [0, 43)"));
  EXPECT_THAT(error("--graph=x.pb"),
              Misused("--graph and --saved_model exclude each other"));
  EXPECT_THAT(error("--synthetic_ids=0"),
              Misused("--synthetic_ids must be 1 to"));
}

// Runs a calibration of the model with these flags.
ProgramRun Calibrate(const std::string& output, const Words& flags) {
  return RunProgram(
      "runtime/calibrate_graph",
      Joined({absl::StrCat("--graph=", kModel), "--output=" + output,
              absl::StrCat("--dataset=", kCalibration)},
             flags));
}

TEST(GptjTinyCalibration, FindsTensorsOfFunctions) {
  const TestFolder folder;
  ASSERT_THAT(Calibrate(folder.Path("tiny.ranges"),
                        {"--qdq_ops=MatMul", "--max_records=16"}),
              AllOf(Prints("::"), Warns(Not(HasSubstr("not observed")))));
}

TEST(GptjTinyCalibration, IsTheSameInSeveralRunsPerBatch) {
  const TestFolder folder;
  const auto calibrate = [&](const std::string& held) {
    const std::string output = folder.Path("tiny.ranges." + held);
    EXPECT_THAT(
        Calibrate(output, {"--qdq_ops=MatMul,BatchMatMulV2", "--max_records=32",
                           "--batch_size=16", "--held_mb=" + held}),
        Exits(0));
    return ReadFile(output).value();
  };
  // All tensors of a batch together have 12 MB.
  EXPECT_EQ(calibrate("512"), calibrate("1"));
}

TEST(GptjTinyCalibration, NamesOpsThatItCannotObserve) {
  const TestFolder folder;
  EXPECT_THAT(Calibrate(folder.Path("tiny.ranges"), {"--qdq_ops=Matmul"}),
              Fails("did you mean \"MatMul\"?"));
}

}  // namespace
}  // namespace requant::gptj_tiny_test
