#ifndef REQUANT_GRAPH_OP_CATALOG_H_
#define REQUANT_GRAPH_OP_CATALOG_H_

// What the ops of a graph are: TensorFlow's registered ops and the functions of
// the graph's own library, which types a node's arguments have, and which of
// its outputs an input names.

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
  // Null for a function of the library.
  const tensorflow::OpRegistrationData* registration;
  // Every output argument is exactly one tensor, so ports number arguments.
  bool one_tensor_per_output;
  // The number of each output argument.
  absl::flat_hash_map<std::string_view, int> output_index;
};

// Returns whether an argument stands for any number of tensors.
inline bool IsList(const tensorflow::OpDef::ArgDef& argument) {
  return !argument.type_list_attr().empty() || !argument.number_attr().empty();
}

// A function that declares more than this many attributes or list arguments
// cannot be checked in reasonable time at each of its calls.
inline constexpr int kMaxVariableParts = 1000;
bool IsTooVariable(const tensorflow::OpDef& definition);

// Looks up ops by name, each one once. Call LoadTensorFlow() before. `library`
// must outlive the catalog.
class OpCatalog {
 public:
  explicit OpCatalog(const tensorflow::FunctionDefLibrary& library);

  // Returns null when there is neither a function nor an op of that name. A
  // function that IsTooVariable is left out.
  const OpEntry* Find(const std::string& op);

  // Returns " (did you mean \"Y\"?)" or "".
  std::string DidYouMeanOp(std::string_view op);

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<OpEntry>> entries_;
  std::vector<std::string> names_;
};

// The types of one argument of a node: `count` times `type`, or those of
// `list`.
struct ArgumentTypes {
  int64_t count = 0;
  tensorflow::DataType type = tensorflow::DT_INVALID;
  const tensorflow::AttrValue::ListValue* list = nullptr;
  bool is_ref = false;

  // Returns the type of element `index`, which is in [0, count); DT_INVALID
  // when a list has none there.
  tensorflow::DataType At(int64_t index) const;
};

// Returns nothing when the attributes that decide it are missing, ill-typed or
// left to the caller of a function.
std::optional<ArgumentTypes> TypesOfArgument(
    const tensorflow::OpDef::ArgDef& argument, const tensorflow::NodeDef& node,
    const tensorflow::OpDef& definition);

// Returns how many tensors `arguments` (inputs or outputs of `definition`)
// stand for; nothing when TypesOfArgument does not know it for one of them.
std::optional<int64_t> CountTensors(
    const google::protobuf::RepeatedPtrField<tensorflow::OpDef::ArgDef>&
        arguments,
    const tensorflow::NodeDef& node, const tensorflow::OpDef& definition);

// What a node gives on output `port`.
struct Output {
  enum { kKnown, kUnknown, kOutOfRange } state;
  tensorflow::DataType type = tensorflow::DT_INVALID;
};
Output OutputAt(const tensorflow::NodeDef& node, const OpEntry& op, int port);

// The nodes of a graph or of a function can be read in the same way. A graph
// names a tensor "node:2", where a function's body says
// "node:output_argument:0" or the name of one of its own arguments.

// What an input names.
struct BodyTensor {
  enum Kind {
    // Nothing that exists, a control input, or several tensors at once.
    kUnknown,
    kNode,
    kArgument,
  };
  Kind kind = kUnknown;
  // The number of the node or of the function's argument.
  int32_t index = -1;
  // Which of the node's tensors, counted over all its outputs; 0 for an
  // argument.
  int output = 0;
};

// The parts of an input's name in a function's body.
struct BodyName {
  BodyTensor::Kind kind = BodyTensor::kUnknown;
  int32_t index = -1;
  bool control = false;
  // Of a node: its op, null if unknown, and which of the op's outputs.
  const OpEntry* op = nullptr;
  int output = -1;
  // Which tensor of the output or argument; -1 when the name does not say.
  int64_t number = -1;
};

class GraphBody {
 public:
  using Nodes = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;

  // All arguments must outlive this, and the nodes stay as they are. A name
  // that several nodes have means the first of them.
  GraphBody(const tensorflow::GraphDef& graph, OpCatalog* catalog);
  GraphBody(const tensorflow::FunctionDef& function, OpCatalog* catalog);

  const Nodes& nodes() const { return *nodes_; }
  // Returns null for a graph.
  const tensorflow::FunctionDef* function() const { return function_; }
  // Returns the function's name; "" for a graph.
  std::string_view name() const;

  // Returns what `input` names; never fails, whatever it is. A graph's ports
  // are not checked against the node's op.
  BodyTensor Find(std::string_view input) const;

  // Returns what `input` of a function's body names, by the names alone: its
  // number may be more than there are.
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

// Returns the types of a node's outputs, with the op's defaults for missing
// attributes. Opens TensorFlow's library for the op definitions. Fails, naming
// the node, for an unknown op or attributes that do not fit.
absl::StatusOr<std::vector<tensorflow::DataType>> OutputTypes(
    const tensorflow::NodeDef& node);

}  // namespace requant

#endif  // REQUANT_GRAPH_OP_CATALOG_H_
