#ifndef REQUANT_TRANSFORMS_REGISTRY_H_
#define REQUANT_TRANSFORMS_REGISTRY_H_

// Finds transforms by name: those in TensorFlow's own registry, Requant's own,
// and those of the plugins that a user loads.

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
  // and adds its transforms and those linked into the program. If both have a
  // transform NAME, TensorFlow's is available as "stock:NAME".
  static absl::StatusOr<TransformRegistry*> Get();

  // Returns the transform of that name; "stock:NAME" is always TensorFlow's. An
  // unknown name is an error that suggests the nearest name and lists all.
  absl::StatusOr<const RegisteredTransform*> Find(
      const std::string& name) const;

  // Returns all transforms in order of name.
  std::vector<const RegisteredTransform*> All() const;

  // Opens a shared library and adds its transforms. Refuses a name that is
  // taken unless `allow_override`; then replaces it and adds a note.
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

// Returns descriptions of the transforms in TensorFlow's library, which itself
// has only names and functions.
const std::vector<TransformSpec>& StockSpecs();

// Returns what is known to go wrong silently when the stock transform `name`
// changes the graph `before`, or "".
std::string StockWarning(const std::string& name,
                         const tensorflow::GraphDef& before);

// Checks a call's parameters against the spec and fills in the defaults. An
// unknown, missing or wrongly repeated parameter, or a value of the wrong type,
// is an error that says what is allowed. Every transform allows
// `ignore_errors`.
absl::StatusOr<Parameters> ResolveParameters(const TransformSpec& spec,
                                             const TransformCall& call);

// Returns text such as "float, default 5", with whether it may be repeated.
std::string ParameterNote(const ParameterSpec& parameter);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_REGISTRY_H_
