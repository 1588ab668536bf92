// The op _QuantizedMatMul: it does more than the ops QuantizedMatMulWithBias…,
// more slowly, and some of it wrong.

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/status_macros.h"
#include "tests/kernels/int8_layer.h"
#include "tests/kernels/kernel_graph.h"

namespace requant::quantized_matmul_test {
namespace {

using tensorflow::DataType;
using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;

constexpr double kHalfStep = 0.52;

// What follows the matmul and its bias.
struct Ending {
  std::string name;
  // As the rest of a text list.
  std::string fused_ops;
  DataType output_type;
  std::string output_mode = "SCALED";

  bool relu() const { return fused_ops.find("Relu") != std::string::npos; }
  bool requantizes() const {
    return output_type == DT_QUINT8 || output_type == DT_QINT8;
  }
};

// What goes into it.
struct Beginning {
  std::string name;
  DataType type;
  std::string mode;
  float min;
  enum { kFloatBias, kQuantizedBias, kBiasWithZeroPoint } bias;
};

enum class Weights { kPlain, kTransposed, kRangePerColumn };

Int8Layer LayerFor(const Beginning& beginning) {
  Int8Layer layer = RandomLayer(beginning.min, 2.5);
  if (beginning.type == DT_QINT8) {
    for (int& code : layer.codes) code = std::max(code - 128, -127);
  }
  return layer;
}

double InputValue(int code, const Int8Layer& layer,
                  const Beginning& beginning) {
  if (beginning.type == DT_QUINT8) {
    return layer.input_min + code * layer.InputScale();
  }
  return beginning.mode == "SCALED"
             ? code * (layer.input_max / 127.0)
             : layer.input_min + (code + 128) * layer.InputScale();
}

std::vector<double> Expected(const Int8Layer& layer, const Beginning& beginning,
                             const std::vector<float>& weight_max, bool relu) {
  std::vector<double> outputs;
  for (int i = 0; i < layer.rows; ++i) {
    for (int j = 0; j < layer.columns; ++j) {
      double sum = 0;
      for (int k = 0; k < layer.depth; ++k) {
        sum += InputValue(layer.codes[i * layer.depth + k], layer, beginning) *
               layer.weights[k * layer.columns + j];
      }
      const double value = sum * weight_max[j] / 127 + layer.bias[j];
      outputs.push_back(relu ? std::max(value, 0.0) : value);
    }
  }
  return outputs;
}

struct FusedLayer {
  Ending ending;
  Beginning beginning;
  Weights weights = Weights::kPlain;
};

std::vector<float> WeightMax(const FusedLayer& fused, const Int8Layer& layer) {
  std::vector<float> weight_max(layer.columns, layer.weight_max);
  if (fused.weights == Weights::kRangePerColumn) {
    for (int j = 0; j < layer.columns; ++j) weight_max[j] *= 0.5f + j * 0.02f;
  }
  return weight_max;
}

Tensor WeightRange(const FusedLayer& fused, std::vector<float> range,
                   float sign) {
  for (float& value : range) value *= sign;
  if (fused.weights == Weights::kRangePerColumn) {
    return FloatTensor({static_cast<int>(range.size())}, range);
  }
  return FloatTensor({}, {range[0]});
}

Tensor WeightTensor(const FusedLayer& fused, const Int8Layer& layer) {
  if (fused.weights != Weights::kTransposed) {
    return CodeTensor(DT_QINT8, {layer.depth, layer.columns}, layer.weights);
  }
  std::vector<int> transposed;
  for (int j = 0; j < layer.columns; ++j) {
    for (int k = 0; k < layer.depth; ++k) {
      transposed.push_back(layer.weights[k * layer.columns + j]);
    }
  }
  return CodeTensor(DT_QINT8, {layer.columns, layer.depth}, transposed);
}

Tensor BiasTensor(const FusedLayer& fused, const Int8Layer& layer) {
  switch (fused.beginning.bias) {
    case Beginning::kFloatBias:
      return FloatTensor({layer.columns}, layer.bias);
    case Beginning::kQuantizedBias:
      return CodeTensor(DT_QINT32, {layer.columns}, QuantizedBias(layer));
    case Beginning::kBiasWithZeroPoint:
      break;
  }
  return CodeTensor(DT_QINT32, {layer.columns},
                    QuantizedBiasWithZeroPoint(layer));
}

std::string TypeList(const std::vector<DataType>& types) {
  std::string text;
  for (DataType type : types) {
    absl::StrAppend(&text, " type: ", DataType_Name(type));
  }
  return absl::StrCat("list {", text, " }");
}

AttributeText TypeAttribute(const std::string& name, DataType type) {
  return {name, absl::StrCat("type: ", DataType_Name(type))};
}

std::vector<AttributeText> Attributes(const FusedLayer& fused,
                                      int host_inputs) {
  const DataType bias =
      fused.beginning.bias == Beginning::kFloatBias ? DT_FLOAT : DT_QINT32;
  const int ranges = fused.ending.output_type == DT_FLOAT ? 0 : 2;
  return {
      {"Tdevice_inputs", TypeList({fused.beginning.type, DT_QINT8, bias})},
      {"Thost_inputs", TypeList(std::vector<DataType>(host_inputs, DT_FLOAT))},
      {"Tdevice_outputs", TypeList({fused.ending.output_type})},
      {"Thost_outputs", TypeList(std::vector<DataType>(ranges, DT_FLOAT))},
      TypeAttribute("T1", fused.beginning.type),
      TypeAttribute("T2", DT_QINT8),
      TypeAttribute("Tbias", bias),
      TypeAttribute("Tout", fused.ending.output_type),
      {"transpose_b",
       fused.weights == Weights::kTransposed ? "b: true" : "b: false"},
      {"fused_ops",
       absl::StrCat("list { s: ['BiasAdd'", fused.ending.fused_ops, "] }")},
      {"input_quant_mode", absl::StrCat("s: '", fused.beginning.mode, "'")},
      {"output_quant_mode",
       absl::StrCat("s: '", fused.ending.output_mode, "'")}};
}

void Build(const FusedLayer& fused, const Int8Layer& layer,
           const std::vector<float>& weight_max,
           const std::vector<double>& expected, KernelGraph* graph) {
  std::vector<std::string> inputs = {
      graph->Feed("a", CodeTensor(fused.beginning.type,
                                  {layer.rows, layer.depth}, layer.codes)),
      graph->Constant("b", WeightTensor(fused, layer)),
      graph->Constant("bias", BiasTensor(fused, layer)),
      graph->Feed("min_a", FloatTensor({}, {layer.input_min})),
      graph->Feed("max_a", FloatTensor({}, {layer.input_max})),
      graph->Constant("min_b", WeightRange(fused, weight_max, -1)),
      graph->Constant("max_b", WeightRange(fused, weight_max, 1))};
  if (fused.ending.requantizes()) {
    inputs.push_back(graph->Constant(
        "min_out", *std::min_element(expected.begin(), expected.end())));
    inputs.push_back(graph->Constant("max_out", Largest(expected)));
  }
  graph->Add("y", "_QuantizedMatMul", inputs,
             Attributes(fused, inputs.size() - 3));
}

// The values that codes of the ending's type stand for, and their step.
std::vector<double> OutputValues(const Ending& ending,
                                 const std::vector<Tensor>& outputs,
                                 double* step) {
  const double min = Floats(outputs[1])[0];
  const double max = Floats(outputs[2])[0];
  const bool min_first = ending.output_mode == "MIN_FIRST";
  const double range = min_first ? max - min : std::max(max, -min);
  const double levels = ending.output_type == DT_QUINT8  ? 255
                        : ending.output_type == DT_QINT8 ? 127
                                                         : 0x1p31;
  *step = range / levels;
  std::vector<double> values;
  for (int code : Codes(outputs[0])) {
    values.push_back(code * *step + (min_first ? min : 0));
  }
  return values;
}

// The largest error, in steps of the output or units of the sums.
absl::StatusOr<double> Error(const FusedLayer& fused) {
  const Int8Layer layer = LayerFor(fused.beginning);
  const std::vector<float> weight_max = WeightMax(fused, layer);
  const std::vector<double> expected =
      Expected(layer, fused.beginning, weight_max, fused.ending.relu());
  KernelGraph graph;
  Build(fused, layer, weight_max, expected, &graph);
  if (fused.ending.output_type == DT_FLOAT) {
    REQUANT_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                             graph.Run({"y"}));
    const std::vector<float> values = Floats(outputs[0]);
    return LargestDifference({values.begin(), values.end()}, expected) /
           layer.SumScale();
  }
  REQUANT_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                           graph.Run({"y", "y:1", "y:2"}));
  double step = 0;
  const std::vector<double> values = OutputValues(fused.ending, outputs, &step);
  return LargestDifference(values, expected) / step;
}

const Ending kEndings[] = {
    {"ReluRequantizeToQuint8", ", 'Relu', 'Requantize'", DT_QUINT8},
    {"RequantizeToQint8", ", 'Requantize'", DT_QINT8},
    {"RequantizeToQuint8MinFirst", ", 'Requantize'", DT_QUINT8, "MIN_FIRST"},
    {"Dequantize", ", 'Dequantize'", DT_FLOAT},
    {"ReluDequantize", ", 'Relu', 'Dequantize'", DT_FLOAT},
};

const Ending kSums = {"Sums", "", DT_QINT32};

const Beginning kFloatBiasBeginnings[] = {
    {"MinFirst", DT_QUINT8, "MIN_FIRST", 0, Beginning::kFloatBias},
    {"MinFirstBelowZero", DT_QUINT8, "MIN_FIRST", -1.5, Beginning::kFloatBias},
    {"Scaled", DT_QUINT8, "SCALED", 0, Beginning::kFloatBias},
    {"SignedScaled", DT_QINT8, "SCALED", -2.5, Beginning::kFloatBias},
};

const Beginning kQuantizedBiasBeginnings[] = {
    {"MinFirstQuantizedBias", DT_QUINT8, "MIN_FIRST", 0,
     Beginning::kQuantizedBias},
    {"MinFirstBelowZeroBiasWithZeroPoint", DT_QUINT8, "MIN_FIRST", -1.5,
     Beginning::kBiasWithZeroPoint},
};

const Beginning kWrongBeginnings[] = {
    {"ScaledQuantizedBias", DT_QUINT8, "SCALED", 0, Beginning::kQuantizedBias},
    {"SignedMinFirst", DT_QINT8, "MIN_FIRST", -1.5, Beginning::kFloatBias},
};

std::string WeightsName(Weights weights) {
  switch (weights) {
    case Weights::kPlain:
      return "";
    case Weights::kTransposed:
      return "_Transposed";
    case Weights::kRangePerColumn:
      return "_RangePerColumn";
  }
  return "";
}

class QuantizedMatMulTest
    : public testing::TestWithParam<std::tuple<Beginning, Weights, Ending>> {
 protected:
  static FusedLayer Param() {
    const auto& [beginning, weights, ending] = GetParam();
    return {ending, beginning, weights};
  }
};

std::string Name(
    const testing::TestParamInfo<QuantizedMatMulTest::ParamType>& info) {
  const auto& [beginning, weights, ending] = info.param;
  return absl::StrCat(beginning.name, WeightsName(weights), "_", ending.name);
}

class RightTest : public QuantizedMatMulTest {};

TEST_P(RightTest, IsWithinHalfAStep) {
  ASSERT_OK_AND_ASSIGN(const auto error, Error(Param()));
  EXPECT_LE(error, kHalfStep);
}

INSTANTIATE_TEST_SUITE_P(
    FloatBias, RightTest,
    testing::Combine(testing::ValuesIn(kFloatBiasBeginnings),
                     testing::Values(Weights::kPlain, Weights::kTransposed,
                                     Weights::kRangePerColumn),
                     testing::ValuesIn(kEndings)),
    Name);
INSTANTIATE_TEST_SUITE_P(
    QuantizedBias, RightTest,
    testing::Combine(testing::ValuesIn(kQuantizedBiasBeginnings),
                     testing::Values(Weights::kPlain),
                     testing::ValuesIn(kEndings)),
    Name);

class WrongTest : public QuantizedMatMulTest {};

TEST_P(WrongTest, IsManyStepsOffWithoutAnError) {
  ASSERT_OK_AND_ASSIGN(const auto error, Error(Param()));
  EXPECT_GT(error, 50) << "TensorFlow now does this right: the transforms "
                          "need not avoid it any more";
}

INSTANTIATE_TEST_SUITE_P(Inputs, WrongTest,
                         testing::Combine(testing::ValuesIn(kWrongBeginnings),
                                          testing::Values(Weights::kPlain),
                                          testing::ValuesIn(kEndings)),
                         Name);
INSTANTIATE_TEST_SUITE_P(
    Sums, WrongTest,
    testing::Combine(testing::ValuesIn(kFloatBiasBeginnings),
                     testing::Values(Weights::kPlain), testing::Values(kSums)),
    Name);

// The bias that the kernel has prepared for one input range serves for the next
// one if both ends are within 1e-5, however small the range is.
TEST(BiasCache, ServesForAnotherRangeThatIsTinyToo) {
  const FusedLayer fused = {kEndings[3], kFloatBiasBeginnings[1]};
  Int8Layer layer = LayerFor(fused.beginning);
  layer.input_min = -1e-6f;
  layer.input_max = 3e-6f;
  layer.bias.assign(layer.columns, 0);
  KernelGraph graph;
  Build(fused, layer, WeightMax(fused, layer), {}, &graph);
  std::vector<double> errors;
  for (float factor : {1, 2, 100000}) {
    layer.input_min *= factor;
    layer.input_max *= factor;
    graph.FeedAnew("min_a", FloatTensor({}, {layer.input_min}));
    graph.FeedAnew("max_a", FloatTensor({}, {layer.input_max}));
    ASSERT_OK_AND_ASSIGN(const auto outputs, graph.Run({"y"}));
    const std::vector<float> values = Floats(outputs[0]);
    errors.push_back(
        LargestDifference({values.begin(), values.end()}, ExactOutputs(layer)) /
        layer.SumScale());
  }
  EXPECT_LE(errors[0], kHalfStep);
  EXPECT_GT(errors[1], 1000) << "TensorFlow now tells tiny ranges apart";
  EXPECT_LE(errors[2], kHalfStep);
}

}  // namespace
}  // namespace requant::quantized_matmul_test
