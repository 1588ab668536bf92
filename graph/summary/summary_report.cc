#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/text/printable.h"
#include "graph/graph_wiring.h"
#include "graph/summary/summarize.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/strings/numbers.h"

namespace requant {
namespace {

using tensorflow::DataTypeString;
using tensorflow::NodeDef;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorProto;

std::string ShapeText(const TensorSummary& tensor) {
  if (!tensor.has_shape) return "None";
  const absl::Status valid = PartialTensorShape::IsValidShape(tensor.shape);
  if (!valid.ok()) return Printable(valid.message());
  return PartialTensorShape(tensor.shape).DebugString();
}

// Returns the dimensions, with -1 for an unknown one, or nullopt if the rank is
// unknown or the shape is invalid.
std::optional<std::vector<int64_t>> Dimensions(const TensorSummary& tensor) {
  if (!tensor.has_shape || tensor.shape.unknown_rank() ||
      !PartialTensorShape::IsValid(tensor.shape)) {
    return std::nullopt;
  }
  std::vector<int64_t> sizes;
  for (const auto& dim : tensor.shape.dim()) sizes.push_back(dim.size());
  return sizes;
}

std::string TensorText(const TensorSummary& tensor) {
  return absl::StrCat("(name=", Printable(tensor.name),
                      ", type=", DataTypeString(tensor.type), "(", tensor.type,
                      "), shape=", ShapeText(tensor), ")");
}

std::string OutputText(const OutputSummary& output) {
  return absl::StrCat("(name=", Printable(output.name),
                      ", op=", Printable(output.op), ")");
}

// Appends a list as TensorFlow prints it, with a space after each entry.
void AppendList(std::string_view what, const std::vector<std::string>& entries,
                std::string_view none, std::string* text) {
  if (entries.empty()) {
    absl::StrAppend(text, none, "\n");
    return;
  }
  absl::StrAppend(text, "Found ", entries.size(), " ", what, ": ");
  for (const std::string& entry : entries) absl::StrAppend(text, entry, " ");
  text->push_back('\n');
}

template <typename Range, typename Function>
std::vector<std::string> Map(const Range& range, Function function) {
  std::vector<std::string> result;
  for (const auto& element : range) result.push_back(function(element));
  return result;
}

void AppendSignatures(const GraphSummary& summary, std::string* text) {
  if (summary.signatures.empty()) return;
  absl::StrAppend(text, "Found ", summary.signatures.size(), " signatures: ",
                  absl::StrJoin(Map(summary.signatures,
                                    [](const SignatureSummary& signature) {
                                      return Printable(signature.name);
                                    }),
                                ", "),
                  "\n");
  for (const SignatureSummary& signature : summary.signatures) {
    if (!signature.same_as.empty()) {
      absl::StrAppend(text, "Signature ", Printable(signature.name),
                      " has the inputs and outputs of ",
                      Printable(signature.same_as), "\n");
    }
    for (const auto& [kind, tensors] :
         {std::pair("input", &signature.inputs),
          std::pair("output", &signature.outputs)}) {
      for (const TensorSummary& tensor : *tensors) {
        absl::StrAppend(text, "Signature ", Printable(signature.name), " ",
                        kind, " ", Printable(tensor.key), ": ",
                        TensorText(tensor), "\n");
      }
    }
  }
}

void AppendOutputs(const GraphSummary& summary, std::string* text) {
  const bool obvious =
      summary.outputs.size() == 1 && summary.likely_outputs.size() == 1 &&
      summary.outputs[0].name == summary.likely_outputs[0].name;
  if (!summary.likely_outputs.empty() && !obvious) {
    absl::StrAppend(text, "Most likely output: ",
                    absl::StrJoin(Map(summary.likely_outputs, OutputText), " "),
                    "\n");
  }
  AppendList("possible outputs", Map(summary.outputs, OutputText),
             "No outputs spotted.", text);
}

std::string CountText(int64_t count) {
  return absl::StrCat(count, " (", tensorflow::strings::HumanReadableNum(count),
                      ")");
}

void AppendDefects(const GraphSummary& summary, std::string* text) {
  for (const auto& [node, input] : summary.invalid_inputs) {
    absl::StrAppend(text, "Invalid input ", Printable(input), " for node ",
                    Printable(node), "\n");
  }
  for (const std::string& problem : summary.problems) {
    absl::StrAppend(text, "Problem: ", Printable(problem), "\n");
  }
}

std::string OpsText(const GraphSummary& summary) {
  return absl::StrJoin(Map(summary.ops,
                           [](const auto& op) {
                             return absl::StrCat(op.second, " ",
                                                 Printable(op.first));
                           }),
                       ", ");
}

std::string NameOf(const TensorSummary& tensor) {
  return Printable(tensor.name);
}

// Turns "a/graph.pb" into "a/graph_ENDING", "saved/" into "saved_ENDING".
std::string WithEnding(std::string_view path, std::string_view ending) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  const bool extension = dot != std::string_view::npos && dot > 0 &&
                         (slash == std::string_view::npos || dot > slash + 1);
  return absl::StrCat(extension ? path.substr(0, dot) : path, "_", ending);
}

// Returns whether these names can be listed in a flag.
bool CanBeListed(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return !absl::StrContains(name, ',') && Printable(name) == name;
  });
}

// Returns `flag` with this value, or "" if the value is empty.
std::string OptionalFlag(std::string_view flag, std::string_view value) {
  return value.empty() ? ""
                       : absl::StrCat(" --", flag, "=", ShellQuoted(value));
}

std::string TransformCommand(const GraphSummary& summary,
                             const std::string& graph_path,
                             const std::string& output_path,
                             const std::string& tags) {
  // strip_unused_nodes replaces inputs by placeholders with one output, which
  // is wrong for an iterator. fold_constants drops unused nodes too.
  const std::string_view strip =
      summary.placeholders ? "strip_unused_nodes " : "";
  return absl::StrCat(
      "requant transform --in_graph=", ShellQuoted(graph_path),
      OptionalFlag("saved_model_tags", tags),
      " --out_graph=", ShellQuoted(output_path), " --inputs=",
      ShellQuoted(absl::StrJoin(Map(summary.chosen_inputs, NameOf), ",")),
      " --outputs=", ShellQuoted(absl::StrJoin(summary.chosen_outputs, ",")),
      " --transforms=",
      ShellQuoted(absl::StrCat(strip,
                               "remove_nodes(op=Identity, op=CheckNumerics) "
                               "fold_constants(ignore_errors=true) "
                               "fold_batch_norms(ignore_errors=true) "
                               "fold_old_batch_norms(ignore_errors=true)")));
}

// Returns the first values of a Const, or "" if it cannot be read. A few stored
// values can stand for any number; `unfolded_bytes` is the remaining budget for
// such tensors.
std::string ConstText(const NodeDef& node, int64_t* unfolded_bytes) {
  const auto value = node.attr().find("value");
  if (value == node.attr().end()) return "";
  const TensorProto& proto = value->second.tensor();
  if (!tensorflow::TensorShape::IsValid(proto.tensor_shape())) return "";
  const int64_t element_bytes =
      proto.dtype() == tensorflow::DT_STRING
          ? static_cast<int64_t>(sizeof(tensorflow::tstring))
          : tensorflow::DataTypeSize(proto.dtype());
  if (element_bytes <= 0) return "";
  const int64_t elements =
      tensorflow::TensorShape(proto.tensor_shape()).num_elements();
  if (elements > static_cast<int64_t>(proto.ByteSizeLong())) {
    if (elements > *unfolded_bytes / element_bytes) return "";
    *unfolded_bytes -= elements * element_bytes;
  }
  Tensor tensor;
  if (!tensor.FromProto(proto)) return "";
  return absl::StrCat(", value=", Printable(tensor.DebugString()));
}

using Members = std::vector<std::pair<std::string, std::string>>;

// Returns an object that maps names to their numbers of occurrences.
template <typename Range>
std::string JsonCounts(const Range& counts) {
  Members members;
  for (const auto& [name, count] : counts) {
    members.emplace_back(name, absl::StrCat(count));
  }
  return JsonObject(members);
}

std::string TensorJson(const TensorSummary& tensor) {
  const auto dimensions = Dimensions(tensor);
  Members members = {
      {"name", JsonString(tensor.name)},
      {"op", JsonString(tensor.op)},
      {"type", JsonString(DataTypeString(tensor.type))},
      {"type_number", absl::StrCat(tensor.type)},
      {"shape", dimensions
                    ? absl::StrCat("[", absl::StrJoin(*dimensions, ", "), "]")
                    : "null"}};
  if (!tensor.key.empty()) {
    members.insert(members.begin(), {"key", JsonString(tensor.key)});
  }
  return JsonObject(members);
}

std::string SignatureJson(const SignatureSummary& signature) {
  return JsonObject({{"name", JsonString(signature.name)},
                     {"method", JsonString(signature.method)},
                     {"inputs", JsonArrayOf(signature.inputs, TensorJson)},
                     {"outputs", JsonArrayOf(signature.outputs, TensorJson)}});
}

std::string OutputJson(const OutputSummary& output) {
  // Indexed by OutputTier.
  static constexpr const char* kTiers[] = {
      "auxiliary", "unconnected", "forward", "prediction", "signature"};
  return JsonObject(
      {{"name", JsonString(output.name)},
       {"op", JsonString(output.op)},
       {"tier", JsonString(kTiers[static_cast<int>(output.tier)])},
       {"points", absl::StrCat(output.points)}});
}

std::string NodeJson(const NodeDef& node) {
  return JsonObject({{"name", JsonString(node.name())},
                     {"op", JsonString(node.op())},
                     {"inputs", JsonArrayOf(node.input(), JsonString)}});
}

// Returns arguments for TensorFlow's benchmark_model.
std::string BenchmarkArguments(const GraphSummary& summary,
                               const std::string& graph_path) {
  std::vector<TensorSummary> fed = summary.chosen_inputs;
  fed.insert(fed.end(), summary.chosen_variables.begin(),
             summary.chosen_variables.end());
  const auto type = [](const TensorSummary& tensor) {
    return DataTypeString(tensor.type);
  };
  const auto sizes = [](const TensorSummary& tensor) {
    const auto dimensions = Dimensions(tensor);
    return dimensions ? absl::StrJoin(*dimensions, ",") : std::string();
  };
  return absl::StrCat(
      "--graph=", ShellQuoted(Printable(graph_path)),
      " --show_flops --input_layer=",
      ShellQuoted(absl::StrJoin(Map(fed, NameOf), ",")),
      " --input_layer_type=", ShellQuoted(absl::StrJoin(Map(fed, type), ",")),
      " --input_layer_shape=", ShellQuoted(absl::StrJoin(Map(fed, sizes), ":")),
      " --output_layer=",
      ShellQuoted(absl::StrJoin(Map(summary.chosen_outputs, Printable), ",")));
}

// Returns the signature by whose names records can feed the model, or null.
const SignatureSummary* FedSignature(const GraphSummary& summary) {
  const SignatureSummary& signature = summary.signatures.empty()
                                          ? summary.kept_signature
                                          : summary.signatures[0];
  const bool is_quantized = std::any_of(
      summary.ops.begin(), summary.ops.end(),
      [](const auto& op) { return absl::StrContains(op.first, "Quantized"); });
  if (signature.inputs.empty() || signature.prediction.empty() ||
      is_quantized) {
    return nullptr;
  }
  for (const TensorSummary& input : signature.inputs) {
    const auto dimensions = Dimensions(input);
    // Sparse inputs have a slash in their keys.
    if (!dimensions || dimensions->empty() || (*dimensions)[0] >= 0 ||
        absl::StrContains(input.key, '/') ||
        Printable(input.key) != input.key) {
      return nullptr;
    }
  }
  return &signature;
}

// Returns the command that quantizes the model, or "" if it is unknown what
// feeds it.
std::string QuantizeCommand(const GraphSummary& summary,
                            const std::string& graph_path) {
  const SignatureSummary* const signature = FedSignature(summary);
  if (signature == nullptr) return "";
  const bool is_graph = summary.saved_model.empty();
  const std::string& path = is_graph ? graph_path : summary.saved_model;
  return absl::StrCat(
      "requant quantize",
      OptionalFlag(is_graph ? "graph" : "saved_model", path),
      OptionalFlag("saved_model_tags", summary.saved_model_tags),
      OptionalFlag("signature",
                   signature->name == "serving_default" ? "" : signature->name),
      " --data=RECORDS",
      OptionalFlag("output",
                   WithEnding(path, is_graph ? "int8.pb" : "int8/1")));
}

// Returns commands to paste into a shell in this order, which freeze, optimize
// and quantize the model, or none if it is unknown how.
std::vector<std::string> NextCommands(const GraphSummary& summary,
                                      const std::string& graph_path) {
  const bool freezes = !summary.variables.empty();
  if (summary.chosen_outputs.empty() || !summary.invalid_inputs.empty() ||
      !summary.problems.empty() || !CanBeListed(summary.chosen_outputs) ||
      !CanBeListed(
          Map(summary.chosen_inputs,
              [](const TensorSummary& input) { return input.name; })) ||
      !CanBeListed({graph_path}) || (freezes && summary.saved_model.empty())) {
    return {};
  }
  std::vector<std::string> commands;
  if (freezes) {
    const std::string frozen = WithEnding(summary.saved_model, "frozen.pb");
    commands = {
        absl::StrCat("requant freeze --input_saved_model_dir=",
                     ShellQuoted(summary.saved_model),
                     OptionalFlag("saved_model_tags", summary.saved_model_tags),
                     " --output_node_names=",
                     ShellQuoted(absl::StrJoin(summary.chosen_outputs, ",")),
                     " --output_graph=", ShellQuoted(frozen)),
        TransformCommand(summary, frozen,
                         WithEnding(summary.saved_model, "optimized.pb"), "")};
  } else {
    commands = {TransformCommand(summary, graph_path,
                                 WithEnding(graph_path, "optimized.pb"),
                                 summary.saved_model_tags)};
  }
  const std::string quantize = QuantizeCommand(summary, graph_path);
  if (!quantize.empty()) commands.push_back(quantize);
  return commands;
}

}  // namespace

std::string TextReport(const GraphSummary& summary,
                       const std::string& graph_path) {
  std::string text;
  AppendSignatures(summary, &text);
  AppendList("possible inputs", Map(summary.inputs, TensorText),
             "No inputs spotted.", &text);
  if (!summary.placeholders) {
    absl::StrAppend(&text,
                    "These inputs are no placeholders: the graph reads its "
                    "data itself; they are what can be fed instead.\n");
  }
  AppendList("variables", Map(summary.variables, TensorText),
             "No variables spotted.", &text);
  AppendOutputs(summary, &text);
  absl::StrAppend(&text, "Found ", CountText(summary.const_parameters),
                  " const parameters, ", CountText(summary.variable_parameters),
                  " variable parameters, and ", summary.control_edges,
                  " control_edges\n");
  for (const auto& [device, count] : summary.devices) {
    absl::StrAppend(&text, count, " nodes assigned to device '",
                    Printable(device), "'\n");
  }
  AppendDefects(summary, &text);
  absl::StrAppend(&text, "Op types used: ", OpsText(summary), "\n");
  if (summary.chosen_outputs.empty()) return text;
  absl::StrAppend(&text,
                  "To use with tensorflow/tools/benchmark:benchmark_model try "
                  "these arguments:\n",
                  BenchmarkArguments(summary, graph_path), "\n");
  const std::vector<std::string> commands = NextCommands(summary, graph_path);
  if (!commands.empty()) {
    if (absl::StartsWith(commands.back(), "requant quantize")) {
      absl::StrAppend(
          &text,
          "Records of yours, as CSV, JSON lines, .npz or TFRecord files, feed "
          "it by these names: ",
          absl::StrJoin(
              Map(FedSignature(summary)->inputs,
                  [](const TensorSummary& input) { return input.key; }),
              ", "),
          "\n");
    }
    absl::StrAppend(&text, "To go on:\n", absl::StrJoin(commands, "\n"), "\n");
  } else if (!summary.variables.empty()) {
    absl::StrAppend(&text,
                    "To go on, freeze the variables: requant freeze takes the "
                    "graph and the checkpoint with their values.\n");
  }
  return text;
}

std::string JsonReport(const GraphSummary& summary,
                       const std::string& graph_path,
                       const tensorflow::GraphDef* structure) {
  const auto invalid = [](const auto& edge) {
    return JsonObject(
        {{"node", JsonString(edge.first)}, {"input", JsonString(edge.second)}});
  };
  Members members = {
      {"graph", JsonString(graph_path)},
      {"nodes", absl::StrCat(summary.nodes)},
      {"functions", absl::StrCat(summary.functions)},
      {"signatures", JsonArrayOf(summary.signatures, SignatureJson)},
      {"inputs", JsonArrayOf(summary.inputs, TensorJson)},
      {"inputs_are_placeholders", summary.placeholders ? "true" : "false"},
      {"variables", JsonArrayOf(summary.variables, TensorJson)},
      {"likely_outputs", JsonArrayOf(summary.likely_outputs, OutputJson)},
      {"outputs", JsonArrayOf(summary.outputs, OutputJson)},
      {"const_parameters", absl::StrCat(summary.const_parameters)},
      {"variable_parameters", absl::StrCat(summary.variable_parameters)},
      {"control_edges", absl::StrCat(summary.control_edges)},
      {"devices", JsonCounts(summary.devices)},
      {"ops", JsonCounts(summary.ops)},
      {"invalid_inputs", JsonArrayOf(summary.invalid_inputs, invalid)},
      {"problems", JsonArrayOf(summary.problems, JsonString)},
      {"benchmark_model", JsonString(BenchmarkArguments(summary, graph_path))},
      {"commands", JsonArrayOf(NextCommands(summary, graph_path), JsonString)}};
  if (structure != nullptr) {
    const std::vector<int> order = GraphWiring(*structure).ExecutionOrder();
    members.emplace_back("structure", JsonArrayOf(order, [&](int node) {
                           return NodeJson(structure->node(node));
                         }));
  }
  return JsonObject(members) + "\n";
}

std::string StructureReport(const tensorflow::GraphDef& graph) {
  std::string text;
  int64_t unfolded_bytes = int64_t{1} << 28;
  for (const int i : GraphWiring(graph).ExecutionOrder()) {
    const NodeDef& node = graph.node(i);
    absl::StrAppend(&text, Printable(node.name()), " (", Printable(node.op()),
                    "): [", absl::StrJoin(Map(node.input(), Printable), ", "),
                    "]");
    if (node.op() == "Const") {
      absl::StrAppend(&text, ConstText(node, &unfolded_bytes));
    }
    text.push_back('\n');
  }
  return text;
}

}  // namespace requant
