#include "transforms/registry.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"

namespace requant {
namespace {

using tensorflow::GraphDef;

// Declares TensorFlow's registry, whose header is not in the wheel. The layouts
// are those of its tools/graph_transforms/transform_utils.h.
struct StockContext {
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::map<std::string, std::vector<std::string>> params;
};
using StockFunction = std::function<absl::Status(
    const GraphDef&, const StockContext&, GraphDef*)>;
using StockRegistry = std::map<std::string, StockFunction>;

constexpr char kStockPrefix[] = "stock:";
constexpr char kIgnoreErrors[] = "ignore_errors";
constexpr char kTensorFlow[] = "TensorFlow";

absl::StatusOr<StockRegistry*> GetStockRegistry() {
  REQUANT_ASSIGN_OR_RETURN(
      void* symbol,
      TensorFlowSymbol(
          "_ZN10tensorflow16graph_transforms20GetTransformRegistryB5cxx11Ev"));
  return reinterpret_cast<StockRegistry* (*)()>(symbol)();
}

// Restores the fields other than the nodes, which stock transforms drop.
void KeepWhatStockDrops(const GraphDef& before, GraphDef* after) {
  if (before.has_library() && after->library().function_size() == 0 &&
      after->library().gradient_size() == 0) {
    *after->mutable_library() = before.library();
  }
  if (!after->has_versions() && before.has_versions()) {
    *after->mutable_versions() = before.versions();
  }
}

// Returns whether two graphs have the same nodes in the same order.
bool SameNodes(const GraphDef& a, const GraphDef& b) {
  return a.ByteSizeLong() == b.ByteSizeLong() &&
         std::equal(a.node().begin(), a.node().end(), b.node().begin(),
                    b.node().end(), SameMessage);
}

// Returns the nodes of `tensors`: "x" for "x:0". Stock transforms compare
// --inputs and --outputs with node names; only fold_constants parses ports.
std::vector<std::string> NodesOf(const std::vector<std::string>& tensors) {
  std::vector<std::string> nodes;
  for (const std::string& tensor : tensors) {
    nodes.emplace_back(ParseTensorName(tensor).node);
  }
  return nodes;
}

TransformFunction WrapStock(const std::string& name, StockFunction stock) {
  return [name, stock = std::move(stock)](TransformContext& context,
                                          GraphDef* graph) -> absl::Status {
    StockContext stock_context{context.inputs, context.outputs,
                               context.parameters.values()};
    if (name != "fold_constants") {
      stock_context.input_names = NodesOf(context.inputs);
      stock_context.output_names = NodesOf(context.outputs);
    }
    GraphDef result;
    REQUANT_RETURN_IF_ERROR(stock(*graph, stock_context, &result));
    KeepWhatStockDrops(*graph, &result);
    if (SameNodes(*graph, result)) {
      context.notes.push_back("changes nothing");
    } else if (std::string warning = StockWarning(name, *graph);
               !warning.empty()) {
      context.warnings.push_back(std::move(warning));
    }
    graph->Swap(&result);
    return absl::OkStatus();
  };
}

TransformSpec SpecOfStock(const std::string& name) {
  for (const TransformSpec& spec : StockSpecs()) {
    if (spec.name == name) return spec;
  }
  // A later TensorFlow may bring transforms that StockSpecs does not know.
  return {name, "A transform of TensorFlow's library."};
}

// A plugin's exceptions must not pass through TensorFlow's stack frames.
TransformFunction CatchExceptions(TransformFunction run, std::string path) {
  return [run = std::move(run), path = std::move(path)](
             TransformContext& context, GraphDef* graph) -> absl::Status {
    try {
      return run(context, graph);
    } catch (const std::exception& error) {
      return absl::InternalError(
          absl::StrCat("the plugin ", path, " threw \"", error.what(), "\""));
    } catch (...) {
      return absl::InternalError(
          absl::StrCat("the plugin ", path, " threw an exception"));
    }
  };
}

absl::StatusOr<const PluginDescription*> OpenPlugin(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(
        "the plugin ", path, " does not exist or is not readable"));
  }
  // A name without a slash would be looked up in the system's library folders.
  const std::string file =
      absl::StrContains(path, '/') ? path : absl::StrCat("./", path);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plugin ", path, " cannot be loaded: ", dlerror()));
  }
  auto* describe = reinterpret_cast<const PluginDescription* (*)()>(
      dlsym(library, kPluginSymbol));
  if (describe == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is not a Requant plugin: it has no symbol ", kPluginSymbol,
        "; build it against transforms/transform.h"));
  }
  return describe();
}

absl::Status CheckPlugin(const PluginDescription& plugin,
                         const std::string& path) {
  if (plugin.abi_version != REQUANT_PLUGIN_ABI_VERSION) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plugin ", path, " was built for plugin interface ",
                     plugin.abi_version, ", this program has ",
                     REQUANT_PLUGIN_ABI_VERSION, "; build it again"));
  }
  if (std::string(plugin.tensorflow_version) != REQUANT_TENSORFLOW_VERSION) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plugin ", path, " was built for TensorFlow ",
                     plugin.tensorflow_version, ", this program uses ",
                     REQUANT_TENSORFLOW_VERSION, "; build it again"));
  }
  if (plugin.transforms()->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plugin ", path, " registers no transform"));
  }
  for (const ModuleTransform& transform : *plugin.transforms()) {
    const auto calls = ParsePipeline(transform.spec.name);
    if (!calls.ok() || calls->size() != 1 ||
        (*calls)[0].name != transform.spec.name ||
        absl::StartsWith(transform.spec.name, kStockPrefix)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plugin ", path, " registers the name \"",
                       transform.spec.name, "\", which cannot be called"));
    }
  }
  return absl::OkStatus();
}

// Converts `value` to the form that Parameters reads. Returns false if it has
// the wrong type.
bool Normalize(ParameterType type, std::string* value) {
  switch (type) {
    case ParameterType::kString:
      return true;
    case ParameterType::kInt: {
      int64_t number;
      return absl::SimpleAtoi(*value, &number);
    }
    case ParameterType::kFloat: {
      float number;
      return absl::SimpleAtof(*value, &number) && std::isfinite(number);
    }
    case ParameterType::kBool: {
      bool flag;
      if (!absl::SimpleAtob(absl::AsciiStrToLower(*value), &flag)) return false;
      *value = flag ? "true" : "false";
      return true;
    }
  }
  return false;
}

std::string TypeName(ParameterType type) {
  constexpr const char* kNames[] = {"string", "int", "float", "bool"};
  return kNames[static_cast<int>(type)];
}

std::string AllowedParameters(const TransformSpec& spec) {
  if (spec.parameters.empty()) {
    return absl::StrCat(spec.name, " takes no parameters but ", kIgnoreErrors);
  }
  std::vector<std::string> described;
  for (const ParameterSpec& p : spec.parameters) {
    described.push_back(absl::StrCat(p.name, " (", ParameterNote(p), ")"));
  }
  return absl::StrCat(spec.name, " takes ", absl::StrJoin(described, ", "));
}

const ParameterSpec* FindParameter(const TransformSpec& spec,
                                   const std::string& name) {
  static const auto* ignore_errors = new ParameterSpec{
      kIgnoreErrors, ParameterType::kBool, "Go on with the graph as it was."};
  for (const ParameterSpec& parameter : spec.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return name == kIgnoreErrors ? ignore_errors : nullptr;
}

absl::Status CheckParameter(const TransformSpec& spec, const std::string& name,
                            std::vector<std::string>* values) {
  const ParameterSpec* parameter = FindParameter(spec, name);
  if (parameter == nullptr) {
    std::vector<std::string> names;
    for (const ParameterSpec& p : spec.parameters) names.push_back(p.name);
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name, " has no parameter \"", name, "\"",
                     DidYouMean(name, names), "; ", AllowedParameters(spec)));
  }
  if (values->size() > 1 && !parameter->repeated) {
    return absl::InvalidArgumentError(
        absl::StrCat("the parameter ", name, " of ", spec.name, " is given ",
                     values->size(), " times, but takes one value"));
  }
  for (std::string& value : *values) {
    if (double number; parameter->minimum > -HUGE_VAL &&
                       absl::SimpleAtod(value, &number) &&
                       number < parameter->minimum) {
      return absl::InvalidArgumentError(
          absl::StrCat("the parameter ", name, " of ", spec.name,
                       " is at least ", parameter->minimum, ", not ", value));
    }
    if (!Normalize(parameter->type, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the parameter ", name, " of ", spec.name, " takes ",
                       parameter->type == ParameterType::kInt ? "an " : "a ",
                       TypeName(parameter->type), ", not \"", value, "\""));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ParameterNote(const ParameterSpec& parameter) {
  std::string note = TypeName(parameter.type);
  if (parameter.required) {
    note += ", required";
  } else if (!parameter.default_value.empty()) {
    absl::StrAppend(&note, ", default ", parameter.default_value);
  }
  if (parameter.repeated) note += ", may be repeated";
  return note;
}

absl::StatusOr<Parameters> ResolveParameters(const TransformSpec& spec,
                                             const TransformCall& call) {
  std::map<std::string, std::vector<std::string>> values = call.parameters;
  for (auto& [name, given] : values) {
    REQUANT_RETURN_IF_ERROR(CheckParameter(spec, name, &given));
  }
  for (const ParameterSpec& parameter : spec.parameters) {
    if (values.count(parameter.name) > 0) continue;
    if (parameter.required) {
      return absl::InvalidArgumentError(absl::StrCat(
          spec.name, " needs the parameter ", parameter.name, ", as in ",
          spec.name, "(", parameter.name, "=…); ", AllowedParameters(spec)));
    }
    if (!parameter.default_value.empty()) {
      values[parameter.name] = {parameter.default_value};
    }
  }
  return Parameters(std::move(values));
}

absl::StatusOr<TransformRegistry*> TransformRegistry::Get() {
  static const auto* registry = [] {
    auto created = absl::WrapUnique(new TransformRegistry());
    absl::Status status = created->AddStock();
    if (status.ok()) status = created->AddOwn();
    return status.ok()
               ? new absl::StatusOr<TransformRegistry*>(created.release())
               : new absl::StatusOr<TransformRegistry*>(status);
  }();
  return *registry;
}

absl::Status TransformRegistry::AddStock() {
  REQUANT_ASSIGN_OR_RETURN(StockRegistry * stock, GetStockRegistry());
  for (const auto& [name, function] : *stock) {
    transforms_[name] = {SpecOfStock(name), WrapStock(name, function),
                         kTensorFlow};
  }
  return absl::OkStatus();
}

absl::Status TransformRegistry::AddOwn() {
  for (const ModuleTransform& own : ModuleTransforms()) {
    const std::string& name = own.spec.name;
    const auto taken = transforms_.find(name);
    if (taken != transforms_.end()) {
      if (taken->second.origin != kTensorFlow) {
        return absl::InternalError(
            absl::StrCat("the transform ", name, " is registered twice"));
      }
      MoveToStockName(name);
    }
    transforms_[name] = {own.spec, own.run, "Requant"};
  }
  return absl::OkStatus();
}

void TransformRegistry::MoveToStockName(const std::string& name) {
  RegisteredTransform stock = std::move(transforms_.at(name));
  stock.spec.name = kStockPrefix + name;
  transforms_[stock.spec.name] = std::move(stock);
}

absl::StatusOr<const RegisteredTransform*> TransformRegistry::Find(
    const std::string& name) const {
  auto found = transforms_.find(name);
  if (found == transforms_.end() && absl::StartsWith(name, kStockPrefix)) {
    // Only shadowed transforms are listed under both names.
    found = transforms_.find(name.substr(sizeof(kStockPrefix) - 1));
    if (found != transforms_.end() && found->second.origin != kTensorFlow) {
      found = transforms_.end();
    }
  }
  if (found != transforms_.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, transform] : transforms_) names.push_back(known);
  return absl::NotFoundError(absl::StrCat(
      "there is no transform \"", name, "\"", DidYouMean(name, names),
      "; there are: ", absl::StrJoin(names, ", ")));
}

std::vector<const RegisteredTransform*> TransformRegistry::All() const {
  std::vector<const RegisteredTransform*> all;
  for (const auto& [name, transform] : transforms_) all.push_back(&transform);
  return all;
}

absl::Status TransformRegistry::LoadPlugin(const std::string& path,
                                           bool allow_override,
                                           std::vector<std::string>* notes) {
  REQUANT_ASSIGN_OR_RETURN(const PluginDescription* plugin, OpenPlugin(path));
  REQUANT_RETURN_IF_ERROR(CheckPlugin(*plugin, path));
  for (const ModuleTransform& added : *plugin->transforms()) {
    const std::string& name = added.spec.name;
    const auto taken = transforms_.find(name);
    if (taken != transforms_.end()) {
      if (!allow_override) {
        return absl::AlreadyExistsError(
            absl::StrCat("the plugin ", path, " registers \"", name,
                         "\", which ", taken->second.origin,
                         " already has; rename it or pass --allow_override"));
      }
      notes->push_back(absl::StrCat("\"", name, "\" of ", taken->second.origin,
                                    " is replaced by ", path));
      if (taken->second.origin == kTensorFlow) MoveToStockName(name);
    }
    transforms_[name] = {added.spec, CatchExceptions(added.run, path), path};
  }
  return absl::OkStatus();
}

}  // namespace requant
