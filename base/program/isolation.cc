#include "base/program/isolation.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "base/program/flags.h"
#include "base/program/last_words.h"
#include "base/text/printable.h"

namespace requant {
namespace {

// Holds the parent's process id, so that programs which a child starts are not
// taken for such children.
constexpr char kChildVariable[] = "REQUANT_ISOLATED_CHILD_OF";

// What a child reports when it ends by its own decision; no activity.
constexpr char kEnding[] = "\x04";

// Passes a child's stderr on, but keeps the report of a failed CHECK and the
// stack trace behind it for the sentence about its death.
class StderrFilter {
 public:
  void Line(std::string_view line) {
    if (dying_ || IsTensorFlowNoise(line)) return;
    if (IsLastWord(line, &reason_)) {
      dying_ = true;
      return;
    }
    if (repeated_ < printed_.size() && printed_[repeated_] == line) {
      ++repeated_;
      return;
    }
    printed_.emplace_back(line);
    repeated_ = printed_.size();
    std::fputs(absl::StrCat(Printable(line), "\n").c_str(), stderr);
  }
  const std::string& reason() const { return reason_; }

  // The child is run again; what it printed before it died comes once.
  void StartOver() {
    dying_ = false;
    reason_.clear();
    repeated_ = 0;
  }

 private:
  bool dying_ = false;
  // What was passed on, and how many of these lines the child wrote since it
  // was last started.
  std::vector<std::string> printed_;
  size_t repeated_ = 0;
  std::string reason_;
};

// Removes the temporary files of process `pid` (base/files/file.h) from
// `folder`.
void RemoveTemporaryFiles(const std::string& folder, pid_t pid) {
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return;
  absl::Cleanup close_directory = [&] { closedir(directory); };
  const std::string ending = absl::StrCat(".tmp.", pid);
  while (const dirent* entry = readdir(directory)) {
    if (!absl::EndsWith(entry->d_name, ending)) continue;
    unlink(absl::StrCat(folder, "/", entry->d_name).c_str());
  }
}

// Removes what the child `pid` left half-written.
void RemoveLeftovers(const IsolationOptions& options, pid_t pid) {
  for (const std::string& output : options.outputs) {
    RemoveTree(TemporaryName(output, pid));
  }
  for (const std::string& folder : options.output_folders) {
    RemoveTemporaryFiles(folder, pid);
  }
}

// How a child died.
std::string Death(const ChildResult& result, const ChildOptions& child) {
  return result.signal == 0 && !result.timed_out
             ? absl::StrCat("ended the program with exit code ",
                            result.exit_code)
             : DescribeEnd(result, child);
}

std::string DeathSentence(const IsolationOptions& options,
                          const ChildOptions& child, const ChildResult& result,
                          const std::string& activity,
                          const std::string& reason) {
  return absl::StrCat(
      activity, " ", Death(result, child),
      options.subject.empty() ? "" : absl::StrCat(" on ", options.subject),
      reason.empty() ? "" : absl::StrCat(": ", reason), "; nothing was written",
      result.timed_out ? " (--timeout sets the limit)" : "");
}

ChildOptions SameProgramAsChild(const IsolationOptions& options,
                                const std::string& path) {
  ChildOptions child;
  child.argv = {path};
  child.name = options.program;
  child.argv.insert(child.argv.end(), options.arguments.begin(),
                    options.arguments.end());
  child.environment.emplace_back(kChildVariable, absl::StrCat(getpid()));
  // TensorFlow's log repeats at length what its status then says. Level 3 keeps
  // only what it says before it aborts.
  if (std::getenv("TF_CPP_MIN_LOG_LEVEL") == nullptr) {
    child.environment.emplace_back("TF_CPP_MIN_LOG_LEVEL", "3");
  }
  child.timeout_seconds = options.timeout_seconds;
  child.core_file = false;
  return child;
}

bool IsIsolatedChild() {
  const char* parent = std::getenv(kChildVariable);
  return parent != nullptr && parent == absl::StrCat(getppid());
}

// Does the work and ends. Destructors do not run: TensorFlow's library has
// nothing left to do.
[[noreturn]] void WorkAsChild(const IsolationOptions& options,
                              const std::function<int()>& work) {
  static char held_back[1 << 20];
  std::setvbuf(stdout, held_back, _IOFBF, sizeof(held_back));
  const int exit_code = FinishOutput(options.program, work());
  std::fflush(nullptr);
  ReportToParent(kEnding);
  std::_Exit(exit_code);
}

}  // namespace

void SetActivity(const std::string& activity) {
  ReportToParent(absl::StrReplaceAll(activity, {{"\n", " "}}));
}

int RunIsolated(const IsolationOptions& options,
                const std::function<int()>& work) {
  if (IsIsolatedChild()) WorkAsChild(options, work);
  const auto path = OwnPath();
  if (!path.ok()) return ReportFailure(options.program, path.status());
  ChildOptions child = SameProgramAsChild(options, *path);
  StderrFilter filter;
  std::string activity = "starting";
  bool ending = false;
  child.on_stderr = [&](std::string_view line) { filter.Line(line); };
  child.on_report = [&](std::string_view line) {
    if (line == kEnding) {
      ending = true;
    } else {
      activity = line;
    }
  };
  const auto start_over = [&](const std::string& sentence,
                              const ChildResult& died) {
    RemoveLeftovers(options, died.pid);
    Say(options.program, absl::StrCat("warning: ", sentence));
    filter.StartOver();
    activity = "starting";
  };
  const auto result = RunTensorFlowChild(child, start_over);
  if (!result.ok()) return ReportFailure(options.program, result.status());
  if (ending && result->exit_code >= 0) return result->exit_code;
  RemoveLeftovers(options, result->pid);
  if (result->interrupted_by != 0) {
    Say(options.program, "interrupted; nothing was written");
    return 128 + result->interrupted_by;
  }
  // Whoever read the output has seen enough, as in "… | head".
  if (result->signal == SIGPIPE) return 128 + SIGPIPE;
  return ReportFailure(options.program, absl::InternalError(DeathSentence(
                                            options, child, *result, activity,
                                            filter.reason())));
}

}  // namespace requant
