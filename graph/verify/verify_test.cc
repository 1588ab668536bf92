#include "graph/verify/verify.h"

#include "graph/testing/testing.h"
#include "graph/testing/verify_test_graphs.h"

namespace requant::verify_test {
namespace {

std::vector<GraphProblem> Problems(const GraphDef& graph,
                                   const VerifyOptions& options = {}) {
  auto problems = VerifyGraph(graph, options);
  EXPECT_OK(problems);
  return problems.ok() ? *std::move(problems) : std::vector<GraphProblem>();
}

std::vector<std::string> Messages(const GraphDef& graph) {
  std::vector<std::string> messages;
  for (const GraphProblem& problem : Problems(graph)) {
    messages.push_back(absl::StrCat(
        problem.kind == ProblemKind::kStructure ? "structure: " : "semantics: ",
        problem.message));
  }
  return messages;
}

class ValidGraph : public testing::TestWithParam<NamedGraph> {};

TEST_P(ValidGraph, HasNoProblem) {
  const GraphDef graph = GraphFromText(GetParam().text);
  EXPECT_THAT(Messages(graph), IsEmpty());
  auto run = RunGraph(graph, {}, {});
  EXPECT_THAT(run, FailsWith(HasSubstr(
                       "Must specify at least one target to fetch or execute")))
      << "TensorFlow itself does not accept the graph";
}

INSTANTIATE_TEST_SUITE_P(All, ValidGraph, testing::ValuesIn(ValidGraphs()),
                         [](const auto& info) { return info.param.name; });

// The frozen graph, for tests that break one thing in it.
GraphDef Frozen() { return GraphFromText(ValidGraphs()[0].text); }
GraphDef Functions() { return GraphFromText(ValidGraphs()[2].text); }

NodeDef* Node(const std::string& name, GraphDef* graph) {
  return MutableNode(graph, name);
}

tensorflow::AttrValue& Attribute(const std::string& node,
                                 const std::string& name, GraphDef* graph) {
  return (*Node(node, graph)->mutable_attr())[name];
}

TEST(VerifyGraph, AnEmptyGraphIsFine) {
  EXPECT_THAT(Messages(GraphDef()), IsEmpty());
}

TEST(VerifyGraph, ReportsEmptyAndRepeatedNames) {
  GraphDef graph = Frozen();
  graph.add_node()->set_op("NoOp");
  *graph.add_node() = *Node("init", &graph);
  EXPECT_THAT(Messages(graph),
              ElementsAre("structure: node number 9 (op \"NoOp\") has no name",
                          "structure: two nodes are named \"init\""));
}

TEST(VerifyGraph, ReportsInputsThatNameNothing) {
  GraphDef graph = Frozen();
  Node("add", &graph)->set_input(1, "gone:1");
  Node("init", &graph)->set_input(0, "^lost");
  EXPECT_THAT(
      Messages(graph),
      ElementsAre("structure: node \"add\" (BiasAdd) reads \"gone:1\", but no "
                  "node is named \"gone\"",
                  "structure: node \"init\" (NoOp) reads \"^lost\", but no "
                  "node is named \"lost\""));
}

TEST(VerifyGraph, ReportsPortsOutOfRange) {
  GraphDef graph = Frozen();
  Node("scores", &graph)->set_input(1, "split:2");
  EXPECT_THAT(Messages(graph),
              ElementsAre("structure: node \"scores\" (AddV2) reads "
                          "\"split:2\", but that node (Split) has 2 outputs"));
}

TEST(VerifyGraph, ReportsControlInputsBeforeDataInputs) {
  GraphDef graph = Frozen();
  Node("matmul", &graph)->set_input(0, "^x");
  Node("matmul", &graph)->set_input(1, "x");
  Node("matmul", &graph)->add_input("w");
  EXPECT_THAT(Messages(graph),
              ElementsAre("structure: node \"matmul\" (MatMul) has the data "
                          "input \"x\" after a control input"));
}

TEST(VerifyGraph, ReportsCyclesWithTheirFirstNames) {
  GraphDef graph;
  for (int i = 0; i < 8; ++i) {
    AddNodes(absl::StrCat("n", i, " = NoOp(^n", (i + 1) % 8, ")"), &graph);
  }
  EXPECT_THAT(
      Messages(graph),
      ElementsAre("structure: node \"n7\" (NoOp) depends on its own output: "
                  "\"n7\" -> \"n6\" -> \"n5\" -> \"n4\" -> \"n3\" -> ... (3 "
                  "more) -> \"n7\""));
}

TEST(VerifyGraph, AnEdgeBackToMergeIsACycleUnlessNextIterationGivesIt) {
  GraphDef graph = GraphFromText(ValidGraphs()[1].text);
  Node("next", &graph)->set_op("Identity");
  EXPECT_THAT(Messages(graph),
              ElementsAre(HasSubstr("depends on its own output")));
}

TEST(VerifyGraph, ReportsAnUnknownOpOnceWithASuggestion) {
  GraphDef graph = Frozen();
  Node("matmul", &graph)->set_op("MatMull");
  *graph.add_node() = *Node("matmul", &graph);
  graph.mutable_node(9)->set_name("other");
  EXPECT_THAT(
      Messages(graph),
      ElementsAre("semantics: node \"matmul\" (MatMull) has an unknown "
                  "op, as has one other node (did you mean \"MatMul\"?)"));
}

TEST(VerifyGraph, ReportsMissingAttributesButKnowsDefaults) {
  GraphDef graph = Frozen();
  Node("matmul", &graph)->mutable_attr()->erase("T");
  EXPECT_THAT(Messages(graph),
              ElementsAre("semantics: node \"matmul\" (MatMul) lacks the "
                          "attribute \"T\" (type)"));
}

TEST(VerifyGraph, ReportsUnknownAttributesExceptPrivateOnes) {
  GraphDef graph = Frozen();
  Attribute("matmul", "_mine", &graph).set_b(true);
  Attribute("matmul", "transpose_c", &graph).set_b(true);
  EXPECT_THAT(Messages(graph),
              ElementsAre("semantics: node \"matmul\" (MatMul) has an "
                          "attribute \"transpose_c\" that its op does not know "
                          "(did you mean \"transpose_a\"?)"));
}

TEST(VerifyGraph, ReportsAttributesOfTheWrongKind) {
  GraphDef graph = Frozen();
  Attribute("matmul", "transpose_a", &graph).set_i(1);
  Attribute("add", "T", &graph).set_type(tensorflow::DT_STRING);
  EXPECT_THAT(
      Messages(graph),
      ElementsAre(AllOf(HasSubstr("bad attribute \"transpose_a\""),
                        HasSubstr("'int' when 'bool' expected")),
                  AllOf(HasSubstr("bad attribute \"T\""),
                        HasSubstr("not in the list of allowed values")),
                  HasSubstr("takes string as input 0 but \"matmul\" gives "
                            "float"),
                  HasSubstr("takes string as input 1 but \"b\" gives float"),
                  HasSubstr("\"add\" gives string")));
}

TEST(VerifyGraph, ReportsTypesBeyondTheEnum) {
  GraphDef graph = Frozen();
  Attribute("x", "dtype", &graph)
      .set_type(static_cast<tensorflow::DataType>(4711));
  EXPECT_THAT(Messages(graph), ElementsAre(HasSubstr("\"dtype\"")));
}

TEST(VerifyGraph, ReportsWrongNumbersOfInputs) {
  GraphDef graph = Frozen();
  Node("matmul", &graph)->mutable_input()->RemoveLast();
  Node("x", &graph)->add_input("b");
  EXPECT_THAT(Messages(graph),
              ElementsAre("semantics: node \"x\" (Placeholder) takes 0 inputs "
                          "but has 1",
                          "semantics: node \"matmul\" (MatMul) takes 2 inputs "
                          "but has 1"));
}

TEST(VerifyGraph, ReportsTypeMismatchesBetweenNodes) {
  GraphDef graph = Frozen();
  Node("matmul", &graph)->set_input(0, "axis");
  EXPECT_THAT(Messages(graph),
              ElementsAre("semantics: node \"matmul\" (MatMul) takes float as "
                          "input 0 but \"axis\" gives int32"));
}

TEST(VerifyGraph, APlainTensorCannotStandForAReference) {
  GraphDef graph = GraphFromText(ValidGraphs()[3].text);
  Node("assign", &graph)->set_input(0, "value");
  EXPECT_THAT(Messages(graph),
              ElementsAre("semantics: node \"assign\" (Assign) takes float_ref "
                          "as input 0 but \"value\" gives float"));
}

TEST(VerifyGraph, ReportsShapesThatDoNotFit) {
  GraphDef graph = Frozen();
  Attribute("x", "shape", &graph).mutable_shape()->mutable_dim(1)->set_size(5);
  EXPECT_THAT(
      Messages(graph),
      ElementsAre(AllOf(HasSubstr("node \"matmul\" (MatMul) has inputs of "
                                  "shape [?,5], [3,2], which it cannot take"),
                        HasSubstr("5 and 3"))));
  EXPECT_THAT(Problems(graph, {/*shapes=*/false}), IsEmpty());
}

TEST(VerifyGraph, ShapeChecksKnowTheValuesOfConstants) {
  GraphDef graph = Frozen();
  Attribute("axis", "value", &graph).mutable_tensor()->set_int_val(0, 7);
  EXPECT_THAT(Messages(graph), ElementsAre(HasSubstr("\"split\" (Split)")));
}

TEST(VerifyGraph, ReportsImpossibleShapeAttributes) {
  GraphDef graph = Frozen();
  Attribute("x", "shape", &graph).mutable_shape()->mutable_dim(1)->set_size(-7);
  EXPECT_THAT(Messages(graph),
              ElementsAre(HasSubstr("node \"x\" (Placeholder) has an "
                                    "impossible shape in its attribute "
                                    "\"shape\"")));
}

TEST(VerifyGraph, ReportsConstantsThatDoNotFit) {
  GraphDef graph = Frozen();
  auto* content = Attribute("b", "value", &graph).mutable_tensor();
  content->set_tensor_content("abc");
  auto* values = Attribute("axis", "value", &graph).mutable_tensor();
  values->add_int_val(2);
  auto* shape = Attribute("w", "value", &graph).mutable_tensor();
  for (auto& dim : *shape->mutable_tensor_shape()->mutable_dim()) {
    dim.set_size(int64_t{1} << 40);
  }
  EXPECT_THAT(
      Messages(graph),
      ElementsAre(
          AllOf(HasSubstr("node \"w\""), HasSubstr("an impossible shape")),
          HasSubstr("node \"b\" (Const) has, in its attribute \"value\", 3 "
                    "bytes of content in a float tensor of shape [2]"),
          HasSubstr("2 values in a tensor of shape []")));
}

TEST(VerifyGraph, ReportsAConstThatIsNotOfItsDeclaredType) {
  GraphDef graph = Frozen();
  Attribute("axis", "dtype", &graph).set_type(tensorflow::DT_INT64);
  EXPECT_THAT(Messages(graph),
              Contains("semantics: node \"axis\" (Const) is declared "
                       "int64 but its value is int32"));
}

TEST(VerifyGraph, ReportsNamesThatTensorFlowRefuses) {
  GraphDef graph;
  graph.add_node()->set_name("a b");
  graph.mutable_node(0)->set_op("NoOp");
  EXPECT_THAT(Messages(graph),
              ElementsAre(HasSubstr("node \"a b\" (NoOp) has a character")));
}

TEST(VerifyGraph, ReportsOpsThatAreGoneInTheGraphsVersion) {
  GraphDef graph = Frozen();
  Node("x", &graph)->set_op("PlaceholderV2");
  EXPECT_THAT(Messages(graph),
              ElementsAre(HasSubstr("node \"x\" (PlaceholderV2) has an op that "
                                    "is gone since graph version 23")));
  graph.mutable_versions()->set_producer(22);
  EXPECT_THAT(Messages(graph), IsEmpty());
}

TEST(VerifyGraph, ReportsGraphsOfALaterTensorFlow) {
  GraphDef graph = Frozen();
  graph.mutable_versions()->set_min_consumer(1000000);
  EXPECT_THAT(Messages(graph), ElementsAre(HasSubstr("version 1000000")));
}

TEST(VerifyGraph, ReportsCallsOfFunctionsThatDoNotExist) {
  GraphDef graph = Functions();
  Attribute("call", "f", &graph).mutable_func()->set_name("gone");
  EXPECT_THAT(Messages(graph),
              ElementsAre("semantics: node \"call\" (PartitionedCall) calls "
                          "the function \"gone\" in its attribute \"f\", which "
                          "is not in the graph's library"));
}

TEST(VerifyGraph, ReportsTwoFunctionsOfOneName) {
  GraphDef graph = Functions();
  *graph.mutable_library()->add_function() = graph.library().function(1);
  EXPECT_THAT(Messages(graph),
              ElementsAre("semantics: two functions are named \"small\""));
}

TEST(VerifyGraph, ChecksTheBodiesOfFunctions) {
  GraphDef graph = Functions();
  auto* body = graph.mutable_library()->mutable_function(1);
  body->mutable_node_def(1)->set_input(1, "limit:output:1");
  (*body->mutable_ret())["result"] = "more:z:0";
  auto* generic = graph.mutable_library()->mutable_function(2);
  (*generic->mutable_node_def(0)->mutable_attr())["T"].set_placeholder("U");
  generic->add_node_def()->set_name("again");
  generic->mutable_node_def(1)->set_op("PartitionCall");
  EXPECT_THAT(
      Messages(graph),
      ElementsAre(
          "semantics: node \"less\" (Less) of function \"small\" reads "
          "\"limit:output:1\", which names no node or argument there",
          "semantics: function \"small\" returns \"more:z:0\" as \"result\", "
          "which names no node or argument there",
          "semantics: node \"sum\" (AddN) of function \"triple\" takes its "
          "attribute \"T\" from \"U\", which the function does not declare",
          "semantics: node \"again\" (PartitionCall) of function \"triple\" "
          "has an unknown op (did you mean \"PartitionedCall\"?)"));
}

TEST(VerifyGraph, AFunctionMayCallItself) {
  GraphDef graph = Functions();
  auto* small = graph.mutable_library()->mutable_function(1);
  auto* call = small->add_node_def();
  *call = NodeNamed(graph, "call");
  call->set_input(0, "x");
  (*call->mutable_attr())["f"].mutable_func()->set_name("small");
  EXPECT_THAT(Messages(graph), IsEmpty());
}

TEST(VerifyGraph, ReportsRepeatedNamesTypesAndCyclesInFunctionBodies) {
  GraphDef graph = Functions();
  auto* body = graph.mutable_library()->mutable_function(0);
  body->mutable_node_def(3)->set_name("x");
  auto* small = graph.mutable_library()->mutable_function(1);
  small->mutable_node_def(1)->set_input(1, "less:z:0");
  EXPECT_THAT(
      Messages(graph),
      ElementsAre(HasSubstr("\"__inference_double_7\" has two nodes or "
                            "arguments named \"x\""),
                  HasSubstr("names \"flush\" as its control output"),
                  HasSubstr("takes float as input 1 but its producer gives "
                            "bool"),
                  HasSubstr("node \"less\" (Less) of function \"small\" "
                            "depends on its own output")));
}

TEST(VerifyGraph, StopsAtTheLimit) {
  GraphDef graph;
  for (int i = 0; i < 100; ++i) graph.add_node()->set_op("NoOp");
  EXPECT_THAT(Problems(graph), SizeIs(20));
  VerifyOptions options;
  options.max_problems = 0;
  EXPECT_THAT(Problems(graph, options), SizeIs(100));
}

TEST(VerifyGraph, CountsGivenAsAttributesAllocateNothing) {
  GraphDef graph = Frozen();
  Attribute("split", "num_split", &graph).set_i(INT32_MAX);
  EXPECT_THAT(Messages(graph), IsEmpty());
  Attribute("split", "num_split", &graph).set_i(INT64_MAX);
  EXPECT_THAT(Messages(graph),
              ElementsAre(HasSubstr("no possible number or type of inputs")));
  graph = GraphFromText(ValidGraphs()[1].text);
  Attribute("merge", "N", &graph).set_i(INT32_MAX);
  EXPECT_THAT(Messages(graph),
              ElementsAre(HasSubstr("takes 2147483647 inputs but has 2")));
}

TEST(VerifyGraph, SurvivesACrashOfTensorFlowsShapeFunctions) {
  GraphDef graph = Frozen();
  AddNodes(
      "gather = GatherV2(b, axis, axis) Tparams=float Tindices=int32 "
      "Taxis=int32",
      &graph);
  Attribute("axis", "value", &graph).mutable_tensor()->set_int_val(0, 0);
  EXPECT_THAT(Messages(graph), IsEmpty());
  Attribute("gather", "batch_dims", &graph).set_i(1 << 20);
  EXPECT_THAT(Messages(graph),
              ElementsAre("semantics: TensorFlow's shape inference crashed "
                          "(signal 6) at node \"gather\" (GatherV2); loading "
                          "this graph into TensorFlow would do the same"));
}

TEST(VerifyGraph, LongAndBinaryNamesStayReadable) {
  GraphDef graph;
  graph.add_node()->set_name(std::string(1 << 20, 'x') + "\n");
  graph.mutable_node(0)->set_op("\xff\n");
  for (const std::string& message : Messages(graph)) {
    EXPECT_LT(message.size(), 1000);
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace requant::verify_test
