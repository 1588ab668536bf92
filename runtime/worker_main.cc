// worker: reads one WorkerRequest from stdin, does the job, and reports events
// to the process that started it (runtime/worker.h). Not for people.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/subprocess.h"
#include "runtime/evaluate.h"
#include "runtime/worker.h"
#include "runtime/worker.pb.h"

namespace requant {
namespace {

void Send(const WorkerEvent& event) { ReportToParent(EncodeEvent(event)); }

absl::StatusOr<WorkerEvent> DoJob(const WorkerRequest& request) {
  switch (request.job_case()) {
    case WorkerRequest::kEvaluate: {
      WorkerEvent event;
      absl::StatusOr<EvaluateResult> result =
          Evaluate(request.evaluate(), Send);
      if (!result.ok()) return result.status();
      *event.mutable_evaluate_result() = *std::move(result);
      return event;
    }
    case WorkerRequest::JOB_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a request without a job");
}

int Work() {
  WorkerRequest request;
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  if (input.empty() || !request.ParseFromString(input)) {
    std::fputs(
        "worker: started by other programs of Requant, with a request "
        "on stdin\n",
        stderr);
    return 2;
  }
  absl::StatusOr<WorkerEvent> last = DoJob(request);
  if (!last.ok()) {
    WorkerEvent event;
    event.mutable_failure()->set_code(static_cast<int>(last.status().code()));
    event.mutable_failure()->set_message(std::string(last.status().message()));
    last = event;
  }
  Send(*last);
  return 0;
}

}  // namespace
}  // namespace requant

int main() {
  const int exit_code = requant::Work();
  std::fflush(nullptr);
  // Destructors do not run: TensorFlow's library has nothing left to do.
  std::_Exit(exit_code);
}
