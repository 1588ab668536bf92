#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/files/files.h"
#include "base/json.h"
#include "base/message_text.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "workflows/commands/commands.h"
#include "workflows/run/stage_store.h"

DEFINE_double(unused_days, -1,
              "prune: Remove what no run used for this many days.");
DEFINE_double(max_gb, -1,
              "prune: Remove the least recently used until a folder's cache "
              "has at most this many GB.");

namespace requant {
namespace {

constexpr char kCacheProgram[] = "requant cache";
// The folders in which runs keep their work unless --work_dir is given.
constexpr char kUsualFolders[] = "out/*/work";

ProgramHelp CacheHelp() {
  return {
      kCacheProgram,
      "says how much the work folders keep of what stages made (size), what "
      "that is (list), or removes some of it (prune). A FOLDER is a "
      "--work_dir; unless given, all of out/*/work are meant. What was removed "
      "is made again when a run needs it. What a run that was stopped in the "
      "last two weeks needs to go on is never removed, nor anything while a "
      "run uses the folder.",
      "requant cache\n"
      "requant cache list out/wide_deep/work\n"
      "requant cache prune --unused_days=30\n"
      "requant cache prune --max_gb=5",
      {__FILE__, OutputFormatFlagFile()},
      "Exit codes: 0 done, 1 a folder could not be read or pruned, 2 wrong "
      "usage."};
}

struct Folder {
  std::string path;
  std::vector<StoredResult> results;
  Pruned pruned;
};

std::string LocalTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M", time, absl::LocalTimeZone());
}

int64_t BytesOfResults(const Folder& folder) {
  int64_t bytes = 0;
  for (const StoredResult& result : folder.results) bytes += result.bytes;
  return bytes;
}

// Returns "out/wide_deep/work: 34 results, 1.20 GB".
std::string FolderLine(const Folder& folder) {
  return absl::StrCat(Printable(folder.path), ": ",
                      CountText(folder.results.size(), "result"), ", ",
                      SizeText(BytesOfResults(folder)), "\n");
}

std::string ListText(const Folder& folder) {
  std::string text = FolderLine(folder);
  for (const StoredResult& result : folder.results) {
    absl::StrAppendFormat(
        &text, "  %10s  last used %s  %s%s\n", SizeText(result.bytes),
        LocalTime(result.last_used),
        result.task.empty() ? "(of an older Requant, or damaged)"
                            : Printable(result.task),
        result.needed_by.empty()
            ? ""
            : absl::StrCat("  (needed by: ", Printable(result.needed_by), ")"));
  }
  return text;
}

std::string PruneText(const Folder& folder) {
  std::string text =
      absl::StrCat(Printable(folder.path), ": ", PrunedText(folder.pruned),
                   ", kept ", SizeText(folder.pruned.kept_bytes));
  if (folder.pruned.needed_bytes > 0) {
    absl::StrAppend(&text, ", of which runs that were stopped need ",
                    SizeText(folder.pruned.needed_bytes));
  }
  return text + "\n";
}

std::string FolderJson(const Folder& folder) {
  const auto json = [](const StoredResult& result) {
    return JsonObject({{"task", JsonString(result.task)},
                       {"key", JsonString(result.key)},
                       {"bytes", absl::StrCat(result.bytes)},
                       {"last_used", JsonString(absl::FormatTime(
                                         absl::RFC3339_sec, result.last_used,
                                         absl::UTCTimeZone()))},
                       {"needed_by", JsonString(result.needed_by)}});
  };
  return JsonObject({{"work_dir", JsonString(folder.path)},
                     {"bytes", absl::StrCat(BytesOfResults(folder))},
                     {"removed_results", absl::StrCat(folder.pruned.results)},
                     {"removed_bytes", absl::StrCat(folder.pruned.bytes)},
                     {"results", JsonArrayOf(folder.results, json)}});
}

absl::Status CheckWorkFolder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path + "/cache", error) &&
      std::filesystem::is_regular_file(path + "/lock", error)) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat(Printable(path),
                   " is not a run's work folder: it has no folder \"cache\" "
                   "with a file \"lock\" beside it"));
}

absl::StatusOr<Folder> LookAt(const std::string& path, bool prune) {
  REQUANT_RETURN_IF_ERROR(CheckWorkFolder(path));
  Folder folder;
  folder.path = path;
  if (prune) {
    PruneLimits limits;
    if (FLAGS_unused_days >= 0) {
      limits.unused_since = absl::Now() - absl::Hours(24) * FLAGS_unused_days;
    }
    if (FLAGS_max_gb >= 0) {
      limits.max_bytes = static_cast<int64_t>(FLAGS_max_gb * 1e9);
    }
    REQUANT_ASSIGN_OR_RETURN(
        const std::unique_ptr<StageStore> store,
        StageStore::OpenForRun(path, "requant cache prune"));
    REQUANT_ASSIGN_OR_RETURN(folder.pruned, PruneStore(limits, store.get()));
  }
  folder.results = StageStore::OpenToLook(path)->Results();
  return folder;
}

std::string UsageError(const std::string& action) {
  const bool limited = FLAGS_unused_days >= 0 || FLAGS_max_gb >= 0;
  if (action == "prune" && !limited) {
    return "prune wants --unused_days, --max_gb or both";
  }
  if (action != "prune" && limited) {
    return "--unused_days and --max_gb are for prune";
  }
  if (!(FLAGS_max_gb < 1e9) || !(FLAGS_unused_days < 1e5)) {
    return "--max_gb is below 1e9 and --unused_days below 1e5";
  }
  if (OutputFormatFlag() != "text" && OutputFormatFlag() != "json") {
    return absl::StrCat("--format is text or json, not \"", OutputFormatFlag(),
                        "\"");
  }
  return "";
}

}  // namespace

int RunCacheCommand(const std::vector<std::string>& args) {
  std::vector<std::string> folders;
  if (auto code = ParseFlags(args, CacheHelp(), &folders)) return *code;
  std::string action = "size";
  if (!folders.empty() &&
      (folders[0] == "size" || folders[0] == "list" || folders[0] == "prune")) {
    action = folders[0];
    folders.erase(folders.begin());
  }
  const std::string usage_error = UsageError(action);
  if (!usage_error.empty()) return ReportUsage(kCacheProgram, usage_error);
  if (folders.empty()) folders = MatchingFiles(kUsualFolders);
  int exit_code = kExitOk;
  std::vector<std::string> json;
  for (const std::string& path : folders) {
    const absl::StatusOr<Folder> folder = LookAt(path, action == "prune");
    if (!folder.ok()) {
      exit_code = ReportFailure(kCacheProgram, folder.status());
      continue;
    }
    json.push_back(FolderJson(*folder));
    if (OutputFormatFlag() == "json") continue;
    std::fputs((action == "prune"  ? PruneText(*folder)
                : action == "list" ? ListText(*folder)
                                   : FolderLine(*folder))
                   .c_str(),
               stdout);
  }
  if (OutputFormatFlag() == "json") {
    std::fputs(
        IndentedJson(JsonObject({{"work_dirs", JsonArray(json)}})).c_str(),
        stdout);
  } else if (folders.empty()) {
    std::printf("There are no work folders %s here.\n", kUsualFolders);
  }
  return exit_code;
}

}  // namespace requant
