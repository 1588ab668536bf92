#include "graph/signature_names.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/map.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::SignatureDef;
using tensorflow::TensorInfo;
using SignatureMap = google::protobuf::Map<std::string, TensorInfo>;

// Lists of "PORT:NAME".
constexpr char kInputNames[] = "_requant_inputs";
constexpr char kOutputNames[] = "_requant_outputs";

void WriteNames(const SignatureMap& tensors, const char* attribute,
                GraphDef* graph) {
  // Protobuf maps are unordered.
  absl::flat_hash_map<std::string, std::vector<std::string>> names;
  for (const auto& [name, info] :
       std::map<std::string, TensorInfo>(tensors.begin(), tensors.end())) {
    if (info.name().empty()) continue;
    const TensorName tensor = ParseTensorName(info.name());
    names[std::string(tensor.node)].push_back(
        absl::StrCat(tensor.port, ":", name));
  }
  if (names.empty()) return;
  for (NodeDef& node : *graph->mutable_node()) {
    const auto found = names.find(node.name());
    if (found == names.end()) continue;
    auto* list = (*node.mutable_attr())[attribute].mutable_list();
    list->mutable_s()->Assign(found->second.begin(), found->second.end());
  }
}

// Returns the type of output `port` of an Identity or IdentityN, if it is one.
DataType OutputType(const NodeDef& node, int port) {
  const auto type = node.attr().find("T");
  if (type == node.attr().end()) return tensorflow::DT_INVALID;
  if (node.op() == "Identity") return type->second.type();
  const auto& types = type->second.list().type();
  if (node.op() != "IdentityN" || port >= types.size()) {
    return tensorflow::DT_INVALID;
  }
  return static_cast<DataType>(types[port]);
}

void AddInput(const NodeDef& node, TensorInfo* info) {
  const auto type = node.attr().find("dtype");
  if (type != node.attr().end()) info->set_dtype(type->second.type());
  const auto shape = node.attr().find("shape");
  if (shape != node.attr().end()) {
    *info->mutable_tensor_shape() = shape->second.shape();
  } else {
    info->mutable_tensor_shape()->set_unknown_rank(true);
  }
}

// Calls `add` with the name and the port of each of the node's names.
template <typename Add>
void VisitNames(const NodeDef& node, const char* attribute, const Add& add) {
  const auto found = node.attr().find(attribute);
  if (found == node.attr().end()) return;
  for (const std::string_view text : found->second.list().s()) {
    const size_t colon = text.find(':');
    int port = 0;
    if (colon == text.npos || colon + 1 == text.size() ||
        !absl::SimpleAtoi(text.substr(0, colon), &port) || port < 0) {
      continue;
    }
    add(std::string(text.substr(colon + 1)), port);
  }
}

}  // namespace

bool NeedsSignatureNames(const SignatureDef& signature) {
  return absl::c_any_of(signature.outputs(), [](const auto& output) {
    return absl::StrContains(output.second.name(), "PartitionedCall");
  });
}

void KeepSignatureNames(const SignatureDef& signature, GraphDef* graph) {
  WriteNames(signature.inputs(), kInputNames, graph);
  WriteNames(signature.outputs(), kOutputNames, graph);
}

SignatureDef KeptSignature(const GraphDef& graph) {
  SignatureDef signature;
  for (const NodeDef& node : graph.node()) {
    const auto tensor = [&](int port) {
      return absl::StrCat(node.name(), ":", port);
    };
    VisitNames(node, kOutputNames, [&](const std::string& name, int port) {
      TensorInfo& info = (*signature.mutable_outputs())[name];
      info.set_name(tensor(port));
      info.set_dtype(OutputType(node, port));
      info.mutable_tensor_shape()->set_unknown_rank(true);
    });
    if (!absl::StartsWith(node.op(), "Placeholder")) continue;
    VisitNames(node, kInputNames, [&](const std::string& name, int port) {
      TensorInfo& info = (*signature.mutable_inputs())[name];
      info.set_name(tensor(port));
      AddInput(node, &info);
    });
  }
  return signature;
}

}  // namespace requant
