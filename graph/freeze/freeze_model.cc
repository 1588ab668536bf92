#include "graph/freeze/freeze_model.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "graph/freeze/checkpoint_files.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saver.pb.h"

namespace requant {
namespace {

using tensorflow::AssetFileDef;
using tensorflow::MetaGraphDef;
using tensorflow::SaverDef;
using tensorflow::SignatureDef;

constexpr char kServingSignature[] = "serving_default";
// Signatures of this prefix are TensorFlow's own.
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

// The nodes of the signature's outputs, in the order of their keys.
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

// The outputs of the serving signature, or of the only one.
std::vector<std::string> ServedOutputs(const MetaGraphDef& meta) {
  const SignatureDef* chosen = nullptr;
  int count = 0;
  for (const auto& [key, signature] : meta.signature_def()) {
    if (key == kServingSignature) return OutputsOf(signature);
    if (absl::StartsWith(key, kInternalPrefix)) continue;
    chosen = &signature;
    ++count;
  }
  return count == 1 ? OutputsOf(*chosen) : std::vector<std::string>();
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

// The files beside the model. TensorFlow 1 lists them among the collections.
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
  model->outputs = ServedOutputs(meta);
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

// Parses a message that is in binary or in text.
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

// A SavedModel's own files; others may lie in its directory.
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

}  // namespace requant
