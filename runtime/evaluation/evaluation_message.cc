#include "runtime/evaluation/evaluation_message.h"

#include <optional>

#include "runtime/datasets/dataset.pb.h"
#include "runtime/evaluation/evaluation_report.h"
#include "runtime/session/worker.pb.h"
#include "runtime/statistics/batch_timer.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {
namespace {

IntervalMessage ToMessage(const Interval& interval) {
  IntervalMessage message;
  message.set_low(interval.low);
  message.set_high(interval.high);
  return message;
}

Interval FromMessage(const IntervalMessage& message) {
  return {message.low(), message.high()};
}

OutputChangeMessage ToMessage(const OutputChange& change) {
  OutputChangeMessage message;
  message.set_mean(change.mean);
  if (change.interval.has_value()) {
    *message.mutable_interval() = ToMessage(*change.interval);
  }
  message.set_max(change.max);
  message.set_max_record(change.max_record);
  return message;
}

OutputChange FromMessage(const OutputChangeMessage& message) {
  OutputChange change;
  change.mean = message.mean();
  if (message.has_interval()) change.interval = FromMessage(message.interval());
  change.max = message.max();
  change.max_record = message.max_record();
  return change;
}

NonFiniteMessage ToMessage(const NonFiniteValues& values) {
  NonFiniteMessage message;
  message.set_nan(values.nan);
  message.set_infinite(values.infinite);
  if (values.first_record.has_value()) {
    message.set_first_record(*values.first_record);
  }
  return message;
}

NonFiniteValues FromMessage(const NonFiniteMessage& message) {
  NonFiniteValues values;
  values.nan = message.nan();
  values.infinite = message.infinite();
  if (message.has_first_record()) values.first_record = message.first_record();
  return values;
}

AccuracyDifferenceMessage ToMessage(const AccuracyDifference& difference) {
  AccuracyDifferenceMessage message;
  message.set_baseline_correct(difference.baseline_correct);
  message.set_candidate_correct(difference.candidate_correct);
  message.set_only_baseline_correct(difference.only_baseline_correct);
  message.set_only_candidate_correct(difference.only_candidate_correct);
  message.set_points(difference.points);
  *message.mutable_interval() = ToMessage(difference.interval);
  return message;
}

AccuracyDifference FromMessage(const AccuracyDifferenceMessage& message) {
  AccuracyDifference difference;
  difference.baseline_correct = message.baseline_correct();
  difference.candidate_correct = message.candidate_correct();
  difference.only_baseline_correct = message.only_baseline_correct();
  difference.only_candidate_correct = message.only_candidate_correct();
  difference.points = message.points();
  difference.interval = FromMessage(message.interval());
  return difference;
}

AgreementMessage ToMessage(const Agreement& agreement) {
  AgreementMessage message;
  message.set_records(agreement.records);
  message.set_share(agreement.share);
  *message.mutable_interval() = ToMessage(agreement.interval);
  return message;
}

Agreement FromMessage(const AgreementMessage& message) {
  Agreement agreement;
  agreement.records = message.records();
  agreement.share = message.share();
  agreement.interval = FromMessage(message.interval());
  return agreement;
}

}  // namespace

Scores ToMessage(const Metrics& metrics) {
  Scores message;
  message.set_records(metrics.records);
  if (metrics.correct.has_value()) message.set_correct(*metrics.correct);
  if (metrics.accuracy.has_value()) message.set_accuracy(*metrics.accuracy);
  if (metrics.auc.has_value()) {
    message.set_auc(metrics.auc->value);
    message.set_auc_error(metrics.auc->max_error);
  }
  if (metrics.log_loss.has_value()) message.set_log_loss(*metrics.log_loss);
  if (metrics.rmse.has_value()) message.set_rmse(*metrics.rmse);
  message.set_nan_records(metrics.nan_records);
  message.set_infinite_records(metrics.infinite_records);
  message.set_improbable_records(metrics.improbable_records);
  return message;
}

Metrics FromMessage(const Scores& message) {
  Metrics metrics;
  metrics.records = message.records();
  if (message.has_correct()) metrics.correct = message.correct();
  if (message.has_accuracy()) metrics.accuracy = message.accuracy();
  if (message.has_auc()) {
    metrics.auc = Auc{message.auc(), message.auc_error()};
  }
  if (message.has_log_loss()) metrics.log_loss = message.log_loss();
  if (message.has_rmse()) metrics.rmse = message.rmse();
  metrics.nan_records = message.nan_records();
  metrics.infinite_records = message.infinite_records();
  metrics.improbable_records = message.improbable_records();
  return metrics;
}

Timing ToMessage(const BatchTimer& timer) {
  const BatchTimer::Timed timed = timer.Result();
  Timing message;
  message.set_batches(timer.batches());
  message.set_records(timer.records());
  message.set_warm_up_batches(timed.warm_up_batches);
  message.set_timed_records(timed.records);
  message.set_timed_seconds(timed.seconds);
  return message;
}

ComparisonMessage ToMessage(const Comparison& comparison) {
  ComparisonMessage message;
  message.set_records(comparison.records);
  if (comparison.accuracy.has_value()) {
    *message.mutable_accuracy() = ToMessage(*comparison.accuracy);
  }
  if (comparison.agreement.has_value()) {
    *message.mutable_agreement() = ToMessage(*comparison.agreement);
  }
  if (comparison.output_change.has_value()) {
    *message.mutable_output_change() = ToMessage(*comparison.output_change);
  }
  if (comparison.squared_change.has_value()) {
    *message.mutable_squared_change() = ToMessage(*comparison.squared_change);
  }
  if (comparison.class_1_change.has_value()) {
    *message.mutable_class_1_change() = ToMessage(*comparison.class_1_change);
  }
  *message.mutable_baseline_non_finite() =
      ToMessage(comparison.baseline_non_finite);
  *message.mutable_candidate_non_finite() =
      ToMessage(comparison.candidate_non_finite);
  message.set_lost_values(comparison.lost_values);
  return message;
}

Comparison FromMessage(const ComparisonMessage& message) {
  Comparison comparison;
  comparison.records = message.records();
  if (message.has_accuracy()) {
    comparison.accuracy = FromMessage(message.accuracy());
  }
  if (message.has_agreement()) {
    comparison.agreement = FromMessage(message.agreement());
  }
  if (message.has_output_change()) {
    comparison.output_change = FromMessage(message.output_change());
  }
  if (message.has_squared_change()) {
    comparison.squared_change = FromMessage(message.squared_change());
  }
  if (message.has_class_1_change()) {
    comparison.class_1_change = FromMessage(message.class_1_change());
  }
  comparison.baseline_non_finite = FromMessage(message.baseline_non_finite());
  comparison.candidate_non_finite = FromMessage(message.candidate_non_finite());
  comparison.lost_values = message.lost_values();
  return comparison;
}

EvaluationResult FromMessage(const EvaluateResult& message) {
  EvaluationResult result;
  result.records = message.timing().records();
  result.bad_records = message.bad_records();
  result.lost_rests = message.lost_rests();
  result.batch_size = message.batch_size();
  result.positions = message.positions();
  if (message.prediction_kind() != PredictionSpec::KIND_AUTO) {
    result.prediction_kind =
        PredictionSpec::Kind_Name(message.prediction_kind());
  }
  result.guessed_kind = message.guessed_kind();
  result.batches = message.timing().batches();
  result.warm_up_batches = message.timing().warm_up_batches();
  result.timed_records = message.timing().timed_records();
  result.timed_seconds = message.timing().timed_seconds();
  if (message.has_scores()) result.metrics = FromMessage(message.scores());
  if (message.has_baseline_scores()) {
    result.baseline_metrics = FromMessage(message.baseline_scores());
  }
  if (message.has_baseline_timing() &&
      message.baseline_timing().timed_seconds() > 0) {
    result.baseline_throughput =
        static_cast<double>(message.baseline_timing().timed_records()) /
        message.baseline_timing().timed_seconds();
  }
  if (message.has_comparison()) {
    result.comparison = FromMessage(message.comparison());
  }
  result.layers.assign(message.layer().begin(), message.layer().end());
  result.unmatched_layers.assign(message.unmatched_layer().begin(),
                                 message.unmatched_layer().end());
  return result;
}

}  // namespace requant
