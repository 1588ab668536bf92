#include "transforms/eightbit/static_inputs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/eightbit/eightbit_nodes.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_INT32;
using tensorflow::DT_QUINT8;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// Columns with ranges of their own are scaled as the graph runs, which costs
// time in proportion to their number.
constexpr int64_t kMostOwnColumns = 256;

// Ranges per column must lower the expected squared error to this share.
constexpr double kWorthwhile = 0.5;

// Blocks at least as wide as this share of the widest may get one range.
constexpr double kAlikeWidth = 0.5;

// How many columns may be added, as a share of the existing ones.
constexpr double kMostAddedShare = 0.25;

// On the embedded Wide & Deep model the mean change of the output is .0019 with
// the least number of copies, .0012 with four of each and .0012 with eight.
constexpr int kLeastCopies = 4;

// A column's own range is wider than what calibration saw, by this share of its
// width: the distribution of a model's input is unknown, and a few more codes
// cost little where columns can be repeated. If the extremes are more
// deviations away than those of an exponential distribution, or if the value
// never changed, the next record may well lie further out.
constexpr double kMargin = 0.25;
constexpr double kWideMargin = 1;
constexpr double kManyDeviations = 10;

// Columns at least as wide as this share of the block's width are assumed to be
// similar: a value that one of them reached, the others may reach too.
constexpr double kSimilarWidth = 0.25;

// No column's width is less than this share of the block's.
constexpr double kLeastRelativeWidth = 1e-6;

std::string AsInput(const std::string& tensor) {
  const TensorName name = ParseTensorName(tensor);
  return FormatTensorName(name.node, name.port);
}

std::string FullName(const NodeOutput& output) {
  return absl::StrCat(output.node->name(), ":", output.port);
}

Tensor RowOf(const std::vector<float>& values) {
  Tensor row(DT_FLOAT, {1, static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), row.flat<float>().data());
  return row;
}

// Fails if the table belongs to another model with the same names.
absl::Status CheckWidth(const std::string& tensor, const RangeEntry* entry,
                        int64_t width) {
  if (entry == nullptr || entry->channel_mins.empty() ||
      static_cast<int64_t>(entry->channel_mins.size()) == width) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", tensor, "\" had ", entry->channel_mins.size(),
                   " columns when it was calibrated and has ", width,
                   " in this graph; is it the range table of another model?"));
}

}  // namespace

// Columns of an input that are quantized together.
struct StaticInputs::Block {
  std::string tensor;
  // The first of the columns, which are neighbours unless `sources` has them.
  int64_t first = 0;
  int64_t width = 0;
  std::vector<int> sources;
  // Set for a block that is already quantized; the rest is unused then.
  const InputCodes* codes = nullptr;
  // The range of all columns; includes zero.
  double min = 0, max = 0;
  // The range of each column, if the ranges are known and not too many.
  std::vector<double> column_mins, column_maxs;
  // One number for each column, once columns are to have these ranges.
  std::vector<int> copies;

  bool own_columns() const { return !copies.empty() && !column_mins.empty(); }
  int source(int64_t k) const {
    return sources.empty() ? static_cast<int>(first + k) : sources[k];
  }
  double step() const { return (max - min) / 255; }
  double column_step(int64_t k) const {
    return (column_maxs[k] - column_mins[k]) / 255;
  }
};

StaticInputs::StaticInputs(GraphBuilder* builder, const RangeTable* ranges,
                           const StaticInputOptions& options)
    : builder_(builder), ranges_(ranges), options_(options) {}

void StaticInputs::AddKnownCodes(const std::string& tensor, InputCodes codes) {
  codes_.insert_or_assign(tensor, std::move(codes));
}

absl::Status StaticInputs::Unite(const std::vector<std::string>& tensors,
                                 const std::vector<const FloatLayer*>& layers) {
  auto united = std::make_shared<United>();
  united->tensors = tensors;
  united->layers = layers;
  for (const std::string& tensor : tensors) {
    REQUANT_ASSIGN_OR_RETURN(const RangeEntry* entry, EntryOf(tensor));
    REQUANT_RETURN_IF_ERROR(
        CheckWidth(tensor, entry, layers.front()->weights.dim_size(0)));
    if (tensor == tensors.front()) {
      united->entry = *entry;
    } else {
      united->entry.Merge(*entry);
    }
  }
  for (const std::string& tensor : tensors) united_[tensor] = united;
  return absl::OkStatus();
}

StaticInputs::United* StaticInputs::UnitedWith(
    const std::string& tensor) const {
  const auto found = united_.find(tensor);
  return found == united_.end() ? nullptr : found->second.get();
}

absl::StatusOr<const RangeEntry*> StaticInputs::EntryOf(
    const std::string& tensor) const {
  if (const United* united = UnitedWith(tensor)) return &united->entry;
  const TensorName name = ParseTensorName(tensor);
  const RangeEntry* entry = ranges_->Find(name.node, name.port);
  if (entry != nullptr && entry->histogram.has_value()) return entry;
  return absl::NotFoundError(
      absl::StrCat("the range table has no values of \"", tensor,
                   "\"; calibrate this very graph, with the same outputs, by "
                   "\"requant calibrate\""));
}

std::vector<StaticInputs::Block> StaticInputs::OneBlock(
    const std::string& tensor, int64_t columns) {
  std::vector<Block> blocks(1);
  blocks[0].tensor = tensor;
  blocks[0].width = columns;
  return blocks;
}

std::vector<StaticInputs::Block> StaticInputs::FindBlocks(
    const std::string& tensor, int64_t columns) const {
  const GraphIndex& index = builder_->index();
  std::vector<Block> blocks;
  const NodeDef* node = index.Find(ParseTensorName(tensor).node);
  if (node != nullptr && ConcatenatesColumns(index, *node)) {
    int64_t first = 0;
    bool all_known = true;
    for (int i = 0; i + 1 < DataInputs(*node); ++i) {
      const NodeOutput source = TensorSource(index, *node, i);
      if (source.node == nullptr) {
        all_known = false;
        break;
      }
      Block block;
      block.tensor = FullName(source);
      block.first = first;
      const auto codes = codes_.find(block.tensor);
      if (codes != codes_.end()) {
        block.codes = &codes->second;
        block.width = codes->second.width;
      } else {
        // The table has the tensor under the name of the concat's input.
        const TensorName name = ParseTensorName(node->input(i));
        block.tensor = absl::StrCat(name.node, ":", name.port);
        const RangeEntry* entry = ranges_->Find(name.node, name.port);
        block.width = entry == nullptr ? 0 : entry->channel_mins.size();
      }
      all_known = all_known && block.width > 0;
      first += block.width;
      blocks.push_back(std::move(block));
    }
    if (all_known && first == columns) return blocks;
  }
  return OneBlock(tensor, columns);
}

absl::StatusOr<bool> StaticInputs::AddTableRange(const std::string& tensor,
                                                 Block* block) const {
  const NodeDef* table = GatheredTable(builder_->index(), tensor);
  if (table == nullptr) return false;
  REQUANT_ASSIGN_OR_RETURN(const Tensor values, ConstValue(*table));
  if (values.dtype() != DT_FLOAT || values.NumElements() == 0) return false;
  const auto flat = values.flat<float>();
  for (int64_t i = 0; i < flat.size(); ++i) {
    if (!std::isfinite(flat(i))) return false;
    block->min = std::min<double>(block->min, flat(i));
    block->max = std::max<double>(block->max, flat(i));
  }
  return true;
}

absl::StatusOr<bool> StaticInputs::SetTableRange(Block* block) const {
  const United* united = UnitedWith(block->tensor);
  if (united == nullptr) return AddTableRange(block->tensor, block);
  for (const std::string& tensor : united->tensors) {
    REQUANT_ASSIGN_OR_RETURN(const bool is_table, AddTableRange(tensor, block));
    if (!is_table) return false;
  }
  return true;
}

void StaticInputs::SetColumnRanges(const RangeEntry* whole,
                                   const RangeEntry& entry,
                                   Block* block) const {
  const double block_min =
      std::min(0.0f, *absl::c_min_element(entry.channel_mins));
  double block_max = std::max(0.0f, *absl::c_max_element(entry.channel_maxs));
  if (block_max == block_min) block_max = block_min + 1;
  for (int64_t k = 0; k < block->width; ++k) {
    const double least = entry.channel_mins[k];
    const double greatest = entry.channel_maxs[k];
    const double spread = std::max(std::fabs(least), std::fabs(greatest));
    // Zero is included because missing values are usually zero.
    double min = std::min(0.0, least), max = std::max(0.0, greatest);
    double margin = least == greatest ? kWideMargin : kMargin;
    if (whole != nullptr && whole->moments.has_value()) {
      const int64_t channel = block->first + k;
      const double deviation =
          std::sqrt(whole->moments->Covariance(channel, channel));
      if (spread - std::fabs(whole->moments->mean()[channel]) >
          kManyDeviations * deviation) {
        margin = kWideMargin;
      }
    }
    const double block_width = block_max - block_min;
    const bool similar = max == min || max - min >= kSimilarWidth * block_width;
    const double added =
        std::max(margin * (max - min), kLeastRelativeWidth * block_width);
    if (min < 0) min -= added;
    if (max > 0) max += added;
    if (similar) {
      min = std::min(min, block_min);
      max = std::max(max, block_max);
    }
    block->column_mins.push_back(min);
    block->column_maxs.push_back(max);
  }
}

absl::Status StaticInputs::SetRange(const RangeEntry* whole,
                                    Block* block) const {
  if (block->codes != nullptr) return absl::OkStatus();
  // Any row of a table may be used, even one that no calibration record uses.
  REQUANT_ASSIGN_OR_RETURN(const bool is_table, SetTableRange(block));
  if (!is_table) {
    REQUANT_ASSIGN_OR_RETURN(const RangeEntry* entry, EntryOf(block->tensor));
    REQUANT_ASSIGN_OR_RETURN(const RangeChoice choice,
                             ChooseRangeBy(options_.ranges, *entry));
    block->min = std::min(0.0f, choice.min.value_or(0));
    block->max = std::max(0.0f, choice.max.value_or(0));
    const int64_t known = entry->channel_mins.size();
    if (options_.split_columns && known == block->width &&
        known <= kMostOwnColumns) {
      SetColumnRanges(whole, *entry, block);
    }
  }
  if (block->max == block->min) block->max = block->min + 1;
  return absl::OkStatus();
}

// Describes column `k` of a block when it is quantized over the block's range.
PlannedColumn StaticInputs::PlannedColumnOf(
    const RangeEntry* whole, const std::vector<const FloatLayer*>& layers,
    const Block& block, int64_t k) {
  PlannedColumn column;
  const int64_t channel = block.first + k;
  for (const FloatLayer* layer : layers) {
    const auto weights = layer->weights.matrix<float>();
    for (int64_t j = 0; j < weights.dimension(1); ++j) {
      const double weight = weights(channel, j);
      column.squared_weights += weight * weight;
      column.largest_weight =
          std::max(column.largest_weight, std::fabs(weight));
    }
  }
  column.step = block.step();
  if (block.codes != nullptr) {
    const CodeColumn& known = *absl::c_find_if(
        block.codes->columns,
        [k](const CodeColumn& code) { return code.source == k; });
    column.step = known.step;
    column.largest_weight /= known.copies;
    column.squared_weights /= known.copies * known.copies;
  }
  column.deviation =
      whole != nullptr && whole->moments.has_value()
          ? std::sqrt(whole->moments->Covariance(channel, channel))
          : 255 * column.step / 6;
  return column;
}

ColumnPlan StaticInputs::PlanOf(const RangeEntry* whole,
                                const std::vector<const FloatLayer*>& layers,
                                const std::vector<Block>& blocks) const {
  std::vector<PlannedColumn> plain, own;
  bool any_own = false;
  for (const Block& block : blocks) {
    for (int64_t k = 0; k < block.width; ++k) {
      PlannedColumn column = PlannedColumnOf(whole, layers, block, k);
      plain.push_back(column);
      if (!block.column_mins.empty()) {
        any_own = true;
        column.step = block.column_step(k);
        column.may_repeat = true;
      }
      own.push_back(column);
    }
  }
  ColumnPlanOptions options;
  options.outputs = 0;
  for (const FloatLayer* layer : layers) {
    options.outputs += layer->weights.dim_size(1);
  }
  options.levels = options_.weight_levels;
  const double before = PlanColumns(plain, options).expected_error;
  if (!any_own) return {{}, before};
  options.least_copies = kLeastCopies;
  options.most_added = static_cast<int>(own.size() * kMostAddedShare);
  ColumnPlan plan = PlanColumns(own, options);
  if (plan.expected_error > kWorthwhile * before) return {{}, before};
  return plan;
}

void StaticInputs::PlanBlocks(const std::string& prefix,
                              const RangeEntry* whole,
                              const std::vector<const FloatLayer*>& layers,
                              std::vector<Block>* blocks) {
  ColumnPlan plan = PlanOf(whole, layers, *blocks);
  if (blocks->size() > 1) {
    std::vector<Block> alike = WithCommonRange(*blocks);
    ColumnPlan other = PlanOf(whole, layers, alike);
    if (other.expected_error < plan.expected_error) {
      plan = std::move(other);
      *blocks = std::move(alike);
    }
  }
  if (plan.copies.empty()) return;
  auto copies = plan.copies.begin();
  for (Block& block : *blocks) {
    block.copies.assign(copies, copies + block.width);
    copies += block.width;
  }
  JoinOwnColumns(prefix, blocks);
  const int most_added = static_cast<int>(plan.copies.size() * kMostAddedShare);
  for (Block& block : *blocks) {
    const int most = *absl::c_max_element(block.copies);
    if (block.own_columns() && (most - 1) * block.width <= most_added) {
      block.copies.assign(block.width, most);
    }
  }
}

std::vector<StaticInputs::Block> StaticInputs::WithCommonRange(
    std::vector<Block> blocks) {
  double widest = 0, min = 0, max = 0;
  for (const Block& block : blocks) {
    if (block.column_mins.empty()) widest = std::max(widest, block.step());
  }
  std::vector<Block*> alike;
  for (Block& block : blocks) {
    if (!block.column_mins.empty() || block.step() < kAlikeWidth * widest) {
      continue;
    }
    alike.push_back(&block);
    min = std::min(min, block.min);
    max = std::max(max, block.max);
  }
  for (Block* block : alike) {
    block->min = min;
    block->max = max;
  }
  return blocks;
}

void StaticInputs::JoinOwnColumns(const std::string& prefix,
                                  std::vector<Block>* blocks) {
  const auto is_own = [](const Block& block) { return block.own_columns(); };
  const auto first = absl::c_find_if(*blocks, is_own);
  if (absl::c_count_if(*blocks, is_own) < 2) return;
  Block joined;
  std::vector<std::string> tensors;
  for (const Block& block : *blocks) {
    if (!block.own_columns()) continue;
    tensors.push_back(AsInput(block.tensor));
    joined.width += block.width;
    for (int64_t k = 0; k < block.width; ++k) {
      joined.sources.push_back(block.source(k));
      joined.column_mins.push_back(block.column_mins[k]);
      joined.column_maxs.push_back(block.column_maxs[k]);
      joined.copies.push_back(block.copies[k]);
    }
  }
  joined.tensor =
      AddConcat(prefix, prefix + "_own_columns", tensors, DT_FLOAT) + ":0";
  *first = std::move(joined);
  blocks->erase(std::remove_if(first + 1, blocks->end(), is_own),
                blocks->end());
}

std::string StaticInputs::AddConcat(const std::string& prefix,
                                    const std::string& name,
                                    std::vector<std::string> tensors,
                                    tensorflow::DataType type) {
  const int64_t count = tensors.size();
  tensors.emplace_back() =
      builder_->AddConst(absl::StrCat(prefix, "_concat_axis"), Tensor(1));
  NodeDef concat =
      MakeNode(name, "ConcatV2", tensors, {{"T", type}, {"Tidx", DT_INT32}});
  (*concat.mutable_attr())["N"].set_i(count);
  return builder_->Add(std::move(concat));
}

std::string StaticInputs::AddSelection(const std::string& prefix,
                                       const std::string& tensor,
                                       const std::vector<int32_t>& columns) {
  const std::string name = TensorAsPartOfName(tensor);
  Tensor indices(DT_INT32, {static_cast<int64_t>(columns.size())});
  absl::c_copy(columns, indices.flat<int32_t>().data());
  const std::string which =
      builder_->AddConst(absl::StrCat(prefix, "_columns_", name), indices);
  const std::string axis = builder_->AddConst(
      absl::StrCat(prefix, "_columns_axis_", name), Tensor(1));
  NodeDef gather = MakeNode(
      absl::StrCat(prefix, "_repeat_", name), "GatherV2",
      {AsInput(tensor), which, axis},
      {{"Tparams", DT_FLOAT}, {"Tindices", DT_INT32}, {"Taxis", DT_INT32}});
  (*gather.mutable_attr())["batch_dims"].set_i(0);
  return builder_->Add(std::move(gather));
}

InputCodes StaticInputs::AddColumns(const std::string& prefix,
                                    const Block& block) {
  const std::string name = TensorAsPartOfName(block.tensor);
  InputCodes codes;
  std::vector<int32_t> sources;
  std::vector<float> scales, shifts;
  const int most = *absl::c_max_element(block.copies);
  // Copies of one column are kept apart, since neighbouring weights should not
  // both be large.
  for (int copy = 0; copy < most; ++copy) {
    for (int64_t k = 0; k < block.width; ++k) {
      const int copies = block.copies[k];
      if (copy >= copies) continue;
      const double step = block.column_step(k);
      // With evenly spaced rounding offsets, the copies' sum has the resolution
      // of a step that is `copies` times finer.
      const double offset = (copy + 0.5) / copies - 0.5;
      sources.push_back(static_cast<int32_t>(k));
      scales.push_back(static_cast<float>(1 / step));
      shifts.push_back(
          static_cast<float>(offset - block.column_mins[k] / step));
      codes.columns.push_back({block.source(k),
                               block.column_mins[k] - offset * step, step,
                               copies});
    }
  }
  std::string input = AsInput(block.tensor);
  if (most > 1) {
    // Repeating all columns is several times as fast as picking them one by
    // one.
    const bool all_alike =
        static_cast<int64_t>(sources.size()) == most * block.width;
    input = all_alike
                ? AddConcat(prefix, absl::StrCat(prefix, "_repeat_", name),
                            std::vector<std::string>(most, input), DT_FLOAT)
                : AddSelection(prefix, block.tensor, sources);
  }
  const std::string scale =
      builder_->AddConst(absl::StrCat(prefix, "_scales_", name), RowOf(scales));
  const std::string shift =
      builder_->AddConst(absl::StrCat(prefix, "_shifts_", name), RowOf(shifts));
  input = builder_->AddNode(absl::StrCat(prefix, "_scale_", name), "Mul",
                            {input, scale}, {{"T", DT_FLOAT}});
  input = builder_->AddNode(absl::StrCat(prefix, "_shift_", name), "AddV2",
                            {input, shift}, {{"T", DT_FLOAT}});
  codes.tensor = std::move(input);
  return codes;
}

InputCodes StaticInputs::AddBlock(const std::string& prefix, const Block& block,
                                  United* united) {
  if (block.codes != nullptr) {
    InputCodes codes = *block.codes;
    for (CodeColumn& column : codes.columns) column.source += block.first;
    return codes;
  }
  InputCodes codes;
  double min = block.min, max = block.max;
  if (block.own_columns()) {
    codes = AddColumns(prefix, block);
    // They are already scaled to codes.
    min = 0;
    max = 255;
  } else {
    codes.tensor = AsInput(block.tensor);
    if (options_.zero_is_code) {
      min = -std::rint(-min / block.step()) * block.step();
      max = min + 255 * block.step();
    }
    for (int64_t k = 0; k < block.width; ++k) {
      codes.columns.push_back({static_cast<int>(block.first + k),
                               static_cast<float>(min),
                               (static_cast<double>(static_cast<float>(max)) -
                                static_cast<float>(min)) /
                                   255,
                               1});
    }
  }
  const std::string name = TensorAsPartOfName(block.tensor);
  std::string low = united != nullptr ? united->low : "";
  std::string high = united != nullptr ? united->high : "";
  if (low.empty()) {
    low = builder_->AddScalar(absl::StrCat(prefix, "_min_", name), min);
    high = builder_->AddScalar(absl::StrCat(prefix, "_max_", name), max);
  }
  if (united != nullptr) {
    united->low = low;
    united->high = high;
  }
  NodeDef quantize =
      MakeNode(absl::StrCat(prefix, "_quantize_", name), "QuantizeV2",
               {codes.tensor, low, high}, {{"T", DT_QUINT8}});
  (*quantize.mutable_attr())["mode"].set_s("MIN_FIRST");
  (*quantize.mutable_attr())["ensure_minimum_range"].set_f(0);
  codes.tensor = builder_->Add(std::move(quantize));
  return codes;
}

absl::StatusOr<InputCodes> StaticInputs::CodesOf(
    const std::string& tensor, const std::vector<const FloatLayer*>& layers) {
  const auto known = codes_.find(tensor);
  if (known != codes_.end()) return known->second;
  const FloatLayer& first = *layers.front();
  const std::string prefix = EightbitPrefix(first);
  const int64_t width = first.weights.dim_size(0);
  const TensorName name = ParseTensorName(tensor);
  United* united = UnitedWith(tensor);
  const RangeEntry* whole =
      united != nullptr ? &united->entry : ranges_->Find(name.node, name.port);
  REQUANT_RETURN_IF_ERROR(CheckWidth(tensor, whole, width));
  std::vector<Block> blocks =
      united != nullptr ? OneBlock(tensor, width) : FindBlocks(tensor, width);
  for (Block& block : blocks) {
    REQUANT_RETURN_IF_ERROR(SetRange(whole, &block));
  }
  PlanBlocks(prefix, whole, united != nullptr ? united->layers : layers,
             &blocks);
  std::vector<std::string> tensors;
  InputCodes codes;
  codes.width = width;
  for (const Block& block : blocks) {
    const InputCodes part = AddBlock(prefix, block, united);
    tensors.push_back(part.tensor);
    codes.columns.insert(codes.columns.end(), part.columns.begin(),
                         part.columns.end());
  }
  codes.tensor = blocks.size() == 1
                     ? tensors.front()
                     : AddConcat(prefix,
                                 absl::StrCat(prefix, "_concat_",
                                              TensorAsPartOfName(tensor)),
                                 tensors, DT_QUINT8);
  codes_.emplace(tensor, codes);
  return codes;
}

}  // namespace requant
