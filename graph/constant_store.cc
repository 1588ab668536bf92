#include "graph/constant_store.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/io/coded_stream.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;
using tensorflow::TensorProto;

namespace {

// Precedes a value's number in the content that refers to it. The values are
// longer than this, so TensorFlow never takes it for one.
constexpr std::string_view kMark = "requant stored value ";
constexpr size_t kLeastStoredBytes = 64;

struct StoredValues {
  int64_t least_bytes = 0;
  // Those that were forgotten are empty.
  std::vector<Tensor> values;
};

absl::Mutex store_mutex(absl::kConstInit);
StoredValues* store ABSL_GUARDED_BY(store_mutex) = nullptr;

bool AreEqual(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.tensor_data() == b.tensor_data();
}

// Returns the number of the value that `proto` refers to.
std::optional<size_t> NumberOfStored(const TensorProto& proto)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex) {
  std::string_view content = proto.tensor_content();
  size_t number;
  if (store == nullptr || !absl::ConsumePrefix(&content, kMark) ||
      !absl::SimpleAtoi(content, &number) || number >= store->values.size()) {
    return std::nullopt;
  }
  // A user's file may have such content too.
  const Tensor& value = store->values[number];
  tensorflow::TensorShape shape;
  const bool fits =
      value.dtype() == proto.dtype() &&
      tensorflow::TensorShape::BuildTensorShape(proto.tensor_shape(), &shape)
          .ok() &&
      shape == value.shape();
  return fits ? std::optional<size_t>(number) : std::nullopt;
}

const TensorProto* ConstTensor(const NodeDef& node) {
  const auto value = node.attr().find("value");
  return node.op() == "Const" && value != node.attr().end() &&
                 value->second.has_tensor()
             ? &value->second.tensor()
             : nullptr;
}

// Returns by how much a message grows, with its tag and the length before it,
// when its content grows by `growth`.
int64_t GrowthOutside(int64_t size, int64_t growth) {
  using google::protobuf::io::CodedOutputStream;
  return growth +
         static_cast<int64_t>(CodedOutputStream::VarintSize64(size + growth) -
                              CodedOutputStream::VarintSize64(size));
}

// Returns by how much the node grows when its stored value is filled in.
int64_t GrowthOf(const NodeDef& node) {
  const TensorProto* proto = ConstTensor(node);
  const std::optional<Tensor> value =
      proto == nullptr ? std::nullopt : StoredValue(*proto);
  if (!value.has_value()) return 0;
  const int64_t content = static_cast<int64_t>(proto->tensor_content().size());
  const int64_t bytes = static_cast<int64_t>(value->TotalBytes());
  int64_t growth = GrowthOutside(content, bytes - content);
  const auto size = [](const google::protobuf::Message& message) {
    return static_cast<int64_t>(message.ByteSizeLong());
  };
  const int64_t attribute = size(node.attr().at("value"));
  growth = GrowthOutside(size(*proto), growth);
  growth = GrowthOutside(attribute, growth);
  // The entry of the attributes' map also has the key, "value".
  const int64_t entry =
      2 + 5 + 1 + attribute +
      static_cast<int64_t>(
          google::protobuf::io::CodedOutputStream::VarintSize64(attribute));
  return GrowthOutside(entry, growth);
}

}  // namespace

ConstantStore::ConstantStore(int64_t least_bytes) {
  const absl::MutexLock lock(&store_mutex);
  store = new StoredValues;
  store->least_bytes = std::max<int64_t>(least_bytes, kLeastStoredBytes);
}

ConstantStore::~ConstantStore() {
  const absl::MutexLock lock(&store_mutex);
  delete std::exchange(store, nullptr);
}

bool StoreValue(const Tensor& value, TensorProto* proto) {
  const absl::MutexLock lock(&store_mutex);
  if (store == nullptr || !tensorflow::DataTypeCanUseMemcpy(value.dtype()) ||
      static_cast<int64_t>(value.TotalBytes()) < store->least_bytes) {
    return false;
  }
  std::vector<Tensor>& values = store->values;
  size_t number = 0;
  while (number < values.size() && !AreEqual(values[number], value)) ++number;
  if (number == values.size()) values.push_back(value);
  proto->Clear();
  proto->set_dtype(value.dtype());
  value.shape().AsProto(proto->mutable_tensor_shape());
  proto->set_tensor_content(absl::StrCat(kMark, number));
  return true;
}

std::optional<Tensor> StoredValue(const TensorProto& proto) {
  const absl::MutexLock lock(&store_mutex);
  const std::optional<size_t> number = NumberOfStored(proto);
  if (!number.has_value()) return std::nullopt;
  return store->values[*number];
}

void StoreConstants(GraphDef* graph) {
  for (NodeDef& node : *graph->mutable_node()) {
    const TensorProto* proto = ConstTensor(node);
    // A few bytes may stand for many equal elements.
    if (proto == nullptr ||
        proto->tensor_content().size() < kLeastStoredBytes) {
      continue;
    }
    const auto value = ConstValue(node);
    if (value.ok()) {
      StoreValue(*value, (*node.mutable_attr())["value"].mutable_tensor());
    }
  }
}

void ForgetAllBut(const GraphDef& graph) {
  const absl::MutexLock lock(&store_mutex);
  if (store == nullptr) return;
  absl::flat_hash_set<size_t> kept;
  for (const NodeDef& node : graph.node()) {
    const TensorProto* proto = ConstTensor(node);
    if (proto == nullptr) continue;
    if (const auto number = NumberOfStored(*proto)) kept.insert(*number);
  }
  for (size_t i = 0; i < store->values.size(); ++i) {
    if (!kept.contains(i)) store->values[i] = Tensor();
  }
}

void FillIn(NodeDef* node) {
  const TensorProto* proto = ConstTensor(*node);
  if (proto == nullptr) return;
  const std::optional<Tensor> value = StoredValue(*proto);
  if (!value.has_value()) return;
  value->AsProtoTensorContent(
      (*node->mutable_attr())["value"].mutable_tensor());
}

int64_t FilledBytes(const NodeDef& node) {
  return static_cast<int64_t>(node.ByteSizeLong()) + GrowthOf(node);
}

int64_t FilledBytes(const GraphDef& graph) {
  int64_t bytes = static_cast<int64_t>(graph.ByteSizeLong());
  for (const NodeDef& node : graph.node()) {
    bytes += GrowthOutside(static_cast<int64_t>(node.ByteSizeLong()),
                           GrowthOf(node));
  }
  return bytes;
}

}  // namespace requant
