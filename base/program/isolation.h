#ifndef REQUANT_BASE_PROGRAM_ISOLATION_H_
#define REQUANT_BASE_PROGRAM_ISOLATION_H_

// Transforms, plugins and the graphs of users can abort, stall, or use up all
// memory. A program that runs them does so in a child of itself and explains
// the child's death in a sentence.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/terminal/progress.h"

namespace requant {

// The limits of work that runs a graph.
struct GraphLimits {
  // The child is stopped when it holds more; 0 means nine tenths of what is
  // free now.
  int64_t memory_bytes = 0;
  // It is stopped after this time without a report; 0 means never.
  double stall_seconds = 300;
  // Receives what the graph prints, such as the lines of Print operations.
  // "-": this process's stderr. Empty: a temporary file, which is kept only
  // when the child dies.
  std::string log_file;
  // Whether the program has flags for these limits, which messages then name.
  bool has_flags = true;
};

struct IsolationOptions {
  // The program's name for messages, as typed.
  std::string program;
  // The program's own arguments, handed to the child.
  std::vector<std::string> arguments;
  // Files and whole folders the child writes, and folders it writes into; what
  // it leaves half-written is removed.
  std::vector<std::string> outputs;
  std::vector<std::string> output_folders;
  // What is being worked on, for messages: the input graph. Empty where the
  // activities name it.
  std::string subject;
  // The child is stopped after this time; 0 means never.
  double timeout_seconds = 0;
  // Set for work that runs a graph, as opposed to changing one.
  std::optional<GraphLimits> graph;
  // Shown until the work reports progress of its own.
  ProgressOptions progress;
};

// Does `work` in a child process: this program started again with the same
// arguments, which comes to this same call. Passes the child's output on and
// returns the exit code for main: the one `work` returned, or kExitFailed after
// the sentence of its error or one about the child's death, or 128 + signal
// when interrupted. A child that ends in any other way than by returning from
// `work`, even with exit(0), has died. It leaves no core file. One that dies of
// an instruction that the CPU does not run gets a second try
// (base/process/tensorflow_child.h), for which nothing comes twice: stdout is
// held back until `work` returns.
//
// In work that runs a graph, stdout and stderr are the log until StartReport;
// Say and ReportFailure (base/program/flags.h) reach the user nevertheless.
int RunIsolated(const IsolationOptions& options,
                const std::function<absl::StatusOr<int>()>& work);

// The following are called in `work`. Outside of a child the first three do
// nothing. Thread-safe, but for StartReport.

// Says what is done from now on, to be named if the process dies of it, such as
// "the transform \"fold_constants\" (2 of 3)".
void SetActivity(const std::string& activity);

// Says that the work goes on, for the limit on stalls.
void ReportAlive();

// Ends the part of the work that runs a graph: from here on stdout is that of
// the program, progress is no longer shown, and the limit on stalls no longer
// holds. With `more_work` stdout is held back until the work returns.
void StartReport(bool more_work = false);

// Returns whether this program, or the one that it is a child of, does a task
// of a workflow.
bool IsPartOfRun();

// Returns where to show the work's progress.
ProgressEnvironment WorkProgress();

}  // namespace requant

#endif  // REQUANT_BASE_PROGRAM_ISOLATION_H_
