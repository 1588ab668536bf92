#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/message_text.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/eightbit/embedding_plan.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

bool IsConstOrIdentity(const NodeDef& node) {
  return node.op() == "Const" || node.op() == "Identity";
}

// Returns the first few of `names`, quoted.
std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    shown.push_back(absl::StrCat("\"", names[i], "\""));
  }
  if (names.size() > kShown) {
    shown.push_back(absl::StrCat("and ", names.size() - kShown, " more"));
  }
  return absl::StrJoin(shown, ", ");
}

// Carries out plans one by one.
class Mover {
 public:
  Mover(TransformContext* context, GraphIndex* index)
      : context_(context),
        index_(index),
        builder_(index, context->outputs, IsConstOrIdentity) {}

  absl::Status Move(const EmbeddingPlan& plan) {
    REQUANT_RETURN_IF_ERROR(NoteMove(plan));
    std::vector<std::string> replaced;
    for (const auto& [place, constant, is_table] : plan.constants) {
      replaced.emplace_back(
          ParseTensorName(place.node->input(place.input)).node);
      REQUANT_ASSIGN_OR_RETURN(std::string codes,
                               AddCodes(*constant, plan.formula));
      index_->SetInput(place.node, place.input, std::move(codes));
    }
    QuantizeFloats(plan);
    for (NodeDef* node : plan.retyped) {
      (*node->mutable_attr())[ValueTypeOf(*node)].set_type(plan.formula.type);
    }
    for (NodeDef* quantize : plan.quantizes) {
      REQUANT_RETURN_IF_ERROR(Replace(quantize, plan));
    }
    builder_.RemoveUnreadFeeders(std::move(replaced));
    return absl::OkStatus();
  }

 private:
  using Key = std::tuple<std::string, tensorflow::DataType, bool, float, float>;

  absl::Status NoteMove(const EmbeddingPlan& plan) {
    std::set<std::string> tables;
    int64_t float_bytes = 0;
    for (const ConstantRead& read : plan.constants) {
      if (!read.is_table || !tables.insert(read.constant->name()).second) {
        continue;
      }
      REQUANT_ASSIGN_OR_RETURN(const Tensor values, ConstValue(*read.constant));
      float_bytes += values.TotalBytes();
    }
    std::vector<std::string> floats;
    for (const ReadingPlace& place : plan.floats) {
      floats.push_back(place.node->input(place.input));
    }
    std::string note = absl::StrCat(
        "moves \"", plan.quantizes.front()->name(), "\" into ",
        CountText(tables.size(), "table"), " (", float_bytes, " bytes become ",
        float_bytes / static_cast<int64_t>(sizeof(float)),
        "): ", Listed({tables.begin(), tables.end()}));
    if (!floats.empty()) {
      absl::StrAppend(&note,
                      "; still quantized in every run: ", Listed(floats));
    }
    for (const std::string& obstacle : plan.obstacles) {
      absl::StrAppend(&note, "; ", obstacle);
    }
    context_->notes.push_back(std::move(note));
    return absl::OkStatus();
  }

  // Adds the Const that holds the codes of `constant`'s values.
  absl::StatusOr<std::string> AddCodes(const NodeDef& constant,
                                       const CodeFormula& formula) {
    const auto [found, is_new] =
        codes_.try_emplace(Key{constant.name(), formula.type, formula.scaled,
                               formula.min, formula.max});
    if (!is_new) return found->second;
    REQUANT_ASSIGN_OR_RETURN(const Tensor values, ConstValue(constant));
    NodeDef codes = MakeConst(constant.name() + "/quantized",
                              QuantizedCodes(formula, values));
    codes.set_device(constant.device());
    return found->second = builder_.Add(std::move(codes));
  }

  // Quantizes the concats' float inputs, one QuantizeV2 per run of neighbours.
  void QuantizeFloats(const EmbeddingPlan& plan) {
    for (size_t i = 0; i < plan.floats.size();) {
      NodeDef* concat = plan.floats[i].node;
      std::vector<bool> is_float(concat->input_size(), false);
      for (; i < plan.floats.size() && plan.floats[i].node == concat; ++i) {
        is_float[plan.floats[i].input] = true;
      }
      QuantizeInputs(*plan.quantizes.front(), is_float, concat);
    }
  }

  void QuantizeInputs(const NodeDef& quantize,
                      const std::vector<bool>& is_float, NodeDef* concat) {
    const NodeDef before = *concat;
    const ConcatInputs values = ValuesOf(before);
    std::vector<std::string> inputs;
    int joined = 0;
    for (int i = 0; i < before.input_size();) {
      if (!is_float[i]) {
        if (i >= values.first && i < values.end) ++joined;
        inputs.push_back(before.input(i++));
        continue;
      }
      std::vector<std::string> run;
      while (i < values.end && is_float[i]) run.push_back(before.input(i++));
      std::string codes = AddQuantize(quantize, before, std::move(run));
      inputs.push_back(std::move(codes));
      ++joined;
    }
    index_->SetInputs(concat, std::move(inputs));
    (*concat->mutable_attr())["N"].set_i(joined);
  }

  // Adds a QuantizeV2 like `quantize` that reads the tensors in `run`, joined
  // as `concat` joins them.
  std::string AddQuantize(const NodeDef& quantize, const NodeDef& concat,
                          std::vector<std::string> run) {
    const std::string first(ParseTensorName(run.front()).node);
    std::string tensor = run.front();
    if (run.size() > 1) {
      NodeDef part = concat;
      part.set_name(concat.name() + "/floats");
      (*part.mutable_attr())["N"].set_i(run.size());
      const ConcatInputs values = ValuesOf(concat);
      const std::string& axis =
          concat.input(values.first == 0 ? values.end : 0);
      run.insert(values.first == 0 ? run.end() : run.begin(), axis);
      part.mutable_input()->Assign(run.begin(), run.end());
      tensor = builder_.Add(std::move(part));
    }
    NodeDef node = quantize;
    node.set_name(absl::StrCat(quantize.name(), "/", first));
    node.set_input(0, tensor);
    return builder_.Add(std::move(node));
  }

  // Makes all readers of `quantize` read the plan's codes and range, and
  // removes `quantize`.
  absl::Status Replace(NodeDef* quantize, const EmbeddingPlan& plan) {
    const std::string name = quantize->name();
    const std::string& codes = plan.retyped.front()->name();
    index_->RedirectUses({name, 0}, {codes, 0});
    index_->RedirectUses({name, kControlPort}, {codes, kControlPort});
    for (const auto& [port, suffix, value] :
         {std::tuple{1, "/min", plan.formula.min},
          {2, "/max", plan.formula.max}}) {
      bool is_read = false;
      for (const Use& use : index_->Uses(name)) is_read |= use.port == port;
      if (!is_read) continue;
      index_->RedirectUses({name, port},
                           {builder_.AddScalar(name + suffix, value), 0});
    }
    std::vector<std::string> feeders = ProducersOf(*quantize);
    REQUANT_RETURN_IF_ERROR(index_->Remove(name));
    builder_.RemoveUnreadFeeders(std::move(feeders));
    return absl::OkStatus();
  }

  TransformContext* context_;
  GraphIndex* index_;
  GraphBuilder builder_;
  std::map<Key, std::string> codes_;
};

absl::Status QuantizeEmbeddings(TransformContext& context, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  const EmbeddingPlans plans = PlanEmbeddings(context, index);
  Mover mover(&context, &index);
  for (const EmbeddingPlan& plan : plans.moves) {
    REQUANT_RETURN_IF_ERROR(mover.Move(plan));
  }
  index.Commit();
  if (!plans.moves.empty()) DropLostColocations(graph);
  for (const auto& [reason, names] : plans.left) {
    context.notes.push_back(
        absl::StrCat("leaves ", Listed(names), ": ", reason));
  }
  if (plans.moves.empty() && plans.left.empty()) {
    context.notes.push_back("no QuantizeV2 in the graph");
  }
  return absl::OkStatus();
}

REQUANT_REGISTER_TRANSFORM(
    QuantizeEmbeddings,
    {"quantize_embeddings",
     "Moves QuantizeV2 up through concats, reshapes and gathers into the "
     "embedding tables.",
     "Quantizing looks at one number at a time, so it can be done to a "
     "constant table once instead of to the gathered rows in every run. The "
     "table becomes quint8 or qint8, a quarter of its size, with exactly the "
     "codes that the kernel gives at run time: the graph's outputs stay the "
     "same to the last bit. Inputs of a concat that do not come from a table "
     "get a QuantizeV2 of their own. A QuantizeV2 stays where it is when no "
     "rows of a constant reach it, when something else reads the float values "
     "on the way, or when its table is also read in float, which would make "
     "the graph bigger; notes say which and why. Modes: MIN_FIRST, and SCALED "
     "with round_mode HALF_TO_EVEN. Running it again changes nothing.",
     {},
     "freeze_min and freeze_max, then strip_unused_nodes, so that no dead node "
     "reads the floats; fold_constants where tables are computed"});

}  // namespace
}  // namespace requant
