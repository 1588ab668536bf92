// Tests int8 MatMuls with oneDNN off in TensorFlow, the default on CPUs without
// VNNI.

#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#include "tests/kernels/int8_layer.h"

namespace requant::without_onednn_test {
namespace {

TEST(MatMul, GivesNoOutputWithoutOneDnn) {
  for (const char* op : kMatMuls) {
    EXPECT_THAT(RunLayer(RandomLayer(0, 2.5), {op}),
                FailsWith(HasSubstr("Missing 0-th output")));
  }
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
