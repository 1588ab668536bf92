#include "workflows/run_conclusion.h"

#include <gtest/gtest.h>

#include <string>

#include "google/protobuf/text_format.h"
#include "workflows/run_record.pb.h"
#include "workflows/run_table.h"

namespace requant {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// What stands below the table.
std::string Sentences(const std::string& record_text) {
  const RunRecord record = Parse<RunRecord>(record_text);
  RunConclusionOptions options;
  options.report = "out/report.html";
  const std::string text = RunConclusion(record, options);
  const std::string table = RunTable(record, 0, false);
  EXPECT_EQ(text.substr(0, table.size()), table);
  return text.substr(table.size());
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
            "  accuracy  -0.034 points (-0.055 to -0.013), now 78.421 %\n"
            "  outputs   change by 0.00213 on average, 0.00850 at most\n"
            "  size      4.97 MB from 9.53 MB, 52 %\n"
            "  speed     2.43 times that of optimize\n"
            "\n"
            "report: out/report.html\n");
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
          limit: .006 value: .0213 interval { low: .0211 high: .0215 }
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
            "0.02130 (0.02110\n"
            "  to 0.02150) is beyond the limit 0.006: 3.5 times as much\n"
            "  worst layer: dnn/1/MatMul, signal to noise 9.3 dB, error 3.55 "
            "quantization\n"
            "  steps, 3.40 % of its values clipped\n"
            "what to try:\n"
            "  Calibrate with method mse.\n"
            "\n"
            "report: out/report.html\n");
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
          limit: .5 value: .49 interval { low: .42 high: .56 }
          verdict: INCONCLUSIVE
          advice: "Evaluate on more records."
        }
        verdict: INCONCLUSIVE
      }
    })"),
            "\nWARNING, INCONCLUSIVE: the records do not suffice to say "
            "whether stage fuse\n"
            "keeps its limits; do not take this for a pass\n"
            "  stage fuse, gate max_accuracy_drop: accuracy drop 0.490 points "
            "(0.420 to\n"
            "  0.560) may be on either side of the limit 0.5 points\n"
            "what to try:\n"
            "  Evaluate on more records.\n"
            "\n"
            "report: out/report.html\n");
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
            "its last words:\n"
            "  calibrate_graph: reading train.tfrecords\n"
            "its commands:\n"
            "  requant calibrate --graph=a.pb\n"
            "\n"
            "report: out/report.html\n");
}

TEST(RunConclusion, SaysHowToGoOnAfterAnInterruption) {
  EXPECT_EQ(Sentences(R"(
    outcome: INTERRUPTED
    command: "requant run --jobs=2"
    stage { name: "freeze" work { state: INTERRUPTED } })"),
            "\nINTERRUPTED: what is done is kept. To go on where it stopped, "
            "run the same\n"
            "command again:\n"
            "  requant run --jobs=2\n"
            "\n"
            "report: out/report.html\n");
}

TEST(GateSentence, TellsAMinimumFromAMaximum) {
  EXPECT_EQ(GateSentence(Parse<GateRecord>(
                R"(name: "min_agreement" limit: .99 value: .9312
                   interval { low: .93 high: .9324 } verdict: FAIL)")),
            "agreement 0.9312 (0.9300 to 0.9324) is below the limit 0.99, by "
            "0.0588");
  EXPECT_EQ(GateSentence(Parse<GateRecord>(
                R"(name: "max_layer_error" layer: "dnn/0/MatMul" limit: 1
                   value: 1.021 verdict: FAIL)")),
            "dnn/0/MatMul: error 1.021 quantization steps is beyond the limit "
            "1 quantization steps: 1.02 times as much");
}

TEST(GateSentence, LeavesWhatItDoesNotKnowToTheGatesOwn) {
  EXPECT_EQ(
      GateSentence(Parse<GateRecord>(
          R"(name: "expect" sentence: "accuracy 77.1 %, expected 77.5")")),
      "accuracy 77.1 %, expected 77.5");
}

}  // namespace
}  // namespace requant
