#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "absl/strings/strip.h"
#include "google/protobuf/text_format.h"
#include "workflows/display/run_display.h"
#include "workflows/display/run_table.h"
#include "workflows/run/run_record.pb.h"

namespace requant::run_conclusion_test {
namespace {

// Returns what stands between the table and the report's path.
std::string Sentences(const std::string& record_text) {
  RunRecord record;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(record_text, &record));
  RunConclusionOptions options;
  options.report = "out/report.html";
  options.resume = record.command();
  const std::string text = RunConclusion(record, options);
  const std::string table = RunTable(record, 0, false);
  EXPECT_EQ(text.substr(0, table.size()), table);
  constexpr std::string_view kReport = "\nreport: out/report.html\n";
  std::string_view sentences = std::string_view(text).substr(table.size());
  EXPECT_TRUE(absl::ConsumeSuffix(&sentences, kReport)) << text;
  return std::string(sentences);
}

TEST(RunConclusion, TellsOnlyOfAResultHowToServeIt) {
  RunConclusionOptions options;
  options.serving = "Set X=1.";
  RunRecord record;
  record.set_outcome(RunRecord::PASSED);
  EXPECT_NE(RunConclusion(record, options).find("\nSet X=1.\n"),
            std::string::npos);
  record.set_outcome(RunRecord::GATE_FAILED);
  EXPECT_EQ(RunConclusion(record, options).find("Set X=1."), std::string::npos);
}

TEST(RunConclusion, ComparesTheResultWithItsBaseline) {
  EXPECT_EQ(Sentences(R"(
    outcome: PASSED
    seconds: 31.24
    stage {
      name: "optimize" work { state: CACHED } graph { bytes: 9530000 }
      verification { work { state: CACHED } }
    }
    stage {
      name: "fuse"
      work { state: DONE }
      graph { bytes: 4970000 }
      verification {
        work { state: DONE }
        baseline: "optimize"
        result {
          scores { accuracy: .78421 }
          comparison {
            accuracy { points: -.034 interval { low: -.055 high: -.013 } }
            class_1_change { mean: .00213 max: .0085 }
          }
        }
        gate { name: "max_accuracy_drop" verdict: PASS }
        verdict: PASS
      }
    }
    stage {
      name: "benchmark"
      benchmark {
        work { state: DONE }
        graph: "optimize"
        graph: "fuse"
        result {
          entry { round { records_per_second: 100000 } }
          entry { round { records_per_second: 243000 } }
        }
      }
    })"),
            "\nPASSED: 3 stages in 31.2 s (1 cached), 1 gate of 1 verified "
            "stage holds\n"
            "\n"
            "fuse against optimize\n"
            "  accuracy  78.421 %, -0.034 points (-0.055 to -0.013)\n"
            "  outputs   change by 0.00213 on average, 0.00850 at most\n"
            "  size      4.97 MB from 9.53 MB, a factor of 1.92\n"
            "  speed     2.43 times as fast\n");
}

TEST(RunConclusion, SaysByHowMuchAGateFailedAndWhatToTry) {
  EXPECT_EQ(Sentences(R"(
    outcome: GATE_FAILED
    stage {
      name: "fuse"
      work { state: DONE }
      verification {
        work { state: DONE }
        result {
          layer { name: "dnn/0/MatMul" signal_to_noise: 31.5 step: .02 }
          layer {
            name: "dnn/1/MatMul" signal_to_noise: 9.31
            step: .02 rms_error: .071 clipped_share: .034
          }
        }
        gate { name: "max_accuracy_drop" limit: .5 value: .1 verdict: PASS }
        gate {
          name: "max_mean_output_change"
          sentence: "mean output change 0.02130, limit 0.00600: 3.5 times"
          verdict: FAIL
          advice: "Calibrate with method mse."
        }
        verdict: FAIL
      }
    })"),
            "\nFAILED: stage fuse changed the model more than its gates allow; "
            "nothing that\n"
            "needs it ran\n"
            "  stage fuse, gate max_mean_output_change: mean output change "
            "0.02130, limit\n"
            "  0.00600: 3.5 times\n"
            "  worst layer: dnn/1/MatMul, signal to noise 9.3 dB, error 3.55 "
            "quantization\n"
            "  steps, 3.40 % of its values clipped\n"
            "what to try:\n"
            "  Calibrate with method mse.\n");
}

TEST(RunConclusion, CallsAMissedExpectationThat) {
  EXPECT_EQ(Sentences(R"(
    outcome: GATE_FAILED
    stage {
      name: "optimize"
      work { state: DONE }
      verification {
        work { state: DONE }
        gate {
          name: "expect"
          sentence: "expected accuracy 77.5 %, found 75.1 %"
          verdict: FAIL
        }
        verdict: FAIL
      }
    })"),
            "\nFAILED: stage optimize does not have the accuracy that is "
            "expected of the model;\n"
            "nothing that needs it ran\n"
            "  stage optimize, gate expect: expected accuracy 77.5 %, found "
            "75.1 %\n");
}

TEST(RunConclusion, WarnsLoudlyOfAnInconclusiveVerdict) {
  EXPECT_EQ(Sentences(R"(
    outcome: INCONCLUSIVE
    stage {
      name: "fuse"
      work { state: DONE }
      verification {
        work { state: CACHED }
        gate {
          name: "max_accuracy_drop"
          sentence: "accuracy drop 0.490 points, limit 0.500 points"
          verdict: INCONCLUSIVE
          advice: "Evaluate on more records."
        }
        verdict: INCONCLUSIVE
      }
    })"),
            "\nWARNING, INCONCLUSIVE: the records do not suffice to say "
            "whether stage fuse\n"
            "keeps its limits; do not take this for a pass\n"
            "  stage fuse, gate max_accuracy_drop: accuracy drop 0.490 points, "
            "limit 0.500\n"
            "  points\n"
            "what to try:\n"
            "  Evaluate on more records.\n");
}

TEST(RunConclusion, ShowsTheLastWordsOfAFailedTask) {
  EXPECT_EQ(Sentences(R"(
    outcome: FAILED
    stage {
      name: "log_min"
      work {
        state: FAILED
        message: "train.tfrecords: record 1207 is truncated"
        note: "calibrate_graph: reading train.tfrecords"
        command: "requant calibrate --graph=a.pb"
      }
    })"),
            "\nFAILED: stage log_min could not be finished\n"
            "  stage log_min: train.tfrecords: record 1207 is truncated\n"
            "notes:\n"
            "  calibrate_graph: reading train.tfrecords\n"
            "commands:\n"
            "  requant calibrate --graph=a.pb\n");
}

TEST(RunConclusion, SaysHowToGoOnAfterAnInterruption) {
  EXPECT_EQ(Sentences(R"(
    outcome: INTERRUPTED
    command: "requant run --jobs=2"
    stage { name: "freeze" work { state: INTERRUPTED } })"),
            "\nINTERRUPTED: what is done is kept; to go on from there:\n"
            "  requant run --jobs=2\n");
}

}  // namespace
}  // namespace requant::run_conclusion_test
