#ifndef REQUANT_TRANSFORMS_QDQ_WEIGHT_SOURCES_H_
#define REQUANT_TRANSFORMS_QDQ_WEIGHT_SOURCES_H_

// Which tensors of a graph and its functions are weights: constants and values
// of variables, however they get to where they are used.

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/graph_body.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

class WeightSources {
 public:
  // `bodies`: the graph first, then the functions of `library` in their order.
  // Both must outlive this. Takes time in proportion to nodes and inputs.
  WeightSources(const std::vector<GraphBody>& bodies,
                const tensorflow::FunctionDefLibrary& library);

  // Whether what `input` names in a body is a weight: a Const or a variable's
  // value, behind nodes that only move, shape or cast it (Identity, Reshape,
  // Transpose, Cast, Enter …), or an argument that is one in all calls of the
  // function. An argument of a loop's body must also be handed on unchanged.
  bool IsWeight(int body, std::string_view input);

  // Whether the graph's nodes call the function, directly or not. Others may
  // still be called by name, as a SavedModel's are.
  bool IsReached(int body) const { return reached_[body]; }

 private:
  struct Origin {
    enum Kind : int8_t { kNotSought, kUnderWay, kWeight, kOther, kArgument };
    Kind kind = kNotSought;
    int32_t argument = -1;
  };
  // A function that a node hands its inputs to, from input `offset` on; -1:
  // nobody knows what the function is given.
  struct Callee {
    int body;
    int offset;
  };
  using Callees = std::vector<std::vector<int>>;

  Origin OriginOf(int body, const BodyTensor& tensor);
  std::vector<Callee> CalleesOf(const tensorflow::NodeDef& node) const;
  int BodyNamed(std::string_view function) const;
  void FollowCalls(Callees* callees);
  void FollowCall(int body, const tensorflow::NodeDef& node,
                  const Callee& callee);
  void FollowLoop(const tensorflow::NodeDef& node);
  // What an argument, numbered over all functions, may be.
  void AddSource(int32_t argument, int body, std::string_view input);
  void SpreadOthers();
  void FindReached(const Callees& callees,
                   const tensorflow::FunctionDefLibrary& library);
  int ArgumentCount(int body) const;

  const std::vector<GraphBody>& bodies_;
  absl::flat_hash_map<std::string_view, int> functions_;
  std::vector<std::vector<Origin>> origins_;  // of a body's nodes
  std::vector<int32_t> first_argument_;       // of a body
  std::vector<bool> is_opaque_;  // a body's arguments are all marked as others
  // Per argument, over all functions.
  std::vector<bool> is_called_;
  std::vector<bool> is_other_;
  std::vector<std::vector<int32_t>> handed_to_;
  std::vector<bool> reached_;
};

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_QDQ_WEIGHT_SOURCES_H_
