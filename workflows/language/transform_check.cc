#include "workflows/language/transform_check.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "transforms/pipeline_parser.h"
#include "transforms/registry.h"
#include "transforms/stock_specs.h"
#include "transforms/transform.h"

namespace requant {
namespace {

// As in the registry: where both have a name, ours is under it.
const std::map<std::string, TransformSpec>& AllSpecs() {
  static const auto* const specs = [] {
    auto* all = new std::map<std::string, TransformSpec>();
    for (const ModuleTransform& own : ModuleTransforms()) {
      all->emplace(own.spec.name, own.spec);
    }
    for (const TransformSpec& stock : StockSpecs()) {
      all->emplace(stock.name, stock);
      all->emplace(absl::StrCat("stock:", stock.name), stock);
    }
    return all;
  }();
  return *specs;
}

// All parameters that name files are called so.
constexpr char kFileEnding[] = "_file";

// A file that is only named could change unnoticed.
absl::Status CheckFiles(const TransformCall& call,
                        const TransformCheck& check) {
  for (const auto& [name, values] : call.parameters) {
    if (!absl::EndsWith(name, kFileEnding)) continue;
    for (const std::string& value : values) {
      if (check.files.count(value) > 0) continue;
      const std::string file(absl::StripSuffix(name, kFileEnding));
      return absl::InvalidArgumentError(absl::StrCat(
          "transform \"", call.name, "\" reads \"", value,
          "\", a file whose content must count: add file { name: \"", file,
          "\" from { file: \"", absl::Utf8SafeCEscape(value),
          "\" } } and write ", name, "=${", file, "}"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCall(const TransformCall& call, const TransformCheck& check) {
  const auto spec = AllSpecs().find(call.name);
  if (spec == AllSpecs().end()) {
    if (check.has_plugins) return absl::OkStatus();
    std::vector<std::string> names;
    for (const auto& [name, unused] : AllSpecs()) names.push_back(name);
    const std::string suggestion = SuggestName(call.name, names);
    return absl::NotFoundError(absl::StrCat(
        "\"", call.name, "\": no such transform",
        suggestion.empty() ? "; requant transform --list_transforms lists them"
                           : suggestion));
  }
  REQUANT_RETURN_IF_ERROR(ResolveParameters(spec->second, call).status());
  REQUANT_RETURN_IF_ERROR(CheckFiles(call, check));
  if (spec->second.needs_outputs && !check.has_outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("transform \"", call.name,
                     "\" needs the graph's outputs: add outputs"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTransforms(const TransformCheck& check) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<TransformCall> calls,
                           ParsePipeline(check.transforms));
  if (calls.empty()) return absl::InvalidArgumentError("no transform is named");
  for (const TransformCall& call : calls) {
    REQUANT_RETURN_IF_ERROR(CheckCall(call, check));
  }
  return absl::OkStatus();
}

}  // namespace requant
