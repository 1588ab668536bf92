#include "transforms/qdq/qdq_pair.h"

#include <cmath>
#include <limits>

#include "graph/testing/testing.h"

namespace requant::qdq_pair_test {
namespace {

std::string WhyNot(const std::string& type, const std::string& mode) {
  return std::string(ParseQdqFormat(type, mode).status().message());
}

TEST(QdqFormat, IsATypeWithItsMode) {
  EXPECT_EQ(*ParseQdqFormat("qint8", ""), QdqFormat::kQint8Scaled);
  EXPECT_EQ(*ParseQdqFormat("qint8", "SCALED"), QdqFormat::kQint8Scaled);
  EXPECT_EQ(*ParseQdqFormat("quint8", ""), QdqFormat::kQuint8MinFirst);
  EXPECT_EQ(*ParseQdqFormat("quint8", "MIN_FIRST"), QdqFormat::kQuint8MinFirst);
}

TEST(QdqFormat, RefusesCombinationsThatGiveWrongValues) {
  EXPECT_THAT(WhyNot("qint8", "MIN_FIRST"), HasSubstr("kernels are wrong"));
  EXPECT_THAT(WhyNot("quint8", "SCALED"), HasSubstr("below zero"));
  EXPECT_THAT(WhyNot("int8", "SCALED"), HasSubstr("qint8 or quint8"));
  EXPECT_THAT(WhyNot("qint8", "MIN_COMBINED"),
              HasSubstr("not \"MIN_COMBINED\""));
}

TEST(FitRange, MakesScaledRangesSymmetric) {
  const QdqRange range = FitRange(QdqFormat::kQint8Scaled, {-1, 3});
  EXPECT_EQ(range.min, -3);
  EXPECT_EQ(range.max, 3);
}

TEST(FitRange, TakesZeroIn) {
  const QdqRange range = FitRange(QdqFormat::kQuint8MinFirst, {2, 3});
  EXPECT_EQ(range.min, 0);
  EXPECT_EQ(range.max, 3);
}

// With an empty range the kernels divide by zero.
TEST(FitRange, IsNeverEmpty) {
  for (QdqFormat format :
       {QdqFormat::kQint8Scaled, QdqFormat::kQuint8MinFirst}) {
    for (float end : {0.0f, std::numeric_limits<float>::denorm_min(), 1e-37f}) {
      const QdqRange range = FitRange(format, {0, end});
      EXPECT_LE(range.min, 0);
      EXPECT_TRUE(std::isfinite(255 / (range.max - range.min)));
    }
  }
}

TEST(IsTooNarrow, KnowsRangesThatHaveNoScale) {
  for (QdqFormat format :
       {QdqFormat::kQint8Scaled, QdqFormat::kQuint8MinFirst}) {
    EXPECT_TRUE(IsTooNarrow(format, {-1e-40f, 1e-40f}));
    EXPECT_TRUE(IsTooNarrow(format, {0, 0}));
    EXPECT_FALSE(IsTooNarrow(format, {-1e-20f, 1e-20f}));
    // With zero in it, it is wide.
    EXPECT_FALSE(IsTooNarrow(format, {1, 1}));
  }
}

TEST(NamePair, TellsOutputsOfANodeApart) {
  EXPECT_EQ(NamePair("m", "a/x", 0).quantize, "m_eightbit_quantize_a/x");
  EXPECT_EQ(NamePair("m", "x", 2).min, "m_eightbit_min_x__port__2");
}

TEST(MakePair, WritesInputsAsAGraphOrAFunctionDoes) {
  QdqPair pair;
  pair.names = NamePair("m", "x", 0);
  pair.tensor = "x";
  EXPECT_THAT(MakePair(pair)[3].input(),
              ElementsAre("m_eightbit_quantize_x", "m_eightbit_quantize_x:1",
                          "m_eightbit_quantize_x:2"));
  EXPECT_EQ(ResultOf(pair), "m_dequantize");
  pair.tensor = "x:y:0";
  pair.in_function = true;
  EXPECT_THAT(MakePair(pair)[2].input(),
              ElementsAre("x:y:0", "m_eightbit_min_x:output:0",
                          "m_eightbit_max_x:output:0"));
  EXPECT_THAT(MakePair(pair)[3].input(),
              ElementsAre("m_eightbit_quantize_x:output:0",
                          "m_eightbit_quantize_x:output_min:0",
                          "m_eightbit_quantize_x:output_max:0"));
  EXPECT_EQ(ResultOf(pair), "m_dequantize:output:0");
}

}  // namespace
}  // namespace requant::qdq_pair_test
