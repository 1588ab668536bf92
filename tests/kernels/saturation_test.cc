// Sums of uint8 × int8 products on CPUs without VNNI: adjacent products are
// added in pairs in 16 bits, which saturate. oneDNN is told to use AVX2 only,
// so that any CPU shows it.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <vector>

#include "base/process/machine.h"
#include "tests/kernels/int8_layer.h"
#include "tests/kernels/legacy_matmul.h"

namespace requant::saturation_test {
namespace {

class SaturationTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Before TensorFlow's library, and oneDNN in it, is opened.
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  }

  void SetUp() override {
    if (!ProbeCpu().avx2.works) GTEST_SKIP() << "this CPU has no AVX2";
  }

  // All inputs are 255, and weights alternate between two values.
  static Int8Layer PairsOf(int even, int odd) {
    Int8Layer layer = RandomLayer(0, 2.5);
    layer.codes.assign(layer.codes.size(), 255);
    for (int i = 0; i < layer.weights.size(); ++i) {
      layer.weights[i] = i / layer.columns % 2 == 0 ? even : odd;
    }
    return layer;
  }

  // How far the kernel is from the exact outputs, as a share of the largest.
  static double Error(const Int8Layer& layer) {
    const auto outputs = RunLayer(layer, {});
    EXPECT_OK(outputs);
    if (!outputs.ok()) return 1;
    const std::vector<double> exact = ExactOutputs(layer);
    return LargestDifference(outputs->values, exact) / Largest(exact);
  }
};

constexpr double kExact = 1e-5;

TEST_F(SaturationTest, LosesOutputsOfWeightsUpTo127) {
  EXPECT_GT(Error(RandomLayer(0, 2.5, 127)), 0.01);
}

TEST_F(SaturationTest, KeepsOutputsOfWeightsUpTo64) {
  EXPECT_LE(Error(RandomLayer(0, 2.5, 64)), kExact);
  EXPECT_LE(Error(PairsOf(64, 64)), kExact);
}

// 255 · 128 is the largest multiple of 255 below 2^15.
TEST_F(SaturationTest, KeepsPairsThatAddUpTo128) {
  EXPECT_LE(Error(PairsOf(127, 1)), kExact);
  EXPECT_LE(Error(PairsOf(127, -127)), kExact);
  EXPECT_LE(Error(PairsOf(100, 28)), kExact);
}

TEST_F(SaturationTest, LosesPairsThatAddUpTo129) {
  EXPECT_GT(Error(PairsOf(127, 2)), 1e-3);
  EXPECT_GT(Error(PairsOf(65, 64)), 1e-3);
}

TEST_F(SaturationTest, KeepsTwoRowsOf127ThatAreNotInOnePair) {
  Int8Layer layer = PairsOf(0, 0);
  for (int j = 0; j < layer.columns; ++j) {
    layer.weights[1 * layer.columns + j] = 127;
    layer.weights[2 * layer.columns + j] = 127;
  }
  EXPECT_LE(Error(layer), kExact);
}

}  // namespace
}  // namespace requant::saturation_test
