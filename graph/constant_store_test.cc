#include "graph/constant_store.h"

#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"

namespace requant::constant_store_test {
namespace {

Tensor Numbers(int count, float first = 1) {
  Tensor tensor(tensorflow::DT_FLOAT, {count / 4, 4});
  for (int i = 0; i < count; ++i) tensor.flat<float>()(i) = first + i;
  return tensor;
}

const tensorflow::TensorProto& ValueOf(const NodeDef& node) {
  return node.attr().at("value").tensor();
}

TEST(ConstantStore, HoldsLargeValuesOutsideOfTheGraph) {
  const Tensor large = Numbers(1000), small = Numbers(100);
  const ConstantStore store(1000);
  const NodeDef node = MakeConst("large", large);
  EXPECT_LT(node.ByteSizeLong(), 200u);
  ASSERT_OK_AND_ASSIGN(const Tensor read, ConstValue(node));
  EXPECT_EQ(read.tensor_data().data(), large.tensor_data().data());
  EXPECT_EQ(MakeConst("small", small).ByteSizeLong(),
            static_cast<size_t>(FilledBytes(MakeConst("small", small))));
  EXPECT_FALSE(StoredValue(ValueOf(MakeConst("small", small))).has_value());
}

TEST(ConstantStore, HoldsEqualValuesOnce) {
  const ConstantStore store(1000);
  const NodeDef a = MakeConst("a", Numbers(1000));
  EXPECT_TRUE(SameMessage(ValueOf(a), ValueOf(MakeConst("b", Numbers(1000)))));
  EXPECT_FALSE(
      SameMessage(ValueOf(a), ValueOf(MakeConst("c", Numbers(1000, 2)))));
}

TEST(ConstantStore, FillsInTheSameBytes) {
  // The lengths before parts of a message take one byte more at each of these.
  for (const int count : {16, 24, 28, 32, 36, 3900, 4080, 4084, 4096, 530000}) {
    GraphDef expected;
    *expected.add_node() = MakeConst("large", Numbers(count));
    *expected.add_node() = MakeScalarConst("one", 1);
    const ConstantStore store(64);
    GraphDef graph = expected;
    StoreConstants(&graph);
    EXPECT_EQ(FilledBytes(graph),
              static_cast<int64_t>(expected.ByteSizeLong()));
    EXPECT_EQ(FilledBytes(graph.node(0)),
              static_cast<int64_t>(expected.node(0).ByteSizeLong()));
    EXPECT_FALSE(SameMessage(graph, expected));
    for (NodeDef& node : *graph.mutable_node()) FillIn(&node);
    EXPECT_TRUE(SameMessage(graph, expected)) << count;
  }
}

TEST(ConstantStore, ForgetsWhatAGraphDoesNotHave) {
  const ConstantStore store(1000);
  GraphDef graph;
  *graph.add_node() = MakeConst("kept", Numbers(1000));
  const NodeDef other = MakeConst("other", Numbers(1000, 2));
  ForgetAllBut(graph);
  EXPECT_OK(ConstValue(graph.node(0)).status());
  EXPECT_THAT(ConstValue(other).status(),
              FailsWith(HasSubstr("\"other\" has no readable value")));
}

TEST(ConstantStore, LeavesNothingThatTensorFlowWouldMistakeForAValue) {
  NodeDef node;
  {
    const ConstantStore store(64);
    node = MakeConst("large", Numbers(16));
    EXPECT_FALSE(Tensor().FromProto(ValueOf(node)));
  }
  EXPECT_FALSE(ConstValue(node).ok());
  const NodeDef without = MakeConst("large", Numbers(16));
  EXPECT_FALSE(StoredValue(ValueOf(without)).has_value());
}

TEST(ConstantStore, LeavesAFewBytesThatStandForManyElements) {
  const ConstantStore store(64);
  GraphDef graph = GraphFromText("n = float<1000,1000>{1}");
  const GraphDef before = graph;
  StoreConstants(&graph);
  EXPECT_TRUE(SameMessage(graph, before));
}

}  // namespace
}  // namespace requant::constant_store_test
