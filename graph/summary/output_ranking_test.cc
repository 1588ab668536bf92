#include "graph/summary/output_ranking.h"

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

// Returns the names of the candidates of at least this tier, best first.
std::vector<std::string> Ranked(
    const std::string& text, OutputTier least = OutputTier::kForward,
    const std::vector<std::string>& signatures = {}) {
  const GraphDef graph = GraphFromText(text);
  const GraphWiring wiring(graph);
  absl::flat_hash_map<int, int> nodes;
  for (size_t i = 0; i < signatures.size(); ++i) {
    nodes[wiring.Find(signatures[i])] = i;
  }
  std::vector<std::string> names;
  for (const RankedOutput& output :
       RankOutputs(graph, wiring, FindNodeParts(graph, wiring), nodes)) {
    if (output.tier >= least) names.push_back(graph.node(output.node).name());
  }
  return names;
}

TEST(RankOutputs, OrdersTheEndsOfAModel) {
  struct Case {
    const char* rule;
    const char* nodes;
    std::vector<std::string> ranked;
  };
  const Case cases[] = {
      {"a name that says so comes first",
       "a/Tile = Tile(dense); b/probabilities = Mul(dense)",
       {"b/probabilities", "a/Tile"}},
      {"a serial number does not hide the name",
       "Tile = Tile(dense); logits_12 = Mul(dense)",
       {"logits_12", "Tile"}},
      {"a Softmax that Identities pass on comes first",
       "other = Tile(dense); s = Softmax(dense); r = Reshape(s); "
       "i = Identity(r)",
       {"i", "other"}},
      {"a known scalar comes after a batch",
       "scalar = Mean(dense) _output_shapes=[<>]; batch = Mul(dense)",
       {"batch", "scalar"}},
      {"equal candidates keep the graph's order",
       "b = Relu(dense); a = Relu(dense)",
       {"b", "a"}},
      {"training parts are auxiliary",
       R"(
        gradients/Mul = Mul(dense)
        save/Identity = Identity(dense)
        head/losses/Sum = Sum(dense)
        my_loss_1/Sum = Sum(dense)
        s = ScalarSummary(dense)
        u = ResourceApplyAdam(dense)
        g = ReluGrad(dense)
        e = QueueEnqueueV2(dense))",
       {"dense"}},
      {"what comes from a training part is auxiliary",
       "loss = Sum(dense); scaled/output = Mul(loss)",
       {"dense"}},
      {"a Const with a training name taints nothing",
       "loss/scale = Const; out = Mul(dense, loss/scale)",
       {"out"}},
      {"what reads the labels is auxiliary",
       R"(
        xent = SparseSoftmaxCrossEntropyWithLogits(dense, y)
        guess = ArgMax(dense)
        hit = Equal(guess, y)
        Mean = Mean(hit))",
       {"guess"}},
      {"an autoencoder's input is not its label",
       "xent = SoftmaxCrossEntropyWithLogits(dense, x); code = Relu(dense)",
       {"code"}},
      {"a shape is no output", "logits/Shape = Shape(dense)", {"dense"}},
      {"what only updates variables is auxiliary",
       R"(
        total = VarHandleOp
        sum = Sum(dense)
        a = AssignAddVariableOp(total, sum)
        out = Relu(dense))",
       {"out"}},
  };
  for (const Case& rank : cases) {
    EXPECT_EQ(Ranked(std::string(kModel) + rank.nodes), rank.ranked)
        << rank.rule;
  }
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

TEST(RankOutputs, WithoutWeightsItIsNoPredictionInAGraphThatHasSome) {
  EXPECT_THAT(
      Ranked(absl::StrCat(kModel, "predictions = Cast(y); out = Relu(dense)"),
             OutputTier::kPrediction),
      ElementsAre("out"));
  EXPECT_THAT(
      Ranked("x = Placeholder; s = Softmax(x)", OutputTier::kPrediction),
      ElementsAre("s"));
}

TEST(RankOutputs, WithoutAnInputNothingIsForward) {
  const std::string graph = "w = VariableV2; softmax = Softmax(w)";
  EXPECT_THAT(Ranked(graph), IsEmpty());
  EXPECT_THAT(Ranked(graph, OutputTier::kUnconnected), ElementsAre("softmax"));
}

TEST(RankOutputs, SignatureOutputsComeFirstInTheOrderOfSignatures) {
  EXPECT_THAT(Ranked("x = Placeholder; probabilities = Softmax(x); "
                     "second = Softmax(x); first = Tile(x)",
                     OutputTier::kAuxiliary, {"first", "second"}),
              ElementsAre("first", "second", "probabilities"));
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
