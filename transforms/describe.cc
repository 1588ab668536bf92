#include "transforms/describe.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text/wrap_text.h"
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

bool LooksLikeCode(std::string_view word) {
  return absl::StartsWith(word, "--") ||
         word.find_first_of("_=<") != std::string_view::npos;
}

bool IsBalanced(std::string_view text) {
  return std::count(text.begin(), text.end(), '(') ==
         std::count(text.begin(), text.end(), ')');
}

// `code` between backticks, with the punctuation that ends a clause behind
// them.
std::string Quoted(std::string_view code) {
  std::string_view before, after;
  if (absl::StartsWith(code, "(") && !IsBalanced(code)) {
    before = code.substr(0, 1);
    code.remove_prefix(1);
  }
  size_t end = code.find_last_not_of(".,;:");
  if (end != std::string_view::npos && code[end] == ')' &&
      !IsBalanced(code.substr(0, end + 1))) {
    --end;
  }
  after = code.substr(end + 1);
  return absl::StrCat(before, "`", code.substr(0, end + 1), "`", after);
}

// Prose as Markdown: names of transforms, flags and nodes, and whole calls
// such as a(b=c, d=e), become code.
std::string Markdown(const std::string& text) {
  std::vector<std::string> words;
  std::string code;
  for (std::string_view word : absl::StrSplit(text, ' ')) {
    if (code.empty() && !LooksLikeCode(word)) {
      words.emplace_back(word);
      continue;
    }
    absl::StrAppend(&code, code.empty() ? "" : " ", word);
    const bool call_goes_on =
        code[0] != '(' && absl::StrContains(code, '(') && !IsBalanced(code);
    if (call_goes_on) continue;
    words.push_back(Quoted(code));
    code.clear();
  }
  if (!code.empty()) words.push_back(Quoted(code));
  return absl::StrReplaceAll(absl::StrJoin(words, " "), {{"|", "\\|"}});
}

void AppendMarkdown(const RegisteredTransform& transform, std::string* text) {
  const TransformSpec& spec = transform.spec;
  absl::StrAppend(text, "\n### ", spec.name, "\n\n", Markdown(spec.summary),
                  "\n");
  if (!spec.description.empty()) {
    absl::StrAppend(text, Markdown(spec.description), "\n");
  }
  if (Prerequisites(spec) != "none") {
    absl::StrAppend(text, "\nPrerequisites: ", Markdown(Prerequisites(spec)),
                    "\n");
  }
  if (spec.parameters.empty()) return;
  absl::StrAppend(text, "\n| parameter | type | meaning |\n|---|---|---|\n");
  for (const ParameterSpec& parameter : spec.parameters) {
    absl::StrAppend(text, "| `", parameter.name, "` | ",
                    ParameterNote(parameter), " | ",
                    Markdown(parameter.description), " |\n");
  }
}

// All transforms of one origin: a list with links, then one after the other.
void AppendSection(const TransformRegistry& registry, std::string_view origin,
                   std::string_view title, std::string* text) {
  absl::StrAppend(text, "\n## ", title, "\n\n");
  for (const auto* transform : registry.All()) {
    if (transform->origin != origin) continue;
    const std::string& name = transform->spec.name;
    absl::StrAppend(text, "- [", name, "](#",
                    absl::StrReplaceAll(name, {{":", ""}}),
                    "): ", Markdown(transform->spec.summary), "\n");
  }
  for (const auto* transform : registry.All()) {
    if (transform->origin == origin) AppendMarkdown(*transform, text);
  }
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
  return text;
}

std::string TransformsMarkdown(const TransformRegistry& registry) {
  std::string text =
      "# Transform reference\n\n"
      "Written by `transform_graph --transforms_markdown`; a test compares it "
      "with the registry.\n\n"
      "The transforms of a list run from left to right, as in\n"
      "`--transforms='strip_unused_nodes remove_nodes(op=Identity, "
      "op=CheckNumerics)'`. Values with blanks, commas\n"
      "or brackets are put in double quotes. Every transform also takes "
      "`ignore_errors=true`: when it returns\n"
      "an error, that becomes a warning and the next one goes on with the "
      "graph "
      "as it was. A crash and a graph that no\n"
      "longer passes the verifier end the run all the same.\n";
  AppendSection(registry, "Requant", "Requant's own transforms", &text);
  AppendSection(registry, "TensorFlow", "TensorFlow's stock transforms", &text);
  return text;
}

}  // namespace requant
