#include "graph/summary/summarize.h"

#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"

namespace requant::summarize_test {
namespace {

using tensorflow::MetaGraphDef;
using testing::Pair;

GraphSummary Summarize(const std::string& text) {
  return SummarizeGraph(GraphFromText(text));
}

template <typename Range>
std::vector<std::string> Names(const Range& range) {
  std::vector<std::string> names;
  for (const auto& element : range) names.push_back(element.name);
  return names;
}

TEST(SummarizeGraph, AnEmptyGraphHasNothing) {
  const GraphSummary summary = Summarize("");
  EXPECT_EQ(summary.nodes, 0);
  EXPECT_THAT(summary.inputs, IsEmpty());
  EXPECT_THAT(summary.outputs, IsEmpty());
  EXPECT_THAT(summary.chosen_outputs, IsEmpty());
  EXPECT_THAT(summary.ops, IsEmpty());
}

TEST(SummarizeGraph, CountsElementsFromShapesAlone) {
  // One stored value that stands for 4 TB of them.
  const GraphSummary summary = Summarize(R"(
    scalar = Const value=float{1}
    big = Const value=float<1099511627776>{1}
  )");
  EXPECT_EQ(summary.const_parameters, 1099511627777);
  EXPECT_THAT(summary.problems, IsEmpty());
}

TEST(SummarizeGraph, TheSumOfElementsDoesNotOverflow) {
  EXPECT_EQ(Summarize("a = Const value=float<9223372036854775807>{1}; "
                      "b = Const value=float<9223372036854775807>{1}")
                .const_parameters,
            INT64_MAX);
}

TEST(SummarizeGraph, ReportsConstsThatCannotBe) {
  const GraphSummary summary = Summarize(R"(
    empty = Const
    overflow = Const value=float<4611686018427387904,4611686018427387904>{1}
    negative = Const value=float<?>{1}
    rankless = Const value=float<*>{1}
    short = Const value=float<2>'1234'
  )");
  EXPECT_EQ(summary.const_parameters, 0);
  EXPECT_THAT(summary.problems,
              ElementsAre(HasSubstr("\"empty\""), HasSubstr("\"overflow\""),
                          HasSubstr("\"negative\""), HasSubstr("\"rankless\""),
                          HasSubstr("\"short\"")));
}

TEST(SummarizeGraph, AThousandDefectsAreCutShort) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a = Const\n";
  const GraphSummary summary = Summarize(text);
  EXPECT_EQ(summary.problems.size(), 21);
  EXPECT_THAT(summary.problems.back(), HasSubstr("1979 more"));
}

TEST(SummarizeGraph, CountsVariablesOfBothKindsByTheirShapes) {
  const GraphSummary summary = Summarize(R"(
    v = VariableV2 shape=<3,4>
    h = VarHandleOp shape=<5>
    unknown = VarHandleOp shape=<?>
    bare = Variable
  )");
  EXPECT_EQ(summary.variable_parameters, 17);
  EXPECT_THAT(Names(summary.variables),
              ElementsAre("v", "h", "unknown", "bare"));
}

TEST(SummarizeGraph, CountsOpsOfFunctionsToo) {
  const GraphSummary summary =
      Summarize("a = B; b = C\n function f() -> () {\n c = C; d = A\n }");
  EXPECT_THAT(summary.ops,
              ElementsAre(Pair("C", 2), Pair("A", 1), Pair("B", 1)));
  EXPECT_EQ(summary.functions, 1);
}

TEST(SummarizeGraph, NamesInputsThatAreMissingAndNamesThatAreRepeated) {
  const GraphSummary summary = Summarize("a = A(gone:1, ^also); a = A");
  EXPECT_THAT(summary.invalid_inputs,
              ElementsAre(Pair("a", "gone"), Pair("a", "also")));
  EXPECT_THAT(summary.problems, ElementsAre(HasSubstr("named \"a\"")));
  EXPECT_EQ(summary.control_edges, 1);
}

TEST(SummarizeGraph, InputsThatTheOutputNeedsComeFirst) {
  const GraphSummary summary = Summarize(R"(
    labels = Placeholder
    x = Placeholder
    loss = Sub(probabilities, labels)
    probabilities = Softmax(x)
  )");
  EXPECT_THAT(Names(summary.inputs), ElementsAre("x", "labels"));
  EXPECT_THAT(Names(summary.chosen_inputs), ElementsAre("x"));
  EXPECT_THAT(summary.chosen_outputs, ElementsAre("probabilities"));
  EXPECT_TRUE(summary.placeholders);
}

TEST(SummarizeGraph, IteratorsCountWhenThereIsNoPlaceholder) {
  const std::string iterator = R"(
    it = IteratorGetNext output_types=[int64,float] output_shapes=[<>]
    out = Softmax(it:1)
  )";
  const GraphSummary summary = Summarize(iterator);
  EXPECT_THAT(Names(summary.inputs), ElementsAre("it:1", "it"));
  EXPECT_EQ(summary.inputs[0].type, tensorflow::DT_FLOAT);
  EXPECT_FALSE(summary.inputs[0].has_shape);
  EXPECT_TRUE(summary.inputs[1].has_shape);
  EXPECT_FALSE(summary.placeholders);
  EXPECT_THAT(Names(Summarize(iterator + "p = Placeholder").inputs),
              ElementsAre("p"));
}

TEST(SummarizeGraph, ASaversDefaultFilenameIsNoInput) {
  EXPECT_THAT(Names(Summarize("save/filename = PlaceholderWithDefault; "
                              "keep_prob = PlaceholderWithDefault; "
                              "out = Mul(keep_prob)")
                        .inputs),
              ElementsAre("keep_prob"));
}

TEST(SummarizeGraph, ParsedRecordsCountWhenThereIsNoOtherInput) {
  const GraphSummary summary = Summarize(
      "reader = ReaderReadV2; parse = ParseExampleV2(reader:1); "
      "again = ParseExample(reader:1)");
  EXPECT_THAT(Names(summary.inputs), ElementsAre("reader:1"));
  EXPECT_EQ(summary.inputs[0].type, tensorflow::DT_STRING);
  EXPECT_FALSE(summary.placeholders);
}

TEST(SummarizeGraph, AllEndsThatAnInputReachesAreChosenOrElseEveryEnd) {
  EXPECT_THAT(Summarize("x = Placeholder; boxes = Relu(x); "
                        "scores = Sigmoid(x); loose = Unknown")
                  .chosen_outputs,
              ElementsAre("scores", "boxes"));
  EXPECT_THAT(Summarize("a = Range; b = Range").chosen_outputs,
              ElementsAre("a", "b"));
}

TEST(SummarizeGraph, OnlyNeededVariablesAreFed) {
  EXPECT_THAT(
      Names(Summarize("x = Placeholder; w = VariableV2; slot = VariableV2; "
                      "out = MatMul(x, w); step = ApplyAdam(slot)")
                .chosen_variables),
      ElementsAre("w"));
}

GraphSummary SummarizeMeta(const std::string& graph,
                           const std::string& signatures) {
  MetaGraphDef meta;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(signatures, &meta));
  *meta.mutable_graph_def() = GraphFromText(graph);
  return SummarizeMetaGraph(meta);
}

TEST(MetaGraph, TheDefaultSignatureComesFirstAndIsChosen) {
  const GraphSummary summary = SummarizeMeta(R"(
    a = Placeholder
    b = Placeholder
    f = PartitionedCall(b)
    probabilities = Softmax(a)
  )",
                                             R"(
    signature_def { key: "classify" value {
      inputs { key: "in" value { name: "a:0" } }
      outputs { key: "out" value { name: "probabilities:0" } } } }
    signature_def { key: "serving_default" value {
      inputs { key: "in" value { name: "b:0" dtype: DT_FLOAT } }
      outputs { key: "y" value { name: "f:1" } }
      outputs { key: "z" value { name: "f:0" } } } }
    signature_def { key: "__saved_model_init_op" value {
      outputs { key: "op" value { name: "f:0" } } } }
  )");
  EXPECT_THAT(
      Names(summary.signatures),
      ElementsAre("serving_default", "classify", "__saved_model_init_op"));
  EXPECT_EQ(summary.signatures[0].inputs[0].tensor.op, "Placeholder");
  EXPECT_THAT(Names(summary.likely_outputs), ElementsAre("f", "probabilities"));
  EXPECT_THAT(summary.chosen_outputs, ElementsAre("f:1", "f"));
  EXPECT_THAT(Names(summary.chosen_inputs), ElementsAre("b"));
  EXPECT_EQ(summary.chosen_inputs[0].type, tensorflow::DT_FLOAT);
}

TEST(MetaGraph, InputsOfSignaturesComeFirst) {
  const GraphSummary summary =
      SummarizeMeta("saver_filename = Placeholder; x = Placeholder",
                    R"(
    signature_def { key: "s" value {
      inputs { key: "x" value { name: "x:0" } } } }
  )");
  EXPECT_THAT(Names(summary.inputs), ElementsAre("x", "saver_filename"));
}

TEST(MetaGraph, ASparseTensorGivesItsThreeParts) {
  const GraphSummary summary = SummarizeMeta("", R"(
    signature_def { key: "s" value { inputs { key: "x" value { coo_sparse {
      values_tensor_name: "v:0" indices_tensor_name: "i:0"
      dense_shape_tensor_name: "d:0" } } } } }
  )");
  std::vector<std::string> keys;
  for (const auto& input : summary.signatures[0].inputs) {
    keys.push_back(input.key + "=" + input.tensor.name);
  }
  EXPECT_THAT(
      keys, ElementsAre("x/values=v:0", "x/indices=i:0", "x/dense_shape=d:0"));
}

TEST(MetaGraph, ReportsASignatureThatNamesAMissingNode) {
  const GraphSummary summary = SummarizeMeta("", R"(
    signature_def { key: "s" value {
      outputs { key: "y" value { name: "gone:0" } } } }
  )");
  EXPECT_THAT(summary.problems, ElementsAre(HasSubstr("\"gone:0\"")));
}

}  // namespace
}  // namespace requant::summarize_test
