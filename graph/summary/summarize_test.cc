#include "graph/summary/summarize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant::summarize_test {
namespace {

using tensorflow::MetaGraphDef;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
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

// A Const of float type with this shape, as in "dim { size: 2 }".
std::string Const(const std::string& name, const std::string& shape) {
  return "node { name: '" + name +
         "' op: 'Const' attr { key: 'value' value { tensor { dtype: DT_FLOAT "
         "tensor_shape { " +
         shape + " } float_val: 1 } } } }";
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
  const GraphSummary summary = Summarize(
      Const("scalar", "") + Const("big", "dim { size: 1099511627776 }"));
  EXPECT_EQ(summary.const_parameters, 1099511627777);
  EXPECT_THAT(summary.problems, IsEmpty());
}

TEST(SummarizeGraph, TheSumOfElementsDoesNotOverflow) {
  const std::string huge = "dim { size: 9223372036854775807 }";
  EXPECT_EQ(Summarize(Const("a", huge) + Const("b", huge)).const_parameters,
            INT64_MAX);
}

TEST(SummarizeGraph, ReportsConstsThatCannotBe) {
  const std::string huge = "dim { size: 4611686018427387904 }";
  const GraphSummary summary = Summarize(
      "node { name: 'empty' op: 'Const' }" + Const("overflow", huge + huge) +
      Const("negative", "dim { size: -1 }") +
      Const("rankless", "unknown_rank: true") + R"pb(
        node {
          name: "short"
          op: "Const"
          attr {
            key: "value"
            value {
              tensor {
                dtype: DT_FLOAT
                tensor_shape { dim { size: 2 } }
                tensor_content: "1234"
              }
            }
          }
        }
      )pb");
  EXPECT_EQ(summary.const_parameters, 0);
  EXPECT_THAT(summary.problems,
              ElementsAre(HasSubstr("\"empty\""), HasSubstr("\"overflow\""),
                          HasSubstr("\"negative\""), HasSubstr("\"rankless\""),
                          HasSubstr("\"short\"")));
}

TEST(SummarizeGraph, AThousandDefectsAreCutShort) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "node { name: 'a' op: 'Const' }";
  const GraphSummary summary = Summarize(text);
  EXPECT_EQ(summary.problems.size(), 21);
  EXPECT_THAT(summary.problems.back(), HasSubstr("1979 more"));
}

TEST(SummarizeGraph, CountsVariablesOfBothKindsByTheirShapes) {
  const GraphSummary summary = Summarize(R"pb(
    node {
      name: "v"
      op: "VariableV2"
      attr {
        key: "shape"
        value {
          shape {
            dim { size: 3 }
            dim { size: 4 }
          }
        }
      }
    }
    node {
      name: "h"
      op: "VarHandleOp"
      attr {
        key: "shape"
        value { shape { dim { size: 5 } } }
      }
    }
    node {
      name: "unknown"
      op: "VarHandleOp"
      attr {
        key: "shape"
        value { shape { dim { size: -1 } } }
      }
    }
    node { name: "bare" op: "Variable" }
  )pb");
  EXPECT_EQ(summary.variable_parameters, 17);
  EXPECT_THAT(Names(summary.variables),
              ElementsAre("v", "h", "unknown", "bare"));
}

TEST(SummarizeGraph, CountsOpsOfFunctionsToo) {
  const GraphSummary summary = Summarize(R"pb(
    node { name: "a" op: "B" }
    node { name: "b" op: "C" }
    library {
      function {
        signature { name: "f" }
        node_def { name: "c" op: "C" }
        node_def { name: "d" op: "A" }
      }
    }
  )pb");
  EXPECT_THAT(summary.ops,
              ElementsAre(Pair("C", 2), Pair("A", 1), Pair("B", 1)));
  EXPECT_EQ(summary.functions, 1);
}

TEST(SummarizeGraph, NamesInputsThatAreMissingAndNamesThatAreRepeated) {
  const GraphSummary summary = Summarize(R"pb(
    node { name: "a" op: "A" input: "gone:1" input: "^also" }
    node { name: "a" op: "A" }
  )pb");
  EXPECT_THAT(summary.invalid_inputs,
              ElementsAre(Pair("a", "gone"), Pair("a", "also")));
  EXPECT_THAT(summary.problems, ElementsAre(HasSubstr("named \"a\"")));
  EXPECT_EQ(summary.control_edges, 1);
}

TEST(SummarizeGraph, InputsThatTheOutputNeedsComeFirst) {
  const GraphSummary summary = Summarize(R"pb(
    node { name: "labels" op: "Placeholder" }
    node { name: "x" op: "Placeholder" }
    node { name: "loss" op: "Sub" input: "probabilities" input: "labels" }
    node { name: "probabilities" op: "Softmax" input: "x" }
  )pb");
  EXPECT_THAT(Names(summary.inputs), ElementsAre("x", "labels"));
  EXPECT_THAT(Names(summary.chosen_inputs), ElementsAre("x"));
  EXPECT_THAT(summary.chosen_outputs, ElementsAre("probabilities"));
  EXPECT_TRUE(summary.placeholders);
}

TEST(SummarizeGraph, IteratorsCountWhenThereIsNoPlaceholder) {
  const std::string iterator = R"pb(
    node {
      name: "it"
      op: "IteratorGetNext"
      attr {
        key: "output_types"
        value { list { type: DT_INT64 type: DT_FLOAT } }
      }
      attr {
        key: "output_shapes"
        value { list { shape {} } }
      }
    }
    node { name: "out" op: "Softmax" input: "it:1" }
  )pb";
  const GraphSummary summary = Summarize(iterator);
  EXPECT_THAT(Names(summary.inputs), ElementsAre("it:1", "it"));
  EXPECT_EQ(summary.inputs[0].type, tensorflow::DT_FLOAT);
  EXPECT_FALSE(summary.inputs[0].has_shape);
  EXPECT_TRUE(summary.inputs[1].has_shape);
  EXPECT_FALSE(summary.placeholders);
  EXPECT_THAT(
      Names(
          Summarize(iterator + "node { name: 'p' op: 'Placeholder' }").inputs),
      ElementsAre("p"));
}

TEST(SummarizeGraph, ASaversDefaultFilenameIsNoInput) {
  EXPECT_THAT(
      Names(Summarize(R"pb(
              node { name: "save/filename" op: "PlaceholderWithDefault" }
              node { name: "keep_prob" op: "PlaceholderWithDefault" }
              node { name: "out" op: "Mul" input: "keep_prob" }
            )pb")
                .inputs),
      ElementsAre("keep_prob"));
}

TEST(SummarizeGraph, ParsedRecordsCountWhenThereIsNoOtherInput) {
  const GraphSummary summary = Summarize(R"pb(
    node { name: "reader" op: "ReaderReadV2" }
    node { name: "parse" op: "ParseExampleV2" input: "reader:1" }
    node { name: "again" op: "ParseExample" input: "reader:1" }
  )pb");
  EXPECT_THAT(Names(summary.inputs), ElementsAre("reader:1"));
  EXPECT_EQ(summary.inputs[0].type, tensorflow::DT_STRING);
  EXPECT_FALSE(summary.placeholders);
}

TEST(SummarizeGraph, AllEndsOfAnInferenceGraphAreChosen) {
  EXPECT_THAT(Summarize(R"pb(
                node { name: "x" op: "Placeholder" }
                node { name: "boxes" op: "Relu" input: "x" }
                node { name: "scores" op: "Sigmoid" input: "x" }
                node { name: "loose" op: "Unknown" }
              )pb")
                  .chosen_outputs,
              ElementsAre("scores", "boxes"));
}

TEST(SummarizeGraph, WithoutAnInputEveryEndIsChosen) {
  EXPECT_THAT(Summarize(R"pb(node { name: "a" op: "Range" }
                             node { name: "b" op: "Range" })pb")
                  .chosen_outputs,
              ElementsAre("a", "b"));
}

TEST(SummarizeGraph, OnlyNeededVariablesAreFed) {
  EXPECT_THAT(Names(Summarize(R"pb(
                      node { name: "x" op: "Placeholder" }
                      node { name: "w" op: "VariableV2" }
                      node { name: "slot" op: "VariableV2" }
                      node { name: "out" op: "MatMul" input: "x" input: "w" }
                      node { name: "step" op: "ApplyAdam" input: "slot" }
                    )pb")
                        .chosen_variables),
              ElementsAre("w"));
}

class MetaGraph : public testing::Test {
 protected:
  GraphSummary Summarize(const std::string& text) {
    MetaGraphDef meta;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &meta));
    return SummarizeMetaGraph(meta);
  }
};

TEST_F(MetaGraph, TheDefaultSignatureComesFirstAndIsChosen) {
  const GraphSummary summary = Summarize(R"pb(
    graph_def {
      node { name: "a" op: "Placeholder" }
      node { name: "b" op: "Placeholder" }
      node { name: "f" op: "PartitionedCall" input: "b" }
      node { name: "probabilities" op: "Softmax" input: "a" }
    }
    signature_def {
      key: "classify"
      value {
        inputs {
          key: "in"
          value { name: "a:0" }
        }
        outputs {
          key: "out"
          value { name: "probabilities:0" }
        }
      }
    }
    signature_def {
      key: "serving_default"
      value {
        inputs {
          key: "in"
          value { name: "b:0" dtype: DT_FLOAT }
        }
        outputs {
          key: "y"
          value { name: "f:1" }
        }
        outputs {
          key: "z"
          value { name: "f:0" }
        }
      }
    }
    signature_def {
      key: "__saved_model_init_op"
      value {
        outputs {
          key: "op"
          value { name: "f:0" }
        }
      }
    }
  )pb");
  EXPECT_THAT(
      Names(summary.signatures),
      ElementsAre("serving_default", "classify", "__saved_model_init_op"));
  EXPECT_EQ(summary.signatures[0].inputs[0].tensor.op, "Placeholder");
  EXPECT_THAT(Names(summary.likely_outputs), ElementsAre("f", "probabilities"));
  EXPECT_THAT(summary.chosen_outputs, ElementsAre("f:1", "f"));
  EXPECT_THAT(Names(summary.chosen_inputs), ElementsAre("b"));
  EXPECT_EQ(summary.chosen_inputs[0].type, tensorflow::DT_FLOAT);
}

TEST_F(MetaGraph, InputsOfSignaturesComeFirst) {
  EXPECT_THAT(Names(Summarize(R"pb(
                      graph_def {
                        node { name: "saver_filename" op: "Placeholder" }
                        node { name: "x" op: "Placeholder" }
                      }
                      signature_def {
                        key: "s"
                        value {
                          inputs {
                            key: "x"
                            value { name: "x:0" }
                          }
                        }
                      }
                    )pb")
                        .inputs),
              ElementsAre("x", "saver_filename"));
}

TEST_F(MetaGraph, ASparseTensorGivesItsThreeParts) {
  const GraphSummary summary = Summarize(R"pb(
    signature_def {
      key: "s"
      value {
        inputs {
          key: "x"
          value {
            coo_sparse {
              values_tensor_name: "v:0"
              indices_tensor_name: "i:0"
              dense_shape_tensor_name: "d:0"
            }
          }
        }
      }
    }
  )pb");
  std::vector<std::string> keys;
  for (const auto& input : summary.signatures[0].inputs) {
    keys.push_back(input.key + "=" + input.tensor.name);
  }
  EXPECT_THAT(
      keys, ElementsAre("x/values=v:0", "x/indices=i:0", "x/dense_shape=d:0"));
}

TEST_F(MetaGraph, ReportsASignatureThatNamesAMissingNode) {
  EXPECT_THAT(Summarize(R"pb(
                signature_def {
                  key: "s"
                  value {
                    outputs {
                      key: "y"
                      value { name: "gone:0" }
                    }
                  }
                }
              )pb")
                  .problems,
              ElementsAre(HasSubstr("\"gone:0\"")));
}

}  // namespace
}  // namespace requant::summarize_test
