#include "graph/saved_model/saved_model_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/wire_format_lite.h"
#include "graph/freeze/checkpoint.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/graph_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::SavedModel;
using tensorflow::SavedObject;
using tensorflow::SignatureDef;
using tensorflow::TensorInfo;

namespace {

// A field of a serialized message, which is taken apart and reassembled without
// being parsed, so that untouched parts keep their bytes.
struct MessageField {
  // 0 unless the wire type is that of messages, strings and bytes: under such a
  // field's number any other wire type is unknown to every message.
  int number = 0;
  // The field including its tag.
  std::string_view bytes;
  // Its content, if it has a number.
  std::string_view payload;
};

// Reads the rest of a field with this tag.
bool SkipField(std::string_view message, uint32_t tag, CodedInputStream* input,
               MessageField* field) {
  if (WireFormatLite::GetTagWireType(tag) !=
      WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
    return WireFormatLite::SkipField(input, tag);
  }
  uint32_t size;
  if (!input->ReadVarint32(&size)) return false;
  const size_t begin = input->CurrentPosition();
  if (size > message.size() - begin) return false;
  field->number = WireFormatLite::GetTagFieldNumber(tag);
  field->payload = message.substr(begin, size);
  return input->Skip(static_cast<int>(size));
}

// Splits a serialized message, which has been parsed before, into its fields in
// order, as views of `message`.
std::vector<MessageField> Fields(std::string_view message) {
  std::vector<MessageField> fields;
  CodedInputStream input(reinterpret_cast<const uint8_t*>(message.data()),
                         static_cast<int>(message.size()));
  input.SetTotalBytesLimit(std::numeric_limits<int>::max());
  while (true) {
    const size_t begin = input.CurrentPosition();
    const uint32_t tag = input.ReadTag();
    MessageField field;
    if (tag == 0 || !SkipField(message, tag, &input, &field)) return fields;
    field.bytes = message.substr(begin, input.CurrentPosition() - begin);
    fields.push_back(field);
  }
}

// Returns the concatenated payloads of all fields with that number, because a
// serializer may write a submessage in parts.
std::string JoinedPayload(const std::vector<MessageField>& fields, int number) {
  std::string joined;
  for (const MessageField& field : fields) {
    if (field.number == number) joined.append(field.payload);
  }
  return joined;
}

// Appends a field of type message, string or bytes.
void AppendField(int number, std::string_view payload, std::string* message) {
  constexpr int kMostHeaderBytes = 10;
  uint8_t header[kMostHeaderBytes];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(
      WireFormatLite::MakeTag(number,
                              WireFormatLite::WIRETYPE_LENGTH_DELIMITED),
      header);
  end = CodedOutputStream::WriteVarint32ToArray(
      static_cast<uint32_t>(payload.size()), end);
  message->append(reinterpret_cast<const char*>(header), end - header);
  message->append(payload);
}

constexpr int kMetaGraphs = SavedModel::kMetaGraphsFieldNumber;
constexpr int kMetaInfo = MetaGraphDef::kMetaInfoDefFieldNumber;
constexpr int kGraph = MetaGraphDef::kGraphDefFieldNumber;

absl::Status TooLarge(const std::string& path) {
  return absl::OutOfRangeError(absl::StrCat(
      "the new graph of ", path,
      " would take more than the 2 GB that a protocol buffer holds"));
}

std::set<std::string> OpsOf(const GraphDef& graph) {
  std::set<std::string> ops;
  for (const NodeDef& node : graph.node()) ops.insert(node.op());
  for (const FunctionDef& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) ops.insert(node.op());
  }
  for (const FunctionDef& function : graph.library().function()) {
    ops.erase(function.signature().name());
  }
  return ops;
}

// Returns the MetaGraph `bytes`, which has `info`, with a different graph.
std::string Replaced(std::string_view bytes, MetaGraphDef::MetaInfoDef info,
                     const GraphDef& graph, const std::string& graph_bytes) {
  const bool new_info = info.has_stripped_op_list() && AddOps(graph, &info);
  std::string meta;
  bool has_graph = false, has_info = false;
  for (const MessageField& field : Fields(bytes)) {
    if (field.number == kGraph) {
      if (!std::exchange(has_graph, true)) {
        AppendField(kGraph, graph_bytes, &meta);
      }
    } else if (field.number == kMetaInfo && new_info) {
      if (!std::exchange(has_info, true)) {
        AppendField(kMetaInfo, DeterministicBytes(info), &meta);
      }
    } else {
      meta.append(field.bytes);
    }
  }
  if (!has_graph) AppendField(kGraph, graph_bytes, &meta);
  return meta;
}

absl::StatusOr<std::string> AsText(const std::string& path,
                                   const std::string& content) {
  SavedModel model;
  std::string text;
  if (!model.ParseFromString(content) ||
      !google::protobuf::TextFormat::PrintToString(model, &text)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the new content of ", path, " could not be printed"));
  }
  return text;
}

namespace fs = std::filesystem;

constexpr char kInnerFolder[] = "saved_model";

bool IsVersion(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isdigit(c);
  });
}

// Returns whether there is a SavedModel, even of a form that we do not read.
bool HasModel(const fs::path& folder) {
  std::error_code ignored;
  return IsSavedModelDirectory(folder.string()) ||
         fs::exists(folder / "saved_model.cpb", ignored);
}

// Returns the SavedModels in the version subfolders of `folder`.
std::vector<std::string> Versions(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (IsVersion(at->path().filename().string()) && HasModel(at->path())) {
      found.push_back(at->path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

absl::Status NoModel(const std::string& path) {
  std::error_code error;
  const bool empty = fs::is_empty(path, error) && !error;
  return absl::NotFoundError(absl::StrCat(
      path, empty ? " is an empty folder" : " is not a SavedModel",
      ": there is no saved_model.pb in it, nor in a saved_model or a version "
      "(1, 2, …) below it"));
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

bool AddOps(const GraphDef& graph, MetaGraphDef::MetaInfoDef* info) {
  std::map<std::string, OpDef> ops;
  for (const OpDef& op : info->stripped_op_list().op()) ops[op.name()] = op;
  const size_t before = ops.size();
  for (const std::string& name : OpsOf(graph)) {
    const OpDef* op = nullptr;
    if (ops.count(name) > 0 ||
        !tensorflow::OpRegistry::Global()->LookUpOpDef(name, &op).ok()) {
      continue;
    }
    ops[name] = *op;
    tensorflow::RemoveDescriptionsFromOpDef(&ops[name]);
  }
  if (ops.size() == before) return false;
  auto* list = info->mutable_stripped_op_list()->mutable_op();
  list->Clear();
  for (auto& [name, op] : ops) list->Add(std::move(op));
  return true;
}

void StripDefaultValues(GraphDef* graph) {
  const auto& registry = *tensorflow::OpRegistry::Global();
  tensorflow::StripDefaultAttributes(registry, graph->mutable_node());
  for (auto& function : *graph->mutable_library()->mutable_function()) {
    tensorflow::StripDefaultAttributes(registry, function.mutable_node_def());
  }
}

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

absl::StatusOr<SavedModelFile> SavedModelFile::Read(
    const std::string& directory, const std::set<std::string>& tags) {
  REQUANT_ASSIGN_OR_RETURN(SavedModelContent read,
                           ReadSavedModelContent(directory, tags));
  SavedModelFile file;
  file.path_ = std::move(read.path);
  file.name_ = file.path_.substr(file.path_.rfind('/') + 1);
  file.is_text_ = read.is_text;
  file.content_ =
      read.is_text ? DeterministicBytes(read.model) : std::move(read.bytes);
  file.chosen_ = read.chosen;
  file.meta_ = std::move(*read.model.mutable_meta_graphs(read.chosen));
  int index = 0;
  for (const MessageField& field : Fields(file.content_)) {
    if (field.number == kMetaGraphs && index++ == file.chosen_) {
      file.graph_bytes_ = JoinedPayload(Fields(field.payload), kGraph);
    }
  }
  return file;
}

GraphDef SavedModelFile::TakeGraph() {
  GraphDef graph = std::move(*meta_.mutable_graph_def());
  meta_.clear_graph_def();
  return graph;
}

absl::StatusOr<std::string> SavedModelFile::WithGraph(
    const GraphDef& graph, const std::string& graph_bytes) const {
  // This check comes before anything of that size is assembled.
  if (content_.size() - graph_bytes_.size() + graph_bytes.size() >
      static_cast<size_t>(kMaxGraphBytes)) {
    return TooLarge(path_);
  }
  std::string content;
  int index = 0;
  for (const MessageField& field : Fields(content_)) {
    if (field.number != kMetaGraphs || index++ != chosen_) {
      content.append(field.bytes);
      continue;
    }
    AppendField(
        kMetaGraphs,
        Replaced(field.payload, meta_.meta_info_def(), graph, graph_bytes),
        &content);
  }
  if (content.size() > static_cast<size_t>(kMaxGraphBytes)) {
    return TooLarge(path_);
  }
  return is_text_ ? AsText(path_, content) : content;
}

absl::StatusOr<std::string> FindSavedModel(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  std::string directory = SavedModelDirectory(path);
  if (directory.empty()) {
    REQUANT_RETURN_IF_ERROR(CheckModelFormat(path));
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is not a SavedModel but a file; name the folder with "
                     "saved_model.pb"));
  }
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  if (HasModel(directory)) return directory;
  const fs::path inner = fs::path(directory) / kInnerFolder;
  if (HasModel(inner)) return inner.string();
  std::vector<std::string> found = Versions(directory);
  for (const std::string& version : Versions(inner)) found.push_back(version);
  if (found.size() == 1) return found[0];
  if (found.empty()) return NoModel(path);
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has several SavedModels: name one of ",
                   absl::StrJoin(found, ", ")));
}

std::string SavedModelName(const std::string& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string last = path.filename().string();
  if (IsVersion(path.filename().string())) path = path.parent_path();
  if (path.filename() == kInnerFolder) path = path.parent_path();
  return path.has_filename() ? path.filename().string() : last;
}

absl::Status CheckVariables(const std::string& directory,
                            const GraphDef& graph) {
  const std::string prefix = absl::StrCat(directory, "/variables/variables");
  struct stat info;
  if (stat((prefix + ".index").c_str(), &info) != 0) {
    if (absl::c_none_of(graph.node(), IsVariable)) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(
        directory, " has variables but not their values: ", prefix,
        ".index is missing; copy the whole folder \"variables\" too"));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint,
                           Checkpoint::Open(prefix));
  return checkpoint->CheckData();
}

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

// Python's loader calls functions by these names and binds captured values to
// their last arguments.
void SavedModelReferences::AddObjects(const MetaGraphDef& meta) {
  const auto& objects = meta.object_graph_def();
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
    // This is a signature internal to TensorFlow.
    if (!absl::StartsWith(name, "__saved_model_")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string MeantSignature(const MetaGraphDef& meta,
                           const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const std::vector<std::string> names = SignatureNames(meta);
  return names.size() == 1 ? names.front() : "serving_default";
}

absl::Status CheckSignature(const MetaGraphDef& meta, const std::string& name,
                            const std::string& directory) {
  const std::vector<std::string> names = SignatureNames(meta);
  if (std::binary_search(names.begin(), names.end(), name)) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat(
      directory, " has no signature \"", name, "\"", DidYouMean(name, names),
      "; it has ", names.empty() ? "none at all" : absl::StrJoin(names, ", ")));
}

}  // namespace requant
