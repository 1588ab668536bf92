#include "graph/saved_model/saved_model_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/wire_format_lite.h"
#include "graph/freeze/checkpoint.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
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

namespace {

// A field of a serialized protocol buffer, which is taken apart and put
// together again without being parsed, so that what is not touched keeps its
// bytes.
struct MessageField {
  int number = 0;
  // The field with its tag.
  std::string_view bytes;
  // What a field of type message, string or bytes holds; "" for others.
  std::string_view payload;
};

// Reads what follows `tag`.
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
  field->payload = message.substr(begin, size);
  return input->Skip(static_cast<int>(size));
}

// Splits a serialized message into its fields in their order, as parts of
// `message`. Returns false when it is none.
bool SplitFields(std::string_view message, std::vector<MessageField>* fields) {
  fields->clear();
  if (message.size() > std::numeric_limits<int>::max()) return false;
  CodedInputStream input(reinterpret_cast<const uint8_t*>(message.data()),
                         static_cast<int>(message.size()));
  input.SetTotalBytesLimit(std::numeric_limits<int>::max());
  while (true) {
    const size_t begin = input.CurrentPosition();
    const uint32_t tag = input.ReadTag();
    if (tag == 0) return begin == message.size();
    MessageField field;
    field.number = WireFormatLite::GetTagFieldNumber(tag);
    if (field.number == 0 || !SkipField(message, tag, &input, &field)) {
      return false;
    }
    field.bytes = message.substr(begin, input.CurrentPosition() - begin);
    fields->push_back(field);
  }
}

// Returns the payloads of all fields of that number one after another: the
// serialized submessage, of which a serializer may write parts.
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

absl::Status Damaged(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is damaged: it is not a SavedModel message"));
}

absl::Status TooLarge(const std::string& path) {
  return absl::OutOfRangeError(absl::StrCat(
      "the new graph of ", path,
      " would take more than the 2 GB that a protocol buffer holds"));
}

// Returns the tags of each MetaGraph.
absl::StatusOr<std::vector<std::vector<std::string>>> TagsOfAll(
    const std::string& path, const std::vector<MessageField>& model) {
  std::vector<std::vector<std::string>> all;
  for (const MessageField& field : model) {
    if (field.number != kMetaGraphs) continue;
    std::vector<MessageField> parts;
    MetaGraphDef::MetaInfoDef info;
    if (!SplitFields(field.payload, &parts) ||
        !ParseBinary(JoinedPayload(parts, kMetaInfo), &info)) {
      return Damaged(path);
    }
    all.emplace_back(info.tags().begin(), info.tags().end());
  }
  return all;
}

// Returns the MetaGraph of that number.
std::string_view MetaGraphBytes(const std::vector<MessageField>& model,
                                int index) {
  for (const MessageField& field : model) {
    if (field.number == kMetaGraphs && index-- == 0) return field.payload;
  }
  return "";
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

// Adds the definitions that `graph` uses and the list lacks, in order of name.
// True when there were any. Ops that TensorFlow does not have stay out: their
// definitions come with the library that has them.
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

// Returns the MetaGraph with another graph.
absl::StatusOr<std::string> Replaced(std::string_view bytes,
                                     const std::string& path,
                                     const GraphDef& graph,
                                     const std::string& graph_bytes) {
  std::vector<MessageField> fields;
  MetaGraphDef::MetaInfoDef info;
  if (!SplitFields(bytes, &fields) ||
      !ParseBinary(JoinedPayload(fields, kMetaInfo), &info)) {
    return Damaged(path);
  }
  const bool new_info = info.has_stripped_op_list() && AddOps(graph, &info);
  std::string meta;
  bool has_graph = false, has_info = false;
  for (const MessageField& field : fields) {
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
  if (!ParseBinary(content, &model)) return Damaged(path);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(model, &text)) {
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

// Returns whether there is a SavedModel of any form, also one not read.
bool HasModel(const fs::path& folder) {
  std::error_code ignored;
  return IsSavedModelDirectory(folder.string()) ||
         fs::exists(folder / "saved_model.cpb", ignored);
}

// Returns the SavedModels in the folders of `folder` that are versions.
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

}  // namespace

absl::StatusOr<SavedModelFile> SavedModelFile::Read(
    const std::string& directory, const std::set<std::string>& tags) {
  SavedModelFile file;
  REQUANT_ASSIGN_OR_RETURN(file.content_,
                           ReadSavedModelContent(directory, &file.path_));
  file.name_ = file.path_.substr(file.path_.rfind('/') + 1);
  file.is_text_ = LooksLikeText(file.content_);
  if (file.is_text_) {
    SavedModel model;
    REQUANT_RETURN_IF_ERROR(ParseText(file.content_, file.path_, &model));
    file.content_ = DeterministicBytes(model);
  }
  std::vector<MessageField> fields;
  if (!SplitFields(file.content_, &fields)) return Damaged(file.path_);
  REQUANT_ASSIGN_OR_RETURN(const auto present, TagsOfAll(file.path_, fields));
  REQUANT_ASSIGN_OR_RETURN(file.chosen_,
                           ChooseByTags(present, tags, directory));
  const std::string_view meta = MetaGraphBytes(fields, file.chosen_);
  std::vector<MessageField> parts;
  if (!SplitFields(meta, &parts) || !ParseBinary(meta, &file.meta_)) {
    return Damaged(file.path_);
  }
  file.graph_bytes_ = JoinedPayload(parts, kGraph);
  return file;
}

GraphDef SavedModelFile::TakeGraph() {
  GraphDef graph = std::move(*meta_.mutable_graph_def());
  meta_.clear_graph_def();
  return graph;
}

absl::StatusOr<std::string> SavedModelFile::WithGraph(
    const GraphDef& graph, const std::string& graph_bytes) const {
  // Before anything of that size is put together.
  if (content_.size() - graph_bytes_.size() + graph_bytes.size() >
      static_cast<size_t>(kMaxGraphBytes)) {
    return TooLarge(path_);
  }
  std::vector<MessageField> fields;
  if (!SplitFields(content_, &fields)) return Damaged(path_);
  std::string content;
  int index = 0;
  for (const MessageField& field : fields) {
    if (field.number != kMetaGraphs || index++ != chosen_) {
      content.append(field.bytes);
      continue;
    }
    REQUANT_ASSIGN_OR_RETURN(
        const std::string meta,
        Replaced(field.payload, path_, graph, graph_bytes));
    AppendField(kMetaGraphs, meta, &content);
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

}  // namespace requant
