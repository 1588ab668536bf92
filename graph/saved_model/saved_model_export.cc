#include "graph/saved_model/saved_model_export.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/constant_store.h"
#include "graph/freeze/freeze_parts.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/saved_model/model_objects.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/saved_model/saved_model_writer.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::SignatureDef;
using tensorflow::Tensor;
using tensorflow::TensorInfo;

// All nodes that an export adds are below this name.
constexpr std::string_view kScope = "requant_export/";

NodeDef MakeNode(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs) {
  NodeDef node;
  node.set_name(name);
  node.set_op(op);
  for (const std::string& input : inputs) node.add_input(input);
  return node;
}

void SetType(const char* attribute, tensorflow::DataType type, NodeDef* node) {
  (*node->mutable_attr())[attribute].set_type(type);
}

Tensor StringVector(const std::vector<std::string>& values) {
  Tensor tensor(tensorflow::DT_STRING, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(),
            tensor.flat<tensorflow::tstring>().data());
  return tensor;
}

Tensor StringScalar(const std::string& value) {
  Tensor tensor(tensorflow::DT_STRING, {});
  tensor.scalar<tensorflow::tstring>()() = value;
  return tensor;
}

std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
}

class Exporter {
 public:
  Exporter(const ExportOptions& options, GraphDef graph,
           const std::string& folder)
      : options_(options), graph_(std::move(graph)), folder_(folder) {}

  absl::StatusOr<ExportedModel> Run() {
    REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
    REQUANT_ASSIGN_OR_RETURN(source_,
                             ReadSavedModel(options_.source, options_.tags));
    REQUANT_RETURN_IF_ERROR(RestoreInputs());
    // An index must not outlive the moving of constants.
    {
      REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(&graph_));
      REQUANT_RETURN_IF_ERROR(FillTablesOnce(&index));
      index.Commit();
    }
    REQUANT_RETURN_IF_ERROR(MoveToVariables());
    REQUANT_RETURN_IF_ERROR(AddObjects());
    if (!variables_.empty() || !checkpoint_objects_.empty()) AddSaver();
    REQUANT_RETURN_IF_ERROR(CopyAssets());
    REQUANT_RETURN_IF_ERROR(WriteVariables());
    REQUANT_RETURN_IF_ERROR(WriteModel());
    return std::move(result_);
  }

 private:
  absl::Status RestoreInputs();
  absl::Status FillTablesOnce(GraphIndex* index);
  absl::Status ReadFromFile(const VocabularyNode& vocabulary,
                            GraphIndex* index);
  absl::Status MoveToVariables();
  absl::Status AddObjects();
  void AddSaver();
  absl::Status CopyAssets();
  absl::Status WriteVariables();
  absl::Status WriteModel();

  void AddNode(NodeDef node) { *graph_.add_node() = std::move(node); }

  const ExportOptions& options_;
  GraphDef graph_;
  const std::string folder_;
  // The model that the graph was frozen from.
  MetaGraphDef source_;
  // What is written.
  MetaGraphDef meta_;
  // The paths of vocabulary files by the names of their copies.
  std::map<std::string, std::string> assets_;
  // The nodes that hold the names of those copies, by these.
  std::map<std::string, std::string> asset_nodes_;
  // The nodes that fill tables, by the tables' nodes.
  std::map<std::string, std::string> initializers_;
  // The values of the variables by their names.
  std::map<std::string, Tensor> variables_;
  // A serialized TrackableObjectGraph, or "".
  std::string checkpoint_objects_;
  ExportedModel result_;
};

// Copies the signatures, and adds inputs on which no output depends and which
// freezing has therefore dropped.
absl::Status Exporter::RestoreInputs() {
  absl::flat_hash_map<std::string, const NodeDef*> originals;
  for (const NodeDef& node : source_.graph_def().node()) {
    originals[node.name()] = &node;
  }
  absl::flat_hash_set<std::string> present;
  for (const NodeDef& node : graph_.node()) present.insert(node.name());
  for (const auto& [key, signature] : options_.signatures) {
    const std::map<std::string, TensorInfo> inputs(signature.inputs().begin(),
                                                   signature.inputs().end());
    for (const auto& [name, info] : inputs) {
      for (const std::string& tensor : TensorsOf(info)) {
        const std::string node(NodeOf(tensor));
        if (!present.insert(node).second) continue;
        const auto original = originals.find(node);
        if (original == originals.end()) {
          return absl::FailedPreconditionError(
              absl::StrCat("the input \"", name, "\" of the signature \"", key,
                           "\" is no longer in the graph: there is no ", node));
        }
        // Nothing reads it, so a default value does not matter.
        NodeDef input = MakeNode(node, "Placeholder", {});
        SetType("dtype", info.dtype(), &input);
        *(*input.mutable_attr())["shape"].mutable_shape() = info.tensor_shape();
        AddNode(std::move(input));
      }
    }
    for (const auto& [name, info] : signature.outputs()) {
      for (const std::string& tensor : TensorsOf(info)) {
        if (present.contains(NodeOf(tensor))) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            "the output \"", name, "\" of the signature \"", key,
            "\" is no longer in the graph: there is no ", NodeOf(tensor)));
      }
    }
    (*meta_.mutable_signature_def())[key] = signature;
  }
  return absl::OkStatus();
}

// Makes an initializer take its content from the vocabulary file again, which
// becomes an asset.
absl::Status Exporter::ReadFromFile(const VocabularyNode& vocabulary,
                                    GraphIndex* index) {
  NodeDef* node = index->Find(vocabulary.initializer.name());
  if (node == nullptr) return absl::OkStatus();
  std::string name = FileName(vocabulary.path);
  for (int i = 1; !assets_.emplace(name, vocabulary.path).second &&
                  assets_[name] != vocabulary.path;
       ++i) {
    name = absl::StrCat(FileName(vocabulary.path), "_", i);
  }
  // A file may have a name that no node may have.
  const std::string constant =
      asset_nodes_
          .emplace(name,
                   absl::StrCat(kScope, "assets/file_", asset_nodes_.size()))
          .first->second;
  if (index->Find(constant) == nullptr) {
    REQUANT_RETURN_IF_ERROR(
        index->Add(MakeConst(constant, StringScalar(name))).status());
    tensorflow::AssetFileDef* asset = meta_.add_asset_file_def();
    asset->set_filename(name);
    asset->mutable_tensor_info()->set_name(absl::StrCat(constant, ":0"));
  }
  const std::vector<std::string> content = {node->input(1), node->input(2)};
  node->set_op(vocabulary.initializer.op());
  *node->mutable_attr() = vocabulary.initializer.attr();
  index->SetInputs(node, {node->input(0), constant});
  for (const std::string& input : content) {
    const std::string producer(NodeOf(input));
    if (index->Find(producer) != nullptr && !index->HasUses(producer)) {
      REQUANT_RETURN_IF_ERROR(index->Remove(producer));
    }
  }
  return absl::OkStatus();
}

// Makes one node fill all tables when the model is loaded, so that lookups need
// not wait for their table's initializer.
absl::Status Exporter::FillTablesOnce(GraphIndex* index) {
  std::vector<NodeDef*> initializers;
  for (const NodeDef& node : index->graph().node()) {
    if (IsTableInitializer(node)) {
      initializers.push_back(index->Find(node.name()));
    }
  }
  if (initializers.empty()) return absl::OkStatus();
  std::vector<std::string> all;
  for (NodeDef* initializer : initializers) {
    const std::string control = absl::StrCat("^", initializer->name());
    for (const Use& use : index->Uses(initializer->name())) {
      std::vector<std::string> inputs(use.node->input().begin(),
                                      use.node->input().end());
      inputs.erase(std::remove(inputs.begin(), inputs.end(), control),
                   inputs.end());
      index->SetInputs(use.node, std::move(inputs));
    }
    // A table without a name would be another one in every run.
    NodeDef* table = index->Producer(*initializer, 0);
    if (table != nullptr && table->op() == "AnonymousHashTable") {
      table->set_op("HashTableV2");
      (*table->mutable_attr())["shared_name"].set_s(table->name());
    }
    initializers_.emplace(NodeOf(initializer->input(0)), initializer->name());
    all.push_back(control);
  }
  for (const VocabularyNode& vocabulary : options_.vocabularies) {
    REQUANT_RETURN_IF_ERROR(ReadFromFile(vocabulary, index));
  }
  const std::string init = absl::StrCat(kScope, "init");
  REQUANT_RETURN_IF_ERROR(index->Add(MakeNode(init, "NoOp", all)).status());
  // A signature could name it too, but Python would list that among the others.
  (*meta_.mutable_collection_def())["saved_model_main_op"]
      .mutable_node_list()
      ->add_value(init);
  result_.tables = initializers.size();
  return absl::OkStatus();
}

// Returns the type of a variable for values of this type. Keras knows no
// quantized types.
tensorflow::DataType PlainType(tensorflow::DataType type) {
  switch (type) {
    case tensorflow::DT_QINT8:
      return tensorflow::DT_INT8;
    case tensorflow::DT_QUINT8:
      return tensorflow::DT_UINT8;
    case tensorflow::DT_QINT32:
      return tensorflow::DT_INT32;
    default:
      return type;
  }
}

// Puts the largest constants of a graph that is too large into variables. The
// node that reads a variable has the constant's name.
absl::Status Exporter::MoveToVariables() {
  constexpr int64_t kShareThatStays = 16;
  int64_t bytes = FilledBytes(graph_);
  const int64_t most = bytes <= options_.most_graph_bytes
                           ? bytes
                           : options_.most_graph_bytes / kShareThatStays;
  std::vector<NodeDef*> constants;
  for (NodeDef& node : *graph_.mutable_node()) {
    if (node.op() == "Const" && node.input_size() == 0 &&
        FilledBytes(node) >= options_.least_variable_bytes) {
      constants.push_back(&node);
    }
  }
  std::stable_sort(constants.begin(), constants.end(),
                   [](const NodeDef* a, const NodeDef* b) {
                     return FilledBytes(*a) > FilledBytes(*b);
                   });
  std::vector<NodeDef> added;
  for (NodeDef* node : constants) {
    if (bytes <= most) break;
    REQUANT_ASSIGN_OR_RETURN(Tensor value, ConstValue(*node));
    if (!tensorflow::DataTypeCanUseMemcpy(value.dtype())) continue;
    bytes -= FilledBytes(*node);
    const std::string name = absl::StrCat(kScope, "variables/", node->name());
    const tensorflow::DataType type = value.dtype();
    const tensorflow::DataType stored = PlainType(type);
    if (stored != type) {
      Tensor plain;
      REQUANT_RETURN_IF_ERROR(plain.BitcastFrom(value, stored, value.shape()));
      value = std::move(plain);
    }
    NodeDef variable = MakeNode(name, "VarHandleOp", {});
    SetType("dtype", stored, &variable);
    value.shape().AsProto((*variable.mutable_attr())["shape"].mutable_shape());
    (*variable.mutable_attr())["shared_name"].set_s(name);
    added.push_back(std::move(variable));
    NodeDef read = MakeNode(node->name(), "ReadVariableOp", {name});
    SetType("dtype", stored, &read);
    if (stored != type) {
      read.set_name(absl::StrCat(kScope, "read/", node->name()));
      NodeDef cast = MakeNode(node->name(), "Bitcast", {read.name()});
      SetType("T", stored, &cast);
      SetType("type", type, &cast);
      added.push_back(std::move(read));
      read = std::move(cast);
    }
    *node = std::move(read);
    result_.variable_bytes += static_cast<int64_t>(value.TotalBytes());
    variables_.emplace(name, std::move(value));
  }
  for (NodeDef& node : *graph_.mutable_node()) FillIn(&node);
  for (NodeDef& node : added) AddNode(std::move(node));
  result_.variables = variables_.size();
  return absl::OkStatus();
}

// Adds what Python makes objects of.
absl::Status Exporter::AddObjects() {
  ModelObjectsOptions options;
  options.signatures = options_.signatures;
  options.initializers = initializers_;
  for (int i = 0; i < meta_.asset_file_def_size(); ++i) {
    options.assets.emplace(NodeOf(meta_.asset_file_def(i).tensor_info().name()),
                           i);
  }
  REQUANT_ASSIGN_OR_RETURN(std::optional<ModelObjects> objects,
                           AddModelObjects(source_, options, &graph_));
  if (!objects.has_value()) return absl::OkStatus();
  *meta_.mutable_object_graph_def() = std::move(objects->graph);
  checkpoint_objects_ = DeterministicBytes(objects->checkpoint);
  return absl::OkStatus();
}

// Adds the nodes that save and restore the variables, as loaders expect them.
void Exporter::AddSaver() {
  const auto named = [](std::string_view name) {
    return absl::StrCat(kScope, "save/", name);
  };
  std::vector<std::string> names;
  NodeDef save = MakeNode(named("SaveV2"), "SaveV2",
                          {named("filename"), named("names"), named("slices")});
  NodeDef restore =
      MakeNode(named("RestoreV2"), "RestoreV2",
               {named("filename"), named("names"), named("slices")});
  NodeDef all = MakeNode(named("restore_all"), "NoOp", {});
  for (const auto& [name, value] : variables_) {
    const size_t i = names.size();
    names.push_back(CheckpointKey(name));
    (*save.mutable_attr())["dtypes"].mutable_list()->add_type(value.dtype());
    (*restore.mutable_attr())["dtypes"].mutable_list()->add_type(value.dtype());
    NodeDef read =
        MakeNode(named(absl::StrCat("Read_", i)), "ReadVariableOp", {name});
    SetType("dtype", value.dtype(), &read);
    save.add_input(read.name());
    AddNode(std::move(read));
    NodeDef assign =
        MakeNode(named(absl::StrCat("Assign_", i)), "AssignVariableOp",
                 {name, FormatTensorName(restore.name(), static_cast<int>(i))});
    SetType("dtype", value.dtype(), &assign);
    all.add_input(absl::StrCat("^", assign.name()));
    AddNode(std::move(assign));
  }
  NodeDef saved = MakeNode(named("saved"), "Identity", {named("filename")});
  SetType("T", tensorflow::DT_STRING, &saved);
  AddNode(MakeConst(named("filename"), StringScalar("model")));
  // These ops take no empty lists.
  if (!names.empty()) {
    AddNode(MakeConst(named("names"), StringVector(names)));
    AddNode(MakeConst(named("slices"),
                      StringVector(std::vector<std::string>(names.size()))));
    saved.add_input("^" + save.name());
    AddNode(std::move(save));
    AddNode(std::move(restore));
  }
  tensorflow::SaverDef* saver = meta_.mutable_saver_def();
  saver->set_filename_tensor_name(named("filename") + ":0");
  saver->set_save_tensor_name(saved.name() + ":0");
  saver->set_restore_op_name(all.name());
  saver->set_version(tensorflow::SaverDef::V2);
  AddNode(std::move(saved));
  AddNode(std::move(all));
}

// Copies the vocabularies, and the source's other files for servers, such as
// requests to warm up with.
absl::Status Exporter::CopyAssets() {
  const auto copy = [this](const std::string& from, const std::string& to) {
    const std::string path = absl::StrCat(folder_, "/", to);
    const absl::Status cloned = CloneFile(from, path);
    return cloned.ok() ? cloned : CopyFile(from, path);
  };
  if (!assets_.empty()) {
    REQUANT_RETURN_IF_ERROR(MakeFolder(folder_ + "/assets"));
  }
  for (const auto& [name, path] : assets_) {
    REQUANT_RETURN_IF_ERROR(copy(path, absl::StrCat("assets/", name)));
    result_.assets.push_back(name);
  }
  std::vector<std::string> folders;
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           FilesBelow(options_.source, &folders));
  for (const std::string& inner : folders) {
    if (inner == "assets.extra" || absl::StartsWith(inner, "assets.extra/")) {
      REQUANT_RETURN_IF_ERROR(MakeFolder(absl::StrCat(folder_, "/", inner)));
    }
  }
  for (const std::string& file : files) {
    if (!absl::StartsWith(file, "assets.extra/")) continue;
    REQUANT_RETURN_IF_ERROR(
        copy(absl::StrCat(options_.source, "/", file), file));
  }
  return absl::OkStatus();
}

absl::Status Exporter::WriteVariables() {
  if (!meta_.has_saver_def()) return absl::OkStatus();
  REQUANT_RETURN_IF_ERROR(MakeFolder(folder_ + "/variables"));
  tensorflow::BundleWriter writer(tensorflow::Env::Default(),
                                  folder_ + "/variables/variables");
  for (const auto& [name, value] : variables_) {
    REQUANT_RETURN_IF_ERROR(writer.Add(CheckpointKey(name), value));
  }
  if (!checkpoint_objects_.empty()) {
    REQUANT_RETURN_IF_ERROR(writer.Add("_CHECKPOINTABLE_OBJECT_GRAPH",
                                       StringScalar(checkpoint_objects_)));
  }
  REQUANT_RETURN_IF_ERROR(writer.Finish());
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           FilesBelow(folder_ + "/variables"));
  for (const std::string& file : files) {
    REQUANT_RETURN_IF_ERROR(
        SyncPath(absl::StrCat(folder_, "/variables/", file)));
  }
  return absl::OkStatus();
}

absl::Status Exporter::WriteModel() {
  result_.graph_bytes = static_cast<int64_t>(graph_.ByteSizeLong());
  MetaGraphDef::MetaInfoDef* info = meta_.mutable_meta_info_def();
  *info->mutable_tags() = source_.meta_info_def().tags();
  info->set_meta_graph_version(options_.version);
  REQUANT_ASSIGN_OR_RETURN(void* version, TensorFlowSymbol("TF_Version"));
  info->set_tensorflow_version(reinterpret_cast<const char* (*)()>(version)());
  AddOps(graph_, info);
  *meta_.mutable_graph_def() = std::move(graph_);
  tensorflow::SavedModel model;
  model.set_saved_model_schema_version(1);
  *model.add_meta_graphs() = std::move(meta_);
  if (model.ByteSizeLong() > static_cast<size_t>(kMaxGraphBytes)) {
    return absl::OutOfRangeError(absl::StrCat(
        "the graph of ", options_.source,
        " would take more than the 2 GB that a protocol buffer holds"));
  }
  const std::string content = DeterministicBytes(model);
  REQUANT_RETURN_IF_ERROR(
      WriteFileAtomically(folder_ + "/saved_model.pb", content));
  return WriteFingerprint(folder_, content);
}

}  // namespace

absl::StatusOr<ExportedModel> ExportSavedModel(const ExportOptions& options,
                                               GraphDef graph,
                                               const std::string& folder) {
  return Exporter(options, std::move(graph), folder).Run();
}

}  // namespace requant
