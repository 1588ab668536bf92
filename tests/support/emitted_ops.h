#ifndef REQUANT_TESTS_SUPPORT_EMITTED_OPS_H_
#define REQUANT_TESTS_SUPPORT_EMITTED_OPS_H_

// Finds op combinations that Requant's graphs must not have: TensorFlow's int8
// kernels for them are wrong, saturate (tests/kernels), abort or do not exist.

#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Returns one sentence for each such combination in `graph`.
std::vector<std::string> WrongCombinations(const tensorflow::GraphDef& graph);

// Returns one for each pair of weights whose products may overflow the 16 bits
// in which CPUs without VNNI sum them: 255·(128 + 1) is too large.
std::vector<std::string> OverflowingPairs(const tensorflow::GraphDef& graph);

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_EMITTED_OPS_H_
