#ifndef REQUANT_TRANSFORMS_EIGHTBIT_STATIC_INPUTS_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_STATIC_INPUTS_H_

// Float inputs of layers as quint8 tensors with constant ranges.
//
// An input that is concatenated is quantized block by block, and the codes are
// concatenated: each block has a range of its own. Few columns, such as the
// numeric ones of a model with embeddings, may each have a range of their own,
// and be repeated where that is worth it (column_plan.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/graph_builder.h"

namespace requant {

// What a column of codes means: x[source] = origin + step · code, nearly.
struct CodeColumn {
  int source = 0;
  double origin = 0;
  double step = 0;
  // How many columns of codes there are for `source`; each gets its share of
  // the weight.
  int copies = 1;
};

// The quint8 form of a float tensor of `width` columns.
struct InputCodes {
  std::string tensor;
  int64_t width = 0;
  std::vector<CodeColumn> columns;
};

struct StaticInputOptions {
  RangeChoiceOptions ranges;
  // Whether columns may have ranges of their own and be repeated.
  bool split_columns = true;
  // For the plan: about how many levels the weights have on either side.
  int weight_levels = 127;
};

class StaticInputs {
 public:
  // All of them must outlive this.
  StaticInputs(GraphBuilder* builder, const RangeTable* ranges,
               const StaticInputOptions& options);

  // Says that there is a quint8 form of a tensor ("x:0").
  void Know(const std::string& tensor, InputCodes codes);

  // The codes of `tensor`, which is the input of all of `layers`; new nodes are
  // named after the first. Fails when the table does not have what it takes.
  absl::StatusOr<InputCodes> CodesOf(
      const std::string& tensor, const std::vector<const FloatLayer*>& layers);

  // The table's entry for a tensor ("x:0"); an error says to calibrate.
  absl::StatusOr<const RangeEntry*> EntryOf(const std::string& tensor) const;

 private:
  struct Block;

  std::vector<Block> FindBlocks(const std::string& tensor,
                                int64_t columns) const;
  absl::Status SetRange(const RangeEntry* whole, Block* block) const;
  absl::StatusOr<bool> SetTableRange(Block* block) const;
  void SetColumnRanges(const RangeEntry* whole, const RangeEntry& entry,
                       Block* block) const;
  void PlanBlocks(const RangeEntry* whole,
                  const std::vector<const FloatLayer*>& layers,
                  std::vector<Block>* blocks) const;
  absl::StatusOr<std::string> AddConcat(const std::string& prefix,
                                        const std::string& name,
                                        std::vector<std::string> tensors,
                                        tensorflow::DataType type);
  absl::StatusOr<std::string> AddRepetition(const std::string& prefix,
                                            const std::string& tensor,
                                            int times);
  absl::StatusOr<std::string> AddSelection(const std::string& prefix,
                                           const std::string& tensor,
                                           const std::vector<int32_t>& columns);
  absl::StatusOr<InputCodes> AddBlock(const std::string& prefix,
                                      const Block& block);
  absl::StatusOr<InputCodes> AddColumns(const std::string& prefix,
                                        const Block& block);

  GraphBuilder* const builder_;
  const RangeTable* const ranges_;
  const StaticInputOptions options_;
  absl::flat_hash_map<std::string, InputCodes> codes_;
};

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_STATIC_INPUTS_H_
