#include "transforms/qdq/qdq_observers.h"

#include <map>

#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::qdq_observers_test {
namespace {

const AttributeText kDtype = {"dtype", "type: DT_FLOAT"};

std::string MatMul(const std::string& name, const std::string& a,
                   const std::string& b) {
  return Node(name, "MatMul", {a, b}, {kFloat});
}

// Returns y = a times a, once more times a.
std::string Squares() {
  return Function("f", {"a"}, {{"y", "n:product:0"}},
                  MatMul("m", "a", "a") + MatMul("n", "m:product:0", "a"));
}

QdqObservers Make(const GraphDef& graph, const std::string& output) {
  auto made = MakeQdqObservers(graph, {}, {output});
  EXPECT_OK(made);
  return made.ok() ? *std::move(made) : QdqObservers();
}

// Returns "key:output" of each, its number of tensors and "w" for a weight.
std::vector<std::string> Show(const QdqObservers& observers) {
  std::vector<std::string> shown;
  for (const QdqObserver& observer : observers.observers) {
    shown.push_back(
        absl::StrCat(observer.range.first, ":", observer.range.second, " x",
                     observer.tensors.size(), observer.is_weight ? " w" : ""));
  }
  return shown;
}

// Returns the nodes, with "?" for those that run conditionally.
std::vector<std::string> ShowNotObserved(const QdqObservers& observers) {
  std::vector<std::string> shown;
  for (const NotObserved& key : observers.not_observed) {
    shown.push_back(absl::StrCat(key.range.first, key.is_needed ? "?" : ""));
  }
  return shown;
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
      EXPECT_EQ(nodes.count(std::string(ParseTensorName(input).node)), 1)
          << name << " reads " << input;
    }
  }
  for (const QdqObserver& observer : observers.observers) {
    for (const std::string& tensor : observer.tensors) {
      EXPECT_EQ(nodes[std::string(ParseTensorName(tensor).node)].op(),
                "Identity");
    }
  }
  return nodes;
}

TEST(QdqObservers, SeeTensorsOfTheGraph) {
  const GraphDef graph = GraphFromText(
      absl::StrCat(Placeholder("x"), FloatConst("w", {2, 2}, {1, 2, 3, 4}),
                   MatMul("m", "x", "w"), MatMul("dead", "m", "w"),
                   MatMul("deader", "dead", "w")));
  const QdqObservers observers = Make(graph, "m");
  EXPECT_THAT(Show(observers), ElementsAre("x:0 x1", "w:0 x1 w", "m:0 x1"));
  // Only that which the output needs.
  EXPECT_THAT(ShowNotObserved(observers), ElementsAre("dead"));
  Extended(graph, observers);
}

TEST(QdqObservers, SeeABodyAtEachOfItsCalls) {
  const GraphDef graph = GraphFromText(
      absl::StrCat(Placeholder("x"), Call("first", "f", {"x"}),
                   Call("second", "f", {"first"}), Library({Squares()})));
  const QdqObservers observers = Make(graph, "second:0");
  EXPECT_THAT(Show(observers), ElementsAre("f::a:0 x2", "f::m:0 x2"));
  EXPECT_THAT(observers.not_observed, IsEmpty());
  std::map<std::string, NodeDef> nodes = Extended(graph, observers);
  // The second call's argument is what the first one's body gives.
  std::vector<std::string> arguments;
  for (const std::string& tensor : observers.observers[0].tensors) {
    arguments.push_back(
        nodes[std::string(ParseTensorName(tensor).node)].input(0));
  }
  EXPECT_THAT(arguments, UnorderedElementsAre("x", "first/n"));
}

TEST(QdqObservers, SeeBodiesInsideBodies) {
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x"), Call("call", "g", {"x"}),
      Library({Squares(), Function("g", {"b"}, {{"y", "inner:output:0"}},
                                   MatMul("p", "b", "b") +
                                       Call("inner", "f", {"p:product:0"}))})));
  const QdqObservers observers = Make(graph, "call");
  EXPECT_THAT(Show(observers),
              ElementsAre("f::a:0 x1", "f::m:0 x1", "g::b:0 x1"));
  Extended(graph, observers);
}

// 33 kB of functions that stand for more nodes than any memory holds.
TEST(QdqObservers, RefuseFunctionsThatStandForTooManyNodes) {
  std::vector<std::string> functions = {Squares()};
  std::string callee = "f";
  for (int i = 0; i < 40; ++i) {
    const std::string name = absl::StrCat("twice_", i);
    functions.push_back(
        Function(name, {"a"}, {{"r", "d:output:0"}},
                 Call("c", callee, {"a"}) + Call("d", callee, {"c:output:0"})));
    callee = name;
  }
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x"), Call("y", callee, {"x"}), Library(functions)));
  EXPECT_THAT(
      MakeQdqObservers(graph, {}, {"y"}),
      FailsWith(HasSubstr(
          "with its functions inlined the graph has more than 1000000 nodes")));
}

TEST(QdqObservers, RepeatWhatReadsACallAndShareTheRest) {
  const GraphDef graph = GraphFromText(
      absl::StrCat(Placeholder("x"), Call("call", "f", {"x"}),
                   Node("relu", "Relu", {"call"}, {kFloat}),
                   MatMul("m", "relu", "x"), Library({Squares()})));
  const QdqObservers observers = Make(graph, "m");
  EXPECT_THAT(Show(observers),
              ElementsAre("relu:0 x1", "x:0 x1", "f::a:0 x1", "f::m:0 x1"));
  const std::map<std::string, NodeDef> nodes = Extended(graph, observers);
  EXPECT_EQ(nodes.at("relu").input(0), "call");
  EXPECT_EQ(nodes.at("requant_observe/relu").input(0), "call/n");
}

TEST(QdqObservers, ShareVariables) {
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x"), Node("v", "VarHandleOp", {}, {kDtype}),
      Call("call", "f", {"x", "v"}, "DT_FLOAT, DT_RESOURCE"),
      Library({Function("f", {"a", "handle:resource"}, {{"y", "m:product:0"}},
                        Node("read", "ReadVariableOp", {"handle"}, {kDtype}) +
                            MatMul("m", "a", "read:value:0"))})));
  const QdqObservers observers = Make(graph, "call");
  EXPECT_THAT(Show(observers), ElementsAre("f::a:0 x1", "f::read:0 x1 w"));
  for (const NodeDef& node : observers.added.node()) {
    EXPECT_NE(node.op(), "VarHandleOp");
    if (node.op() == "ReadVariableOp") {
      EXPECT_EQ(node.input(0), "v");
    }
  }
}

TEST(QdqObservers, SayWhatRunsConditionally) {
  const GraphDef graph = GraphFromText(
      absl::StrCat(Placeholder("x"),
                   Node("c", "Placeholder", {}, {{"dtype", "type: DT_BOOL"}}),
                   Node("if", "If", {"c", "x"},
                        {{"Tcond", "type: DT_BOOL"},
                         {"Tin", "list { type: DT_FLOAT }"},
                         {"Tout", "list { type: DT_FLOAT }"},
                         {"then_branch", "func { name: \"f\" }"},
                         {"else_branch", "func { name: \"f\" }"}}),
                   Library({Squares()})));
  const QdqObservers observers = Make(graph, "if");
  EXPECT_THAT(observers.observers, IsEmpty());
  EXPECT_THAT(ShowNotObserved(observers), ElementsAre("f::a?", "f::m?"));
  // For another signature nothing of it runs.
  EXPECT_THAT(ShowNotObserved(Make(graph, "x")), ElementsAre("f::a", "f::m"));
}

TEST(QdqObservers, LeaveTheBodiesOfLoopsOut) {
  const AttributeText frame = {"frame_name", "s: \"loop\""};
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x"), Node("enter", "Enter", {"x"}, {kFloat, frame}),
      MatMul("m", "enter", "enter"), Node("exit", "Exit", {"m"}, {kFloat}),
      MatMul("after", "exit", "x")));
  const QdqObservers observers = Make(graph, "after");
  EXPECT_THAT(Show(observers), ElementsAre("exit:0 x1", "x:0 x1"));
  EXPECT_THAT(ShowNotObserved(observers), ElementsAre("enter?"));
}

TEST(QdqObservers, RefuseOpsWithoutSites) {
  const auto made = MakeQdqObservers(GraphFromText(Placeholder("x")),
                                     QdqSiteOptions{{"Relu"}}, {"x"});
  EXPECT_THAT(made, FailsWith(HasSubstr("\"Relu\"")));
}

}  // namespace
}  // namespace requant::qdq_observers_test
