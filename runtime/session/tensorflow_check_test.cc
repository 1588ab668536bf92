#include "runtime/session/tensorflow_check.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/process/machine.h"
#include "base/process/tensorflow_child.h"

namespace requant::tensorflow_check_test {
namespace {

TEST(LoadedTensorFlowVersion, IsTheOneWeBuildWith) {
  EXPECT_EQ(LoadedTensorFlowVersion().value(), REQUANT_TENSORFLOW_VERSION);
}

TEST(RunInt8Layers, SumAsTheProbedCpuPromises) {
  EXPECT_EQ(RunInt8Layers().value(),
            QuantizationTarget(ProbeCpu(), CachedOneDnnIsaCap()) == "vnni"
                ? Int8Sums::kExact
                : Int8Sums::kSaturating);
}

}  // namespace
}  // namespace requant::tensorflow_check_test
