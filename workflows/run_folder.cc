#include "workflows/run_folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/shell_quote.h"
#include "base/status_macros.h"
#include "workflows/run_files.h"
#include "workflows/run_places.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kScript[] = "commands.sh";
// Behind the folder's name while it is filled, before the process's number.
constexpr char kPartial[] = ".partial.";

absl::Status FolderError(const std::error_code& error, std::string_view what,
                         const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " ", path, ": ", error.message(),
                   "; name another folder with --out"));
}

void RemoveAll(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Removes what processes that are gone left half-filled in `parent`.
void RemoveLeftovers(const std::string& parent) {
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    const size_t mark = name.rfind(kPartial);
    int pid = 0;
    if (mark == std::string::npos ||
        !absl::SimpleAtoi(name.substr(mark + std::strlen(kPartial)), &pid)) {
      continue;
    }
    if (kill(pid, 0) != 0 && errno == ESRCH) RemoveAll(at->path().string());
  }
}

// Texts and logs are copied: what a shell's ">" or a program writes into them
// later must not reach the store.
absl::Status AddOutput(const std::string& from, const std::string& to,
                       const std::string& role) {
  std::error_code error;
  if (role != "text" && role != "log") {
    fs::create_hard_link(from, to, error);
    if (!error) return absl::OkStatus();
    error.clear();
  }
  fs::copy_file(from, to, error);
  if (error) return FolderError(error, "write", to);
  return absl::OkStatus();
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

absl::Status PrepareRunFolder(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error) &&
      !fs::exists(absl::StrCat(folder, "/", kScript), error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, " is there already and holds no run: name another with --out"));
  }
  const std::string parent = ParentOf(folder);
  fs::create_directories(parent, error);
  if (error) return FolderError(error, "make the folder", parent);
  RemoveLeftovers(parent);
  // A name that no file has: whether the folder can be written to.
  return CheckWritable(absl::StrCat(folder, kPartial, "probe"));
}

std::string CommandScript(const Plan& plan, const RunRecord& record,
                          const std::string& program) {
  std::string script = absl::StrCat(
      "#!/bin/sh\n# What a run of the workflow ", record.workflow(),
      " did. In this folder it makes the same files again.\nset -e\n"
      "cd \"$(dirname \"$0\")\"\nrequant() { ",
      ShellQuoted(program), " \"$@\"; }\n");
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskRecord& work = WorkOf(plan, static_cast<int>(i), record);
    if (work.command_size() == 0) continue;
    absl::StrAppend(&script, "\n# ", plan.tasks[i].name, "\n");
    for (const std::string& command : work.command()) {
      absl::StrAppend(&script, command, "\n");
    }
  }
  return script;
}

absl::Status FillRunFolder(const Plan& plan, const RunResult& result,
                           const StageStore& store, const std::string& program,
                           const std::string& folder) {
  const std::string partial = absl::StrCat(folder, kPartial, getpid());
  absl::Cleanup remove_partial = [&] { RemoveAll(partial); };
  RemoveAll(partial);
  std::error_code error;
  fs::create_directories(partial, error);
  if (error) return FolderError(error, "make the folder", partial);
  REQUANT_RETURN_IF_ERROR(AddOutputs(plan, result, store, partial));
  const std::string script = absl::StrCat(partial, "/", kScript);
  REQUANT_RETURN_IF_ERROR(
      WriteFileAtomically(script, CommandScript(plan, result.record, program)));
  chmod(script.c_str(), 0755);
  REQUANT_RETURN_IF_ERROR(WriteRunFiles(result.record, partial));
  if (fs::exists(folder, error)) {
    const std::string old = absl::StrCat(folder, ".old", kPartial, getpid());
    fs::rename(folder, old, error);
    if (error) return FolderError(error, "replace", folder);
    fs::rename(partial, folder, error);
    RemoveAll(old);
  } else {
    fs::rename(partial, folder, error);
  }
  if (error) return FolderError(error, "make the folder", folder);
  return absl::OkStatus();
}

absl::Status LinkLatest(const std::string& link, const std::string& folder) {
  const std::string temporary = TemporaryName(link, getpid());
  const std::string target = fs::path(folder).filename().string();
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
