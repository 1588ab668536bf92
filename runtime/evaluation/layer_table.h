#ifndef REQUANT_RUNTIME_EVALUATION_LAYER_TABLE_H_
#define REQUANT_RUNTIME_EVALUATION_LAYER_TABLE_H_

// What `requant evaluate --layer_records` prints about layers.

#include <string>
#include <vector>

#include "runtime/session/worker.pb.h"

namespace requant {

// A table with a line per layer, the worst signal-to-noise first, and a line on
// each that has no counterpart; empty without layers.
std::string LayersText(const std::vector<LayerMessage>& layers,
                       const std::vector<std::string>& unmatched);

// A JSON array in the order of the layers. Numbers that JSON cannot hold are
// null: the signal-to-noise of layers without any noise, say.
std::string LayersJson(const std::vector<LayerMessage>& layers);

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_LAYER_TABLE_H_
