#ifndef REQUANT_TESTS_SUPPORT_EMITTED_OPS_H_
#define REQUANT_TESTS_SUPPORT_EMITTED_OPS_H_

// What no graph of ours may hold: op combinations for which TensorFlow's int8
// kernels are wrong or saturate (tests/kernels), abort or do not exist.

#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Returns one sentence for each such combination in `graph`.
std::vector<std::string> WrongCombinations(const tensorflow::GraphDef& graph);

// Returns one for each pair of weights whose products may overflow the 16 bits
// that CPUs without VNNI sum them in: 255·(128 + 1) is beyond.
std::vector<std::string> OverflowingPairs(const tensorflow::GraphDef& graph);

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_EMITTED_OPS_H_
