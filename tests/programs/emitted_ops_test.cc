#include "tests/support/emitted_ops.h"

#include "absl/strings/substitute.h"
#include "graph/const_node.h"
#include "graph/testing/testing.h"

namespace requant::emitted_ops_test {
namespace {

constexpr char kOp[] = "QuantizedMatMulWithBiasAndDequantize";

// Returns a layer of `op` with `attributes` for inputs between `min` and 1,
// with `weights` in one column.
GraphDef Layer(const std::string& op, const std::string& attributes, float min,
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
        y = $2(q, w, b, q:1, q:2, w_min, w_max) T1=quint8 T2=qint8 $3
      )",
      min, weight_min, op, attributes));
  Tensor codes(tensorflow::DT_QINT8, {static_cast<int64_t>(weights.size()), 1});
  for (size_t i = 0; i < weights.size(); ++i) {
    codes.flat<tensorflow::qint8>()(i) = weights[i];
  }
  *graph.add_node() = MakeConst("w", codes);
  return graph;
}

TEST(WrongCombinations, AreThoseThatKernelsDoNotCompute) {
  const std::string min_first = "input_quant_mode='MIN_FIRST' Tbias=";
  const std::string scaled = "input_quant_mode='SCALED' Tbias=";
  const std::string dequantize =
      "; d = Dequantize(q, min, max) T=quint8 mode='MIN_FIRST'";
  // The graphs and the sentences expected for them; "" if they are right.
  const std::vector<std::pair<GraphDef, std::string>> cases = {
      {Layer(kOp, min_first + "float", -1), "MIN_FIRST with a float bias"},
      {Layer(kOp, min_first + "float", 0), ""},
      {Layer(kOp, min_first + "qint32", -1), ""},
      {Layer(kOp, scaled + "qint32", -1), "SCALED with a minimum"},
      {Layer(kOp, scaled + "float", 0), ""},
      {Layer(kOp, scaled + "float", 0, {1, 2}, -1.008f), "not symmetric"},
      {Layer(kOp, scaled + "float", 0, {-128, 2}), "below -127"},
      {Layer(kOp, scaled + "float transpose_b=true", 0), "transposes"},
      {Layer("QuantizedMatMulWithBiasAndRequantize",
             min_first + "float Toutput=quint8", 0),
       "clips negative outputs"},
      {GraphFromText("t = Transpose(q, p) T=quint8"), "no kernel for codes"},
      {GraphFromText("c = float{1}; q = QuantizeV2(c, min, max)"),
       "quantizes a constant"},
      {GraphFromText("min = float{-1}" + dequantize), "zero point"},
      {GraphFromText("min = float{0}" + dequantize), ""}};
  for (const auto& [graph, sentence] : cases) {
    const std::vector<std::string> wrong = WrongCombinations(graph);
    EXPECT_THAT(wrong, SizeIs(sentence.empty() ? 0 : 1));
    EXPECT_THAT(wrong, Each(HasSubstr(sentence)));
  }
}

TEST(OverflowingPairs, AddUpToMoreThan128) {
  EXPECT_THAT(OverflowingPairs(Layer(kOp, "", 0, {1, 1, 64, 65})),
              ElementsAre(HasSubstr("129, in row 2")));
  EXPECT_THAT(OverflowingPairs(Layer(kOp, "", 0, {64, 64, 127, -127})),
              IsEmpty());
}

}  // namespace
}  // namespace requant::emitted_ops_test
