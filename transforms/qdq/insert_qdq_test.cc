#include <cmath>
#include <iterator>
#include <limits>
#include <random>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "base/testing/fuzz_rounds.h"
#include "graph/graph_io.h"
#include "graph/verify/verify.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/function.pb.h"
#include "transforms/testing/testing.h"

namespace requant::insert_qdq_test {
namespace {

using tensorflow::FunctionDef;

// Returns a projection in a function, as Tensordot makes it, with a variable.
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

// Returns the nodes of a function as a graph, so that they can be looked up.
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

// Inserts pairs, expecting success and a graph without problems.
TransformRun Insert(const std::string& text,
                    const std::string& parameters = "") {
  TransformRun run = TryToInsert(text, parameters);
  EXPECT_OK(run.status);
  EXPECT_THAT(Problems(run.graph), IsEmpty());
  return run;
}

// Returns a file with a range table that has one batch per entry.
std::string TableFile(
    const std::vector<std::pair<RangeKey, std::pair<float, float>>>& ranges) {
  RangeTable table;
  for (const auto& [key, range] : ranges) {
    RangeEntry& entry = table.FindOrAdd(key.first, key.second);
    entry.AddRange(range.first, range.second, {"test", 1});
  }
  return WriteTestFile("qdq_ranges.pb", SerializeRangeTable(table).value());
}

TEST(InsertQdq, PutsAPairBeforeEachInputInAGraph) {
  const TransformRun run = Insert(R"(
    x = Placeholder dtype=float shape=<2,2>
    w = float<2,2>{1,2,3,4}
    m = MatMul(x, w) T=float
  )");
  EXPECT_THAT(NodesOf(run.graph),
              ElementsAre("x", "w", "m_eightbit_min_x", "m_eightbit_max_x",
                          "m_eightbit_quantize_x", "m_dequantize",
                          "m_eightbit_min_w", "m_eightbit_max_w",
                          "m_eightbit_quantize_w", "m_dequantize_1", "m"));
  EXPECT_THAT(run.graph, HasNodes(R"(
    m = MatMul(m_dequantize, m_dequantize_1)
    m_eightbit_quantize_w = QuantizeV2(w, m_eightbit_min_w, m_eightbit_max_w)
    m_eightbit_min_x = float{-1}
    m_eightbit_max_x = float{1}
    m_eightbit_quantize_x = QuantizeV2(x, m_eightbit_min_x, m_eightbit_max_x)
        mode='SCALED' narrow_range=true
  )"));
}

TEST(InsertQdq, WritesPortsAsAFunctionDoes) {
  const TransformRun run = Insert(ProjectionGraph());
  const std::string quantize = "dot/MatMul_eightbit_quantize_dot/Reshape";
  EXPECT_THAT(BodyOf(run.graph, "project"),
              HasNodes(absl::Substitute(R"(
    $0 = QuantizeV2(dot/Reshape:output:0,
        dot/MatMul_eightbit_min_dot/Reshape:output:0,
        dot/MatMul_eightbit_max_dot/Reshape:output:0)
    dot/MatMul_dequantize = Dequantize($0:output:0, $0:output_min:0,
        $0:output_max:0)
    dot/MatMul = MatMul(dot/MatMul_dequantize:output:0,
        dot/MatMul_dequantize_1:output:0)
  )",
                                        quantize)));
  EXPECT_THAT(NodeNamed(BodyOf(run.graph, "project"),
                        "dot/MatMul_eightbit_quantize_dot/Read")
                  .input(0),
              "dot/Read:value:0");
}

TEST(InsertQdq, LeavesWeightsOrActivationsWhenAsked) {
  const auto projection = [](const std::string& inputs) {
    return BodyOf(Insert(ProjectionGraph(), "inputs=" + inputs).graph,
                  "project");
  };
  EXPECT_THAT(projection("activations"),
              HasNodes("dot/MatMul = MatMul(dot/MatMul_dequantize:output:0, "
                       "dot/Read:value:0)"));
  EXPECT_THAT(projection("weights"),
              HasNodes("dot/MatMul = MatMul(dot/Reshape:output:0, "
                       "dot/MatMul_dequantize:output:0)"));
}

// Queries, keys and values are made from the same tensor.
TEST(InsertQdq, QuantizesASharedInputOnce) {
  const TransformRun run = Insert(R"(
    x = Placeholder dtype=float shape=<2,2>
    w = float<2,2>{1}
    q = MatMul(x:0, w) T=float
    k = MatMul(x, w) T=float
    same = MatMul(x, x) T=float
  )",
                                  "inputs=activations");
  EXPECT_THAT(run.graph, HasNodes(R"(
    q = MatMul(q_dequantize, w)
    k = MatMul(q_dequantize, w)
    same = MatMul(q_dequantize, q_dequantize)
  )"));
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
  EXPECT_THAT(BodyOf(second.graph, "project"),
              HasNodes("dot/MatMul = MatMul(dot/MatMul_dequantize:output:0, "
                       "dot/MatMul_dequantize_1:output:0)"));
}

TEST(InsertQdq, WithoutAMatMulSaysSo) {
  const TransformRun run = Insert("x = Placeholder dtype=float");
  EXPECT_EQ(run.graph.node_size(), 1);
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("nothing to quantize")));
}

TEST(InsertQdq, TakesOtherNamesWhereItsOwnAreTaken) {
  const TransformRun run = Insert(R"(
    x = Placeholder dtype=float shape=<2,2>
    m_eightbit_quantize_x = Placeholder dtype=float shape=<2,2>
    m_dequantize = Placeholder dtype=float shape=<2,2>
    m = MatMul(x, m_dequantize) T=float
  )");
  EXPECT_THAT(run.graph,
              HasNodes("m = MatMul(m_dequantize_1, m_dequantize_2)"));
  EXPECT_EQ(NodeNamed(run.graph, "m_dequantize_1").input(0),
            "m_eightbit_quantize_x_1");
}

TEST(InsertQdq, TakesNoArgumentsNameInAFunction) {
  const TransformRun run = Insert(R"(
    function f(x, m_dequantize) -> (y=m:product:0) {
      m = MatMul(x, m_dequantize) T=float
    }
  )");
  EXPECT_THAT(BodyOf(run.graph, "f"),
              HasNodes("m = MatMul(m_dequantize_1:output:0, "
                       "m_dequantize_2:output:0)"));
}

TEST(InsertQdq, KeepsControlInputsDevicesAndColocations) {
  const GraphDef graph = GraphFromText(R"(
    x = Placeholder dtype=float shape=<2,2>
    first = NoOp
    m = MatMul(x, x, ^first) device:'/job:worker/device:CPU:1' T=float
        _class=['loc:@x']
    near = Identity(m) T=float _class=['loc:@m']
  )");
  const TransformRun run = MustTransform("insert_qdq", graph);
  EXPECT_THAT(run.graph,
              HasNodes("m = MatMul(m_dequantize, m_dequantize, ^first)"));
  for (const char* name : {"m_eightbit_min_x", "m_eightbit_max_x",
                           "m_eightbit_quantize_x", "m_dequantize"}) {
    EXPECT_EQ(NodeNamed(run.graph, name).device(), "/job:worker/device:CPU:1");
    EXPECT_FALSE(NodeNamed(run.graph, name).attr().contains("_class"));
  }
  EXPECT_TRUE(SameMessage(NodeNamed(run.graph, "near"), graph.node(3)));
  EXPECT_THAT(Problems(run.graph), IsEmpty());
}

// Otherwise the constants would be outside a loop of Enter and Exit.
TEST(InsertQdq, KeepsItsConstantsInTheLoop) {
  const TransformRun run = Insert(R"(
    x = Placeholder dtype=float shape=<2,2>
    enter = Enter(x) T=float frame_name='loop'
    m = MatMul(enter, enter) T=float
    exit = Exit(m) T=float
  )");
  EXPECT_THAT(NodeNamed(run.graph, "m_eightbit_min_enter").input(),
              ElementsAre("^enter"));
}

// The signature, results, attributes and all other nodes are unchanged.
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
  EXPECT_THAT(BodyOf(run.graph, "project"), HasNodes(R"(
    dot/MatMul_eightbit_min_dot/Reshape = float{-5}
    dot/MatMul_eightbit_max_dot/Reshape = float{5}
    dot/MatMul_eightbit_min_dot/Read = float{-.25}
    dot/MatMul_eightbit_max_dot/Read = float{.25}
  )"));
}

// With an empty range the kernels divide by zero.
TEST(InsertQdq, MakesRangesSymmetricAndNeverEmpty) {
  const auto expect = [](const std::string& parameters, float most) {
    const TransformRun run = Insert(R"(
      x = Placeholder dtype=float shape=<2,4>
      axis = int32{1}
      s = Split(axis, x) T=float num_split=2
      m = MatMul(s:1, s:1) T=float
    )",
                                    parameters);
    EXPECT_EQ(ScalarNamed(run.graph, "m_eightbit_min_s__port__1"), -most);
    EXPECT_EQ(ScalarNamed(run.graph, "m_eightbit_max_s__port__1"), most);
  };
  expect("min=-1, max=3", 3);
  expect("min=2, max=5", 5);
  expect("min=-1e-20, max=0", 1e-20f);
  for (float end : {0.0f, std::numeric_limits<float>::denorm_min(), 1e-37f}) {
    expect(absl::StrCat("method=minmax, ranges_file=\"",
                        TableFile({{{"s", 1}, {0, end}}}), "\""),
           1);
  }
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
  const TransformRun run = Insert(
      "function f(x) -> (y=m:product:0) {\n  m = MatMul(x, x) T=float\n}",
      absl::StrCat("ranges_file=\"", TableFile({}), "\""));
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("the graph does not call")));
  EXPECT_EQ(BodyOf(run.graph, "f").node_size(), 1);
}

TEST(InsertQdq, RefusesParametersThatMeanNothing) {
  for (const auto& [parameters, why] :
       Cases{{"op=MatMuI", "did you mean \"MatMul\"?"},
             {"inputs=all", "activations, weights or both"},
             {"min=1, max=1", "min=1 is not below max=1"},
             {"min=-1e-40, max=1e-40", "too near to zero for a scale"},
             {"max=inf", "takes a float, not \"inf\""},
             {"missing=guess", "error or skip"},
             {"method=best", "minmax, percentile or mse"},
             {"ranges_file=/nowhere", "/nowhere"}}) {
    EXPECT_THAT(TryToInsert(ProjectionGraph(), parameters).status,
                FailsWith(HasSubstr(why)));
  }
}

TEST(InsertQdq, RefusesRangesThatAreNotFinite) {
  const std::string table = TableFile({{{"x", 0}, {0, INFINITY}}});
  EXPECT_THAT(
      TryToInsert("x = Placeholder dtype=float; m = MatMul(x, x) T=float",
                  absl::StrCat("ranges_file=\"", table, "\", method=minmax"))
          .status,
      FailsWith(HasSubstr("\"x:0\" has 1 value that is not finite")));
}

// Returns branches and a loop's body; even those called twice are edited once.
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
              ElementsAre(HasSubstr(
                  "6 pairs for 3 activations and 3 weights in 3 functions")));
}

// Returns the graph with up to four of its names, ops, inputs and attribute
// names exchanged at random.
GraphDef Damaged(const std::string& text, int seed) {
  std::mt19937 random(seed);
  // Every other part is a string.
  std::vector<std::string> parts = absl::StrSplit(text, '"');
  const auto any = [&] { return 2 * (random() % (parts.size() / 2)) + 1; };
  for (int changes = 1 + random() % 4; changes > 0; --changes) {
    const std::string odd[] = {
        "",           ":",          "^",
        "nothing",    "a:0",        "Dequantize",
        "Enter",      "Const",      "m_dequantize",
        parts[any()], parts[any()], parts[any()] + ":product:0"};
    parts[any()] = odd[random() % std::size(odd)];
  }
  return GraphFromText(absl::StrJoin(parts, "\""));
}

// Whatever the damage, the transform returns and adds no problem.
TEST(InsertQdq, SurvivesDamagedGraphs) {
  const std::string graphs[] = {ProjectionGraph(), NestedGraph()};
  int edited = 0;
  for (int round = 0; round < FuzzRounds(500); ++round) {
    const GraphDef damaged = Damaged(graphs[round % 2], round);
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
