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
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace requant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::TextFormat;

// A workflow is a few hundred lines; anything larger is another file.
constexpr int64_t kMaxBytes = 1 << 20;
// Far more than anyone writes; work grows with the square of these.
constexpr int kMostParts = 1000;
constexpr int kMaxNesting = 20;

const Descriptor* FindType(std::string_view full_name) {
  return Workflow::descriptor()->file()->pool()->FindMessageTypeByName(
      std::string(full_name));
}

// 'Stage has no field "sumary"; did you mean "summary"?'
std::string UnknownField(const Descriptor& type, std::string_view name) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) {
    names.emplace_back(type.field(i)->name());
  }
  const std::string suggestion = SuggestName(name, names);
  return absl::StrCat(
      type.name(), " has no field \"", name, "\"",
      suggestion.empty()
          ? absl::StrCat("; its fields are ", absl::StrJoin(names, ", "))
          : suggestion);
}

// The parser's message in our words where these help more.
std::string Explain(std::string_view message) {
  const std::vector<std::string_view> parts = absl::StrSplit(message, '"');
  if (parts.size() >= 4 && absl::StrContains(parts[2], "no field named")) {
    const Descriptor* const type = FindType(parts[1]);
    if (type != nullptr) return UnknownField(*type, parts[3]);
  }
  if (absl::StartsWith(message, "Unknown enumeration value")) {
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

// With unknown fields allowed, the parser goes on behind them and tells them as
// warnings; to us they are mistakes like any other.
class ParseProblems : public google::protobuf::io::ErrorCollector {
 public:
  explicit ParseProblems(FileProblems* problems) : problems_(problems) {}

  void RecordError(int line, google::protobuf::io::ColumnNumber column,
                   absl::string_view message) override {
    problems_->Add(line + 1, problems_->full() ? "" : Explain(message));
  }
  void RecordWarning(int line, google::protobuf::io::ColumnNumber column,
                     absl::string_view message) override {
    RecordError(line, column, message);
  }

 private:
  FileProblems* const problems_;
};

absl::Status Parse(WorkflowFile* file) {
  FileProblems problems(file->path);
  ParseProblems collector(&problems);
  auto positions = std::make_shared<TextFormat::ParseInfoTree>();
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(positions.get());
  parser.SetRecursionLimit(kMaxNesting);
  parser.AllowUnknownField(true);
  const bool parsed = parser.ParseFromString(file->content, &file->workflow);
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

// "wide_deep" for "workflows/wide_deep.textproto".
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
