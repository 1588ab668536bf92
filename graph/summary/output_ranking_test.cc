#include "graph/summary/output_ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/graph_wiring.h"
#include "graph/testing/testing.h"

namespace requant::output_ranking_test {
namespace {

using tensorflow::GraphDef;
using testing::ElementsAre;
using testing::IsEmpty;

// x → dense (weights w) and the labels y.
constexpr char kModel[] = R"pb(
  node { name: "x" op: "Placeholder" }
  node { name: "y" op: "Placeholder" }
  node { name: "w" op: "VariableV2" }
  node { name: "dense" op: "MatMul" input: "x" input: "w" }
)pb";

std::vector<RankedOutput> Rank(const GraphDef& graph) {
  const GraphWiring wiring(graph);
  return RankOutputs(graph, wiring, FindNodeParts(graph, wiring), {});
}

// The names of the candidates of at least this tier, best first.
std::vector<std::string> Ranked(const std::string& text,
                                OutputTier least = OutputTier::kForward) {
  const GraphDef graph = GraphFromText(text);
  std::vector<std::string> names;
  for (const RankedOutput& output : Rank(graph)) {
    if (output.tier >= least) names.push_back(graph.node(output.node).name());
  }
  return names;
}

std::string WithModel(const std::string& text) { return kModel + text; }

TEST(RankOutputs, ATellingNameComesFirst) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node { name: "a/Tile" op: "Tile" input: "dense" }
                node { name: "b/probabilities" op: "Mul" input: "dense" }
              )pb")),
              ElementsAre("b/probabilities", "a/Tile"));
}

TEST(RankOutputs, ASerialNumberDoesNotHideTheName) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node { name: "Tile" op: "Tile" input: "dense" }
                node { name: "logits_12" op: "Mul" input: "dense" }
              )pb")),
              ElementsAre("logits_12", "Tile"));
}

TEST(RankOutputs, ASoftmaxBehindIdentitiesComesFirst) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node { name: "other" op: "Tile" input: "dense" }
                node { name: "s" op: "Softmax" input: "dense" }
                node { name: "r" op: "Reshape" input: "s" }
                node { name: "i" op: "Identity" input: "r" }
              )pb")),
              ElementsAre("i", "other"));
}

TEST(RankOutputs, AKnownScalarComesAfterABatch) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node {
                  name: "scalar"
                  op: "Mean"
                  input: "dense"
                  attr {
                    key: "_output_shapes"
                    value { list { shape {} } }
                  }
                }
                node { name: "batch" op: "Mul" input: "dense" }
              )pb")),
              ElementsAre("batch", "scalar"));
}

TEST(RankOutputs, EqualCandidatesKeepTheGraphsOrder) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node { name: "b" op: "Relu" input: "dense" }
                node { name: "a" op: "Relu" input: "dense" }
              )pb")),
              ElementsAre("b", "a"));
}

TEST(RankOutputs, TrainingPartsAreAuxiliary) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node { name: "gradients/Mul" op: "Mul" input: "dense" }
                node { name: "save/Identity" op: "Identity" input: "dense" }
                node { name: "head/losses/Sum" op: "Sum" input: "dense" }
                node { name: "my_loss_1/Sum" op: "Sum" input: "dense" }
                node { name: "s" op: "ScalarSummary" input: "dense" }
                node { name: "u" op: "ResourceApplyAdam" input: "dense" }
                node { name: "g" op: "ReluGrad" input: "dense" }
                node { name: "e" op: "QueueEnqueueV2" input: "dense" }
              )pb")),
              ElementsAre("dense"));
}

TEST(RankOutputs, WhatComesFromATrainingPartIsAuxiliary) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node { name: "loss" op: "Sum" input: "dense" }
                node { name: "scaled/output" op: "Mul" input: "loss" }
              )pb")),
              ElementsAre("dense"));
}

TEST(RankOutputs, AConstWithATrainingNameTaintsNothing) {
  EXPECT_THAT(
      Ranked(WithModel(R"pb(
        node { name: "loss/scale" op: "Const" }
        node { name: "out" op: "Mul" input: "dense" input: "loss/scale" }
      )pb")),
      ElementsAre("out"));
}

TEST(RankOutputs, WhatReadsTheLabelsIsAuxiliary) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node {
                  name: "xent"
                  op: "SparseSoftmaxCrossEntropyWithLogits"
                  input: "dense"
                  input: "y"
                }
                node { name: "guess" op: "ArgMax" input: "dense" }
                node { name: "hit" op: "Equal" input: "guess" input: "y" }
                node { name: "Mean" op: "Mean" input: "hit" }
              )pb")),
              ElementsAre("guess"));
}

TEST(RankOutputs, AnAutoencodersInputIsNotItsLabel) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node {
                  name: "xent"
                  op: "SoftmaxCrossEntropyWithLogits"
                  input: "dense"
                  input: "x"
                }
                node { name: "code" op: "Relu" input: "dense" }
              )pb")),
              ElementsAre("code"));
}

TEST(RankOutputs, OneIteratorCanGiveFeaturesAndLabels) {
  EXPECT_THAT(Ranked(R"pb(
                node { name: "it" op: "IteratorGetNext" }
                node { name: "w" op: "VariableV2" }
                node { name: "logits" op: "MatMul" input: "it" input: "w" }
                node {
                  name: "xent"
                  op: "SparseSoftmaxCrossEntropyWithLogits"
                  input: "logits"
                  input: "it:1"
                }
                node { name: "hits" op: "Equal" input: "logits" input: "it:1" }
              )pb"),
              ElementsAre("logits"));
}

TEST(RankOutputs, AShapeIsNoOutput) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                node { name: "logits/Shape" op: "Shape" input: "dense" }
              )pb")),
              ElementsAre("dense"));
}

TEST(RankOutputs, WhatOnlyUpdatesVariablesIsAuxiliary) {
  EXPECT_THAT(
      Ranked(WithModel(R"pb(
        node { name: "total" op: "VarHandleOp" }
        node { name: "sum" op: "Sum" input: "dense" }
        node { name: "a" op: "AssignAddVariableOp" input: "total" input: "sum" }
        node { name: "out" op: "Relu" input: "dense" }
      )pb")),
      ElementsAre("out"));
}

TEST(RankOutputs, WithoutWeightsItIsNoPredictionInAGraphThatHasSome) {
  EXPECT_THAT(Ranked(WithModel(R"pb(
                       node { name: "predictions" op: "Cast" input: "y" }
                       node { name: "out" op: "Relu" input: "dense" }
                     )pb"),
                     OutputTier::kPrediction),
              ElementsAre("out"));
}

TEST(RankOutputs, AWeightlessGraphCanPredictToo) {
  EXPECT_THAT(Ranked(R"pb(
                       node { name: "x" op: "Placeholder" }
                       node { name: "s" op: "Softmax" input: "x" }
                     )pb",
                     OutputTier::kPrediction),
              ElementsAre("s"));
}

TEST(RankOutputs, WithoutAnInputNothingIsForward) {
  const std::string graph =
      R"pb(node { name: "w" op: "VariableV2" }
           node { name: "softmax" op: "Softmax" input: "w" })pb";
  EXPECT_THAT(Ranked(graph), IsEmpty());
  EXPECT_THAT(Ranked(graph, OutputTier::kUnconnected), ElementsAre("softmax"));
}

TEST(RankOutputs, SignatureOutputsComeFirstInTheOrderOfSignatures) {
  const GraphDef graph = GraphFromText(R"pb(
    node { name: "x" op: "Placeholder" }
    node { name: "probabilities" op: "Softmax" input: "x" }
    node { name: "second" op: "Softmax" input: "x" }
    node { name: "first" op: "Tile" input: "x" }
  )pb");
  const GraphWiring wiring(graph);
  std::vector<std::string> names;
  for (const RankedOutput& output :
       RankOutputs(graph, wiring, FindNodeParts(graph, wiring),
                   {{wiring.Find("first"), 0}, {wiring.Find("second"), 1}})) {
    names.push_back(graph.node(output.node).name());
  }
  EXPECT_THAT(names, ElementsAre("first", "second", "probabilities"));
}

TEST(RankOutputs, SurvivesLoopsAndInputsThatAreMissing) {
  EXPECT_THAT(Ranked(R"pb(
                node { name: "x" op: "Placeholder" }
                node { name: "i" op: "Identity" input: "i" input: "x" }
                node { name: "out" op: "Identity" input: "gone" input: "i" }
                node { name: "xent" op: "SoftmaxCrossEntropyWithLogits" }
              )pb"),
              ElementsAre("out"));
}

}  // namespace
}  // namespace requant::output_ranking_test
