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
#include "transforms/layers/quantize_codes.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

std::string Plural(size_t count, const std::string& what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// The first few of `names`, quoted.
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

// Carries plans out, one by one.
class Mover {
 public:
  Mover(TransformContext* context, GraphIndex* index)
      : context_(context), index_(index) {}

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
    REQUANT_RETURN_IF_ERROR(QuantizeFloats(plan));
    for (NodeDef* node : plan.retyped) {
      (*node->mutable_attr())[TypeAttribute(*node)].set_type(plan.formula.type);
    }
    for (NodeDef* quantize : plan.quantizes) {
      REQUANT_RETURN_IF_ERROR(Replace(quantize, plan));
    }
    for (const std::string& name : replaced) {
      REQUANT_RETURN_IF_ERROR(RemoveUnread(name));
    }
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
        Plural(tables.size(), "table"), " (", float_bytes, " bytes become ",
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

  // The Const that holds the codes of `constant`'s values.
  absl::StatusOr<std::string> AddCodes(const NodeDef& constant,
                                       const CodeFormula& formula) {
    const auto [found, is_new] =
        codes_.try_emplace(Key{constant.name(), formula.type, formula.scaled,
                               formula.min, formula.max});
    if (!is_new) return found->second;
    REQUANT_ASSIGN_OR_RETURN(const Tensor values, ConstValue(constant));
    found->second = index_->FreeName(constant.name() + "/quantized");
    NodeDef codes = MakeConst(found->second, QuantizedCodes(formula, values));
    codes.set_device(constant.device());
    REQUANT_RETURN_IF_ERROR(index_->Add(std::move(codes)).status());
    return found->second;
  }

  // Gives the concats' float inputs a QuantizeV2 each, neighbours one together.
  absl::Status QuantizeFloats(const EmbeddingPlan& plan) {
    for (size_t i = 0; i < plan.floats.size();) {
      NodeDef* concat = plan.floats[i].node;
      std::vector<bool> is_float(concat->input_size(), false);
      for (; i < plan.floats.size() && plan.floats[i].node == concat; ++i) {
        is_float[plan.floats[i].input] = true;
      }
      REQUANT_RETURN_IF_ERROR(
          QuantizeInputs(*plan.quantizes.front(), is_float, concat));
    }
    return absl::OkStatus();
  }

  absl::Status QuantizeInputs(const NodeDef& quantize,
                              const std::vector<bool>& is_float,
                              NodeDef* concat) {
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
      REQUANT_ASSIGN_OR_RETURN(std::string codes,
                               AddQuantize(quantize, before, std::move(run)));
      inputs.push_back(std::move(codes));
      ++joined;
    }
    index_->SetInputs(concat, std::move(inputs));
    (*concat->mutable_attr())["N"].set_i(joined);
    return absl::OkStatus();
  }

  // A QuantizeV2 like `quantize` of the tensors in `run`, joined as `concat`
  // joins them.
  absl::StatusOr<std::string> AddQuantize(const NodeDef& quantize,
                                          const NodeDef& concat,
                                          std::vector<std::string> run) {
    const std::string first(ParseTensorName(run.front()).node);
    std::string tensor = run.front();
    if (run.size() > 1) {
      NodeDef part = concat;
      part.set_name(index_->FreeName(concat.name() + "/floats"));
      (*part.mutable_attr())["N"].set_i(run.size());
      const ConcatInputs values = ValuesOf(concat);
      const std::string& axis =
          concat.input(values.first == 0 ? values.end : 0);
      run.insert(values.first == 0 ? run.end() : run.begin(), axis);
      part.mutable_input()->Assign(run.begin(), run.end());
      tensor = part.name();
      REQUANT_RETURN_IF_ERROR(index_->Add(std::move(part)).status());
    }
    NodeDef node = quantize;
    node.set_name(index_->FreeName(absl::StrCat(quantize.name(), "/", first)));
    node.set_input(0, tensor);
    const std::string name = node.name();
    REQUANT_RETURN_IF_ERROR(index_->Add(std::move(node)).status());
    return name;
  }

  // Makes all that read `quantize` read the plan's codes and range, and removes
  // it.
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
      const std::string constant = index_->FreeName(name + suffix);
      REQUANT_RETURN_IF_ERROR(
          index_->Add(MakeScalarConst(constant, value)).status());
      index_->RedirectUses({name, port}, {constant, 0});
    }
    const std::vector<std::string> inputs(quantize->input().begin(),
                                          quantize->input().end());
    REQUANT_RETURN_IF_ERROR(index_->Remove(name));
    for (const std::string& input : inputs) {
      REQUANT_RETURN_IF_ERROR(
          RemoveUnread(std::string(ParseTensorName(input).node)));
    }
    return absl::OkStatus();
  }

  // Removes a Const, or an Identity of one, that nothing reads any more.
  absl::Status RemoveUnread(const std::string& name) {
    const NodeDef* node = index_->Find(name);
    if (node == nullptr || index_->HasUses(name) || IsOutput(name) ||
        (node->op() != "Const" && node->op() != "Identity")) {
      return absl::OkStatus();
    }
    const std::vector<std::string> inputs(node->input().begin(),
                                          node->input().end());
    REQUANT_RETURN_IF_ERROR(index_->Remove(name));
    for (const std::string& input : inputs) {
      REQUANT_RETURN_IF_ERROR(
          RemoveUnread(std::string(ParseTensorName(input).node)));
    }
    return absl::OkStatus();
  }

  bool IsOutput(const std::string& name) const {
    return std::any_of(context_->outputs.begin(), context_->outputs.end(),
                       [&](const std::string& output) {
                         return ParseTensorName(output).node == name;
                       });
  }

  TransformContext* context_;
  GraphIndex* index_;
  std::map<Key, std::string> codes_;
};

void NoteWhatIsLeft(const std::vector<QuantizeLeft>& left,
                    TransformContext* context) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const QuantizeLeft& one : left) {
    by_reason[one.reason].push_back(one.quantize);
  }
  for (const auto& [reason, names] : by_reason) {
    context->notes.push_back(
        absl::StrCat("leaves ", Listed(names), ": ", reason));
  }
}

absl::Status QuantizeEmbeddings(TransformContext& context, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  const EmbeddingPlans plans = PlanEmbeddings(context, index);
  Mover mover(&context, &index);
  for (const EmbeddingPlan& plan : plans.moves) {
    REQUANT_RETURN_IF_ERROR(mover.Move(plan));
  }
  index.Commit();
  if (!plans.moves.empty()) DropLostColocations(graph);
  NoteWhatIsLeft(plans.left, &context);
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
