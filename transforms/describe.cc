#include "transforms/describe.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/wrap_text.h"
#include "transforms/registry.h"
#include "transforms/transform.h"

namespace requant {
namespace {

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

std::string Prerequisites(const TransformSpec& spec) {
  if (!spec.needs_outputs) return spec.prerequisites;
  return spec.prerequisites == "none"
             ? "--outputs"
             : absl::StrCat("--outputs, ", spec.prerequisites);
}

std::string Cell(const std::string& text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"<", "&lt;"}});
}

void AppendMarkdown(const RegisteredTransform& transform, std::string* text) {
  const TransformSpec& spec = transform.spec;
  absl::StrAppend(text, "### ", spec.name, "\n\n", Cell(spec.summary), "\n");
  if (!spec.description.empty()) {
    absl::StrAppend(text, "\n", Cell(spec.description), "\n");
  }
  absl::StrAppend(text, "\nPrerequisites: ", Cell(Prerequisites(spec)), "\n\n");
  if (!spec.caveat.empty()) {
    absl::StrAppend(text, "**Beware:** ", Cell(spec.caveat), ".\n\n");
  }
  if (spec.parameters.empty()) return;
  absl::StrAppend(text, "| parameter | type | meaning |\n|---|---|---|\n");
  for (const ParameterSpec& parameter : spec.parameters) {
    absl::StrAppend(text, "| `", parameter.name, "` | ",
                    ParameterNote(parameter), " | ",
                    Cell(parameter.description), " |\n");
  }
  absl::StrAppend(text, "\n");
}

}  // namespace

std::string ListTransforms(const TransformRegistry& registry) {
  size_t width = 0;
  for (const auto* transform : registry.All()) {
    width = std::max(width, transform->spec.name.size());
  }
  std::string text;
  for (const auto* transform : registry.All()) {
    absl::StrAppendFormat(&text, "%-*s  %s\n", static_cast<int>(width),
                          transform->spec.name, transform->spec.summary);
  }
  return text;
}

std::string DescribeTransform(const RegisteredTransform& transform) {
  const TransformSpec& spec = transform.spec;
  std::string text;
  AppendWrapped(
      absl::StrCat(spec.name, " (", transform.origin, "): ", spec.summary), 0,
      &text);
  if (!spec.description.empty()) {
    text += "\n";
    AppendWrapped(spec.description, 0, &text);
  }
  text += "\nParameters:\n";
  for (const ParameterSpec& parameter : spec.parameters) {
    absl::StrAppend(&text, "  ", parameter.name, " (", ParameterNote(parameter),
                    ")\n");
    AppendWrapped(parameter.description, 6, &text);
  }
  absl::StrAppend(&text, "  ignore_errors (bool, default false)\n",
                  "      When it fails, warn and go on with the graph as it "
                  "was.\n\n");
  AppendWrapped(absl::StrCat("Prerequisites: ", Prerequisites(spec)), 0, &text);
  if (!spec.caveat.empty()) {
    AppendWrapped(absl::StrCat("Beware: ", spec.caveat, "."), 0, &text);
  }
  return text;
}

std::string TransformsMarkdown(const TransformRegistry& registry) {
  std::string text =
      "# Transform reference\n\n"
      "Written by `transform_graph --transforms_markdown`; a test compares it "
      "with the registry.\n\n"
      "A list of transforms runs from left to right, as in\n"
      "`--transforms='strip_unused_nodes remove_nodes(op=Identity, "
      "op=CheckNumerics)'`. Every transform also takes\n"
      "`ignore_errors=true`: when it fails, the next one goes on with the "
      "graph "
      "as it was.\n";
  for (const char* origin : {"Requant", "TensorFlow"}) {
    absl::StrAppend(&text, "\n## ", origin, "'s\n\n");
    for (const auto* transform : registry.All()) {
      if (transform->origin == origin) AppendMarkdown(*transform, &text);
    }
    while (text.size() > 2 && text[text.size() - 2] == '\n') text.pop_back();
  }
  return text;
}

}  // namespace requant
