#ifndef REQUANT_RUNTIME_SESSION_WORKER_H_
#define REQUANT_RUNTIME_SESSION_WORKER_H_

// Running a job in a worker process, from outside. Whatever the worker does
// (crash, stall, eat memory), the caller gets a sentence about it. Nothing of
// TensorFlow's kernels is loaded here.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/session/worker.pb.h"

namespace requant {

struct WorkerOptions {
  // The worker is stopped when it holds more; 0 means nine tenths of what is
  // free now.
  int64_t memory_bytes = 0;
  // It is stopped after this time, or after so long without progress; 0 means
  // never.
  double timeout_seconds = 0;
  double stall_seconds = 300;
  // What it writes to stderr goes here: the lines of Print operations too.
  // "-": this process's stderr. Empty: to a temporary file, which is kept only
  // when the worker dies.
  std::string log_file;
};

// Runs one job and returns its result. Events before that go to `on_event` as
// they come; notes and parts of files at the end. A worker that dies of an
// instruction that the CPU does not run gets a second try
// (base/process/tensorflow_child.h). An interrupted job is
// absl::CancelledError.
absl::StatusOr<JobResult> RunInWorker(
    const WorkerRequest& request, const WorkerOptions& options,
    const std::function<void(const WorkerEvent&)>& on_event);

// The exit code of a command whose job failed: 1, or 128 + the signal that
// interrupted it. Prints the sentence.
int ReportWorkerFailure(const std::string& program, const absl::Status& status);

// The same event on both sides of the pipe: one line of text.
std::string EncodeEvent(const WorkerEvent& event);
absl::StatusOr<WorkerEvent> DecodeEvent(std::string_view line);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_WORKER_H_
