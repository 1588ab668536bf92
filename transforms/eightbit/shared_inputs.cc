#include "transforms/eightbit/shared_inputs.h"

#include <cstddef>
#include <set>
#include <utility>

namespace requant {
namespace {

using WeightsKey = std::pair<std::string, bool>;

// This many copies of eight-bit codes take as much as the float weights. Inputs
// with ranges of their own are worth that.
constexpr size_t kMostCopies = 4;

WeightsKey KeyOf(const FloatLayer& layer) {
  return {layer.weights_node->name(), layer.transposed};
}

// Sets of tensors, each with a tensor that stands for it.
class TensorSets {
 public:
  const std::string& RootOf(const std::string& tensor) {
    const std::string* root = &tensor;
    for (auto up = parents_.find(*root); up != parents_.end();
         up = parents_.find(*root)) {
      root = &up->second;
    }
    return *root;
  }

  void Unite(const std::string& a, const std::string& b) {
    const std::string& root = RootOf(a);
    const std::string& other = RootOf(b);
    if (root != other) parents_[other] = root;
  }

 private:
  std::map<std::string, std::string> parents_;
};

// Returns the outputs that come with codes, and whether each ends at six.
std::map<std::string, bool> CodedOutputs(
    const std::vector<FloatLayer>& layers) {
  std::map<std::string, bool> coded;
  for (const FloatLayer& layer : layers) {
    if (layer.activation == nullptr) continue;
    coded[layer.output] = layer.activation->op() == "Relu6";
  }
  return coded;
}

void AddTo(const FloatLayer& layer, bool is_relu6,
           std::set<WeightsKey>* weights, InputGroup* group) {
  group->readers.push_back(&layer);
  if (weights->insert(KeyOf(layer)).second) group->layers.push_back(&layer);
  for (const std::string& tensor : group->tensors) {
    if (tensor == layer.input) return;
  }
  group->all_relu6 = is_relu6 && (group->tensors.empty() || group->all_relu6);
  group->tensors.push_back(layer.input);
}

}  // namespace

SharedInputs FindSharedInputs(const std::vector<FloatLayer>& layers) {
  TensorSets sets;
  std::map<WeightsKey, std::set<std::string>> inputs;
  for (const FloatLayer& layer : layers) {
    inputs[KeyOf(layer)].insert(layer.input);
  }
  for (const auto& [weights, tensors] : inputs) {
    if (tensors.size() <= kMostCopies) continue;
    for (const std::string& tensor : tensors) {
      sets.Unite(*tensors.begin(), tensor);
    }
  }
  const std::map<std::string, bool> coded = CodedOutputs(layers);
  using GroupKey = std::pair<std::string, bool>;
  std::map<GroupKey, InputGroup> groups;
  std::map<GroupKey, std::set<WeightsKey>> weights;
  std::vector<GroupKey> order;
  for (const FloatLayer& layer : layers) {
    const auto code = coded.find(layer.input);
    const GroupKey key = {sets.RootOf(layer.input), code != coded.end()};
    if (groups.count(key) == 0) order.push_back(key);
    AddTo(layer, code != coded.end() && code->second, &weights[key],
          &groups[key]);
  }
  SharedInputs shared;
  for (const GroupKey& key : order) {
    InputGroup& group = groups[key];
    if (group.tensors.size() < 2) continue;
    for (const std::string& tensor : group.tensors) {
      shared.group_of[tensor] = static_cast<int>(shared.groups.size());
    }
    shared.groups.push_back(std::move(group));
  }
  return shared;
}

}  // namespace requant
