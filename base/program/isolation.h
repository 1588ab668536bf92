#ifndef REQUANT_BASE_PROGRAM_ISOLATION_H_
#define REQUANT_BASE_PROGRAM_ISOLATION_H_

// Transforms, plugins and users' graphs can abort, stall, or exhaust memory. A
// program runs them in a child of itself and explains the child's death in a
// sentence.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/terminal/progress.h"

namespace requant {

// Limits for work that runs a graph.
struct GraphLimits {
  // The child is stopped when it holds more; 0 means nine tenths of the memory
  // that is free now.
  int64_t memory_bytes = 0;
  // About what the work needs, if that is known. The child is not started if it
  // may not have as much. One that needs more than a gigabyte returns memory to
  // the system when it is free, instead of keeping it for later.
  int64_t needed_bytes = 0;
  // The child is stopped after this time without a report; 0 means never.
  double stall_seconds = 300;
  // Receives the graph's output, such as the lines of Print operations. "-"
  // means this process's stderr. If empty, it is a temporary file that is kept
  // only if the child dies.
  std::string log_file;
  // Whether the program has flags for these limits, to be named in messages.
  bool has_flags = true;
};

struct IsolationOptions {
  // The program's name for messages, as typed.
  std::string program;
  // The program's own arguments, passed to the child.
  std::vector<std::string> arguments;
  // Files and whole folders that the child writes, and folders it writes into.
  // Half-written files are removed.
  std::vector<std::string> outputs;
  std::vector<std::string> output_folders;
  // What is being worked on, for messages: the input graph. It is empty if the
  // activities name it.
  std::string subject;
  // The child is stopped after this time; 0 means never.
  double timeout_seconds = 0;
  // Set for work that runs a graph rather than changes one.
  std::optional<GraphLimits> graph;
  // Whether the child gets this process's environment as it is, without what
  // TensorFlow needs on this machine, and no second try.
  bool stock_environment = false;
  // Shown until the work reports its own progress.
  ProgressOptions progress;
};

// Does `work` in a child process: this program started again with the same
// arguments, which reaches this same call. Passes the child's output on and
// returns the exit code for main: that of `work`; kExitFailed after a sentence
// about its error or the child's death; or 128 + signal when interrupted. A
// child that ends in any way other than returning from `work`, even with
// exit(0), counts as dead. It leaves no core file. One that dies of an
// instruction that the CPU does not run gets a second try
// (base/process/tensorflow_child.h). To avoid duplicate output, stdout is held
// back until `work` returns.
//
// In work that runs a graph, stdout and stderr go to the log until StartReport;
// Say and ReportFailure (base/program/flags.h) reach the user nevertheless.
int RunIsolated(const IsolationOptions& options,
                const std::function<absl::StatusOr<int>()>& work);

// The following are called in `work`. Outside a child the first three do
// nothing. All but StartReport are thread-safe.

// Sets the activity that is named if the process dies of it, such as "the
// transform \"fold_constants\" (2 of 3)".
void SetActivity(const std::string& activity);

// Reports that the work is going on, for the limit on stalls.
void ReportAlive();

// Ends the part of the work that runs a graph: stdout is the program's again,
// progress is no longer shown, and the limit on stalls no longer applies. With
// `more_work` stdout is held back until the work returns.
void StartReport(bool more_work = false);

// Returns whether this program, or its parent if it is a child, works for a
// task of a workflow.
bool IsPartOfRun();

// Returns where to show the work's progress.
ProgressEnvironment WorkProgress();

}  // namespace requant

#endif  // REQUANT_BASE_PROGRAM_ISOLATION_H_
