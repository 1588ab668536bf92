#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"

namespace requant::diff_graphs_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int exit_code;
  std::string output;
  std::string errors;
};

Outcome RunDiff(const std::vector<std::string>& arguments) {
  Outcome outcome{-1, "", ""};
  ChildOptions options;
  options.argv = {"graph/diff_graphs"};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.on_stdout = [&](std::string_view line) {
    absl::StrAppend(&outcome.output, line, "\n");
  };
  options.on_stderr = [&](std::string_view line) {
    absl::StrAppend(&outcome.errors, line, "\n");
  };
  auto result = RunChild(options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (result.ok()) outcome.exit_code = result->exit_code;
  return outcome;
}

std::string Written(const std::string& name, const std::string& text,
                    GraphFormat format) {
  const std::string path = testing::TempDir() + name;
  EXPECT_TRUE(WriteGraph(GraphFromText(text), path, format).ok());
  return path;
}

TEST(DiffGraphsProgram, ExitsWithZeroForEqualGraphsOfAnyFormat) {
  const std::string graph = "node { name: 'a' op: 'NoOp' }";
  const Outcome outcome =
      RunDiff({Written("a.pb", graph, GraphFormat::kBinary),
               Written("a.pbtxt", graph, GraphFormat::kText)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, StartsWith("the graphs are equal"));
}

TEST(DiffGraphsProgram, ExitsWithOneForDifferentGraphs) {
  const std::string a =
      Written("a.pb", "node { name: 'a' op: 'NoOp' }", GraphFormat::kBinary);
  const std::string b =
      Written("b.pb", "node { name: 'b' op: 'NoOp' }", GraphFormat::kBinary);
  const Outcome text = RunDiff({a, b});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.output, HasSubstr("nodes added: 1\n  b (NoOp)"));
  const Outcome json = RunDiff({"--format=json", a, b});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_THAT(json.output, HasSubstr("\"equal\": false"));
}

TEST(DiffGraphsProgram, ExitsWithTwoOnTrouble) {
  const std::string a =
      Written("a.pb", "node { name: 'a' op: 'NoOp' }", GraphFormat::kBinary);
  const Outcome missing = RunDiff({a, "no/such/file.pb"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.errors, HasSubstr("no/such/file.pb"));
  EXPECT_EQ(RunDiff({a}).exit_code, 2);
  EXPECT_EQ(RunDiff({a, a, "--format=xml"}).exit_code, 2);
}

}  // namespace
}  // namespace requant::diff_graphs_test
