#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/process/forked_work.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "graph/graph_wiring.h"
#include "graph/op_catalog.h"
#include "graph/verify/verify_parts.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace requant {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

namespace {

// The shapes of nodes with more outputs than this count as unknown: the number
// is a mere attribute, and shape functions allocate each output.
constexpr int64_t kMaxOutputs = 100000;

// Shape functions see constants up to this size; larger ones are not shapes,
// axes or permutations.
constexpr int64_t kMaxConstElements = 1024;

constexpr size_t kMaxShapesInMessage = 6;

bool HasAllAttributes(const NodeDef& node, const OpDef& definition) {
  return std::all_of(definition.attr().begin(), definition.attr().end(),
                     [&](const OpDef::AttrDef& attribute) {
                       return node.attr().contains(attribute.name());
                     });
}

PartialTensorShape ToPartialShape(ShapeHandle shape,
                                  InferenceContext* context) {
  PartialTensorShape unknown;
  if (!context->RankKnown(shape)) return unknown;
  std::vector<int64_t> dims(context->Rank(shape));
  for (size_t i = 0; i < dims.size(); ++i) {
    dims[i] = context->Value(context->Dim(shape, i));
  }
  PartialTensorShape result;
  return PartialTensorShape::BuildPartialTensorShape(dims, &result).ok()
             ? result
             : unknown;
}

// Returns the value of a small Const, or nullopt for any other node.
std::optional<Tensor> SmallConst(const NodeDef& node) {
  if (node.op() != "Const") return std::nullopt;
  const auto value = node.attr().find("value");
  if (value == node.attr().end()) return std::nullopt;
  Tensor tensor;
  tensorflow::TensorShape shape;
  if (!tensorflow::TensorShape::BuildTensorShape(
           value->second.tensor().tensor_shape(), &shape)
           .ok() ||
      shape.num_elements() > kMaxConstElements ||
      !tensor.FromProto(value->second.tensor())) {
    return std::nullopt;
  }
  return tensor;
}

class ShapeCheck {
 public:
  ShapeCheck(const GraphDef& graph, const std::vector<const OpEntry*>& ops,
             const NodeEdges& inputs, ProblemList* problems)
      : graph_(graph),
        ops_(ops),
        inputs_(inputs),
        problems_(*problems),
        outputs_(graph.node_size()) {}

  void Check(int32_t id) {
    const NodeDef& node = graph_.node(id);
    const OpEntry& op = *ops_[id];
    if (op.registration == nullptr ||
        op.registration->shape_inference_fn == nullptr) {
      return;
    }
    const auto output_count =
        CountTensors(op.definition->output_arg(), node, *op.definition);
    if (output_count.value_or(INT64_MAX) > kMaxOutputs) return;
    if (HasAllAttributes(node, *op.definition)) {
      Infer(id, node, op);
    } else {
      NodeDef complete = node;
      tensorflow::AddDefaultsToNodeDef(*op.definition, &complete);
      Infer(id, complete, op);
    }
  }

 private:
  void Infer(int32_t id, const NodeDef& node, const OpEntry& op) {
    const std::vector<PartialTensorShape> shapes = InputShapes(id);
    InferenceContext context(graph_.versions().producer(), node, *op.definition,
                             shapes, {}, {}, {});
    absl::Status status = op.registration->shape_inference_fn(&context);
    if (status.ok()) {
      const auto values = RequestedValues(id, context);
      std::vector<const Tensor*> pointers;
      for (const auto& value : values) {
        pointers.push_back(value.has_value() ? &*value : nullptr);
      }
      if (!pointers.empty()) {
        context.set_input_tensors(pointers);
        status = op.registration->shape_inference_fn(&context);
      }
    }
    if (!status.ok()) {
      Report(node, shapes, status);
      return;
    }
    for (int i = 0; i < context.num_outputs(); ++i) {
      outputs_[id].push_back(ToPartialShape(context.output(i), &context));
    }
  }

  std::vector<PartialTensorShape> InputShapes(int32_t id) const {
    std::vector<PartialTensorShape> shapes;
    for (const auto& [producer, port] : inputs_.Of(id)) {
      if (port == kControlPort) break;
      // A loop's back edge and a producer without shapes are both unknown.
      const bool known = producer != kNoNode &&
                         static_cast<size_t>(port) < outputs_[producer].size();
      shapes.push_back(known ? outputs_[producer][port] : PartialTensorShape());
    }
    return shapes;
  }

  // Returns the constants that the shape function requested: one for each
  // input, or empty if there are none.
  std::vector<std::optional<Tensor>> RequestedValues(
      int32_t id, const InferenceContext& context) const {
    std::vector<std::optional<Tensor>> values;
    for (int i = 0; i < context.num_inputs(); ++i) {
      if (!context.requested_input_tensor(i) &&
          !context.requested_input_tensor_as_partial_shape(i)) {
        continue;
      }
      const int32_t producer = inputs_.Of(id)[i].node;
      if (producer == kNoNode) continue;
      std::optional<Tensor> value = SmallConst(graph_.node(producer));
      if (!value.has_value()) continue;
      values.resize(context.num_inputs());
      values[i] = std::move(value);
    }
    return values;
  }

  void Report(const NodeDef& node,
              const std::vector<PartialTensorShape>& shapes,
              const absl::Status& status) {
    std::vector<std::string> texts;
    for (const PartialTensorShape& shape : shapes) {
      texts.push_back(texts.size() < kMaxShapesInMessage ? shape.DebugString()
                                                         : "...");
      if (texts.size() > kMaxShapesInMessage) break;
    }
    const std::string which =
        shapes.empty()
            ? "a shape that cannot be"
            : absl::StrCat("inputs of shape ", absl::StrJoin(texts, ", "),
                           ", which it cannot take");
    NodePlace{node}.Report(
        ProblemKind::kShape,
        absl::StrCat("has ", which, ": ", ShortReason(status.message())),
        &problems_);
  }

  const GraphDef& graph_;
  const std::vector<const OpEntry*>& ops_;
  const NodeEdges& inputs_;
  ProblemList& problems_;
  std::vector<std::vector<PartialTensorShape>> outputs_;
};

// Serializes problems for the copy to send: node and message, each followed by
// a zero byte, which neither contains.
std::string Packed(std::vector<GraphProblem> problems) {
  std::string text;
  for (const GraphProblem& problem : problems) {
    text.append(problem.node.c_str(), problem.node.size() + 1);
    text.append(problem.message.c_str(), problem.message.size() + 1);
  }
  return text;
}

void Unpack(const std::string& text, ProblemList* problems) {
  const std::vector<std::string> parts = absl::StrSplit(text, '\0');
  for (size_t i = 0; i + 2 < parts.size(); i += 2) {
    problems->Add(ProblemKind::kShape, parts[i], parts[i + 1]);
  }
}

}  // namespace

absl::Status CheckShapes(const GraphDef& graph,
                         const std::vector<const OpEntry*>& ops,
                         const NodeEdges& inputs,
                         const std::vector<int32_t>& order,
                         ProblemList* problems) {
  REQUANT_ASSIGN_OR_RETURN(
      const ForkedResult result,
      RunForked([&](const std::function<void(int64_t)>& set_step) {
        ShapeCheck check(graph, ops, inputs, problems);
        for (const int32_t id : order) {
          if (problems->full()) break;
          set_step(id);
          check.Check(id);
        }
        return Packed(problems->Take());
      }));
  Unpack(result.output, problems);
  if (!result.failure.empty()) {
    const bool at_node = result.step >= 0 && result.step < graph.node_size();
    const NodeDef& node = at_node ? graph.node(static_cast<int>(result.step))
                                  : NodeDef::default_instance();
    problems->Add(ProblemKind::kShape, node.name(),
                  absl::StrCat("TensorFlow's shape inference ", result.failure,
                               at_node ? " at " : "",
                               at_node ? NodePlace{node}.Describe() : "",
                               "; loading this graph into TensorFlow would "
                               "do the same"));
  }
  return absl::OkStatus();
}

}  // namespace requant
