#ifndef REQUANT_RUNTIME_EVALUATION_EVALUATION_MESSAGE_H_
#define REQUANT_RUNTIME_EVALUATION_EVALUATION_MESSAGE_H_

// The figures of an evaluation as a worker sends them, and back again.

#include "runtime/evaluation/evaluation_report.h"
#include "runtime/session/worker.pb.h"
#include "runtime/statistics/batch_timer.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {

Scores ToMessage(const Metrics& metrics);
Timing ToMessage(const BatchTimer& timer);
ComparisonMessage ToMessage(const Comparison& comparison);

Metrics FromMessage(const Scores& message);
Comparison FromMessage(const ComparisonMessage& message);

// Everything but the names of the graphs and the dataset.
EvaluationResult FromMessage(const EvaluateResult& message);

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_EVALUATION_MESSAGE_H_
