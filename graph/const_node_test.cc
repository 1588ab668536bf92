#include "graph/const_node.h"

#include "graph/testing/testing.h"

namespace requant::const_node_test {
namespace {

TEST(ConstNode, RoundTripsScalarsAndMatrices) {
  EXPECT_EQ(ScalarConstValue(MakeScalarConst("c", -1.5f)).value(), -1.5f);
  Tensor matrix(tensorflow::DT_QINT8, {2, 3});
  for (int i = 0; i < 6; ++i) matrix.flat<tensorflow::qint8>()(i) = i - 3;
  ASSERT_OK_AND_ASSIGN(auto read, ConstValue(MakeConst("m", matrix)));
  EXPECT_EQ(read.dtype(), tensorflow::DT_QINT8);
  EXPECT_EQ(read.tensor_data(), matrix.tensor_data());
}

TEST(ConstNode, NamesTheNodeThatIsNoScalarConst) {
  auto message = [](const char* text) {
    const auto graph = GraphFromText(text);
    return std::string(ScalarConstValue(graph.node(0)).status().message());
  };
  EXPECT_THAT(message("node { name: 'n' op: 'Neg' }"),
              HasSubstr("\"n\" is a Neg, not a Const"));
  EXPECT_THAT(message("node { name: 'n' op: 'Const' }"),
              HasSubstr("\"n\" has no readable value"));
  EXPECT_THAT(message("node { name: 'n' op: 'Const' attr { key: 'value' value {"
                      " tensor { dtype: DT_INT32 int_val: 1 } } } }"),
              HasSubstr("not one float but DT_INT32"));
}

TEST(ConstNode, RefusesAShapeThatDoesNotFitTheBytes) {
  const auto graph = GraphFromText(
      "node { name: 'n' op: 'Const' attr { key: 'value' value { tensor { dtype:"
      " DT_FLOAT tensor_shape { dim { size: 1000000 } } tensor_content: 'x' }"
      " } } }");
  EXPECT_FALSE(ConstValue(graph.node(0)).ok());
}

TEST(ConstNode, RefusesAShapeThatNoGraphCanHold) {
  const auto graph = GraphFromText(
      "node { name: 'n' op: 'Const' attr { key: 'value' value { tensor { dtype:"
      " DT_FLOAT tensor_shape { dim { size: 4000000 } dim { size: 4000000 } }"
      " float_val: 1 } } } }");
  EXPECT_FALSE(ConstValue(graph.node(0)).ok());
}

}  // namespace
}  // namespace requant::const_node_test
