#include "benchmarks/matmul_chain.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/wide_deep_graph.h"
#include "graph/testing/testing.h"
#include "runtime/datasets/batch_source.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant::matmul_chain_test {
namespace {

using tensorflow::GraphDef;
using tensorflow::Tensor;

// Two layers, (x + x)·w + b with Relu and then ·v, behind something else.
GraphDef FloatGraph() {
  return GraphFromText(R"(
    node { name: "x" op: "Placeholder"
           attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "twice" op: "AddV2" input: "x" input: "x"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "w" op: "Const"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT
             tensor_shape { dim { size: 3 } dim { size: 2 } }
             float_val: 1 } } } }
    node { name: "b" op: "Const"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT
             tensor_shape { dim { size: 2 } } float_val: -1 } } } }
    node { name: "v" op: "Const"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT
             tensor_shape { dim { size: 2 } dim { size: 1 } }
             float_val: 1 } } } }
    node { name: "matmul" op: "MatMul" input: "twice" input: "w"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "bias" op: "BiasAdd" input: "matmul" input: "b"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "relu" op: "Relu" input: "bias"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "logits" op: "MatMul" input: "relu" input: "v"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "probability" op: "Sigmoid" input: "logits"
           attr { key: "T" value { type: DT_FLOAT } } })");
}

Tensor Ones(int rows, int columns) {
  Tensor ones(tensorflow::DT_FLOAT, {rows, columns});
  ones.flat<float>().setConstant(1);
  return ones;
}

TEST(CutMatMulChain, KeepsLayersAndNothingBeforeOrBehindThem) {
  const auto chain = CutMatMulChain(FloatGraph());
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->layers, 2);
  EXPECT_EQ(chain->width, 3);
  EXPECT_EQ(chain->output, "logits");
  EXPECT_FALSE(HasNode(chain->graph, "twice"));
  EXPECT_FALSE(HasNode(chain->graph, "probability"));
  const auto outputs =
      RunGraph(chain->graph, {{chain->input, Ones(1, 3)}}, {chain->output});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  // Twice max(3 − 1, 0).
  EXPECT_EQ((*outputs)[0].flat<float>()(0), 4);
}

TEST(CutMatMulChain, EndsWithTheBiasAndActivationOfTheLastLayer) {
  GraphDef graph = FloatGraph();
  // Without the second layer the first is the last.
  graph.mutable_node()->DeleteSubrange(8, 2);
  const auto chain = CutMatMulChain(graph);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->layers, 1);
  EXPECT_EQ(chain->output, "relu");
}

TEST(CutMatMulChain, RefusesAGraphWithoutLayers) {
  const auto chain = CutMatMulChain(GraphFromText(R"(
    node { name: "x" op: "Placeholder"
           attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "square" op: "MatMul" input: "x" input: "x"
           attr { key: "T" value { type: DT_FLOAT } } })"));
  EXPECT_EQ(chain.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CutMatMulChain, FeedsQuantizedLayersWithCodes) {
  const auto chain = CutMatMulChain(Int8WideDeepGraph());
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->layers, 4);
  EXPECT_EQ(chain->input_type, tensorflow::DT_UINT8);
  EXPECT_EQ(chain->width, 845);
  EXPECT_FALSE(HasNode(chain->graph, "quantize"));
  Tensor codes(tensorflow::DT_UINT8, {2, 845});
  codes.flat<uint8_t>().setConstant(1);
  const auto outputs =
      RunGraph(chain->graph, {{chain->input, codes}}, {chain->output});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].dim_size(0), 2);
}

TEST(WriteChainRecords, WritesWhatTheChainReads) {
  for (const GraphDef& graph : {FloatGraph(), Int8WideDeepGraph()}) {
    const auto chain = CutMatMulChain(graph);
    ASSERT_TRUE(chain.ok()) << chain.status();
    const auto dataset =
        WriteChainRecords(*chain, 5, testing::TempDir() + "/chain_records.npy");
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    BatchOptions options;
    options.batch_size = 5;
    const auto source = OpenBatchSource(*dataset, options);
    ASSERT_TRUE(source.ok()) << source.status();
    Batch batch;
    const absl::StatusOr<bool> more = (*source)->Next(&batch);
    ASSERT_TRUE(more.ok()) << more.status();
    EXPECT_EQ(batch.size, 5);
    EXPECT_EQ(batch.inputs[0].dtype(), chain->input_type);
    EXPECT_EQ(batch.inputs[0].dim_size(1), chain->width);
  }
}

}  // namespace
}  // namespace requant::matmul_chain_test
