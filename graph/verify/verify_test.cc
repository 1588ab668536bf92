#include "graph/verify/verify.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <random>

#include "absl/strings/str_replace.h"
#include "base/testing/fuzz_rounds.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "graph/testing/testing.h"

namespace requant::verify_test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Graphs that TensorFlow accepts, one for each kind of graph people have; the
// verifier must find nothing in them.
constexpr char kFrozen[] = R"(
  x = Placeholder dtype=float shape=<?,3>
  w = float<3,2>{1} _output_shapes=[<*>]
  b = float<2>'\000\000\200?\000\000\200?'
  matmul = MatMul(x, w) T=float
  add = BiasAdd(matmul, b) T=float
  axis = int32{1}
  split = Split(axis, add, ^b) T=float num_split=2
  scores = AddV2(split:0, split:1) T=float
  init = NoOp(^scores)
  versions { producer: 1882 min_consumer: 12 }
)";

// i = 0; while (i < limit) i = i + 1
constexpr char kWhileLoop[] = R"(
  zero = int32{0}
  enter = Enter(zero) T=int32 frame_name='loop'
  merge = Merge(enter, next) T=int32 N=2
  limit = Const(^merge) dtype=int32 value=int32{10}
  less = Less(merge, limit) T=int32
  condition = LoopCond(less)
  switch = Switch(merge, condition) T=int32
  one = Const(^switch) dtype=int32 value=int32{1}
  plus = Add(switch:1, one) T=int32
  next = NextIteration(plus) T=int32
  exit = Exit(switch) T=int32
)";

constexpr char kFunctions[] = R"(
  x = Placeholder dtype=float
  flag = Placeholder dtype=bool shape=<>
  call = PartitionedCall(x) Tin=[float] Tout=[float,float]
      f=@__inference_double_7
  if = StatelessIf(flag, call) Tcond=bool Tin=[float] Tout=[float,float]
      then_branch=@__inference_double_7 else_branch=@__inference_double_7
      output_shapes=[]
  while = StatelessWhile(if:1) T=[float] cond=@small body=@triple(T=float)
  legacy = triple(while) T=float
  function __inference_double_7(x) -> (same=x, twice=both:output:1) {
    signature { control_output: "done" }
    sum = AddV2(x, x:0) T=float
    both = IdentityN(x, sum:z:0, ^sum) T=[float,float]
    pack = AddN(both:output:0, both:output:1) T=float N=2
    flush = NoOp(^x)
    control_ret { key: "done" value: "flush" }
  }
  function small(x) -> (result:bool=less:z:0) {
    limit = float{9}
    less = Less(x, limit:output:0) T=float
  }
  function triple(x:$T) -> (y:$T=sum:sum:0) {
    signature { attr { name: "T" type: "type" } }
    sum = AddN(x, x, x) T=$T N=3
  }
  library { gradient { function_name: "small" gradient_func: "triple" } }
)";

constexpr char kVariables[] = R"(
  value = float<2>{1}
  ref = VariableV2 dtype=float shape=<2> container='' shared_name=''
  assign = Assign(ref, value) T=float _class=['loc:@ref']
  read = Identity(ref, ^assign) T=float
  handle = VarHandleOp dtype=float shape=<2>
  assign_resource = AssignVariableOp(handle, read) dtype=float
  read_resource = ReadVariableOp(handle, ^assign_resource) dtype=float
  sum = AddV2(read_resource, assign) T=float
)";

constexpr char kQuantized[] = R"(
  x = Placeholder dtype=float shape=<?,2>
  low = float{-1}
  high = float{1}
  weights = qint8<2,3>'\001\002\003\004\005\006'
  bias = float<3>{0}
  quantize = QuantizeV2(x, low, high) T=quint8 mode='MIN_FIRST'
  matmul = QuantizedMatMulWithBiasAndRelu(quantize, weights, bias, quantize:1,
      quantize:2, low, high) T1=quint8 T2=qint8 Toutput=qint32
      input_quant_mode='MIN_FIRST'
  range = RequantizationRange(matmul, matmul:1, matmul:2) Tinput=qint32
  requantize = Requantize(matmul, matmul:1, matmul:2, range, range:1)
      Tinput=qint32 out_type=quint8
  y = Dequantize(requantize, requantize:1, requantize:2) T=quint8
      mode='MIN_FIRST'
)";

constexpr const char* kGraphs[] = {kFrozen, kWhileLoop, kFunctions, kVariables,
                                   kQuantized};

std::string GraphName(const testing::TestParamInfo<const char*>& info) {
  static constexpr const char* kNames[] = {"Frozen", "WhileLoop", "Functions",
                                           "Variables", "Quantized"};
  return kNames[info.index];
}

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

// Parses a graph in whose text each of `changes` was made.
GraphDef Changed(
    std::string text,
    const std::vector<std::pair<std::string, std::string>>& changes) {
  for (const auto& change : changes) {
    EXPECT_NE(absl::StrReplaceAll({change}, &text), 0) << change.first;
  }
  return GraphFromText(text);
}

class ValidGraph : public testing::TestWithParam<const char*> {};

TEST_P(ValidGraph, HasNoProblem) {
  const GraphDef graph = GraphFromText(GetParam());
  EXPECT_THAT(Messages(graph), IsEmpty());
  EXPECT_THAT(RunGraph(graph, {}, {}),
              FailsWith(HasSubstr(
                  "Must specify at least one target to fetch or execute")))
      << "TensorFlow itself does not accept the graph";
}

INSTANTIATE_TEST_SUITE_P(All, ValidGraph, testing::ValuesIn(kGraphs),
                         GraphName);

TEST(VerifyGraph, AnEmptyGraphIsFine) {
  EXPECT_THAT(Messages(GraphDef()), IsEmpty());
}

TEST(VerifyGraph, ReportsEmptyAndRepeatedNames) {
  GraphDef graph = GraphFromText(kFrozen);
  graph.add_node()->set_op("NoOp");
  AddNodes("init = NoOp", &graph);
  EXPECT_THAT(Messages(graph),
              ElementsAre("structure: node number 9 (op \"NoOp\") has no name",
                          "structure: two nodes are named \"init\""));
}

TEST(VerifyGraph, ReportsInputsThatNameNothingAndPortsOutOfRange) {
  EXPECT_THAT(
      Messages(Changed(kFrozen, {{"(matmul, b)", "(matmul, gone:1)"},
                                 {"split:1", "split:2"},
                                 {"^scores", "^lost"}})),
      ElementsAre("structure: node \"add\" (BiasAdd) reads \"gone:1\", but no "
                  "node is named \"gone\"",
                  "structure: node \"scores\" (AddV2) reads \"split:2\", but "
                  "that node (Split) has 2 outputs",
                  "structure: node \"init\" (NoOp) reads \"^lost\", but no "
                  "node is named \"lost\""));
}

TEST(VerifyGraph, ReportsControlInputsBeforeDataInputs) {
  EXPECT_THAT(Messages(Changed(kFrozen, {{"(x, w)", "(^x, x, w)"}})),
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
  EXPECT_THAT(Messages(Changed(kWhileLoop, {{"NextIteration", "Identity"}})),
              ElementsAre(HasSubstr("depends on its own output")));
}

TEST(VerifyGraph, ReportsAnUnknownOpOnceWithASuggestion) {
  GraphDef graph = Changed(kFrozen, {{"= MatMul", "= MatMull"}});
  AddNodes("other = MatMull(x, w) T=float", &graph);
  EXPECT_THAT(
      Messages(graph),
      ElementsAre("semantics: node \"matmul\" (MatMull) has an unknown "
                  "op, as has one other node (did you mean \"MatMul\"?)"));
}

TEST(VerifyGraph, ReportsMissingAttributesButKnowsDefaults) {
  EXPECT_THAT(Messages(Changed(kFrozen, {{"(x, w) T=float", "(x, w)"}})),
              ElementsAre("semantics: node \"matmul\" (MatMul) lacks the "
                          "attribute \"T\" (type)"));
}

TEST(VerifyGraph, ReportsUnknownAttributesExceptPrivateOnes) {
  EXPECT_THAT(Messages(Changed(
                  kFrozen, {{"(x, w)", "(x, w) _mine=true transpose_c=true"}})),
              ElementsAre("semantics: node \"matmul\" (MatMul) has an "
                          "attribute \"transpose_c\" that its op does not know "
                          "(did you mean \"transpose_a\"?)"));
}

TEST(VerifyGraph, ReportsAttributesOfTheWrongKind) {
  EXPECT_THAT(
      Messages(
          Changed(kFrozen, {{"(x, w)", "(x, w) transpose_a=1"},
                            {"(matmul, b) T=float", "(matmul, b) T=string"}})),
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
  GraphDef graph = GraphFromText(kFrozen);
  (*MutableNode(&graph, "x")->mutable_attr())["dtype"].set_type(
      static_cast<tensorflow::DataType>(4711));
  EXPECT_THAT(Messages(graph), ElementsAre(HasSubstr("\"dtype\"")));
}

TEST(VerifyGraph, ReportsWrongNumbersOfInputs) {
  EXPECT_THAT(
      Messages(Changed(
          kFrozen, {{"(x, w)", "(x)"}, {"= Placeholder", "= Placeholder(b)"}})),
      ElementsAre("semantics: node \"x\" (Placeholder) takes 0 inputs "
                  "but has 1",
                  "semantics: node \"matmul\" (MatMul) takes 2 inputs "
                  "but has 1"));
}

TEST(VerifyGraph, ReportsTypeMismatchesBetweenNodes) {
  EXPECT_THAT(Messages(Changed(kFrozen, {{"(x, w)", "(axis, w)"}})),
              ElementsAre("semantics: node \"matmul\" (MatMul) takes float as "
                          "input 0 but \"axis\" gives int32"));
}

TEST(VerifyGraph, APlainTensorCannotStandForAReference) {
  EXPECT_THAT(
      Messages(Changed(kVariables, {{"(ref, value)", "(value, value)"}})),
      ElementsAre("semantics: node \"assign\" (Assign) takes float_ref "
                  "as input 0 but \"value\" gives float"));
}

TEST(VerifyGraph, ReportsShapesThatDoNotFit) {
  const GraphDef graph = Changed(kFrozen, {{"<?,3>", "<?,5>"}});
  EXPECT_THAT(
      Messages(graph),
      ElementsAre(AllOf(HasSubstr("node \"matmul\" (MatMul) has inputs of "
                                  "shape [?,5], [3,2], which it cannot take"),
                        HasSubstr("5 and 3"))));
  EXPECT_THAT(Problems(graph, {/*shapes=*/false}), IsEmpty());
}

TEST(VerifyGraph, ShapeChecksKnowTheValuesOfConstants) {
  EXPECT_THAT(Messages(Changed(kFrozen, {{"int32{1}", "int32{7}"}})),
              ElementsAre(HasSubstr("\"split\" (Split)")));
}

TEST(VerifyGraph, ReportsImpossibleShapeAttributes) {
  EXPECT_THAT(Messages(Changed(kFrozen, {{"<?,3>", "<?,-7>"}})),
              ElementsAre(HasSubstr("node \"x\" (Placeholder) has an "
                                    "impossible shape in its attribute "
                                    "\"shape\"")));
}

TEST(VerifyGraph, ReportsConstantsThatDoNotFit) {
  EXPECT_THAT(
      Messages(Changed(kFrozen,
                       {{"'\\000\\000\\200?\\000\\000\\200?'", "'abc'"},
                        {"int32{1}", "int32{1,2}"},
                        {"float<3,2>", "float<1099511627776,1099511627776>"}})),
      ElementsAre(
          AllOf(HasSubstr("node \"w\""), HasSubstr("an impossible shape")),
          HasSubstr("node \"b\" (Const) has, in its attribute \"value\", 3 "
                    "bytes of content in a float tensor of shape [2]"),
          HasSubstr("2 values in a tensor of shape []")));
}

TEST(VerifyGraph, ReportsAConstThatIsNotOfItsDeclaredType) {
  EXPECT_THAT(Messages(Changed(
                  kFrozen, {{"int32{1}", "Const dtype=int64 value=int32{1}"}})),
              Contains("semantics: node \"axis\" (Const) is declared "
                       "int64 but its value is int32"));
}

TEST(VerifyGraph, ReportsNamesThatTensorFlowRefuses) {
  EXPECT_THAT(Messages(GraphFromText("node { name: 'a b' op: 'NoOp' }")),
              ElementsAre(HasSubstr("node \"a b\" (NoOp) has a character")));
}

TEST(VerifyGraph, ReportsOpsThatAreGoneInTheGraphsVersion) {
  GraphDef graph = Changed(kFrozen, {{"= Placeholder", "= PlaceholderV2"}});
  EXPECT_THAT(Messages(graph),
              ElementsAre(HasSubstr("node \"x\" (PlaceholderV2) has an op that "
                                    "is gone since graph version 23")));
  graph.mutable_versions()->set_producer(22);
  EXPECT_THAT(Messages(graph), IsEmpty());
}

TEST(VerifyGraph, ReportsGraphsOfALaterTensorFlow) {
  EXPECT_THAT(Messages(Changed(kFrozen, {{"r: 12", "r: 1000000"}})),
              ElementsAre(HasSubstr("version 1000000")));
}

TEST(VerifyGraph, ReportsCallsOfFunctionsThatDoNotExist) {
  EXPECT_THAT(
      Messages(Changed(kFunctions, {{"f=@__inference_double_7", "f=@gone"}})),
      ElementsAre("semantics: node \"call\" (PartitionedCall) calls "
                  "the function \"gone\" in its attribute \"f\", which "
                  "is not in the graph's library"));
}

TEST(VerifyGraph, ReportsTwoFunctionsOfOneName) {
  GraphDef graph = GraphFromText(kFunctions);
  *graph.mutable_library()->add_function() = graph.library().function(1);
  EXPECT_THAT(Messages(graph),
              ElementsAre("semantics: two functions are named \"small\""));
}

TEST(VerifyGraph, ChecksTheBodiesOfFunctions) {
  EXPECT_THAT(
      Messages(Changed(kFunctions,
                       {{"limit:output:0", "limit:output:1"},
                        {"less:z:0", "more:z:0"},
                        {"T=$T N=3", "T=$U N=3\n again = PartitionCall"}})),
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
  EXPECT_THAT(Messages(Changed(kFunctions,
                               {{"limit = float{9}",
                                 "limit = float{9}\n call = PartitionedCall(x) "
                                 "Tin=[float] Tout=[bool] f=@small"}})),
              IsEmpty());
}

TEST(VerifyGraph, ReportsRepeatedNamesTypesAndCyclesInFunctionBodies) {
  EXPECT_THAT(
      Messages(Changed(kFunctions,
                       {{"flush = NoOp(^x)", "x = NoOp(^x)"},
                        {"Less(x, limit:output:0)", "Less(x, less:z:0)"}})),
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
  EXPECT_THAT(Messages(Changed(kFrozen, {{"t=2", "t=2147483647"}})), IsEmpty());
  EXPECT_THAT(Messages(Changed(kFrozen, {{"t=2", "t=9223372036854775807"}})),
              ElementsAre(HasSubstr("no possible number or type of inputs")));
  EXPECT_THAT(Messages(Changed(kWhileLoop, {{"N=2", "N=2147483647"}})),
              ElementsAre(HasSubstr("takes 2147483647 inputs but has 2")));
}

TEST(VerifyGraph, SurvivesACrashOfTensorFlowsShapeFunctions) {
  GraphDef graph = Changed(kFrozen, {{"int32{1}", "int32{0}"}});
  AddNodes(
      "gather = GatherV2(b, axis, axis) Tparams=float Tindices=int32 "
      "Taxis=int32",
      &graph);
  EXPECT_THAT(Messages(graph), IsEmpty());
  auto& attributes = *MutableNode(&graph, "gather")->mutable_attr();
  attributes["batch_dims"].set_i(1 << 20);
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

// Damaged graphs: whatever the bytes say, the verifier returns.
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

  int64_t OddNumber() {
    static constexpr int64_t kNumbers[] = {-1,        0,
                                           1,         2,
                                           3,         7,
                                           -2,        INT32_MAX,
                                           INT32_MIN, INT64_MAX,
                                           INT64_MIN, 4711,
                                           1 << 20,   int64_t{1} << 40};
    return kNumbers[Below(std::size(kNumbers))];
  }

  std::string OddString(const GraphDef& graph) {
    const auto& node = graph.node(Below(graph.node_size()));
    switch (Below(6)) {
      case 0:
        return node.name();
      case 1:
        return absl::StrCat(node.name(), ":", OddNumber());
      case 2:
        return absl::StrCat("^", node.name());
      case 3:
        return node.op();
      case 4:
        return "";
      default:
        return "\xff:x";
    }
  }

  // Changes one value, or drops or repeats one element, somewhere in `message`.
  void Mutate(const GraphDef& graph, Message* message) {
    const Reflection* reflection = message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    if (fields.empty()) return;
    const FieldDescriptor* field = fields[Below(fields.size())];
    if (field->is_repeated()) {
      MutateRepeated(graph, field, message);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (Below(20) == 0) {
        reflection->ClearField(message, field);
      } else {
        Mutate(graph, reflection->MutableMessage(message, field));
      }
    } else {
      MutateScalar(graph, field, message);
    }
  }

  static std::string KeyText(const Message& entry, const FieldDescriptor* key) {
    const Reflection* reflection = entry.GetReflection();
    return key->cpp_type() == FieldDescriptor::CPPTYPE_STRING
               ? reflection->GetString(entry, key)
               : absl::StrCat(reflection->GetUInt32(entry, key));
  }

  // Returns the place of a map's entry, whatever the order the map has today.
  int AnyEntry(const Message& message, const FieldDescriptor* map) {
    const Reflection* reflection = message.GetReflection();
    std::map<std::string, int> places;
    for (int i = 0; i < reflection->FieldSize(message, map); ++i) {
      const Message& entry = reflection->GetRepeatedMessage(message, map, i);
      const FieldDescriptor* key = entry.GetDescriptor()->map_key();
      places[KeyText(entry, key)] = i;
    }
    return std::next(places.begin(), Below(places.size()))->second;
  }

  void MutateRepeated(const GraphDef& graph, const FieldDescriptor* field,
                      Message* message) {
    const Reflection* reflection = message->GetReflection();
    const int size = reflection->FieldSize(*message, field);
    const int index = field->is_map() ? AnyEntry(*message, field) : Below(size);
    if (Below(12) == 0) {
      reflection->SwapElements(message, field, index, size - 1);
      reflection->RemoveLast(message, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (Below(20) == 0) {
        Message* copy = reflection->AddMessage(message, field);
        copy->CopyFrom(reflection->GetRepeatedMessage(*message, field, index));
      } else {
        Mutate(graph,
               reflection->MutableRepeatedMessage(message, field, index));
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection->SetRepeatedString(message, field, index, OddString(graph));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      reflection->SetRepeatedEnumValue(message, field, index, OddNumber());
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      reflection->SetRepeatedInt32(message, field, index, OddNumber());
    }
  }

  void MutateScalar(const GraphDef& graph, const FieldDescriptor* field,
                    Message* message) {
    const Reflection* reflection = message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        reflection->SetString(message, field, OddString(graph));
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        reflection->SetEnumValue(message, field,
                                 Below(2) == 0 ? OddNumber() : Below(30));
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection->SetInt32(message, field, OddNumber());
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection->SetInt64(message, field, OddNumber());
        break;
      default:
        reflection->ClearField(message, field);
    }
  }

  std::mt19937 random_{20240607};
};

TEST_P(GraphFuzz, DamagedBytes) {
  const std::string bytes = GraphFromText(GetParam()).SerializeAsString();
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
  const GraphDef original = GraphFromText(GetParam());
  for (int round = 0; round < FuzzRounds(kFieldRounds); ++round) {
    GraphDef graph = original;
    for (size_t i = 0, count = 1 + Below(3); i < count; ++i) {
      Mutate(original, &graph);
    }
    Verify(graph);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphFuzz, testing::ValuesIn(kGraphs), GraphName);

}  // namespace
}  // namespace requant::verify_test
