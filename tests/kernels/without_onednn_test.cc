// Int8 MatMuls when TensorFlow's oneDNN is off, as it is by default on CPUs
// without VNNI.

#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#include "tests/kernels/int8_layer.h"
#include "tests/kernels/kernel_graph.h"
#include "tests/kernels/legacy_matmul.h"

namespace requant::without_onednn_test {
namespace {

TEST(LegacyMatMul, GivesNoOutputWithoutOneDnn) {
  for (const char* op : {kWithBias, kWithRelu, kWithReluAndRequantize,
                         kWithRequantize, kWithDequantize}) {
    LegacyMatMul matmul;
    matmul.op = op;
    EXPECT_THAT(RunLayer(RandomLayer(0, 2.5), matmul),
                FailsWith(testing::HasSubstr("Missing 0-th output")));
  }
}

// The kernel that oneDNN replaces for what is not constant.
TEST(QuantizeMinFirst, HasOneKernelForFedAndConstantValuesWithoutOneDnn) {
  std::vector<float> values;
  for (int i = 0; i < 4096; ++i) values.push_back(i * 1e-3f - 1.2f);
  const Tensor tensor = FloatTensor({4096}, values);
  std::vector<std::vector<int>> codes;
  for (bool constant : {false, true}) {
    KernelGraph graph;
    graph.Add("codes", "QuantizeV2",
              {constant ? graph.Constant("x", tensor) : graph.Feed("x", tensor),
               graph.Constant("min", -1.37f), graph.Constant("max", 2.91f)},
              {{"T", "type: DT_QUINT8"}, {"mode", "s: 'MIN_FIRST'"}});
    ASSERT_OK_AND_ASSIGN(const auto outputs, graph.Run({"codes"}));
    codes.push_back(Codes(outputs[0]));
  }
  EXPECT_EQ(codes[0], codes[1]);
}

}  // namespace
}  // namespace requant::without_onednn_test

// TensorFlow reads the variable before main.
int main(int argc, char** argv) {
  constexpr char kVariable[] = "TF_ENABLE_ONEDNN_OPTS";
  const char* const value = getenv(kVariable);
  if (value == nullptr || std::strcmp(value, "0") != 0) {
    setenv(kVariable, "0", 1);
    execv("/proc/self/exe", argv);
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
