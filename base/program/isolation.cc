#include "base/program/isolation.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/files/files.h"
#include "base/process/machine.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "base/program/child_death.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/text/printable.h"

namespace requant {
namespace {

// Holds the parent's process id, so that programs started by a child are not
// mistaken for such children.
constexpr char kChildVariable[] = "REQUANT_ISOLATED_CHILD_OF";
// Is set in children that work for a task of a workflow.
constexpr char kPartOfRunVariable[] = "REQUANT_PART_OF_RUN";
// Holds the descriptor on which the parent answers a waiting child.
constexpr char kAnswerVariable[] = "REQUANT_ANSWER_FD";

// The kinds of report lines besides progress: each line has a kind, a tab and a
// text.
constexpr char kActivity[] = "activity";
constexpr char kSaid[] = "said";
// The text is an absl::StatusCode, a tab and the message.
constexpr char kFailure[] = "failure";
// The child is about to end normally.
constexpr char kEnding[] = "ending";
// The child is alive.
constexpr char kAlive[] = "alive";
// The child is about to print its report and waits until progress is cleared.
constexpr char kReport[] = "report";

// A child's state. stdout_of_report saves stdout while a graph runs, or is -1.
bool is_child = false;
bool runs_graph = false;
int stdout_of_report = -1;
int answers = -1;
char held_back[1 << 20];

void ReportLine(std::string_view kind, std::string_view text) {
  ReportToParent(
      absl::StrCat(kind, "\t", absl::StrReplaceAll(text, {{"\n", " "}})));
}

// Passes on a child's stderr, except for the report and stack trace of a failed
// CHECK, which are kept for the sentence about its death.
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

  // Prepares for a retry: lines from before the death are not repeated.
  void StartOver() {
    dying_ = false;
    reason_.clear();
    repeated_ = 0;
  }

 private:
  bool dying_ = false;
  // The lines passed on, and how many of them the child has written again since
  // its last start.
  std::vector<std::string> printed_;
  size_t repeated_ = 0;
  std::string reason_;
};

// The destination of a graph's prints.
class GraphLog {
 public:
  GraphLog() = default;
  GraphLog(const GraphLog&) = delete;
  GraphLog& operator=(const GraphLog&) = delete;
  ~GraphLog() {
    if (fd_ >= 0) close(fd_);
  }

  absl::Status Open(const std::string& wanted) {
    is_stderr_ = wanted == "-";
    if (is_stderr_) {
      path_ = "stderr";
      fd_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    } else if (!wanted.empty()) {
      path_ = wanted;
      fd_ = open(wanted.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    } else {
      OpenTemporary();
    }
    if (fd_ >= 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot write the worker's log ", path_, ": ", std::strerror(errno)));
  }

  int fd() const { return fd_; }

  // Returns the end of the log.
  std::string Tail() const {
    constexpr off_t kBytes = 1 << 16;
    struct stat info;
    if (fstat(fd_, &info) != 0) return "";
    const off_t start = std::max<off_t>(0, info.st_size - kBytes);
    std::string tail(info.st_size - start, '\0');
    const ssize_t n = pread(fd_, tail.data(), tail.size(), start);
    tail.resize(std::max<ssize_t>(n, 0));
    return tail;
  }

  // Discards the log unless it went to this process's stderr.
  void Truncate() {
    if (!is_stderr_ && ftruncate(fd_, 0) == 0) lseek(fd_, 0, SEEK_SET);
  }

  // Saves the log of child `pid` for the user; returns its path, or "" on
  // failure.
  std::string Keep(pid_t pid) const {
    if (!is_temporary_) return path_;
    const std::string name = absl::StrCat(path_, "/requant-worker-", pid);
    std::string path = name;
    // An existing file is the log of an earlier child with the same pid.
    for (int tried = 1; tried < 100; ++tried) {
      const absl::Status kept =
          CopyFile(absl::StrCat("/proc/self/fd/", fd_), path);
      if (!absl::IsAlreadyExists(kept)) return kept.ok() ? path : "";
      path = absl::StrCat(name, "-", tried);
    }
    return "";
  }

 private:
  // Makes a nameless file, of which nothing remains if this process dies too.
  void OpenTemporary() {
    const char* folder = std::getenv("TMPDIR");
    path_ = folder != nullptr && *folder != '\0' ? folder : "/tmp";
    is_temporary_ = true;
    std::string name = absl::StrCat(path_, "/requant-worker-XXXXXX");
    fd_ = mkostemp(name.data(), O_CLOEXEC);
    if (fd_ >= 0) unlink(name.c_str());
  }

  int fd_ = -1;
  // The log's path, or the folder in which Keep saves a temporary log.
  std::string path_;
  bool is_temporary_ = false;
  bool is_stderr_ = false;
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

// Removes files that the child `pid` left half-written.
void RemoveLeftovers(const IsolationOptions& options, pid_t pid) {
  for (const std::string& output : options.outputs) {
    RemoveTree(TemporaryName(output, pid));
  }
  for (const std::string& folder : options.output_folders) {
    RemoveTemporaryFiles(folder, pid);
  }
}

// Explains the death of a child that ran no graph.
std::string DeathSentence(const IsolationOptions& options,
                          const ChildOptions& child, const ChildResult& result,
                          const std::string& activity,
                          const std::string& reason) {
  const std::string death =
      result.signal == 0 && !result.timed_out
          ? absl::StrCat("ended the program with exit code ", result.exit_code)
          : DescribeEnd(result, child);
  return absl::StrCat(
      activity, " ", death,
      options.subject.empty() ? "" : absl::StrCat(" on ", options.subject),
      reason.empty() ? "" : absl::StrCat(": ", reason), "; nothing was written",
      result.timed_out ? " (--timeout sets the limit)" : "");
}

int64_t DefaultMemoryLimit() {
  const std::optional<int64_t> usable = ReadMemoryLimits().usable();
  return usable.has_value() ? *usable / 10 * 9 : 0;
}

// Fails if the work needs more memory than its limit `most`, if there is one.
absl::Status CheckMemory(const GraphLimits& limits, int64_t most) {
  if (most == 0 || limits.needed_bytes <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the model needs about %.1f GB of memory, and %s %.1f GB%s",
      limits.needed_bytes / 1e9,
      limits.memory_bytes > 0 ? "--memory_limit allows"
                              : "nine tenths of what is free are",
      most / 1e9,
      limits.memory_bytes > 0 ? "" : " (--memory_limit sets another limit)"));
}

ChildOptions SameProgramAsChild(const IsolationOptions& options,
                                const std::string& path) {
  ChildOptions child;
  child.argv = {path};
  child.name = options.program;
  child.argv.insert(child.argv.end(), options.arguments.begin(),
                    options.arguments.end());
  child.environment.emplace_back(kChildVariable, absl::StrCat(getpid()));
  if (IsPartOfRun()) child.environment.emplace_back(kPartOfRunVariable, "1");
  // TensorFlow logs at length what its status says as well. Level 3 keeps only
  // messages before an abort.
  if (std::getenv("TF_CPP_MIN_LOG_LEVEL") == nullptr) {
    child.environment.emplace_back("TF_CPP_MIN_LOG_LEVEL",
                                   options.graph.has_value() ? "1" : "3");
  }
  child.timeout_seconds = options.timeout_seconds;
  if (options.graph.has_value()) {
    child.stall_seconds = options.graph->stall_seconds;
    child.memory_bytes = options.graph->memory_bytes > 0
                             ? options.graph->memory_bytes
                             : DefaultMemoryLimit();
    if (options.graph->needed_bytes > 1'000'000'000) {
      // These make oneDNN and the C library return memory at once.
      child.environment.emplace_back("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1");
      child.environment.emplace_back("MALLOC_MMAP_THRESHOLD_", "1048576");
    }
  }
  child.core_file = false;
  return child;
}

// Runs the child and passes on its reports.
class Isolation {
 public:
  explicit Isolation(const IsolationOptions& options) : options_(options) {}

  absl::StatusOr<int> Run() {
    REQUANT_ASSIGN_OR_RETURN(const std::string path, OwnPath());
    child_ = SameProgramAsChild(options_, path);
    absl::Cleanup close_answers = [this] {
      for (const int end : answers_) close(end);
    };
    if (options_.graph.has_value()) {
      REQUANT_RETURN_IF_ERROR(
          CheckMemory(*options_.graph, child_.memory_bytes));
      REQUANT_RETURN_IF_ERROR(log_.Open(options_.graph->log_file));
      child_.stderr_fd = log_.fd();
      REQUANT_RETURN_IF_ERROR(OpenAnswers());
    } else {
      child_.on_stderr = [this](std::string_view line) { filter_.Line(line); };
    }
    child_.on_report = [this](std::string_view line) { Receive(line); };
    if (!options_.progress.what.empty()) progress_.emplace(options_.progress);
    const auto start_over = [this](const std::string& sentence,
                                   const ChildResult& died) {
      StartOver(sentence, died.pid);
    };
    REQUANT_ASSIGN_OR_RETURN(const ChildResult result,
                             options_.stock_environment
                                 ? RunChild(child_)
                                 : RunTensorFlowChild(child_, start_over));
    return Conclude(result);
  }

 private:
  absl::Status OpenAnswers() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return absl::ErrnoToStatus(errno, "cannot start a process");
    }
    // The child inherits this descriptor under a number that it does not use.
    answers_[0] = fcntl(ends[0], F_DUPFD, kReportFd + 1);
    close(ends[0]);
    answers_[1] = ends[1];
    child_.environment.emplace_back(kAnswerVariable, absl::StrCat(answers_[0]));
    return absl::OkStatus();
  }

  void Receive(std::string_view line) {
    if (const auto report = ParseProgressReport(line)) {
      if (!progress_.has_value()) {
        progress_.emplace(
            ProgressOptions{report->what, report->unit, report->total});
      }
      progress_->SetTotal(report->total);
      progress_->Update(report->done, report->note);
      return;
    }
    const std::pair<std::string_view, std::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('\t', 1));
    const auto& [kind, text] = parts;
    if (kind == kActivity) {
      activity_ = text;
    } else if (kind == kSaid) {
      PassOn(std::string(text));
    } else if (kind == kFailure) {
      SetFailure(text);
    } else if (kind == kEnding) {
      ending_ = true;
    } else if (kind == kReport) {
      if (progress_.has_value()) progress_->Finish();
      progress_.reset();
      (void)!write(answers_[1], "", 1);
    }
  }

  // Prints each sentence once, however often the child is started.
  void PassOn(const std::string& line) {
    if (!said_.insert(line).second) return;
    if (progress_.has_value()) {
      progress_->Say(line);
    } else {
      std::fputs(absl::StrCat(line, "\n").c_str(), stderr);
    }
  }

  void SetFailure(std::string_view text) {
    const std::pair<std::string_view, std::string> parts =
        absl::StrSplit(text, absl::MaxSplits('\t', 1));
    int code = 0;
    (void)absl::SimpleAtoi(parts.first, &code);
    failure_ = absl::Status(static_cast<absl::StatusCode>(code), parts.second);
    // A full disk also gives this code.
    const bool lacks_memory =
        absl::IsResourceExhausted(failure_) &&
        (absl::StrContains(text, "OOM") || absl::StrContains(text, "memory"));
    if (lacks_memory && options_.graph->has_flags && child_.memory_bytes > 0) {
      failure_ = absl::ResourceExhaustedError(
          absl::StrFormat("%s; its limit is %.1f GB (--memory_limit sets it)",
                          parts.second, child_.memory_bytes / 1e9));
    }
  }

  void StartOver(const std::string& sentence, pid_t died) {
    RemoveLeftovers(options_, died);
    if (options_.graph.has_value()) log_.Truncate();
    PassOn(absl::StrCat(options_.program, ": warning: ", sentence));
    filter_.StartOver();
    activity_ = "starting";
    failure_ = absl::OkStatus();
    ending_ = false;
  }

  absl::StatusOr<int> Conclude(const ChildResult& result) {
    if (ending_ && result.exit_code >= 0) {
      if (!failure_.ok()) return failure_;
      if (progress_.has_value()) progress_->Finish();
      return result.exit_code;
    }
    RemoveLeftovers(options_, result.pid);
    progress_.reset();
    // Work that runs a graph need not write anything.
    const bool says_nothing_written =
        !options_.graph.has_value() || !options_.subject.empty();
    if (result.interrupted_by != 0) {
      Say(options_.program, says_nothing_written
                                ? "interrupted; nothing was written"
                                : "interrupted");
      return 128 + result.interrupted_by;
    }
    // The reader of the output has seen enough, as in "… | head".
    if (result.signal == SIGPIPE) return 128 + SIGPIPE;
    if (!options_.graph.has_value()) {
      return absl::InternalError(
          DeathSentence(options_, child_, result, activity_, filter_.reason()));
    }
    const std::string tail = log_.Tail();
    return absl::InternalError(
        absl::StrCat(ExplainDeath({result, child_, activity_, tail,
                                   tail.empty() ? "" : log_.Keep(result.pid),
                                   options_.graph->has_flags}),
                     says_nothing_written ? "; nothing was written" : ""));
  }

  const IsolationOptions& options_;
  ChildOptions child_;
  GraphLog log_;
  StderrFilter filter_;
  std::optional<Progress> progress_;
  std::string activity_ = "starting";
  std::set<std::string> said_;
  absl::Status failure_;
  bool ending_ = false;
  // The ends of the pipe that carries answers to the child.
  int answers_[2] = {-1, -1};
};

bool IsIsolatedChild() {
  const char* parent = std::getenv(kChildVariable);
  return parent != nullptr && parent == absl::StrCat(getppid());
}

// Sends the graph's output to the log and program messages to the parent.
void SeparateFromGraph() {
  runs_graph = true;
  stdout_of_report = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, kReportFd + 1);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  SetSayer([](std::string_view line) { ReportLine(kSaid, line); });
  const char* descriptor = std::getenv(kAnswerVariable);
  if (descriptor == nullptr || !absl::SimpleAtoi(descriptor, &answers)) return;
  fcntl(answers, F_SETFD, FD_CLOEXEC);
}

int ExitCodeOf(const IsolationOptions& options,
               const absl::StatusOr<int>& result) {
  if (result.ok()) return *result;
  // The parent may add to the message of a graph's failure.
  if (stdout_of_report >= 0) {
    ReportLine(kFailure, absl::StrCat(static_cast<int>(result.status().code()),
                                      "\t", result.status().message()));
    return kExitFailed;
  }
  return ReportFailure(options.program, result.status());
}

// Does the work and exits without running destructors: TensorFlow's library has
// nothing left to do.
[[noreturn]] void WorkAsChild(
    const IsolationOptions& options,
    const std::function<absl::StatusOr<int>()>& work) {
  is_child = true;
  if (options.graph.has_value()) {
    SeparateFromGraph();
  } else {
    std::setvbuf(stdout, held_back, _IOFBF, sizeof(held_back));
  }
  const int exit_code =
      FinishOutput(options.program, ExitCodeOf(options, work()));
  std::fflush(nullptr);
  ReportLine(kEnding, "");
  std::_Exit(exit_code);
}

}  // namespace

void SetActivity(const std::string& activity) {
  if (is_child) ReportLine(kActivity, activity);
}

void ReportAlive() {
  if (is_child) ReportLine(kAlive, "");
}

void StartReport(bool more_work) {
  if (stdout_of_report < 0) return;
  std::fflush(stdout);
  ReportLine(kReport, "");
  char answer;
  while (read(answers, &answer, 1) < 0 && errno == EINTR) continue;
  if (more_work) std::setvbuf(stdout, held_back, _IOFBF, sizeof(held_back));
  dup2(stdout_of_report, STDOUT_FILENO);
  close(stdout_of_report);
  stdout_of_report = -1;
  std::thread([] {
    while (true) {
      ReportAlive();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }).detach();
}

bool IsPartOfRun() {
  return std::getenv(kProgressVariable) != nullptr ||
         std::getenv(kPartOfRunVariable) != nullptr;
}

ProgressEnvironment WorkProgress() {
  ProgressEnvironment environment = ProgressEnvironment::Stderr();
  if (runs_graph) {
    environment.report = [](std::string_view line) {
      ReportToParent(absl::StripSuffix(line, "\n"));
    };
  }
  return environment;
}

int RunIsolated(const IsolationOptions& options,
                const std::function<absl::StatusOr<int>()>& work) {
  if (IsIsolatedChild()) WorkAsChild(options, work);
  const absl::StatusOr<int> exit_code = Isolation(options).Run();
  return exit_code.ok() ? *exit_code
                        : ReportFailure(options.program, exit_code.status());
}

}  // namespace requant
