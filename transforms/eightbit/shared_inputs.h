#ifndef REQUANT_TRANSFORMS_EIGHTBIT_SHARED_INPUTS_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_SHARED_INPUTS_H_

// Finds inputs that have to be quantized alike because more than a few layers
// with the same weights read them, such as the steps of an unrolled loop: only
// then do these layers have the same codes, and need no copies of them.

#include <map>
#include <string>
#include <vector>

#include "transforms/layers/float_layer.h"

namespace requant {

struct InputGroup {
  // At least two tensors, "x:0", in the order of the layers that read them.
  std::vector<std::string> tensors;
  // All layers that read them, and one layer for each of those weights.
  std::vector<const FloatLayer*> readers;
  std::vector<const FloatLayer*> layers;
  // Whether each of the tensors is the output of a layer that ends with Relu6.
  bool all_relu6 = false;
};

struct SharedInputs {
  std::vector<InputGroup> groups;
  // The index of a tensor's group.
  std::map<std::string, int> group_of;

  // Returns the tensor's group or null.
  const InputGroup* Find(const std::string& tensor) const {
    const auto found = group_of.find(tensor);
    return found == group_of.end() ? nullptr : &groups[found->second];
  }
};

// Finds the groups among the inputs of `layers`, which must outlive the result.
// Outputs of layers with an activation, which come with codes, and other
// tensors are never in the same group.
SharedInputs FindSharedInputs(const std::vector<FloatLayer>& layers);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_SHARED_INPUTS_H_
