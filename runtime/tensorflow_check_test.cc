#include "runtime/tensorflow_check.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/cpu.h"

namespace requant {
namespace {

TEST(LoadedTensorFlowVersion, IsTheOneWeBuildWith) {
  const auto version = LoadedTensorFlowVersion();
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(*version, REQUANT_TENSORFLOW_VERSION);
}

TEST(RunInt8Layer, SumsAsTheProbedCpuPromises) {
  // The test environment's cap is above AVX2, so VNNI is used where it works.
  const auto sums = RunInt8Layer();
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_EQ(*sums, QuantizationTarget(ProbeCpu()) == "vnni"
                       ? Int8Sums::kExact
                       : Int8Sums::kSaturating);
}

}  // namespace
}  // namespace requant
