#include "transforms/layers/quantize_codes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "absl/strings/substitute.h"
#include "graph/const_node.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace requant::quantize_codes_test {
namespace {

using tensorflow::DataType;
using tensorflow::TensorShape;

struct Quantization {
  DataType type;
  bool scaled;
  float min;
  float max;
};

// Placeholders "x0", "x1", … -> QuantizeV2 "q0", "q1", …, which therefore run
// in the kernel that models meet.
GraphDef QuantizeGraph(const Quantization& how, int count) {
  GraphDef graph;
  *graph.add_node() = MakeScalarConst("min", how.min);
  *graph.add_node() = MakeScalarConst("max", how.max);
  for (int i = 0; i < count; ++i) {
    AddNodes(
        absl::Substitute(R"(
      x$0 = Placeholder dtype=float
      q$0 = QuantizeV2(x$0, min, max) T=$1 mode='$2' round_mode='$3'
    )",
                         i, tensorflow::DataTypeString(how.type),
                         how.scaled ? "SCALED" : "MIN_FIRST",
                         how.scaled ? "HALF_TO_EVEN" : "HALF_AWAY_FROM_ZERO"),
        &graph);
  }
  return graph;
}

// Values inside and outside the range, in the middle between two codes, next to
// it, and zeros of both signs.
Tensor HardValues(const CodeFormula& formula, const TensorShape& shape) {
  std::mt19937 random(20261116);
  const float width = formula.max - formula.min;
  std::uniform_real_distribution<float> anywhere(formula.min - width / 4,
                                                 formula.max + width / 4);
  std::uniform_int_distribution<int> code(-130, 260);
  const float step = formula.scaled && formula.type == tensorflow::DT_QINT8
                         ? formula.max / 127.5f
                         : (formula.scaled ? formula.max : width) / 255;
  Tensor values(tensorflow::DT_FLOAT, shape);
  auto flat = values.flat<float>();
  for (int64_t i = 0; i < flat.size(); ++i) {
    const float middle = (formula.scaled ? 0 : formula.min) +
                         (static_cast<float>(code(random)) + 0.5f) * step;
    switch (i % 6) {
      case 0:
      case 1:
        flat(i) = anywhere(random);
        break;
      case 2:
        flat(i) = middle;
        break;
      case 3:
        flat(i) = std::nextafter(middle, formula.max);
        break;
      case 4:
        flat(i) = std::nextafter(middle, formula.min);
        break;
      default:
        flat(i) = i % 12 < 6 ? 0.0f : -0.0f;
    }
  }
  return values;
}

std::vector<Quantization> Quantizations() {
  std::vector<Quantization> all;
  for (const DataType type : {tensorflow::DT_QUINT8, tensorflow::DT_QINT8}) {
    for (const bool scaled : {false, true}) {
      for (const auto& [min, max] :
           std::vector<std::pair<float, float>>{{-1.3f, 2.7f},
                                                {0.0f, 1.0f},
                                                {-0.21f, 0.1f},
                                                {-0.5f, 0.5f},
                                                {-0.31415927f, 0.29f},
                                                {0.5f, 3.0f},
                                                {-1e-3f, 1e-3f},
                                                {-7e4f, 3e5f}}) {
        all.push_back({type, scaled, min, max});
      }
    }
  }
  return all;
}

// The formula for the range that the kernel itself says it used.
CodeFormula KernelFormula(const Quantization& how) {
  const auto range = MustRunGraph(QuantizeGraph(how, 1),
                                  {{"x0", Tensor(tensorflow::DT_FLOAT, {1})}},
                                  {"q0:1", "q0:2"});
  return {how.type, how.scaled, range[0].scalar<float>()(),
          range[1].scalar<float>()()};
}

TEST(QuantizedCodes, AreThoseOfTheKernelAtRunTime) {
  // oneDNN chooses its code by the shape.
  const std::vector<TensorShape> shapes = {
      {1},        {13},       {1, 13},    {3, 17},         {512, 13},
      {100, 845}, {4096, 32}, {40, 3, 5}, {2, 3, 4, 5, 2}, {0, 13}};
  for (const Quantization& how : Quantizations()) {
    const CodeFormula formula = KernelFormula(how);
    std::vector<std::pair<std::string, Tensor>> feeds;
    std::vector<std::string> fetches;
    for (size_t i = 0; i < shapes.size(); ++i) {
      feeds.emplace_back(absl::StrCat("x", i), HardValues(formula, shapes[i]));
      fetches.push_back(absl::StrCat("q", i));
    }
    ASSERT_OK_AND_ASSIGN(
        const auto run,
        RunGraph(QuantizeGraph(how, shapes.size()), feeds, fetches));
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Tensor codes = QuantizedCodes(formula, feeds[i].second);
      ASSERT_EQ(codes.dtype(), run[i].dtype());
      EXPECT_EQ(codes.tensor_data(), run[i].tensor_data())
          << tensorflow::DataTypeString(how.type) << " scaled " << how.scaled
          << " [" << how.min << ", " << how.max << "] "
          << shapes[i].DebugString();
    }
  }
}

TEST(QuantizedCodes, RoundHalfToEvenAndClip) {
  const CodeFormula formula = {tensorflow::DT_QUINT8, false, -5, 250};
  Tensor values(tensorflow::DT_FLOAT, {6});
  const float numbers[] = {0.5f, 1.5f, -4.5f, -9, 249.4f, 1000};
  std::copy(std::begin(numbers), std::end(numbers),
            values.flat<float>().data());
  const Tensor codes = QuantizedCodes(formula, values);
  const int expected[] = {6, 6, 0, 0, 254, 255};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(codes.flat<tensorflow::quint8>()(i).value, expected[i]) << i;
  }
}

TEST(HasScale, IsFalseForAnEmptyRange) {
  EXPECT_TRUE(HasScale({tensorflow::DT_QUINT8, false, 0, 1e-3f}));
  EXPECT_FALSE(HasScale({tensorflow::DT_QUINT8, false, 0, 0}));
  EXPECT_FALSE(HasScale({tensorflow::DT_QUINT8, true, 0, 0}));
  EXPECT_FALSE(HasScale({tensorflow::DT_QUINT8, false, 0, 1e-40f}));
}

}  // namespace
}  // namespace requant::quantize_codes_test
