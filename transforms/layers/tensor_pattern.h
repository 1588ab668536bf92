#ifndef REQUANT_TRANSFORMS_LAYERS_TENSOR_PATTERN_H_
#define REQUANT_TRANSFORMS_LAYERS_TENSOR_PATTERN_H_

// Matches the computation of a tensor in a graph against an expression:
//
//   Op("Where", {Op("NotEqual", {Any().As("x"), Constant()})})
//
// matches any Where of a NotEqual with a constant. Tensors that As gives the
// same name must be the same tensor. Identity nodes are skipped.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// One output of a node.
struct NodeOutput {
  tensorflow::NodeDef* node = nullptr;
  int port = 0;

  friend bool operator==(const NodeOutput& a, const NodeOutput& b) {
    return a.node == b.node && a.port == b.port;
  }
};

// Returns what input number `input` of `node` reads, through all Identity
// nodes; its node is nullptr if there is no such data input.
NodeOutput TensorSource(const GraphIndex& index,
                        const tensorflow::NodeDef& node, int input);

// Returns the node that makes the values of `tensor`, through Identity and
// nodes that only change the shape, or nullptr if the graph has none.
tensorflow::NodeDef* MakerOfValues(const GraphIndex& index,
                                   std::string_view tensor);

// Returns the constant table whose rows `tensor` holds, or nullptr.
const tensorflow::NodeDef* GatheredTable(const GraphIndex& index,
                                         std::string_view tensor);

// Return an attribute's value, or the given default if the node lacks it; for
// integers, which are masks, that is 0.
int64_t IntegerAttribute(const tensorflow::NodeDef& node,
                         const std::string& name);
bool BoolAttribute(const tensorflow::NodeDef& node, const std::string& name);
std::string StringAttribute(const tensorflow::NodeDef& node,
                            const std::string& name,
                            const std::string& otherwise = "");
tensorflow::DataType TypeAttribute(
    const tensorflow::NodeDef& node, const std::string& name,
    tensorflow::DataType otherwise = tensorflow::DT_INVALID);

// Returns how many of the inputs are data; control inputs come after them.
int DataInputs(const tensorflow::NodeDef& node);

// Returns whether `node` is a ConcatV2 that puts matrices side by side.
bool ConcatenatesColumns(const GraphIndex& index,
                         const tensorflow::NodeDef& node);

struct TensorPattern {
  enum class Kind { kAny, kOp, kConstant, kIntegers, kOneOf };

  // Returns the same pattern under a name.
  TensorPattern As(std::string given) const;
  // Returns the same pattern, requiring this value of an integer attribute.
  TensorPattern With(const std::string& attribute, int64_t value) const;

  Kind kind = Kind::kAny;
  std::vector<std::string> ops = {};
  int port = 0;
  // The inputs of an op, or the alternatives.
  std::vector<TensorPattern> children = {};
  std::vector<int64_t> integers = {};
  std::map<std::string, int64_t> attributes = {};
  std::string name = "";
};

TensorPattern Any();
// Matches output `port` of a node whose op is among `ops` ("Add|AddV2"). The
// node may have more inputs than are given here.
TensorPattern Op(std::string_view ops, std::vector<TensorPattern> inputs,
                 int port = 0);
TensorPattern Constant();
// Matches a constant with these integers, of any rank.
TensorPattern Integers(std::vector<int64_t> values);
// Matches the first of `patterns` that matches.
TensorPattern OneOf(std::vector<TensorPattern> patterns);

class PatternMatcher {
 public:
  explicit PatternMatcher(const GraphIndex* index) : index_(index) {}

  // Returns whether it matches. On success all named tensors are known; names
  // from earlier matches persist and must denote the same tensors.
  bool Match(const TensorPattern& pattern, NodeOutput tensor);

  // Returns the tensor that matched under this name.
  NodeOutput operator[](const std::string& name) const;

  // Returns, after a failure, a phrase about the mismatch that is farthest from
  // where matching began.
  const std::string& problem() const { return problem_; }

 private:
  bool MatchAt(const TensorPattern& pattern, NodeOutput tensor, int depth);
  bool MatchKind(const TensorPattern& pattern, NodeOutput tensor, int depth);
  bool MatchOp(const TensorPattern& pattern, NodeOutput tensor, int depth);
  bool MatchOneOf(const TensorPattern& pattern, NodeOutput tensor, int depth);
  bool Bind(const std::string& name, NodeOutput tensor, int depth);
  bool Fail(int depth, std::string problem);

  const GraphIndex* index_;
  std::map<std::string, NodeOutput> named_;
  std::string problem_;
  int problem_depth_ = -1;
};

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_TENSOR_PATTERN_H_
