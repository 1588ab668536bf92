#include "benchmarks/matmul_chain.h"

#include "benchmarks/graphs.h"
#include "graph/testing/testing.h"
#include "runtime/datasets/batch_source.h"

namespace requant::matmul_chain_test {
namespace {

// Returns a graph of two layers, Relu((x + x)·w + b) and ·v.
GraphDef FloatGraph() {
  return GraphFromText(R"(
    x = Placeholder dtype=float
    twice = AddV2(x, x) T=float
    w = float<3,2>{1}
    b = float<2>{-1}
    v = float<2,1>{1}
    matmul = MatMul(twice, w) T=float
    bias = BiasAdd(matmul, b) T=float
    relu = Relu(bias) T=float
    logits = MatMul(relu, v) T=float
    probability = Sigmoid(logits) T=float
  )");
}

Tensor Ones(int rows, int columns) {
  Tensor ones(tensorflow::DT_FLOAT, {rows, columns});
  ones.flat<float>().setConstant(1);
  return ones;
}

TEST(CutMatMulChain, KeepsLayersAndNothingBeforeOrBehindThem) {
  ASSERT_OK_AND_ASSIGN(const auto chain, CutMatMulChain(FloatGraph()));
  EXPECT_EQ(chain.layers, 2);
  EXPECT_EQ(chain.width, 3);
  EXPECT_EQ(chain.output, "logits");
  EXPECT_FALSE(HasNode(chain.graph, "twice"));
  EXPECT_FALSE(HasNode(chain.graph, "probability"));
  const auto outputs =
      MustRunGraph(chain.graph, {{chain.input, Ones(1, 3)}}, {chain.output});
  // This is twice max(3 − 1, 0).
  EXPECT_EQ(outputs[0].flat<float>()(0), 4);
}

TEST(CutMatMulChain, EndsWithTheBiasAndActivationOfTheLastLayer) {
  GraphDef graph = FloatGraph();
  // Without the second layer the first is also the last.
  graph.mutable_node()->DeleteSubrange(8, 2);
  ASSERT_OK_AND_ASSIGN(const auto chain, CutMatMulChain(graph));
  EXPECT_EQ(chain.layers, 1);
  EXPECT_EQ(chain.output, "relu");
}

TEST(CutMatMulChain, RefusesAGraphWithoutLayers) {
  const auto chain = CutMatMulChain(GraphFromText(R"(
    x = Placeholder dtype=float
    square = MatMul(x, x) T=float
  )"));
  EXPECT_EQ(chain.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CutMatMulChain, FeedsQuantizedLayersWithCodes) {
  ASSERT_OK_AND_ASSIGN(const auto chain, CutMatMulChain(Int8WideDeepGraph()));
  EXPECT_EQ(chain.layers, 4);
  EXPECT_EQ(chain.input_type, tensorflow::DT_UINT8);
  EXPECT_EQ(chain.width, 845);
  EXPECT_FALSE(HasNode(chain.graph, "quantize"));
  Tensor codes(tensorflow::DT_UINT8, {2, 845});
  codes.flat<uint8_t>().setConstant(1);
  const auto outputs =
      MustRunGraph(chain.graph, {{chain.input, codes}}, {chain.output});
  EXPECT_EQ(outputs[0].dim_size(0), 2);
}

TEST(WriteChainRecords, WritesWhatTheChainReads) {
  for (const GraphDef& graph : {FloatGraph(), Int8WideDeepGraph()}) {
    ASSERT_OK_AND_ASSIGN(const auto chain, CutMatMulChain(graph));
    ASSERT_OK_AND_ASSIGN(
        const auto dataset,
        WriteChainRecords(chain, 5, testing::TempDir() + "/chain_records.npy"));
    BatchOptions options;
    options.batch_size = 5;
    ASSERT_OK_AND_ASSIGN(const auto source, OpenBatchSource(dataset, options));
    Batch batch;
    ASSERT_OK(source->Next(&batch));
    EXPECT_EQ(batch.size, 5);
    EXPECT_EQ(batch.inputs[0].dtype(), chain.input_type);
    EXPECT_EQ(batch.inputs[0].dim_size(1), chain.width);
  }
}

}  // namespace
}  // namespace requant::matmul_chain_test
