#ifndef REQUANT_RUNTIME_SESSION_TENSORFLOW_CHECK_H_
#define REQUANT_RUNTIME_SESSION_TENSORFLOW_CHECK_H_

// Does TensorFlow load here, and do its int8 kernels run? They may use
// instructions that this machine traps on, so call these in a child process.

#include <string>

#include "absl/status/statusor.h"

namespace requant {

// Opens libtensorflow_cc and returns its version, such as "2.21.0".
absl::StatusOr<std::string> LoadedTensorFlowVersion();

// How oneDNN sums products of uint8 and int8 on this machine, under the
// environment's ONEDNN_MAX_CPU_ISA.
enum class Int8Sums {
  // At any weights.
  kExact,
  // Pairs saturate in int16 when weights use more than 7 bits.
  kSaturating,
};

// Runs a small quantized layer and one of ordinary size in two threads, and
// compares outputs with the integer sums that they must be: weights of 7 bits
// must give exactly those, else the status says what came out. Weights of 8
// bits then show which sums these are.
absl::StatusOr<Int8Sums> RunInt8Layers();

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_TENSORFLOW_CHECK_H_
