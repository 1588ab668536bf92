#include "runtime/evaluation/evaluation_message.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/evaluation/evaluation_report.h"
#include "runtime/session/worker.pb.h"

namespace requant::evaluation_message_test {
namespace {

// Predictions of two graphs that differ, with a NaN, so that every figure has a
// value of its own.
Comparison SomeComparison() {
  auto comparison = *PairedComparison::Create({});
  std::vector<float> baseline, candidate;
  std::vector<double> labels;
  for (int i = 0; i < 40; ++i) {
    const float p = i / 40.f, q = i % 7 == 0 ? 1 - p : p + 0.001f;
    baseline.insert(baseline.end(), {1 - p, p});
    candidate.insert(candidate.end(), {1 - q, q});
    labels.push_back(i % 3 == 0);
  }
  candidate[10] = 0.0f / 0.0f;
  EXPECT_TRUE(comparison.Add(100, baseline, candidate, labels).ok());
  return comparison.Result();
}

TEST(EvaluationMessage, CarriesEveryFigure) {
  auto metrics = *MetricAccumulator::Create({});
  ASSERT_TRUE(metrics.Add(0, {.2f, .8f, .6f, .4f, .3f, .7f}, {1, 0, 0}).ok());
  BatchTimer timer;
  for (int i = 0; i < 8; ++i) timer.Add(10, 0.25 + i);

  EvaluateResult message;
  message.set_batch_size(10);
  message.set_bad_records(3);
  message.set_lost_rests(2);
  message.set_prediction_kind(PredictionSpec::SCORES);
  *message.mutable_baseline_timing() = ToMessage(timer);
  *message.mutable_scores() = ToMessage(metrics.Result());
  *message.mutable_baseline_scores() = ToMessage(metrics.Result());
  *message.mutable_timing() = ToMessage(timer);
  *message.mutable_comparison() = ToMessage(SomeComparison());
  const EvaluationResult received = FromMessage(message);

  EvaluationResult direct;
  direct.records = 80;
  direct.bad_records = 3;
  direct.lost_rests = 2;
  direct.prediction_kind = "SCORES";
  direct.batch_size = 10;
  direct.batches = 8;
  const BatchTimer::Timed timed = timer.Result();
  direct.warm_up_batches = timed.warm_up_batches;
  direct.timed_records = timed.records;
  direct.timed_seconds = timed.seconds;
  direct.baseline_throughput = timed.records / timed.seconds;
  direct.metrics = metrics.Result();
  direct.baseline_metrics = metrics.Result();
  direct.comparison = SomeComparison();
  // The JSON report has them all.
  EXPECT_EQ(EvaluationJson(received), EvaluationJson(direct));
}

TEST(EvaluationMessage, LeavesUnsetWhatIsUnset) {
  EvaluateResult message;
  *message.mutable_comparison() = ToMessage(Comparison());
  const EvaluationResult received = FromMessage(message);
  EXPECT_FALSE(received.metrics.has_value());
  EXPECT_FALSE(received.comparison->accuracy.has_value());
  EXPECT_FALSE(received.comparison->output_change.has_value());
  EXPECT_FALSE(received.comparison->candidate_non_finite.first_record);
}

}  // namespace
}  // namespace requant::evaluation_message_test
