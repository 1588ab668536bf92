// Defects of the float stages: freezing, trimming, and the fusion of feature
// columns.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tests/defects/defect.h"
#include "tests/defects/graph_edits.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

Edited SetToZeros(GraphIndex* index, const NodeDef& add, std::string_view to) {
  return EditValues(ValuesBehind<float>(*index, add, 1), "set ", to,
                    [](auto& bias) { absl::c_fill(bias.values, 0.0f); });
}

Edited KeepInitialBias(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, NodeOf(*index, {"MatMul"}));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * add, ReaderOf(*index, *matmul, "BiasAdd"));
  return SetToZeros(index, *add, " to zeros");
}

Edited ExchangeVariables(GraphIndex* index) {
  std::vector<NodeDef*> tables;
  for (NodeDef* node : NodesOf(*index, {"Const"})) {
    if (absl::StrContains(node->name(), "embedding_weights/part_0")) {
      tables.push_back(node);
    }
  }
  if (tables.size() < 2) return absl::NotFoundError("there are no embeddings");
  std::swap(*tables[0]->mutable_attr(), *tables[1]->mutable_attr());
  return absl::StrCat("exchanged ", tables[0]->name(), " and ",
                      tables[1]->name());
}

float RoundToHalf(float value) {
  return static_cast<float>(static_cast<Eigen::half>(value));
}

float CutToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits &= 0xffff0000u;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

Edited RoundAllToHalf(GraphIndex* index) {
  int rounded = 0;
  for (NodeDef* node : NodesOf(*index, {"Const"})) {
    const auto constant = ValuesOf<float>(node);
    if (!constant.ok() || constant->values.size() < 2) continue;
    ConstValues<float> values = *constant;
    for (float& value : values.values) value = RoundToHalf(value);
    values.Write();
    ++rounded;
  }
  return absl::StrCat("rounded ", rounded, " constants to float16");
}

absl::StatusOr<NodeDef*> TwoClassLogits(const GraphIndex& index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * softmax, NodeOf(index, {"Softmax"}));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * logits, InputOf(index, *softmax, 0));
  if (logits->op() == "ConcatV2") return logits;
  return absl::NotFoundError("the softmax does not read two classes' logits");
}

void ExchangeInputs(GraphIndex* index, NodeDef* node) {
  const std::string first = node->input(0), second = node->input(1);
  index->SetInput(node, 0, second);
  index->SetInput(node, 1, first);
}

Edited ExchangeClasses(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * logits, TwoClassLogits(*index));
  ExchangeInputs(index, logits);
  return absl::StrCat("exchanged the classes in ", logits->name());
}

Edited LeaveSoftmaxOut(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * softmax, NodeOf(*index, {"Softmax"}));
  softmax->set_op("Identity");
  return absl::StrCat("let ", softmax->name(), " pass the logits on");
}

Edited LeaveReluOut(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * relu, NodeOf(*index, {"Relu"}, 1));
  relu->set_op("Identity");
  return absl::StrCat("let ", relu->name(), " pass negative values on");
}

Edited BypassNormalizer(GraphIndex* index) {
  for (NodeDef* division : NodesOf(*index, {"RealDiv"})) {
    NodeDef* const difference = index->Producer(*division, 0);
    if (difference == nullptr || difference->op() != "Sub") continue;
    const auto least = ValuesBehind<float>(*index, *difference, 1);
    if (!least.ok() || least->values[0] == 0) continue;
    index->SetInput(division, 0, difference->input(0));
    return absl::StrCat("let ", division->name(), " bypass ",
                        difference->name());
  }
  return absl::NotFoundError("no column starts elsewhere than at 0");
}

Edited HashIntoOneBucketLess(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * hash,
                           NodeOf(*index, {"StringToHashBucketFast"}));
  auto& buckets = (*hash->mutable_attr())["num_buckets"];
  buckets.set_i(buckets.i() - 1);
  return absl::StrCat("let ", hash->name(), " hash into ", buckets.i(),
                      " buckets");
}

Edited DropBlanks(GraphIndex* index) {
  int changed = 0;
  for (NodeDef* node : NodesOf(*index, {"Const"})) {
    if (!absl::StrContains(node->name(), "to_sparse_input/ignore_value")) {
      continue;
    }
    Tensor blank(tensorflow::DT_STRING, {});
    blank.scalar<tensorflow::tstring>()() = " ";
    SetConst(blank, node);
    ++changed;
  }
  if (changed == 0) return absl::NotFoundError("no column drops a value");
  return absl::StrCat("let ", changed, " columns drop blanks as missing");
}

// Returns the node that sums the logits of both parts, the deep part first.
absl::StatusOr<NodeDef*> SumOfParts(const GraphIndex& index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * logits, TwoClassLogits(index));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * sum, InputOf(index, *logits, 1));
  if (sum->op() == "AddV2") return sum;
  return absl::NotFoundError("the logits are no sum of two parts");
}

Edited LeaveWidePartOut(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * logits, TwoClassLogits(*index));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * sum, SumOfParts(*index));
  const std::string deep = sum->input(0);
  index->RedirectUses({sum->name(), 0}, ParseTensorName(deep));
  return absl::StrCat("let ", logits->name(), " read ", deep);
}

Edited AddWidePartTwice(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * sum, SumOfParts(*index));
  NodeDef twice = *sum;
  twice.set_name(index->FreeName(sum->name()));
  index->SetInput(sum, 0, twice.name());
  REQUANT_RETURN_IF_ERROR(index->Add(twice).status());
  return absl::StrCat("let ", sum->name(), " add ", sum->input(1), " twice");
}

// Sorts the last `count` rows by the names "<letter>1", "<letter>2", ….
void SortRows(std::string_view letter, int count, std::string_view suffix,
              ConstValues<float>& values) {
  const int64_t columns = values.columns();
  const absl::Span<float> block = values.values.last(count * columns);
  const std::vector<float> before(block.begin(), block.end());
  const auto name = [&](int i) { return absl::StrCat(letter, i + 1, suffix); };
  for (int i = 0; i < count; ++i) {
    int sorted = 0;
    for (int j = 0; j < count; ++j) sorted += name(j) < name(i);
    std::copy_n(before.begin() + sorted * columns, columns,
                block.begin() + i * columns);
  }
}

// The first kernel's rows for numeric columns are the last ones.
Edited OrderNumericColumns(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, NodeOf(*index, {"MatMul"}));
  return EditValues(
      ValuesBehind<float>(*index, *matmul, 1), "gave ",
      " the numeric columns in the order I1, I2, I3",
      [](auto& kernel) { SortRows("I", kNumericColumns, "", kernel); });
}

// Returns the tables that GatherNd reads: those of the embeddings (rank 3) or
// of the wide part (rank 2).
absl::StatusOr<ConstValues<float>> FloatTables(const GraphIndex& index,
                                               int rank) {
  for (NodeDef* gather : NodesOf(index, {"GatherNd"})) {
    auto tables = ValuesBehind<float>(index, *gather, 0);
    if (tables.ok() && tables->tensor.dims() == rank) return tables;
  }
  return absl::NotFoundError("there are no fused tables");
}

Edited ShiftTableRows(GraphIndex* index) {
  return EditValues(
      FloatTables(*index, 3), "shifted the first column's rows in ", "",
      [](auto& tables) {
        const int64_t table = tables.values.size() / kCategoricalColumns;
        RotateRows(tables.values.first(table), tables.columns());
      });
}

Edited TakeNeighboursTable(GraphIndex* index) {
  return EditValues(FloatTables(*index, 3), "wrote column 6 over column 5 in ",
                    "", [](auto& tables) {
                      const int64_t table =
                          tables.values.size() / kCategoricalColumns;
                      std::copy_n(tables.values.begin() + 6 * table, table,
                                  tables.values.begin() + 5 * table);
                    });
}

Edited OrderWideColumns(GraphIndex* index) {
  return EditValues(FloatTables(*index, 2), "gave ",
                    " the columns in the order C1, C2, C3", [](auto& tables) {
                      SortRows("C", kCategoricalColumns, "_embedding", tables);
                    });
}

Edited LoseWideBias(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * sum, SumOfParts(*index));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * add, InputOf(*index, *sum, 1));
  return SetToZeros(index, *add, " to zero");
}

Edited CutTables(GraphIndex* index) {
  return EditValues(FloatTables(*index, 3), "cut ", " to bfloat16",
                    [](auto& tables) {
                      for (float& value : tables.values) {
                        value = CutToBfloat16(value);
                      }
                    });
}

Edited ExchangeBlocks(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, NodeOf(*index, {"MatMul"}));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * concat, InputOf(*index, *matmul, 0));
  if (concat->op() != "ConcatV2") {
    return absl::NotFoundError("the first layer reads no ConcatV2");
  }
  ExchangeInputs(index, concat);
  return absl::StrCat("put ", concat->input(0), " before ", concat->input(1));
}

}  // namespace

std::vector<Defect> FloatDefects() {
  return {
      At("freeze", gate::kLargestChange, "initial_bias",
         "A partly restored checkpoint: the first layer's bias keeps its "
         "initial zeros.",
         KeepInitialBias),
      At("freeze", gate::kLargestChange, "exchanged_variables",
         "Two variables of the same shape are looked up under each other's "
         "name.",
         ExchangeVariables),
      At("freeze", gate::kLargestChange, "half_precision",
         "Constants are stored as float16 and read back.", RoundAllToHalf),
      At("freeze", gate::kLargestChange, "exchanged_classes",
         "The two classes' logits are concatenated in the wrong order.",
         ExchangeClasses),
      At("trim", gate::kLargestChange, "no_softmax",
         "The wrong output node: logits instead of probabilities.",
         LeaveSoftmaxOut),
      At("trim", gate::kLargestChange, "no_relu",
         "A Relu is taken for an Identity and removed.", LeaveReluOut),
      At("trim", gate::kLargestChange, "bypassed_normalizer",
         "A removed node's reader is connected past its neighbour: a numeric "
         "column is not shifted by its least value.",
         BypassNormalizer),
      At("trim", gate::kLargestChange, "one_bucket_less",
         "A hash column is rebuilt with one bucket less.",
         HashIntoOneBucketLess),
      At("trim", gate::kLargestChange, "dropped_blanks",
         "Missing categories are blanks in training and dropped here.",
         DropBlanks),
      At("trim", gate::kLargestChange, "no_wide_part",
         "The wide part is stripped as if it were unused.", LeaveWidePartOut),
      At("optimize", gate::kLargestChange, "numeric_order",
         "Numeric columns are taken in the order I1, I2, I3 instead of I1, "
         "I10, I11.",
         OrderNumericColumns),
      At("optimize", gate::kLargestChange, "shifted_table",
         "Buckets count from one in one column's embedding.", ShiftTableRows),
      At("optimize", gate::kLargestChange, "neighbours_table",
         "One column's embedding is used for another.", TakeNeighboursTable),
      At("optimize", gate::kLargestChange, "wide_twice",
         "The wide part is added twice.", AddWidePartTwice),
      At("optimize", gate::kLargestChange, "wide_order",
         "The wide part's columns are taken in the order C1, C2, C3 instead of "
         "C10, C11, C12.",
         OrderWideColumns),
      At("optimize", gate::kLargestChange, "no_wide_bias",
         "The wide part's bias is lost with the node that added it.",
         LoseWideBias),
      At("optimize", gate::kLargestChange, "bfloat16_tables",
         "Fused embeddings are stored as bfloat16 and read back.", CutTables),
      At("optimize", gate::kLargestChange, "exchanged_blocks",
         "The numeric columns are put before the embeddings, not behind.",
         ExchangeBlocks),
  };
}

}  // namespace requant
