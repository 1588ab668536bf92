#include "workflows/language/workflow_file.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/files/files.h"
#include "base/message/text_proto.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "workflows/language/stage_fields.h"

namespace requant {
namespace {

namespace fs = std::filesystem;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A workflow has a few hundred lines; a larger file is something else.
constexpr int64_t kMaxBytes = 1 << 20;
// This is far more than anyone writes. The work grows with its square.
constexpr int kMostParts = 1000;

// Returns the parser's message, in our own words where they help more.
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

bool IsNameStart(char c) { return c == '_' || (c >= 'a' && c <= 'z'); }

bool IsVariableName(std::string_view name) {
  if (name.empty() || !IsNameStart(name[0])) return false;
  for (const char c : name) {
    if (!IsNameStart(c) && (c < '0' || c > '9')) return false;
  }
  return true;
}

std::string ValueWord(Variable::Kind kind) {
  return kind == Variable::COUNT ? "NUMBER" : Variable::Kind_Name(kind);
}

bool IsPathField(const FieldDescriptor* field) {
  static const auto* const names = new std::set<std::string>{
      "requant.Input.file", "requant.Records.dataset", "requant.Baseline.file",
      "requant.Stage.use_file"};
  return names->count(std::string(field->full_name())) > 0 ||
         IsStagePath(field);
}

// Returns `path`, below `folder` if it is relative.
std::string From(const std::string& folder, std::string_view path) {
  if (path.empty() || path[0] == '/') return std::string(path);
  return absl::StrCat(folder, path);
}

// Returns comma-separated paths, those that are relative below `folder`.
std::string AllFrom(const std::string& folder, std::string_view paths) {
  return absl::StrJoin(absl::StrSplit(paths, ','), ",",
                       [&](std::string* out, std::string_view path) {
                         out->append(From(folder, path));
                       });
}

// Returns what is wrong with a value that names files or a folder, or "".
std::string PathProblem(Variable::Kind kind, const std::string& paths) {
  std::error_code error;
  if (kind == Variable::FOLDER) {
    if (fs::is_directory(paths, error)) return "";
    return absl::StrCat(
        fs::exists(paths, error) ? "not a folder: " : "no such folder: ",
        paths);
  }
  for (const std::string_view part : absl::StrSplit(paths, ',')) {
    const std::string path(part);
    if (!fs::exists(path, error) && MatchingFiles(path).empty()) {
      return absl::StrCat("no such file: ", path);
    }
  }
  return "";
}

// Replaces "${name}" by values in fields of type bytes, and makes paths in
// fields relative to the current folder.
class Variables {
 public:
  Variables(const std::map<std::string, std::string>& settings,
            WorkflowFile* file, FileProblems* problems)
      : settings_(settings),
        folder_(file->path.substr(0, file->path.rfind('/') + 1)),
        places_(file->places()),
        workflow_(&file->workflow),
        problems_(problems) {}

  void FindValues() {
    for (int i = 0; i < workflow_->variable_size(); ++i) {
      CheckDeclaration(i);
      const Variable& variable = workflow_->variable(i);
      if (auto value = ValueOf(variable))
        values_.emplace(variable.name(), *value);
    }
    for (const auto& [name, value] : settings_) {
      if (Find(name) != nullptr) continue;
      const std::string suggestion = SuggestName(name, names_);
      problems_->Add(
          0, absl::StrCat("--set ", name, "=", value, ": no such variable",
                          !suggestion.empty() ? suggestion
                          : names_.empty()
                              ? "; the file declares none"
                              : absl::StrCat("; there are ",
                                             absl::StrJoin(names_, ", "))));
    }
  }

  void ExpandWorkflow() {
    for (int i = 0; i < workflow_->stage_size(); ++i) ExpandStage(i);
    for (int i = 0; i < workflow_->evaluation_size(); ++i) {
      const bool active =
          used_evaluations_.count(workflow_->evaluation(i).name()) > 0;
      ExpandFields(workflow_->mutable_evaluation(i),
                   places_.Nested("evaluation", i), active);
    }
    for (const char* name : {"name", "summary"}) {
      ExpandField(workflow_, Workflow::descriptor()->FindFieldByName(name),
                  places_, true);
    }
  }

  void CheckValues() {
    for (int i = 0; i < workflow_->variable_size(); ++i) {
      const Variable& variable = workflow_->variable(i);
      const auto value = values_.find(variable.name());
      if (value == values_.end()) continue;
      if (value->second.from == "default" &&
          used_.count(variable.name()) == 0) {
        continue;
      }
      CheckValue(variable, places_.Nested("variable", i).line());
    }
  }

  // Returns a line with the help for each variable that needs a value and has
  // none.
  std::string Missing() const {
    std::vector<std::string> lines;
    for (const Variable& variable : workflow_->variable()) {
      if (used_.count(variable.name()) == 0 ||
          values_.count(variable.name()) > 0) {
        continue;
      }
      lines.push_back(absl::StrCat(
          "  --set ", variable.name(), "=", ValueWord(variable.kind()),
          variable.help().empty() ? "" : "  ", variable.help()));
    }
    return absl::StrJoin(lines, "\n");
  }

  std::map<std::string, VariableValue> values() && {
    return std::move(values_);
  }

 private:
  const Variable* Find(const std::string& name) const {
    for (const Variable& variable : workflow_->variable()) {
      if (variable.name() == name) return &variable;
    }
    return nullptr;
  }

  void CheckDeclaration(int index) {
    const Variable& variable = workflow_->variable(index);
    const FieldPlaces places = places_.Nested("variable", index);
    if (!IsVariableName(variable.name())) {
      problems_->Add(places.Line("name"),
                     absl::StrCat("\"", variable.name(),
                                  "\" is no name of a variable: small letters, "
                                  "digits and _, not starting with a digit"));
      return;
    }
    if (Find(variable.name()) != &variable) {
      problems_->Add(
          places.Line("name"),
          absl::StrCat("variable \"", variable.name(), "\" is declared twice"));
    }
    if (absl::StrContains(variable.default_value(), "${")) {
      problems_->Add(places.Line("default_value"),
                     absl::StrCat("the default of variable \"", variable.name(),
                                  "\" cannot use another variable"));
    }
    names_.push_back(variable.name());
  }

  std::optional<VariableValue> ValueOf(const Variable& variable) const {
    const auto set = settings_.find(variable.name());
    if (set != settings_.end()) {
      return VariableValue{set->second, "command line"};
    }
    const char* const environment = std::getenv(variable.environment().c_str());
    if (environment != nullptr && *environment != '\0') {
      return VariableValue{environment, "environment"};
    }
    if (!variable.has_default_value()) return std::nullopt;
    return VariableValue{variable.default_value(), "default"};
  }

  void AppendValue(const std::string& name,
                   const std::set<std::string>* own_files, int line,
                   bool active, std::string* out) {
    const Variable* const variable = Find(name);
    if (variable == nullptr && problems_->full()) {
      return problems_->Add(line, "no such variable");
    }
    if (variable == nullptr) {
      std::vector<std::string> candidates = names_;
      if (own_files != nullptr) {
        candidates.insert(candidates.end(), own_files->begin(),
                          own_files->end());
      }
      problems_->Add(line, absl::StrCat("\"${", name, "}\": no such variable",
                                        SuggestName(name, candidates)));
      return;
    }
    if (active) used_.insert(name);
    if (own_files != nullptr && (variable->kind() == Variable::FILE ||
                                 variable->kind() == Variable::FOLDER)) {
      problems_->Add(
          line, absl::StrCat("the transforms read \"${", name,
                             "}\", a file whose content must count: add file { "
                             "name: \"",
                             name, "\" from { file: \"${", name, "}\" } }"));
      return;
    }
    const auto value = values_.find(name);
    if (value == values_.end()) return;
    out->append(own_files == nullptr ? value->second.value
                                     // FillInFiles must not expand it.
                                     : absl::StrReplaceAll(value->second.value,
                                                           {{"${", "$${"}}));
  }

  // Expands `text`. With `own_files` it is a TransformStage's, and these names
  // and "$${" stay as they are for FillInFiles.
  std::string Expand(std::string_view text,
                     const std::set<std::string>* own_files, int line,
                     bool active) {
    std::string out;
    std::string_view rest = text;
    while (!rest.empty()) {
      if (absl::StartsWith(rest, "$${")) {
        out.append(own_files == nullptr ? "${" : "$${");
        rest.remove_prefix(3);
        continue;
      }
      if (!absl::StartsWith(rest, "${")) {
        const size_t next = std::min(rest.find('$', 1), rest.size());
        out.append(rest.substr(0, next));
        rest.remove_prefix(next);
        continue;
      }
      const size_t end = rest.find('}');
      const std::string name(rest.substr(2, end - 2));
      if (end == std::string_view::npos || !IsVariableName(name)) {
        problems_->Add(line,
                       "\"${\" starts a variable, as in \"${name}\"; write "
                       "\"$${\" for the characters themselves");
        return out;
      }
      if (own_files != nullptr && own_files->count(name) > 0) {
        out.append(rest.substr(0, end + 1));
      } else {
        AppendValue(name, own_files, line, active, &out);
      }
      rest.remove_prefix(end + 1);
    }
    return out;
  }

  // Returns whether the text starts with a value from the command line or the
  // environment, where paths start at the current folder.
  bool StartsTyped(std::string_view text) const {
    while (absl::ConsumePrefix(&text, "${")) {
      const size_t end = std::min(text.find('}'), text.size());
      const auto value = values_.find(std::string(text.substr(0, end)));
      if (value != values_.end() && !value->second.value.empty()) {
        return value->second.from != "default";
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return false;
  }

  std::string ExpandPaths(std::string_view text, int line, bool active) {
    std::vector<std::string> paths;
    for (const std::string_view part : absl::StrSplit(text, ',')) {
      const std::string path = Expand(part, nullptr, line, active);
      paths.push_back(StartsTyped(part) ? path : AllFrom(folder_, path));
    }
    return absl::StrJoin(paths, ",");
  }

  void ExpandValue(Message* message, const FieldDescriptor* field, int index,
                   int line, bool active) {
    const Reflection* const reflection = message->GetReflection();
    const std::string text =
        index < 0 ? reflection->GetString(*message, field)
                  : reflection->GetRepeatedString(*message, field, index);
    std::set<std::string> own_files;
    const bool is_transforms =
        field->full_name() == "requant.TransformStage.transforms";
    if (is_transforms) {
      for (const NamedInput& file :
           static_cast<const TransformStage*>(message)->file()) {
        own_files.insert(file.name());
      }
    }
    const std::string result =
        IsPathField(field)
            ? ExpandPaths(text, line, active)
            : Expand(text, is_transforms ? &own_files : nullptr, line, active);
    if (index < 0) {
      reflection->SetString(message, field, result);
    } else {
      reflection->SetRepeatedString(message, field, index, result);
    }
  }

  void ExpandField(Message* message, const FieldDescriptor* field,
                   const FieldPlaces& places, bool active) {
    const Reflection* const reflection = message->GetReflection();
    const std::string name(field->name());
    const bool is_message =
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!is_message && field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
      return;
    }
    const bool is_repeated = field->is_repeated();
    const int count = is_repeated ? reflection->FieldSize(*message, field)
                                  : reflection->HasField(*message, field);
    for (int i = 0; i < count; ++i) {
      const int index = is_repeated ? i : -1;
      if (!is_message) {
        ExpandValue(message, field, index, places.Line(name, index), active);
        continue;
      }
      ExpandFields(is_repeated
                       ? reflection->MutableRepeatedMessage(message, field, i)
                       : reflection->MutableMessage(message, field),
                   places.Nested(name, index), active);
    }
  }

  void ExpandFields(Message* message, const FieldPlaces& places, bool active) {
    for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
      ExpandField(message, message->GetDescriptor()->field(i), places, active);
    }
  }

  // Returns whether variable `name`, as `field` gives it, is set and not empty.
  bool IsSet(const std::string& name, const char* field,
             const FieldPlaces& places) {
    if (name.empty()) return false;
    if (Find(name) == nullptr) {
      problems_->Add(
          places.Line(field),
          absl::StrCat(field, " names \"", name, "\": no such variable",
                       SuggestName(name, names_)));
      return false;
    }
    const auto value = values_.find(name);
    return value != values_.end() && !value->second.value.empty();
  }

  // Drops the expectation of a verification if its only_if names a variable
  // that is not set or says no.
  void DropExpectation(Verify* verify, const FieldPlaces& places) {
    const std::string& only_if = verify->expect().only_if();
    if (only_if.empty()) return;
    if (!IsSet(only_if, "only_if", places.Nested("expect")) ||
        ParseTruth(values_[only_if].value) == false) {
      verify->clear_expect();
    }
  }

  void ExpandStage(int index) {
    Stage* const stage = workflow_->mutable_stage(index);
    const FieldPlaces places = places_.Nested("stage", index);
    const bool active = !IsSet(stage->skip_if(), "skip_if", places);
    const google::protobuf::Descriptor* const type = Stage::descriptor();
    ExpandField(stage, type->FindFieldByName("use_file"), places, active);
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* const field = type->field(i);
      if (field->name() == "use_file") continue;
      const bool is_given = field->real_containing_oneof() != nullptr &&
                            !stage->use_file().empty();
      ExpandField(stage, field, places, active && !is_given);
    }
    if (!active) return;
    if (stage->has_verify()) {
      DropExpectation(stage->mutable_verify(), places.Nested("verify"));
    }
    if (stage->has_evaluate()) {
      DropExpectation(stage->mutable_evaluate()->mutable_verify(),
                      places.Nested("evaluate").Nested("verify"));
    }
    used_evaluations_.insert(stage->verify().evaluation());
    used_evaluations_.insert(stage->evaluate().verify().evaluation());
  }

  void CheckValue(const Variable& variable, int line) {
    const VariableValue& value = values_.at(variable.name());
    std::string problem;
    if (variable.kind() == Variable::COUNT) {
      int64_t count = 0;
      if (!absl::SimpleAtoi(value.value, &count) || count < 1) {
        problem =
            absl::StrCat("\"", value.value, "\" is not a number from 1 on");
      }
    } else if (variable.kind() != Variable::TEXT && !value.value.empty()) {
      problem = PathProblem(variable.kind(), value.from == "default"
                                                 ? AllFrom(folder_, value.value)
                                                 : value.value);
    }
    if (problem.empty()) return;
    problems_->Add(
        line,
        absl::StrCat("variable \"", variable.name(), "\" (",
                     value.from == "environment"
                         ? absl::StrCat("environment: ", variable.environment())
                         : value.from,
                     "): ", problem,
                     variable.help().empty()
                         ? ""
                         : absl::StrCat("; it is ", variable.help())));
  }

  const std::map<std::string, std::string>& settings_;
  // The file's folder, empty or with a slash at its end.
  const std::string folder_;
  const FieldPlaces places_;
  Workflow* const workflow_;
  FileProblems* const problems_;
  std::vector<std::string> names_;
  std::map<std::string, VariableValue> values_;
  // The variables and evaluations that anything that runs uses.
  std::set<std::string> used_;
  std::set<std::string> used_evaluations_;
};

absl::Status FillInVariables(const std::map<std::string, std::string>& settings,
                             WorkflowFile* file) {
  FileProblems problems(file->path);
  Variables variables(settings, file, &problems);
  variables.FindValues();
  variables.ExpandWorkflow();
  variables.CheckValues();
  const std::string missing = variables.Missing();
  file->variables = std::move(variables).values();
  if (missing.empty()) return problems.status();
  return absl::InvalidArgumentError(
      absl::StrCat(problems.status().message(), problems.empty() ? "" : "\n",
                   file->path, ": these variables need a value:\n", missing));
}

}  // namespace

absl::StatusOr<WorkflowFile> ReadWorkflowFile(
    const std::string& path,
    const std::map<std::string, std::string>& settings) {
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
