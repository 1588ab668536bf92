#ifndef REQUANT_RUNTIME_EVALUATION_EVALUATE_H_
#define REQUANT_RUNTIME_EVALUATION_EVALUATE_H_

// The evaluation of a graph on a dataset, as worker processes do it.

#include <functional>

#include "absl/status/statusor.h"
#include "runtime/evaluation.pb.h"
#include "runtime/session/worker.pb.h"

namespace requant {

// Runs every batch through the model, and through the baseline if there is one
// to run, and scores the predictions. Sends activities, progress, warnings and
// predictions, from several threads.
absl::StatusOr<EvaluateResult> Evaluate(
    const EvaluateJob& job,
    const std::function<void(const WorkerEvent&)>& send);

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_EVALUATE_H_
