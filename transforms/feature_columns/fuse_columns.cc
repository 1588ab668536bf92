#include "transforms/feature_columns/fuse_columns.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

// Lookups of different columns in tables of one size, by column.
struct Block {
  std::map<int, const TableLookup*> lookups;
  // The values, once built: [batch * columns, width].
  std::string gathered;

  const TableLookup& any() const { return *lookups.begin()->second; }
  int columns() const { return lookups.size(); }
  bool Takes(const TableLookup& lookup) const {
    return any().rows == lookup.rows && any().width == lookup.width &&
           any().type == lookup.type && lookups.count(lookup.column) == 0;
  }
  // How many of its columns come before `column`.
  int Position(int column) const {
    return std::distance(lookups.begin(), lookups.find(column));
  }
};

// Columns first ... last of a matrix with `width` columns.
struct Piece {
  std::string matrix;
  tensorflow::DataType type;
  int64_t width;
  int64_t first;
  int64_t last;
};

class Fuser {
 public:
  Fuser(const FeatureColumns& columns, FeatureColumnRewriter* rewriter)
      : columns_(columns), rewriter_(*rewriter) {
    for (const TableLookup& lookup : columns.lookups) {
      for (const NodeDef* alias : lookup.aliases) lookup_of_[alias] = &lookup;
    }
    for (const NumericRead& read : columns.numeric_reads) {
      read_of_[{read.reader, read.input}] = &read;
    }
  }

  absl::Status Fuse() {
    REQUANT_RETURN_IF_ERROR(AddPlaceholders());
    for (NodeDef* concat : columns_.concats) {
      REQUANT_RETURN_IF_ERROR(FuseConcat(concat));
    }
    for (NodeDef* sum : columns_.sums) {
      REQUANT_RETURN_IF_ERROR(FuseSum(sum));
    }
    for (const NumericRead& read : columns_.numeric_reads) {
      REQUANT_RETURN_IF_ERROR(FuseRead(read));
    }
    for (const TableLookup& lookup : columns_.lookups) {
      REQUANT_RETURN_IF_ERROR(FuseAlone(lookup));
    }
    return absl::OkStatus();
  }

  std::vector<StackedTable> stacked() && { return std::move(stacked_); }

 private:
  absl::Status AddPlaceholders() {
    for (const NumericColumn& column : columns_.numeric) {
      numeric_first_.push_back(numbers_);
      numbers_ += column.width;
    }
    if (numbers_ > 0) {
      REQUANT_RETURN_IF_ERROR(rewriter_
                                  .AddPlaceholder(kNumericPlaceholder,
                                                  tensorflow::DT_FLOAT,
                                                  {-1, numbers_})
                                  .status());
    }
    if (columns_.categorical.empty()) return absl::OkStatus();
    return rewriter_
        .AddPlaceholder(kCategoricalPlaceholder, tensorflow::DT_INT64, {-1, 2})
        .status();
  }

  const TableLookup* LookupAt(const NodeDef& node, int input) const {
    const NodeOutput source = TensorSource(rewriter_.index(), node, input);
    const auto found = lookup_of_.find(source.node);
    return found == lookup_of_.end() || source.port != 0 ? nullptr
                                                         : found->second;
  }

  // The lookups among a node's first `inputs` inputs, sorted into blocks; each
  // lookup once.
  std::vector<Block> BlocksOf(const NodeDef& node, int inputs) const {
    std::vector<Block> blocks;
    absl::flat_hash_set<const TableLookup*> seen;
    for (int i = 0; i < inputs; ++i) {
      const TableLookup* lookup = LookupAt(node, i);
      if (lookup == nullptr || !seen.insert(lookup).second) continue;
      auto block =
          std::find_if(blocks.begin(), blocks.end(),
                       [&](const Block& b) { return b.Takes(*lookup); });
      if (block == blocks.end()) block = blocks.insert(block, Block());
      block->lookups[lookup->column] = lookup;
    }
    return blocks;
  }

  // All tables of the block, one behind the other.
  absl::StatusOr<std::string> AddTable(const Block& block,
                                       const std::string& base) {
    const TableLookup& any = block.any();
    tensorflow::TensorShape shape({block.columns(), any.rows});
    // A gather of numbers is cheaper than one of rows with one number.
    if (any.width != 1) shape.AddDim(any.width);
    Tensor stacked(any.type, shape);
    char* to = const_cast<char*>(stacked.tensor_data().data());
    for (const auto& [column, lookup] : block.lookups) {
      REQUANT_ASSIGN_OR_RETURN(const Tensor table, ConstValue(*lookup->table));
      const auto from = table.tensor_data();
      std::memcpy(to, from.data(), from.size());
      to += from.size();
    }
    REQUANT_ASSIGN_OR_RETURN(std::string name,
                             rewriter_.AddConst(base + "/tables", stacked));
    stacked_.push_back({name, block.columns(), any.rows, any.width});
    return name;
  }

  // The pairs that belong to the block, their columns counted from 0.
  absl::StatusOr<std::string> AddPairs(const Block& block,
                                       const std::string& base) {
    const int all = columns_.categorical.size();
    if (block.columns() == all) return std::string(kCategoricalPlaceholder);
    REQUANT_ASSIGN_OR_RETURN(
        const std::string pairs,
        rewriter_.AddReshape(base + "/pairs", kCategoricalPlaceholder,
                             {-1, all, 2}, tensorflow::DT_INT64));
    std::vector<int32_t> chosen;
    Tensor offsets(tensorflow::DT_INT64,
                   tensorflow::TensorShape({block.columns(), 2}));
    offsets.flat<int64_t>().setZero();
    for (const auto& [column, lookup] : block.lookups) {
      const int position = chosen.size();
      offsets.matrix<int64_t>()(position, 0) = column - position;
      chosen.push_back(column);
    }
    REQUANT_ASSIGN_OR_RETURN(const std::string chosen_name,
                             rewriter_.AddIntegers(base + "/columns", chosen));
    REQUANT_ASSIGN_OR_RETURN(const std::string axis,
                             rewriter_.AddScalar(base + "/columns/axis", 1));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string own,
        rewriter_.AddNode(base + "/own_pairs", "GatherV2",
                          {pairs, chosen_name, axis},
                          {{"Tparams", tensorflow::DT_INT64},
                           {"Tindices", tensorflow::DT_INT32},
                           {"Taxis", tensorflow::DT_INT32}}));
    REQUANT_ASSIGN_OR_RETURN(const std::string offsets_name,
                             rewriter_.AddConst(base + "/offsets", offsets));
    return rewriter_.AddNode(base + "/table_pairs", "Sub", {own, offsets_name},
                             {{"T", tensorflow::DT_INT64}});
  }

  absl::Status Gather(Block* block, const std::string& base) {
    REQUANT_ASSIGN_OR_RETURN(const std::string table, AddTable(*block, base));
    REQUANT_ASSIGN_OR_RETURN(const std::string pairs, AddPairs(*block, base));
    REQUANT_ASSIGN_OR_RETURN(
        block->gathered,
        rewriter_.AddNode(base + "/gather", "GatherNd", {table, pairs},
                          {{"Tparams", block->any().type},
                           {"Tindices", tensorflow::DT_INT64}}));
    return absl::OkStatus();
  }

  // [batch, columns * width].
  absl::StatusOr<std::string> AddMatrix(Block* block, const std::string& base) {
    REQUANT_RETURN_IF_ERROR(Gather(block, base));
    const int32_t width = block->columns() * block->any().width;
    return rewriter_.AddReshape(base + "/rows", block->gathered, {-1, width},
                                block->any().type);
  }

  absl::StatusOr<std::string> AddPiece(const Piece& piece,
                                       const std::string& base) {
    if (piece.first == 0 && piece.last == piece.width) return piece.matrix;
    REQUANT_ASSIGN_OR_RETURN(
        const std::string begin,
        rewriter_.AddIntegers(base + "/begin",
                              {0, static_cast<int32_t>(piece.first)}));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string size,
        rewriter_.AddIntegers(
            base + "/size",
            {-1, static_cast<int32_t>(piece.last - piece.first)}));
    return rewriter_.AddNode(
        base, "Slice", {piece.matrix, begin, size},
        {{"T", piece.type}, {"Index", tensorflow::DT_INT32}});
  }

  Piece NumericPiece(int column) const {
    const int64_t first = numeric_first_[column];
    return {kNumericPlaceholder, tensorflow::DT_FLOAT, numbers_, first,
            first + columns_.numeric[column].width};
  }

  // What a concat's input is a piece of; nothing if it is no column.
  std::optional<Piece> PieceAt(const NodeDef& concat, int input,
                               const std::vector<Block>& blocks,
                               const std::vector<std::string>& matrices) const {
    const auto read = read_of_.find({&concat, input});
    if (read != read_of_.end()) return NumericPiece(read->second->column);
    const TableLookup* lookup = LookupAt(concat, input);
    for (size_t i = 0; i < blocks.size() && lookup != nullptr; ++i) {
      const auto found = blocks[i].lookups.find(lookup->column);
      if (found == blocks[i].lookups.end() || found->second != lookup) continue;
      const int64_t first = blocks[i].Position(lookup->column) * lookup->width;
      return Piece{matrices[i], lookup->type,
                   blocks[i].columns() * lookup->width, first,
                   first + lookup->width};
    }
    return std::nullopt;
  }

  absl::Status FuseConcat(NodeDef* concat) {
    const int inputs = concat->input_size() - 1;
    const std::string base = concat->name() + "/fused_columns";
    std::vector<Block> blocks = BlocksOf(*concat, inputs);
    std::vector<std::string> matrices;
    for (Block& block : blocks) {
      REQUANT_ASSIGN_OR_RETURN(std::string matrix, AddMatrix(&block, base));
      matrices.push_back(std::move(matrix));
    }
    std::vector<std::string> joined;
    std::optional<Piece> open;
    const auto close = [&]() -> absl::Status {
      if (!open.has_value()) return absl::OkStatus();
      REQUANT_ASSIGN_OR_RETURN(std::string piece,
                               AddPiece(*open, base + "/slice"));
      joined.push_back(std::move(piece));
      open.reset();
      return absl::OkStatus();
    };
    for (int i = 0; i < inputs; ++i) {
      const std::optional<Piece> piece = PieceAt(*concat, i, blocks, matrices);
      if (piece.has_value() && open.has_value() &&
          open->matrix == piece->matrix && open->last == piece->first) {
        open->last = piece->last;
        continue;
      }
      REQUANT_RETURN_IF_ERROR(close());
      if (piece.has_value()) {
        open = piece;
      } else {
        joined.push_back(concat->input(i));
      }
    }
    REQUANT_RETURN_IF_ERROR(close());
    return SetJoined(concat, std::move(joined), concat->input(inputs));
  }

  absl::Status SetJoined(NodeDef* concat, std::vector<std::string> joined,
                         std::string axis) {
    const std::vector<std::string> before = InputNodes(*concat);
    if (joined.size() == 1) {
      concat->set_op("Identity");
      concat->mutable_attr()->erase("N");
      concat->mutable_attr()->erase("Tidx");
    } else {
      (*concat->mutable_attr())["N"].set_i(joined.size());
      joined.push_back(std::move(axis));
    }
    rewriter_.index().SetInputs(concat, std::move(joined));
    return RemoveAllUnread(before);
  }

  // The sum over the block's columns, [batch, width].
  absl::StatusOr<std::vector<std::string>> SumInputs(Block* block,
                                                     const std::string& base) {
    REQUANT_RETURN_IF_ERROR(Gather(block, base));
    REQUANT_ASSIGN_OR_RETURN(
        std::string rows,
        rewriter_.AddReshape(
            base + "/rows", block->gathered,
            {-1, block->columns(), static_cast<int32_t>(block->any().width)},
            block->any().type));
    REQUANT_ASSIGN_OR_RETURN(std::string axis,
                             rewriter_.AddScalar(base + "/axis", 1));
    return std::vector<std::string>{std::move(rows), std::move(axis)};
  }

  absl::Status FuseSum(NodeDef* sum) {
    const std::vector<std::string> before = InputNodes(*sum);
    const std::string base = sum->name() + "/fused_columns";
    std::vector<Block> blocks = BlocksOf(*sum, sum->input_size());
    // A lookup that is added once more stays by itself.
    std::vector<std::string> added;
    absl::flat_hash_set<const TableLookup*> seen;
    for (int i = 0; i < sum->input_size(); ++i) {
      const TableLookup* lookup = LookupAt(*sum, i);
      if (lookup == nullptr || !seen.insert(lookup).second) {
        added.push_back(sum->input(i));
      }
    }
    if (added.empty() && blocks.size() == 1) {
      REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                               SumInputs(&blocks[0], base));
      rewriter_.index().SetInputs(sum, std::move(inputs));
      sum->set_op("Sum");
      sum->mutable_attr()->erase("N");
      (*sum->mutable_attr())["Tidx"].set_type(tensorflow::DT_INT32);
      return RemoveAllUnread(before);
    }
    for (Block& block : blocks) {
      REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                               SumInputs(&block, base));
      REQUANT_ASSIGN_OR_RETURN(
          std::string part,
          rewriter_.AddNode(
              base + "/sum", "Sum", std::move(inputs),
              {{"T", block.any().type}, {"Tidx", tensorflow::DT_INT32}}));
      added.push_back(std::move(part));
    }
    (*sum->mutable_attr())["N"].set_i(added.size());
    rewriter_.index().SetInputs(sum, std::move(added));
    return RemoveAllUnread(before);
  }

  // A numeric column that is not read by a concat.
  absl::Status FuseRead(const NumericRead& read) {
    if (std::find(columns_.concats.begin(), columns_.concats.end(),
                  read.reader) != columns_.concats.end()) {
      return absl::OkStatus();
    }
    const std::vector<std::string> before = InputNodes(*read.reader);
    REQUANT_ASSIGN_OR_RETURN(
        std::string piece,
        AddPiece(NumericPiece(read.column), read.reader->name() + "/number"));
    rewriter_.index().SetInput(read.reader, read.input, std::move(piece));
    return RemoveAllUnread(before);
  }

  // A lookup that is still read.
  absl::Status FuseAlone(const TableLookup& lookup) {
    const bool is_read =
        std::any_of(lookup.aliases.begin(), lookup.aliases.end(),
                    [&](const NodeDef* alias) {
                      return rewriter_.index().Find(alias->name()) != nullptr;
                    });
    if (!is_read) return absl::OkStatus();
    Block block;
    block.lookups[lookup.column] = &lookup;
    REQUANT_ASSIGN_OR_RETURN(
        const std::string matrix,
        AddMatrix(&block, lookup.root->name() + "/fused_column"));
    return rewriter_.Replace(lookup, matrix);
  }

  static std::vector<std::string> InputNodes(const NodeDef& node) {
    std::vector<std::string> names;
    for (const std::string& input : node.input()) {
      names.emplace_back(ParseTensorName(input).node);
    }
    return names;
  }

  absl::Status RemoveAllUnread(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) {
      REQUANT_RETURN_IF_ERROR(rewriter_.RemoveUnread(node));
    }
    return absl::OkStatus();
  }

  const FeatureColumns& columns_;
  FeatureColumnRewriter& rewriter_;
  absl::flat_hash_map<const NodeDef*, const TableLookup*> lookup_of_;
  std::map<std::pair<const NodeDef*, int>, const NumericRead*> read_of_;
  // Where each numeric column begins in the placeholder.
  std::vector<int64_t> numeric_first_;
  int64_t numbers_ = 0;
  std::vector<StackedTable> stacked_;
};

}  // namespace

absl::StatusOr<std::vector<StackedTable>> FuseColumns(
    const FeatureColumns& columns, FeatureColumnRewriter* rewriter) {
  Fuser fuser(columns, rewriter);
  REQUANT_RETURN_IF_ERROR(fuser.Fuse());
  return std::move(fuser).stacked();
}

}  // namespace requant
