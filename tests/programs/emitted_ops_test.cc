#include "tests/support/emitted_ops.h"

#include "absl/strings/substitute.h"
#include "graph/const_node.h"
#include "graph/testing/testing.h"

namespace requant::emitted_ops_test {
namespace {

// Returns a QuantizedMatMulWithBias… as its name, mode and bias say, on codes
// between `min` and 1, with `weights` in one column.
GraphDef Layer(const std::string& op, const std::string& mode,
               const std::string& bias_type, float min,
               const std::vector<int>& weights = {1, 2},
               float weight_min = -1) {
  GraphDef graph = GraphFromText(absl::Substitute(
      R"(
        x = Placeholder dtype=float
        min = float{$0}
        max = float{1}
        w_min = float{$1}
        w_max = float{1}
        q = QuantizeV2(x, min, max) T=quint8 mode='MIN_FIRST'
        y = $2(q, w, b, q:1, q:2, w_min, w_max) T1=quint8 T2=qint8 Tbias=$3
            input_quant_mode='$4'
      )",
      min, weight_min, op, bias_type, mode));
  Tensor codes(tensorflow::DT_QINT8, {static_cast<int64_t>(weights.size()), 1});
  for (size_t i = 0; i < weights.size(); ++i) {
    codes.flat<tensorflow::qint8>()(i) = weights[i];
  }
  *graph.add_node() = MakeConst("w", codes);
  return graph;
}

constexpr char kFloatOutput[] = "QuantizedMatMulWithBiasAndDequantize";

TEST(WrongCombinations, HaveModesThatTheBiasOrTheRangesForbid) {
  const struct {
    const char *mode, *bias_type;
    float min;
    std::vector<int> weights;
    float weight_min;
    // "": it is right.
    const char* sentence;
  } kCases[] = {
      {"MIN_FIRST", "float", -1, {1, 2}, -1, "MIN_FIRST with a float bias"},
      {"MIN_FIRST", "float", 0, {1, 2}, -1, ""},
      {"MIN_FIRST", "qint32", -1, {1, 2}, -1, ""},
      {"SCALED", "qint32", -1, {1, 2}, -1, "SCALED with a minimum"},
      {"SCALED", "float", 0, {1, 2}, -1, ""},
      {"SCALED", "float", 0, {1, 2}, -1.008f, "not symmetric"},
      {"SCALED", "float", 0, {-128, 2}, -1, "below -127"}};
  for (const auto& test : kCases) {
    const std::vector<std::string> wrong =
        WrongCombinations(Layer(kFloatOutput, test.mode, test.bias_type,
                                test.min, test.weights, test.weight_min));
    EXPECT_EQ(wrong.empty(), *test.sentence == 0) << test.mode << test.min;
    EXPECT_THAT(wrong, Each(HasSubstr(test.sentence)));
  }
}

TEST(WrongCombinations, RequantizeWithoutRelu) {
  GraphDef graph =
      Layer("QuantizedMatMulWithBiasAndRequantize", "MIN_FIRST", "float", 0);
  (*MutableNode(&graph, "y")->mutable_attr())["Toutput"].set_type(
      tensorflow::DT_QUINT8);
  EXPECT_THAT(WrongCombinations(graph),
              ElementsAre(HasSubstr("clips negative outputs")));
}

TEST(WrongCombinations, TransposeCodes) {
  GraphDef graph = Layer(kFloatOutput, "SCALED", "float", 0);
  (*MutableNode(&graph, "y")->mutable_attr())["transpose_b"].set_b(true);
  EXPECT_THAT(WrongCombinations(graph), ElementsAre(HasSubstr("transposes")));
  EXPECT_THAT(WrongCombinations(GraphFromText("t = Transpose(q, p) T=quint8")),
              ElementsAre(HasSubstr("no kernel for codes")));
}

TEST(WrongCombinations, QuantizeAConstant) {
  EXPECT_THAT(WrongCombinations(
                  GraphFromText("c = float{1}; q = QuantizeV2(c, min, max)")),
              ElementsAre(HasSubstr("quantizes a constant")));
}

TEST(WrongCombinations, DequantizeWithARoundedZeroPoint) {
  const auto dequantize = [](float min) {
    return GraphFromText(absl::StrCat(
        "min = float{", min,
        "}; d = Dequantize(q, min, max) T=quint8 mode='MIN_FIRST'"));
  };
  EXPECT_THAT(WrongCombinations(dequantize(-1)),
              ElementsAre(HasSubstr("zero point")));
  EXPECT_THAT(WrongCombinations(dequantize(0)), IsEmpty());
}

TEST(OverflowingPairs, AddUpToMoreThan128) {
  EXPECT_THAT(OverflowingPairs(
                  Layer(kFloatOutput, "SCALED", "float", 0, {1, 1, 64, 65})),
              ElementsAre(HasSubstr("129, in row 2")));
  EXPECT_THAT(OverflowingPairs(Layer(kFloatOutput, "SCALED", "float", 0,
                                     {64, 64, 127, -127})),
              IsEmpty());
}

}  // namespace
}  // namespace requant::emitted_ops_test
