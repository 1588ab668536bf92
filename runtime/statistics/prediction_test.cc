#include "runtime/statistics/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensorflow/core/framework/tensor.h"

namespace requant::prediction_test {
namespace {

using tensorflow::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor Floats(const tensorflow::TensorShape& shape,
              const std::vector<float>& values) {
  Tensor tensor(tensorflow::DT_FLOAT, shape);
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return tensor;
}

TEST(FormatOf, TakesOneValuePerRecordAsAProbability) {
  const auto format = FormatOf({}, "p:0", Floats({2, 1}, {0.2, 0.9}), 2);
  EXPECT_EQ(format->kind, PredictionKind::kProbability);
  EXPECT_EQ(format->threshold, 0.5);
}

TEST(FormatOf, TellsProbabilitiesFromScoresByTheirSum) {
  EXPECT_EQ(FormatOf({}, "p:0", Floats({2, 2}, {.2, .8, .5, .5}), 2)->kind,
            PredictionKind::kProbabilities);
  EXPECT_EQ(FormatOf({}, "p:0", Floats({2, 2}, {.2, .8, .5, .6}), 2)->kind,
            PredictionKind::kScores);
  EXPECT_EQ(FormatOf({}, "p:0", Floats({1, 2}, {-1, 2}), 1)->kind,
            PredictionKind::kScores);
}

TEST(FormatOf, GuessesByRecordsWithoutNanOrInfiniteValues) {
  EXPECT_EQ(
      FormatOf({}, "p:0", Floats({3, 2}, {NAN, .8, .5, .5, 0, INFINITY}), 3)
          ->kind,
      PredictionKind::kProbabilities);
  EXPECT_EQ(FormatOf({}, "p:0", Floats({2, 2}, {NAN, .8, 3, -2}), 2)->kind,
            PredictionKind::kScores);
}

TEST(FormatOf, TakesRoundedProbabilitiesForWhatTheyAre) {
  EXPECT_EQ(FormatOf({}, "p:0", Floats({1, 2}, {.502, .5}), 1)->kind,
            PredictionKind::kProbabilities);
}

TEST(DeclaredKind, IsWhatFormatOfTakes) {
  for (const auto kind : {PredictionSpec::PROBABILITIES, PredictionSpec::SCORES,
                          PredictionSpec::VALUE}) {
    PredictionSpec spec;
    spec.set_kind(kind);
    EXPECT_EQ(
        DeclaredKind(FormatOf(spec, "p:0", Floats({1, 2}, {0, 1}), 1)->kind),
        kind);
  }
}

TEST(FormatOf, FollowsTheDeclaration) {
  PredictionSpec spec;
  spec.set_kind(PredictionSpec::VALUE);
  EXPECT_EQ(FormatOf(spec, "p:0", Floats({2}, {3, 4}), 2)->kind,
            PredictionKind::kValue);
  spec.set_kind(PredictionSpec::PROBABILITY);
  spec.set_threshold(0.7);
  EXPECT_EQ(FormatOf(spec, "p:0", Floats({2}, {3, 4}), 2)->threshold, 0.7);
}

TEST(FormatOf, RefusesAnOutputThatDoesNotCountTheRecords) {
  for (const Tensor& output :
       {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({}, {1})}) {
    EXPECT_THAT(FormatOf({}, "p:0", output, 2).status().message(),
                HasSubstr("the output p:0 has shape"));
  }
}

TEST(FormatOf, RefusesADeclaredKindThatDoesNotFitTheShape) {
  PredictionSpec spec;
  spec.set_kind(PredictionSpec::PROBABILITY);
  EXPECT_THAT(
      FormatOf(spec, "p:0", Floats({1, 2}, {0, 1}), 1).status().message(),
      HasSubstr("the output p:0 of shape [1,2]"));
}

TEST(FloatValues, ConvertsEveryFloatingPointType) {
  std::vector<float> buffer;
  Tensor doubles(tensorflow::DT_DOUBLE, {1});
  doubles.flat<double>()(0) = 0.5;
  EXPECT_THAT(*FloatValues(doubles, &buffer), ElementsAre(0.5f));
  Tensor halves(tensorflow::DT_HALF, {1});
  halves.flat<Eigen::half>()(0) = Eigen::half(0.25f);
  EXPECT_THAT(*FloatValues(halves, &buffer), ElementsAre(0.25f));
  Tensor brains(tensorflow::DT_BFLOAT16, {1});
  brains.flat<tensorflow::bfloat16>()(0) = tensorflow::bfloat16(2.f);
  EXPECT_THAT(*FloatValues(brains, &buffer), ElementsAre(2.f));
}

TEST(FloatValues, RefusesOtherTypes) {
  std::vector<float> buffer;
  EXPECT_THAT(FloatValues(Tensor(tensorflow::DT_STRING, {1}), &buffer)
                  .status()
                  .message(),
              HasSubstr("of type string"));
}

TEST(LabelValues, ConvertsIntegersAndRefusesStrings) {
  Tensor labels(tensorflow::DT_INT64, {2});
  labels.flat<int64_t>()(0) = 1;
  labels.flat<int64_t>()(1) = 7;
  EXPECT_THAT(*LabelValues(labels), ElementsAre(1, 7));
  EXPECT_THAT(
      LabelValues(Tensor(tensorflow::DT_STRING, {1})).status().message(),
      HasSubstr("labels of type string"));
}

}  // namespace
}  // namespace requant::prediction_test
