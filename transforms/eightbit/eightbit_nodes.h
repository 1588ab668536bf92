#ifndef REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_NODES_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_NODES_H_

// Names and nodes that the eight-bit forms of a layer have in common, with
// ranges found as the graph runs (quantize_eightbit.cc) and with constant ones
// (quantize_static.cc).

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/transform.h"

namespace requant {

// Returns parameters of the transforms that quantize layers: target, and
// excluded_ops or excluded_nodes, where `what` stays in float.
ParameterSpec TargetParameter();
ParameterSpec ExcludedParameter(const std::string& name, std::string_view what);

// Returns what the names of a layer's new nodes start with.
std::string EightbitPrefix(const FloatLayer& layer);

// Returns a tensor's name as part of a node's, as the original writes it.
std::string TensorAsPartOfName(const std::string& tensor);

// Finds the layers that the parameters of `context` do not exclude. A node to
// exclude that is not in the graph is an error; that no layer is left, a
// warning.
absl::StatusOr<FloatLayers> FindLayersToQuantize(const GraphIndex& index,
                                                 TransformContext* context);

// Notes what became of the layers, as `rows` of a table say after a heading,
// and why other MatMuls stay float.
void NoteLayers(const FloatLayers& found,
                const std::vector<LayerTableRow>& rows,
                TransformContext* context);

// Appends the control inputs of `nodes`, some of which may be null, each once:
// they still order what takes the nodes' place.
void AppendControlInputs(const std::vector<const tensorflow::NodeDef*>& nodes,
                         std::vector<std::string>* inputs);

// Appends a range of the output, for which kFusedFloat has inputs that it does
// not use, and the control inputs of the layer's nodes.
void AppendUnusedRange(const FloatLayer& layer, GraphBuilder* builder,
                       std::vector<std::string>* inputs);

// Turns `node`, whose inputs are set already, into a fused quantized matmul
// under the name that it has. Without `input_mode` the op's default holds.
void BecomeFused(const std::string& op, tensorflow::DataType bias,
                 tensorflow::DataType output, const std::string& input_mode,
                 const std::string& device, tensorflow::NodeDef* node);

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

// Is the transform quantize_eightbit, with its parameters in `context`: turns
// the float layers of *graph into eight-bit ones whose ranges are computed in
// every run, and returns how many they are; with none the graph is as it was.
// On an error the content of *graph no longer counts.
absl::StatusOr<int> QuantizeEightbit(TransformContext& context,
                                     tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_NODES_H_
