#ifndef REQUANT_TRANSFORMS_EIGHTBIT_STATIC_INPUTS_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_STATIC_INPUTS_H_

// Turns float inputs of layers into quint8 tensors with constant ranges.
//
// An input that is concatenated is quantized block by block, and the codes are
// concatenated: each block has a range of its own, or one in common with
// blocks about as wide where that makes the expected error smaller. (Finer
// steps make larger codes, by which the errors of the weights are multiplied.)
// If there are few columns, such as the numeric ones of a model with
// embeddings, each may have a range of its own and be repeated where that is
// worthwhile (ColumnPlan).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/eightbit/column_plan.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/graph_builder.h"

namespace requant {

// The meaning of a column of codes: x[source] ≈ origin + step · code.
struct CodeColumn {
  int source = 0;
  double origin = 0;
  double step = 0;
  // How many columns of codes there are for `source`; each gets its share of
  // the weight.
  int copies = 1;

  friend bool operator==(const CodeColumn& a, const CodeColumn& b) {
    return a.source == b.source && a.origin == b.origin && a.step == b.step &&
           a.copies == b.copies;
  }
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
  // Whether a range's zero is a code. TensorFlow's two kernels for QuantizeV2,
  // with oneDNN and without, give the same codes only then.
  bool zero_is_code = false;
  // About how many levels the weights have on either side, for the plan.
  int weight_levels = 127;
};

class StaticInputs {
 public:
  // All of the arguments must outlive this object.
  StaticInputs(GraphBuilder* builder, const RangeTable* ranges,
               const StaticInputOptions& options);

  // Gives all of `tensors`, inputs of the same width, one plan of columns: that
  // of their common ranges and of `layers`, which read them. EntryOf returns
  // for each what was observed of all. Fails if the table lacks an entry.
  absl::Status Unite(const std::vector<std::string>& tensors,
                     const std::vector<const FloatLayer*>& layers);

  // Registers the quint8 form that a tensor ("x:0") already has.
  void AddKnownCodes(const std::string& tensor, InputCodes codes);

  // Returns the codes of `tensor`, which is the input of all `layers`; new
  // nodes are named after the first one. Fails if the table lacks an entry.
  absl::StatusOr<InputCodes> CodesOf(
      const std::string& tensor, const std::vector<const FloatLayer*>& layers);

  // Returns the table's entry for a tensor ("x:0"). An error says to calibrate.
  absl::StatusOr<const RangeEntry*> EntryOf(const std::string& tensor) const;

 private:
  struct Block;
  struct United {
    std::vector<std::string> tensors;
    std::vector<const FloatLayer*> layers;
    RangeEntry entry;
    // The names of the constants with the range, once they are in the graph.
    std::string low, high;
  };

  static std::vector<Block> OneBlock(const std::string& tensor,
                                     int64_t columns);
  std::vector<Block> FindBlocks(const std::string& tensor,
                                int64_t columns) const;
  absl::Status SetRange(const RangeEntry* whole, Block* block) const;
  United* UnitedWith(const std::string& tensor) const;
  absl::StatusOr<bool> AddTableRange(const std::string& tensor,
                                     Block* block) const;
  absl::StatusOr<bool> SetTableRange(Block* block) const;
  void SetColumnRanges(const RangeEntry* whole, const RangeEntry& entry,
                       Block* block) const;
  static PlannedColumn PlannedColumnOf(
      const RangeEntry* whole, const std::vector<const FloatLayer*>& layers,
      const Block& block, int64_t k);
  // Has no copies if no block's columns are to have ranges of their own.
  ColumnPlan PlanOf(const RangeEntry* whole,
                    const std::vector<const FloatLayer*>& layers,
                    const std::vector<Block>& blocks) const;
  static std::vector<Block> WithCommonRange(std::vector<Block> blocks);
  void PlanBlocks(const std::string& prefix, const RangeEntry* whole,
                  const std::vector<const FloatLayer*>& layers,
                  std::vector<Block>* blocks);
  // Joins the blocks whose columns have ranges of their own, so that the copies
  // of a column are kept apart also where it is the only one of its block.
  void JoinOwnColumns(const std::string& prefix, std::vector<Block>* blocks);
  std::string AddConcat(const std::string& prefix, const std::string& name,
                        std::vector<std::string> tensors,
                        tensorflow::DataType type);
  std::string AddSelection(const std::string& prefix, const std::string& tensor,
                           const std::vector<int32_t>& columns);
  // `united` is what the block is united with if it is a whole input, or null.
  InputCodes AddBlock(const std::string& prefix, const Block& block,
                      United* united);
  InputCodes AddColumns(const std::string& prefix, const Block& block);

  GraphBuilder* const builder_;
  const RangeTable* const ranges_;
  const StaticInputOptions options_;
  absl::flat_hash_map<std::string, InputCodes> codes_;
  absl::flat_hash_map<std::string, std::shared_ptr<United>> united_;
};

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_STATIC_INPUTS_H_
