#include <map>

#include "absl/strings/substitute.h"
#include "graph/graph_index.h"
#include "graph/testing/testing.h"
#include "transforms/qdq/qdq_sites.h"

namespace requant::qdq_observers_test {
namespace {

// Three functions: y = a times a, once more times a; one that calls that; and
// one that reads a variable.
constexpr char kFunctions[] = R"(
  x = Placeholder dtype=float
  function f(a) -> (y=n:product:0) {
    m = MatMul(a, a) T=float
    n = MatMul(m:product:0, a) T=float
  }
  function g(b) -> (y=inner:output:0) {
    p = MatMul(b, b) T=float
    inner = PartitionedCall(p:product:0) f=@f Tin=[float] Tout=[float]
  }
  function h(a, handle:resource) -> (y=m:product:0) {
    read = ReadVariableOp(handle) dtype=float
    m = MatMul(a, read:value:0) T=float
  }
)";

// Returns the graph of `lines` and the functions.
GraphDef WithFunctions(const std::string& lines) {
  return GraphFromText(kFunctions + lines);
}

QdqObservers Make(const GraphDef& graph, const std::string& output) {
  auto made = MakeQdqObservers(graph, {}, {output});
  EXPECT_OK(made);
  return made.ok() ? *std::move(made) : QdqObservers();
}

// Returns the graph as the session has it after the extension. Names are taken
// once, and every input is there.
std::map<std::string, NodeDef> Extended(const GraphDef& graph,
                                        const QdqObservers& observers) {
  std::map<std::string, NodeDef> nodes;
  for (const GraphDef* part : {&graph, &observers.added}) {
    for (const NodeDef& node : part->node()) {
      EXPECT_TRUE(nodes.emplace(node.name(), node).second) << node.name();
    }
  }
  for (const auto& [name, node] : nodes) {
    for (const std::string& input : node.input()) {
      EXPECT_EQ(nodes.count(std::string(NodeOf(input))), 1)
          << name << " reads " << input;
    }
  }
  for (const QdqObserver& observer : observers.observers) {
    for (const std::string& tensor : observer.tensors) {
      EXPECT_EQ(nodes[std::string(NodeOf(tensor))].op(), "Identity");
    }
  }
  return nodes;
}

// Returns "key:output" of each observed tensor, its number of places and "w"
// for a weight; then "not key" of the others, with "?" for those that run
// conditionally.
std::vector<std::string> Show(const std::string& lines,
                              const std::string& output) {
  const GraphDef graph = WithFunctions(lines);
  const QdqObservers observers = Make(graph, output);
  Extended(graph, observers);
  std::vector<std::string> shown;
  for (const QdqObserver& observer : observers.observers) {
    shown.push_back(
        absl::StrCat(observer.range.first, ":", observer.range.second, " x",
                     observer.tensors.size(), observer.is_weight ? " w" : ""));
  }
  for (const NotObserved& key : observers.not_observed) {
    shown.push_back(
        absl::StrCat("not ", key.range.first, key.is_needed ? "?" : ""));
  }
  return shown;
}

TEST(QdqObservers, SeeTensorsThatTheOutputNeeds) {
  EXPECT_THAT(Show(R"(
                w = float<2,2>{1,2,3,4}
                m = MatMul(x, w) T=float
                dead = MatMul(m, w) T=float
                deader = MatMul(dead, w) T=float
              )",
                   "m"),
              ElementsAre("x:0 x1", "w:0 x1 w", "m:0 x1", "not dead"));
}

TEST(QdqObservers, SeeABodyAtEachOfItsCalls) {
  constexpr char kCalls[] = R"(
    first = PartitionedCall(x) f=@f Tin=[float] Tout=[float]
    second = PartitionedCall(first) f=@f Tin=[float] Tout=[float]
  )";
  EXPECT_THAT(Show(kCalls, "second:0"), ElementsAre("f::a:0 x2", "f::m:0 x2"));
  const GraphDef graph = WithFunctions(kCalls);
  const QdqObservers observers = Make(graph, "second:0");
  std::map<std::string, NodeDef> nodes = Extended(graph, observers);
  // The second call's argument is what the first one's body gives.
  std::vector<std::string> arguments;
  for (const std::string& tensor : observers.observers[0].tensors) {
    arguments.push_back(nodes[std::string(NodeOf(tensor))].input(0));
  }
  EXPECT_THAT(arguments, UnorderedElementsAre("x", "first/n"));
}

TEST(QdqObservers, SeeBodiesInsideBodies) {
  EXPECT_THAT(
      Show("call = PartitionedCall(x) f=@g Tin=[float] Tout=[float]", "call"),
      ElementsAre("f::a:0 x1", "f::m:0 x1", "g::b:0 x1"));
}

// 33 kB of functions that stand for more nodes than any memory holds.
TEST(QdqObservers, RefuseFunctionsThatStandForTooManyNodes) {
  std::string lines = kFunctions, callee = "f";
  for (int i = 0; i < 40; ++i) {
    const std::string name = absl::StrCat("twice_", i);
    absl::StrAppend(&lines, absl::Substitute(R"(
      function $0(a) -> (r=d:output:0) {
        c = PartitionedCall(a) f=@$1 Tin=[float] Tout=[float]
        d = PartitionedCall(c:output:0) f=@$1 Tin=[float] Tout=[float]
      }
    )",
                                             name, callee));
    callee = name;
  }
  absl::StrAppend(&lines, "y = PartitionedCall(x) f=@", callee,
                  " Tin=[float] Tout=[float]");
  EXPECT_THAT(
      MakeQdqObservers(GraphFromText(lines), {}, {"y"}),
      FailsWith(HasSubstr(
          "with its functions inlined the graph has more than 1000000 nodes")));
}

TEST(QdqObservers, RepeatWhatReadsACallAndShareTheRest) {
  constexpr char kAround[] = R"(
    call = PartitionedCall(x) f=@f Tin=[float] Tout=[float]
    relu = Relu(call) T=float
    m = MatMul(relu, x) T=float
  )";
  EXPECT_THAT(Show(kAround, "m"),
              ElementsAre("relu:0 x1", "x:0 x1", "f::a:0 x1", "f::m:0 x1"));
  EXPECT_EQ(
      NodeNamed(Make(WithFunctions(kAround), "m").added, "requant_observe/relu")
          .input(0),
      "call/n");
}

TEST(QdqObservers, ShareVariables) {
  constexpr char kVariable[] = R"(
    v = VarHandleOp dtype=float
    call = PartitionedCall(x, v) f=@h Tin=[float,resource] Tout=[float]
  )";
  EXPECT_THAT(Show(kVariable, "call"),
              ElementsAre("h::a:0 x1", "h::read:0 x1 w"));
  const GraphDef added = Make(WithFunctions(kVariable), "call").added;
  EXPECT_THAT(NodesOf(added, "VarHandleOp"), IsEmpty());
  for (const std::string& read : NodesOf(added, "ReadVariableOp")) {
    EXPECT_EQ(NodeNamed(added, read).input(0), "v");
  }
}

TEST(QdqObservers, SayWhatRunsConditionally) {
  constexpr char kBranch[] = R"(
    c = Placeholder dtype=bool
    if = If(c, x) Tcond=bool Tin=[float] Tout=[float] then_branch=@f
        else_branch=@f
  )";
  EXPECT_THAT(Show(kBranch, "if"), ElementsAre("not f::a?", "not f::m?"));
  // For another signature nothing of it runs.
  EXPECT_THAT(Show(kBranch, "x"), ElementsAre("not f::a", "not f::m"));
}

TEST(QdqObservers, LeaveTheBodiesOfLoopsOut) {
  EXPECT_THAT(Show(R"(
                enter = Enter(x) T=float frame_name='loop'
                m = MatMul(enter, enter) T=float
                exit = Exit(m) T=float
                after = MatMul(exit, x) T=float
              )",
                   "after"),
              ElementsAre("exit:0 x1", "x:0 x1", "not enter?"));
}

}  // namespace
}  // namespace requant::qdq_observers_test
