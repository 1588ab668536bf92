#include "graph/saved_model/saved_model_references.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/nearest_name.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "tensorflow/core/protobuf/saved_object_graph.pb.h"

namespace requant {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::SavedObject;
using tensorflow::SavedObjectGraph;
using tensorflow::SignatureDef;
using tensorflow::TensorInfo;

// Returns the tensors of a dense, sparse or composite value.
std::vector<std::string> TensorsOf(const TensorInfo& info) {
  std::vector<std::string> names;
  switch (info.encoding_case()) {
    case TensorInfo::kName:
      names = {info.name()};
      break;
    case TensorInfo::kCooSparse:
      names = {info.coo_sparse().values_tensor_name(),
               info.coo_sparse().indices_tensor_name(),
               info.coo_sparse().dense_shape_tensor_name()};
      break;
    case TensorInfo::kCompositeTensor:
      for (const TensorInfo& part : info.composite_tensor().components()) {
        for (std::string& name : TensorsOf(part)) {
          names.push_back(std::move(name));
        }
      }
      break;
    default:
      break;
  }
  return names;
}

OpDef ArgumentsOf(const OpDef& signature) {
  OpDef arguments;
  *arguments.mutable_input_arg() = signature.input_arg();
  *arguments.mutable_output_arg() = signature.output_arg();
  return arguments;
}

std::vector<std::string> Keys(const std::map<std::string, std::string>& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

}  // namespace

SavedModelReferences::SavedModelReferences(const MetaGraphDef& meta,
                                           const GraphDef& graph) {
  AddSignatures(meta);
  AddNode(meta.saver_def().filename_tensor_name(), "the saver");
  AddNode(meta.saver_def().save_tensor_name(), "the saver");
  AddNode(meta.saver_def().restore_op_name(), "the saver");
  for (const auto& asset : meta.asset_file_def()) {
    for (const std::string& name : TensorsOf(asset.tensor_info())) {
      AddNode(name, absl::StrCat("the asset ", asset.filename()));
    }
  }
  for (const auto& [key, collection] : meta.collection_def()) {
    for (const std::string& name : collection.node_list().value()) {
      AddNode(name, absl::StrCat("the collection \"", key, "\""));
    }
  }
  AddObjects(meta);
  KeepThoseOf(graph);
}

void SavedModelReferences::AddNode(const std::string& tensor,
                                   const std::string& owner) {
  const std::string node(ParseTensorName(tensor).node);
  if (!node.empty()) nodes_.emplace(node, owner);
}

void SavedModelReferences::AddSignatures(const MetaGraphDef& meta) {
  const std::map<std::string, SignatureDef> signatures(
      meta.signature_def().begin(), meta.signature_def().end());
  for (const auto& [key, signature] : signatures) {
    const std::string owner = absl::StrCat("the signature \"", key, "\"");
    for (const auto& [name, info] : signature.outputs()) {
      for (const std::string& tensor : TensorsOf(info)) AddNode(tensor, owner);
    }
    for (const auto& [name, info] : signature.inputs()) {
      for (const std::string& tensor : TensorsOf(info)) {
        input_nodes_.emplace(ParseTensorName(tensor).node, owner);
      }
    }
  }
}

// Python's loader calls functions by these names and binds what they captured
// to their last arguments.
void SavedModelReferences::AddObjects(const MetaGraphDef& meta) {
  const SavedObjectGraph& objects = meta.object_graph_def();
  for (const auto& [name, function] : objects.concrete_functions()) {
    functions_[name];
  }
  for (const SavedObject& object : objects.nodes()) {
    for (const std::string& name : object.function().concrete_functions()) {
      functions_[name];
    }
    if (object.has_bare_concrete_function()) {
      functions_[object.bare_concrete_function().concrete_function_name()];
    }
    AddNode(object.constant().operation(), "a constant of the model's objects");
    AddNode(object.captured_tensor().name(), "a tensor of the model's objects");
  }
}

void SavedModelReferences::KeepThoseOf(const GraphDef& graph) {
  std::set<std::string> present;
  for (const NodeDef& node : graph.node()) present.insert(node.name());
  for (auto* nodes : {&nodes_, &input_nodes_}) {
    for (auto at = nodes->begin(); at != nodes->end();) {
      at = present.count(at->first) > 0 ? std::next(at) : nodes->erase(at);
    }
  }
  std::map<std::string, OpDef> functions;
  for (const FunctionDef& function : graph.library().function()) {
    const std::string& name = function.signature().name();
    if (functions_.count(name) > 0) {
      functions[name] = ArgumentsOf(function.signature());
    }
  }
  functions_ = std::move(functions);
}

std::vector<std::string> SavedModelReferences::inputs() const {
  return Keys(input_nodes_);
}

std::vector<std::string> SavedModelReferences::outputs() const {
  return Keys(nodes_);
}

absl::Status SavedModelReferences::Check(const GraphDef& graph) const {
  std::set<std::string> present;
  for (const NodeDef& node : graph.node()) present.insert(node.name());
  for (const auto* nodes : {&nodes_, &input_nodes_}) {
    for (const auto& [node, owner] : *nodes) {
      if (present.count(node) > 0) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "the transforms removed the node \"", node, "\", which ", owner,
          " of the model names; such a model could not be loaded"));
    }
  }
  std::map<std::string, const OpDef*> functions;
  for (const FunctionDef& function : graph.library().function()) {
    functions[function.signature().name()] = &function.signature();
  }
  for (const auto& [name, arguments] : functions_) {
    const auto found = functions.find(name);
    const bool changed = found != functions.end() &&
                         !SameMessage(arguments, ArgumentsOf(*found->second));
    if (found != functions.end() && !changed) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the transforms ", changed ? "changed the arguments of" : "removed",
        " the function \"", name,
        "\", which an object of the model calls; such a model could not be "
        "loaded in Python"));
  }
  return absl::OkStatus();
}

std::vector<std::string> SignatureNames(const MetaGraphDef& meta) {
  std::vector<std::string> names;
  for (const auto& [name, signature] : meta.signature_def()) {
    // TensorFlow's own.
    if (!absl::StartsWith(name, "__saved_model_")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status CheckSignature(const MetaGraphDef& meta, const std::string& name,
                            const std::string& directory) {
  if (meta.signature_def().contains(name)) return absl::OkStatus();
  const std::vector<std::string> names = SignatureNames(meta);
  return absl::NotFoundError(absl::StrCat(
      directory, " has no signature \"", name, "\"", DidYouMean(name, names),
      "; it has ", names.empty() ? "none at all" : absl::StrJoin(names, ", ")));
}

}  // namespace requant
