#ifndef REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_NODES_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_NODES_H_

// Names and nodes that the eight-bit forms of a layer have in common, with
// ranges found as the graph runs (quantize_eightbit.cc) and with constant ones
// (quantize_static.cc).

#include <functional>
#include <string>
#include <vector>

#include "graph/graph_index.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/transform.h"

namespace requant {

// Returns the parameters target, excluded_ops and excluded_nodes of the
// transforms that quantize layers.
ParameterSpec TargetParameter();
ParameterSpec ExcludedOpsParameter();
ParameterSpec ExcludedNodesParameter();

// Returns what the names of a layer's new nodes start with.
std::string EightbitPrefix(const FloatLayer& layer);

// Returns a tensor's name as part of a node's, as the original writes it.
std::string TensorAsPartOfName(const std::string& tensor);

// Returns control inputs of the layer's nodes, which still order the new ones.
std::vector<std::string> LayerControlInputs(const FloatLayer& layer);

// Returns the least width of a layer's input range with which its float bias,
// whose largest magnitude is given, is a qint32 with enough bits left for the
// products; `weight_range` is that of 127 codes.
double LeastInputRange(double largest_bias, double weight_range);

// Adds what nothing reads to the outputs, whether it is named as one or not.
void KeepUnreadOutputs(const std::vector<FloatLayer>& layers,
                       GraphBuilder* builder);

// Removes the float nodes of layers whose eight-bit forms are in place. Where
// the output of a layer with an activation still has float readers, its last
// node becomes the Dequantize of `codes_of` it: the name of a node that gives
// quint8, min and max.
void RemoveFloatLayers(
    const std::vector<FloatLayer>& layers,
    const std::function<std::string(const FloatLayer&)>& codes_of,
    GraphBuilder* builder);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_NODES_H_
