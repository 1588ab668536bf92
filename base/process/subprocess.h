#ifndef REQUANT_BASE_PROCESS_SUBPROCESS_H_
#define REQUANT_BASE_PROCESS_SUBPROCESS_H_

// Runs child processes that may die in any way without affecting their parent.

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

// The variable with the descriptor from which a parent reads progress
// (base/terminal/progress.h).
inline constexpr char kProgressVariable[] = "REQUANT_PROGRESS_FD";

struct ChildOptions {
  // The program's path and its arguments.
  std::vector<std::string> argv;
  // The child's name (argv[0]); if it is empty, the path.
  std::string name;
  // Variables set on top of the parent's environment.
  std::vector<std::pair<std::string, std::string>> environment;
  // Called with each line of the child's stderr, without its line break. If
  // unset, the child shares the parent's stderr.
  std::function<void(std::string_view line)> on_stderr;
  // Called with each line of the child's stdout; if unset, it is shared.
  std::function<void(std::string_view line)> on_stdout;
  // Called with each line the child writes to kReportFd; if unset, it has none.
  std::function<void(std::string_view line)> on_report;
  // Descriptors, owned by the caller, that become the child's stderr and stdout
  // instead of `on_stderr` and `on_stdout`, or -1.
  int stderr_fd = -1;
  int stdout_fd = -1;
  // The text of the child's stdin, which is shared if this is unset.
  std::optional<std::string> input;
  // The child is killed after this time; 0 means never.
  double timeout_seconds = 0;
  // The child is killed after this time without a report; 0 means never.
  double stall_seconds = 0;
  // The child is killed when it holds more memory than this. Allocations that
  // would take it far beyond fail even earlier. 0 means no limit.
  int64_t memory_bytes = 0;
  // Whether the child may leave a core file when it crashes.
  bool core_file = true;
  // When this becomes true the child gets SIGTERM and, if it is still alive
  // after five seconds, SIGKILL. Null means never.
  const std::atomic<bool>* stop = nullptr;
};

struct ChildResult {
  pid_t pid = 0;
  // The exit code, or -1 if a signal ended the child.
  int exit_code = -1;
  // The signal that ended it, or 0.
  int signal = 0;
  bool timed_out = false;
  bool stalled = false;
  bool over_memory = false;
  // Whether it was stopped because of `stop`.
  bool stopped = false;
  // The peak memory use.
  int64_t peak_memory_bytes = 0;
  // The signal (SIGINT, SIGTERM, SIGHUP) that this process received and passed
  // on meanwhile, or 0.
  int interrupted_by = 0;
};

// Runs a child until it ends. It dies with its parent or the thread that called
// this. SIGINT, SIGTERM and SIGHUP sent to the parent are passed on to all
// running children, and the parent survives to clean up. Thread-safe.
absl::StatusOr<ChildResult> RunChild(const ChildOptions& options);

// While one exists, SIGINT, SIGTERM and SIGHUP do not end this process but are
// recorded and passed on to its children, including ones that start later.
// Ignored signals (as under nohup) stay ignored. RunChild has one of its own; a
// caller that runs several children creates one around all of them.
// Thread-safe.
class SignalForwarding {
 public:
  SignalForwarding();
  ~SignalForwarding();
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

  // Returns the last signal received while any of these objects existed, or 0.
  static int Received();
};

// Describes how a child ended when it did not exit by itself: "was ended by
// SIGSEGV (invalid memory access)", "was stopped after 60 s".
std::string DescribeEnd(const ChildResult& result, const ChildOptions& options);

// Sends one line from a child to its parent, or does nothing if no parent reads
// reports. Thread-safe.
void ReportToParent(std::string_view line);

// Returns the path of the running program.
absl::StatusOr<std::string> OwnPath();

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_SUBPROCESS_H_
