#include "runtime/evaluation/evaluation_report.h"

#include <limits>

#include "absl/strings/str_split.h"
#include "base/testing/testing.h"
#include "google/protobuf/text_format.h"
#include "runtime/datasets/dataset.pb.h"

namespace requant::evaluation_report_test {
namespace {

const EvaluationNames kNames = {"int8.pb", "eval.textproto", "fp32.pb"};

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// Returns one of the two published runs of the recipe, with the duration that
// its throughput implies.
EvaluateResult PublishedRun(double seconds, int64_t correct) {
  auto result = FromText<EvaluateResult>(R"(
    batch_size: 512
    timing { records: 2000000 batches: 3907 warm_up_batches: 100
             timed_records: 1948800 }
    scores { records: 2000000 })");
  result.mutable_timing()->set_timed_seconds(seconds);
  result.mutable_scores()->set_correct(correct);
  result.mutable_scores()->set_accuracy(static_cast<double>(correct) / 2000000);
  return result;
}

Comparison SmallComparison() {
  return FromText<Comparison>(R"(
    records: 200000
    accuracy { baseline_correct: 151924 candidate_correct: 151892
               only_baseline_correct: 62 only_candidate_correct: 30
               points: -0.016 interval { low: -0.0254 high: -0.0066 } }
    agreement { records: 199908 share: 0.99954
                interval { low: 0.99944 high: 0.99962 } }
    output_change { mean: 0.0049 interval { low: 0.0048 high: 0.005 }
                    max: 0.0234 max_record: 1234 }
    class_1_change { mean: 0.0049 interval { low: 0.0048 high: 0.005 }
                     max: 0.0234 max_record: 1234 })");
}

std::string PublishedTail(const std::string& figures) {
  const std::string dashes(50, '-');
  return absl::StrCat(dashes,
                      "\nTotal test records           :  2000000\n"
                      "Batch size is                :  512\n"
                      "Number of batches            :  3907\n",
                      figures, dashes, "\n");
}

// The second one's duration shows that trailing zeros are not written.
TEST(LogTail, IsThatOfThePublishedRuns) {
  EXPECT_EQ(LogTail(PublishedRun(1948800 / 314943.875, 1550447)),
            PublishedTail("Throughput is (records/sec)  :  314943.875\n"
                          "Inference duration (seconds) :  6.1878\n"
                          "Latency (millisecond/batch)  :  1.625686\n"
                          "Classification accuracy (%)  :  77.5223\n"
                          "No of correct predicitons    :  1550447\n"));
  EXPECT_EQ(LogTail(PublishedRun(1948800 / 489653.313, 1549632)),
            PublishedTail("Throughput is (records/sec)  :  489653.313\n"
                          "Inference duration (seconds) :  3.98\n"
                          "Latency (millisecond/batch)  :  1.045638\n"
                          "Classification accuracy (%)  :  77.4816\n"
                          "No of correct predicitons    :  1549632\n"));
}

TEST(LogTail, KeepsOneDecimal) {
  EXPECT_THAT(LogTail(PublishedRun(2, 2000000)),
              HasSubstr("(records/sec)  :  974400.0\n"
                        "Inference duration (seconds) :  2.0\n"
                        "Latency (millisecond/batch)  :  0.525452\n"
                        "Classification accuracy (%)  :  100.0\n"));
  // In this result nothing was timed.
  EXPECT_THAT(LogTail(EvaluateResult()),
              HasSubstr("(records/sec)  :  0.0\n"
                        "Inference duration (seconds) :  0.0\n"
                        "Latency (millisecond/batch)  :  0.0\n---"));
}

TEST(LogTail, HasTheMeanLatencyWhenNoFullBatchWasTimed) {
  EXPECT_THAT(LogTail(FromText<EvaluateResult>(R"(
                batch_size: 512
                timing { batches: 3 warm_up_batches: 1 timed_records: 8
                         timed_seconds: 0.5 })")),
              HasSubstr("Latency (millisecond/batch)  :  250.0\n"));
}

TEST(JudgeGate, HasNoVerdictWithoutAnAccuracy) {
  EXPECT_EQ(JudgeGate(Comparison(), 1), std::nullopt);
  EXPECT_EQ(JudgeGate(SmallComparison(), 1), Verdict::kPass);
  EXPECT_EQ(JudgeGate(SmallComparison(), 0.001), Verdict::kFail);
}

TEST(FurtherMetrics, HasALineForEachThatIsKnown) {
  const std::pair<std::string, std::string> cases[] = {
      {"prediction_kind: SCORES", ""},
      {"prediction_kind: SCORES guessed_kind: true",
       "predictions read as SCORES (a guess: the dataset declares no kind)\n"},
      {"prediction_kind: SCORES guessed_kind: true comparison {}", ""},
      {"scores { correct: 1 accuracy: 0.5 }", ""},
      {"scores { auc: 0.8125 auc_error: 1e-7 log_loss: 0.4567 }",
       "AUC 0.812500\nlog loss 0.456700\n"},
      {"scores { auc: 0.8125 auc_error: 2e-6 }",
       "AUC 0.812500 (within 2e-06)\n"},
      // The log loss is ln 2.
      {"scores { log_loss: 0.6931471805599453 records: 128 } positions: 64",
       "log loss 0.693147\nperplexity 2.0000 over 128 positions\n"},
      {"bad_records: 1",
       "warning: 1 record could not be read and was left out\n"},
      {"bad_records: 3 lost_rests: 2",
       "warning: 3 records could not be read and were left out\n"
       "warning: the rest of 2 files behind such a record was not read\n"},
      {"scores { nan_records: 3 infinite_records: 1 } "
       "baseline_scores { improbable_records: 2 }",
       "warning: the graph predicts NaN for 3 records; they count as wrong\n"
       "warning: the graph predicts infinite values for 1 record\n"
       "warning: the baseline predicts values outside 0 ... 1 for 2 records, "
       "which are no probabilities: there is no log loss; if they are scores, "
       "declare them as SCORES\n"}};
  for (const auto& [result, text] : cases) {
    EXPECT_EQ(FurtherMetrics(FromText<EvaluateResult>(result)), text);
  }
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
            "(record 1234, counted from 0)\n");
}

TEST(ComparisonText, HasALineForEachThatIsKnown) {
  const std::pair<std::string, std::string> cases[] = {
      {"timing { timed_records: 1948800 timed_seconds: 2 } comparison {} "
       "baseline_timing { timed_records: 500000 timed_seconds: 1 }",
       "  throughput 974400 records/s, the baseline's 500000\n"},
      {"prediction_kind: VALUE guessed_kind: true comparison {}",
       "  predictions read as VALUE (a guess: the dataset declares no kind)\n"},
      // 100 % is shown only for full agreement.
      {"comparison { agreement { records: 199999 share: 0.999996 "
       "interval { low: 0.99996 high: 1 } } }",
       "  agreement 99.9996 % (95 %: 99.996 % to 100.00 %)\n"},
      {"comparison { lost_values: 2 "
       "candidate_non_finite { nan: 2 first_record: 7 } }",
       "  warning: 2 values finite in the baseline but NaN or infinite now; "
       "see record 7, counted from 0\n"}};
  for (const auto& [result, text] : cases) {
    EXPECT_EQ(ComparisonText(FromText<EvaluateResult>(result), {"a", "", "b"}),
              absl::StrCat("a against b, 0 records:\n", text));
  }
}

TEST(EvaluationJson, HasEverything) {
  EvaluateResult result = PublishedRun(2, 1500000);
  result.MergeFrom(FromText<EvaluateResult>(R"(
    scores { auc: 0.8125 log_loss: 0.5 } lost_rests: 1
    prediction_kind: PROBABILITIES unmatched_layer: "gone"
    baseline_timing { timed_records: 487200 timed_seconds: 1 })"));
  *result.mutable_comparison() = SmallComparison();
  EXPECT_EQ(
      EvaluationJson(result, kNames, 0.5),
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
  EXPECT_THAT(
      EvaluationJson(EvaluateResult(), {}, -1),
      HasSubstr(
          R"("metrics": null, "baseline": null, "baseline_metrics": null, )"
          R"("baseline_records_per_second": null, "comparison": null, )"
          R"("accuracy_gate": null, "layers": [], "unmatched_layers": []})"));
  EXPECT_THAT(
      EvaluationJson(
          FromText<EvaluateResult>("scores { rmse: nan correct: 0 }"), {}, -1),
      HasSubstr(R"("correct": 0, "accuracy": null, "auc": null, )"
                R"("auc_max_error": null, "log_loss": null, "rmse": null)"));
}

ComparedLayer Layer(const std::string& name, double signal_to_noise) {
  auto layer = FromText<ComparedLayer>(R"(
    quantized: true records: 8192 step: 0.5 rms_error: 0.25
    worst_channel_shift: -0.125 clipped_share: 0.001)");
  layer.set_name(name);
  layer.set_signal_to_noise(signal_to_noise);
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

}  // namespace
}  // namespace requant::evaluation_report_test
