#ifndef REQUANT_TRANSFORMS_STOCK_SPECS_H_
#define REQUANT_TRANSFORMS_STOCK_SPECS_H_

#include <string>
#include <vector>

#include "transforms/transform.h"

namespace requant {

// Returns descriptions of the transforms in TensorFlow's library, which has
// only functions under names.
const std::vector<TransformSpec>& StockSpecs();

// Returns what is known to go wrong silently when stock transform `name`
// changes a graph that was `before`; "" for nothing.
std::string StockWarning(const std::string& name,
                         const tensorflow::GraphDef& before);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_STOCK_SPECS_H_
