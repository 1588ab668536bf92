#include "graph/freeze/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "graph/const_node.h"
#include "graph/freeze/needed_nodes.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"
#include "tensorflow/core/protobuf/trackable_object_graph.pb.h"
#include "tensorflow/core/util/saved_tensor_slice_util.h"
#include "tensorflow/core/util/tensor_bundle/naming.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"
#include "tensorflow/core/util/tensor_slice_reader.h"

namespace requant {

using tensorflow::BundleEntryProto;
using tensorflow::BundleReader;
using tensorflow::NodeDef;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TensorSlice;
using tensorflow::checkpoint::TensorSliceReader;

namespace {

// The key under which TensorFlow 2 stores the object graph that defines a
// checkpoint's keys.
constexpr char kObjectGraphKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

// Larger element counts need not be exact because no graph holds them.
constexpr int64_t kMostElements = int64_t{1} << 40;

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool IsFolder(const std::string& path) { return Exists(path + "/."); }

// Returns the prefix of the checkpoint that the file `path` belongs to, or "".
std::string MeantPrefix(const std::string& path) {
  const std::string shorter = path.substr(0, path.rfind('.'));
  const std::string_view ending = std::string_view(path).substr(shorter.size());
  const bool is_part = ending == ".index" || ending == ".meta" ||
                       absl::StartsWith(ending, ".data-");
  const bool exists = Exists(shorter + ".index") || Exists(shorter);
  return is_part && exists ? shorter : "";
}

absl::Status NoCheckpoint(const std::string& prefix) {
  const std::string meant = MeantPrefix(prefix);
  return absl::NotFoundError(absl::StrCat(
      "there is no checkpoint ", prefix, " (no file ", prefix, ".index); ",
      meant.empty() ? "name it without the endings .index and .data-…"
                    : absl::StrCat("name it ", meant)));
}

absl::Status DamagedIndex(const std::string& prefix) {
  return absl::DataLossError(absl::StrCat(prefix, ".index is damaged"));
}

struct Slice {
  TensorShape whole_shape;
  TensorSlice slice;
  TensorShape shape;
};

absl::StatusOr<Slice> ParseSlice(const CheckpointTensor& tensor) {
  Slice slice;
  const absl::Status status = tensorflow::checkpoint::ParseShapeAndSlice(
      tensor.shape_and_slice, &slice.whole_shape, &slice.slice, &slice.shape);
  if (status.ok()) return slice;
  return absl::InvalidArgumentError(absl::StrCat(
      "the graph restores \"", tensor.key, "\" as \"", tensor.shape_and_slice,
      "\", which is no slice of a tensor"));
}

// Copies a slice of a tensor in the first format into `value`, whose type must
// be one of `T`. Returns false if it is not or a value is missing.
template <typename... T>
bool CopySlice(const TensorSliceReader& reader, const std::string& key,
               const TensorSlice& slice, Tensor* value) {
  bool copied = false;
  const auto copy = [&](auto* data) {
    copied = reader.CopySliceData(key, slice, data);
    return true;
  };
  ((value->dtype() == tensorflow::DataTypeToEnum<T>::value &&
    copy(value->flat<T>().data())) ||
   ...);
  return copied;
}

// Copies a slice of any type that TensorFlow writes in the first format.
bool CopyAnySlice(const TensorSliceReader& reader, const std::string& key,
                  const TensorSlice& slice, Tensor* value) {
  return CopySlice<float, double, Eigen::half, bool, int8_t, uint8_t, int16_t,
                   uint16_t, int32_t, uint32_t, int64_t, uint64_t,
                   tensorflow::tstring, tensorflow::complex64,
                   tensorflow::complex128, tensorflow::qint8,
                   tensorflow::quint8, tensorflow::qint32>(reader, key, slice,
                                                           value);
}

// Returns the variable's name, which several nodes can share.
std::string VariableName(const NodeDef& node) {
  const auto name = node.attr().find("shared_name");
  return name == node.attr().end() || name->second.s().empty()
             ? node.name()
             : name->second.s();
}

// Returns element `port` of a constant vector of strings.
absl::StatusOr<std::string> StringAt(const NodeDef* node, int port) {
  if (node == nullptr) return absl::NotFoundError("no constant");
  REQUANT_ASSIGN_OR_RETURN(const Tensor tensor, ConstValue(*node));
  if (tensor.dtype() != tensorflow::DT_STRING || port < 0 ||
      port >= tensor.NumElements()) {
    return absl::NotFoundError("no such string");
  }
  return std::string(tensor.flat<tensorflow::tstring>()(port));
}

PartialTensorShape DeclaredShape(const NodeDef& node) {
  PartialTensorShape shape;
  const auto found = node.attr().find("shape");
  if (found == node.attr().end() ||
      !PartialTensorShape::BuildPartialTensorShape(found->second.shape(),
                                                   &shape)
           .ok()) {
    return PartialTensorShape();
  }
  return shape;
}

absl::Status CheckFits(const NodeDef& node, const CheckpointTensor& tensor,
                       const CheckpointEntry& entry) {
  const auto dtype = node.attr().find("dtype");
  if (dtype != node.attr().end() && dtype->second.type() != entry.dtype) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the variable \"", node.name(), "\" is of type ",
        tensorflow::DataTypeString(dtype->second.type()),
        " in the graph, but \"", tensor.key, "\" in the checkpoint is of type ",
        tensorflow::DataTypeString(entry.dtype)));
  }
  const PartialTensorShape shape = DeclaredShape(node);
  // Old graphs store an unknown shape as a scalar's shape.
  const bool any = node.op() == "Variable" && shape.dims() == 0;
  if (!any && !shape.IsCompatibleWith(entry.shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the variable \"", node.name(), "\" has shape ", shape.DebugString(),
        " in the graph, but \"", tensor.key, "\" in the checkpoint has shape ",
        entry.shape.DebugString()));
  }
  return absl::OkStatus();
}

// Returns the number N of "x/part_N", setting `whole` to "x", or returns -1.
int PartNumber(const std::string& name, std::string* whole) {
  const size_t at = name.rfind("/part_");
  int number;
  if (at == std::string::npos ||
      !absl::SimpleAtoi(name.substr(at + 6), &number)) {
    return -1;
  }
  *whole = name.substr(0, at);
  return number;
}

// Without the graph's own restore nodes, which slice of the whole a variable
// "x/part_N" is follows from the shapes of all parts, whose sizes add up along
// one dimension.
absl::StatusOr<CheckpointTensor> FindPart(const RestorePlan& plan,
                                          const std::string& name,
                                          const Checkpoint& checkpoint) {
  std::string whole;
  const int wanted = PartNumber(name, &whole);
  if (wanted < 0) return absl::NotFoundError("no part");
  REQUANT_ASSIGN_OR_RETURN(const CheckpointEntry entry,
                           checkpoint.Find({whole, ""}));
  for (int axis = 0; axis < entry.shape.dims(); ++axis) {
    int64_t offset = 0, total = 0, length = 0;
    for (int i = 0;; ++i) {
      const auto part = plan.parts.find(absl::StrCat(whole, "/part_", i));
      if (part == plan.parts.end()) break;
      const PartialTensorShape& shape = part->second;
      if (shape.dims() != entry.shape.dims() || shape.dim_size(axis) < 0) {
        return absl::NotFoundError("parts without shapes");
      }
      length = i == wanted ? shape.dim_size(axis) : length;
      total += shape.dim_size(axis);
      offset += i < wanted ? shape.dim_size(axis) : 0;
    }
    if (total != entry.shape.dim_size(axis)) continue;
    std::vector<std::string> slices(entry.shape.dims(), "-");
    slices[axis] = absl::StrCat(offset, ",", length);
    return CheckpointTensor{
        whole, absl::StrCat(absl::StrJoin(entry.shape.dim_sizes(), " "), " ",
                            absl::StrJoin(slices, ":"))};
  }
  return absl::NotFoundError("the parts do not add up");
}

absl::StatusOr<CheckpointTensor> Locate(const NodeDef& node,
                                        const RestorePlan& plan,
                                        const Checkpoint& checkpoint) {
  const std::string name = VariableName(node);
  const auto planned = plan.variables.find(name);
  if (planned != plan.variables.end()) return planned->second;
  for (const std::string& key : {name, node.name()}) {
    if (checkpoint.Contains(key)) return CheckpointTensor{key, ""};
  }
  const auto part = FindPart(plan, node.name(), checkpoint);
  if (part.ok()) return part;
  const auto& objects = checkpoint.KeysOfObjects();
  for (const std::string& key : {name, node.name()}) {
    const auto object = objects.find(key);
    if (object != objects.end()) return CheckpointTensor{object->second, ""};
  }
  return CheckpointTensor{name, ""};
}

}  // namespace

std::vector<std::string> CheckpointFiles(const std::string& prefix) {
  const size_t slash = prefix.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : prefix.substr(0, slash + 1);
  const std::string base = prefix.substr(folder.size());
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator
           entry(folder.empty() ? "." : folder, error),
       end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name == base + ".index" || name == base + ".meta" ||
        absl::StartsWith(name, base + ".data-")) {
      files.push_back(folder + name);
    }
  }
  std::vector<std::string> named;
  if (tensorflow::Env::Default()->GetMatchingPaths(prefix, &named).ok()) {
    for (const std::string& file : named) {
      if (!std::filesystem::is_directory(file, error)) files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::Status CheckCheckpointFiles(const std::string& prefix) {
  for (const std::string& file : CheckpointFiles(prefix)) {
    REQUANT_RETURN_IF_ERROR(CheckRegular(file));
  }
  return absl::OkStatus();
}

Checkpoint::Checkpoint(std::string prefix) : prefix_(std::move(prefix)) {}

Checkpoint::~Checkpoint() = default;

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(
    const std::string& prefix) {
  REQUANT_RETURN_IF_ERROR(CheckCheckpointFiles(prefix));
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint(prefix));
  if (!Exists(prefix + ".index")) {
    REQUANT_RETURN_IF_ERROR(checkpoint->OpenFirstFormat());
    return checkpoint;
  }
  auto& reader = checkpoint->reader_;
  reader = std::make_unique<BundleReader>(tensorflow::Env::Default(), prefix);
  if (!reader->status().ok()) {
    return absl::DataLossError(
        absl::StrCat(prefix, ".index is damaged or not a checkpoint's index: ",
                     reader->status().message()));
  }
  return checkpoint;
}

absl::Status Checkpoint::OpenFirstFormat() {
  std::vector<std::string> files;
  const absl::Status found =
      tensorflow::Env::Default()->GetMatchingPaths(prefix_, &files);
  if (!found.ok() || files.empty() || IsFolder(prefix_) ||
      !MeantPrefix(prefix_).empty()) {
    return NoCheckpoint(prefix_);
  }
  first_format_ = std::make_unique<TensorSliceReader>(prefix_);
  if (first_format_->status().ok()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(prefix_, " is damaged or not a checkpoint"));
}

bool Checkpoint::Contains(const std::string& key) const {
  return first_format_ != nullptr
             ? first_format_->HasTensor(key, nullptr, nullptr)
             : reader_->Contains(key);
}

absl::Status Checkpoint::CheckData() const {
  if (first_format_ != nullptr) return absl::OkStatus();
  tensorflow::BundleHeaderProto header;
  std::map<int, int64_t> needed;
  for (reader_->Seek(""); reader_->Valid(); reader_->Next()) {
    const std::string value(reader_->value());
    BundleEntryProto entry;
    if (reader_->key().empty()) {
      if (!header.ParseFromString(value)) return DamagedIndex(prefix_);
    } else if (!entry.ParseFromString(value) || entry.offset() < 0 ||
               entry.size() < 0 || entry.shard_id() < 0 ||
               entry.offset() > INT64_MAX - entry.size()) {
      return DamagedIndex(prefix_);
    } else if (entry.slices_size() == 0) {
      // The slices of a tensor have entries of their own.
      int64_t& bytes = needed[entry.shard_id()];
      bytes = std::max(bytes, entry.offset() + entry.size());
    }
  }
  for (const auto& [shard, bytes] : needed) {
    if (shard >= header.num_shards()) return DamagedIndex(prefix_);
    const std::string path =
        tensorflow::DataFilename(prefix_, shard, header.num_shards());
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      return absl::NotFoundError(absl::StrCat(
          path, ", which has values of the variables, is missing"));
    }
    if (info.st_size < bytes) {
      return absl::DataLossError(
          absl::StrCat(path, " is cut short: it has ", info.st_size, " of the ",
                       bytes, " bytes that the variables take"));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> Checkpoint::Keys() const {
  std::vector<std::string> keys;
  if (first_format_ != nullptr) {
    for (const auto& [key, slices] : first_format_->Tensors()) {
      keys.push_back(key);
    }
    return keys;
  }
  for (reader_->Seek(""); reader_->Valid(); reader_->Next()) {
    // The header has an empty name, and slices have binary ones.
    const std::string_view key = reader_->key();
    if (!key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
          return absl::ascii_isprint(c);
        })) {
      keys.emplace_back(key);
    }
  }
  return keys;
}

absl::StatusOr<CheckpointEntry> Checkpoint::IndexEntry(
    const std::string& key) const {
  if (!Contains(key)) {
    return absl::NotFoundError(absl::StrCat("the checkpoint ", prefix_,
                                            " has no tensor \"", key, "\"",
                                            DidYouMean(key, Keys())));
  }
  if (first_format_ != nullptr) {
    CheckpointEntry entry{};
    first_format_->HasTensor(key, &entry.shape, &entry.dtype);
    return entry;
  }
  BundleEntryProto entry;
  reader_->Seek(key);
  if (!reader_->Valid() || reader_->key() != key ||
      !entry.ParseFromString(std::string(reader_->value())) ||
      !TensorShape::IsValid(entry.shape()) || entry.size() < 0) {
    return absl::DataLossError(
        absl::StrCat("the index of the checkpoint ", prefix_,
                     " is damaged at the tensor \"", key, "\""));
  }
  return CheckpointEntry{entry.dtype(), TensorShape(entry.shape()),
                         entry.size()};
}

absl::StatusOr<CheckpointEntry> Checkpoint::Find(
    const CheckpointTensor& tensor) const {
  REQUANT_ASSIGN_OR_RETURN(CheckpointEntry entry, IndexEntry(tensor.key));
  if (!tensor.shape_and_slice.empty()) {
    REQUANT_ASSIGN_OR_RETURN(const Slice slice, ParseSlice(tensor));
    if (!(slice.whole_shape == entry.shape)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the graph restores \"", tensor.key,
          "\" as a part of a tensor of "
          "shape ",
          slice.whole_shape.DebugString(), ", but in the checkpoint ", prefix_,
          " its shape is ", entry.shape.DebugString()));
    }
    entry.shape = slice.shape;
  }
  // Strings are stored with their lengths; the size of other types follows from
  // their elements, whatever the index says.
  const int64_t element = tensorflow::DataTypeSize(entry.dtype);
  if (element > 0) {
    entry.bytes = std::min(entry.shape.num_elements(), kMostElements) * element;
  } else if (entry.dtype != tensorflow::DT_STRING) {
    return absl::UnimplementedError(absl::StrCat(
        "\"", tensor.key, "\" in the checkpoint ", prefix_, " is of type ",
        tensorflow::DataTypeString(entry.dtype), ", which no constant can be"));
  }
  return entry;
}

absl::StatusOr<Tensor> Checkpoint::Read(const CheckpointTensor& tensor) const {
  REQUANT_ASSIGN_OR_RETURN(const CheckpointEntry entry, Find(tensor));
  Tensor value(entry.dtype, entry.shape);
  const bool whole = tensor.shape_and_slice.empty();
  Slice slice;
  slice.slice = TensorSlice(entry.shape.dims());
  if (!whole) {
    REQUANT_ASSIGN_OR_RETURN(slice, ParseSlice(tensor));
  }
  absl::Status status;
  if (first_format_ != nullptr) {
    if (!CopyAnySlice(*first_format_, tensor.key, slice.slice, &value)) {
      status = absl::DataLossError("its values are damaged or incomplete");
    }
  } else if (whole) {
    status = reader_->Lookup(tensor.key, &value);
  } else {
    status = reader_->LookupSlice(tensor.key, slice.slice, &value);
  }
  if (status.ok()) return value;
  return absl::DataLossError(absl::StrCat("cannot read \"", tensor.key,
                                          "\" from the checkpoint ", prefix_,
                                          ": ", status.message()));
}

const std::map<std::string, std::string>& Checkpoint::KeysOfObjects() const {
  if (!objects_.has_value()) objects_ = ReadObjects();
  return *objects_;
}

std::map<std::string, std::string> Checkpoint::ReadObjects() const {
  std::map<std::string, std::string> keys;
  if (!Contains(kObjectGraphKey)) return keys;
  const auto value = Read({kObjectGraphKey, ""});
  tensorflow::TrackableObjectGraph objects;
  if (!value.ok() || value->dtype() != tensorflow::DT_STRING ||
      value->NumElements() != 1 ||
      !objects.ParseFromString(
          std::string(value->flat<tensorflow::tstring>()(0)))) {
    return keys;
  }
  for (const auto& object : objects.nodes()) {
    for (const auto& attribute : object.attributes()) {
      if (!attribute.full_name().empty()) {
        keys.emplace(attribute.full_name(), attribute.checkpoint_key());
      }
    }
  }
  return keys;
}

bool IsReferenceVariable(const NodeDef& node) {
  return node.op() == "VariableV2" || node.op() == "Variable" ||
         node.op() == "AutoReloadVariable";
}

bool IsVariable(const NodeDef& node) {
  return IsReferenceVariable(node) || node.op() == "VarHandleOp";
}

Source SourceOf(const GraphIndex& index, const NodeDef& node, int input) {
  const NodeDef* reader = &node;
  absl::flat_hash_set<const NodeDef*> seen;
  while (input < reader->input_size() && seen.insert(reader).second) {
    const NodeDef* producer = index.Producer(*reader, input);
    const int port = ParseTensorName(reader->input(input)).port;
    if (producer == nullptr || producer->op() != "Identity") {
      return {producer, port};
    }
    reader = producer;
    input = 0;
  }
  return {nullptr, 0};
}

absl::StatusOr<CheckpointTensor> RestoredInput(const GraphIndex& index,
                                               const NodeDef& node, int input) {
  const Source source = SourceOf(index, node, input);
  const std::string op = source.node == nullptr ? "" : source.node->op();
  if (op != "RestoreV2" && op != "RestoreSlice" && op != "Restore") {
    return absl::NotFoundError("not restored");
  }
  CheckpointTensor tensor;
  REQUANT_ASSIGN_OR_RETURN(
      tensor.key, StringAt(SourceOf(index, *source.node, 1).node, source.port));
  if (op == "Restore") return tensor;
  REQUANT_ASSIGN_OR_RETURN(
      tensor.shape_and_slice,
      StringAt(SourceOf(index, *source.node, 2).node, source.port));
  return tensor;
}

RestorePlan FindRestored(const GraphIndex& index,
                         const std::string& restore_op) {
  RestorePlan plan;
  const NodeSet restoring = NeededNodes(index, {restore_op});
  std::string whole;
  for (const NodeDef& node : index.graph().node()) {
    if (IsVariable(node) && PartNumber(node.name(), &whole) >= 0) {
      plan.parts.emplace(node.name(), DeclaredShape(node));
    }
    if (!restoring.contains(&node) ||
        (node.op() != "Assign" && node.op() != "AssignVariableOp")) {
      continue;
    }
    const NodeDef* variable = SourceOf(index, node, 0).node;
    if (variable == nullptr || !IsVariable(*variable)) continue;
    const auto tensor = RestoredInput(index, node, 1);
    if (tensor.ok()) plan.variables.emplace(VariableName(*variable), *tensor);
  }
  return plan;
}

absl::StatusOr<FrozenVariable> FindVariable(const NodeDef& node,
                                            const RestorePlan& plan,
                                            const Checkpoint& checkpoint) {
  FrozenVariable variable;
  variable.node = node.name();
  REQUANT_ASSIGN_OR_RETURN(variable.tensor, Locate(node, plan, checkpoint));
  const auto entry = checkpoint.Find(variable.tensor);
  if (!entry.ok()) {
    return absl::Status(
        entry.status().code(),
        absl::StrCat("the variable \"", node.name(),
                     "\" has no value: ", entry.status().message()));
  }
  variable.entry = *entry;
  REQUANT_RETURN_IF_ERROR(CheckFits(node, variable.tensor, variable.entry));
  return variable;
}

}  // namespace requant
