#include "graph/summary/summary_report.h"

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "graph/testing/testing.h"

namespace requant::summary_report_test {
namespace {

std::string Report(const std::string& graph, const std::string& path = "g.pb") {
  return TextReport(SummarizeGraph(GraphFromText(graph)), path);
}

constexpr char kImageNet[] = R"(
  input = Placeholder dtype=float shape=<?,224,224,3>
  weights = Const value=float<3,3,3,64>{0.5}
  conv = Conv2D(input, weights)
  check = NoOp(^conv)
  softmax = Softmax(conv, ^check)
)";

TEST(TextReport, OfAFrozenNetIsTensorFlowsWithACommandMore) {
  EXPECT_EQ(
      Report(kImageNet),
      "Found 1 possible inputs: (name=input, type=float(1), "
      "shape=[?,224,224,3]) \n"
      "No variables spotted.\n"
      "Found 1 possible outputs: (name=softmax, op=Softmax) \n"
      "Found 1728 (1.73k) const parameters, 0 (0) variable parameters, and 2 "
      "control_edges\n"
      "Op types used: 1 Const, 1 Conv2D, 1 NoOp, 1 Placeholder, 1 Softmax\n"
      "To use with tensorflow/tools/benchmark:benchmark_model try these "
      "arguments:\n"
      "--graph=g.pb --show_flops --input_layer=input --input_layer_type=float "
      "--input_layer_shape=-1,224,224,3 --output_layer=softmax\n"
      "To go on:\n"
      "requant transform --in_graph=g.pb --out_graph=g_optimized.pb "
      "--inputs=input --outputs=softmax --transforms='strip_unused_nodes "
      "remove_nodes(op=Identity, op=CheckNumerics) "
      "fold_constants(ignore_errors=true) "
      "fold_batch_norms(ignore_errors=true) "
      "fold_old_batch_norms(ignore_errors=true)'\n");
}

TEST(TextReport, OfAnEmptyGraphIsTensorFlows) {
  EXPECT_EQ(Report(""),
            "No inputs spotted.\n"
            "No variables spotted.\n"
            "No outputs spotted.\n"
            "Found 0 (0) const parameters, 0 (0) variable parameters, and 0 "
            "control_edges\n"
            "Op types used: \n");
}

// The skeleton of what tf.estimator writes while it trains a classifier.
constexpr char kTraining[] = R"(
  global_step = VarHandleOp
  IteratorGetNext = IteratorGetNext output_types=[float,int64]
      output_shapes=[<?,13>,<?>]
  dnn/kernel = VarHandleOp device:'/job:ps' dtype=float shape=<13,2>
  dnn/read = ReadVariableOp(dnn/kernel)
  dnn/logits/MatMul = MatMul(IteratorGetNext, dnn/read)
  head/logits/Shape = Shape(dnn/logits/MatMul)
  head/predictions/class_ids = ArgMax(dnn/logits/MatMul)
  head/predictions/str_classes = AsString(head/predictions/class_ids)
  head/predictions/probabilities = Softmax(dnn/logits/MatMul)
  head/losses/xent = SparseSoftmaxCrossEntropyWithLogits(dnn/logits/MatMul,
      IteratorGetNext:1)
  head/losses/Sum = Sum(head/losses/xent)
  loss = ScalarSummary(head/losses/Sum)
  metrics/accuracy/update = AssignAddVariableOp(global_step,
      head/predictions/class_ids)
  training/gradients/MatMul_grad = MatMul(head/losses/xent:1)
  training/Adam/update = ResourceApplyAdam(dnn/kernel,
      training/gradients/MatMul_grad)
  save/SaveV2 = SaveV2(dnn/read)
  init = NoOp(^save/SaveV2)
)";

TEST(TextReport, OfATrainingGraphPutsThePredictionFirst) {
  EXPECT_EQ(
      Report(kTraining, "graph.pbtxt"),
      "Found 2 possible inputs: (name=IteratorGetNext, type=float(1), "
      "shape=[?,13]) (name=IteratorGetNext:1, type=int64(9), shape=[?]) \n"
      "These inputs are no placeholders: the graph reads its data itself; "
      "they are what can be fed instead.\n"
      "Found 2 variables: (name=global_step, type=INVALID(0), shape=None) "
      "(name=dnn/kernel, type=float(1), shape=[13,2]) \n"
      "Most likely output: (name=head/predictions/probabilities, op=Softmax) "
      "(name=head/predictions/str_classes, op=AsString)\n"
      "Found 6 possible outputs: (name=head/predictions/probabilities, "
      "op=Softmax) (name=head/predictions/str_classes, op=AsString) "
      "(name=head/logits/Shape, op=Shape) (name=loss, op=ScalarSummary) "
      "(name=metrics/accuracy/update, op=AssignAddVariableOp) "
      "(name=training/Adam/update, op=ResourceApplyAdam) \n"
      "Found 0 (0) const parameters, 26 (26) variable parameters, and 1 "
      "control_edges\n"
      "1 nodes assigned to device '/job:ps'\n"
      "Op types used: 2 MatMul, 2 VarHandleOp, 1 ArgMax, 1 AsString, 1 "
      "AssignAddVariableOp, 1 IteratorGetNext, 1 NoOp, 1 ReadVariableOp, 1 "
      "ResourceApplyAdam, 1 SaveV2, 1 ScalarSummary, 1 Shape, 1 Softmax, 1 "
      "SparseSoftmaxCrossEntropyWithLogits, 1 Sum\n"
      "To use with tensorflow/tools/benchmark:benchmark_model try these "
      "arguments:\n"
      "--graph=graph.pbtxt --show_flops --input_layer=IteratorGetNext "
      "--input_layer_type=float --input_layer_shape=-1,13 "
      "--output_layer=head/predictions/probabilities\n"
      "To go on, freeze the variables: requant freeze takes the graph and the "
      "checkpoint with their values.\n");
}

TEST(TextReport, OfASavedModelStartsWithItsSignatures) {
  tensorflow::MetaGraphDef meta;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    signature_def { key: "a" value { inputs { key: "in" value {
      name: "x:0" dtype: DT_FLOAT tensor_shape { dim { size: -1 } } } } } }
    signature_def { key: "serving_default" value { outputs { key: "out" value {
      name: "y:0" dtype: DT_INT64 tensor_shape { unknown_rank: true } } } } }
  )",
                                                            &meta));
  *meta.mutable_graph_def() = GraphFromText("x = Placeholder; y = Softmax(x)");
  EXPECT_THAT(
      TextReport(SummarizeMetaGraph(meta), "dir/"),
      StartsWith(
          "Found 2 signatures: serving_default, a\n"
          "Signature serving_default output out: (name=y:0, type=int64(9), "
          "shape=<unknown>)\n"
          "Signature a input in: (name=x:0, type=float(1), shape=[?])\n"
          "Found 1 possible inputs: "));
}

TEST(TextReport, GivesShapesInTensorFlowsWords) {
  EXPECT_THAT(Report("x = Placeholder"),
              HasSubstr("(name=x, type=INVALID(0), shape=None)"));
  EXPECT_THAT(Report("x = Placeholder shape=<>"), HasSubstr("shape=[])"));
  EXPECT_THAT(Report("x = Placeholder shape=<*>"),
              HasSubstr("shape=<unknown>)"));
}

TEST(TextReport, SurvivesShapesAndTypesThatCannotBe) {
  EXPECT_THAT(Report("x = Placeholder shape=<-7>"), HasSubstr("shape="));
  EXPECT_THAT(
      Report("node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { "
             "type: 4711 } } attr { key: 'shape' value { s: 'text' } } }"),
      HasSubstr("(4711), shape=[])"));
}

TEST(TextReport, NamesMissingInputsAndGoesOn) {
  const std::string report = Report("a = A(gone:1)");
  EXPECT_THAT(report, HasSubstr("Invalid input gone for node a\n"));
  EXPECT_THAT(report, HasSubstr("Op types used: 1 A\n"));
}

TEST(TextReport, NoNameCanForgeALine) {
  EXPECT_THAT(Report("node { name: 'a\\nFound 0 \\033[31m' op: 'A\\n' }"),
              HasSubstr("(name=a\\x0aFound 0 \\x1b[31m, op=A\\x0a)"));
}

TEST(Commands, AreQuotedForTheShell) {
  GraphSummary summary;
  summary.chosen_outputs = {"it's"};
  EXPECT_THAT(NextCommands(summary, "my graphs/$HOME.pb"),
              ElementsAre(HasSubstr("--in_graph='my graphs/$HOME.pb' "
                                    "--out_graph='my graphs/$HOME_optimized.pb'"
                                    " --inputs= --outputs='it'\\''s' ")));
  EXPECT_THAT(BenchmarkArguments(summary, "a b"), HasSubstr("--graph='a b' "));
}

TEST(Commands, FreezeASavedModelFirst) {
  GraphSummary summary;
  summary.chosen_outputs = {"y"};
  summary.variables.resize(1);
  EXPECT_THAT(NextCommands(summary, "graph.pb"), IsEmpty());
  summary.saved_model = "dir";
  summary.saved_model_tags = "gpu,serve";
  EXPECT_THAT(
      NextCommands(summary, "dir/saved_model.pb"),
      ElementsAre("requant freeze --input_saved_model_dir=dir "
                  "--saved_model_tags=gpu,serve --output_node_names=y "
                  "--output_graph=dir_frozen.pb",
                  StartsWith("requant transform --in_graph=dir_frozen.pb "
                             "--out_graph=dir_optimized.pb ")));
}

TEST(Commands, AreNotProposedForWhatTheyCannotName) {
  GraphSummary summary;
  for (const char* name : {"a,b", "a\nb"}) {
    summary.chosen_outputs = {name};
    EXPECT_THAT(NextCommands(summary, "g.pb"), IsEmpty());
  }
  summary.chosen_outputs = {"y"};
  EXPECT_THAT(NextCommands(summary, "g\033.pb"), IsEmpty());
  summary.invalid_inputs = {{"y", "gone"}};
  EXPECT_THAT(NextCommands(summary, "g.pb"), IsEmpty());
}

TEST(Commands, TheOutputFileStandsBesideTheGraph) {
  GraphSummary summary;
  summary.chosen_outputs = {"y"};
  const auto output = [&](const std::string& path) {
    const std::string command = NextCommands(summary, path).at(0);
    const size_t start = command.find("--out_graph=") + 12;
    return command.substr(start, command.find(' ', start) - start);
  };
  EXPECT_EQ(output("saved_model/"), "saved_model_optimized.pb");
  EXPECT_EQ(output("v1.2/model"), "v1.2/model_optimized.pb");
  EXPECT_EQ(output("../.hidden"), "../.hidden_optimized.pb");
}

TEST(Commands, SeveralInputsAreJoinedAsBenchmarkModelReadsThem) {
  GraphSummary summary;
  TensorSummary tensor;
  tensor.name = "a";
  tensor.type = tensorflow::DT_FLOAT;
  tensor.has_shape = true;
  tensor.shape.add_dim()->set_size(-1);
  tensor.shape.add_dim()->set_size(2);
  summary.chosen_inputs = {tensor, {}};
  summary.chosen_inputs[1].name = "b:1";
  tensor.name = "w";
  summary.chosen_variables = {tensor};
  EXPECT_THAT(BenchmarkArguments(summary, "g"),
              HasSubstr("--input_layer=a,b:1,w "
                        "--input_layer_type=float,INVALID,float "
                        "--input_layer_shape=-1,2::-1,2 "));
}

TEST(StructureReport, ListsNodesInExecutionOrderWithTheValuesOfConsts) {
  EXPECT_EQ(
      StructureReport(GraphFromText(
          "y = Add(c:0, ^x); x = Placeholder; c = Const value=float<2>{1.5}")),
      "c (Const): [], value=Tensor<type: float shape: [2] values: 1.5 "
      "1.5>\n"
      "x (Placeholder): []\n"
      "y (Add): [c:0, ^x]\n");
}

TEST(StructureReport, LeavesOutValuesThatCannotBeRead) {
  EXPECT_EQ(StructureReport(GraphFromText(R"(
    none = Const
    petabytes = Const value=float<1125899906842624>{1}
    short = Const value=float<1125899906842624>'1234'
    handle = Const value=resource<>
  )")),
            "handle (Const): []\nshort (Const): []\npetabytes (Const): []\n"
            "none (Const): []\n");
}

TEST(JsonReport, IsJsonWithTheSameFacts) {
  const GraphDef graph = GraphFromText(kTraining);
  google::protobuf::Struct json;
  const std::string text = JsonReport(SummarizeGraph(graph), "a\"\n\\", &graph);
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(text, &json).ok())
      << text;
  const auto& fields = json.fields();
  EXPECT_EQ(fields.at("graph").string_value(), "a\"\n\\");
  EXPECT_EQ(fields.at("variable_parameters").number_value(), 26);
  EXPECT_EQ(
      fields.at("ops").struct_value().fields().at("MatMul").number_value(), 2);
  const auto& output = fields.at("outputs").list_value().values(0);
  EXPECT_EQ(output.struct_value().fields().at("name").string_value(),
            "head/predictions/probabilities");
  EXPECT_EQ(output.struct_value().fields().at("tier").string_value(),
            "prediction");
  EXPECT_EQ(fields.at("structure").list_value().values_size(),
            graph.node_size());
}

TEST(JsonReport, HasNoStructureUnlessAsked) {
  EXPECT_THAT(JsonReport(GraphSummary(), "g", nullptr),
              Not(HasSubstr("structure")));
}

}  // namespace
}  // namespace requant::summary_report_test
