#include "graph/freeze/freeze.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/text_format.h"
#include "graph/const_node.h"
#include "graph/freeze/checkpoint.h"
#include "graph/freeze/freeze_parts.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/signature_names.h"
#include "graph/verify/verify.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saver.pb.h"

namespace requant {

using tensorflow::AssetFileDef;
using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::SaverDef;
using tensorflow::SignatureDef;

namespace {

constexpr char kServingSignature[] = "serving_default";
// Signatures with this prefix are internal to TensorFlow.
constexpr char kInternalPrefix[] = "__saved_model_";
constexpr char kInitSignature[] = "__saved_model_init_op";
constexpr char kDefaultRestoreOp[] = "save/restore_all";

std::string NodeName(std::string_view tensor) {
  return std::string(ParseTensorName(tensor).node);
}

void AddOnce(const std::string& name, std::vector<std::string>* names) {
  if (!name.empty() &&
      std::find(names->begin(), names->end(), name) == names->end()) {
    names->push_back(name);
  }
}

// Returns the output nodes of a signature, sorted by their keys.
std::vector<std::string> OutputsOf(const SignatureDef& signature) {
  const std::map<std::string, tensorflow::TensorInfo> outputs(
      signature.outputs().begin(), signature.outputs().end());
  std::vector<std::string> names;
  for (const auto& [key, info] : outputs) {
    AddOnce(NodeName(info.name()), &names);
    AddOnce(NodeName(info.coo_sparse().values_tensor_name()), &names);
    AddOnce(NodeName(info.coo_sparse().indices_tensor_name()), &names);
    AddOnce(NodeName(info.coo_sparse().dense_shape_tensor_name()), &names);
  }
  return names;
}

using SignaturesByKey = std::map<std::string, SignatureDef>;

// Returns the signatures that users see.
SignaturesByKey UserSignatures(const MetaGraphDef& meta) {
  SignaturesByKey signatures;
  for (const auto& [key, signature] : meta.signature_def()) {
    if (!absl::StartsWith(key, kInternalPrefix)) signatures[key] = signature;
  }
  return signatures;
}

// Returns the serving signature, or the only one, of those that have all of
// `outputs`; an empty one if there is none.
SignatureDef ChooseSignature(const SignaturesByKey& signatures,
                             const std::vector<std::string>& outputs) {
  const SignatureDef* chosen = nullptr;
  int count = 0;
  for (const auto& [key, signature] : signatures) {
    const std::vector<std::string> own = OutputsOf(signature);
    if (!absl::c_all_of(outputs, [&](const std::string& name) {
          return absl::c_linear_search(own, name);
        })) {
      continue;
    }
    if (key == kServingSignature) return signature;
    chosen = &signature;
    ++count;
  }
  return count == 1 ? *chosen : SignatureDef();
}

// Returns the outputs of all signatures, in the order of their keys.
std::vector<std::string> AllOutputs(const SignaturesByKey& signatures) {
  std::vector<std::string> names;
  for (const auto& [key, signature] : signatures) {
    for (const std::string& name : OutputsOf(signature)) {
      AddOnce(name, &names);
    }
  }
  return names;
}

std::vector<std::string> InitializersOf(const MetaGraphDef& meta) {
  std::vector<std::string> names;
  for (const char* key :
       {"saved_model_main_op", "legacy_init_op", "table_initializer"}) {
    const auto found = meta.collection_def().find(key);
    if (found == meta.collection_def().end()) continue;
    for (const std::string& name : found->second.node_list().value()) {
      AddOnce(NodeName(name), &names);
    }
  }
  const auto signature = meta.signature_def().find(kInitSignature);
  if (signature != meta.signature_def().end()) {
    for (const std::string& name : OutputsOf(signature->second)) {
      AddOnce(name, &names);
    }
  }
  return names;
}

// Returns the model's asset files, which TensorFlow 1 lists in a collection.
std::map<std::string, std::string> AssetsOf(const MetaGraphDef& meta,
                                            const std::string& directory) {
  std::vector<AssetFileDef> assets(meta.asset_file_def().begin(),
                                   meta.asset_file_def().end());
  const auto collection = meta.collection_def().find("saved_model_assets");
  if (collection != meta.collection_def().end()) {
    for (const auto& any : collection->second.any_list().value()) {
      AssetFileDef asset;
      if (asset.ParseFromString(any.value())) assets.push_back(asset);
    }
  }
  std::map<std::string, std::string> paths;
  for (const AssetFileDef& asset : assets) {
    paths[NodeName(asset.tensor_info().name())] =
        absl::StrCat(directory, "/assets/", asset.filename());
  }
  return paths;
}

void TakeMetaGraph(MetaGraphDef meta, FreezeInput* model) {
  model->restore_op = NodeName(meta.saver_def().restore_op_name());
  model->initializers = InitializersOf(meta);
  model->signatures = UserSignatures(meta);
  model->graph = std::move(*meta.mutable_graph_def());
}

absl::Status ReadSaved(const ModelFiles& files, FreezeInput* model) {
  const std::string directory = SavedModelDirectory(files.saved_model);
  if (directory.empty()) {
    return absl::NotFoundError(
        absl::StrCat(files.saved_model, " is not a SavedModel directory"));
  }
  REQUANT_ASSIGN_OR_RETURN(MetaGraphDef meta,
                           ReadSavedModel(directory, files.tags));
  model->assets = AssetsOf(meta, directory);
  model->checkpoint = absl::StrCat(directory, "/variables/variables");
  TakeMetaGraph(std::move(meta), model);
  return absl::OkStatus();
}

// Parses a message in binary or text format.
absl::Status ReadMessage(const std::string& path, const char* kind,
                         google::protobuf::Message* message) {
  REQUANT_ASSIGN_OR_RETURN(const std::string content,
                           ReadFile(path, kMaxGraphBytes));
  if (message->ParseFromString(content) ||
      google::protobuf::TextFormat::ParseFromString(content, message)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is not a binary or text ", kind));
}

absl::Status ReadMetaGraph(const ModelFiles& files, FreezeInput* model) {
  MetaGraphDef meta;
  REQUANT_RETURN_IF_ERROR(ReadMessage(files.meta_graph, "MetaGraphDef", &meta));
  if (meta.graph_def().node_size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.meta_graph, " is not a MetaGraphDef with a graph"));
  }
  std::string_view prefix = files.meta_graph;
  if (absl::ConsumeSuffix(&prefix, ".meta")) {
    model->checkpoint = std::string(prefix);
  }
  TakeMetaGraph(std::move(meta), model);
  return absl::OkStatus();
}

absl::StatusOr<FreezeInput> ReadModel(const ModelFiles& files) {
  FreezeInput model;
  if (!files.saved_model.empty()) {
    REQUANT_RETURN_IF_ERROR(ReadSaved(files, &model));
  } else if (!files.meta_graph.empty()) {
    REQUANT_RETURN_IF_ERROR(ReadMetaGraph(files, &model));
  } else {
    REQUANT_ASSIGN_OR_RETURN(model.graph, ReadGraph(files.graph, files.tags));
  }
  if (!files.checkpoint.empty()) model.checkpoint = files.checkpoint;
  if (!files.saver.empty()) {
    SaverDef saver;
    REQUANT_RETURN_IF_ERROR(ReadMessage(files.saver, "SaverDef", &saver));
    model.restore_op = NodeName(saver.restore_op_name());
  } else if (!files.restore_op.empty()) {
    model.restore_op = files.restore_op;
  } else if (model.restore_op.empty()) {
    model.restore_op = kDefaultRestoreOp;
  }
  return model;
}

// Returns a SavedModel's own files; its directory may contain others.
std::vector<std::string> SavedFiles(const std::string& directory) {
  std::vector<std::string> files;
  for (const char* name : {"saved_model.pb", "saved_model.pbtxt",
                           "fingerprint.pb", "keras_metadata.pb"}) {
    files.push_back(absl::StrCat(directory, "/", name));
  }
  for (const char* folder : {"variables", "assets", "assets.extra"}) {
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator
             entry(absl::StrCat(directory, "/", folder), error),
         end;
         !error && entry != end; entry.increment(error)) {
      files.push_back(entry->path());
    }
  }
  return files;
}

// Values up to this size are in the graph for verification, because shapes
// depend on small ones. Larger ones are read later, so they are in memory once.
constexpr int64_t kSmallBytes = 1 << 16;

class Freezer {
 public:
  explicit Freezer(const FreezeOptions& options) : options_(options) {}

  absl::StatusOr<FrozenGraph> Run();

 private:
  absl::Status ChooseOutputs();
  absl::Status CheckNames();
  absl::Status Inline();
  absl::Status Reduce();
  absl::Status FindVariables();
  absl::Status CheckSize();
  absl::Status ReplaceVariables();
  absl::Status Verify();
  absl::Status FillIn(bool small);
  bool IsToBeFrozen(const NodeDef& node) const;
  absl::StatusOr<const Checkpoint*> OpenCheckpoint();

  GraphDef& graph() { return model_.graph; }

  const FreezeOptions& options_;
  FreezeInput model_;
  // The signature whose names the graph keeps; empty if there is none.
  SignatureDef signature_;
  std::unique_ptr<Checkpoint> checkpoint_;
  RestorePlan plan_;
  std::vector<FrozenVariable> variables_;
  // Omitted nodes that change variables and that the outputs would have run.
  std::vector<std::string> left_out_;
  FrozenGraph result_;
};

absl::StatusOr<const Checkpoint*> Freezer::OpenCheckpoint() {
  if (checkpoint_ == nullptr) {
    if (model_.checkpoint.empty()) {
      return absl::InvalidArgumentError(
          "the graph has variables; name the checkpoint with their values "
          "(--input_checkpoint)");
    }
    REQUANT_ASSIGN_OR_RETURN(checkpoint_, Checkpoint::Open(model_.checkpoint));
  }
  return checkpoint_.get();
}

absl::Status Freezer::ChooseOutputs() {
  std::vector<std::string>& outputs = result_.outputs;
  for (const std::string& name : options_.outputs) {
    outputs.emplace_back(ParseTensorName(name).node);
  }
  signature_ = ChooseSignature(model_.signatures, outputs);
  // What the model computes within has the names of its inputs.
  if (signature_.outputs().empty()) {
    signature_ = ChooseSignature(model_.signatures, {});
  }
  if (outputs.empty()) {
    outputs = options_.all_signatures ? AllOutputs(model_.signatures)
                                      : OutputsOf(signature_);
  }
  if (outputs.empty()) {
    return absl::InvalidArgumentError(
        "which nodes are the outputs? Name them with --output_node_names "
        "(requant summarize lists likely ones)");
  }
  return absl::OkStatus();
}

absl::Status Freezer::CheckNames() {
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> known;
  for (const NodeDef& node : graph().node()) {
    names.push_back(node.name());
    known.insert(node.name());
  }
  const auto check = [&](const auto& wanted, const char* kind) {
    for (const std::string& name : wanted) {
      if (known.contains(name)) continue;
      return absl::NotFoundError(absl::StrCat("the graph has no ", kind, " \"",
                                              name, "\"",
                                              DidYouMean(name, names)));
    }
    return absl::OkStatus();
  };
  REQUANT_RETURN_IF_ERROR(check(result_.outputs, "output node"));
  REQUANT_RETURN_IF_ERROR(check(options_.initializers, "initializer node"));
  REQUANT_RETURN_IF_ERROR(check(options_.only_variables, "variable"));
  REQUANT_RETURN_IF_ERROR(check(options_.kept_variables, "variable"));
  if (!options_.files.restore_op.empty() &&
      !known.contains(options_.files.restore_op)) {
    result_.notes.push_back(absl::StrCat(
        "the graph has no node \"", options_.files.restore_op,
        "\" that restores variables; they are looked up by their names"));
  }
  return absl::OkStatus();
}

absl::Status Freezer::Inline() {
  // This reports problems that no later step could name.
  REQUANT_RETURN_IF_ERROR(GraphIndex::Create(&graph()).status());
  model_.initializers.insert(model_.initializers.end(),
                             options_.initializers.begin(),
                             options_.initializers.end());
  InlineOptions inlining;
  inlining.outputs = result_.outputs;
  inlining.effects = model_.initializers;
  inlining.effects.push_back(model_.restore_op);
  REQUANT_ASSIGN_OR_RETURN(result_.inlined_calls,
                           InlineFunctions(inlining, &graph()));
  return absl::OkStatus();
}

// Keeps only what the outputs need, with tables that fill themselves.
absl::Status Freezer::Reduce() {
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(&graph()));
  plan_ = FindRestored(index, model_.restore_op);
  REQUANT_ASSIGN_OR_RETURN(
      result_.tables,
      KeepTablesFilled(
          result_.outputs, model_, [this] { return OpenCheckpoint(); }, &index,
          &result_.vocabularies));
  const NodeSet before = NeededNodes(index, result_.outputs);
  DropControlsOnState(&index);
  const NodeSet after = NeededNodes(index, result_.outputs);
  for (const NodeDef& node : graph().node()) {
    if (before.contains(&node) && !after.contains(&node) &&
        ChangesVariables(node.op())) {
      left_out_.push_back(node.name());
    }
  }
  return KeepNeeded(result_.outputs, &graph());
}

bool Freezer::IsToBeFrozen(const NodeDef& node) const {
  if (!IsVariable(node)) return false;
  const auto& only = options_.only_variables;
  if (!only.empty() && only.count(node.name()) == 0) return false;
  return options_.kept_variables.count(node.name()) == 0;
}

absl::Status Freezer::FindVariables() {
  int kept = 0;
  for (const NodeDef& node : graph().node()) {
    if (!IsToBeFrozen(node)) {
      kept += IsVariable(node) ? 1 : 0;
      continue;
    }
    REQUANT_ASSIGN_OR_RETURN(const Checkpoint* checkpoint, OpenCheckpoint());
    REQUANT_ASSIGN_OR_RETURN(FrozenVariable variable,
                             FindVariable(node, plan_, *checkpoint));
    result_.variable_bytes += variable.entry.bytes;
    variables_.push_back(std::move(variable));
  }
  result_.variables = variables_.size();
  if (kept > 0) {
    result_.notes.push_back(absl::StrCat(
        kept,
        kept == 1 ? " variable stays a variable" : " variables stay variables",
        "; whoever runs the graph has to restore it"));
  }
  return absl::OkStatus();
}

absl::Status Freezer::CheckSize() {
  const int64_t bytes = graph().ByteSizeLong() + result_.variable_bytes;
  if (bytes <= kMaxGraphBytes || options_.stays_in_memory)
    return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("the frozen graph would take ", bytes, " bytes (",
                   result_.variable_bytes, " in ", result_.variables,
                   " variables); a protocol buffer holds at most 2 GB"));
}

absl::Status Freezer::ReplaceVariables() {
  REQUANT_ASSIGN_OR_RETURN(const GraphIndex index,
                           GraphIndex::Create(&graph()));
  std::vector<FrozenValue> values;
  for (const FrozenVariable& variable : variables_) {
    FrozenValue value;
    value.variable = variable.node;
    value.dtype = variable.entry.dtype;
    variable.entry.shape.AsProto(&value.shape);
    value.is_reference = IsReferenceVariable(*index.Find(variable.node));
    values.push_back(std::move(value));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> dropped,
                           HandOutValues(values, &graph()));
  for (const FrozenValue& value : values) {
    NodeDef* node = index.Find(value.variable);
    // The node is changed in place because the index refers to its name.
    node->set_op("Const");
    node->clear_input();
    node->clear_attr();
    node->clear_experimental_debug_info();
    node->clear_experimental_type();
    (*node->mutable_attr())["dtype"].set_type(value.dtype);
    auto* tensor = (*node->mutable_attr())["value"].mutable_tensor();
    tensor->set_dtype(value.dtype);
    *tensor->mutable_tensor_shape() = value.shape;
  }
  left_out_.insert(left_out_.end(), dropped.begin(), dropped.end());
  if (!left_out_.empty()) {
    result_.notes.push_back(absl::StrCat(
        "what changes variables is left out: ", left_out_[0],
        left_out_.size() == 1
            ? ""
            : absl::StrCat(" and ", left_out_.size() - 1, " more")));
  }
  return absl::OkStatus();
}

absl::Status Freezer::Verify() {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<GraphProblem> problems,
                           VerifyGraph(graph()));
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model cannot be frozen: ", problems[0].message));
}

absl::Status Freezer::FillIn(bool small) {
  REQUANT_ASSIGN_OR_RETURN(const GraphIndex index,
                           GraphIndex::Create(&graph()));
  for (const FrozenVariable& variable : variables_) {
    if ((variable.entry.bytes <= kSmallBytes) != small) continue;
    NodeDef* node = index.Find(variable.node);
    if (node == nullptr) continue;
    REQUANT_ASSIGN_OR_RETURN(const tensorflow::Tensor value,
                             checkpoint_->Read(variable.tensor));
    NodeDef constant = MakeConst(variable.node, value);
    (*node->mutable_attr())["value"] =
        std::move((*constant.mutable_attr())["value"]);
  }
  return absl::OkStatus();
}

absl::StatusOr<FrozenGraph> Freezer::Run() {
  REQUANT_ASSIGN_OR_RETURN(model_, ReadModel(options_.files));
  REQUANT_RETURN_IF_ERROR(ChooseOutputs());
  REQUANT_RETURN_IF_ERROR(CheckNames());
  REQUANT_RETURN_IF_ERROR(Inline());
  REQUANT_RETURN_IF_ERROR(Reduce());
  REQUANT_RETURN_IF_ERROR(FindVariables());
  REQUANT_RETURN_IF_ERROR(CheckSize());
  REQUANT_RETURN_IF_ERROR(ReplaceVariables());
  REQUANT_RETURN_IF_ERROR(KeepNeeded(result_.outputs, &graph()));
  for (NodeDef& node : *graph().mutable_node()) {
    if (options_.clear_devices) node.clear_device();
    // The program that wrote the graph noted this, and nothing keeps it true.
    node.mutable_attr()->erase("_output_shapes");
  }
  if (NeedsSignatureNames(signature_)) {
    KeepSignatureNames(signature_, &graph());
  }
  REQUANT_RETURN_IF_ERROR(FillIn(/*small=*/true));
  REQUANT_RETURN_IF_ERROR(Verify());
  REQUANT_RETURN_IF_ERROR(FillIn(/*small=*/false));
  result_.graph = std::move(graph());
  return std::move(result_);
}

}  // namespace

std::vector<std::string> FilesOf(const ModelFiles& files) {
  std::vector<std::string> all;
  if (!files.saved_model.empty()) {
    all = SavedFiles(SavedModelDirectory(files.saved_model));
  }
  for (const std::string& file : {files.meta_graph, files.graph, files.saver}) {
    if (!file.empty()) all.push_back(file);
  }
  for (const std::string& prefix :
       {files.checkpoint,
        std::string(absl::StripSuffix(files.meta_graph, ".meta"))}) {
    if (prefix.empty()) continue;
    for (const std::string& file : CheckpointFiles(prefix)) {
      all.push_back(file);
    }
  }
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const std::string& file) {
                             return access(file.c_str(), F_OK) != 0;
                           }),
            all.end());
  return all;
}

absl::StatusOr<FrozenGraph> Freeze(const FreezeOptions& options) {
  return Freezer(options).Run();
}

}  // namespace requant
