#include "graph/freeze/inline_functions.h"

#include <cstdint>

#include "absl/strings/substitute.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/testing/testing.h"

namespace requant::inline_functions_test {
namespace {

using tensorflow::FunctionDef;

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

TEST(InlineFunctions, StopsAtTheLimitOfNodes) {
  EXPECT_THAT(
      Error(WithTwice(
                "y = PartitionedCall(x) f=@f Tin=[float] Tout=[float,float]"),
            3),
      HasSubstr("more than 3 nodes"));
}

TEST(InlineFunctions, RefusesACallWithTooFewInputs) {
  EXPECT_THAT(
      Error(WithTwice("y = PartitionedCall f=@f Tin=[] Tout=[float,float]")),
      HasSubstr("gives 0 inputs to the function \"f\", which takes 1"));
}

constexpr int64_t kLimit = 1'000'000'000;

int64_t SizeOf(const std::string& text) {
  const GraphDef graph = GraphFromText("x = Placeholder\n" + text);
  const auto called = [&graph](const NodeDef& node) -> const FunctionDef* {
    for (const FunctionDef& function : graph.library().function()) {
      if (function.signature().name() == node.op()) return &function;
    }
    return nullptr;
  };
  return InlinedSize(graph, {"y"}, called, kLimit);
}

// A function of one node, and one that calls another twice, one call after the
// other.
constexpr char kRelu[] = "function f0(a) -> (r=r:r:0) {\n r = Relu(a)\n}\n";
std::string Twice(const std::string& name, const std::string& callee) {
  return absl::Substitute(
      "function $0(a) -> (r=d:r:0) {\n c = $1(a); d = $1(c:r:0)\n}\n", name,
      callee);
}

TEST(InlinedSize, CountsABodyForEachCall) {
  EXPECT_EQ(SizeOf("y = Relu(x)"), 2);
  EXPECT_EQ(SizeOf(kRelu + Twice("g", "f0") + "y = g(x)"), 2 + 2 + 2);
}

TEST(InlinedSize, LeavesOutCallsThatNothingNeeds) {
  EXPECT_EQ(SizeOf(R"(
    function f(a) -> (r=r:r:0) {
      r = Relu(a)
      dead = h(r:r:0)
    }
    function h(a) -> (r=r:r:0) {
      r = Relu(a)
      s = Relu(a)
    }
    y = f(x)
    dead = h(x)
  )"),
            3 + 2);
}

TEST(InlinedSize, StopsAtTheLimitHoweverOftenFunctionsCall) {
  std::string functions = kRelu;
  for (int i = 1; i <= 200; ++i) {
    functions += Twice(absl::StrCat("f", i), absl::StrCat("f", i - 1));
  }
  // Bodies of 2 nodes, doubling, and 1024 Relus.
  EXPECT_EQ(SizeOf(functions + "y = f10(x)"), 2 + 2 * 1023 + 1024);
  EXPECT_EQ(SizeOf(functions + "y = f200(x)"), kLimit);
}

TEST(InlinedSize, EndsWhereFunctionsCallThemselves) {
  EXPECT_EQ(SizeOf(Twice("f", "g") + Twice("g", "f") + "y = f(x)"),
            2 + 2 + 2 + 2);
}

}  // namespace
}  // namespace requant::inline_functions_test
