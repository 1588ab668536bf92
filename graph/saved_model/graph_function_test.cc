#include "graph/saved_model/graph_function.h"

#include "graph/tensorflow_library.h"
#include "graph/testing/testing.h"

namespace requant::graph_function_test {
namespace {

bool IsCaptured(const NodeDef& node) { return node.op() == "Const"; }

class MakeFunction : public testing::Test {
 protected:
  MakeFunction() { EXPECT_OK(LoadTensorFlow()); }

  absl::StatusOr<GraphFunction> Make(const GraphDef& graph,
                                     const GraphPart& part) {
    return GraphFunctionMaker(graph, IsCaptured).Make(part);
  }
};

// Returns the graph with a node "call" that calls the function, and the
// function.
GraphDef WithCall(const GraphDef& graph, const GraphPart& part,
                  const GraphFunction& function) {
  GraphDef result = graph;
  *result.mutable_library()->add_function() = function.definition;
  NodeDef* call = result.add_node();
  call->set_name("call");
  call->set_op("PartitionedCall");
  (*call->mutable_attr())["f"].mutable_func()->set_name(part.name);
  const auto& signature = function.definition.signature();
  auto* in = (*call->mutable_attr())["Tin"].mutable_list();
  for (const auto& argument : signature.input_arg()) {
    in->add_type(argument.type());
  }
  auto* out = (*call->mutable_attr())["Tout"].mutable_list();
  for (const auto& argument : signature.output_arg()) {
    out->add_type(argument.type());
  }
  for (const std::string& input : part.inputs) call->add_input(input);
  for (const std::string& node : function.captured) call->add_input(node);
  return result;
}

constexpr char kSplitGraph[] = R"(
    x = Placeholder dtype=float shape=<?,4>
    input_0 = Placeholder dtype=float shape=<>
    axis = int32{1}
    w = float<2>{3,5}
    parts = Split(axis, x) num_split=2 T=float
    scaled = Mul(parts:1, w) T=float
    sum = AddV2(scaled, parts) T=float
    two = IdentityN(sum, scaled) T=[float,float]
    all = AddV2(two:1, input_0) T=float)";

TEST_F(MakeFunction, ComputesWhatTheGraphDoes) {
  const GraphDef graph = GraphFromText(kSplitGraph);
  const GraphPart part = {
      "f", {"x:0", "input_0:0"}, {"all:0", "two:0", "parts:1", "x:0"}, {}};
  ASSERT_OK_AND_ASSIGN(const GraphFunction function, Make(graph, part));
  EXPECT_THAT(function.captured, UnorderedElementsAre("w", "axis"));
  EXPECT_FALSE(function.definition.signature().is_stateful());
  const std::vector<std::pair<std::string, Tensor>> feeds = {
      {"x", TensorOf<float>({1, 4}, {1, 2, 3, 4})},
      {"input_0", TensorOf<float>({}, {10})}};
  auto expected = MustRunGraph(graph, feeds, {"all", "two", "parts:1"});
  expected.push_back(feeds[0].second);
  const auto actual = MustRunGraph(WithCall(graph, part, function), feeds,
                                   {"call", "call:1", "call:2", "call:3"});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(ValuesOf(actual[i]), ValuesOf(expected[i])) << i;
  }
  EXPECT_THAT(ValuesOf(actual[0]), ElementsAre(19, 30));
}

TEST_F(MakeFunction, TakesTheDefaultsOfMissingAttributes) {
  const GraphDef graph = GraphFromText(R"(
      x = Placeholder dtype=float shape=<?,3>
      shape = Shape(x) T=float
      sum = AddV2(shape, shape) T=int32)");
  const GraphPart part = {"f", {"x"}, {"sum"}, {}};
  ASSERT_OK_AND_ASSIGN(const GraphFunction function, Make(graph, part));
  const auto sums =
      MustRunGraph(WithCall(graph, part, function),
                   {{"x", TensorOf<float>({1, 3}, {1, 2, 3})}}, {"call"});
  EXPECT_THAT(ValuesOf<int>(sums[0]), ElementsAre(2, 6));
}

TEST_F(MakeFunction, WaitsForNodesOfItsOwnOnly) {
  const GraphDef graph = GraphFromText(R"(
      x = Placeholder dtype=float
      w = float<2>{3,5}
      check = CheckNumerics(x) T=float message='x'
      y = Mul(x, w, ^check, ^w, ^x) T=float)");
  ASSERT_OK_AND_ASSIGN(const GraphFunction function,
                       Make(graph, {"f", {"x"}, {"y"}, {}}));
  const NodeDef& y = function.definition.node_def(1);
  EXPECT_THAT(y.input(), ElementsAre("input_0", "captured_1", "^check"));
}

TEST_F(MakeFunction, RunsEffectsEvenIfNobodyUsesTheResult) {
  const GraphDef graph = GraphFromText(R"(
      done = NoOp
      table = HashTableV2 key_dtype=int64 value_dtype=float shared_name='t'
      keys = int64<2>{1,2}
      values = float<2>{3,4}
      fill = LookupTableImportV2(table, keys, values) Tin=int64 Tout=float)");
  ASSERT_OK_AND_ASSIGN(const GraphFunction function,
                       Make(graph, {"f", {}, {}, {"fill"}}));
  const auto& definition = function.definition;
  EXPECT_THAT(definition.signature().control_output(), ElementsAre("fill"));
  EXPECT_EQ(definition.control_ret().at("fill"), "fill");
  EXPECT_TRUE(definition.signature().is_stateful());
  // The name "done" is taken.
  EXPECT_EQ(definition.ret().at("output_0"), "done_:output:0");
  EXPECT_EQ(definition.signature().output_arg(0).type(), tensorflow::DT_INT32);
}

TEST_F(MakeFunction, TellsTheTypesOfVariables) {
  const GraphDef graph = GraphFromText(R"(
      v = VarHandleOp dtype=float shape=<2,3> shared_name='v'
      read = ReadVariableOp(v) dtype=float)");
  GraphFunctionMaker maker(
      graph, [](const NodeDef& node) { return node.op() == "VarHandleOp"; });
  ASSERT_OK_AND_ASSIGN(const GraphFunction function,
                       maker.Make({"f", {}, {"read"}, {}}));
  const auto& argument = function.definition.signature().input_arg(0);
  EXPECT_EQ(argument.type(), tensorflow::DT_RESOURCE);
  ASSERT_EQ(argument.handle_data_size(), 1);
  EXPECT_EQ(argument.handle_data(0).dtype(), tensorflow::DT_FLOAT);
  EXPECT_EQ(argument.handle_data(0).shape().dim(1).size(), 3);
}

TEST_F(MakeFunction, NamesWhatIsMissing) {
  const GraphDef graph = GraphFromText(R"(
      x = Placeholder dtype=float
      y = Neg(x, ^gone) T=float
      z = Fantasy(x)
      out = Identity(z) T=float)");
  EXPECT_THAT(Make(graph, {"f", {"x"}, {"nothing"}, {}}).status().message(),
              HasSubstr("there is no node nothing"));
  EXPECT_THAT(Make(graph, {"f", {"x"}, {"y"}, {}}).status().message(),
              HasSubstr("there is no node gone"));
  EXPECT_THAT(Make(graph, {"f", {"x"}, {"out"}, {}}).status().message(),
              HasSubstr("node z has an unknown op"));
  EXPECT_THAT(Make(graph, {"f", {"x"}, {"y:1"}, {}}).status().message(),
              HasSubstr("there is no node gone"));
  EXPECT_THAT(Make(graph, {"f", {}, {"x:7"}, {}}).status().message(),
              HasSubstr("node x has no output 7"));
}

}  // namespace
}  // namespace requant::graph_function_test
