#ifndef REQUANT_TRANSFORMS_EIGHTBIT_EMBEDDING_PLAN_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_EMBEDDING_PLAN_H_

// Finds the QuantizeV2 nodes that can move up to the tables whose rows they
// quantize. Rounding to a code treats each number separately, so it commutes
// with every op that only chooses, arranges or joins numbers.

#include <map>
#include <string>
#include <vector>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/transform.h"

namespace requant {

// Identifies input number `input` of `node`.
struct ReadingPlace {
  tensorflow::NodeDef* node;
  int input;
};

struct ConstantRead {
  ReadingPlace place;
  // A float Const with finite values, perhaps read through Identity nodes.
  tensorflow::NodeDef* constant;
  // Whether `place` gathers its rows; otherwise it is read whole.
  bool is_table;
};

// One move. The first retyped node replaces the quantized tensor.
struct EmbeddingPlan {
  // QuantizeV2 nodes with the same input and the same result.
  std::vector<tensorflow::NodeDef*> quantizes;
  CodeFormula formula;
  // Nodes whose values become codes.
  std::vector<tensorflow::NodeDef*> retyped;
  std::vector<ConstantRead> constants;
  // Inputs of retyped concats that stay float up to a QuantizeV2 of their own,
  // in the order of the inputs.
  std::vector<ReadingPlace> floats;
  // The first few reasons why gathers that one might expect to be retyped are
  // not.
  std::vector<std::string> obstacles;
};

struct EmbeddingPlans {
  std::vector<EmbeddingPlan> moves;
  // The names of the QuantizeV2 nodes that stay, by reason.
  std::map<std::string, std::vector<std::string>> left;
};

// Returns the attribute of a node that can be retyped that holds the type of
// the values it passes on.
std::string ValueTypeOf(const tensorflow::NodeDef& node);

// The positions of a concat's values among its inputs.
struct ConcatInputs {
  int first;
  int end;
};
ConcatInputs ValuesOf(const tensorflow::NodeDef& concat);

// Finds the moves. Every QuantizeV2 of the graph is either in one of the moves
// or in `left`. Nodes that are the graph's inputs or outputs keep their types.
EmbeddingPlans PlanEmbeddings(const TransformContext& context,
                              const GraphIndex& index);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_EMBEDDING_PLAN_H_
