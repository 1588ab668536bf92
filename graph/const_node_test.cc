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
  const auto read = [](const char* text) {
    return ScalarConstValue(GraphFromText(text).node(0));
  };
  EXPECT_THAT(read("n = Neg"),
              FailsWith(HasSubstr("\"n\" is a Neg, not a Const")));
  EXPECT_THAT(read("n = Const"),
              FailsWith(HasSubstr("\"n\" has no readable value")));
  EXPECT_THAT(read("n = int32{1}"),
              FailsWith(HasSubstr("not one float but DT_INT32")));
}

TEST(ConstNode, RefusesShapesThatDoNotFitTheBytesOrAnyGraph) {
  for (const char* text :
       {"n = float<1000000>'x'", "n = float<4000000,4000000>{1}"}) {
    EXPECT_FALSE(ConstValue(GraphFromText(text).node(0)).ok()) << text;
  }
}

}  // namespace
}  // namespace requant::const_node_test
