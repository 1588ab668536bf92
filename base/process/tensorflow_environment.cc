// Linked into a program, this file sets the variables for requant's own
// TensorFlow children before main.

#include "base/process/tensorflow_child.h"

namespace {

[[gnu::constructor]] void Enter(int, char** argv, char**) {
  requant::EnterTensorFlowEnvironment(argv);
}

}  // namespace
