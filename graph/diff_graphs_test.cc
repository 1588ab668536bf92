#include "graph/graph_io.h"
#include "graph/testing/program.h"

namespace requant::diff_graphs_test {
namespace {

ProgramRun RunDiff(const std::vector<std::string>& arguments) {
  return RunProgram("graph/diff_graphs", arguments);
}

std::string Written(const std::string& name, const std::string& text,
                    GraphFormat format) {
  const std::string path = testing::TempDir() + name;
  EXPECT_OK(WriteGraph(GraphFromText(text), path, format));
  return path;
}

TEST(DiffGraphsProgram, ExitsWithZeroForEqualGraphsOfAnyFormat) {
  const std::string graph = "a = NoOp";
  const ProgramRun outcome =
      RunDiff({Written("a.pb", graph, GraphFormat::kBinary),
               Written("a.pbtxt", graph, GraphFormat::kText)});
  EXPECT_THAT(outcome, Exits(0));
  EXPECT_THAT(outcome.out, StartsWith("the graphs are equal"));
}

TEST(DiffGraphsProgram, ExitsWithOneForDifferentGraphs) {
  const std::string a = Written("a.pb", "a = NoOp", GraphFormat::kBinary);
  const std::string b = Written("b.pb", "b = NoOp", GraphFormat::kBinary);
  const ProgramRun text = RunDiff({a, b});
  EXPECT_THAT(text, Exits(1));
  EXPECT_THAT(text.out, HasSubstr("nodes added: 1\n  b (NoOp)"));
  const ProgramRun json = RunDiff({"--format=json", a, b});
  EXPECT_THAT(json, Exits(1));
  EXPECT_THAT(json.out, HasSubstr("\"equal\": false"));
}

TEST(DiffGraphsProgram, ExitsWithTwoOnTrouble) {
  const std::string a = Written("a.pb", "a = NoOp", GraphFormat::kBinary);
  EXPECT_THAT(RunDiff({a, "no/such/file.pb"}),
              Exits(2, HasSubstr("no/such/file.pb")));
  EXPECT_THAT(RunDiff({a}), Exits(2));
  EXPECT_THAT(RunDiff({a, a, "--format=xml"}), Exits(2));
}

}  // namespace
}  // namespace requant::diff_graphs_test
