// Tests that the fixture of mixed layers has what its README promises, which
// the tests of quantization rely on.

#include "base/files/file.h"
#include "graph/graph_io.h"
#include "re2/re2.h"
#include "tests/support/mixed_records.h"
#include "tests/support/program_runs.h"
#include "transforms/testing/testing.h"

namespace requant::mixed_layers_test {
namespace {

constexpr char kFolder[] = "tests/data/mixed_layers/";

TEST(MixedLayers, HasTheLayersThatItsReadmeNames) {
  ASSERT_OK_AND_ASSIGN(const GraphDef graph,
                       ReadGraph(absl::StrCat(kFolder, "frozen.pb")));
  EXPECT_THAT(NodesOf(graph, "MatMul"), SizeIs(8));
  // The first layer adds its bias by AddV2, as the first operand.
  EXPECT_THAT(graph, HasNodes(R"(
    tower/context/dense/add = AddV2(tower/context/dense/bias/read,
        tower/context/dense/MatMul)
  )"));
  // Two layers share a kernel.
  EXPECT_THAT(graph, HasNodes(R"(
    tower/signal/projection/MatMul = MatMul(tower/signal/dense/Relu,
        tower/shared/kernel/read)
    tower/context/projection/MatMul = MatMul(tower/context/dense/Relu,
        tower/shared/kernel/read)
  )"));
  // One has a transposed kernel, and a bias with two readers.
  EXPECT_THAT(graph, HasNodes(R"(
    head/hidden/MatMul = MatMul(head/features, head/hidden/kernel/read)
        transpose_b=true
    head/hidden/Relu = Relu(head/hidden/BiasAdd)
    head/hidden/gate = Sigmoid(head/hidden/BiasAdd)
  )"));
  // One has no bias, and one multiplies two activations.
  EXPECT_THAT(graph, HasNodes(R"(
    head/mix/Relu = Relu(head/mix/MatMul)
    match/MatMul = MatMul(tower/signal/projection/Relu6,
        tower/context/projection/BiasAdd) transpose_b=true
  )"));
}

// This also shows that the records are drawn as they were in training.
TEST(MixedLayers, HasTheAccuracyThatItsTrainingRecorded) {
  const TestFolder folder;
  int records = 0;
  int recorded = 0;
  ASSERT_TRUE(RE2::PartialMatch(
      ReadFile(absl::StrCat(kFolder, "model.json")).value(),
      "\"eval\": {\\s*\"records\": (\\d+),\\s*\"correct\": (\\d+)", &records,
      &recorded));
  ASSERT_OK(
      WriteMixedRecords(folder.Path("eval.npz"), MixedSplit::kEval, records));
  const ProgramRun run =
      RunProgram("runtime/evaluate_graph",
                 {absl::StrCat("--graph=", kFolder, "frozen.pb"),
                  absl::StrCat("--dataset=", kFolder, "dataset.textproto"),
                  "--data=" + folder.Path("eval.npz")});
  ASSERT_THAT(run, Exits(0));
  const int correct = NumberIn(run.out, kCorrectPredictions);
  // Other kernels sum in another order, which may change the class of a record
  // at the border between two classes.
  EXPECT_NEAR(correct, recorded, 2);
  // The accuracy is far above chance, and can still fall or rise.
  EXPECT_GT(correct, 0.85 * records);
  EXPECT_LT(correct, 0.95 * records);
}

}  // namespace
}  // namespace requant::mixed_layers_test
