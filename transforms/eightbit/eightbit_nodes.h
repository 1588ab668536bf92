#ifndef REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_NODES_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_NODES_H_

// Names and nodes that both eight-bit forms of a layer share: the one with
// ranges computed as the graph runs (quantize_eightbit.cc) and the one with
// constant ranges (quantize_static.cc).

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

// Return parameters of the transforms that quantize layers: `target`, and
// `excluded_ops` or `excluded_nodes`, which keep `what` in float.
ParameterSpec TargetParameter();
ParameterSpec ExcludedParameter(const std::string& name, std::string_view what);

// Returns the prefix of the names of a layer's new nodes.
std::string EightbitPrefix(const FloatLayer& layer);

// Returns a tensor's name in the form that the original uses inside node names.
std::string TensorAsPartOfName(const std::string& tensor);

// Finds the layers that the parameters of `context` do not exclude. Fails if a
// node to exclude is not in the graph; warns if no layer is left.
absl::StatusOr<FloatLayers> FindLayersToQuantize(const GraphIndex& index,
                                                 TransformContext* context);

// Adds notes on what became of the layers, from `rows`, a table whose first row
// is the heading, and on why other MatMuls stay in float.
void NoteLayers(const FloatLayers& found,
                const std::vector<LayerTableRow>& rows,
                TransformContext* context);

// Appends the control inputs of `nodes`, some of which may be null, without
// repetition: they still order the nodes' replacement.
void AppendControlInputs(const std::vector<const tensorflow::NodeDef*>& nodes,
                         std::vector<std::string>* inputs);

// Appends an output range, which kFusedFloat has inputs for but does not use,
// and the control inputs of the layer's nodes.
void AppendUnusedRange(const FloatLayer& layer, GraphBuilder* builder,
                       std::vector<std::string>* inputs);

// Turns `node`, whose inputs are already set, into a fused quantized matmul of
// the same name. If `input_mode` is empty, the op's default applies.
void BecomeFused(const std::string& op, tensorflow::DataType bias,
                 tensorflow::DataType output, const std::string& input_mode,
                 const std::string& device, tensorflow::NodeDef* node);

// Returns the least width of a layer's input range at which a float bias of
// magnitude `largest_bias` still fits a qint32 and leaves enough bits for the
// products. `weight_range` is the magnitude that code 127 stands for.
double LeastInputRange(double largest_bias, double weight_range);

// Adds every layer's last node to the outputs if nothing reads it.
void KeepUnreadOutputs(const std::vector<FloatLayer>& layers,
                       GraphBuilder* builder);

// Removes the float nodes of layers whose eight-bit forms are in place. Where
// the output of a layer with an activation still has float readers, its last
// node becomes a Dequantize of the node named by `codes_of`, whose outputs are
// quint8, min and max.
void RemoveFloatLayers(
    const std::vector<FloatLayer>& layers,
    const std::function<std::string(const FloatLayer&)>& codes_of,
    GraphBuilder* builder);

// Implements the transform quantize_eightbit, with its parameters in `context`:
// turns the float layers of *graph into eight-bit ones whose ranges are
// computed in every run, and returns their number. If there are none, the graph
// is unchanged. On an error the content of *graph is unspecified.
absl::StatusOr<int> QuantizeEightbit(TransformContext& context,
                                     tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_NODES_H_
