#include "workflows/report/manifest.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/files/sha256.h"
#include "base/json.h"
#include "base/message/message_json.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "google/protobuf/json/json.h"
#include "workflows/report/figures.h"
#include "workflows/report/manifest.pb.h"
#include "workflows/report/results.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "requant manifest 1";
// A run of thousands of stages has less.
constexpr int64_t kMaxBytes = 64 << 20;
// What stands between the text of a manifest and its digest.
constexpr std::string_view kDigestMember = ",\n  \"manifest_sha256\": \"";

using Files = google::protobuf::RepeatedPtrField<ManifestFile>;
// Tasks of the run, by the names that they have in plans.
using NamedTasks = std::vector<std::pair<std::string, const TaskRecord*>>;

NamedTasks NamedTasksOf(const RunRecord& record) {
  NamedTasks tasks;
  for (const BaselineRecord& baseline : record.baseline()) {
    tasks.emplace_back(baseline.name(), &baseline.work());
  }
  for (const StageRecord& stage : record.stage()) {
    for (const TaskRecord* task : TasksOf(stage)) {
      const bool verifies = task == &stage.verification().work();
      tasks.emplace_back(absl::StrCat(stage.name(), verifies ? "/verify" : ""),
                         task);
    }
  }
  return tasks;
}

// Returns a file's entry; `path` is where it is, for verifying.
std::string FileJson(const FileRecord& file, const std::string& path,
                     std::string_view task) {
  JsonMembers members = {{"path", JsonString(path)}};
  if (ValidUtf8(path) != path) {
    members.emplace_back("path_bytes", JsonString(absl::Base64Escape(path)));
  }
  if (path != file.path()) {
    members.emplace_back("given", JsonString(file.path()));
  }
  members.insert(members.end(), {{"role", JsonString(file.role())},
                                 {"task", JsonString(task)},
                                 {"sha256", JsonString(file.sha256())},
                                 {"bytes", absl::StrCat(file.bytes())}});
  return JsonObject(members);
}

// Returns the absolute path: `requant verify` may run in another folder.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::string absolute = fs::absolute(path, error).string();
  return error ? path : absolute;
}

// Each file once, by its first task; a file that was not digested (its task
// did not finish) is no part of the manifest.
class FileList {
 public:
  void Add(const FileRecord& file, const std::string& path,
           std::string_view task) {
    if (file.sha256().empty()) return;
    if (!seen_.emplace(path, file.sha256()).second) return;
    files_.push_back(FileJson(file, path, task));
  }
  std::string json() const { return JsonArray(files_); }

 private:
  std::set<std::pair<std::string, std::string>> seen_;
  std::vector<std::string> files_;
};

std::string TaskJson(const std::string& name, const TaskRecord& task) {
  const auto path = [](const FileRecord& file) {
    return JsonString(file.path());
  };
  return JsonObject({{"name", JsonString(name)},
                     {"state", JsonString(StateName(task.state()))},
                     {"key", JsonString(task.key())},
                     {"commands", JsonArrayOf(task.command(), JsonString)},
                     {"inputs", JsonArrayOf(task.input(), path)},
                     {"outputs", JsonArrayOf(task.output(), path)}});
}

std::string MetricsJson(const RunRecord& record) {
  const std::vector<StageFigures> figures = FiguresOfStages(record);
  std::vector<std::string> stages;
  for (int i = 0; i < record.stage_size(); ++i) {
    stages.push_back(JsonObject({{"stage", JsonString(record.stage(i).name())},
                                 {"figures", FiguresJson(figures[i])}}));
  }
  return JsonArray(stages);
}

absl::Status NoManifest(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": not a manifest of a run: ", why));
}

const std::string& PathOf(const ManifestFile& file) {
  return file.path_bytes().empty() ? file.path() : file.path_bytes();
}

// Fails unless each file has a path and a digest.
absl::Status CheckEntries(const std::string& path, std::string_view member,
                          const Files& files) {
  for (int i = 0; i < files.size(); ++i) {
    const std::string& digest = files[i].sha256();
    if (!PathOf(files[i]).empty() && digest.size() == 64 &&
        digest.find_first_not_of("0123456789abcdef") == digest.npos) {
      continue;
    }
    return NoManifest(path,
                      absl::StrCat("\"", member, "\"[", i,
                                   "] lacks a path or a SHA-256 of 64 digits"));
  }
  return absl::OkStatus();
}

// Fails if an output is not in the manifest's folder.
absl::Status CheckOutputPaths(const std::string& path, const Files& outputs) {
  if (outputs.empty()) return NoManifest(path, "it has no \"outputs\"");
  for (const ManifestFile& file : outputs) {
    const fs::path output = PathOf(file);
    if (output.is_relative() &&
        std::find(output.begin(), output.end(), "..") == output.end()) {
      continue;
    }
    return NoManifest(path,
                      absl::StrCat("the output \"", Printable(output.string()),
                                   "\" is not in the manifest's folder"));
  }
  return absl::OkStatus();
}

absl::Status CheckOwnDigest(const std::string& path, std::string_view text) {
  const size_t end = text.rfind(kDigestMember);
  if (end != text.npos &&
      text == WithOwnDigest(absl::StrCat(text.substr(0, end), "}"))) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      path, end == text.npos
                ? " lacks its own digest: an older Requant wrote it, or it was "
                  "changed since"
                : " was changed since the run wrote it: its own digest, at its "
                  "end, is that of another text"));
}

absl::StatusOr<ManifestProto> ReadManifest(const std::string& path) {
  REQUANT_RETURN_IF_ERROR(CheckRegular(path));
  REQUANT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  google::protobuf::json::ParseOptions options;
  options.ignore_unknown_fields = true;
  ManifestProto manifest;
  const absl::Status parsed =
      google::protobuf::json::JsonStringToMessage(text, &manifest, options);
  if (!parsed.ok()) {
    // The parser puts one or two blanks between its words, to be no contract.
    std::string why(parsed.message());
    absl::RemoveExtraAsciiWhitespace(&why);
    return NoManifest(path, Printable(why));
  }
  if (manifest.format() != kFormat) {
    return NoManifest(
        path, absl::StrCat("\"format\" is \"", Printable(manifest.format()),
                           "\", not \"", kFormat,
                           "\"; give the manifest.json of a run's folder"));
  }
  REQUANT_RETURN_IF_ERROR(CheckOwnDigest(path, text));
  REQUANT_RETURN_IF_ERROR(CheckEntries(path, "inputs", manifest.inputs()));
  REQUANT_RETURN_IF_ERROR(CheckEntries(path, "outputs", manifest.outputs()));
  REQUANT_RETURN_IF_ERROR(CheckOutputPaths(path, manifest.outputs()));
  return manifest;
}

FileCheck Check(const ManifestFile& file, const std::string& place,
                bool input) {
  FileCheck check = {file.given().empty() ? file.path() : file.given(), input,
                     FileState::kOk, ""};
  const absl::StatusOr<PathDigest> digest = DigestOfPath(place);
  if (absl::IsNotFound(digest.status())) {
    check.state = input ? FileState::kGone : FileState::kMissing;
  } else if (!digest.ok()) {
    check.state = FileState::kUnreadable;
    check.message = digest.status().message();
  } else if (digest->sha256 != file.sha256()) {
    check.state = FileState::kChanged;
    if (digest->bytes != file.bytes()) {
      check.message =
          absl::StrCat(digest->bytes, " bytes, were ", file.bytes());
    }
  }
  return check;
}

}  // namespace

std::string WithOwnDigest(std::string_view json) {
  std::string_view text = absl::StripTrailingAsciiWhitespace(json);
  absl::ConsumeSuffix(&text, "}");
  text = absl::StripTrailingAsciiWhitespace(text);
  return absl::StrCat(text, kDigestMember, Sha256(text), "\"\n}\n");
}

std::string ManifestJson(const RunRecord& record,
                         const std::vector<FileRecord>& more_outputs,
                         const std::vector<std::string>& files) {
  FileList inputs, outputs;
  std::vector<std::string> tasks;
  for (const auto& [name, task] : NamedTasksOf(record)) {
    for (const FileRecord& file : task->input()) {
      if (file.stage().empty()) inputs.Add(file, Absolute(file.path()), name);
    }
    for (const FileRecord& file : task->output()) {
      outputs.Add(file, file.path(), name);
    }
    tasks.push_back(TaskJson(name, *task));
  }
  for (const FileRecord& file : more_outputs) {
    outputs.Add(file, file.path(), "");
  }
  return WithOwnDigest(IndentedJson(JsonObject({
      {"format", JsonString(kFormat)},
      {"workflow", JsonString(record.workflow())},
      {"workflow_sha256", JsonString(Sha256(record.file_content()))},
      {"run", JsonString(record.run())},
      {"outcome", JsonString(OutcomeName(record.outcome()))},
      {"started", JsonString(UtcTime(record.started_ms()))},
      {"seconds", JsonNumber(record.seconds())},
      {"command", JsonString(record.command())},
      {"tool", MessageJson(record.tool())},
      {"variables", JsonArrayOf(record.variable(), MessageJson)},
      {"inputs", inputs.json()},
      {"outputs", outputs.json()},
      {"files", JsonArrayOf(files, JsonString)},
      {"tasks", JsonArray(tasks)},
      {"metrics", MetricsJson(record)},
  })));
}

absl::StatusOr<std::vector<FileCheck>> CheckManifest(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const ManifestProto manifest, ReadManifest(path));
  const fs::path folder = fs::path(path).parent_path();
  std::vector<FileCheck> checks;
  for (const ManifestFile& file : manifest.inputs()) {
    checks.push_back(Check(file, folder / PathOf(file), /*input=*/true));
  }
  for (const ManifestFile& file : manifest.outputs()) {
    checks.push_back(Check(file, folder / PathOf(file), /*input=*/false));
  }
  return checks;
}

absl::StatusOr<std::vector<std::string>> FilesOfManifest(
    const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const ManifestProto manifest, ReadManifest(path));
  return std::vector<std::string>(manifest.files().begin(),
                                  manifest.files().end());
}

std::string_view FileStateName(FileState state) {
  constexpr std::string_view kNames[] = {"ok", "changed", "missing", "gone",
                                         "unreadable"};
  return kNames[static_cast<int>(state)];
}

bool AllWell(const std::vector<FileCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(), [](const FileCheck& check) {
    return check.state == FileState::kOk || check.state == FileState::kGone;
  });
}

}  // namespace requant
