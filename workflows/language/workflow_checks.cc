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
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "transforms/pipeline_parser.h"
#include "transforms/registry.h"
#include "transforms/transform.h"
#include "workflows/language/stage_fields.h"

namespace requant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

constexpr char kNoCount[] = "not a number from 1 on";

bool IsNumberFrom(const std::string& value, int64_t least) {
  int64_t number = 0;
  return absl::SimpleAtoi(value, &number) && number >= least;
}

// Returns what is wrong with a value that is set, or "".
std::string ValueProblem(const StageField& row, const std::string& value) {
  uint64_t whole = 0;
  double number = 0;
  switch (row.check()) {
    default:
      return "";
    case StageField::WORD:
      return std::count(row.word().begin(), row.word().end(), value) > 0
                 ? ""
                 : absl::StrCat("none of ", absl::StrJoin(row.word(), ", "));
    case StageField::COUNT:
      return IsNumberFrom(value, 1) ? "" : kNoCount;
    case StageField::WHOLE:
      return absl::SimpleAtoi(value, &whole) ? ""
                                             : "not a whole number from 0 on";
    case StageField::ABOVE:
      return absl::SimpleAtod(value, &number) && std::isfinite(number) &&
                     number > row.above()
                 ? ""
                 : absl::StrCat("not a number above ", row.above());
  }
}

// Refuses a value that is set and not a whole number of at least 1.
void CheckCount(const std::string& value, const std::string& field,
                const CheckedPart& part) {
  if (value.empty() || IsNumberFrom(value, 1)) return;
  part.Refuse(field, absl::StrCat(field, " \"", value, "\" is ", kNoCount));
}

void CheckTransformFiles(const TransformStage& transform,
                         const CheckedPart& part) {
  std::set<std::string> names;
  for (int i = 0; i < transform.file_size(); ++i) {
    const CheckedPart file = part.Nested("file", i);
    const std::string& name = transform.file(i).name();
    if (name == "graph" || name == "plugin" || !IsPlainName(name)) {
      file.Refuse("name",
                  absl::StrCat("a file cannot be named \"", name, "\""));
    } else if (!names.insert(name).second) {
      file.Refuse("name", absl::StrCat("two files are named \"", name, "\""));
    } else if (!absl::StrContains(transform.transforms(),
                                  absl::StrCat("${", name, "}"))) {
      file.Refuse("name", absl::StrCat("the transforms do not use file \"",
                                       name, "\": write \"${", name,
                                       "}\" where they take it"));
    }
  }
}

// Returns our transforms and TensorFlow's, as described, without opening a
// library. As in the registry, ours takes precedence if both have a name.
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

// All parameters that name files end like this.
constexpr char kFileEnding[] = "_file";

// Fails unless every file that the transform reads is one of the stage's. A
// file that the stage does not declare could change unnoticed.
absl::Status CheckFiles(const TransformCall& call,
                        const std::set<std::string>& files) {
  for (const auto& [name, values] : call.parameters) {
    if (!absl::EndsWith(name, kFileEnding)) continue;
    for (const std::string& value : values) {
      if (files.count(value) > 0) continue;
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

// If there are plugins, unknown names may be theirs and are accepted.
absl::Status CheckCall(const TransformCall& call,
                       const TransformStage& transform,
                       const std::set<std::string>& files) {
  const auto spec = AllSpecs().find(call.name);
  if (spec == AllSpecs().end()) {
    if (transform.plugin_size() > 0) return absl::OkStatus();
    std::vector<std::string> names;
    for (const auto& [name, unused] : AllSpecs()) names.push_back(name);
    const std::string suggestion = SuggestName(call.name, names);
    return absl::NotFoundError(absl::StrCat(
        "\"", call.name, "\": no such transform",
        suggestion.empty() ? "; requant transform --list_transforms lists them"
                           : suggestion));
  }
  REQUANT_RETURN_IF_ERROR(ResolveParameters(spec->second, call).status());
  REQUANT_RETURN_IF_ERROR(CheckFiles(call, files));
  if (spec->second.needs_outputs && transform.outputs_size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("transform \"", call.name,
                     "\" needs the graph's outputs: add outputs"));
  }
  return absl::OkStatus();
}

// Fails unless transform_graph would accept these transforms: their names,
// parameters and need for outputs.
absl::Status CheckTransforms(const TransformStage& transform) {
  std::map<std::string, std::string> paths;
  std::set<std::string> files;
  for (const NamedInput& file : transform.file()) {
    const std::string path = absl::StrCat("${", file.name(), "}");
    paths.emplace(file.name(), path);
    files.insert(path);
  }
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<TransformCall> calls,
      ParsePipeline(FillInFiles(transform.transforms(), paths)));
  if (calls.empty()) return absl::InvalidArgumentError("no transform is named");
  for (const TransformCall& call : calls) {
    REQUANT_RETURN_IF_ERROR(CheckCall(call, transform, files));
  }
  return absl::OkStatus();
}

void CheckFixedRange(const FixedRange& fixed, const CheckedPart& part) {
  double min = 0, max = 0;
  if (absl::SimpleAtod(fixed.min(), &min) &&
      absl::SimpleAtod(fixed.max(), &max) && std::isfinite(min) &&
      std::isfinite(max) && min < max) {
    return;
  }
  part.Refuse("min", absl::StrCat("fixed needs two numbers, min below max; \"",
                                  fixed.min(), "\" and \"", fixed.max(),
                                  "\" are none"));
}

void CheckField(const StageField& row, const FoundField& found,
                const CheckedPart& part) {
  const std::string name = LastName(row.field());
  if (!row.needed().empty() && !found.IsSet()) {
    part.Refuse(row.needed_at(), row.needed());
  }
  const std::string value = found.Text();
  const std::string problem = value.empty() ? "" : ValueProblem(row, value);
  if (!problem.empty()) {
    part.Refuse(name, absl::StrCat(name, " \"", value, "\" is ", problem));
  }
  if (!row.goes_with().empty() && found.IsSet() &&
      !FindField(*found.message, row.goes_with())->IsSet()) {
    part.Refuse(name, absl::StrCat(name, " needs ", row.goes_with()));
  }
}

// Checks the fields in the tables, and what a table of fields cannot say.
void CheckKind(const Stage& stage, const CheckedPart& part) {
  for (const auto& [row, found] : RowsOf(stage)) {
    CheckField(
        *row, found,
        {PlacesAround(part.places, row->field()), part.whose, part.problems});
  }
  const Synthesize& synthesize = stage.dataset().synthesize();
  if ((synthesize.format() == "preprocessed") != synthesize.has_ranges()) {
    part.Nested("synthesize")
        .Refuse("ranges",
                "ranges go with format \"preprocessed\", and only with it");
  }
  if (stage.has_transform()) {
    CheckTransformFiles(stage.transform(), part);
    const absl::Status status = CheckTransforms(stage.transform());
    if (!status.ok()) part.Refuse("transforms", status.message());
  }
  if (stage.convert().insert_qdq().has_fixed()) {
    CheckFixedRange(stage.convert().insert_qdq().fixed(),
                    part.Nested("insert_qdq").Nested("fixed"));
  }
  if (stage.has_compare()) {
    CheckGates(stage.compare().gates(), part.Nested("gates"));
  } else if (RecordsOf(stage) != nullptr && !RecordsOf(stage)->skip().empty()) {
    part.Nested("on").Refuse(
        "skip", "skip is for what judges; other stages take the first records");
  }
}

// Returns the largest value that a limit can have.
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

void CheckedPart::Refuse(const std::string& field,
                         std::string_view sentence) const {
  problems->Add(places.Line(field), absl::StrCat(whose, ": ", sentence));
}

void CheckRecords(const Records& records, const CheckedPart& part) {
  if (records.dataset().empty()) {
    part.Refuse("dataset",
                "no records: on { dataset: \"...\" } names their declaration");
  }
  CheckCount(records.batch_size(), "batch_size", part);
  CheckCount(records.records(), "records", part);
  CheckCount(records.skip(), "skip", part);
}

void CheckGates(const Gates& gates, const CheckedPart& part) {
  const Reflection* const reflection = gates.GetReflection();
  for (int i = 0; i < Gates::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = Gates::descriptor()->field(i);
    if (!reflection->HasField(gates, field)) continue;
    const double limit = reflection->GetDouble(gates, field);
    const double largest = LargestLimit(field->name());
    if (std::isfinite(limit) && limit <= largest) continue;
    part.Refuse(std::string(field->name()),
                std::isfinite(largest)
                    ? absl::StrCat(field->name(), " ", limit, " is more than ",
                                   largest, ", which is all there is")
                    : absl::StrCat(field->name(), " is not a finite number"));
  }
}

void CheckVerify(const Verify& verify, const CheckedPart& part) {
  CheckGates(verify.gates(), part.Nested("gates"));
  CheckCount(verify.baseline().records(), "records", part.Nested("baseline"));
  const double accuracy = verify.expect().accuracy();
  if (verify.has_expect() && !(accuracy > 0 && accuracy <= 100)) {
    part.Nested("expect").Refuse(
        "accuracy", absl::StrCat("expect needs accuracy, in percent; ",
                                 accuracy, " is none"));
  }
  const double within = verify.expect().within();
  if (verify.has_expect() && !(within > 0 && within <= 100)) {
    part.Nested("expect").Refuse(
        "within", "expect needs within, how many points from it are the same");
  }
  const double at_most = verify.relative_mse().at_most();
  if (!(at_most >= 0 && std::isfinite(at_most))) {
    part.Nested("relative_mse")
        .Refuse("at_most", "relative_mse needs at_most, a number from 0 on");
  }
}

void CheckEvaluation(const Evaluation& evaluation, const CheckedPart& part) {
  CheckRecords(evaluation.on(), part.Nested("on"));
  CheckGates(evaluation.gates(), part.Nested("gates"));
  CheckCount(evaluation.layer_records(), "layer_records", part);
  CheckCount(evaluation.baseline().records(), "records",
             part.Nested("baseline"));
}

void CheckStage(const Stage& stage, const CheckedPart& part) {
  const std::string kind = StageKind(stage);
  if (kind.empty()) {
    part.problems->Add(part.places.line(),
                       absl::StrCat(part.whose, " does nothing: add one of ",
                                    absl::StrJoin(StageKinds(), ", ")));
    return;
  }
  if (!MakesGraph(stage)) {
    const std::string end =
        absl::StrCat(" is for stages that make a graph; ", kind, " makes none");
    if (stage.has_verify()) {
      part.Refuse("verify", stage.has_evaluate() ? "verify goes inside evaluate"
                                                 : absl::StrCat("verify", end));
    }
    if (!stage.use_file().empty()) {
      part.Refuse("use_file", absl::StrCat("use_file", end));
    }
  }
  if (stage.use_file().empty()) CheckKind(stage, part.Nested(kind));
}

}  // namespace requant
