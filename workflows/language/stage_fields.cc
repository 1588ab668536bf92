#include "workflows/language/stage_fields.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "workflows/language/stages.h"

namespace requant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

std::vector<std::string> Names(const std::string& path) {
  return absl::StrSplit(path, '.', absl::SkipEmpty());
}

const FieldDescriptor* DescriptorOf(const std::string& kind,
                                    const std::string& path) {
  const FieldDescriptor* field = Stage::descriptor()->FindFieldByName(kind);
  for (const std::string& name : Names(path)) {
    field = field->message_type()->FindFieldByName(name);
  }
  return field;
}

// Returns a text as it appears inside a transform parameter's double quotes.
std::string EscapedQuotes(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}});
}

std::vector<std::string> MessageTexts(const Message& message) {
  if (message.GetDescriptor() == FixedRange::descriptor()) {
    const auto& fixed = static_cast<const FixedRange&>(message);
    return {absl::StrCat("fixed(", fixed.min(), ",", fixed.max(), ")")};
  }
  if (message.GetDescriptor() != Logging::descriptor()) return {};
  const auto& logging = static_cast<const Logging&>(message);
  return {absl::StrCat("insert_logging(op=", logging.op(),
                       ", show_name=true, message=\"",
                       EscapedQuotes(logging.message()), "\")")};
}

const OneofDescriptor* Kinds() {
  return Stage::descriptor()->FindOneofByName("kind");
}

std::string DataEnding(const DatasetStage& dataset) {
  const std::string& format = dataset.has_synthesize()
                                  ? dataset.synthesize().format()
                                  : dataset.preprocess().format();
  const bool is_csv =
      format == "csv" || (format.empty() && dataset.has_synthesize());
  return is_csv ? ".csv" : ".tfrecords";
}

std::string FileOf(const Stage& stage, const StageField& row,
                   const FoundField& found) {
  const std::string name = row.unnamed() ? "" : found.Text();
  if (!name.empty()) return name;
  return absl::StrCat(stage.name(), row.role() == "data"
                                        ? DataEnding(stage.dataset())
                                        : row.ending());
}

std::vector<std::string> Fitting(const StageField& row) {
  return {row.fitting().begin(), row.fitting().end()};
}

void AddInput(const StageField& row, const FoundField& found,
              const FieldPlaces& places, std::vector<StageInput>* inputs) {
  const std::string name = LastName(row.field());
  const Reflection* const reflection = found.message->GetReflection();
  if (!found.field->is_repeated()) {
    if (row.may_lack() && !found.IsSet()) return;
    inputs->push_back({row.role(),
                       static_cast<const Input*>(&reflection->GetMessage(
                           *found.message, found.field)),
                       places.Nested(name), Fitting(row)});
    return;
  }
  for (int i = 0; i < reflection->FieldSize(*found.message, found.field); ++i) {
    const Message& element =
        reflection->GetRepeatedMessage(*found.message, found.field, i);
    if (row.kind() == StageField::INPUT) {
      inputs->push_back({row.role(), static_cast<const Input*>(&element),
                         places.Nested(name, i), Fitting(row)});
    } else {
      const auto& file = static_cast<const NamedInput&>(element);
      inputs->push_back({file.name(), &file.from(),
                         places.Nested(name, i).Nested("from"), Fitting(row)});
    }
  }
}

}  // namespace

const StageTable& Stages() {
  static const auto* const table = [] {
    auto* parsed = new StageTable;
    // The table is embedded, so a mistake in it is a defect of this program.
    if (!google::protobuf::TextFormat::ParseFromString(std::string(kStages),
                                                       parsed)) {
      std::abort();
    }
    return parsed;
  }();
  return *table;
}

const Program* FindProgram(std::string_view command) {
  for (const Program& program : Stages().program()) {
    if (program.command() == command) return &program;
  }
  return nullptr;
}

const Message& KindMessage(const Stage& stage) {
  return stage.GetReflection()->GetMessage(
      stage, Stage::descriptor()->FindFieldByName(StageKind(stage)));
}

const StageForm& FormOf(const Stage& stage) {
  const StageForm* last = nullptr;
  for (const StageForm& form : Stages().form()) {
    if (form.kind() != StageKind(stage)) continue;
    last = &form;
    const auto when = FindField(KindMessage(stage), form.when());
    if (when.has_value() && when->IsSet()) break;
  }
  return *last;
}

std::vector<StageRow> RowsOf(const Stage& stage) {
  std::vector<StageRow> rows;
  for (const StageStep& step : FormOf(stage).step()) {
    for (const StageField& row : step.row()) {
      const auto found = FindField(KindMessage(stage), row.field());
      if (found.has_value()) rows.push_back({&row, *found});
    }
  }
  return rows;
}

bool FoundField::IsSet() const {
  const Reflection* const reflection = message->GetReflection();
  if (oneof != nullptr) return reflection->HasOneof(*message, oneof);
  if (field == nullptr) return false;
  return field->is_repeated() ? reflection->FieldSize(*message, field) > 0
                              : reflection->HasField(*message, field);
}

std::vector<std::string> FoundField::Texts() const {
  if (field == nullptr) return {};
  const Reflection* const reflection = message->GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (field->is_repeated() || !IsSet()) return {};
    return MessageTexts(reflection->GetMessage(*message, field));
  }
  if (!field->is_repeated()) return {reflection->GetString(*message, field)};
  const auto texts =
      reflection->GetRepeatedFieldRef<std::string>(*message, field);
  return {texts.begin(), texts.end()};
}

std::string FoundField::Text() const { return absl::StrJoin(Texts(), ","); }

std::optional<FoundField> FindField(const Message& message,
                                    const std::string& path) {
  FoundField found = {&message, nullptr, nullptr};
  for (const std::string& name : Names(path)) {
    if (found.field != nullptr) {
      if (!found.IsSet()) return std::nullopt;
      found.message = &found.message->GetReflection()->GetMessage(
          *found.message, found.field);
    }
    const Descriptor* const type = found.message->GetDescriptor();
    found.field = type->FindFieldByName(name);
    found.oneof = type->FindOneofByName(name);
  }
  if (found.IsSet() || found.field == nullptr) return found;
  const OneofDescriptor* const choice = found.field->real_containing_oneof();
  if (choice != nullptr &&
      found.message->GetReflection()->HasOneof(*found.message, choice)) {
    return std::nullopt;
  }
  return found;
}

FieldPlaces PlacesAround(const FieldPlaces& places, const std::string& path) {
  std::vector<std::string> names = Names(path);
  FieldPlaces around = places;
  for (size_t i = 0; i + 1 < names.size(); ++i)
    around = around.Nested(names[i]);
  return around;
}

std::string LastName(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

bool IsStagePath(const FieldDescriptor* field) {
  static const auto* const paths = [] {
    auto* found = new std::set<const FieldDescriptor*>;
    for (const StageForm& form : Stages().form()) {
      for (const StageStep& step : form.step()) {
        for (const StageField& row : step.row()) {
          if (row.kind() != StageField::PATH) continue;
          found->insert(DescriptorOf(form.kind(), row.field()));
        }
      }
    }
    return found;
  }();
  return paths->count(field) > 0;
}

std::string StageKind(const Stage& stage) {
  const FieldDescriptor* const field =
      stage.GetReflection()->GetOneofFieldDescriptor(stage, Kinds());
  return field == nullptr ? "" : std::string(field->name());
}

std::vector<std::string> StageKinds() {
  std::vector<std::string> kinds;
  for (int i = 0; i < Kinds()->field_count(); ++i) {
    kinds.emplace_back(Kinds()->field(i)->name());
  }
  return kinds;
}

bool MakesGraph(const Stage& stage) {
  for (const auto& [row, found] : RowsOf(stage)) {
    if (row->kind() == StageField::OUTPUT && row->role() == "graph") {
      return true;
    }
  }
  return false;
}

const Verify* VerifyOf(const Stage& stage) {
  if (stage.has_evaluate()) return &stage.evaluate().verify();
  return stage.has_verify() ? &stage.verify() : nullptr;
}

FieldPlaces VerifyPlaces(const Stage& stage, const FieldPlaces& places) {
  return stage.has_evaluate() ? places.Nested("evaluate").Nested("verify")
                              : places.Nested("verify");
}

std::vector<StageOutput> OutputsOf(const Stage& stage,
                                   const FieldPlaces& places) {
  const FieldPlaces kind = places.Nested(StageKind(stage));
  std::vector<StageOutput> outputs;
  for (const auto& [row, found] : RowsOf(stage)) {
    if (row->kind() != StageField::OUTPUT || row->field().empty()) continue;
    if (row->may_lack() && !found.IsSet()) continue;
    outputs.push_back(
        {row->role(), FileOf(stage, *row, found),
         PlacesAround(kind, row->field()).Line(LastName(row->field()))});
  }
  return outputs;
}

std::vector<StageInput> InputsOf(const Stage& stage,
                                 const FieldPlaces& places) {
  const FieldPlaces kind = places.Nested(StageKind(stage));
  std::vector<StageInput> inputs;
  for (const auto& [row, found] : RowsOf(stage)) {
    if ((row->kind() != StageField::INPUT &&
         row->kind() != StageField::FILES) ||
        row->field().empty()) {
      continue;
    }
    AddInput(*row, found, PlacesAround(kind, row->field()), &inputs);
  }
  return inputs;
}

std::vector<std::pair<std::string, std::string>> PathsOf(const Stage& stage) {
  std::vector<std::pair<std::string, std::string>> paths;
  for (const auto& [row, found] : RowsOf(stage)) {
    if (row->kind() != StageField::PATH) continue;
    for (const std::string& path : found.Texts()) {
      paths.emplace_back(row->role(), path);
    }
  }
  return paths;
}

const Records* RecordsOf(const Stage& stage) {
  const Message& kind = KindMessage(stage);
  const FieldDescriptor* const on = kind.GetDescriptor()->FindFieldByName("on");
  return on == nullptr ? nullptr
                       : static_cast<const Records*>(
                             &kind.GetReflection()->GetMessage(kind, on));
}

FieldPlaces RecordsPlaces(const Stage& stage, const FieldPlaces& places) {
  return places.Nested(StageKind(stage)).Nested("on");
}

std::string FillInFiles(const std::string& transforms,
                        const std::map<std::string, std::string>& paths) {
  std::string out;
  std::string_view rest = transforms;
  bool in_quotes = false;
  const auto copy = [&](size_t count) {
    absl::StrAppend(&out, rest.substr(0, count));
    rest.remove_prefix(std::min(count, rest.size()));
  };
  while (!rest.empty()) {
    if (absl::StartsWith(rest, "$${")) {
      rest.remove_prefix(1);
      copy(2);
      continue;
    }
    const size_t end = std::min(rest.find('}'), rest.size());
    const auto path = absl::StartsWith(rest, "${")
                          ? paths.find(std::string(rest.substr(2, end - 2)))
                          : paths.end();
    if (path != paths.end()) {
      const char* const quote = in_quotes ? "" : "\"";
      absl::StrAppend(&out, quote, EscapedQuotes(path->second), quote);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      continue;
    }
    const bool is_escape = in_quotes && rest[0] == '\\';
    if (rest[0] == '"') in_quotes = !in_quotes;
    copy(is_escape ? 2 : 1);
  }
  return out;
}

}  // namespace requant
