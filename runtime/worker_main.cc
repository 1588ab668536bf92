// worker: reads one WorkerRequest from stdin, does the job, and reports events
// to the process that started it (runtime/session/worker.h). Not for people.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "base/terminal_guard.h"
#include "runtime/benchmark/benchmark.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/calibration/quantize.h"
#include "runtime/evaluation/evaluate.h"
#include "runtime/session/worker.h"
#include "runtime/session/worker.pb.h"

namespace requant {
namespace {

void Send(const WorkerEvent& event) { ReportToParent(EncodeEvent(event)); }

absl::StatusOr<JobResult> DoJob(const WorkerRequest& request) {
  JobResult result;
  switch (request.job_case()) {
    case WorkerRequest::kEvaluate: {
      REQUANT_ASSIGN_OR_RETURN(*result.mutable_evaluate(),
                               Evaluate(request.evaluate(), Send));
      return result;
    }
    case WorkerRequest::kBenchmark: {
      REQUANT_ASSIGN_OR_RETURN(*result.mutable_benchmark(),
                               Benchmark(request.benchmark(), Send));
      return result;
    }
    case WorkerRequest::kCalibrate: {
      REQUANT_ASSIGN_OR_RETURN(*result.mutable_calibrate(),
                               Calibrate(request.calibrate(), Send));
      return result;
    }
    case WorkerRequest::kQuantize: {
      REQUANT_ASSIGN_OR_RETURN(*result.mutable_quantize(),
                               Quantize(request.quantize(), Send));
      return result;
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
  absl::StatusOr<JobResult> result = DoJob(request);
  WorkerEvent last;
  if (result.ok()) {
    *last.mutable_result() = *std::move(result);
  } else {
    const absl::Status& status = result.status();
    last.mutable_failure()->set_code(static_cast<int>(status.code()));
    last.mutable_failure()->set_message(std::string(status.message()));
  }
  Send(last);
  return 0;
}

}  // namespace
}  // namespace requant

int main() {
  requant::GuardTerminal();
  const int exit_code = requant::Work();
  std::fflush(nullptr);
  // Destructors do not run: TensorFlow's library has nothing left to do.
  std::_Exit(exit_code);
}
