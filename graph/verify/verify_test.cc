#include "graph/verify/verify.h"

#include <cstdint>
#include <iterator>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/testing/fuzz_rounds.h"
#include "base/testing/golden_cases.h"
#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"

namespace requant::verify_test {
namespace {

// Graphs that TensorFlow accepts, one of each common kind; the verifier must
// find no problems in them.
const char* const kGraphs[] = {"frozen", "while_loop", "functions", "variables",
                               "quantized"};

std::string TextOf(const std::string& name) {
  const auto text =
      ReadFile(absl::StrCat("graph/verify/testdata/", name, ".txt"));
  EXPECT_OK(text);
  return text.value_or("");
}

std::vector<GraphProblem> Problems(const GraphDef& graph,
                                   const VerifyOptions& options = {}) {
  auto problems = VerifyGraph(graph, options);
  EXPECT_OK(problems);
  return problems.ok() ? *std::move(problems) : std::vector<GraphProblem>();
}

// Returns a line for each problem.
std::string Messages(const GraphDef& graph) {
  std::vector<std::string> messages;
  for (const GraphProblem& problem : Problems(graph)) {
    messages.push_back(absl::StrCat(
        problem.kind == ProblemKind::kStructure ? "structure: " : "semantics: ",
        problem.message));
  }
  return absl::StrJoin(messages, "\n");
}

// Makes the graph of a case: the one that the first line names, or an empty
// one, with the following changes and additions.
GraphDef GraphOf(const std::string& input) {
  std::vector<std::string> lines = absl::StrSplit(input, '\n');
  std::string text = lines[0] == "empty" ? "" : TextOf(lines[0]);
  lines.erase(lines.begin());
  for (const std::string& line : lines) {
    std::vector<std::string> change = absl::StrSplit(line, " => ");
    if (change.size() == 1) {
      absl::StrAppend(&text, line, "\n");
      continue;
    }
    absl::StrReplaceAll({{"\\n", "\n"}}, &change[1]);
    EXPECT_NE(absl::StrReplaceAll({{change[0], change[1]}}, &text), 0) << line;
  }
  return GraphFromText(text);
}

TEST(VerifyGraph, SaysWhatIsWrong) {
  CheckGoldenCases(
      "graph/verify/verify_cases.txt",
      [](const std::string& input) { return Messages(GraphOf(input)); });
}

class ValidGraph : public testing::TestWithParam<const char*> {};

TEST_P(ValidGraph, HasNoProblem) {
  const GraphDef graph = GraphFromText(TextOf(GetParam()));
  EXPECT_EQ(Messages(graph), "");
  EXPECT_THAT(RunGraph(graph, {}, {}),
              FailsWith(HasSubstr(
                  "Must specify at least one target to fetch or execute")))
      << "TensorFlow itself does not accept the graph";
}

INSTANTIATE_TEST_SUITE_P(All, ValidGraph, testing::ValuesIn(kGraphs),
                         [](const auto& info) { return info.param; });

TEST(VerifyGraph, LooksAtShapesOnlyWhenAsked) {
  const GraphDef graph = GraphOf("frozen\n<?,3> => <?,5>");
  EXPECT_THAT(Problems(graph), SizeIs(1));
  EXPECT_THAT(Problems(graph, {/*shapes=*/false}), IsEmpty());
}

TEST(VerifyGraph, StopsAtTheLimit) {
  GraphDef graph;
  for (int i = 0; i < 100; ++i) graph.add_node()->set_op("NoOp");
  EXPECT_THAT(Problems(graph), SizeIs(20));
  VerifyOptions options;
  options.max_problems = 0;
  EXPECT_THAT(Problems(graph, options), SizeIs(100));
}

TEST(VerifyGraph, LongAndBinaryNamesStayReadable) {
  GraphDef graph;
  graph.add_node()->set_name(std::string(1 << 20, 'x') + "\n");
  graph.mutable_node(0)->set_op("\xff\n");
  for (const GraphProblem& problem : Problems(graph)) {
    EXPECT_LT(problem.message.size(), 1000);
    EXPECT_THAT(problem.message, Not(HasSubstr("\n")));
  }
}

// However a graph is damaged, the verifier must return.
constexpr int kByteRounds = 300;
constexpr int kFieldRounds = 600;

class GraphFuzz : public testing::TestWithParam<const char*> {
 protected:
  // Returns a number below `bound`.
  size_t Below(size_t bound) { return random_() % bound; }

  void Verify(const GraphDef& graph) {
    ASSERT_OK_AND_ASSIGN(auto problems, VerifyGraph(graph));
    for (const GraphProblem& problem : problems) {
      ASSERT_FALSE(problem.message.empty());
    }
  }

  // Returns the text of a value of the kind (string or number) of `value`.
  std::string OddValue(const GraphDef& graph, const std::string& value) {
    static constexpr int64_t kNumbers[] = {-1,        0,
                                           1,         2,
                                           3,         7,
                                           -2,        INT32_MAX,
                                           INT32_MIN, INT64_MAX,
                                           INT64_MIN, 4711,
                                           1 << 20,   int64_t{1} << 40};
    const int64_t number = kNumbers[Below(std::size(kNumbers))];
    if (value[0] != '"') {
      return Below(2) == 0 ? absl::StrCat(number) : absl::StrCat(Below(30));
    }
    const auto& node = graph.node(Below(graph.node_size()));
    const std::string strings[] = {node.name(),
                                   absl::StrCat(node.name(), ":", number),
                                   absl::StrCat("^", node.name()),
                                   node.op(),
                                   "",
                                   "\\377:x"};
    return absl::StrCat("\"", strings[Below(std::size(strings))], "\"");
  }

  // Changes, drops or repeats a value or message in the lines of a text
  // GraphDef.
  void Mutate(const GraphDef& graph, std::vector<std::string>* lines) {
    size_t at = Below(lines->size());
    while (absl::EndsWith((*lines)[at], "}")) at = Below(lines->size());
    std::string& line = (*lines)[at];
    const size_t value = line.find(": ");
    size_t end = at + 1;
    if (value == std::string::npos) {
      // A message ends with a bracket in the column of its first letter.
      const size_t indent = line.find_first_not_of(' ');
      while (end < lines->size() && (*lines)[end - 1].find('}') != indent) {
        ++end;
      }
    } else if (Below(8) != 0) {
      line.replace(value + 2, std::string::npos,
                   OddValue(graph, line.substr(value + 2)));
      return;
    }
    const std::vector<std::string> part(lines->begin() + at,
                                        lines->begin() + end);
    if (Below(2) == 0) {
      lines->insert(lines->begin() + end, part.begin(), part.end());
    } else {
      lines->erase(lines->begin() + at, lines->begin() + end);
    }
  }

  std::mt19937 random_{20240607};
};

TEST_P(GraphFuzz, DamagedBytes) {
  const std::string bytes =
      GraphFromText(TextOf(GetParam())).SerializeAsString();
  for (int round = 0; round < FuzzRounds(kByteRounds); ++round) {
    std::string damaged = bytes;
    for (size_t i = 0, count = 1 + Below(4); i < count; ++i) {
      damaged[Below(damaged.size())] = static_cast<char>(random_());
    }
    GraphDef graph;
    if (graph.ParsePartialFromString(damaged)) Verify(graph);
  }
}

TEST_P(GraphFuzz, DamagedFields) {
  const GraphDef original = GraphFromText(TextOf(GetParam()));
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(original, &text));
  const std::vector<std::string> whole =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  int read = 0;
  for (int round = 0; round < FuzzRounds(kFieldRounds); ++round) {
    std::vector<std::string> lines = whole;
    for (size_t i = 0, count = 1 + Below(3); i < count; ++i) {
      Mutate(original, &lines);
    }
    GraphDef graph;
    if (!google::protobuf::TextFormat::MergeFromString(
            absl::StrJoin(lines, "\n"), &graph))
      continue;
    ++read;
    Verify(graph);
  }
  EXPECT_GT(read, FuzzRounds(kFieldRounds) / 2);
}

INSTANTIATE_TEST_SUITE_P(All, GraphFuzz, testing::ValuesIn(kGraphs),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace requant::verify_test
