#ifndef REQUANT_RUNTIME_EVALUATION_EVALUATION_REPORT_H_
#define REQUANT_RUNTIME_EVALUATION_EVALUATION_REPORT_H_

// What `requant evaluate` prints.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session/worker.pb.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {

// What --max_accuracy_drop asks for, and the answer.
struct AccuracyGate {
  // In points.
  double max_drop = 0;
  // Unset when there is no accuracy to judge: without labels or classes.
  std::optional<Verdict> verdict;
};

AccuracyGate JudgeGate(const std::optional<Comparison>& comparison,
                       double max_drop);

struct EvaluationResult {
  // As the user named them.
  std::string graph;
  std::string dataset;

  int64_t records = 0;
  // Unreadable ones, which were skipped and are not among `records`.
  int64_t bad_records = 0;
  // Those of them behind which the rest of their file was not read.
  int64_t lost_rests = 0;
  int64_t batch_size = 0;
  int64_t batches = 0;
  // Of each record, if they were scored by themselves; metrics and comparison
  // count them as records. 0: records were scored as a whole.
  int64_t positions = 0;

  // From BatchTimer: what came after the warm-up.
  int64_t warm_up_batches = 0;
  int64_t timed_records = 0;
  double timed_seconds = 0;

  // How the predictions were read, as datasets declare it ("SCORES"); empty
  // when not known.
  std::string prediction_kind;
  // The dataset did not say, so the first batch's values decided.
  bool guessed_kind = false;

  // Unset when the data have no labels.
  std::optional<Metrics> metrics;

  // With a baseline: its name, its metrics, and the graph against it.
  std::string baseline;
  std::optional<Metrics> baseline_metrics;
  std::optional<Comparison> comparison;
  // In records per second.
  std::optional<double> baseline_throughput;
  std::optional<AccuracyGate> gate;
  // The baseline's layers against the graph's, if that was asked for, and those
  // that the graph does not have.
  std::vector<LayerMessage> layers;
  std::vector<std::string> unmatched_layers;

  // Records per second; 0 when nothing was timed.
  double throughput() const;
  // Milliseconds per full batch at that throughput, as the published recipe has
  // it, or, when no full batch was timed, the mean of those that were.
  double latency() const;
};

// The end of the published recipe's log, line for line as scripts parse it:
// numbers are rounded to so many decimals and written without trailing zeros
// ("3.98"), as the original has them. The two lines on accuracy are left out
// when there is none.
std::string LogTail(const EvaluationResult& result);

// What the log tail has no lines for: AUC, log loss, perplexity (of predictions
// at each position), RMSE, how the predictions were read if that was guessed,
// and, if there are any, bad records and NaN or infinite predictions. One line
// each, ending in a newline; empty if there is nothing to say.
std::string FurtherMetrics(const EvaluationResult& result);

// A few lines on the graph against its baseline; empty without one.
std::string ComparisonText(const EvaluationResult& result);

// Everything, as one JSON object and a newline. What is not known, and numbers
// that JSON cannot hold, are null.
std::string EvaluationJson(const EvaluationResult& result);

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_EVALUATION_REPORT_H_
