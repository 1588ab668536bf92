#include <algorithm>
#include <cstddef>
#include <random>

#include "absl/strings/str_join.h"
#include "base/testing/fuzz_rounds.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "graph/verify/verify.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/function.pb.h"
#include "transforms/testing/testing.h"

namespace requant::insert_qdq_test {
namespace {

using tensorflow::FunctionDef;

std::string MatMul(const std::string& name, const std::string& a,
                   const std::string& b) {
  return Node(name, "MatMul", {a, b}, {kFloat});
}

// A projection as Tensordot makes it, in a function, with a variable.
std::string ProjectionGraph() {
  return GraphText(R"(
    x = Placeholder dtype=float shape=<2,2>
    v = VarHandleOp dtype=float shape=<2,2>
    call = StatefulPartitionedCall(x, v) f=@project Tin=[float,resource]
        Tout=[float]
    function project(x, v:resource) -> (y=dot/MatMul:product:0) {
      dot/shape = int32<2>{2,2}
      dot/Reshape = Reshape(x, dot/shape:output:0) T=float
      dot/Read = ReadVariableOp(v) dtype=float
      dot/MatMul = MatMul(dot/Reshape:output:0, dot/Read:value:0) T=float
    }
  )");
}

TransformRun TryToInsert(const std::string& text,
                         const std::string& parameters = "") {
  return RunTransform(absl::StrCat("insert_qdq(", parameters, ")"),
                      GraphFromText(text));
}

TransformRun Insert(const std::string& text,
                    const std::string& parameters = "") {
  TransformRun run = TryToInsert(text, parameters);
  EXPECT_OK(run.status);
  return run;
}

// The nodes of a function as a graph, for what looks nodes up.
GraphDef BodyOf(const GraphDef& graph, const std::string& function) {
  GraphDef body;
  for (const FunctionDef& candidate : graph.library().function()) {
    if (candidate.signature().name() == function) {
      *body.mutable_node() = candidate.node_def();
    }
  }
  EXPECT_GT(body.node_size(), 0) << function;
  return body;
}

std::vector<std::string> Problems(const GraphDef& graph, bool shapes = true) {
  std::vector<std::string> messages;
  VerifyOptions options;
  options.max_problems = 0;
  options.shapes = shapes;
  const auto problems = VerifyGraph(graph, options);
  EXPECT_OK(problems);
  for (const GraphProblem& problem : *problems) {
    messages.push_back(problem.message);
  }
  return messages;
}

// A range table of one batch each.
std::string TableFile(
    const std::vector<std::pair<RangeKey, std::pair<float, float>>>& ranges) {
  RangeTable table;
  for (const auto& [key, range] : ranges) {
    RangeEntry& entry = table.FindOrAdd(key.first, key.second);
    entry.AddRange(range.first, range.second, {"test", 1});
  }
  const std::string path = testing::TempDir() + "qdq_ranges.pb";
  EXPECT_OK(WriteRangeTable(table, path));
  return path;
}

TEST(InsertQdq, PutsAPairBeforeEachInputInAGraph) {
  const TransformRun run =
      Insert(Placeholder("x", {2, 2}) + FloatConst("w", {2, 2}, {1, 2, 3, 4}) +
             MatMul("m", "x", "w"));
  EXPECT_THAT(NodesOf(run.graph),
              ElementsAre("x", "w", "m_eightbit_min_x", "m_eightbit_max_x",
                          "m_eightbit_quantize_x", "m_dequantize",
                          "m_eightbit_min_w", "m_eightbit_max_w",
                          "m_eightbit_quantize_w", "m_dequantize_1", "m"));
  EXPECT_THAT(NodeNamed(run.graph, "m").input(),
              ElementsAre("m_dequantize", "m_dequantize_1"));
  EXPECT_THAT(NodeNamed(run.graph, "m_eightbit_quantize_w").input(),
              ElementsAre("w", "m_eightbit_min_w", "m_eightbit_max_w"));
  EXPECT_EQ(ScalarNamed(run.graph, "m_eightbit_min_x"), -1);
  EXPECT_EQ(ScalarNamed(run.graph, "m_eightbit_max_x"), 1);
  const NodeDef& quantize = NodeNamed(run.graph, "m_eightbit_quantize_x");
  EXPECT_EQ(quantize.attr().at("mode").s(), "SCALED");
  EXPECT_TRUE(quantize.attr().at("narrow_range").b());
  EXPECT_THAT(Problems(run.graph), IsEmpty());
}

TEST(InsertQdq, WritesPortsAsAFunctionDoes) {
  const TransformRun run = Insert(ProjectionGraph());
  const GraphDef body = BodyOf(run.graph, "project");
  const std::string quantize = "dot/MatMul_eightbit_quantize_dot/Reshape";
  EXPECT_THAT(NodeNamed(body, quantize).input(),
              ElementsAre("dot/Reshape:output:0",
                          "dot/MatMul_eightbit_min_dot/Reshape:output:0",
                          "dot/MatMul_eightbit_max_dot/Reshape:output:0"));
  EXPECT_THAT(NodeNamed(body, "dot/MatMul_dequantize").input(),
              ElementsAre(quantize + ":output:0", quantize + ":output_min:0",
                          quantize + ":output_max:0"));
  EXPECT_THAT(NodeNamed(body, "dot/MatMul_eightbit_quantize_dot/Read").input(0),
              "dot/Read:value:0");
  EXPECT_THAT(NodeNamed(body, "dot/MatMul").input(),
              ElementsAre("dot/MatMul_dequantize:output:0",
                          "dot/MatMul_dequantize_1:output:0"));
  EXPECT_THAT(Problems(run.graph), IsEmpty());
}

TEST(InsertQdq, LeavesWeightsOrActivationsWhenAsked) {
  const GraphDef activations =
      BodyOf(Insert(ProjectionGraph(), "inputs=activations").graph, "project");
  EXPECT_THAT(
      NodeNamed(activations, "dot/MatMul").input(),
      ElementsAre("dot/MatMul_dequantize:output:0", "dot/Read:value:0"));
  const GraphDef weights =
      BodyOf(Insert(ProjectionGraph(), "inputs=weights").graph, "project");
  EXPECT_THAT(
      NodeNamed(weights, "dot/MatMul").input(),
      ElementsAre("dot/Reshape:output:0", "dot/MatMul_dequantize:output:0"));
}

// Queries, keys and values are made from the same tensor.
TEST(InsertQdq, QuantizesASharedInputOnce) {
  const TransformRun run =
      Insert(Placeholder("x", {2, 2}) + FloatConst("w", {2, 2}, {1}) +
                 MatMul("q", "x:0", "w") + MatMul("k", "x", "w") +
                 MatMul("same", "x", "x"),
             "inputs=activations");
  EXPECT_THAT(NodeNamed(run.graph, "q").input(),
              ElementsAre("q_dequantize", "w"));
  EXPECT_THAT(NodeNamed(run.graph, "k").input(),
              ElementsAre("q_dequantize", "w"));
  EXPECT_THAT(NodeNamed(run.graph, "same").input(),
              ElementsAre("q_dequantize", "q_dequantize"));
  EXPECT_EQ(run.graph.node_size(), 5 + 4);
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("1 pair for 4 activations")));
}

TEST(InsertQdq, OfWhatIsQuantizedAlreadyChangesNothing) {
  const TransformRun once = Insert(ProjectionGraph());
  const TransformRun twice = MustTransform("insert_qdq", once.graph);
  EXPECT_TRUE(SameMessage(once.graph, twice.graph));
  EXPECT_THAT(twice.notes, ElementsAre(HasSubstr("2 inputs left as before")));
  EXPECT_THAT(twice.warnings, IsEmpty());
}

TEST(InsertQdq, OfWeightsAfterActivationsIsTheSecondPair) {
  const TransformRun first = Insert(ProjectionGraph(), "inputs=activations");
  const TransformRun second = MustTransform("insert_qdq", first.graph);
  EXPECT_THAT(NodeNamed(BodyOf(second.graph, "project"), "dot/MatMul").input(),
              ElementsAre("dot/MatMul_dequantize:output:0",
                          "dot/MatMul_dequantize_1:output:0"));
}

TEST(InsertQdq, WithoutAMatMulSaysSo) {
  const TransformRun run = Insert(Placeholder("x"));
  EXPECT_EQ(run.graph.node_size(), 1);
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("nothing to quantize")));
}

TEST(InsertQdq, TakesOtherNamesWhereItsOwnAreTaken) {
  const TransformRun run = Insert(
      Placeholder("x", {2, 2}) + Placeholder("m_eightbit_quantize_x", {2, 2}) +
          Placeholder("m_dequantize", {2, 2}) +
          MatMul("m", "x", "m_dequantize"),
      "");
  EXPECT_THAT(NodeNamed(run.graph, "m").input(),
              ElementsAre("m_dequantize_1", "m_dequantize_2"));
  EXPECT_EQ(NodeNamed(run.graph, "m_dequantize_1").input(0),
            "m_eightbit_quantize_x_1");
  EXPECT_THAT(Problems(run.graph), IsEmpty());
}

TEST(InsertQdq, TakesNoArgumentsNameInAFunction) {
  const TransformRun run = Insert(
      Library({Function("f", {"x", "m_dequantize"}, {{"y", "m:product:0"}},
                        MatMul("m", "x", "m_dequantize"))}));
  EXPECT_THAT(
      NodeNamed(BodyOf(run.graph, "f"), "m").input(),
      ElementsAre("m_dequantize_1:output:0", "m_dequantize_2:output:0"));
  EXPECT_THAT(Problems(run.graph), IsEmpty());
}

TEST(InsertQdq, KeepsControlInputsDevicesAndColocations) {
  const std::string device = "/job:worker/device:CPU:1";
  GraphDef graph = GraphFromText(
      absl::StrCat(Placeholder("x", {2, 2}), Node("first", "NoOp", {}),
                   Node("m", "MatMul", {"x", "x", "^first"},
                        {kFloat, {"_class", "list { s: 'loc:@x' }"}}),
                   Node("near", "Identity", {"m"},
                        {kFloat, {"_class", "list { s: 'loc:@m' }"}})));
  graph.mutable_node(2)->set_device(device);
  const TransformRun run = MustTransform("insert_qdq", graph);
  EXPECT_THAT(NodeNamed(run.graph, "m").input(),
              ElementsAre("m_dequantize", "m_dequantize", "^first"));
  for (const char* name : {"m_eightbit_min_x", "m_eightbit_max_x",
                           "m_eightbit_quantize_x", "m_dequantize"}) {
    EXPECT_EQ(NodeNamed(run.graph, name).device(), device);
    EXPECT_FALSE(NodeNamed(run.graph, name).attr().contains("_class"));
  }
  EXPECT_TRUE(SameMessage(NodeNamed(run.graph, "near"), graph.node(3)));
  EXPECT_THAT(Problems(run.graph), IsEmpty());
}

// In a loop of Enter and Exit a constant would else be outside of it.
TEST(InsertQdq, KeepsItsConstantsInTheLoop) {
  const std::string frame = "s: 'loop'";
  const TransformRun run = Insert(
      Placeholder("x", {2, 2}) +
      Node("enter", "Enter", {"x"}, {kFloat, {"frame_name", frame}}) +
      MatMul("m", "enter", "enter") + Node("exit", "Exit", {"m"}, {kFloat}));
  EXPECT_THAT(NodeNamed(run.graph, "m_eightbit_min_enter").input(),
              ElementsAre("^enter"));
  EXPECT_THAT(Problems(run.graph), IsEmpty());
}

// Signature, results, attributes and the nodes that are not concerned.
TEST(InsertQdq, LeavesTheRestOfAFunction) {
  GraphDef graph = GraphFromText(ProjectionGraph());
  FunctionDef* function = graph.mutable_library()->mutable_function(0);
  (*function->mutable_attr())["_input_shapes"].mutable_list()->add_i(7);
  (*(*function->mutable_arg_attr())[0].mutable_attr())["_user"].set_s("u");
  (*function->mutable_control_ret())["done"] = "dot/MatMul";
  function->mutable_signature()->add_control_output("done");
  const TransformRun run = MustTransform("insert_qdq", graph);
  FunctionDef expected = *function;
  *expected.mutable_node_def() = run.graph.library().function(0).node_def();
  EXPECT_TRUE(SameMessage(run.graph.library().function(0), expected));
  EXPECT_TRUE(SameMessage(NodeNamed(BodyOf(run.graph, "project"), "dot/Read"),
                          NodeNamed(BodyOf(graph, "project"), "dot/Read")));
  EXPECT_THAT(Problems(run.graph), IsEmpty());
}

TEST(InsertQdq, TakesEachTensorsOwnRange) {
  const std::string table = TableFile({{{"project::dot/Reshape", 0}, {-2, 5}},
                                       {{"project::dot/Read", 0}, {-.25, .125}},
                                       {{"x", 0}, {-9, 9}}});
  const TransformRun run =
      Insert(ProjectionGraph(),
             absl::StrCat("ranges_file=\"", table, "\", method=minmax"));
  const GraphDef body = BodyOf(run.graph, "project");
  EXPECT_EQ(ScalarNamed(body, "dot/MatMul_eightbit_min_dot/Reshape"), -5);
  EXPECT_EQ(ScalarNamed(body, "dot/MatMul_eightbit_max_dot/Reshape"), 5);
  EXPECT_EQ(ScalarNamed(body, "dot/MatMul_eightbit_min_dot/Read"), -.25);
  EXPECT_EQ(ScalarNamed(body, "dot/MatMul_eightbit_max_dot/Read"), .25);
}

TEST(InsertQdq, OfQuint8HasBothEndsOfTheRange) {
  const std::string table = TableFile({{{"project::dot/Reshape", 0}, {-2, 5}}});
  const TransformRun run =
      Insert(ProjectionGraph(), absl::StrCat("ranges_file=\"", table,
                                             "\", method=minmax, type=quint8, "
                                             "inputs=activations"));
  const GraphDef body = BodyOf(run.graph, "project");
  EXPECT_EQ(ScalarNamed(body, "dot/MatMul_eightbit_min_dot/Reshape"), -2);
  EXPECT_EQ(ScalarNamed(body, "dot/MatMul_eightbit_max_dot/Reshape"), 5);
  EXPECT_EQ(NodeNamed(body, "dot/MatMul_dequantize").attr().at("mode").s(),
            "MIN_FIRST");
  EXPECT_THAT(Problems(run.graph), IsEmpty());
}

TEST(InsertQdq, NamesATensorWithoutARange) {
  const std::string table = TableFile({{{"project::dot/Reshape", 0}, {-2, 5}}});
  const std::string given =
      absl::StrCat("ranges_file=\"", table, "\", method=minmax");
  EXPECT_THAT(
      TryToInsert(ProjectionGraph(), given).status,
      FailsWith(HasSubstr("no range for \"project::dot/Read:0\", which node "
                          "\"dot/MatMul\" of function \"project\" reads")));
  const TransformRun skipped =
      Insert(ProjectionGraph(), given + ", missing=skip");
  EXPECT_THAT(skipped.warnings, ElementsAre(HasSubstr("project::dot/Read:0")));
  EXPECT_THAT(
      NodeNamed(BodyOf(skipped.graph, "project"), "dot/MatMul").input(),
      ElementsAre("dot/MatMul_dequantize:output:0", "dot/Read:value:0"));
}

// No run of the graph can observe what it does not call.
TEST(InsertQdq, NeedsNoRangesForFunctionsThatTheGraphDoesNotCall) {
  const std::string table = TableFile({});
  const TransformRun run =
      Insert(Library({Function("f", {"x"}, {{"y", "m:product:0"}},
                               MatMul("m", "x", "x"))}),
             absl::StrCat("ranges_file=\"", table, "\""));
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("the graph does not call")));
  EXPECT_EQ(BodyOf(run.graph, "f").node_size(), 1);
}

TEST(InsertQdq, RefusesParametersThatMeanNothing) {
  const auto why = [](const std::string& parameters) {
    return std::string(
        TryToInsert(ProjectionGraph(), parameters).status.message());
  };
  EXPECT_THAT(why("op=MatMuI"), HasSubstr("did you mean \"MatMul\"?"));
  EXPECT_THAT(why("inputs=all"), HasSubstr("activations, weights or both"));
  EXPECT_THAT(why("min=1, max=1"), HasSubstr("min=1 is not below max=1"));
  EXPECT_THAT(why("min=-1e-40, max=1e-40"),
              HasSubstr("too near to zero for a scale"));
  EXPECT_THAT(why("max=inf"), HasSubstr("takes a float, not \"inf\""));
  EXPECT_THAT(why("missing=guess"), HasSubstr("error or skip"));
  EXPECT_THAT(why("method=best"), HasSubstr("minmax, percentile or mse"));
  EXPECT_THAT(why("mode=MIN_FIRST"), HasSubstr("qint8 goes with mode=SCALED"));
  EXPECT_THAT(why("ranges_file=/nowhere"), HasSubstr("/nowhere"));
}

TEST(InsertQdq, RefusesRangesThatAreNotFinite) {
  const std::string table = TableFile({{{"x", 0}, {0, INFINITY}}});
  const TransformRun run =
      TryToInsert(Placeholder("x", {2, 2}) + MatMul("m", "x", "x"),
                  absl::StrCat("ranges_file=\"", table, "\", method=minmax"));
  EXPECT_THAT(run.status,
              FailsWith(HasSubstr("\"x:0\" had values that are not finite")));
}

// Both branches and a loop's body, some of them called twice, each edited once.
std::string NestedGraph() {
  return GraphText(R"(
    x = Placeholder dtype=float shape=<2,2>
    w = float<2,2>{1}
    choose = Placeholder dtype=float
    one = StatefulPartitionedCall(x, w) f=@body Tin=[float,float]
        Tout=[float,float]
    if = StatelessIf(choose, one, w) Tcond=float Tin=[float,float]
        Tout=[float,float] then_branch=@body else_branch=@other
    loop = StatelessWhile(if, w) T=[float,float] body=@body cond=@cond
    function body(a, b) -> (y=m:product:0, z=b) {
      m = MatMul(a, b) T=float
    }
    function other(a, b) -> (y=m:product:0, z=b) {
      m = MatMul(a, b) T=float
    }
    function cond(a, b) -> (y=m:product:0) {
      m = MatMul(a, b) T=float
    }
  )");
}

TEST(InsertQdq, EditsEachFunctionOnce) {
  const TransformRun run = Insert(NestedGraph());
  EXPECT_EQ(run.graph.library().function_size(), 3);
  for (const FunctionDef& function : run.graph.library().function()) {
    EXPECT_EQ(function.node_def_size(), 1 + 8) << function.signature().name();
  }
  EXPECT_THAT(run.notes,
              ElementsAre(HasSubstr("6 pairs for 3 activations and 3 weights "
                                    "in 3 functions")));
}

// Names, ops, inputs and whole nodes exchanged at random: whatever comes of it,
// the transform returns, and adds no problem to a graph.
class Damage {
 public:
  explicit Damage(int seed) : random_(seed) {}

  GraphDef Of(GraphDef graph) {
    const int changes = 1 + Below(4);
    for (int i = 0; i < changes; ++i) Change(&graph);
    return graph;
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }

  auto* Nodes(GraphDef* graph) {
    const int functions = graph->library().function_size();
    const int chosen = Below(functions + 1);
    return chosen == functions ? graph->mutable_node()
                               : graph->mutable_library()
                                     ->mutable_function(chosen)
                                     ->mutable_node_def();
  }

  std::string OddName(const NodeDef& node) {
    static const auto* names = new std::vector<std::string>{
        "",        ":",        "^",           "x",     "a:0",    "m:product:0",
        "nothing", "body",     "Dequantize",  "Const", "MatMul", "While",
        "Enter",   "Identity", "m_dequantize"};
    const size_t chosen = Below(names->size() + 2);
    if (chosen == names->size()) return node.name();
    if (chosen > names->size()) return node.name() + ":product:0";
    return (*names)[chosen];
  }

  void Change(GraphDef* graph) {
    auto* nodes = Nodes(graph);
    if (nodes->empty()) return;
    NodeDef* node = nodes->Mutable(Below(nodes->size()));
    const NodeDef& other = (*nodes)[Below(nodes->size())];
    switch (Below(9)) {
      case 0:
        node->set_name(OddName(other));
        break;
      case 1:
        node->set_op(OddName(other));
        break;
      case 2:
      case 3:
        if (node->input_size() == 0) break;
        node->set_input(Below(node->input_size()), OddName(other));
        break;
      case 4:
        node->add_input(OddName(other));
        break;
      case 5:
        node->clear_attr();
        break;
      case 6: {
        const NodeDef copy = other;
        *nodes->Add() = copy;
        break;
      }
      case 7:
        nodes->DeleteSubrange(Below(nodes->size()), 1);
        break;
      case 8:
        if (graph->library().function_size() == 0) break;
        graph->mutable_library()
            ->mutable_function(Below(graph->library().function_size()))
            ->mutable_signature()
            ->set_name(OddName(other));
        break;
    }
  }

  std::mt19937 random_;
};

TEST(InsertQdq, SurvivesDamagedGraphs) {
  const GraphDef graphs[] = {GraphFromText(ProjectionGraph()),
                             GraphFromText(NestedGraph())};
  int edited = 0;
  for (int round = 0; round < FuzzRounds(500); ++round) {
    const GraphDef damaged = Damage(round).Of(graphs[round % 2]);
    const TransformRun run = RunTransform("insert_qdq", damaged);
    if (!run.status.ok()) {
      ASSERT_THAT(run.status,
                  FailsWith(HasSubstr("the graph has a function named")));
      continue;
    }
    edited += SameMessage(run.graph, damaged) ? 0 : 1;
    const std::vector<std::string> before = Problems(damaged, false);
    const std::vector<std::string> after = Problems(run.graph, false);
    ASSERT_LE(after.size(), before.size())
        << "round " << round << ": " << absl::StrJoin(after, "; ") << " after "
        << absl::StrJoin(before, "; ");
  }
  EXPECT_GT(edited, 50);
}

}  // namespace
}  // namespace requant::insert_qdq_test
