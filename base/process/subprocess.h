#ifndef REQUANT_BASE_PROCESS_SUBPROCESS_H_
#define REQUANT_BASE_PROCESS_SUBPROCESS_H_

// A child process that may die in any way without taking its parent along.

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace requant {

// The descriptor on which a child started with `on_report` reports to its
// parent, one line at a time (ReportToParent).
inline constexpr int kReportFd = 3;

// Set by a parent that reads progress (base/terminal/progress.h) from the
// descriptor that it names.
inline constexpr char kProgressVariable[] = "REQUANT_PROGRESS_FD";

struct ChildOptions {
  // The program's path, then its arguments.
  std::vector<std::string> argv;
  // What the child gets for its name instead of the path; empty: the path.
  std::string name;
  // Variables set on top of the parent's environment.
  std::vector<std::pair<std::string, std::string>> environment;
  // Called with each line of the child's stderr, without its line break.
  // Unset: the child shares the parent's stderr.
  std::function<void(std::string_view line)> on_stderr;
  // Called with each line of the child's stdout; unset: shared.
  std::function<void(std::string_view line)> on_stdout;
  // Called with each line the child writes to kReportFd; unset: no such pipe.
  std::function<void(std::string_view line)> on_report;
  // Descriptors that become the child's stderr and stdout, instead of
  // `on_stderr` and `on_stdout`; they stay the caller's. -1: none.
  int stderr_fd = -1;
  int stdout_fd = -1;
  // What the child reads from its stdin; unset: shared.
  std::optional<std::string> input;
  // The child is killed after this time; 0 means never.
  double timeout_seconds = 0;
  // It is killed when it has reported nothing for this time; 0 means never.
  double stall_seconds = 0;
  // It is killed when it holds more memory than this; already before, its
  // allocations fail when they would take it far beyond. 0 means no limit.
  int64_t memory_bytes = 0;
  // Whether it may leave a core file when it crashes.
  bool core_file = true;
  // Once this is true the child gets SIGTERM and, if it lives on for five
  // seconds, SIGKILL. Unset: never.
  const std::atomic<bool>* stop = nullptr;
};

struct ChildResult {
  pid_t pid = 0;
  // Its exit code, or -1 when a signal ended it.
  int exit_code = -1;
  // The signal that ended it, or 0.
  int signal = 0;
  bool timed_out = false;
  bool stalled = false;
  bool over_memory = false;
  // Whether it was stopped because of `stop`.
  bool stopped = false;
  // The most memory that it ever held.
  int64_t peak_memory_bytes = 0;
  // The signal (SIGINT, SIGTERM, SIGHUP) that this process received meanwhile
  // and passed on, or 0.
  int interrupted_by = 0;
};

// Runs a child until it ends. It dies with its parent, or when the thread that
// called this does. SIGINT, SIGTERM and SIGHUP sent to the parent are passed on
// to all children that run, and the parent lives on to clean up. Thread-safe.
absl::StatusOr<ChildResult> RunChild(const ChildOptions& options);

// While one exists, SIGINT, SIGTERM and SIGHUP do not end this process but are
// noted and passed on to its children, also to those that start later. A signal
// that was ignored before, as by nohup, stays ignored. RunChild has one of its
// own; a caller that runs several children has one around all of them.
// Thread-safe.
class SignalForwarding {
 public:
  SignalForwarding();
  ~SignalForwarding();
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

  // Returns the last signal since none of these objects existed, or 0.
  static int Received();
};

// Says how a child ended when it did not exit by itself: "was ended by SIGSEGV
// (invalid memory access)", "was stopped after 60 s".
std::string DescribeEnd(const ChildResult& result, const ChildOptions& options);

// Sends one line from a child to its parent. Does nothing without a parent that
// reads them. Thread-safe.
void ReportToParent(std::string_view line);

// Returns the path of the running program.
absl::StatusOr<std::string> OwnPath();

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_SUBPROCESS_H_
