// Linked into a program, this file gives it the variables that requant's own
// children run TensorFlow with, before main.

#include "base/process/tensorflow_child.h"

namespace {

[[gnu::constructor]] void Enter(int, char** argv, char**) {
  requant::EnterTensorFlowEnvironment(argv);
}

}  // namespace
