#include "runtime/session/tensorflow_check.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/process/machine.h"
#include "base/process/tensorflow_child.h"

namespace requant::tensorflow_check_test {
namespace {

TEST(LoadedTensorFlowVersion, IsTheOneWeBuildWith) {
  const auto version = LoadedTensorFlowVersion();
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(*version, REQUANT_TENSORFLOW_VERSION);
}

TEST(RunInt8Layers, SumAsTheProbedCpuPromises) {
  const auto sums = RunInt8Layers();
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_EQ(*sums,
            QuantizationTarget(ProbeCpu(), CachedOneDnnIsaCap()) == "vnni"
                ? Int8Sums::kExact
                : Int8Sums::kSaturating);
}

}  // namespace
}  // namespace requant::tensorflow_check_test
