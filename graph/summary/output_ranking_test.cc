#include "graph/summary/output_ranking.h"

#include "graph/graph_wiring.h"
#include "graph/testing/testing.h"

namespace requant::output_ranking_test {
namespace {

// x → dense (weights w) and the labels y.
constexpr char kModel[] = R"(
  x = Placeholder
  y = Placeholder
  w = VariableV2
  dense = MatMul(x, w)
)";

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
  EXPECT_THAT(
      Ranked(WithModel("a/Tile = Tile(dense); b/probabilities = Mul(dense)")),
      ElementsAre("b/probabilities", "a/Tile"));
}

TEST(RankOutputs, ASerialNumberDoesNotHideTheName) {
  EXPECT_THAT(Ranked(WithModel("Tile = Tile(dense); logits_12 = Mul(dense)")),
              ElementsAre("logits_12", "Tile"));
}

TEST(RankOutputs, ASoftmaxBehindIdentitiesComesFirst) {
  EXPECT_THAT(Ranked(WithModel(R"(
    other = Tile(dense)
    s = Softmax(dense)
    r = Reshape(s)
    i = Identity(r)
  )")),
              ElementsAre("i", "other"));
}

TEST(RankOutputs, AKnownScalarComesAfterABatch) {
  EXPECT_THAT(
      Ranked(WithModel(
          "scalar = Mean(dense) _output_shapes=[<>]; batch = Mul(dense)")),
      ElementsAre("batch", "scalar"));
}

TEST(RankOutputs, EqualCandidatesKeepTheGraphsOrder) {
  EXPECT_THAT(Ranked(WithModel("b = Relu(dense); a = Relu(dense)")),
              ElementsAre("b", "a"));
}

TEST(RankOutputs, TrainingPartsAreAuxiliary) {
  EXPECT_THAT(Ranked(WithModel(R"(
    gradients/Mul = Mul(dense)
    save/Identity = Identity(dense)
    head/losses/Sum = Sum(dense)
    my_loss_1/Sum = Sum(dense)
    s = ScalarSummary(dense)
    u = ResourceApplyAdam(dense)
    g = ReluGrad(dense)
    e = QueueEnqueueV2(dense)
  )")),
              ElementsAre("dense"));
}

TEST(RankOutputs, WhatComesFromATrainingPartIsAuxiliary) {
  EXPECT_THAT(Ranked(WithModel("loss = Sum(dense); scaled/output = Mul(loss)")),
              ElementsAre("dense"));
}

TEST(RankOutputs, AConstWithATrainingNameTaintsNothing) {
  EXPECT_THAT(
      Ranked(WithModel("loss/scale = Const; out = Mul(dense, loss/scale)")),
      ElementsAre("out"));
}

TEST(RankOutputs, WhatReadsTheLabelsIsAuxiliary) {
  EXPECT_THAT(Ranked(WithModel(R"(
    xent = SparseSoftmaxCrossEntropyWithLogits(dense, y)
    guess = ArgMax(dense)
    hit = Equal(guess, y)
    Mean = Mean(hit)
  )")),
              ElementsAre("guess"));
}

TEST(RankOutputs, AnAutoencodersInputIsNotItsLabel) {
  EXPECT_THAT(Ranked(WithModel(R"(
    xent = SoftmaxCrossEntropyWithLogits(dense, x)
    code = Relu(dense)
  )")),
              ElementsAre("code"));
}

TEST(RankOutputs, OneIteratorCanGiveFeaturesAndLabels) {
  EXPECT_THAT(Ranked(R"(
    it = IteratorGetNext
    w = VariableV2
    logits = MatMul(it, w)
    xent = SparseSoftmaxCrossEntropyWithLogits(logits, it:1)
    hits = Equal(logits, it:1)
  )"),
              ElementsAre("logits"));
}

TEST(RankOutputs, AShapeIsNoOutput) {
  EXPECT_THAT(Ranked(WithModel("logits/Shape = Shape(dense)")),
              ElementsAre("dense"));
}

TEST(RankOutputs, WhatOnlyUpdatesVariablesIsAuxiliary) {
  EXPECT_THAT(Ranked(WithModel(R"(
    total = VarHandleOp
    sum = Sum(dense)
    a = AssignAddVariableOp(total, sum)
    out = Relu(dense)
  )")),
              ElementsAre("out"));
}

TEST(RankOutputs, WithoutWeightsItIsNoPredictionInAGraphThatHasSome) {
  EXPECT_THAT(Ranked(WithModel("predictions = Cast(y); out = Relu(dense)"),
                     OutputTier::kPrediction),
              ElementsAre("out"));
}

TEST(RankOutputs, AWeightlessGraphCanPredictToo) {
  EXPECT_THAT(
      Ranked("x = Placeholder; s = Softmax(x)", OutputTier::kPrediction),
      ElementsAre("s"));
}

TEST(RankOutputs, WithoutAnInputNothingIsForward) {
  const std::string graph =
      R"(
    w = VariableV2
    softmax = Softmax(w)
  )";
  EXPECT_THAT(Ranked(graph), IsEmpty());
  EXPECT_THAT(Ranked(graph, OutputTier::kUnconnected), ElementsAre("softmax"));
}

TEST(RankOutputs, SignatureOutputsComeFirstInTheOrderOfSignatures) {
  const GraphDef graph = GraphFromText(R"(
    x = Placeholder
    probabilities = Softmax(x)
    second = Softmax(x)
    first = Tile(x)
  )");
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
  EXPECT_THAT(Ranked(R"(
    x = Placeholder
    i = Identity(i, x)
    out = Identity(gone, i)
    xent = SoftmaxCrossEntropyWithLogits
  )"),
              ElementsAre("out"));
}

}  // namespace
}  // namespace requant::output_ranking_test
