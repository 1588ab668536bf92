#include "workflows/language/workflow_file.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/message/text_proto.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/descriptor.h"

namespace requant {
namespace {

using google::protobuf::EnumDescriptor;

// A workflow is a few hundred lines; anything larger is another file.
constexpr int64_t kMaxBytes = 1 << 20;
// Far more than anyone writes; work grows with the square of these.
constexpr int kMostParts = 1000;

// Returns the parser's message in our words where these help more.
std::string Explain(std::string_view message) {
  const auto unknown = FindUnknownField(message, *Workflow::descriptor());
  if (unknown.has_value()) {
    const std::string suggestion = SuggestName(unknown->name, unknown->known);
    return absl::StrCat(unknown->sentence,
                        suggestion.empty()
                            ? absl::StrCat("; its fields are ",
                                           absl::StrJoin(unknown->known, ", "))
                            : suggestion);
  }
  if (absl::StartsWith(message, "Unknown enumeration value")) {
    const std::vector<std::string_view> parts = absl::StrSplit(message, '"');
    std::vector<std::string> names;
    const EnumDescriptor* const type = Variable::Kind_descriptor();
    for (int i = 0; i < type->value_count(); ++i) {
      names.emplace_back(type->value(i)->name());
    }
    return absl::StrCat("\"", parts.size() > 1 ? parts[1] : "",
                        "\" is no kind of variable; the kinds are ",
                        absl::StrJoin(names, ", "));
  }
  return std::string(absl::StripSuffix(message, "."));
}

absl::Status Parse(WorkflowFile* file) {
  FileProblems problems(file->path);
  auto positions = std::make_shared<FieldPlaces::Tree>();
  TextProtoOptions options;
  options.passes_unknown_fields = true;
  options.places = positions.get();
  const bool parsed = ParseTextProto(
      file->content, options,
      [&](int line, int, std::string_view message) {
        problems.Add(line, problems.full() ? "" : Explain(message));
      },
      &file->workflow);
  file->positions = std::move(positions);
  if (!parsed && problems.empty()) problems.Add(0, "not a workflow file");
  return problems.status();
}

absl::Status CheckSize(const WorkflowFile& file) {
  FileProblems problems(file.path);
  const auto check = [&](int count, const char* what) {
    if (count <= kMostParts) return;
    problems.Add(0,
                 absl::StrCat("it has ", count, " ", what, ", more than the ",
                              kMostParts, " that a workflow may have"));
  };
  check(file.workflow.stage_size(), "stages");
  check(file.workflow.evaluation_size(), "evaluations");
  check(file.workflow.variable_size(), "variables");
  return problems.status();
}

// Returns "wide_deep" for "workflows/wide_deep.textproto".
std::string NameOf(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return std::string(absl::StripSuffix(path, ".textproto"));
}

absl::Status FillInVariables(const WorkflowSettings& settings,
                             WorkflowFile* file) {
  const std::string folder = file->path.substr(0, file->path.rfind('/') + 1);
  FileProblems problems(file->path);
  std::string missing;
  file->variables = ExpandVariables(settings, folder, file->places(),
                                    &file->workflow, &problems, &missing);
  if (missing.empty()) return problems.status();
  return absl::InvalidArgumentError(
      absl::StrCat(problems.status().message(), problems.empty() ? "" : "\n",
                   file->path, ": these variables need a value:\n", missing));
}

}  // namespace

absl::StatusOr<WorkflowFile> ReadWorkflowFile(
    const std::string& path, const WorkflowSettings& settings) {
  WorkflowFile file;
  file.path = path;
  REQUANT_RETURN_IF_ERROR(CheckRegular(path));
  REQUANT_ASSIGN_OR_RETURN(file.content, ReadFile(path, kMaxBytes));
  REQUANT_RETURN_IF_ERROR(Parse(&file));
  REQUANT_RETURN_IF_ERROR(CheckSize(file));
  REQUANT_RETURN_IF_ERROR(FillInVariables(settings, &file));
  if (file.workflow.name().empty()) file.workflow.set_name(NameOf(path));
  return file;
}

}  // namespace requant
