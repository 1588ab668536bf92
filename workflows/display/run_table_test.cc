#include "workflows/display/run_table.h"

#include <gtest/gtest.h>

#include "base/message_text.h"
#include "google/protobuf/text_format.h"
#include "workflows/report/figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant::run_table_test {
namespace {

RunRecord Record() {
  RunRecord record;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    baseline {
      name: "raw/baseline"
      work { state: CACHED }
      result {
        scores { accuracy: .78455 }
        timing { timed_records: 200000 timed_seconds: 1.6 }
      }
    }
    stage { name: "summarize" work { state: DONE seconds: .02 } }
    stage {
      name: "freeze"
      work { state: CACHED }
      graph { bytes: 9530000 }
      verification {
        evaluation: "raw"
        work { state: CACHED }
        result {
          scores { accuracy: .78455 }
          timing { timed_records: 200000 timed_seconds: 1.6 }
          comparison {
            accuracy { points: 0 interval { low: -.00001 high: .00001 } }
            agreement { share: 1 }
            output_change { mean: 0 }
          }
        }
        verdict: PASS
      }
    }
    stage {
      name: "fuse"
      work { state: DONE seconds: .4 }
      graph { bytes: 4970000 }
      verification {
        evaluation: "eval"
        work { state: DONE seconds: 1.5 }
        result {
          scores { accuracy: .75210 }
          timing { timed_records: 200000 timed_seconds: .8 }
          comparison {
            accuracy { points: -3.245 interval { low: -3.3 high: -3.19 } }
            agreement { share: .9312 }
            output_change { mean: .5 }
            class_1_change { mean: .0213 }
          }
        }
        verdict: FAIL
      }
    }
    stage { name: "benchmark" }
  )",
                                                            &record));
  return record;
}

TEST(RunTable, HasALinePerStageAndBaseline) {
  EXPECT_EQ(RunTable(Record(), 0, false),
            "stage            time  accuracy  diff (points)     95 % interval  "
            "agreement  mean change  records/s     size  verdict\n"
            "summarize      <0.1 s\n"
            "raw/baseline   cached  78.455 %                                   "
            "                             125k\n"
            "freeze         cached  78.455 %         +0.000  [+0.000, +0.000]  "
            "   1.0000      0.00000       125k  9.53 MB  PASS\n"
            "fuse            1.9 s  75.210 %         -3.245  [-3.300, -3.190]  "
            "   0.9312      0.02130       250k  4.97 MB  FAIL\n"
            "benchmark     not run\n");
}

TEST(RunTable, HasFewerColumnsOnANarrowTerminal) {
  EXPECT_EQ(RunTable(Record(), 64, false),
            "stage            time  accuracy  mean change  verdict\n"
            "summarize      <0.1 s\n"
            "raw/baseline   cached  78.455 %\n"
            "freeze         cached  78.455 %      0.00000  PASS\n"
            "fuse            1.9 s  75.210 %      0.02130  FAIL\n"
            "benchmark     not run\n");
}

TEST(RunTable, CutsNoNameHoweverNarrowTheTerminal) {
  EXPECT_EQ(RunTable(Record(), 10, false),
            "stage         verdict\n"
            "summarize\n"
            "raw/baseline\n"
            "freeze        PASS\n"
            "fuse          FAIL\n"
            "benchmark\n");
}

TEST(RunTable, LeavesOutColumnsWithoutAFigure) {
  RunRecord record;
  record.add_stage()->set_name("summarize");
  EXPECT_EQ(RunTable(record, 0, false),
            "stage         time\n"
            "summarize  not run\n");
}

TEST(RunTable, HasTheMeanSquaredErrorWhereThereIsRoom) {
  RunRecord record = Record();
  record.mutable_stage(2)
      ->mutable_verification()
      ->mutable_result()
      ->mutable_comparison()
      ->mutable_squared_change()
      ->set_mean(0.0000321);
  const std::string table = RunTable(record, 0, false);
  EXPECT_NE(table.find("mean change       MSE  records/s"), std::string::npos)
      << table;
  EXPECT_NE(table.find("0.02130  3.21e-05       250k"), std::string::npos)
      << table;
  // It is the first to go.
  EXPECT_EQ(RunTable(record, 125, false), RunTable(Record(), 0, false));
}

TEST(RunTable, ColoursVerdictsWhenAsked) {
  EXPECT_NE(RunTable(Record(), 0, true).find("\x1b[31mFAIL\x1b[0m\n"),
            std::string::npos);
}

TEST(RunFigures, HaveTheSameDigitsEverywhere) {
  EXPECT_EQ(AccuracyText(0.784551), "78.455 %");
  EXPECT_EQ(PointsText(-0.0541), "-0.054");
  EXPECT_EQ(PointsText(-0.0001), "+0.000");
  EXPECT_EQ(AgreementText(1), "1.0000");
  EXPECT_EQ(ChangeText(0.002134), "0.00213");
  EXPECT_EQ(SecondsText(0.04), "<0.1 s");
  EXPECT_EQ(SecondsText(0.05), "0.1 s");
  EXPECT_EQ(SecondsText(5.44), "5.4 s");
  EXPECT_EQ(SecondsText(59.96), "1:00");
  EXPECT_EQ(SizeText(812), "812 B");
  EXPECT_EQ(SizeText(5000000), "5.00 MB");
  EXPECT_EQ(SizeText(999500), "1.00 MB");
}

TEST(StateOf, WaitsWhileTheVerificationIsToCome) {
  StageRecord stage;
  stage.mutable_work()->set_state(TaskRecord::DONE);
  EXPECT_EQ(StateOf(stage), StageState::kDone);
  stage.mutable_verification();
  EXPECT_EQ(StateOf(stage), StageState::kWaiting);
}

TEST(StateOf, TellsAFailedGateFromAFailedTask) {
  StageRecord stage;
  stage.mutable_work()->set_state(TaskRecord::CACHED);
  VerificationRecord& verification = *stage.mutable_verification();
  verification.mutable_work()->set_state(TaskRecord::CACHED);
  verification.set_verdict(VerificationRecord::FAIL);
  EXPECT_EQ(StateOf(stage), StageState::kGateFailed);
  stage.mutable_work()->set_state(TaskRecord::FAILED);
  EXPECT_EQ(StateOf(stage), StageState::kFailed);
}

}  // namespace
}  // namespace requant::run_table_test
