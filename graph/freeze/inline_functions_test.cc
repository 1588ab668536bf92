#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "base/testing/golden_cases.h"
#include "graph/freeze/freeze_parts.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/testing/testing.h"

namespace requant::inline_functions_test {
namespace {

std::string Error(const std::string& text,
                  int64_t max_nodes = InlineOptions().max_nodes) {
  GraphDef graph = GraphFromText(text);
  InlineOptions options;
  options.outputs = {"y"};
  options.max_nodes = max_nodes;
  return std::string(InlineFunctions(options, &graph).status().message());
}

// Inlines what "y" needs. Returns the error, or the number of calls, the graph,
// and for x = 3 each of the tensors listed in the first line.
std::string InlineCase(const std::string& input) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(input, absl::MaxSplits('\n', 1));
  GraphDef graph = GraphFromText(parts.second);
  InlineOptions options;
  options.outputs = {"y"};
  const auto count = InlineFunctions(options, &graph);
  if (!count.ok()) return std::string(count.status().message());
  EXPECT_OK(KeepNeeded({"y"}, &graph));
  std::string text = absl::StrCat(LinesOf(graph), *count, " calls");
  for (const std::string& fetch :
       std::vector<std::string>(absl::StrSplit(parts.first, ' '))) {
    const Tensor value = MustRunGraph(graph, {{"x", Tensor(3.0f)}}, {fetch})[0];
    absl::StrAppend(&text, "\n", fetch, " is ", value.DebugString());
  }
  return text;
}

TEST(InlineFunctions, FollowsTheRules) {
  CheckGoldenCases("graph/freeze/inline_cases.txt", InlineCase);
}

// A call in the branch that is not taken must not produce a value, even if its
// function is a constant.
TEST(InlineFunctions, StaysDeadInADeadBranch) {
  GraphDef graph = GraphFromText(R"(
    x = Placeholder dtype=float
    function one(a) -> (r=c:output:0) {
      c = float{1}
    }
    no = bool{false}
    switch = Switch(x, no) T=float
    y = Merge(switch, call) T=float N=2
    call = PartitionedCall(switch:1) f=@one Tin=[float] Tout=[float]
  )");
  InlineOptions options;
  options.outputs = {"y"};
  ASSERT_OK(InlineFunctions(options, &graph));
  ASSERT_OK(KeepNeeded({"y"}, &graph));
  for (int i = 0; i < 20; ++i) {
    const auto y = MustRunGraph(graph, {{"x", Tensor(7.0f)}}, {"y"});
    EXPECT_EQ(y[0].scalar<float>()(), 7);
  }
}

// Returns functions, each of which calls the previous one twice in sequence
// (the first has one node), and calls that nothing needs.
std::string Doubling(int functions) {
  std::string text = R"(
    x = Placeholder dtype=float
    dead = PartitionedCall(x) f=@f0 Tin=[float] Tout=[float]
    function f0(a) -> (r=r:activations:0) {
      r = Relu(a) T=float
    }
  )";
  for (int i = 1; i <= functions; ++i) {
    absl::SubstituteAndAppend(&text, R"(
    function f$0(a) -> (r=d:output:0) {
      c = PartitionedCall(a) f=@f$1 Tin=[float] Tout=[float]
      d = PartitionedCall(c:output:0) f=@f$1 Tin=[float] Tout=[float]
      dead = PartitionedCall(a) f=@f$1 Tin=[float] Tout=[float]
    }
    )",
                              i, i - 1);
  }
  return absl::Substitute(
      "$0\n y = PartitionedCall(x) f=@f$1 Tin=[float] Tout=[float]", text,
      functions);
}

TEST(InlineFunctions, CountsTheBodyOfEachCallThatIsNeeded) {
  // This is three nodes of the graph and f2, three for each f1, and four Relus.
  EXPECT_EQ(Error(Doubling(2), 3 + 3 + 2 * 3 + 4), "");
  EXPECT_THAT(Error(Doubling(2), 3 + 3 + 2 * 3 + 3),
              HasSubstr("more than 15 nodes"));
}

TEST(InlineFunctions, StopsAtTheLimitBeforeItMakesANode) {
  GraphDef graph = GraphFromText(Doubling(200));
  InlineOptions options;
  options.outputs = {"y"};
  EXPECT_THAT(InlineFunctions(options, &graph),
              FailsWith(HasSubstr("more than 5000000 nodes")));
  EXPECT_EQ(graph.node_size(), 3);
  options.max_nodes = 2;
  EXPECT_FALSE(InlineFunctions(options, &graph).ok());
  options.outputs = {"x"};
  EXPECT_OK(InlineFunctions(options, &graph));
}

}  // namespace
}  // namespace requant::inline_functions_test
