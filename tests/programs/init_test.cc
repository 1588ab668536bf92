// Tests `requant init` as people run it, without Python's TensorFlow;
// tests/serving runs what it writes for models of Keras.

#include <filesystem>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "runtime/evaluation.pb.h"
#include "tests/support/mixed_records.h"
#include "tests/support/program_runs.h"

namespace requant::init_test {
namespace {

namespace fs = std::filesystem;

constexpr char kRequant[] = "workflows/requant";

class Init : public testing::Test {
 protected:
  // A SavedModel of TensorFlow 2 with the inputs x [?,4] and ids [?] and the
  // outputs y [?,3] and norm [?].
  Init() {
    fs::copy("graph/testdata/functions", folder_.Path("functions"),
             fs::copy_options::recursive);
    std::string rows = "x,ids,label\n";
    for (int i = 0; i < 24; ++i) {
      absl::StrAppend(&rows, "0.", i, " 1 2 3,", i % 7, ",", i % 3, "\n");
    }
    folder_.Write("data.csv", rows);
  }

  ProgramRun Run(const Words& arguments) {
    return RunIn(folder_, kRequant, arguments);
  }

  // Replaces text in a file, which must have it.
  void Replace(const std::string& file, const std::string& from,
               const std::string& to) {
    const std::string text = folder_.Read(file);
    EXPECT_THAT(text, HasSubstr(from));
    folder_.Write(file, absl::StrReplaceAll(text, {{from, to}}));
  }

  TestFolder folder_;
};

TEST_F(Init, StartsAWorkflowForAFrozenGraphThatRunsAtOnce) {
  fs::copy("tests/data/mixed_layers/frozen.pb", folder_.Path("mixed.pb"));
  EXPECT_OK(
      WriteMixedRecords(folder_.Path("data.npz"), MixedSplit::kEval, 600));
  EXPECT_THAT(Run({"init", "mixed.pb", "--data=data.npz"}),
              Prints("Wrote mixed_workflow/workflow.textproto and "
                     "mixed_workflow/data.textproto.\n",
                     "the first 480 are for calibration",
                     "To go on:\n  requant plan mixed_workflow/",
                     "\n  requant run mixed_workflow/workflow.textproto\n"));
  // The graph and the data are relative to the folder around both.
  fs::create_directory(folder_.Path("moved"));
  for (const char* file : {"mixed.pb", "data.npz", "mixed_workflow"}) {
    fs::rename(folder_.Path(file), folder_.Path(std::string("moved/") + file));
  }
  EXPECT_THAT(Run({"run", "moved/mixed_workflow/workflow.textproto",
                   "--output=results", "--set=seconds=0.01"}),
              Exits(0));
  const GraphDef graph = folder_.ReadGraphFile("results/int8.pb");
  EXPECT_TRUE(absl::c_any_of(graph.node(), [](const NodeDef& node) {
    return absl::StartsWith(node.op(), "QuantizedMatMul");
  }));
  EvaluateResult result;
  ASSERT_TRUE(
      result.ParseFromString(folder_.Read("results/int8.evaluation.pb")));
  EXPECT_EQ(result.timing().records(), 120);
  EXPECT_GT(result.layer_size(), 1);
  EXPECT_THAT(folder_.Read("results/results.json"),
              AllOf(HasSubstr("\"speed_is_benchmarked\": true"),
                    Not(HasSubstr("\"size_ratio\": null"))));
}

TEST_F(Init, BenchmarksASavedModelAgainstItsBaseline) {
  ASSERT_THAT(Run({"init", "functions", "--data=data.csv", "--output=f"}),
              Exits(0));
  // The output y has three values.
  Replace("f/data.textproto", "tensor: \"FILL_IN\"", "tensor: \"y\"");
  EXPECT_THAT(Run({"run", "f/workflow.textproto", "--output=results",
                   "--set=seconds=0.01"}),
              Exits(0));
  EXPECT_THAT(folder_.Read("results/results.json"),
              AllOf(HasSubstr("\"speed_is_benchmarked\": true"),
                    Not(HasSubstr("\"size_ratio\": null"))));
}

TEST_F(Init, LeavesASkeletonWithoutRecords) {
  EXPECT_THAT(Run({"init", "functions", "--output=f"}),
              Prints("Left to do in f/data.textproto:\n  - the files with the "
                     "records",
                     "which of the model's outputs \"norm\" and \"y\" is the "
                     "prediction?",
                     "To go on, once that is done:\n"));
  const ProgramRun plan = Run({"plan", "f/workflow.textproto"});
  EXPECT_THAT(plan, Fails(MatchesRegex(
                        "requant plan: f/workflow.textproto:[0-9]+: "
                        "f/data.textproto:[0-9]+: \"FILL_IN\" has yet to be "
                        "filled in; the comments there say with what\n")));
  Replace("f/data.textproto", "files: \"FILL_IN\"", "files: \"../data.csv\"");
  Replace("f/data.textproto", "tensor: \"FILL_IN\"", "tensor: \"y\"");
  EXPECT_THAT(Run({"plan", "f/workflow.textproto"}),
              Prints("int8/verify",
                     "max_accuracy_drop 0.5 (not judged: no labels), min_"));
}

TEST_F(Init, SaysWhatTheRecordsLack) {
  folder_.Write("other.csv", "x,id\n1 2 3 4,1\n");
  EXPECT_THAT(Run({"init", "functions", "--data=other.csv", "--output=f"}),
              Prints("other.csv has no column \"ids\" (did you mean \"id\"?)"));
  EXPECT_THAT(folder_.Read("f/data.textproto"),
              HasSubstr("input { feature: \"FILL_IN\" placeholder: \"ids\" "
                        "dtype: \"int32\" }\n"));
}

TEST_F(Init, KnowsTheNamesThatFreezingKept) {
  ASSERT_THAT(RunProgram("graph/freeze_graph",
                         {"--input_saved_model_dir=graph/testdata/functions",
                          "--output_graph=" + folder_.Path("frozen.pb")}),
              Exits(0));
  EXPECT_THAT(Run({"init", "frozen.pb", "--data=data.csv", "--output=f"}),
              Prints("the columns \"ids\" and \"x\" feed"));
  EXPECT_THAT(folder_.Read("f/data.textproto"),
              HasSubstr("feature: \"x\" placeholder: \"x\" dtype: \"float\" "
                        "shape: [4] }"));
}

TEST_F(Init, ReplacesNothingUnasked) {
  const Words init = {"init", "functions", "--data=data.csv", "--output=f"};
  ASSERT_THAT(Run(init), Exits(0));
  const std::string first = folder_.Read("f/workflow.textproto");
  folder_.Write("f/workflow.textproto", "mine");
  fs::remove(folder_.Path("f/data.textproto"));
  EXPECT_THAT(Run(init), Fails("f/workflow.textproto exists", "--overwrite"));
  EXPECT_EQ(folder_.Read("f/workflow.textproto"), "mine");
  EXPECT_FALSE(fs::exists(folder_.Path("f/data.textproto")));
  EXPECT_THAT(Run(Joined(init, {"--overwrite"})), Exits(0));
  EXPECT_EQ(folder_.Read("f/workflow.textproto"), first);
}

TEST_F(Init, RefusesWithOneSentenceAndWritesNothing) {
  fs::create_directory(folder_.Path("empty"));
  folder_.Write("m.keras", "");
  folder_.Write("text.txt", "hello");
  folder_.Write("array.npy", "\x93NUMPY");
  const std::vector<std::string> before = folder_.Names();
  const auto refused = [&](const Words& arguments,
                           const std::string& sentence) {
    EXPECT_THAT(Run(Joined({"init", "--output=new"}, arguments)),
                AllOf(Fails(MatchesRegex("requant init: [^\n]*\n"), sentence),
                      testing::Field("out", &ProgramRun::out, "")));
  };
  refused({"absent"}, "absent");
  refused({"empty"}, "empty");
  refused({"m.keras"}, "keras.models.load_model(FILE).export(FOLDER)");
  refused({"text.txt"}, "text.txt");
  refused({"functions", "--signature=servin_default"},
          "did you mean \"serving_default\"?");
  refused({"functions", "--data=absent.csv"}, "no file matches absent.csv");
  refused({"functions", "--data=a=a.csv", "--data=b=b.csv"},
          "name it by --signature=a with --data=a.csv, or give each");
  refused({"functions", "--data=array.npy"}, "is a single array");
  refused({"functions", "--output=no/f"}, "cannot make the folder no/f");
  refused({"functions", "--output=text.txt"}, "text.txt");
  EXPECT_THAT(Run({"init"}), Misused("give one model"));
  EXPECT_THAT(Run({"init", "functions", "--model=a"}), Misused("model"));
  EXPECT_EQ(folder_.Names(), before);
}

}  // namespace
}  // namespace requant::init_test
