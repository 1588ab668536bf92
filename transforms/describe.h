#ifndef REQUANT_TRANSFORMS_DESCRIBE_H_
#define REQUANT_TRANSFORMS_DESCRIBE_H_

#include <string>

#include "transforms/registry.h"

namespace requant {

// A line per transform: name and summary.
std::string ListTransforms(const TransformRegistry& registry);

// Everything a transform says of itself, for a terminal.
std::string DescribeTransform(const RegisteredTransform& transform);

// docs/transforms.md: the reference of all transforms.
std::string TransformsMarkdown(const TransformRegistry& registry);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_DESCRIBE_H_
