#ifndef REQUANT_GRAPH_SIGNATURE_NAMES_H_
#define REQUANT_GRAPH_SIGNATURE_NAMES_H_

// Keeps what a SavedModel's signature calls its inputs and outputs in the graph
// that is made of it. A GraphDef has no signatures, so the names are private
// attributes of the nodes, which TensorFlow and other readers ignore.

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// Returns whether freezing keeps the names of this signature, because the
// model's own names would not do. TensorFlow 2 exports the outputs of one
// function call, which only the signature tells apart, and placeholders with
// longer names than the inputs. TensorFlow 1 exports nodes that users know.
bool NeedsSignatureNames(const tensorflow::SignatureDef& signature);

// Writes the names of `signature` to those of its nodes that `graph` has. A
// node that already has names of this kind gets those of `signature` instead.
void KeepSignatureNames(const tensorflow::SignatureDef& signature,
                        tensorflow::GraphDef* graph);

// Returns the signature that KeepSignatureNames wrote: of inputs the tensor,
// type and shape, of outputs the tensor, and the type if the node tells it.
// Returns an empty signature for any other graph.
tensorflow::SignatureDef KeptSignature(const tensorflow::GraphDef& graph);

}  // namespace requant

#endif  // REQUANT_GRAPH_SIGNATURE_NAMES_H_
