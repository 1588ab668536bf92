#include "workflows/report/run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
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
#include "absl/time/time.h"
#include "base/files/file.h"
#include "base/files/files.h"
#include "base/files/sha256.h"
#include "base/files/staged_folder.h"
#include "base/json.h"
#include "base/message/message_json.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "google/protobuf/json/json.h"
#include "workflows/report/figures.h"
#include "workflows/report/results.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

// --- The manifest.

constexpr std::string_view kFormat = "requant manifest 1";
// The manifest of a run with thousands of stages is smaller.
constexpr int64_t kMaxBytes = 64 << 20;
// What separates the text of a manifest from its digest.
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

// Returns a file's entry; `path` is where `requant verify` finds the file.
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

// Lists each file once, for its first task. Leaves out files without a digest,
// whose task did not finish.
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

// --- The folder.

absl::Status FolderError(const std::error_code& error, std::string_view what,
                         const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " ", path, ": ", error.message(),
                   "; name another folder with --output"));
}

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return absl::OkStatus();
  return FolderError(std::error_code(errno, std::generic_category()),
                     "make the folder", path);
}

absl::Status Refused(const std::string& folder, std::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat(folder, " ", why, ": name another folder with --output"));
}

// Returns whether `inner` is `outer` or inside it.
bool IsWithin(const std::string& inner, const std::string& outer) {
  const fs::path within = ResolvedPath(inner), around = ResolvedPath(outer);
  const auto [rest, unused] =
      std::mismatch(around.begin(), around.end(), within.begin(), within.end());
  return rest == around.end();
}

// Fails unless the folder holds nothing, or a run and nothing else.
absl::Status CheckReplaceable(const std::string& folder) {
  std::error_code error;
  if (fs::is_empty(folder, error)) return absl::OkStatus();
  if (error) return FolderError(error, "look into", folder);
  const absl::StatusOr<ManifestProto> manifest =
      ReadManifest(absl::StrCat(folder, "/", kManifestFile));
  if (absl::IsNotFound(manifest.status())) {
    return Refused(folder, "holds files that are no run's");
  }
  if (!manifest.ok()) {
    return absl::DataLossError(
        absl::StrCat(manifest.status().message(),
                     "; so it is not known which files beside it are yours: "
                     "name another folder with --output, or remove this one"));
  }
  const std::set<std::string> own(manifest->files().begin(),
                                  manifest->files().end());
  for (fs::recursive_directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    std::string name = at->path().lexically_relative(folder).string();
    std::error_code ignored;
    const fs::file_type type = at->symlink_status(ignored).type();
    if (type == fs::file_type::directory) name += "/";
    if (own.count(ValidUtf8(name)) > 0 &&
        (type == fs::file_type::regular || type == fs::file_type::directory)) {
      continue;
    }
    return Refused(folder,
                   absl::StrCat("holds files that are no run's, such as ",
                                Printable(name)));
  }
  if (error) return FolderError(error, "look into", folder);
  return absl::OkStatus();
}

// Fails unless a run may be put at `folder`.
absl::Status CheckPlace(const std::string& folder) {
  std::error_code error;
  switch (fs::symlink_status(folder, error).type()) {
    case fs::file_type::directory:
      return CheckReplaceable(folder);
    case fs::file_type::not_found:
      return absl::OkStatus();
    case fs::file_type::symlink:
      return Refused(folder, "is a link");
    default:
      if (error) return FolderError(error, "look at", folder);
      return Refused(folder, "is a file");
  }
}

// Returns why a run's folder cannot be written, and what to do.
absl::Status NoSuchPlace(const absl::Status& status) {
  return absl::FailedPreconditionError(
      absl::StrCat(status.message(), ": name another folder with --output"));
}

// Makes a folder to fill, which is to be moved to its place later.
absl::StatusOr<std::unique_ptr<StagedFolder>> StartFolder(
    const std::string& folder) {
  auto staged = StagedFolder::Create(folder, /*replace=*/true);
  if (staged.ok()) return staged;
  return NoSuchPlace(staged.status());
}

absl::Status AddFile(const std::string& from, const std::string& to,
                     bool link) {
  if (link && LinkFile(from, to).ok()) return absl::OkStatus();
  const absl::Status copied = CopyFile(from, to);
  return copied.ok() ? copied : NoSuchPlace(copied);
}

// Adds a folder, such as a SavedModel.
absl::Status AddFolder(const std::string& from, const std::string& to) {
  REQUANT_RETURN_IF_ERROR(MakeFolder(to));
  std::vector<std::string> folders;
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           FilesBelow(from, &folders));
  // Empty folders are added too, such as TensorFlow's usual assets.
  for (const std::string& folder : folders) {
    REQUANT_RETURN_IF_ERROR(MakeFolder(absl::StrCat(to, "/", folder)));
  }
  for (const std::string& file : files) {
    REQUANT_RETURN_IF_ERROR(AddFile(absl::StrCat(from, "/", file),
                                    absl::StrCat(to, "/", file),
                                    /*link=*/true));
  }
  return absl::OkStatus();
}

// Texts and logs are copied, so that what a shell's ">" or a program later
// writes into them cannot reach the store.
absl::Status AddOutput(const std::string& from, const std::string& to,
                       const std::string& role) {
  std::error_code error;
  if (fs::is_directory(from, error)) return AddFolder(from, to);
  return AddFile(from, to, role != "text" && role != "log");
}

absl::Status AddOutputs(const Plan& plan, const RunResult& result,
                        const StageStore& store, const std::string& folder) {
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    if (result.keys[i].empty()) continue;
    for (const TaskOutput& output : plan.tasks[i].outputs) {
      REQUANT_RETURN_IF_ERROR(
          AddOutput(store.PathOf(result.keys[i], output.file),
                    absl::StrCat(folder, "/", output.file), output.role));
    }
  }
  return absl::OkStatus();
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

absl::StatusOr<ManifestProto> ReadManifest(const std::string& path) {
  REQUANT_RETURN_IF_ERROR(CheckRegular(path));
  REQUANT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  google::protobuf::json::ParseOptions options;
  options.ignore_unknown_fields = true;
  ManifestProto manifest;
  const absl::Status parsed =
      google::protobuf::json::JsonStringToMessage(text, &manifest, options);
  if (!parsed.ok()) {
    // The parser deliberately varies the blanks in its messages.
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
  REQUANT_RETURN_IF_ERROR(CheckOutputPaths(path, manifest.outputs()));
  return manifest;
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

std::string NewRunFolder(const std::string& parent, absl::Time now) {
  const std::string first = absl::StrCat(
      parent, "/", absl::FormatTime("%Y%m%d-%H%M%S", now, absl::UTCTimeZone()));
  std::string folder = first;
  std::error_code error;
  for (int i = 2; fs::exists(folder, error); ++i) {
    folder = absl::StrCat(first, "-", i);
  }
  return folder;
}

absl::Status PrepareRunFolder(const std::string& folder,
                              const std::string& work_dir) {
  const std::string name = fs::path(folder).filename().string();
  if (name.empty() || name == "." || name == "..") {
    return Refused(folder, "is no name for a folder");
  }
  if (IsWithin(folder, work_dir) || IsWithin(work_dir, folder)) {
    return Refused(folder, absl::StrCat("and the work folder ", work_dir,
                                        " are one inside the other"));
  }
  if (IsWithin(".", folder)) return Refused(folder, "holds the current folder");
  REQUANT_RETURN_IF_ERROR(CheckPlace(folder));
  const std::string parent = ParentOf(folder);
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return FolderError(error, "make the folder", parent);
  // This shows now whether FillRunFolder can make the folder.
  return StartFolder(folder).status();
}

std::string CommandScript(const Plan& plan, const RunRecord& record,
                          const std::string& program) {
  std::string script = absl::StrCat(
      "#!/bin/sh\n# What a run of the workflow ", Printable(record.workflow()),
      " did. In this folder it makes the same files again.\nset -e\n"
      "cd \"$(dirname \"$0\")\"\nrequant() { ",
      ShellQuoted(program), " \"$@\"; }\n");
  for (const Task& task : plan.tasks) {
    const TaskRecord& work = WorkOf(PlaceOf(task), record);
    if (work.command_size() == 0) continue;
    absl::StrAppend(&script, "\n# ", Printable(task.name), "\n");
    for (const std::string& command : work.command()) {
      absl::StrAppend(&script, command, "\n");
    }
  }
  return script;
}

absl::Status WriteRunFiles(const RunRecord& record, const std::string& folder,
                           const std::string& commands,
                           std::vector<std::string> made) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {kCommandsFile, commands},
      {"report.html", ReportHtml(record)},
      {kResultsFile, IndentedJson(ResultsJson(record))},
      {"results.csv", ResultsCsv(record)},
      {EventFileName(record), EventFile(record)},
  };
  std::vector<FileRecord> written;
  for (const auto& [name, content] : files) {
    REQUANT_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(folder, "/", name), content));
    FileRecord& file = written.emplace_back();
    file.set_role("report");
    file.set_path(name);
    file.set_sha256(Sha256(content));
    file.set_bytes(content.size());
    made.push_back(name);
  }
  made.push_back(kManifestFile);
  return WriteFileAtomically(absl::StrCat(folder, "/", kManifestFile),
                             ManifestJson(record, written, made));
}

absl::Status FillRunFolder(const Plan& plan, const RunResult& result,
                           const StageStore& store, const std::string& program,
                           const std::string& folder) {
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<StagedFolder> staged,
                           StartFolder(folder));
  const std::string& path = staged->path();
  REQUANT_RETURN_IF_ERROR(AddOutputs(plan, result, store, path));
  std::vector<std::string> folders;
  REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> made,
                           FilesBelow(path, &folders));
  for (const std::string& name : folders) {
    made.push_back(absl::StrCat(name, "/"));
  }
  REQUANT_RETURN_IF_ERROR(WriteRunFiles(
      result.record, path, CommandScript(plan, result.record, program), made));
  chmod(absl::StrCat(path, "/", kCommandsFile).c_str(), 0755);
  // The place is checked again because the run may have taken hours.
  return staged->Commit([&] { return CheckPlace(folder); });
}

absl::Status LinkLatest(const std::string& link, const std::string& folder) {
  const std::string temporary = TemporaryName(link, getpid());
  const std::string target = fs::path(folder).filename().string();
  std::error_code ignored;
  const fs::file_type type = fs::symlink_status(link, ignored).type();
  if (type != fs::file_type::symlink && type != fs::file_type::not_found) {
    return absl::FailedPreconditionError(
        absl::StrCat(link, " is not a link of ours"));
  }
  unlink(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0 ||
      rename(temporary.c_str(), link.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot make the link ", link, ": ", std::strerror(error)));
  }
  return absl::OkStatus();
}

}  // namespace requant
