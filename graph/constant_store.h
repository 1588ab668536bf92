#ifndef REQUANT_GRAPH_CONSTANT_STORE_H_
#define REQUANT_GRAPH_CONSTANT_STORE_H_

// Keeps large constants outside of GraphDefs. Copies of a graph then share
// them, and a graph can have more of them than the 2 GB of a protocol buffer.

#include <cstdint>
#include <optional>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace requant {

// While a store exists, MakeConst puts values into it and ConstValue takes them
// from it, without a copy. A Const whose value is stored has the type and the
// shape, and content that TensorFlow refuses. There is one store at a time.
class ConstantStore {
 public:
  // Values of fewer bytes, and those that are not plain numbers, stay in the
  // graph.
  explicit ConstantStore(int64_t least_bytes);
  // The graphs that refer to stored values become useless.
  ~ConstantStore();
  ConstantStore(const ConstantStore&) = delete;
  ConstantStore& operator=(const ConstantStore&) = delete;
};

// The following do nothing, or find nothing, while there is no store. They are
// thread-safe.

// Stores the value and makes `proto` refer to it. Returns false, and leaves
// `proto`, if the value is to stay in the graph. Equal values are stored once.
bool StoreValue(const tensorflow::Tensor& value,
                tensorflow::TensorProto* proto);

// Returns the value that `proto` refers to.
std::optional<tensorflow::Tensor> StoredValue(
    const tensorflow::TensorProto& proto);

// Stores the values of the graph's Const nodes (not of its functions').
void StoreConstants(tensorflow::GraphDef* graph);

// Forgets all values but those of the graph's nodes.
void ForgetAllBut(const tensorflow::GraphDef& graph);

// Puts a stored value into its Const. Other nodes stay as they are.
void FillIn(tensorflow::NodeDef* node);

// Return the size that the node or the graph would have with stored values
// filled in.
int64_t FilledBytes(const tensorflow::NodeDef& node);
int64_t FilledBytes(const tensorflow::GraphDef& graph);

}  // namespace requant

#endif  // REQUANT_GRAPH_CONSTANT_STORE_H_
