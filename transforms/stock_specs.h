#ifndef REQUANT_TRANSFORMS_STOCK_SPECS_H_
#define REQUANT_TRANSFORMS_STOCK_SPECS_H_

#include <vector>

#include "transforms/transform.h"

namespace requant {

// Descriptions of the transforms in TensorFlow's library, which has only
// functions under names.
const std::vector<TransformSpec>& StockSpecs();

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_STOCK_SPECS_H_
