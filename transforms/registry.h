#ifndef REQUANT_TRANSFORMS_REGISTRY_H_
#define REQUANT_TRANSFORMS_REGISTRY_H_

// Every transform by name: those of TensorFlow's own registry, ours, and those
// of the plugins a user loads.

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transforms/pipeline_parser.h"
#include "transforms/transform.h"

namespace requant {

struct RegisteredTransform {
  TransformSpec spec;
  TransformFunction run;
  // "TensorFlow", "Requant", or the plugin's path.
  std::string origin;
};

class TransformRegistry {
 public:
  // Returns the process's registry. The first call opens TensorFlow's library
  // and takes its transforms and those linked into the program. Where both have
  // a name, ours is under it and theirs under "stock:NAME".
  static absl::StatusOr<TransformRegistry*> Get();

  // Returns the transform of that name; "stock:NAME" is always TensorFlow's. An
  // unknown name is an error that suggests the nearest and lists them all.
  absl::StatusOr<const RegisteredTransform*> Find(
      const std::string& name) const;

  // Returns all transforms in order of name.
  std::vector<const RegisteredTransform*> All() const;

  // Opens a shared library and adds its transforms. A name that is taken is
  // refused, or replaced with `allow_override`; then `notes` says so.
  absl::Status LoadPlugin(const std::string& path, bool allow_override,
                          std::vector<std::string>* notes);

 private:
  TransformRegistry() = default;
  absl::Status AddStock();
  absl::Status AddOwn();
  // Keeps TensorFlow's transform `name` under "stock:NAME".
  void MoveToStockName(const std::string& name);

  std::map<std::string, RegisteredTransform> transforms_;
};

// Returns descriptions of the transforms in TensorFlow's library, which has
// only functions under names.
const std::vector<TransformSpec>& StockSpecs();

// Returns what is known to go wrong silently when stock transform `name`
// changes a graph that was `before`; "" for nothing.
std::string StockWarning(const std::string& name,
                         const tensorflow::GraphDef& before);

// Checks a call's parameters against the spec and fills in the defaults. An
// unknown or missing one, a value of the wrong type, or a repeated one is an
// error that says what is allowed. `ignore_errors` is allowed on every
// transform.
absl::StatusOr<Parameters> ResolveParameters(const TransformSpec& spec,
                                             const TransformCall& call);

// Returns "float, default 5" and the like, also whether it may be repeated.
std::string ParameterNote(const ParameterSpec& parameter);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_REGISTRY_H_
