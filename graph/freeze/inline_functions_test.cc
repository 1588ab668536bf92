#include "graph/freeze/inline_functions.h"

#include "absl/strings/substitute.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/testing/testing.h"

namespace requant::inline_functions_test {
namespace {

// f(a) = (a + a, a).
constexpr char kTwice[] = R"(
  x = Placeholder dtype=float
  function f(a) -> (twice=sum:z:0, once=a) {
    sum = Add(a, a) T=float
  }
)";

std::string WithTwice(const std::string& nodes) { return kTwice + nodes; }

// Inlines what "y" needs, which must be this many `calls`.
GraphDef Inlined(int calls, const std::string& text) {
  GraphDef graph = GraphFromText(text);
  InlineOptions options;
  options.outputs = {"y"};
  const auto count = InlineFunctions(options, &graph);
  EXPECT_OK(count);
  EXPECT_EQ(count.value_or(-1), calls);
  EXPECT_OK(KeepNeeded({"y"}, &graph));
  return graph;
}

float ValueOf(const GraphDef& graph, float x, const std::string& fetch) {
  return MustRunGraph(graph, {{"x", Tensor(x)}}, {fetch})[0].scalar<float>()();
}

std::string Error(const std::string& text,
                  int64_t max_nodes = InlineOptions().max_nodes) {
  GraphDef graph = GraphFromText(text);
  InlineOptions options;
  options.outputs = {"y"};
  options.max_nodes = max_nodes;
  return std::string(InlineFunctions(options, &graph).status().message());
}

TEST(InlineFunctions, KeepsTheNameAndPortsOfAnOutput) {
  const GraphDef graph = Inlined(1, WithTwice(R"(
    y = PartitionedCall(x) f=@f Tin=[float] Tout=[float,float]
  )"));
  EXPECT_EQ(NodeNamed(graph, "y").op(), "IdentityN");
  EXPECT_THAT(NodeNamed(graph, "y").input(), ElementsAre("y/sum", "x"));
  EXPECT_EQ(ValueOf(graph, 3, "y:0"), 6);
  EXPECT_EQ(ValueOf(graph, 3, "y:1"), 3);
}

TEST(InlineFunctions, LetsReadersReadTheBody) {
  const GraphDef graph = Inlined(2, WithTwice(R"(
    a = PartitionedCall(x) f=@f Tin=[float] Tout=[float,float]
    b = PartitionedCall(a) f=@f Tin=[float] Tout=[float,float]
    y = Neg(b) T=float
  )"));
  EXPECT_EQ(graph.node_size(), 4);
  EXPECT_EQ(graph.library().function_size(), 0);
  EXPECT_EQ(ValueOf(graph, 3, "y"), -12);
}

TEST(InlineFunctions, TakesANodeWhoseOpIsAFunction) {
  EXPECT_EQ(ValueOf(Inlined(1, WithTwice("y = f(x)")), 2, "y"), 4);
}

TEST(InlineFunctions, GivesFreeNamesToBodies) {
  const GraphDef graph = Inlined(1, WithTwice(R"(
    y = PartitionedCall(y/sum) f=@f Tin=[float] Tout=[float,float]
    y/sum = Neg(x) T=float
  )"));
  EXPECT_EQ(ValueOf(graph, 1, "y"), -2);
}

// A call in the branch that is not taken must not give a value, even when its
// function is a constant.
TEST(InlineFunctions, StaysDeadInADeadBranch) {
  const GraphDef graph = Inlined(1, R"(
    x = Placeholder dtype=float
    function one(a) -> (r=c:output:0) {
      c = float{1}
    }
    no = bool{false}
    switch = Switch(x, no) T=float
    y = Merge(switch, call) T=float N=2
    call = PartitionedCall(switch:1) f=@one Tin=[float] Tout=[float]
  )");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ValueOf(graph, 7, "y"), 7);
}

TEST(InlineFunctions, RefusesRecursion) {
  EXPECT_THAT(Error(R"(
    x = Placeholder dtype=float
    function f(a) -> (r=c:output:0) {
      c = PartitionedCall(a) f=@g Tin=[float] Tout=[float]
    }
    function g(a) -> (r=c:output:0) {
      c = PartitionedCall(a) f=@f Tin=[float] Tout=[float]
    }
    y = PartitionedCall(x) f=@f Tin=[float] Tout=[float]
  )"),
              AllOf(HasSubstr("calls itself"), HasSubstr("f → g → f")));
}

TEST(InlineFunctions, RefusesACallWithTooFewInputs) {
  EXPECT_THAT(
      Error(WithTwice("y = PartitionedCall f=@f Tin=[] Tout=[float,float]")),
      HasSubstr("gives 0 inputs to the function \"f\", which takes 1"));
}

// A function of one node, and one that calls another twice, one call after the
// other; there are calls that nothing needs.
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
  // Three nodes of the graph, three of f2, three each of two f1, four Relus.
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
