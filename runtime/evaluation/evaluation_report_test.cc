#include "runtime/evaluation/evaluation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/message/message_json.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant::evaluation_report_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const EvaluationNames kNames = {"int8.pb", "eval.textproto", "fp32.pb"};

// Returns one of the two published runs of the recipe, with the duration that
// its throughput stands for.
EvaluateResult PublishedRun(double seconds, int64_t correct) {
  EvaluateResult result;
  result.set_batch_size(512);
  Timing& timing = *result.mutable_timing();
  timing.set_records(2000000);
  timing.set_batches(3907);
  timing.set_warm_up_batches(100);
  timing.set_timed_records(2000000 - 100 * 512);
  timing.set_timed_seconds(seconds);
  Scores& scores = *result.mutable_scores();
  scores.set_records(2000000);
  scores.set_correct(correct);
  scores.set_accuracy(static_cast<double>(correct) / 2000000);
  return result;
}

Agreement MakeAgreement(int64_t records, double share,
                        const Interval& interval) {
  Agreement agreement;
  agreement.set_records(records);
  agreement.set_share(share);
  *agreement.mutable_interval() = interval;
  return agreement;
}

Comparison SmallComparison() {
  Comparison comparison;
  comparison.set_records(200000);
  AccuracyDifference& accuracy = *comparison.mutable_accuracy();
  accuracy.set_baseline_correct(151924);
  accuracy.set_candidate_correct(151892);
  accuracy.set_only_baseline_correct(62);
  accuracy.set_only_candidate_correct(30);
  accuracy.set_points(-0.016);
  *accuracy.mutable_interval() = MakeInterval(-0.0254, -0.0066);
  *comparison.mutable_agreement() =
      MakeAgreement(199908, 0.99954, MakeInterval(0.99944, 0.99962));
  OutputChange& change = *comparison.mutable_output_change();
  change.set_mean(0.0049);
  *change.mutable_interval() = MakeInterval(0.0048, 0.005);
  change.set_max(0.0234);
  change.set_max_record(1234);
  *comparison.mutable_class_1_change() = change;
  return comparison;
}

TEST(LogTail, IsThatOfThePublishedFloatRun) {
  EXPECT_EQ(LogTail(PublishedRun(1948800 / 314943.875, 1550447)),
            "--------------------------------------------------\n"
            "Total test records           :  2000000\n"
            "Batch size is                :  512\n"
            "Number of batches            :  3907\n"
            "Throughput is (records/sec)  :  314943.875\n"
            "Inference duration (seconds) :  6.1878\n"
            "Latency (millisecond/batch)  :  1.625686\n"
            "Classification accuracy (%)  :  77.5223\n"
            "No of correct predicitons    :  1550447\n"
            "--------------------------------------------------\n");
}

// Its duration shows that trailing zeros are not written.
TEST(LogTail, IsThatOfThePublishedInt8Run) {
  EXPECT_EQ(LogTail(PublishedRun(1948800 / 489653.313, 1549632)),
            "--------------------------------------------------\n"
            "Total test records           :  2000000\n"
            "Batch size is                :  512\n"
            "Number of batches            :  3907\n"
            "Throughput is (records/sec)  :  489653.313\n"
            "Inference duration (seconds) :  3.98\n"
            "Latency (millisecond/batch)  :  1.045638\n"
            "Classification accuracy (%)  :  77.4816\n"
            "No of correct predicitons    :  1549632\n"
            "--------------------------------------------------\n");
}

TEST(LogTail, KeepsOneDecimal) {
  EXPECT_TRUE(absl::StrContains(LogTail(PublishedRun(2, 2000000)),
                                "(records/sec)  :  974400.0\n"
                                "Inference duration (seconds) :  2.0\n"
                                "Latency (millisecond/batch)  :  0.525452\n"
                                "Classification accuracy (%)  :  100.0\n"));
}

TEST(LogTail, HasZerosWhenNothingWasTimed) {
  EvaluateResult result;
  EXPECT_TRUE(absl::StrContains(LogTail(result),
                                "(records/sec)  :  0.0\n"
                                "Inference duration (seconds) :  0.0\n"
                                "Latency (millisecond/batch)  :  0.0\n---"));
}

TEST(Latency, IsTheMeanWhenNoFullBatchWasTimed) {
  EvaluateResult result;
  result.set_batch_size(512);
  result.mutable_timing()->set_batches(3);
  result.mutable_timing()->set_warm_up_batches(1);
  result.mutable_timing()->set_timed_records(8);
  result.mutable_timing()->set_timed_seconds(0.5);
  EXPECT_EQ(Latency(result), 250);
}

TEST(JudgeGate, HasNoVerdictWithoutAnAccuracy) {
  EXPECT_EQ(JudgeGate(Comparison(), 1).verdict, std::nullopt);
  EXPECT_EQ(JudgeGate(SmallComparison(), 1).verdict, Verdict::kPass);
  EXPECT_EQ(JudgeGate(SmallComparison(), 0.001).verdict, Verdict::kFail);
}

TEST(FurtherMetrics, TellsAKindThatWasGuessed) {
  EvaluateResult result;
  result.set_prediction_kind(PredictionSpec::SCORES);
  EXPECT_EQ(FurtherMetrics(result), "");
  result.set_guessed_kind(true);
  EXPECT_EQ(FurtherMetrics(result),
            "predictions read as SCORES (a guess: the dataset declares no "
            "kind)\n");
}

TEST(FurtherMetrics, TellsOfFilesWhoseRestWasNotRead) {
  EvaluateResult result;
  result.set_bad_records(3);
  result.set_lost_rests(2);
  EXPECT_EQ(FurtherMetrics(result),
            "warning: 3 records could not be read and were left out\n"
            "warning: the rest of 2 files behind such a record was not read\n");
}

TEST(FurtherMetrics, HasALineForEachThatIsKnown) {
  EvaluateResult result = PublishedRun(2, 1);
  EXPECT_EQ(FurtherMetrics(result), "");
  result.mutable_scores()->set_auc(0.8125);
  result.mutable_scores()->set_auc_error(1e-7);
  result.mutable_scores()->set_log_loss(0.4567);
  EXPECT_EQ(FurtherMetrics(result), "AUC 0.812500\nlog loss 0.456700\n");
  result.mutable_scores()->set_auc_error(2e-6);
  result.mutable_scores()->clear_log_loss();
  EXPECT_EQ(FurtherMetrics(result), "AUC 0.812500 (within 2e-06)\n");
}

TEST(FurtherMetrics, HasThePerplexityOfPositions) {
  EvaluateResult result = PublishedRun(2, 1);
  result.mutable_scores()->set_log_loss(std::log(2.0));
  result.mutable_scores()->set_records(128);
  result.set_positions(64);
  EXPECT_EQ(FurtherMetrics(result),
            "log loss 0.693147\nperplexity 2.0000 over 128 positions\n");
}

TEST(FurtherMetrics, WarnsOfWhatIsWrong) {
  EvaluateResult result = PublishedRun(2, 1);
  result.set_bad_records(1);
  result.mutable_scores()->set_nan_records(3);
  result.mutable_scores()->set_infinite_records(1);
  result.mutable_baseline_scores()->set_improbable_records(2);
  EXPECT_EQ(FurtherMetrics(result),
            "warning: the graph predicts NaN for 3 records; they count as "
            "wrong\n"
            "warning: the graph predicts infinite values for 1 record\n"
            "warning: the baseline predicts values outside 0 ... 1 for 2 "
            "records, which are no probabilities: there is no log loss; if "
            "they are scores, declare them as SCORES\n"
            "warning: 1 record could not be read and was left out\n");
}

TEST(ComparisonText, IsEmptyWithoutABaseline) {
  EXPECT_EQ(ComparisonText(PublishedRun(2, 1), kNames), "");
}

TEST(ComparisonText, SaysWhatChangedAndHowSureThatIs) {
  EvaluateResult result = PublishedRun(2, 1);
  *result.mutable_comparison() = SmallComparison();
  EXPECT_EQ(ComparisonText(result, kNames),
            "int8.pb against fp32.pb, 200000 records:\n"
            "  accuracy -0.016 points (95 %: -0.025 to -0.007): gains 30, "
            "loses 62\n"
            "  agreement 99.95 % (95 %: 99.94 % to 99.96 %)\n"
            "  probability of class 1: mean |change| 0.0049, largest 0.0234 "
            "(record 1234)\n");
}

TEST(ComparisonText, HasBothThroughputs) {
  EvaluateResult result = PublishedRun(2, 1);
  result.mutable_comparison();
  result.mutable_baseline_timing()->set_timed_records(500000);
  result.mutable_baseline_timing()->set_timed_seconds(1);
  EXPECT_TRUE(absl::StrContains(
      ComparisonText(result, kNames),
      "  throughput 974400 records/s, the baseline's 500000\n"))
      << ComparisonText(result, kNames);
}

TEST(ComparisonText, ShowsFullAgreementOnlyWhenItIs) {
  EvaluateResult result;
  *result.mutable_comparison()->mutable_agreement() =
      MakeAgreement(199999, 0.999996, MakeInterval(0.99996, 1));
  EXPECT_TRUE(
      absl::StrContains(ComparisonText(result, kNames),
                        "agreement 99.9996 % (95 %: 99.996 % to 100.00 %)"))
      << ComparisonText(result, kNames);
}

TEST(ComparisonText, WarnsOfLostValues) {
  EvaluateResult result;
  Comparison& comparison = *result.mutable_comparison();
  comparison.set_lost_values(2);
  comparison.mutable_candidate_non_finite()->set_nan(2);
  comparison.mutable_candidate_non_finite()->set_first_record(7);
  EXPECT_EQ(ComparisonText(result, {"a", "", "b"}),
            "a against b, 0 records:\n"
            "  warning: 2 values finite in the baseline but NaN or infinite "
            "now; see record 7\n");
}

TEST(EvaluationJson, HasEverything) {
  EvaluateResult result = PublishedRun(2, 1500000);
  result.mutable_scores()->set_auc(0.8125);
  result.mutable_scores()->set_log_loss(0.5);
  *result.mutable_comparison() = SmallComparison();
  result.set_lost_rests(1);
  result.set_prediction_kind(PredictionSpec::PROBABILITIES);
  result.mutable_baseline_timing()->set_timed_records(487200);
  result.mutable_baseline_timing()->set_timed_seconds(1);
  result.add_unmatched_layer("gone");
  EXPECT_EQ(
      EvaluationJson(result, kNames, JudgeGate(result.comparison(), 0.5)),
      R"({"graph": "int8.pb", "dataset": "eval.textproto", )"
      R"("records": 2000000, "positions_per_record": null, )"
      R"("bad_records": 0, "lost_rests": 1, )"
      R"("batch_size": 512, )"
      R"("batches": 3907, "warm_up_batches": 100, )"
      R"("timed_records": 1948800, "timed_seconds": 2, )"
      R"("records_per_second": 974400, )"
      R"("milliseconds_per_batch": 0.5254515599343186, )"
      R"("prediction_kind": "PROBABILITIES", "metrics": {)"
      R"("records": 2000000, "correct": 1500000, "accuracy": 0.75, )"
      R"("auc": 0.8125, "auc_max_error": 0, "log_loss": 0.5, "rmse": null, )"
      R"("nan_records": 0, "infinite_records": 0, "improbable_records": 0}, )"
      R"("baseline": "fp32.pb", "baseline_metrics": null, )"
      R"("baseline_records_per_second": 487200, "comparison": {)"
      R"("records": 200000, "accuracy": {"difference_points": -0.016, )"
      R"("interval_95": [-0.0254, -0.0066], "baseline_correct": 151924, )"
      R"("candidate_correct": 151892, "only_baseline_correct": 62, )"
      R"("only_candidate_correct": 30}, "agreement": {"records": 199908, )"
      R"("share": 0.99954, "interval_95": [0.99944, 0.99962]}, )"
      R"("output_change": {"mean": 0.0049, "interval_95": [0.0048, 0.005], )"
      R"("max": 0.0234, "max_record": 1234}, "squared_change": null, )"
      R"("class_1_change": {"mean": 0.0049, "interval_95": [0.0048, 0.005], )"
      R"("max": 0.0234, "max_record": 1234}, )"
      R"("baseline_non_finite": {"nan": 0, "infinite": 0, )"
      R"("first_record": null}, "candidate_non_finite": {"nan": 0, )"
      R"("infinite": 0, "first_record": null}, "lost_values": 0}, )"
      R"("accuracy_gate": {"max_drop_points": 0.5, "verdict": "PASS"}, )"
      R"("layers": [], "unmatched_layers": ["gone"]})"
      "\n");
}

TEST(EvaluationJson, IsNullWhereNothingIsKnown) {
  EvaluateResult result;
  EXPECT_TRUE(absl::StrContains(
      EvaluationJson(result, {}, std::nullopt),
      R"("metrics": null, "baseline": null, "baseline_metrics": null, )"
      R"("baseline_records_per_second": null, "comparison": null, )"
      R"("accuracy_gate": null, "layers": [], "unmatched_layers": []})"));
  result.mutable_scores()->set_rmse(NAN);
  result.mutable_scores()->set_correct(0);
  const std::string json = EvaluationJson(result, {}, std::nullopt);
  EXPECT_TRUE(absl::StrContains(json, R"("rmse": null)"));
  EXPECT_TRUE(
      absl::StrContains(json, R"("correct": 0, "accuracy": null, "auc": null, )"
                              R"("auc_max_error": null, "log_loss": null)"));
}

ComparedLayer Layer(const std::string& name, double signal_to_noise) {
  ComparedLayer layer;
  layer.set_name(name);
  layer.set_quantized(true);
  layer.set_records(8192);
  layer.set_step(0.5);
  layer.set_rms_error(0.25);
  layer.set_worst_channel_shift(-0.125);
  layer.set_signal_to_noise(signal_to_noise);
  layer.set_clipped_share(0.001);
  return layer;
}

EvaluateResult ResultOf(const std::vector<ComparedLayer>& layers) {
  EvaluateResult result;
  for (const ComparedLayer& layer : layers) *result.add_layer() = layer;
  return result;
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST(LayersText, HasTheNoisiestLayerFirst) {
  const std::vector<std::string> lines =
      Lines(LayersText(ResultOf({Layer("quiet", 40), Layer("loud", 12.34)})));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "layers on 8192 records, the noisiest first:");
  EXPECT_EQ(lines[1],
            "  layer  kind        step   error/step   shift/step  SNR dB    "
            "clipped");
  EXPECT_EQ(lines[2],
            "  loud   8 bit        0.5        0.500       -0.250    12.3    "
            "0.100 %");
  EXPECT_THAT(lines[3], StartsWith("  quiet"));
}

TEST(LayersText, ShowsNoStepsOfALayerThatIsAlwaysTheSame) {
  ComparedLayer layer = Layer("dead", std::numeric_limits<double>::infinity());
  layer.set_step(0);
  EXPECT_THAT(LayersText(ResultOf({layer})),
              HasSubstr("-            -     inf"));
}

TEST(LayersText, NamesLayersWithoutACounterpart) {
  EvaluateResult result;
  EXPECT_EQ(LayersText(result), "");
  result.add_unmatched_layer("gone");
  EXPECT_EQ(LayersText(result), "  gone has no counterpart in the graph\n");
}

TEST(ComparedLayer, HasAllFiguresInJson) {
  ComparedLayer layer = Layer("m", std::numeric_limits<double>::infinity());
  layer.mutable_range()->set_high(127.5);
  const std::string json = MessageJson(layer);
  EXPECT_THAT(json, StartsWith("{\"name\": \"m\""));
  EXPECT_THAT(json, HasSubstr("\"range\": [0, 127.5]"));
  EXPECT_THAT(json, HasSubstr("\"signal_to_noise_db\": null"));
  EXPECT_THAT(json, EndsWith("\"worst_channel_shift\": -0.125}"));
  EXPECT_THAT(MessageJson(Layer("n", 3)), HasSubstr("\"range\": null"));
}

}  // namespace
}  // namespace requant::evaluation_report_test
