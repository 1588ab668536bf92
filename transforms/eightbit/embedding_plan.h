#ifndef REQUANT_TRANSFORMS_EIGHTBIT_EMBEDDING_PLAN_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_EMBEDDING_PLAN_H_

// Finds the QuantizeV2 nodes that can move up to the tables whose rows they
// quantize. Rounding to a code looks at one number at a time, so it commutes
// with every op that only chooses, arranges or joins numbers.

#include <map>
#include <string>
#include <vector>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/transform.h"

namespace requant {

// Input number `input` of `node`.
struct ReadingPlace {
  tensorflow::NodeDef* node;
  int input;
};

struct ConstantRead {
  ReadingPlace place;
  // A float Const with finite values, perhaps read through Identity nodes.
  tensorflow::NodeDef* constant;
  // `place` gathers rows of it; else it is read whole.
  bool is_table;
};

// One move. The first retyped node takes the place of the quantized tensor.
struct EmbeddingPlan {
  // QuantizeV2 nodes that read the same tensor and give the same.
  std::vector<tensorflow::NodeDef*> quantizes;
  CodeFormula formula;
  // Nodes whose values become codes.
  std::vector<tensorflow::NodeDef*> retyped;
  std::vector<ConstantRead> constants;
  // Inputs of retyped concats that stay float up to a QuantizeV2 of their own,
  // in the order of the inputs.
  std::vector<ReadingPlace> floats;
  // Why gathers that one might expect to be retyped are not; the first few
  // reasons.
  std::vector<std::string> obstacles;
};

struct EmbeddingPlans {
  std::vector<EmbeddingPlan> moves;
  // The names of QuantizeV2 nodes that stay, by the reason.
  std::map<std::string, std::vector<std::string>> left;
};

// Returns the attribute that holds the type of the values a node passes on, of
// a node that can be retyped.
std::string ValueTypeOf(const tensorflow::NodeDef& node);

// Where the values of a concat stand among its inputs.
struct ConcatInputs {
  int first;
  int end;
};
ConcatInputs ValuesOf(const tensorflow::NodeDef& concat);

// Finds the moves. Every QuantizeV2 of the graph is in one of the moves or
// left. Nodes that are the graph's inputs or outputs keep their types.
EmbeddingPlans PlanEmbeddings(const TransformContext& context,
                              const GraphIndex& index);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_EMBEDDING_PLAN_H_
