#ifndef REQUANT_RUNTIME_EVALUATION_EVALUATE_H_
#define REQUANT_RUNTIME_EVALUATION_EVALUATE_H_

// Evaluates a graph on a dataset.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/evaluation.pb.h"
#include "runtime/session/job.pb.h"

namespace requant {

struct EvaluateOptions {
  ModelSpec model;
  // The graph that is run on the same records for comparison.
  std::optional<ModelSpec> baseline;
  DatasetSpec dataset;
  SessionSpec session;
  int64_t batch_size = 0;
  // This many of the first records are left out.
  int64_t skip_records = 0;
  // 0 means all.
  int64_t max_records = 0;
  int64_t max_bad_records = 0;
  // The number of batches that run concurrently.
  int streams = 1;
  // A file of predictions for the same records to compare with; `baseline` then
  // runs only for its layers.
  std::string baseline_predictions;
  // The number of records, from the first on, on which the baseline's layers
  // are compared with the model's; 0 means none.
  int64_t layer_records = 0;
};

// Runs every batch through the model, and through the baseline if one is to
// run, and scores the predictions. Reports activities, progress and warnings
// (base/program/isolation.h). Unless `predictions` is null, sets it to the
// content of a file of the model's predictions
// (runtime/evaluation/predictions.h).
absl::StatusOr<EvaluateResult> Evaluate(const EvaluateOptions& options,
                                        std::string* predictions);

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_EVALUATE_H_
