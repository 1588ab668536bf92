#include "tests/support/emitted_ops.h"

#include "graph/const_node.h"
#include "graph/testing/testing.h"

namespace requant::emitted_ops_test {
namespace {

// A QuantizedMatMulWithBias… as its name, mode and bias say, on codes between
// `min` and 1, with `weights` in one column.
GraphDef Layer(const std::string& op, const std::string& mode,
               const std::string& bias_type, float min,
               const std::vector<int>& weights = {1, 2},
               float weight_min = -1) {
  GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x"), FloatConst("min", {}, {min}),
      FloatConst("max", {}, {1}), FloatConst("w_min", {}, {weight_min}),
      FloatConst("w_max", {}, {1}),
      Node("q", "QuantizeV2", {"x", "min", "max"},
           {{"T", "type: DT_QUINT8"}, {"mode", "s: 'MIN_FIRST'"}}),
      Node("y", op, {"q", "w", "b", "q:1", "q:2", "w_min", "w_max"},
           {{"T1", "type: DT_QUINT8"},
            {"T2", "type: DT_QINT8"},
            {"Tbias", "type: " + bias_type},
            {"input_quant_mode", absl::StrCat("s: '", mode, "'")}})));
  Tensor codes(tensorflow::DT_QINT8, {static_cast<int64_t>(weights.size()), 1});
  for (size_t i = 0; i < weights.size(); ++i) {
    codes.flat<tensorflow::qint8>()(i) = weights[i];
  }
  *graph.add_node() = MakeConst("w", codes);
  return graph;
}

constexpr char kFloatOutput[] = "QuantizedMatMulWithBiasAndDequantize";

TEST(WrongCombinations, HaveAFloatBiasWithMinFirstAndANegativeMinimum) {
  EXPECT_THAT(
      WrongCombinations(Layer(kFloatOutput, "MIN_FIRST", "DT_FLOAT", -1)),
      ElementsAre(HasSubstr("MIN_FIRST with a float bias")));
  EXPECT_THAT(
      WrongCombinations(Layer(kFloatOutput, "MIN_FIRST", "DT_FLOAT", 0)),
      IsEmpty());
  EXPECT_THAT(
      WrongCombinations(Layer(kFloatOutput, "MIN_FIRST", "DT_QINT32", -1)),
      IsEmpty());
}

TEST(WrongCombinations, HaveScaledInputFromAnotherMinimumThanZero) {
  EXPECT_THAT(WrongCombinations(Layer(kFloatOutput, "SCALED", "DT_QINT32", -1)),
              ElementsAre(HasSubstr("SCALED with a minimum")));
  EXPECT_THAT(WrongCombinations(Layer(kFloatOutput, "SCALED", "DT_FLOAT", 0)),
              IsEmpty());
}

TEST(WrongCombinations, RequantizeWithoutRelu) {
  GraphDef graph =
      Layer("QuantizedMatMulWithBiasAndRequantize", "MIN_FIRST", "DT_FLOAT", 0);
  for (NodeDef& node : *graph.mutable_node()) {
    if (node.name() != "y") continue;
    (*node.mutable_attr())["Toutput"].set_type(tensorflow::DT_QUINT8);
  }
  EXPECT_THAT(WrongCombinations(graph),
              ElementsAre(HasSubstr("clips negative outputs")));
}

TEST(WrongCombinations, HaveALopsidedWeightRange) {
  EXPECT_THAT(WrongCombinations(Layer(kFloatOutput, "SCALED", "DT_FLOAT", 0,
                                      {1, 2}, -1.008f)),
              ElementsAre(HasSubstr("not symmetric")));
  EXPECT_THAT(WrongCombinations(
                  Layer(kFloatOutput, "SCALED", "DT_FLOAT", 0, {-128, 2})),
              ElementsAre(HasSubstr("below -127")));
}

TEST(WrongCombinations, TransposeCodes) {
  GraphDef graph = Layer(kFloatOutput, "SCALED", "DT_FLOAT", 0);
  for (NodeDef& node : *graph.mutable_node()) {
    if (node.name() != "y") continue;
    (*node.mutable_attr())["transpose_b"].set_b(true);
  }
  EXPECT_THAT(WrongCombinations(graph), ElementsAre(HasSubstr("transposes")));
  EXPECT_THAT(WrongCombinations(GraphFromText(Node(
                  "t", "Transpose", {"q", "p"}, {{"T", "type: DT_QUINT8"}}))),
              ElementsAre(HasSubstr("no kernel for codes")));
}

TEST(WrongCombinations, QuantizeAConstant) {
  EXPECT_THAT(WrongCombinations(GraphFromText(
                  absl::StrCat(FloatConst("c", {}, {1}),
                               Node("q", "QuantizeV2", {"c", "min", "max"})))),
              ElementsAre(HasSubstr("quantizes a constant")));
}

TEST(WrongCombinations, DequantizeWithARoundedZeroPoint) {
  const auto dequantize = [](float min) {
    return GraphFromText(absl::StrCat(
        FloatConst("min", {}, {min}),
        Node("d", "Dequantize", {"q", "min", "max"},
             {{"T", "type: DT_QUINT8"}, {"mode", "s: 'MIN_FIRST'"}})));
  };
  EXPECT_THAT(WrongCombinations(dequantize(-1)),
              ElementsAre(HasSubstr("zero point")));
  EXPECT_THAT(WrongCombinations(dequantize(0)), IsEmpty());
}

TEST(OverflowingPairs, AddUpToMoreThan128) {
  EXPECT_THAT(OverflowingPairs(
                  Layer(kFloatOutput, "SCALED", "DT_FLOAT", 0, {1, 1, 64, 65})),
              ElementsAre(HasSubstr("129, in row 2")));
  EXPECT_THAT(OverflowingPairs(Layer(kFloatOutput, "SCALED", "DT_FLOAT", 0,
                                     {64, 64, 127, -127})),
              IsEmpty());
}

}  // namespace
}  // namespace requant::emitted_ops_test
