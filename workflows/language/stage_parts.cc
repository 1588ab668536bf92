#include "workflows/language/stage_parts.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "workflows/language/stage_fields.h"

namespace requant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

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
  const std::string name = row.unnamed ? "" : found.Text();
  if (!name.empty()) return name;
  return absl::StrCat(stage.name(), row.role == "data"
                                        ? DataEnding(stage.dataset())
                                        : row.ending);
}

void AddInput(const StageField& row, const FoundField& found,
              const FieldPlaces& places, std::vector<StageInput>* inputs) {
  const std::string name = LastName(row.field);
  const Reflection* const reflection = found.message->GetReflection();
  if (!found.field->is_repeated()) {
    if (row.optional && !found.IsSet()) return;
    inputs->push_back({row.role,
                       static_cast<const Input*>(&reflection->GetMessage(
                           *found.message, found.field)),
                       places.Nested(name), row.fitting});
    return;
  }
  for (int i = 0; i < reflection->FieldSize(*found.message, found.field); ++i) {
    const Message& element =
        reflection->GetRepeatedMessage(*found.message, found.field, i);
    if (row.kind == StageField::Kind::kInput) {
      inputs->push_back({row.role, static_cast<const Input*>(&element),
                         places.Nested(name, i), row.fitting});
    } else {
      const auto& file = static_cast<const NamedInput&>(element);
      inputs->push_back({file.name(), &file.from(),
                         places.Nested(name, i).Nested("from"), row.fitting});
    }
  }
}

}  // namespace

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
    if (row->kind == StageField::Kind::kOutput && row->role == "graph") {
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
    if (row->kind != StageField::Kind::kOutput || row->field.empty()) continue;
    if (row->optional && !found.IsSet()) continue;
    outputs.push_back(
        {row->role, FileOf(stage, *row, found),
         PlacesAround(kind, row->field).Line(LastName(row->field))});
  }
  return outputs;
}

std::vector<StageInput> InputsOf(const Stage& stage,
                                 const FieldPlaces& places) {
  const FieldPlaces kind = places.Nested(StageKind(stage));
  std::vector<StageInput> inputs;
  for (const auto& [row, found] : RowsOf(stage)) {
    if ((row->kind != StageField::Kind::kInput &&
         row->kind != StageField::Kind::kFiles) ||
        row->field.empty()) {
      continue;
    }
    AddInput(*row, found, PlacesAround(kind, row->field), &inputs);
  }
  return inputs;
}

std::vector<std::pair<std::string, std::string>> PathsOf(const Stage& stage) {
  std::vector<std::pair<std::string, std::string>> paths;
  for (const auto& [row, found] : RowsOf(stage)) {
    if (row->kind != StageField::Kind::kPath) continue;
    for (const std::string& path : found.Texts()) {
      paths.emplace_back(row->role, path);
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

}  // namespace requant
