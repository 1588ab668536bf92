#ifndef REQUANT_WORKFLOWS_LANGUAGE_TRANSFORM_CHECK_H_
#define REQUANT_WORKFLOWS_LANGUAGE_TRANSFORM_CHECK_H_

#include <set>
#include <string>

#include "absl/status/status.h"

namespace requant {

struct TransformCheck {
  // As transform_graph takes them.
  std::string transforms;
  // The values in them that stand for files of the stage.
  std::set<std::string> files;
  bool has_outputs = false;
  // Plugins may bring further names, which are then not known here.
  bool has_plugins = false;
};

// Whether transform_graph would take these transforms: their names, parameters
// and need for outputs; and whether every file they read is one of the stage's,
// whose content counts. What plugins read is not known. Opens no library:
// TensorFlow's transforms are known by their descriptions.
absl::Status CheckTransforms(const TransformCheck& check);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_LANGUAGE_TRANSFORM_CHECK_H_
