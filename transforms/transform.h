#ifndef REQUANT_TRANSFORMS_TRANSFORM_H_
#define REQUANT_TRANSFORMS_TRANSFORM_H_

// Declares what a graph transform needs. A transform includes no other header
// of Requant, whether it is linked into the programs or built as your own
// shared library that transform_graph loads with --plugins=my.so:
//
//   absl::Status DropDevices(requant::TransformContext& context,
//                            tensorflow::GraphDef* graph) {
//     for (auto& node : *graph->mutable_node()) node.clear_device();
//     return absl::OkStatus();
//   }
//   REQUANT_REGISTER_TRANSFORM(
//       DropDevices, {"drop_devices", "Clears the device of every node."});
//
// transforms/example_plugin.cc is a complete example, with its BUILD target.

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"

// Changes whenever anything in this header changes layout or meaning. A plugin
// built against another version is refused.
#ifndef REQUANT_PLUGIN_ABI_VERSION
#define REQUANT_PLUGIN_ABI_VERSION 1
#endif

namespace requant {

enum class ParameterType { kString, kInt, kFloat, kBool };

struct ParameterSpec {
  std::string name;
  ParameterType type = ParameterType::kString;
  std::string description = "";
  // The value as written in a transform string; empty means not set.
  std::string default_value = "";
  bool required = false;
  // Whether it may be given several times: op=Min, op=Max.
  bool repeated = false;
  // Smaller numbers are refused.
  double minimum = -std::numeric_limits<double>::infinity();
};

// A transform's description of itself for error messages, --describe and
// docs/transforms.md.
struct TransformSpec {
  std::string name;
  // A single sentence.
  std::string summary;
  // When to use it and what it promises.
  std::string description = "";
  std::vector<ParameterSpec> parameters = {};
  std::string prerequisites = "none";
  // Whether it is refused if --outputs are missing or not in the graph.
  bool needs_outputs = false;
};

// A transform's parameters as the user gave them, with defaults filled in. They
// have been checked against the spec, so reading one cannot fail.
class Parameters {
 public:
  Parameters() = default;
  explicit Parameters(std::map<std::string, std::vector<std::string>> values)
      : values_(std::move(values)) {}

  bool Has(const std::string& name) const { return values_.count(name) > 0; }
  const std::vector<std::string>& All(const std::string& name) const {
    static const auto* none = new std::vector<std::string>();
    const auto found = values_.find(name);
    return found == values_.end() ? *none : found->second;
  }
  std::string String(const std::string& name) const {
    return All(name).empty() ? "" : All(name).front();
  }
  int64_t Int(const std::string& name) const {
    return std::strtoll(String(name).c_str(), nullptr, 10);
  }
  float Float(const std::string& name) const {
    return std::strtof(String(name).c_str(), nullptr);
  }
  bool Bool(const std::string& name) const { return String(name) == "true"; }
  const std::map<std::string, std::vector<std::string>>& values() const {
    return values_;
  }

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

// The arguments of a transform's call.
struct TransformContext {
  // Names of the graph's inputs and outputs (--inputs, --outputs); may be
  // empty.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  Parameters parameters;
  // What the user should know: what was done, and what looks doubtful.
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// Changes *graph in place. On an error *graph is unspecified, and the message
// says what is wrong with which node, file or parameter, and what to do. Must
// not crash on any graph.
using TransformFunction =
    std::function<absl::Status(TransformContext&, tensorflow::GraphDef*)>;

struct ModuleTransform {
  TransformSpec spec;
  TransformFunction run;
};

// Returns the transforms of one module, the program or one plugin. Each module
// has its own list because the function is hidden.
[[gnu::visibility("hidden")]] inline std::vector<ModuleTransform>&
ModuleTransforms() {
  static auto* transforms = new std::vector<ModuleTransform>();
  return *transforms;
}

// clang-format off
struct [[gnu::visibility("hidden")]] TransformRegistration {
  TransformRegistration(TransformFunction run, TransformSpec spec) {
    ModuleTransforms().push_back({std::move(spec), std::move(run)});
  }
};
// clang-format on

// What a plugin exposes before any of its C++ objects is touched.
struct PluginDescription {
  int32_t abi_version;
  const char* tensorflow_version;
  std::vector<ModuleTransform>* (*transforms)();
};

inline constexpr char kPluginSymbol[] = "requant_plugin_description";

// This is hidden like ModuleTransforms because a process's modules would all
// share the static of a visible inline function.
[[gnu::visibility("hidden")]] inline const PluginDescription&
ModuleDescription() {
  static const PluginDescription description = {
      REQUANT_PLUGIN_ABI_VERSION, REQUANT_TENSORFLOW_VERSION,
      +[] { return &ModuleTransforms(); }};
  return description;
}

}  // namespace requant

// Every module has this plugin entry point; only shared libraries export it.
// clang-format off
extern "C" [[gnu::used, gnu::visibility("default")]]
inline const requant::PluginDescription* requant_plugin_description() {
  return &requant::ModuleDescription();
}
// clang-format on

// Registers `function` with a TransformSpec. Use it at namespace scope.
#define REQUANT_REGISTER_TRANSFORM(function, ...)  \
  static const ::requant::TransformRegistration    \
      requant_registration_of_##function {         \
    function, ::requant::TransformSpec __VA_ARGS__ \
  }

#endif  // REQUANT_TRANSFORMS_TRANSFORM_H_
