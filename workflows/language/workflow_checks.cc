#include "workflows/language/workflow_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "workflows/language/stage_fields.h"
#include "workflows/language/stage_parts.h"
#include "workflows/language/transform_check.h"
#include "workflows/language/workflow_variables.h"

namespace requant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

void Refuse(const FieldPlaces& places, const std::string& field,
            std::string_view sentence, const CheckContext& context) {
  context.problems->Add(places.Line(field),
                        absl::StrCat(context.whose, ": ", sentence));
}

void CheckWord(const std::string& value, const std::vector<std::string>& words,
               const FieldPlaces& places, const std::string& field,
               const CheckContext& context) {
  if (value.empty() ||
      std::find(words.begin(), words.end(), value) != words.end()) {
    return;
  }
  Refuse(places, field,
         absl::StrCat(field, " \"", value, "\" is none of ",
                      absl::StrJoin(words, ", ")),
         context);
}

void CheckAbove(const std::string& value, double least,
                const FieldPlaces& places, const std::string& field,
                const CheckContext& context) {
  double number = 0;
  if (value.empty() || (absl::SimpleAtod(value, &number) &&
                        std::isfinite(number) && number > least)) {
    return;
  }
  Refuse(places, field,
         absl::StrCat(field, " \"", value, "\" is not a number above ", least),
         context);
}

void CheckWhole(const std::string& value, const FieldPlaces& places,
                const std::string& field, const CheckContext& context) {
  uint64_t number = 0;
  if (value.empty() || absl::SimpleAtoi(value, &number)) return;
  Refuse(
      places, field,
      absl::StrCat(field, " \"", value, "\" is not a whole number from 0 on"),
      context);
}

void CheckSynthesize(const Synthesize& synthesize, const FieldPlaces& places,
                     const CheckContext& context) {
  if ((synthesize.format() == "preprocessed") != synthesize.has_ranges()) {
    Refuse(places, "ranges",
           "ranges go with format \"preprocessed\", and only with it", context);
  }
}

void CheckTransformFiles(const TransformStage& transform,
                         const FieldPlaces& places,
                         const CheckContext& context) {
  std::set<std::string> names;
  for (int i = 0; i < transform.file_size(); ++i) {
    const FieldPlaces file = places.Nested("file", i);
    const std::string& name = transform.file(i).name();
    if (name == "graph" || name == "plugin" || !IsPlainName(name)) {
      Refuse(file, "name",
             absl::StrCat("a file cannot be named \"", name, "\""), context);
    } else if (!names.insert(name).second) {
      Refuse(file, "name", absl::StrCat("two files are named \"", name, "\""),
             context);
    } else if (!absl::StrContains(transform.transforms(),
                                  absl::StrCat("${", name, "}"))) {
      Refuse(file, "name",
             absl::StrCat("the transforms do not use file \"", name,
                          "\": write \"${", name, "}\" where they take it"),
             context);
    }
  }
}

void CheckTransform(const TransformStage& transform, const FieldPlaces& places,
                    const CheckContext& context) {
  CheckTransformFiles(transform, places, context);
  TransformCheck check;
  std::map<std::string, std::string> paths;
  for (const NamedInput& file : transform.file()) {
    const std::string path = absl::StrCat("${", file.name(), "}");
    paths.emplace(file.name(), path);
    check.files.insert(path);
  }
  check.transforms = FillInFiles(transform.transforms(), paths);
  check.has_outputs = transform.outputs_size() > 0;
  check.has_plugins = transform.plugin_size() > 0;
  const absl::Status status = CheckTransforms(check);
  if (!status.ok()) Refuse(places, "transforms", status.message(), context);
}

void CheckFixedRange(const FixedRange& fixed, const FieldPlaces& places,
                     const CheckContext& context) {
  double min = 0, max = 0;
  if (absl::SimpleAtod(fixed.min(), &min) &&
      absl::SimpleAtod(fixed.max(), &max) && std::isfinite(min) &&
      std::isfinite(max) && min < max) {
    return;
  }
  Refuse(places, "min",
         absl::StrCat("fixed needs two numbers, min below max; \"", fixed.min(),
                      "\" and \"", fixed.max(), "\" are none"),
         context);
}

void CheckField(const StageField& row, const FoundField& found,
                const FieldPlaces& places, const CheckContext& context) {
  const std::string name = LastName(row.field);
  if (!row.needed.empty() && !found.IsSet()) {
    Refuse(places, row.needed_at, row.needed, context);
  }
  switch (row.check) {
    case StageField::Check::kNone:
      break;
    case StageField::Check::kWord:
      CheckWord(found.Text(), row.words, places, name, context);
      break;
    case StageField::Check::kCount:
      CheckCount(found.Text(), places, name, context);
      break;
    case StageField::Check::kWhole:
      CheckWhole(found.Text(), places, name, context);
      break;
    case StageField::Check::kAbove:
      CheckAbove(found.Text(), row.above, places, name, context);
      break;
  }
  if (!row.goes_with.empty() && found.IsSet() &&
      !FindField(*found.message, row.goes_with)->IsSet()) {
    Refuse(places, name, absl::StrCat(name, " needs ", row.goes_with), context);
  }
}

// What a table of fields cannot say.
void CheckFurther(const Stage& stage, const FieldPlaces& places,
                  const CheckContext& context) {
  if (stage.dataset().has_synthesize()) {
    CheckSynthesize(stage.dataset().synthesize(), places.Nested("synthesize"),
                    context);
  }
  if (stage.has_transform()) {
    CheckTransform(stage.transform(), places, context);
  }
  if (stage.convert().insert_qdq().has_fixed()) {
    CheckFixedRange(stage.convert().insert_qdq().fixed(),
                    places.Nested("insert_qdq").Nested("fixed"), context);
  }
  if (stage.has_compare()) {
    CheckGates(stage.compare().gates(), places.Nested("gates"), context);
  }
}

void CheckKind(const Stage& stage, const FieldPlaces& places,
               const CheckContext& context) {
  for (const auto& [row, found] : RowsOf(stage)) {
    CheckField(*row, found, PlacesAround(places, row->field), context);
  }
  CheckFurther(stage, places, context);
}

// The largest value that a limit can have.
double LargestLimit(std::string_view field) {
  if (field == "min_agreement" || field == "max_layer_clipped" ||
      field == "max_layer_clipped_records") {
    return 1;
  }
  return field == "max_accuracy_drop" ? 100 : INFINITY;
}

bool HasControl(std::string_view name) {
  return std::any_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
}

}  // namespace

bool IsPlainName(std::string_view name) {
  if (name.empty() || !(absl::ascii_isalpha(name[0]) || name[0] == '_')) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("_-.", c);
  });
}

std::string WorkflowNameProblem(const std::string& name) {
  if (name.empty()) return "the workflow has no name: give it one with name";
  if (!absl::StrContains(name, '/') && !HasControl(name) && name[0] != '.' &&
      name[0] != '-') {
    return "";
  }
  return absl::StrCat("the workflow cannot be named \"", name,
                      "\": a folder is named so; write a name without \"/\" "
                      "and control characters that does not start with \".\" "
                      "or \"-\"");
}

std::string OutputNameProblem(const std::string& name) {
  if (absl::StrContains(name, '/') || name == "." || name == ".." ||
      HasControl(name)) {
    return absl::StrCat("\"", name,
                        "\" is not the name of a file: it must have no folder "
                        "and no control characters");
  }
  static const auto* const own =
      new std::set<std::string>{"report.html", "manifest.json", "results.json",
                                "results.csv", "commands.sh",   "result.pb"};
  if (own->count(name) > 0 || absl::StartsWith(name, "events")) {
    return absl::StrCat("\"", name, "\" is a file that the runner writes");
  }
  if (name[0] == '.' || name[0] == '-') {
    return absl::StrCat("\"", name, "\": a file's name cannot start with \"",
                        name.substr(0, 1), "\"");
  }
  return "";
}

void CheckCount(const std::string& value, const FieldPlaces& places,
                const std::string& field, const CheckContext& context) {
  int64_t count = 0;
  if (value.empty() || (absl::SimpleAtoi(value, &count) && count >= 1)) return;
  Refuse(places, field,
         absl::StrCat(field, " \"", value, "\" is not a number from 1 on"),
         context);
}

void CheckRecords(const Records& records, const FieldPlaces& places,
                  const CheckContext& context) {
  if (records.dataset().empty()) {
    Refuse(places, "dataset",
           "no records: on { dataset: \"...\" } names their declaration",
           context);
  }
  CheckCount(records.batch_size(), places, "batch_size", context);
  CheckCount(records.records(), places, "records", context);
}

void CheckGates(const Gates& gates, const FieldPlaces& places,
                const CheckContext& context) {
  const Reflection* const reflection = gates.GetReflection();
  for (int i = 0; i < Gates::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = Gates::descriptor()->field(i);
    if (!reflection->HasField(gates, field)) continue;
    const double limit = reflection->GetDouble(gates, field);
    const double largest = LargestLimit(field->name());
    if (std::isfinite(limit) && limit <= largest) continue;
    Refuse(places, std::string(field->name()),
           std::isfinite(largest)
               ? absl::StrCat(field->name(), " ", limit, " is more than ",
                              largest, ", which is all there is")
               : absl::StrCat(field->name(), " is not a finite number"),
           context);
  }
}

void CheckExpect(const Expect& expect, const FieldPlaces& places,
                 const CheckContext& context) {
  if (!(expect.accuracy() > 0 && expect.accuracy() <= 100)) {
    Refuse(places, "accuracy",
           absl::StrCat("expect needs accuracy, in percent; ",
                        expect.accuracy(), " is none"),
           context);
  }
  if (!(expect.within() > 0 && expect.within() <= 100)) {
    Refuse(places, "within",
           "expect needs within, how many points from it are the same",
           context);
  }
}

void CheckRelativeMse(const RelativeMse& relative, const FieldPlaces& places,
                      const CheckContext& context) {
  if (relative.at_most() >= 0 && std::isfinite(relative.at_most())) return;
  Refuse(places, "at_most", "relative_mse needs at_most, a number from 0 on",
         context);
}

void CheckStage(const Stage& stage, const FieldPlaces& places,
                const CheckContext& context) {
  const std::string kind = StageKind(stage);
  if (kind.empty()) {
    context.problems->Add(
        places.line(), absl::StrCat(context.whose, " does nothing: add one of ",
                                    absl::StrJoin(StageKinds(), ", ")));
    return;
  }
  if (!MakesGraph(stage)) {
    const std::string end =
        absl::StrCat(" is for stages that make a graph; ", kind, " makes none");
    if (stage.has_verify()) {
      Refuse(places, "verify",
             stage.has_evaluate() ? "verify goes inside evaluate"
                                  : absl::StrCat("verify", end),
             context);
    }
    if (!stage.use_file().empty()) {
      Refuse(places, "use_file", absl::StrCat("use_file", end), context);
    }
  }
  if (stage.use_file().empty()) CheckKind(stage, places.Nested(kind), context);
}

}  // namespace requant
