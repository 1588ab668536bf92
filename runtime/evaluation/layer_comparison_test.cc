#include "runtime/evaluation/layer_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/testing/testing.h"

namespace requant::layer_comparison_test {
namespace {

using tensorflow::Tensor;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor Floats(const std::vector<float>& values, int64_t channels) {
  Tensor tensor(tensorflow::DT_FLOAT,
                {static_cast<int64_t>(values.size()) / channels, channels});
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return tensor;
}

Tensor Codes(const std::vector<int>& codes, int64_t channels) {
  Tensor tensor(tensorflow::DT_QUINT8,
                {static_cast<int64_t>(codes.size()) / channels, channels});
  for (size_t i = 0; i < codes.size(); ++i) {
    tensor.flat<tensorflow::quint8>()(i) = codes[i];
  }
  return tensor;
}

LayerPair Pair(LayerCoding coding) {
  LayerPair pair;
  pair.name = "m";
  pair.float_tensor = "relu:0";
  pair.tensor = "m_eightbit_requantize:0";
  pair.coding = coding;
  pair.min_tensor = "m_eightbit_requantize:1";
  pair.max_tensor = "m_eightbit_requantize:2";
  return pair;
}

// Compares one batch of codes with the range 0 … `max`.
ComparedLayer CompareCodes(const Tensor& baseline, const Tensor& codes,
                           float max) {
  LayerComparison comparison(Pair(LayerCoding::kScaled));
  const Tensor low(0.f), high(max);
  EXPECT_OK(comparison.Add(baseline.dim_size(0), baseline, codes, &low, &high));
  return comparison.Result();
}

ComparedLayer CompareFloats(const Tensor& baseline, const Tensor& other) {
  LayerComparison comparison(Pair(LayerCoding::kFloat));
  EXPECT_OK(
      comparison.Add(baseline.dim_size(0), baseline, other, nullptr, nullptr));
  return comparison.Result();
}

TEST(LayerComparison, DecodesMinFirstCodesAndMultiplesOfAStep) {
  using tensorflow::DT_QINT8, tensorflow::DT_QUINT8;
  const struct {
    LayerCoding coding;
    tensorflow::DataType type;
    float min, max;
    // The code's byte and the value that it stands for.
    int code;
    float value;
    double step, low, high;
  } cases[] = {
      {LayerCoding::kMinFirst, DT_QUINT8, -51, 204, 0, -51, 1, -51, 204},
      {LayerCoding::kMinFirst, DT_QUINT8, -51, 204, 255, 204, 1, -51, 204},
      {LayerCoding::kMinFirst, DT_QINT8, -51, 204, 128, -51, 1, -51, 204},
      {LayerCoding::kMinFirst, DT_QINT8, -51, 204, 127, 204, 1, -51, 204},
      {LayerCoding::kScaled, DT_QUINT8, 0, 510, 3, 6, 2, 0, 510},
      {LayerCoding::kScaled, DT_QINT8, -254, 100, 255, -2, 2, -254, 254}};
  for (const auto& test : cases) {
    LayerComparison comparison(Pair(test.coding));
    Tensor codes(test.type, {1, 1});
    *static_cast<uint8_t*>(codes.data()) = test.code;
    const Tensor min(test.min), max(test.max);
    ASSERT_OK(comparison.Add(1, Floats({test.value}, 1), codes, &min, &max));
    const ComparedLayer layer = comparison.Result();
    EXPECT_EQ(layer.max_error(), 0) << test.code;
    EXPECT_EQ(layer.step(), test.step);
    EXPECT_EQ(layer.range().low(), test.low);
    EXPECT_EQ(layer.range().high(), test.high);
  }
}

TEST(LayerComparison, MeasuresNoiseInTheUnitsOfTheValues) {
  // The codes have step 1: the errors of the 4 values are 0, 1, 0, −1.
  const ComparedLayer layer =
      CompareCodes(Floats({3, 4, 6, 8}, 2), Codes({3, 5, 6, 7}, 2), 255);
  EXPECT_EQ(layer.records(), 2);
  EXPECT_TRUE(layer.quantized());
  EXPECT_EQ(layer.step(), 1);
  EXPECT_EQ(layer.range().low(), 0);
  EXPECT_EQ(layer.range().high(), 255);
  EXPECT_EQ(layer.observed().low(), 3);
  EXPECT_EQ(layer.observed().high(), 8);
  EXPECT_DOUBLE_EQ(layer.rms_error(), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(layer.rms_signal(), std::sqrt(125.0 / 4));
  EXPECT_EQ(layer.max_error(), 1);
  EXPECT_DOUBLE_EQ(layer.signal_to_noise(), 10 * std::log10(125.0 / 2));
  EXPECT_EQ(layer.clipped_share(), 0);
}

TEST(LayerComparison, FindsTheChannelThatIsShifted) {
  const ComparedLayer layer = CompareFloats(Floats({1, 1, 1, 1, 1, 1}, 3),
                                            Floats({2, 1, -1, 0, 1, -2}, 3));
  EXPECT_EQ(layer.worst_channel(), 2);
  EXPECT_EQ(layer.worst_channel_shift(), -2.5);
}

TEST(LayerComparison, CountsWhatIsOutsideTheRangeByMoreThanHalfAStep) {
  EXPECT_EQ(CompareCodes(Floats({255, 255.5, 256, -0.4, -1, 300, 0, 1}, 2),
                         Codes({255, 255, 255, 0, 0, 255, 0, 1}, 2), 255)
                .clipped_share(),
            3.0 / 8);
}

TEST(LayerComparison, CountsRecordsWithClippedValuesOnce) {
  EXPECT_EQ(CompareCodes(Floats({300, 256, 7, 8, 9, 300, 1, 2}, 2),
                         Codes({255, 255, 7, 8, 9, 255, 1, 2}, 2), 255)
                .clipped_records(),
            2.0 / 4);
}

TEST(LayerComparison, FitsTheGainByLeastSquares) {
  EXPECT_DOUBLE_EQ(
      CompareFloats(Floats({1, -2, 3, 4}, 2), Floats({2, -4, 6, 8}, 2)).gain(),
      2);
  // An error that is unrelated to the values leaves the gain unchanged.
  EXPECT_DOUBLE_EQ(
      CompareFloats(Floats({1, 1, 2, 2}, 2), Floats({2, 0, 3, 1}, 2)).gain(),
      1);
  EXPECT_EQ(CompareFloats(Floats({0, 0}, 2), Floats({1, 2}, 2)).gain(), 1);
}

TEST(LayerComparison, TakesTheMeanStepAndTheWidestRangeOfBatches) {
  LayerComparison comparison(Pair(LayerCoding::kMinFirst));
  const Tensor low(0.f), wide(510.f), narrow(255.f);
  ASSERT_OK(comparison.Add(1, Floats({2}, 1), Codes({1}, 1), &low, &wide));
  ASSERT_OK(comparison.Add(3, Floats({1, 1, 300}, 1), Codes({1, 1, 255}, 1),
                           &low, &narrow));
  const ComparedLayer layer = comparison.Result();
  EXPECT_EQ(layer.records(), 4);
  EXPECT_EQ(layer.step(), (2.0 + 3 * 1) / 4);
  EXPECT_EQ(layer.range().high(), 510);
  // Values are compared with the range of their own batch.
  EXPECT_EQ(layer.clipped_share(), 0.25);
}

TEST(LayerComparison, GivesAFloatTensorA255thOfWhatTheBaselineHas) {
  const ComparedLayer layer =
      CompareFloats(Floats({-255, 255}, 1), Floats({-254, 255}, 1));
  EXPECT_FALSE(layer.quantized());
  EXPECT_EQ(layer.step(), 2);
  EXPECT_FALSE(layer.has_range());
  EXPECT_EQ(layer.clipped_share(), 0);
}

TEST(LayerComparison, CallsEqualTensorsFreeOfNoise) {
  const ComparedLayer layer =
      CompareFloats(Floats({1, 2}, 2), Floats({1, 2}, 2));
  EXPECT_EQ(layer.rms_error(), 0);
  EXPECT_EQ(layer.signal_to_noise(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(layer.worst_channel_shift(), 0);
}

TEST(LayerComparison, TakesNanAsAnInfiniteError) {
  for (const auto& [baseline, other] :
       std::vector<std::pair<float, float>>{{1, kNan}, {kNan, 1}}) {
    const ComparedLayer layer =
        CompareFloats(Floats({1, baseline}, 2), Floats({1, other}, 2));
    EXPECT_EQ(layer.rms_error(), std::numeric_limits<double>::infinity());
    EXPECT_EQ(layer.max_error(), std::numeric_limits<double>::infinity());
    EXPECT_EQ(layer.signal_to_noise(),
              -std::numeric_limits<double>::infinity());
    EXPECT_EQ(layer.worst_channel(), 1);
    EXPECT_EQ(layer.worst_channel_shift(),
              std::numeric_limits<double>::infinity());
    EXPECT_EQ(layer.observed().low(), 1);
  }
}

TEST(LayerComparison, SurvivesRangesWithoutWidthOrSense) {
  for (const float max : {0.f, kNan, std::numeric_limits<float>::infinity()}) {
    const ComparedLayer layer =
        CompareCodes(Floats({0, 1}, 2), Codes({0, 255}, 2), max);
    EXPECT_GT(layer.rms_error(), 0) << max;
  }
  EXPECT_EQ(CompareCodes(Floats({0, 1}, 2), Codes({0, 255}, 2), 0).step(), 0);
}

TEST(LayerComparison, RefusesTensorsThatDoNotFit) {
  LayerComparison comparison(Pair(LayerCoding::kScaled));
  const Tensor end(1.f), floats = Floats({1, 2}, 2);
  EXPECT_THAT(comparison.Add(1, floats, Codes({1, 2, 3}, 3), &end, &end),
              FailsWith(HasSubstr("the layer m cannot be compared: "
                                  "m_eightbit_requantize:0 has shape [1,3]")));
  EXPECT_THAT(comparison.Add(1, floats, floats, &end, &end),
              FailsWith(HasSubstr("holds no eight-bit codes but float")));
  EXPECT_THAT(
      comparison.Add(1, floats, Codes({1, 2}, 2), &end, &floats),
      FailsWith(HasSubstr("m_eightbit_requantize:2 is no end of a range")));
}

TEST(LayerComparison, OfNoRecordsHasNoFigures) {
  LayerComparison comparison(Pair(LayerCoding::kFloat));
  ASSERT_OK(comparison.Add(0, Floats({}, 2), Floats({}, 2), nullptr, nullptr));
  EXPECT_EQ(comparison.Result().records(), 0);
}

}  // namespace
}  // namespace requant::layer_comparison_test
