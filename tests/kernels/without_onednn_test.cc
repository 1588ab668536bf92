// Int8 MatMuls when TensorFlow's oneDNN is off, as it is by default on CPUs
// without VNNI.

#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#include "tests/kernels/int8_layer.h"

namespace requant::without_onednn_test {
namespace {

TEST(LegacyMatMul, GivesNoOutputWithoutOneDnn) {
  for (const char* op : {kWithBias, kWithRelu, kWithReluAndRequantize,
                         kWithRequantize, kWithDequantize}) {
    EXPECT_THAT(RunLayer(RandomLayer(0, 2.5), {op}),
                FailsWith(HasSubstr("Missing 0-th output")));
  }
}

// The kernel that oneDNN replaces for what is not constant.
TEST(QuantizeMinFirst, HasOneKernelForFedAndConstantValuesWithoutOneDnn) {
  std::vector<float> values;
  for (int i = 0; i < 4096; ++i) values.push_back(i * 1e-3f - 1.2f);
  std::vector<std::vector<int>> codes;
  for (bool constant : {false, true}) {
    KernelGraph graph;
    const Tensor x = TensorOf<float>({4096}, values);
    constant ? graph.Constant("x", x) : graph.Feed("x", x);
    graph.Add(R"(min = float{-1.37}
                 max = float{2.91}
                 codes = QuantizeV2(x, min, max) T=quint8 mode='MIN_FIRST')");
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
