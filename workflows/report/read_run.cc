#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/files/sha256.h"
#include "base/message_text.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "google/protobuf/json/json.h"
#include "google/protobuf/struct.pb.h"
#include "workflows/report/figures.h"
#include "workflows/report/run_comparison.h"
#include "workflows/report/run_folder.h"

namespace requant {
namespace {

using google::protobuf::Value;
using Values = google::protobuf::RepeatedPtrField<Value>;

constexpr std::string_view kResultsFormat = "requant results 1";
// The results of a run with thousands of stages and layers are smaller.
constexpr int64_t kMaxResultBytes = 64 << 20;
// No workflow has more.
constexpr int kMostStages = 1000;
// So many digits of a digest are enough for people to tell files apart.
constexpr size_t kShownDigits = 12;

// Return what is at a path of members such as "tool/cpu": null, "", no number
// or no elements if there is nothing of that kind.
const Value& At(const Value& value, std::string_view path) {
  const Value* at = &value;
  for (const std::string_view name : absl::StrSplit(path, '/')) {
    const auto& members = at->struct_value().fields();
    const auto member = members.find(std::string(name));
    if (member == members.end()) return Value::default_instance();
    at = &member->second;
  }
  return *at;
}

std::string TextAt(const Value& value, std::string_view path) {
  return Printable(At(value, path).string_value());
}

std::optional<double> NumberOf(const Value& value) {
  if (!value.has_number_value() || !std::isfinite(value.number_value())) {
    return std::nullopt;
  }
  return value.number_value();
}

std::optional<double> NumberAt(const Value& value, std::string_view path) {
  return NumberOf(At(value, path));
}

const Values& ListAt(const Value& value, std::string_view path) {
  return At(value, path).list_value().values();
}

std::optional<int64_t> BytesAt(const Value& value, std::string_view path) {
  const std::optional<double> bytes = NumberAt(value, path);
  if (!bytes || *bytes < 0 || *bytes > 1e18) return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

std::optional<Estimate> EstimateOf(const Value& number, const Value& ends) {
  const std::optional<double> value = NumberOf(number);
  if (!value) return std::nullopt;
  Estimate estimate{*value};
  const Values& both = ends.list_value().values();
  if (both.size() == 2 && both[0].has_number_value() &&
      both[1].has_number_value()) {
    estimate.interval =
        MakeInterval(both[0].number_value(), both[1].number_value());
  }
  return estimate;
}

std::optional<Estimate> RatioOf(const Value& ratio) {
  return EstimateOf(At(ratio, "ratio"), At(ratio, "interval_95"));
}

ComparedStage StageOf(const Value& stage) {
  ComparedStage compared;
  const Value& figures = At(stage, "figures");
  compared.name = TextAt(stage, "name");
  compared.state = TextAt(figures, "state");
  compared.verdict = TextAt(figures, "verdict");
  compared.bytes = BytesAt(figures, "bytes");
  for (const Figure& figure : Figures()) {
    const Value& value = At(figures, figure.key);
    const std::optional<Estimate> found =
        figure.is_ratio
            ? RatioOf(value)
            : EstimateOf(value, At(figures, figure.interval_key == nullptr
                                                ? ""
                                                : figure.interval_key));
    if (found) compared.figures.emplace(figure.key, *found);
  }
  for (const Value& file : ListAt(stage, "verification/work/inputs")) {
    if (TextAt(file, "role") == "graph") continue;
    compared.verified_on.insert(TextAt(file, "sha256"));
  }
  if (compared.verified_on.empty()) return compared;
  compared.verified_on.insert(
      absl::StrCat(NumberAt(stage, "verification/scores/records").value_or(0)));
  for (const Value& command : ListAt(stage, "verification/work/commands")) {
    for (std::string_view word : absl::StrSplit(command.string_value(), ' ')) {
      if (absl::StartsWith(word, "--skip_records=")) {
        compared.verified_on.emplace(word);
      }
    }
  }
  return compared;
}

// Adds what a task read that no stage made, and the records that one made.
void AddInputs(const std::string& task, const Value& files, ComparedRun* run) {
  std::map<std::string, std::string> inputs;
  for (const Value& file : files.list_value().values()) {
    const std::string digest = TextAt(file, "sha256"),
                      role = TextAt(file, "role");
    const bool is_made = !TextAt(file, "stage").empty() && role != "data";
    if (is_made || digest.empty()) continue;
    absl::StrAppend(&inputs[role], inputs[role].empty() ? "" : "; ",
                    SizeText(BytesAt(file, "bytes").value_or(0)), ", sha256 ",
                    digest.substr(0, kShownDigits));
  }
  for (const auto& [role, value] : inputs) {
    run->facts.push_back({"input", absl::StrCat(role, " of ", task), value});
  }
}

// Says why the run did not pass, and what did not succeed.
void AddRemarks(const Value& stage, ComparedRun* run) {
  const std::string name = TextAt(stage, "name");
  for (const Value& gate : ListAt(stage, "verification/gates")) {
    const std::string verdict = TextAt(gate, "verdict");
    if (verdict != "fail" && verdict != "inconclusive") continue;
    run->remarks.push_back(
        absl::StrCat("gate ", TextAt(gate, "name"), " of stage ", name,
                     verdict == "fail" ? " failed: " : " is not certain: ",
                     TextAt(gate, "sentence")));
  }
  for (const char* part : {"work", "verification/work", "benchmark/work"}) {
    const std::string state = TextAt(stage, absl::StrCat(part, "/state"));
    if (state != "failed" && state != "interrupted" && state != "running") {
      continue;
    }
    const std::string why = TextAt(stage, absl::StrCat(part, "/message"));
    const std::string_view verb = state == "failed"    ? " "
                                  : state == "running" ? " is "
                                                       : " was ";
    run->remarks.push_back(absl::StrCat("stage ", name, verb, state,
                                        why.empty() ? "" : ": ", why));
  }
}

void AddFacts(const Value& results, ComparedRun* run) {
  run->facts.push_back({"", "workflow", run->workflow});
  for (const auto& [name, path] :
       {std::pair("Requant", "tool/version"),
        std::pair("TensorFlow", "tool/tensorflow"),
        std::pair("CPU", "tool/cpu"), std::pair("target host", "tool/target"),
        std::pair("system", "tool/system")}) {
    run->facts.push_back({"", name, TextAt(results, path)});
  }
  for (const Value& feature : ListAt(results, "tool/cpu_features")) {
    run->facts.push_back(
        {"CPU feature", Printable(feature.string_value()), "has it"});
  }
  run->facts.push_back(
      {"", "cores", absl::StrCat(NumberAt(results, "tool/cores").value_or(0))});
  for (const Value& variable : ListAt(results, "variables")) {
    run->facts.push_back({"variable", TextAt(variable, "name"),
                          absl::StrCat("\"", TextAt(variable, "value"), "\"")});
  }
}

// Adds what the manifest tells: the workflow file, and whether the results are
// as the run wrote them.
void AddManifest(const std::string& folder, std::string_view results,
                 ComparedRun* run) {
  const auto manifest = ReadManifest(absl::StrCat(folder, "/", kManifestFile));
  if (!manifest.ok()) {
    run->remarks.push_back(Printable(manifest.status().message()));
    return;
  }
  run->facts.push_back(
      {"", "workflow file",
       absl::StrCat("sha256 ", Printable(manifest->workflow_sha256().substr(
                                   0, kShownDigits)))});
  for (const ManifestFile& file : manifest->outputs()) {
    if (file.path() == kResultsFile && file.sha256() != Sha256(results)) {
      run->remarks.push_back(
          absl::StrCat(kResultsFile, " was changed since the run wrote it"));
    }
  }
}

absl::Status NoRun(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, " ", why));
}

absl::StatusOr<Value> ParseResults(const std::string& path,
                                   const std::string& text) {
  Value results;
  const absl::Status parsed =
      google::protobuf::json::JsonStringToMessage(text, &results);
  if (!parsed.ok()) {
    // The parser deliberately varies the blanks in its messages.
    std::string why(parsed.message());
    absl::RemoveExtraAsciiWhitespace(&why);
    return NoRun(path, absl::StrCat("is damaged: ", Printable(why)));
  }
  if (TextAt(results, "format") != kResultsFormat ||
      TextAt(results, "outcome").empty() ||
      !At(results, "stages").has_list_value() ||
      ListAt(results, "stages").size() > kMostStages) {
    return NoRun(path,
                 absl::StrCat("does not hold a run's results: it lacks "
                              "the format \"",
                              kResultsFormat, "\", an outcome or the stages"));
  }
  return results;
}

}  // namespace

absl::StatusOr<ComparedRun> ReadRun(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return NoRun(folder,
                 "is no folder: name runs' folders, such as "
                 "out/wide_deep/latest; a run has one when it has ended");
  }
  const std::string path = absl::StrCat(folder, "/", kResultsFile);
  if (!std::filesystem::exists(path, error)) {
    return NoRun(folder, absl::StrCat("is not a run's folder: it has no ",
                                      kResultsFile));
  }
  REQUANT_RETURN_IF_ERROR(CheckRegular(path));
  REQUANT_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMaxResultBytes));
  REQUANT_ASSIGN_OR_RETURN(const Value results, ParseResults(path, text));
  ComparedRun run;
  run.path = Printable(folder);
  run.workflow = TextAt(results, "workflow");
  run.outcome = TextAt(results, "outcome");
  run.started = TextAt(results, "started");
  run.seconds = NumberAt(results, "seconds").value_or(0);
  run.final_stage = TextAt(results, "final/stage");
  run.speed = RatioOf(At(results, "final/speed"));
  run.size_ratio = NumberAt(results, "final/size_ratio");
  if (run.outcome == "unknown") run.remarks.push_back("it has not ended");
  AddFacts(results, &run);
  AddManifest(folder, text, &run);
  for (const Value& baseline : ListAt(results, "baselines")) {
    AddRemarks(baseline, &run);
    AddInputs(TextAt(baseline, "name"), At(baseline, "work/inputs"), &run);
  }
  for (const Value& stage : ListAt(results, "stages")) {
    const std::string name = TextAt(stage, "name");
    run.stages.push_back(StageOf(stage));
    run.facts.push_back({"stage", name, "has it"});
    AddRemarks(stage, &run);
    AddInputs(name, At(stage, "work/inputs"), &run);
    AddInputs(name + "/verify", At(stage, "verification/work/inputs"), &run);
    AddInputs(name, At(stage, "benchmark/work/inputs"), &run);
  }
  return run;
}

}  // namespace requant
