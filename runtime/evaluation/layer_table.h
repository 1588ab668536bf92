#ifndef REQUANT_RUNTIME_EVALUATION_LAYER_TABLE_H_
#define REQUANT_RUNTIME_EVALUATION_LAYER_TABLE_H_

// What `requant evaluate --layer_records` prints about layers.

#include <string>

#include "runtime/evaluation.pb.h"

namespace requant {

// A table with a line per layer, the worst signal-to-noise first, and a line on
// each that has no counterpart; empty without layers.
std::string LayersText(const EvaluateResult& result);

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_LAYER_TABLE_H_
