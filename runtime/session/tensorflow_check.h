#ifndef REQUANT_RUNTIME_SESSION_TENSORFLOW_CHECK_H_
#define REQUANT_RUNTIME_SESSION_TENSORFLOW_CHECK_H_

// Checks that TensorFlow loads here and that its int8 kernels run. They may use
// instructions that this machine traps on, so call these in a child process.

#include <string>

#include "absl/status/statusor.h"

namespace requant {

// Opens libtensorflow_cc and returns its version, such as "2.21.0".
absl::StatusOr<std::string> LoadedTensorFlowVersion();

// How oneDNN sums products of uint8 and int8 on this machine, given
// ONEDNN_MAX_CPU_ISA in the environment.
enum class Int8Sums {
  // Sums are exact for any weights.
  kExact,
  // Pairs saturate in int16 if weights use more than 7 bits.
  kSaturating,
};

// Runs a small quantized layer and one of ordinary size in two threads, and
// compares their outputs with the correct integer sums. Fails, saying what came
// out, unless weights of 7 bits give exactly those sums. Weights of 8 bits then
// determine the result.
absl::StatusOr<Int8Sums> RunInt8Layers();

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_TENSORFLOW_CHECK_H_
