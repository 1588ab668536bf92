#include "graph/freeze/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
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
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TensorSlice;
using tensorflow::checkpoint::TensorSliceReader;

namespace {

// The key under which TensorFlow 2 keeps the objects that a checkpoint's keys
// are paths of.
constexpr char kObjectGraphKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

// More elements than these need not be counted exactly: no graph holds them.
constexpr int64_t kMostElements = int64_t{1} << 40;

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool IsFolder(const std::string& path) { return Exists(path + "/."); }

// Returns the checkpoint of which `path` is only one file, or "".
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

// Copies a part of a tensor of the first format into `value`, which has one of
// the types `T`. Returns false if it has another or a value is missing.
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

// Copies a tensor of any type that TensorFlow writes in the first format.
bool CopyAnySlice(const TensorSliceReader& reader, const std::string& key,
                  const TensorSlice& slice, Tensor* value) {
  return CopySlice<float, double, Eigen::half, bool, int8_t, uint8_t, int16_t,
                   uint16_t, int32_t, uint32_t, int64_t, uint64_t,
                   tensorflow::tstring, tensorflow::complex64,
                   tensorflow::complex128, tensorflow::qint8,
                   tensorflow::quint8, tensorflow::qint32>(reader, key, slice,
                                                           value);
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
    // The header has no name, slices have binary ones.
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
  // Strings have lengths beside them; other types take what their elements do,
  // whatever the index says.
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

}  // namespace requant
