// requant evaluate as people run it: figures, comparisons, and graphs that
// crash, never end or eat memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "graph/graph_io.h"
#include "graph/testing.h"
#include "tests/graph_text.h"
#include "tests/program.h"

namespace requant {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr char kEvaluateGraph[] = "runtime/evaluate_graph";

// predict = [1 - x, x].
std::string TwoClasses() {
  return absl::StrCat(
      Placeholder("x", {-1, 1}), FloatConst("one", {}, {1}),
      Node("not_x", "Sub", {"one", "x"}, {kFloat}), IntConst("axis", {}, {1}),
      Node("predict", "ConcatV2", {"not_x", "x", "axis"},
           {kFloat, {"N", "i: 2"}, {"Tidx", "type: DT_INT32"}}));
}

// predict = softmax([x, x]), so that every class is as likely.
std::string Undecided() {
  return absl::StrCat(Placeholder("x", {-1, 1}), IntConst("axis", {}, {1}),
                      Node("both", "ConcatV2", {"x", "x", "axis"},
                           {kFloat, {"N", "i: 2"}, {"Tidx", "type: DT_INT32"}}),
                      Node("predict", "Softmax", {"both"}, {kFloat}));
}

class EvaluateGraphTest : public testing::Test {
 protected:
  EvaluateGraphTest() {
    WriteGraphFile("two.pbtxt", TwoClasses());
    // Four records; the second and third are predicted wrongly.
    folder_.Write("data.csv", "x,label\n0.9,1\n0.8,0\n0.1,1\n0.2,0\n");
    folder_.Write("data.textproto", R"pb(
      csv { files: "data.csv" }
      input { feature: "x" placeholder: "x" dtype: "float" shape: 1 }
      label { feature: "label" dtype: "int64" }
      prediction { tensor: "predict" }
    )pb");
  }

  std::string WriteGraphFile(const std::string& name, const std::string& text) {
    return folder_.WriteText(name, GraphFromText(text));
  }

  std::vector<std::string> Arguments(const std::string& graph,
                                     std::vector<std::string> more = {}) {
    more.push_back("--graph=" + folder_.Path(graph));
    more.push_back("--dataset=" + folder_.Path("data.textproto"));
    return more;
  }

  ProgramRun Evaluate(const std::string& graph,
                      const std::vector<std::string>& more = {}) {
    return RunProgram(kEvaluateGraph, Arguments(graph, more),
                      {"TMPDIR=" + folder_.Path("")});
  }

  // The logs that workers left.
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
  const ProgramRun run = Evaluate("two.pbtxt", {"--batch_size=2"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  const std::vector<std::string> lines =
      absl::StrSplit(run.out, '\n', absl::SkipEmpty());
  ASSERT_GE(lines.size(), 10u) << run.out;
  const std::vector<std::string> tail(lines.end() - 10, lines.end());
  const std::string dashes(50, '-');
  EXPECT_EQ(tail[0], dashes);
  EXPECT_EQ(tail[1], "Total test records           :  4");
  EXPECT_EQ(tail[2], "Batch size is                :  2");
  EXPECT_EQ(tail[3], "Number of batches            :  2");
  EXPECT_THAT(tail[4],
              MatchesRegex("Throughput is \\(records/sec\\)  :  [0-9.]+"));
  EXPECT_THAT(tail[5],
              MatchesRegex("Inference duration \\(seconds\\) :  [0-9.]+"));
  EXPECT_THAT(tail[6],
              MatchesRegex("Latency \\(millisecond/batch\\)  :  [0-9.]+"));
  EXPECT_THAT(tail[7],
              MatchesRegex("Classification accuracy \\(%\\)  :  50(.0*)?"));
  EXPECT_EQ(tail[8], "No of correct predicitons    :  2");
  EXPECT_EQ(tail[9], dashes);
  EXPECT_EQ(run.error, "");
  EXPECT_TRUE(Logs().empty());
}

TEST_F(EvaluateGraphTest, StopsAfterTheRecordsAskedFor) {
  const ProgramRun run = Evaluate("two.pbtxt", {"--records=1"});
  EXPECT_THAT(run.out, AllOf(HasSubstr("Total test records           :  1\n"),
                             HasSubstr("No of correct predicitons    :  1\n")));
}

TEST_F(EvaluateGraphTest, ComparesWithABaseline) {
  WriteGraphFile("undecided.pbtxt", Undecided());
  const ProgramRun run =
      Evaluate("undecided.pbtxt",
               {"--baseline=" + folder_.Path("two.pbtxt"), "--format=json"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  // Class 0 for every record: right on the second and fourth.
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("\"correct\":2"), HasSubstr("\"comparison\":{")));
}

TEST_F(EvaluateGraphTest, ExitsWith3WhenAccuracyCertainlyDrops) {
  std::string rows = "x,label\n";
  for (int i = 0; i < 500; ++i) absl::StrAppend(&rows, "0.9,1\n");
  folder_.Write("data.csv", rows);
  WriteGraphFile("undecided.pbtxt", Undecided());
  const ProgramRun run = Evaluate(
      "undecided.pbtxt",
      {"--baseline=" + folder_.Path("two.pbtxt"), "--max_accuracy_drop=0.5"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.error, HasSubstr("accuracy drops by more than 0.5 points"));
  EXPECT_EQ(Evaluate("two.pbtxt", {"--baseline=" + folder_.Path("two.pbtxt"),
                                   "--max_accuracy_drop=0.5"})
                .exit_code,
            0);
}

TEST_F(EvaluateGraphTest, SkipsSoManyBadRecordsAndNamesThem) {
  folder_.Write("data.csv", "x,label\n0.9,1\noops,0\n0.2,0\n");
  const ProgramRun refused = Evaluate("two.pbtxt");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("data.csv"));
  EXPECT_EQ(refused.out, "");
  const ProgramRun run = Evaluate("two.pbtxt", {"--max_bad_records=1"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("Total test records           :  2\n"));
  EXPECT_THAT(run.error, HasSubstr("oops"));
}

TEST_F(EvaluateGraphTest, ExplainsADatasetThatDoesNotFitTheGraph) {
  folder_.Write("data.textproto", R"pb(
    csv { files: "data.csv" }
    input { feature: "x" placeholder: "y" dtype: "float" shape: 1 }
    label { feature: "label" dtype: "int64" }
    prediction { tensor: "predict" }
  )pb");
  const ProgramRun run = Evaluate("two.pbtxt");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("has no placeholder \"y\""));
}

TEST_F(EvaluateGraphTest, RefusesUsageThatMakesNoSense) {
  EXPECT_EQ(Evaluate("two.pbtxt", {"--batch_size=0"}).exit_code, 2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--max_accuracy_drop=1"}).exit_code, 2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--memory_limit=lots"}).exit_code, 2);
  EXPECT_EQ(Evaluate("two.pbtxt", {"--format=xml"}).exit_code, 2);
  EXPECT_EQ(RunProgram(kEvaluateGraph, {"--graph=a.pb"}).exit_code, 2);
}

TEST_F(EvaluateGraphTest, KeepsTheLogThatIsAskedFor) {
  WriteGraphFile(
      "printing.pbtxt",
      absl::StrCat(TwoClasses(), Node("said", "Print", {"predict", "x"},
                                      {kFloat,
                                       {"U", "list { type: DT_FLOAT }"},
                                       {"message", "s: \"__min:\""}})));
  const ProgramRun run =
      Evaluate("printing.pbtxt",
               {"--output=said", "--log_file=" + folder_.Path("said.log")});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(folder_.Read("said.log"), HasSubstr("__min:[0.9]"));
}

}  // namespace
}  // namespace requant
