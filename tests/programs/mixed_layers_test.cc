// The fixture of mixed layers: what its README promises, which the tests of
// quantization rest on.

#include "base/files/file.h"
#include "graph/graph_io.h"
#include "re2/re2.h"
#include "tests/support/mixed_records.h"
#include "tests/support/program_runs.h"
#include "transforms/testing/testing.h"

namespace requant::mixed_layers_test {
namespace {

constexpr char kFolder[] = "tests/data/mixed_layers/";

class MixedLayersTest : public testing::Test {
 protected:
  const GraphDef graph_ = ReadGraph(absl::StrCat(kFolder, "frozen.pb")).value();
  TestFolder folder_;
};

TEST_F(MixedLayersTest, HasTheLayersThatItsReadmeNames) {
  EXPECT_THAT(NodesOf(graph_, "MatMul"), SizeIs(8));
  // The first has a bias by AddV2, before the product.
  EXPECT_THAT(graph_, HasNodes(R"(
    tower/context/dense/add = AddV2(tower/context/dense/bias/read,
        tower/context/dense/MatMul)
  )"));
  // Two layers share a kernel.
  EXPECT_THAT(graph_, HasNodes(R"(
    tower/signal/projection/MatMul = MatMul(tower/signal/dense/Relu,
        tower/shared/kernel/read)
    tower/context/projection/MatMul = MatMul(tower/context/dense/Relu,
        tower/shared/kernel/read)
  )"));
  // One has a transposed kernel, and a bias with two readers.
  EXPECT_THAT(graph_, HasNodes(R"(
    head/hidden/MatMul = MatMul(head/features, head/hidden/kernel/read)
        transpose_b=true
    head/hidden/Relu = Relu(head/hidden/BiasAdd)
    head/hidden/gate = Sigmoid(head/hidden/BiasAdd)
  )"));
  // One has no bias, and one multiplies two activations.
  EXPECT_THAT(graph_, HasNodes(R"(
    head/mix/Relu = Relu(head/mix/MatMul)
    match/MatMul = MatMul(tower/signal/projection/Relu6,
        tower/context/projection/BiasAdd) transpose_b=true
  )"));
}

// Each is read through an Identity, as in every graph frozen from reference
// variables.
TEST_F(MixedLayersTest, HasKernelsWhoseDepthsAreNoMultiplesOfFour) {
  for (const std::string layer : {"tower/signal/dense", "tower/context/dense",
                                  "head/mix", "head/logits", "tower/shared"}) {
    EXPECT_THAT(NodeNamed(graph_, layer + "/kernel/read").input(),
                ElementsAre(layer + "/kernel"));
    EXPECT_NE(ConstNamed(graph_, layer + "/kernel").dim_size(0) % 4, 0)
        << layer;
  }
}

class MixedLayersRunTest : public MixedLayersTest {
 protected:
  // Returns the values of `tensor` for some of `records`.
  std::vector<float> Run(const MixedRecords& records, int first, int rows,
                         const std::string& tensor) {
    const auto some = [&](const std::vector<float>& values, int columns) {
      const auto begin = values.begin() + first * columns;
      return TensorOf<float>({rows, columns}, {begin, begin + rows * columns});
    };
    return ValuesOf(
        MustRunGraph(graph_,
                     {{"signal", some(records.signal, kMixedSignals)},
                      {"context", some(records.context, kMixedContexts)}},
                     {tensor})[0]);
  }

  const MixedRecords records_ = DrawMixedRecords(MixedSplit::kEval, 200);
};

TEST_F(MixedLayersRunTest, FeedsNegativeValuesToThreeLayers) {
  for (const std::vector<float>& values :
       {records_.signal, records_.context,
        Run(records_, 0, 200, "head/features")}) {
    EXPECT_LT(*std::min_element(values.begin(), values.end()), -1);
  }
}

TEST_F(MixedLayersRunTest, ReachesTheLimitOfRelu6) {
  const std::vector<float> values =
      Run(records_, 0, 200, "tower/signal/projection/Relu6");
  EXPECT_GT(std::count(values.begin(), values.end(), 6.0f), 10);
}

TEST_F(MixedLayersRunTest, GivesARecordTheSameResultWhateverItsNeighbours) {
  const std::vector<float> together =
      Run(records_, 0, 200, "head/probabilities");
  for (int i : {0, 7, 199}) {
    const std::vector<float> alone = Run(records_, i, 1, "head/probabilities");
    ASSERT_THAT(alone, SizeIs(kMixedClasses));
    for (int j = 0; j < kMixedClasses; ++j) {
      EXPECT_NEAR(alone[j], together[i * kMixedClasses + j], 1e-5);
    }
  }
}

TEST_F(MixedLayersTest, HasTheAccuracyThatItsTrainingRecorded) {
  int records = 0;
  int recorded = 0;
  ASSERT_TRUE(RE2::PartialMatch(
      ReadFile(absl::StrCat(kFolder, "model.json")).value(),
      "\"eval\": {\\s*\"records\": (\\d+),\\s*\"correct\": (\\d+)", &records,
      &recorded));
  ASSERT_OK(
      WriteMixedRecords(folder_.Path("eval.npz"), MixedSplit::kEval, records));
  const ProgramRun run =
      RunProgram("runtime/evaluate_graph",
                 {absl::StrCat("--graph=", kFolder, "frozen.pb"),
                  absl::StrCat("--dataset=", kFolder, "dataset.textproto"),
                  "--data=" + folder_.Path("eval.npz")});
  ASSERT_THAT(run, Exits(0));
  const int correct = NumberIn(run.out, kCorrectPredictions);
  // Other kernels sum in another order, which may turn a record at the border
  // between two classes.
  EXPECT_NEAR(correct, recorded, 2);
  // Far above chance, and with room to lose and to gain.
  EXPECT_GT(correct, 0.85 * records);
  EXPECT_LT(correct, 0.95 * records);
}

TEST(DrawMixedRecords, DrawsTheSameRowsInLongerRunsAndOthersForAnotherSplit) {
  const MixedRecords few = DrawMixedRecords(MixedSplit::kEval, 10);
  const MixedRecords many = DrawMixedRecords(MixedSplit::kEval, 20);
  EXPECT_TRUE(
      std::equal(few.signal.begin(), few.signal.end(), many.signal.begin()));
  EXPECT_TRUE(
      std::equal(few.label.begin(), few.label.end(), many.label.begin()));
  EXPECT_NE(few.signal, DrawMixedRecords(MixedSplit::kCalibration, 10).signal);
}

TEST(DrawMixedRecords, DrawsEveryClassAsOften) {
  constexpr int kRows = 20000;
  const MixedRecords records = DrawMixedRecords(MixedSplit::kTrain, kRows);
  for (int label = 0; label < kMixedClasses; ++label) {
    // Four standard deviations.
    EXPECT_NEAR(std::count(records.label.begin(), records.label.end(), label),
                kRows / kMixedClasses, 226);
  }
}

}  // namespace
}  // namespace requant::mixed_layers_test
