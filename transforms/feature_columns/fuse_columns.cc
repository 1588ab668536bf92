#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/message_text.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/feature_columns/feature_columns.h"
#include "transforms/layers/graph_builder.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// Lookups of different columns in tables of the same size, by column.
struct Block {
  std::map<int, const TableLookup*> lookups;
  // The gathered values, [batch * columns, width], once they are built.
  std::string gathered;

  const TableLookup& any() const { return *lookups.begin()->second; }
  int columns() const { return lookups.size(); }
  bool Takes(const TableLookup& lookup) const {
    return any().rows == lookup.rows && any().width == lookup.width &&
           any().type == lookup.type && lookups.count(lookup.column) == 0;
  }
  // Returns how many of the block's columns come before `column`.
  int Position(int column) const {
    return std::distance(lookups.begin(), lookups.find(column));
  }
};

// The columns `first` to `last` of a matrix with `width` columns.
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
    AddPlaceholders();
    for (NodeDef* concat : columns_.concats) {
      REQUANT_RETURN_IF_ERROR(FuseConcat(concat));
    }
    for (NodeDef* sum : columns_.sums) {
      REQUANT_RETURN_IF_ERROR(FuseSum(sum));
    }
    for (const NumericRead& read : columns_.numeric_reads) {
      FuseRead(read);
    }
    for (const TableLookup& lookup : columns_.lookups) {
      REQUANT_RETURN_IF_ERROR(FuseAlone(lookup));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> notes() && { return std::move(notes_); }

 private:
  void AddPlaceholders() {
    for (const NumericColumn& column : columns_.numeric) {
      numeric_first_.push_back(numbers_);
      numbers_ += column.width;
    }
    if (numbers_ > 0) {
      AddPlaceholder(kNumericPlaceholder, tensorflow::DT_FLOAT, numbers_);
    }
    if (columns_.categorical.empty()) return;
    AddPlaceholder(kCategoricalPlaceholder, tensorflow::DT_INT64, 2);
  }

  void AddPlaceholder(const char* name, DataType type, int64_t width) {
    NodeDef node = MakeNode(name, "Placeholder", {}, {{"dtype", type}});
    auto* shape = (*node.mutable_attr())["shape"].mutable_shape();
    for (const int64_t size : {int64_t{-1}, width}) {
      shape->add_dim()->set_size(size);
    }
    rewriter_.Add(std::move(node));
  }

  const TableLookup* LookupAt(const NodeDef& node, int input) const {
    const NodeOutput source = TensorSource(rewriter_.index(), node, input);
    const auto found = lookup_of_.find(source.node);
    return found == lookup_of_.end() || source.port != 0 ? nullptr
                                                         : found->second;
  }

  // Returns the lookups among a node's first `inputs` inputs, sorted into
  // blocks, without repetition.
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

  // Adds a constant that holds all tables of the block in sequence.
  absl::StatusOr<std::string> AddTable(const Block& block,
                                       const std::string& base) {
    const TableLookup& any = block.any();
    tensorflow::TensorShape shape({block.columns(), any.rows});
    // Gathering single numbers is cheaper than gathering rows of one number.
    if (any.width != 1) shape.AddDim(any.width);
    Tensor stacked(any.type, shape);
    char* to = const_cast<char*>(stacked.tensor_data().data());
    for (const auto& [column, lookup] : block.lookups) {
      REQUANT_ASSIGN_OR_RETURN(const Tensor table, ConstValue(*lookup->table));
      const auto from = table.tensor_data();
      std::memcpy(to, from.data(), from.size());
      to += from.size();
    }
    std::string name = rewriter_.AddConst(base + "/tables", stacked);
    notes_.push_back(
        absl::StrCat("stacks ", CountText(block.columns(), "table"), " of [",
                     any.rows, ",", any.width, "] in \"", name, "\""));
    return name;
  }

  // Adds the pairs that belong to the block, with columns counted from 0.
  std::string AddPairs(const Block& block, const std::string& base) {
    const int all = columns_.categorical.size();
    if (block.columns() == all) return std::string(kCategoricalPlaceholder);
    const std::string pairs =
        rewriter_.AddReshape(base + "/pairs", kCategoricalPlaceholder,
                             {-1, all, 2}, tensorflow::DT_INT64);
    std::vector<int32_t> chosen;
    Tensor offsets(tensorflow::DT_INT64,
                   tensorflow::TensorShape({block.columns(), 2}));
    offsets.flat<int64_t>().setZero();
    for (const auto& [column, lookup] : block.lookups) {
      const int position = chosen.size();
      offsets.matrix<int64_t>()(position, 0) = column - position;
      chosen.push_back(column);
    }
    const std::string chosen_name =
        rewriter_.AddIntegers(base + "/columns", chosen);
    const std::string axis =
        rewriter_.AddConst(base + "/columns/axis", Tensor(int32_t{1}));
    const std::string own = rewriter_.AddNode(
        base + "/own_pairs", "GatherV2", {pairs, chosen_name, axis},
        {{"Tparams", tensorflow::DT_INT64},
         {"Tindices", tensorflow::DT_INT32},
         {"Taxis", tensorflow::DT_INT32}});
    const std::string offsets_name =
        rewriter_.AddConst(base + "/offsets", offsets);
    return rewriter_.AddNode(base + "/table_pairs", "Sub", {own, offsets_name},
                             {{"T", tensorflow::DT_INT64}});
  }

  absl::Status Gather(Block* block, const std::string& base) {
    REQUANT_ASSIGN_OR_RETURN(const std::string table, AddTable(*block, base));
    const std::string pairs = AddPairs(*block, base);
    block->gathered = rewriter_.AddNode(
        base + "/gather", "GatherNd", {table, pairs},
        {{"Tparams", block->any().type}, {"Tindices", tensorflow::DT_INT64}});
    return absl::OkStatus();
  }

  // Adds a matrix [batch, columns * width].
  absl::StatusOr<std::string> AddMatrix(Block* block, const std::string& base) {
    REQUANT_RETURN_IF_ERROR(Gather(block, base));
    const int32_t width = block->columns() * block->any().width;
    return rewriter_.AddReshape(base + "/rows", block->gathered, {-1, width},
                                block->any().type);
  }

  std::string AddPiece(const Piece& piece, const std::string& base) {
    if (piece.first == 0 && piece.last == piece.width) return piece.matrix;
    const std::string begin = rewriter_.AddIntegers(
        base + "/begin", {0, static_cast<int32_t>(piece.first)});
    const std::string size = rewriter_.AddIntegers(
        base + "/size", {-1, static_cast<int32_t>(piece.last - piece.first)});
    return rewriter_.AddNode(
        base, "Slice", {piece.matrix, begin, size},
        {{"T", piece.type}, {"Index", tensorflow::DT_INT32}});
  }

  Piece NumericPiece(int column) const {
    const int64_t first = numeric_first_[column];
    return {kNumericPlaceholder, tensorflow::DT_FLOAT, numbers_, first,
            first + columns_.numeric[column].width};
  }

  // Returns the piece that a concat's input is, or nullopt if it is no column.
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
    const auto close = [&] {
      if (!open.has_value()) return;
      joined.push_back(AddPiece(*open, base + "/slice"));
      open.reset();
    };
    for (int i = 0; i < inputs; ++i) {
      const std::optional<Piece> piece = PieceAt(*concat, i, blocks, matrices);
      if (piece.has_value() && open.has_value() &&
          open->matrix == piece->matrix && open->last == piece->first) {
        open->last = piece->last;
        continue;
      }
      close();
      if (piece.has_value()) {
        open = piece;
      } else {
        joined.push_back(concat->input(i));
      }
    }
    close();
    SetJoined(concat, std::move(joined), concat->input(inputs));
    return absl::OkStatus();
  }

  void SetJoined(NodeDef* concat, std::vector<std::string> joined,
                 std::string axis) {
    const std::vector<std::string> before = ProducersOf(*concat);
    if (joined.size() == 1) {
      concat->set_op("Identity");
      concat->mutable_attr()->erase("N");
      concat->mutable_attr()->erase("Tidx");
    } else {
      (*concat->mutable_attr())["N"].set_i(joined.size());
      joined.push_back(std::move(axis));
    }
    rewriter_.index().SetInputs(concat, std::move(joined));
    rewriter_.RemoveUnreadFeeders(before);
  }

  // Returns the inputs of the sum over the block's columns, [batch, width].
  absl::StatusOr<std::vector<std::string>> SumInputs(Block* block,
                                                     const std::string& base) {
    REQUANT_RETURN_IF_ERROR(Gather(block, base));
    std::string rows = rewriter_.AddReshape(
        base + "/rows", block->gathered,
        {-1, block->columns(), static_cast<int32_t>(block->any().width)},
        block->any().type);
    std::string axis = rewriter_.AddConst(base + "/axis", Tensor(int32_t{1}));
    return std::vector<std::string>{rows, axis};
  }

  absl::Status FuseSum(NodeDef* sum) {
    const std::vector<std::string> before = ProducersOf(*sum);
    const std::string base = sum->name() + "/fused_columns";
    std::vector<Block> blocks = BlocksOf(*sum, sum->input_size());
    // A lookup that occurs a second time is added separately.
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
      rewriter_.RemoveUnreadFeeders(before);
      return absl::OkStatus();
    }
    for (Block& block : blocks) {
      REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                               SumInputs(&block, base));
      added.push_back(rewriter_.AddNode(
          base + "/sum", "Sum", inputs,
          {{"T", block.any().type}, {"Tidx", tensorflow::DT_INT32}}));
    }
    (*sum->mutable_attr())["N"].set_i(added.size());
    rewriter_.index().SetInputs(sum, std::move(added));
    rewriter_.RemoveUnreadFeeders(before);
    return absl::OkStatus();
  }

  // Fuses a numeric column that no concat reads.
  void FuseRead(const NumericRead& read) {
    if (std::find(columns_.concats.begin(), columns_.concats.end(),
                  read.reader) != columns_.concats.end()) {
      return;
    }
    const std::vector<std::string> before = ProducersOf(*read.reader);
    rewriter_.index().SetInput(
        read.reader, read.input,
        AddPiece(NumericPiece(read.column), read.reader->name() + "/number"));
    rewriter_.RemoveUnreadFeeders(before);
  }

  // Fuses a lookup that is still being read.
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
    rewriter_.Replace(lookup, matrix);
    return absl::OkStatus();
  }

  const FeatureColumns& columns_;
  FeatureColumnRewriter& rewriter_;
  absl::flat_hash_map<const NodeDef*, const TableLookup*> lookup_of_;
  std::map<std::pair<const NodeDef*, int>, const NumericRead*> read_of_;
  // The offset of each numeric column in the placeholder.
  std::vector<int64_t> numeric_first_;
  int64_t numbers_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

FeatureColumnRewriter::FeatureColumnRewriter(
    GraphIndex* index, const std::vector<std::string>& outputs)
    : GraphBuilder(index, outputs, [](const NodeDef&) { return true; }) {}

std::string FeatureColumnRewriter::AddIntegers(
    const std::string& name, const std::vector<int32_t>& values) {
  Tensor tensor(tensorflow::DT_INT32,
                tensorflow::TensorShape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
  return AddConst(name, tensor);
}

std::string FeatureColumnRewriter::AddReshape(const std::string& name,
                                              const std::string& tensor,
                                              const std::vector<int32_t>& shape,
                                              DataType type) {
  return AddNode(name, "Reshape", {tensor, AddIntegers(name + "/shape", shape)},
                 {{"T", type}, {"Tshape", tensorflow::DT_INT32}});
}

void FeatureColumnRewriter::Replace(const TableLookup& lookup,
                                    const std::string& tensor) {
  std::vector<std::string> names;
  for (const NodeDef* alias : lookup.aliases) names.push_back(alias->name());
  std::vector<std::string> unread;
  const TensorName to = ParseTensorName(tensor);
  for (const std::string& name : names) {
    NodeDef* alias = index().Find(name);
    if (alias == nullptr) continue;
    index().RedirectUses({name, 0}, to);
    index().RedirectUses({name, kControlPort}, {to.node, kControlPort});
    if (IsOutput(name)) {
      for (std::string& producer : ProducersOf(*alias)) {
        unread.push_back(std::move(producer));
      }
      index().SetInputs(alias, {tensor});
      alias->set_op("Identity");
      alias->clear_attr();
      (*alias->mutable_attr())["T"].set_type(lookup.type);
    }
  }
  // The last aliases come first, because they read the ones before them.
  unread.insert(unread.begin(), names.rbegin(), names.rend());
  for (const std::string& name : unread) {
    RemoveUnread(name);
  }
}

absl::StatusOr<std::vector<std::string>> FuseColumns(
    const FeatureColumns& columns, FeatureColumnRewriter* rewriter) {
  Fuser fuser(columns, rewriter);
  REQUANT_RETURN_IF_ERROR(fuser.Fuse());
  return std::move(fuser).notes();
}

}  // namespace requant
