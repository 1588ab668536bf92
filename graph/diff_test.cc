#include "graph/diff.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/testing/golden_cases.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"

namespace requant::diff_test {
namespace {

// Compares two graphs with "=>" between them. The result is text with as many
// names of each kind as the first line gives, or else JSON.
std::string DiffCase(const std::string& input) {
  const std::vector<std::string> parts = absl::StrSplit(input, "=>\n");
  const std::pair<std::string, std::string> before =
      absl::StrSplit(parts[0], absl::MaxSplits('\n', 1));
  const GraphDiff diff =
      DiffGraphs(GraphFromText(before.second), GraphFromText(parts[1]));
  int shown;
  if (absl::SimpleAtoi(before.first, &shown)) {
    return std::string(absl::StripSuffix(DiffAsText(diff, shown), "\n"));
  }
  const std::string json = DiffAsJson(diff);
  google::protobuf::Struct parsed;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok())
      << json;
  return std::string(absl::StripSuffix(json, "\n"));
}

TEST(DiffGraphs, SaysWhatDiffers) {
  CheckGoldenCases("graph/diff_cases.txt", DiffCase);
}

TEST(GraphSizeSummary, IsOneReadableLine) {
  EXPECT_EQ(GraphSizeSummary({1204, 9530000}, {873, 4970000}),
            "1,204 -> 873 nodes (-27 %), 9.53 -> 4.97 MB (-48 %)");
  EXPECT_EQ(GraphSizeSummary({5, 999}, {5, 999}), "5 nodes, 999 B");
  EXPECT_EQ(GraphSizeSummary({0, 0}, {1, 1500}),
            "0 -> 1 node, 0.00 -> 1.50 kB");
  EXPECT_EQ(GraphSizeSummary({1000000, 2000}, {999000, 4000}),
            "1,000,000 -> 999,000 nodes (-0.1 %), 2.00 -> 4.00 kB (+100 %)");
}

// Tests the program.
class DiffGraphsProgram : public testing::Test {
 protected:
  ProgramRun Run(const std::vector<std::string>& arguments) {
    return RunProgram("graph/diff_graphs", arguments);
  }
  std::string Written(const std::string& name, const std::string& text) {
    const std::string path = folder_.Path(name);
    EXPECT_OK(WriteGraph(GraphFromText(text), path, GraphFormat::kBinary));
    return path;
  }

  TestFolder folder_;
  const std::string a_ = Written("a.pb", "a = NoOp");
};

TEST_F(DiffGraphsProgram, ExitsWithZeroForEqualGraphsOfAnyFormat) {
  const ProgramRun run =
      Run({a_, folder_.WriteText("a.pbtxt", GraphFromText("a = NoOp"))});
  EXPECT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, StartsWith("the graphs are equal"));
}

TEST_F(DiffGraphsProgram, ExitsWithOneForDifferentGraphs) {
  const std::string b = Written("b.pb", "b = NoOp");
  const ProgramRun text = Run({a_, b});
  EXPECT_THAT(text, Exits(1));
  EXPECT_THAT(text.out, HasSubstr("nodes added: 1\n  b (NoOp)"));
  const ProgramRun json = Run({"--format=json", a_, b});
  EXPECT_THAT(json, Exits(1));
  EXPECT_THAT(json.out, HasSubstr("\"equal\": false"));
}

TEST_F(DiffGraphsProgram, ExitsWithTwoOnTrouble) {
  EXPECT_THAT(Run({a_, "no/such/file.pb"}),
              Exits(2, HasSubstr("no/such/file.pb")));
  EXPECT_THAT(Run({a_}), Exits(2));
  EXPECT_THAT(Run({a_, a_, "--format=xml"}), Exits(2));
}

}  // namespace
}  // namespace requant::diff_test
