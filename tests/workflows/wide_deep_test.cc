// The embedded Wide & Deep model as people use it: records, a frozen graph, and
// the accuracy that the training script recorded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "graph/testing/program.h"
#include "re2/re2.h"

namespace requant::wide_deep_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kFolder[] = "workflows/wide_deep/";
constexpr char kOutput[] = "head/predictions/probabilities";

// The whole number behind `pattern`'s group in `text`.
int64_t NumberIn(const std::string& text, const std::string& pattern) {
  int64_t number = -1;
  EXPECT_TRUE(RE2::PartialMatch(text, pattern, &number)) << pattern << "\n"
                                                         << text;
  return number;
}

class EmbeddedWideDeepTest : public testing::Test {
 protected:
  void MustRun(const std::string& program,
               const std::vector<std::string>& arguments) {
    const ProgramRun run = RunProgram(program, arguments);
    ASSERT_EQ(run.exit_code, 0) << run.error;
  }

  void MakeRecords(int rows, const std::string& format = "tfrecord") {
    MustRun("runtime/datasets/dataset",
            {"synthesize", "--split=eval", absl::StrCat("--rows=", rows),
             "--format=" + format, "--out=" + folder_.Path("eval." + format)});
  }

  void Freeze() {
    MustRun("graph/freeze_graph",
            {absl::StrCat("--input_saved_model_dir=", kFolder, "model"),
             "--output_graph=" + folder_.Path("frozen.pb"),
             absl::StrCat("--output_node_names=", kOutput)});
  }

  TestFolder folder_;
};

TEST_F(EmbeddedWideDeepTest, HasTheAccuracyThatItsTrainingRecorded) {
  constexpr int kRecords = 100000;
  const std::string card =
      ReadFile(absl::StrCat(kFolder, "model.json")).value();
  const int64_t recorded = NumberIn(
      card, absl::StrCat("\"combined\": \\[\\s*{\\s*\"records\": ", kRecords,
                         ",\\s*\"correct\": (\\d+)"));
  MakeRecords(kRecords);
  Freeze();
  const ProgramRun run =
      RunProgram("runtime/evaluate_graph",
                 {"--graph=" + folder_.Path("frozen.pb"),
                  absl::StrCat("--dataset=", kFolder, "raw.textproto"),
                  "--data=" + folder_.Path("eval.tfrecord")});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("Total test records           :  100000\n"));
  // A hundredth of a point.
  EXPECT_NEAR(NumberIn(run.out, "No of correct predicitons    :  (\\d+)\n"),
              recorded, kRecords / 10000);
}

TEST_F(EmbeddedWideDeepTest, IsTheSameFrozenAndAsASavedModel) {
  MakeRecords(2000);
  Freeze();
  const ProgramRun run =
      RunProgram("runtime/evaluate_graph",
                 {"--graph=" + folder_.Path("frozen.pb"),
                  absl::StrCat("--baseline=", kFolder, "model"),
                  absl::StrCat("--dataset=", kFolder, "raw.textproto"),
                  "--data=" + folder_.Path("eval.tfrecord"), "--format=json"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  double mean = 1;
  double max = 1;
  EXPECT_TRUE(RE2::PartialMatch(
      run.out,
      "\"output_change\":\\s*{\\s*\"mean\":\\s*([-+.e0-9]+),[^}]*\"max\":\\s*"
      "([-+.e0-9]+)",
      &mean, &max))
      << run.out;
  EXPECT_LE(mean, 1e-6);
  EXPECT_LE(max, 1e-6);
}

TEST_F(EmbeddedWideDeepTest, ReadsTheSameFromCsv) {
  MakeRecords(2000);
  MakeRecords(2000, "csv");
  Freeze();
  std::vector<int64_t> correct;
  for (const char* kind : {"raw", "criteo_csv"}) {
    const std::string data =
        kind == std::string("raw") ? "eval.tfrecord" : "eval.csv";
    const ProgramRun run =
        RunProgram("runtime/evaluate_graph",
                   {"--graph=" + folder_.Path("frozen.pb"),
                    absl::StrCat("--dataset=", kFolder, kind, ".textproto"),
                    "--data=" + folder_.Path(data)});
    ASSERT_EQ(run.exit_code, 0) << run.error;
    correct.push_back(
        NumberIn(run.out, "No of correct predicitons    :  (\\d+)\n"));
  }
  EXPECT_EQ(correct[0], correct[1]);
  EXPECT_GT(correct[0], 1000);
}

TEST_F(EmbeddedWideDeepTest, HasA39PlaceholderGraphThatSummarizes) {
  const ProgramRun run =
      RunProgram("transforms/summarize_graph",
                 {absl::StrCat("--in_graph=", kFolder, "model"),
                  "--print_structure=false"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("Found 39 possible inputs"),
                    HasSubstr("name=Placeholder_38"), HasSubstr(kOutput)));
  const ProgramRun training =
      RunProgram("transforms/summarize_graph",
                 {absl::StrCat("--in_graph=", kFolder, "graph.pbtxt.gz"),
                  "--print_structure=false"});
  EXPECT_EQ(training.exit_code, 0) << training.error;
}

}  // namespace
}  // namespace requant::wide_deep_test
