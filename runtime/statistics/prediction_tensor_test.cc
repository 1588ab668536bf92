#include "runtime/statistics/prediction_tensor.h"

#include <algorithm>
#include <cmath>

#include "base/testing/testing.h"

namespace requant::prediction_tensor_test {
namespace {

using tensorflow::Tensor;

Tensor Floats(const tensorflow::TensorShape& shape,
              const std::vector<float>& values) {
  Tensor tensor(tensorflow::DT_FLOAT, shape);
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return tensor;
}

struct GuessCase {
  int64_t records;
  std::vector<float> values;
  PredictionSpec::Kind kind;
};

TEST(FormatOf, GuessesTheKindByTheValues) {
  const GuessCase cases[] = {
      // One value per record is a probability, unless it is outside 0 ... 1.
      {2, {.2, .9}, PredictionSpec::PROBABILITY},
      {3, {NAN, -.005, 1.005}, PredictionSpec::PROBABILITY},
      {2, {.2, 1.1}, PredictionSpec::VALUE},
      {2, {-.1, .9}, PredictionSpec::VALUE},
      {2, {.2, .8, .5, .5}, PredictionSpec::PROBABILITIES},
      {2, {.2, .8, .5, .6}, PredictionSpec::SCORES},
      {1, {-1, 2}, PredictionSpec::SCORES},
      // Rounded probabilities still count as such.
      {1, {.502, .5}, PredictionSpec::PROBABILITIES},
      // Records with NaN or infinite values are ignored.
      {3, {NAN, .8, .5, .5, 0, INFINITY}, PredictionSpec::PROBABILITIES},
      {2, {NAN, .8, 3, -2}, PredictionSpec::SCORES},
  };
  for (const GuessCase& test : cases) {
    const int64_t width =
        static_cast<int64_t>(test.values.size()) / test.records;
    ASSERT_OK_AND_ASSIGN(
        const PredictionFormat format,
        FormatOf({}, "p:0", Floats({test.records, width}, test.values),
                 test.records));
    EXPECT_EQ(format.kind, test.kind) << testing::PrintToString(test.values);
    EXPECT_EQ(format.threshold, 0.5);
  }
}

TEST(FormatOf, FollowsTheDeclaration) {
  PredictionSpec spec;
  for (const auto kind : {PredictionSpec::PROBABILITIES, PredictionSpec::SCORES,
                          PredictionSpec::VALUE}) {
    spec.set_kind(kind);
    EXPECT_EQ(FormatOf(spec, "p:0", Floats({1, 2}, {0, 1}), 1)->kind, kind);
  }
  spec.set_kind(PredictionSpec::PROBABILITY);
  spec.set_threshold(0.7);
  EXPECT_EQ(FormatOf(spec, "p:0", Floats({2}, {3, 4}), 2)->threshold, 0.7);
  // Numbers have no threshold.
  spec.clear_kind();
  EXPECT_EQ(FormatOf(spec, "p:0", Floats({2}, {3, 4}), 2)->kind,
            PredictionSpec::PROBABILITY);
}

TEST(FormatOf, RefusesAnOutputThatDoesNotCountTheRecords) {
  for (const Tensor& output :
       {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({}, {1})}) {
    EXPECT_THAT(FormatOf({}, "p:0", output, 2),
                FailsWith(HasSubstr("the output p:0 has shape")));
  }
}

TEST(FormatOf, RefusesADeclarationThatDoesNotFitTheShape) {
  PredictionSpec spec;
  spec.set_kind(PredictionSpec::PROBABILITY);
  EXPECT_THAT(FormatOf(spec, "p:0", Floats({1, 2}, {0, 1}), 1),
              FailsWith(HasSubstr("the output p:0 of shape [1,2]")));
  spec.set_threshold(NAN);
  EXPECT_THAT(FormatOf(spec, "p:0", Floats({1}, {0}), 1),
              FailsWith(HasSubstr("the threshold is not a number")));
  spec.set_kind(PredictionSpec::SCORES);
  EXPECT_THAT(FormatOf(spec, "p:0", Floats({2, 1}, {0, 1}), 2),
              FailsWith(HasSubstr("has one value per record")));
  EXPECT_THAT(FormatOf(spec, "p:0", Floats({0, 2}, {}), 0),
              FailsWith(HasSubstr("a prediction has no values")));
}

template <typename T>
Tensor OneValue(float value) {
  Tensor tensor(tensorflow::DataTypeToEnum<T>::value, {1});
  tensor.flat<T>()(0) = static_cast<T>(value);
  return tensor;
}

TEST(FloatValues, ConvertsFloatingPointTypesOnly) {
  std::vector<float> buffer;
  EXPECT_THAT(*FloatValues(OneValue<double>(0.5), &buffer), ElementsAre(0.5f));
  EXPECT_THAT(*FloatValues(OneValue<Eigen::half>(0.25), &buffer),
              ElementsAre(0.25f));
  EXPECT_THAT(*FloatValues(OneValue<tensorflow::bfloat16>(2), &buffer),
              ElementsAre(2.f));
  EXPECT_THAT(FloatValues(Tensor(tensorflow::DT_STRING, {1}), &buffer),
              FailsWith(HasSubstr("of type string")));
}

TEST(LabelValues, ConvertsNumbersAndRefusesStrings) {
  for (const Tensor& labels :
       {OneValue<int64_t>(7), OneValue<int32_t>(7), OneValue<int8_t>(7),
        OneValue<uint8_t>(7), OneValue<float>(7), OneValue<double>(7),
        OneValue<Eigen::half>(7)}) {
    EXPECT_THAT(*LabelValues(labels), ElementsAre(7));
  }
  EXPECT_THAT(LabelValues(Tensor(tensorflow::DT_STRING, {1})),
              FailsWith(HasSubstr("labels of type string")));
}

}  // namespace
}  // namespace requant::prediction_tensor_test
