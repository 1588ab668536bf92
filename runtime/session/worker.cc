#include "runtime/session/worker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "base/process/sibling_program.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "runtime/session/worker.pb.h"
#include "runtime/session/worker_death.h"

namespace requant {
namespace {

// The worker's stderr.
struct Log {
  int fd = -1;
  std::string path;
  // It goes unless the worker dies.
  bool temporary = false;
  // It has no name yet, and `path` is its folder: if this process dies too, it
  // leaves nothing behind.
  bool nameless = false;
};

std::string TemporaryFolder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

Log OpenTemporaryLog() {
  Log log;
  log.temporary = true;
  log.path = TemporaryFolder();
  log.fd = open(log.path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  log.nameless = log.fd >= 0;
  if (log.nameless) return log;
  // Not every file system has nameless files.
  absl::StrAppend(&log.path, "/requant-worker-XXXXXX");
  log.fd = mkostemp(log.path.data(), O_CLOEXEC);
  return log;
}

absl::StatusOr<Log> OpenLog(const std::string& wanted) {
  Log log;
  if (wanted == "-") {
    log.path = "stderr";
    log.fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  } else if (!wanted.empty()) {
    log.path = wanted;
    log.fd = open(wanted.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  } else {
    log = OpenTemporaryLog();
  }
  if (log.fd < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write the worker's log ", log.path, ": ",
                     std::strerror(errno)));
  }
  return log;
}

// The end of the log.
std::string Tail(const Log& log) {
  constexpr off_t kBytes = 1 << 16;
  struct stat info;
  if (fstat(log.fd, &info) != 0) return "";
  const off_t start = std::max<off_t>(0, info.st_size - kBytes);
  std::string tail(info.st_size - start, '\0');
  const ssize_t n = pread(log.fd, tail.data(), tail.size(), start);
  tail.resize(std::max<ssize_t>(n, 0));
  return tail;
}

// Keeps the log of worker `pid` for the user; its path, or "" if there is none.
std::string Keep(pid_t pid, Log* log) {
  log->temporary = false;
  if (!log->nameless) return log->path;
  const std::string name = absl::StrCat(log->path, "/requant-worker-", pid);
  const std::string source = absl::StrCat("/proc/self/fd/", log->fd);
  // A file of that name is the log of an earlier worker with the same number.
  for (int tried = 0; tried < 100; ++tried) {
    const std::string path = tried == 0 ? name : absl::StrCat(name, "-", tried);
    if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path.c_str(),
               AT_SYMLINK_FOLLOW) == 0) {
      return path;
    }
    if (errno != EEXIST) break;
  }
  // Without /proc, or where links are not allowed: its end at least.
  std::string path = name + "-XXXXXX";
  const int copy = mkostemp(path.data(), O_CLOEXEC);
  if (copy < 0) return "";
  const bool written = WriteAll(copy, Tail(*log)).ok();
  close(copy);
  return written ? path : "";
}

// Marks the status of an interrupted job; its value is the signal's number.
constexpr char kSignalPayload[] = "requant/signal";

absl::Status Interrupted(int signal) {
  absl::Status status = absl::CancelledError("interrupted");
  status.SetPayload(kSignalPayload,
                    absl::Cord(std::string_view(absl::StrCat(signal))));
  return status;
}

absl::Status StatusOf(const Failure& failure, int64_t memory_limit) {
  auto code = static_cast<absl::StatusCode>(failure.code());
  if (code == absl::StatusCode::kOk) code = absl::StatusCode::kUnknown;
  if (code != absl::StatusCode::kResourceExhausted || memory_limit <= 0) {
    return absl::Status(code, failure.message());
  }
  return absl::Status(
      code, absl::StrFormat("%s; its limit is %.1f GB (--memory_limit sets it)",
                            failure.message(), memory_limit / 1e9));
}

int64_t DefaultMemoryLimit() {
  const std::optional<int64_t> usable = ReadMemoryLimits().usable();
  return usable.has_value() ? *usable / 10 * 9 : 0;
}

absl::StatusOr<ChildOptions> WorkerProcess(const WorkerRequest& request,
                                           const WorkerOptions& options,
                                           const Log& log) {
  ChildOptions child;
  REQUANT_ASSIGN_OR_RETURN(const std::string own_path, OwnPath());
  REQUANT_ASSIGN_OR_RETURN(const std::string program,
                           SiblingProgram(own_path, "runtime", "worker"));
  child.argv = {program};
  if (std::getenv("TF_CPP_MIN_LOG_LEVEL") == nullptr) {
    child.environment.emplace_back("TF_CPP_MIN_LOG_LEVEL", "1");
  }
  child.input = request.SerializeAsString();
  child.stderr_fd = log.fd;
  // What a graph prints is not part of the caller's report.
  child.stdout_fd = log.fd;
  child.timeout_seconds = options.timeout_seconds;
  child.stall_seconds = options.stall_seconds;
  child.memory_bytes =
      options.memory_bytes > 0 ? options.memory_bytes : DefaultMemoryLimit();
  child.core_file = false;
  return child;
}

}  // namespace

absl::StatusOr<JobResult> RunInWorker(
    const WorkerRequest& request, const WorkerOptions& options,
    const std::function<void(const WorkerEvent&)>& on_event) {
  REQUANT_ASSIGN_OR_RETURN(Log log, OpenLog(options.log_file));
  absl::Cleanup close_log = [&] {
    close(log.fd);
    if (log.temporary && !log.nameless) unlink(log.path.c_str());
  };
  REQUANT_ASSIGN_OR_RETURN(ChildOptions child,
                           WorkerProcess(request, options, log));
  std::string activity = "starting";
  std::optional<WorkerEvent> last;
  // What the job made counts once its worker has ended as it should.
  std::vector<WorkerEvent> made;
  std::set<std::string> warnings;
  child.on_report = [&](std::string_view line) {
    const absl::StatusOr<WorkerEvent> event = DecodeEvent(line);
    if (!event.ok()) return;
    if (event->event_case() == WorkerEvent::kActivity) {
      activity = event->activity();
    }
    if (event->has_failure() || event->has_result()) {
      last = *event;
    } else if (event->has_note() || event->has_file_part() ||
               event->has_ranges_part()) {
      made.push_back(*event);
    } else if (on_event && (!event->has_warning() ||
                            warnings.insert(event->warning()).second)) {
      on_event(*event);
    }
  };
  const auto start_over = [&](const std::string& sentence, const ChildResult&) {
    made.clear();
    last.reset();
    activity = "starting";
    // Not where it is this process's stderr.
    if (options.log_file != "-" && ftruncate(log.fd, 0) == 0) {
      lseek(log.fd, 0, SEEK_SET);
    }
    WorkerEvent event;
    event.set_warning(sentence);
    if (on_event) on_event(event);
  };
  REQUANT_ASSIGN_OR_RETURN(const ChildResult result,
                           RunTensorFlowChild(child, start_over));
  if (result.interrupted_by != 0) return Interrupted(result.interrupted_by);
  if (last.has_value() && result.exit_code == 0) {
    for (WorkerEvent& event : made) {
      if (on_event) on_event(event);
      event.Clear();
    }
    if (last->has_result()) return last->result();
    return StatusOf(last->failure(), child.memory_bytes);
  }
  const std::string tail = Tail(log);
  return absl::InternalError(
      ExplainDeath({result, child, activity, tail,
                    tail.empty() ? "" : Keep(result.pid, &log)}));
}

int ReportWorkerFailure(const std::string& program,
                        const absl::Status& status) {
  ReportFailure(program, status);
  const std::optional<absl::Cord> signal = status.GetPayload(kSignalPayload);
  int number = 0;
  if (!signal.has_value() || !absl::SimpleAtoi(std::string(*signal), &number)) {
    return kExitFailed;
  }
  return 128 + number;
}

std::string EncodeEvent(const WorkerEvent& event) {
  return absl::Base64Escape(event.SerializeAsString());
}

absl::StatusOr<WorkerEvent> DecodeEvent(std::string_view line) {
  std::string bytes;
  WorkerEvent event;
  if (!absl::Base64Unescape(line, &bytes) || !event.ParseFromString(bytes) ||
      event.event_case() == WorkerEvent::EVENT_NOT_SET) {
    return absl::DataLossError("not an event of a worker");
  }
  return event;
}

}  // namespace requant
