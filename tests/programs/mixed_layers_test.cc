// The fixture of mixed layers: what its README promises, which the tests of
// quantization rest on.

#include "base/files/file.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"
#include "re2/re2.h"
#include "tests/support/mixed_records.h"
#include "tests/support/program_runs.h"

namespace requant::mixed_layers_test {
namespace {

constexpr char kFolder[] = "tests/data/mixed_layers/";

class MixedLayersTest : public testing::Test {
 protected:
  MixedLayersTest()
      : graph_(ReadGraph(absl::StrCat(kFolder, "frozen.pb")).value()) {}

  std::vector<std::string> ReadersOf(const std::string& name) const {
    std::vector<std::string> readers;
    for (const NodeDef& node : graph_.node()) {
      for (const std::string& input : node.input()) {
        if (input == name) readers.push_back(node.name());
      }
    }
    return readers;
  }

  const NodeDef& Named(const std::string& name) const {
    return NodeNamed(graph_, name);
  }

  // Returns the constant that a layer's kernel is read from, through an
  // Identity as in every graph frozen from reference variables.
  const NodeDef& Kernel(const std::string& matmul) const {
    return Named(Named(Named(matmul).input(1)).input(0));
  }

  GraphDef graph_;
  TestFolder folder_;
};

TEST_F(MixedLayersTest, HasSevenLayersWithTrainedKernels) {
  std::vector<std::string> layers = NodesOf(graph_, "MatMul");
  layers.erase(std::remove(layers.begin(), layers.end(), "match/MatMul"),
               layers.end());
  EXPECT_THAT(layers, SizeIs(7));
  for (const std::string& layer : layers) {
    EXPECT_EQ(Kernel(layer).op(), "Const") << layer;
  }
}

TEST_F(MixedLayersTest, HasDepthsThatAreNoMultiplesOfFour) {
  for (const char* layer :
       {"tower/signal/dense/", "tower/context/dense/", "head/mix/",
        "head/logits/", "tower/signal/projection/"}) {
    ASSERT_OK_AND_ASSIGN(const auto kernel,
                         ConstValue(Kernel(absl::StrCat(layer, "MatMul"))));
    EXPECT_NE(kernel.dim_size(0) % 4, 0) << layer;
  }
}

TEST_F(MixedLayersTest, SharesAKernelBetweenTwoLayers) {
  EXPECT_THAT(ReadersOf("tower/shared/kernel/read"),
              ElementsAre("tower/signal/projection/MatMul",
                          "tower/context/projection/MatMul"));
}

TEST_F(MixedLayersTest, HasALayerWithATransposedKernel) {
  EXPECT_TRUE(Named("head/hidden/MatMul").attr().at("transpose_b").b());
  EXPECT_EQ(Kernel("head/hidden/MatMul").op(), "Const");
}

TEST_F(MixedLayersTest, HasALayerWhoseBiasHasTwoReaders) {
  EXPECT_THAT(ReadersOf("head/hidden/BiasAdd"),
              UnorderedElementsAre("head/hidden/Relu", "head/hidden/gate"));
}

TEST_F(MixedLayersTest, HasALayerWithoutABias) {
  EXPECT_THAT(ReadersOf("head/mix/MatMul"), ElementsAre("head/mix/Relu"));
}

TEST_F(MixedLayersTest, AddsABiasByAddV2WithTheBiasFirst) {
  EXPECT_THAT(NodesOf(graph_, "AddV2"), ElementsAre("tower/context/dense/add"));
  EXPECT_THAT(Named("tower/context/dense/add").input(),
              ElementsAre("tower/context/dense/bias/read",
                          "tower/context/dense/MatMul"));
}

TEST_F(MixedLayersTest, MultipliesTwoActivations) {
  EXPECT_THAT(Named("match/MatMul").input(),
              ElementsAre("tower/signal/projection/Relu6",
                          "tower/context/projection/BiasAdd"));
  EXPECT_TRUE(Named("match/MatMul").attr().at("transpose_b").b());
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

TEST(DrawMixedRecords, DrawsTheSameRowsInLongerRuns) {
  const MixedRecords few = DrawMixedRecords(MixedSplit::kEval, 10);
  const MixedRecords many = DrawMixedRecords(MixedSplit::kEval, 20);
  EXPECT_TRUE(
      std::equal(few.signal.begin(), few.signal.end(), many.signal.begin()));
  EXPECT_TRUE(
      std::equal(few.label.begin(), few.label.end(), many.label.begin()));
}

TEST(DrawMixedRecords, DrawsOtherRowsForAnotherSplit) {
  EXPECT_NE(DrawMixedRecords(MixedSplit::kEval, 10).signal,
            DrawMixedRecords(MixedSplit::kCalibration, 10).signal);
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
