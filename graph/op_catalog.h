#ifndef REQUANT_GRAPH_OP_CATALOG_H_
#define REQUANT_GRAPH_OP_CATALOG_H_

// Describes the ops of a graph (TensorFlow's registered ops and the graph's own
// functions), the types of a node's arguments, and which output an input names.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

struct OpEntry {
  const tensorflow::OpDef* definition;
  // Null if it is a function of the library.
  const tensorflow::OpRegistrationData* registration;
  // Whether every output argument is one tensor, so that ports number them.
  bool one_tensor_per_output;
  // The index of each output argument by name.
  absl::flat_hash_map<std::string_view, int> output_index;
};

// Returns whether an argument stands for any number of tensors.
inline bool IsList(const tensorflow::OpDef::ArgDef& argument) {
  return !argument.type_list_attr().empty() || !argument.number_attr().empty();
}

// A function that declares more attributes or list arguments than this cannot
// be checked in reasonable time at each of its calls.
inline constexpr int kMaxVariableParts = 1000;
bool IsTooVariable(const tensorflow::OpDef& definition);

// Looks up ops by name and caches them. Call LoadTensorFlow() first. `library`
// must outlive the catalog.
class OpCatalog {
 public:
  explicit OpCatalog(const tensorflow::FunctionDefLibrary& library);

  // Returns null if there is no function or op with that name. Omits functions
  // that are IsTooVariable.
  const OpEntry* Find(const std::string& op);

  // Returns " (did you mean \"Y\"?)" or "".
  std::string DidYouMeanOp(std::string_view op);

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<OpEntry>> entries_;
  std::vector<std::string> names_;
};

// The types of a node's argument: `count` times `type`, or those of `list`.
struct ArgumentTypes {
  int64_t count = 0;
  tensorflow::DataType type = tensorflow::DT_INVALID;
  const tensorflow::AttrValue::ListValue* list = nullptr;
  bool is_ref = false;

  // Returns the type of element `index`, which is in [0, count), or DT_INVALID
  // if a list has none there.
  tensorflow::DataType At(int64_t index) const;
};

// Returns nullopt if the attributes that decide it are missing, ill-typed or
// left to a function's caller.
std::optional<ArgumentTypes> TypesOfArgument(
    const tensorflow::OpDef::ArgDef& argument, const tensorflow::NodeDef& node,
    const tensorflow::OpDef& definition);

// Returns how many tensors `arguments` (inputs or outputs of `definition`)
// stand for, or nullopt if TypesOfArgument fails for one of them.
std::optional<int64_t> CountTensors(
    const google::protobuf::RepeatedPtrField<tensorflow::OpDef::ArgDef>&
        arguments,
    const tensorflow::NodeDef& node, const tensorflow::OpDef& definition);

// The type that a node gives on output `port`.
struct Output {
  enum { kKnown, kUnknown, kOutOfRange } state;
  tensorflow::DataType type = tensorflow::DT_INVALID;
};
Output OutputAt(const tensorflow::NodeDef& node, const OpEntry& op, int port);

// Gives the same view of the nodes of a graph and of a function. A graph names
// a tensor "node:2", while a function's body uses "node:output_argument:0" or
// the name of one of its arguments.

// What an input refers to.
struct BodyTensor {
  enum Kind {
    // Nothing that exists, a control input, or several tensors at once.
    kUnknown,
    kNode,
    kArgument,
  };
  Kind kind = kUnknown;
  // The index of the node or of the function's argument.
  int32_t index = -1;
  // The index of the tensor among all outputs of the node, or 0 for an
  // argument.
  int output = 0;
};

// The parts of an input's name in a function's body.
struct BodyName {
  BodyTensor::Kind kind = BodyTensor::kUnknown;
  int32_t index = -1;
  bool control = false;
  // The node's op, null if unknown, and the index of the op's output.
  const OpEntry* op = nullptr;
  int output = -1;
  // The tensor within the output or argument, or -1 if not specified.
  int64_t number = -1;
};

class GraphBody {
 public:
  using Nodes = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;

  // The arguments must outlive this, and the nodes must not change. A repeated
  // name means the first node with it.
  GraphBody(const tensorflow::GraphDef& graph, OpCatalog* catalog);
  GraphBody(const tensorflow::FunctionDef& function, OpCatalog* catalog);

  const Nodes& nodes() const { return *nodes_; }
  // Returns null if this is a graph.
  const tensorflow::FunctionDef* function() const { return function_; }
  // Returns the function's name, or "" if this is a graph.
  std::string_view name() const;

  // Returns what `input` refers to; accepts any text. A graph's ports are not
  // checked against the node's op.
  BodyTensor Find(std::string_view input) const;

  // Returns what `input` of a function's body refers to by the names alone; its
  // number may be out of range.
  BodyName Parse(std::string_view input) const;

  // Returns the name of the node or argument.
  const std::string& NameOf(const BodyTensor& tensor) const;

 private:
  void IndexNodes();
  BodyTensor FindOutput(const BodyName& name) const;

  const Nodes* nodes_;
  const tensorflow::FunctionDef* function_ = nullptr;
  OpCatalog* catalog_;
  absl::flat_hash_map<std::string_view, int32_t> node_ids_;
  absl::flat_hash_map<std::string_view, int32_t> arguments_;
};

// Returns the types of a node's outputs, using the op's defaults for missing
// attributes. Loads TensorFlow's library for the op definitions. Fails, naming
// the node, if the op is unknown or the attributes do not fit.
absl::StatusOr<std::vector<tensorflow::DataType>> OutputTypes(
    const tensorflow::NodeDef& node);

}  // namespace requant

#endif  // REQUANT_GRAPH_OP_CATALOG_H_
