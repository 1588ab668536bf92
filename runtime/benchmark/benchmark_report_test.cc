#include "runtime/benchmark/benchmark_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "runtime/session/worker.pb.h"
#include "runtime/statistics/output_difference.h"

namespace requant::benchmark_report_test {
namespace {

using google::protobuf::Struct;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class BenchmarkReport : public testing::Test {
 protected:
  BenchmarkReport() {
    job_.set_batch_size(512);
    job_.set_rounds(6);
    job_.set_seconds(0.3);
    result_.set_cores(2);
    result_.set_batches(2);
    result_.set_records(1024);
  }

  void AddGraph(const std::string& path, double rate, double cpu_seconds) {
    job_.add_entry()->mutable_model()->set_path(path);
    EntryMeasurement& entry = *result_.add_entry();
    entry.mutable_setting()->set_streams(2);
    entry.mutable_setting()->set_threads(1);
    entry.set_median_batch_seconds(0.004);
    entry.set_p99_batch_seconds(0.005);
    for (int i = 0; i < job_.rounds(); ++i) {
      RoundMeasurement& round = *entry.add_round();
      round.set_records(1000);
      round.set_records_per_second(rate);
      round.set_cpu_seconds(cpu_seconds);
    }
  }

  void AddTrial(int streams, int threads, double rate) {
    SettingTrial& trial = *result_.add_trial();
    trial.mutable_setting()->set_streams(streams);
    trial.mutable_setting()->set_threads(threads);
    trial.set_records_per_second(rate);
  }

  void AddProfile() {
    ProfileMessage& profile = *result_.mutable_entry(0)->mutable_profile();
    profile.set_batches(20);
    profile.set_batch_microseconds(120);
    profile.set_operation_microseconds(100);
    for (const double microseconds : {99.99, 0.01}) {
      OperationTime& type = *profile.add_type();
      type.set_op(microseconds > 1 ? "MatMul" : "Const");
      type.set_calls(3);
      type.set_microseconds(microseconds);
    }
    OperationTime& node = *profile.add_node();
    node.set_op("MatMul");
    node.set_node("dense/MatMul");
    node.set_calls(1);
    node.set_microseconds(60);
  }

  std::string Text() { return BenchmarkText(job_, result_); }

  Struct Json() {
    Struct json;
    const std::string text = BenchmarkJson(job_, result_);
    const auto status =
        google::protobuf::util::JsonStringToMessage(text, &json);
    EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << text;
    return json;
  }

  Struct GraphJson(int i) {
    return Json().fields().at("graphs").list_value().values(i).struct_value();
  }

  BenchmarkJob job_;
  BenchmarkResult result_;
};

TEST_F(BenchmarkReport, ShowsATableAndAVerdict) {
  AddGraph("models/fp32.pb", 100000, 0.02);
  AddGraph("models/int8.pb", 250000, 0.008);
  AddTrial(1, 2, 90000);
  AddTrial(2, 1, 101000);
  EXPECT_EQ(
      Text(),
      R"(6 rounds of 0.3 s per graph; 1024 preloaded records in batches of 512
2 streams x 1 thread on 2 cores, chosen from 1 x 2: 90k/s, 2 x 1: 101k/s

           speed          CPU time  records/s  spread  ms/batch    p99  CPU us/record  graph
            1.00              1.00     100000   0.0 %     4.000  5.000         20.000  fp32.pb
2.50 (2.50-2.50)  0.40 (0.40-0.40)     250000   0.0 %     4.000  5.000          8.000  int8.pb

int8.pb is 2.50 times as fast as fp32.pb (95 % interval 2.500 to 2.500); int8.pb takes 0.40 times the CPU time (95 % interval 0.400 to 0.400)
)");
}

TEST_F(BenchmarkReport, SaysWhenAGraphIsSlower) {
  AddGraph("a.pb", 100, 1);
  AddGraph("b.pb", 50, 1);
  EXPECT_THAT(Text(), HasSubstr("b.pb is slower than a.pb, 0.50 times as fast "
                                "(95 % interval"));
}

TEST_F(BenchmarkReport, SaysWhenTheDifferenceIsInsideTheNoise) {
  AddGraph("a.pb", 100, 1);
  AddGraph("b.pb", 100, 1);
  result_.mutable_entry(1)->mutable_round(0)->set_records_per_second(90);
  result_.mutable_entry(1)->mutable_round(5)->set_records_per_second(110);
  EXPECT_THAT(Text(),
              HasSubstr("\nthe speeds of b.pb and a.pb do not differ beyond "
                        "the noise (95 % interval 0.900 to 1.100)\n"));
}

TEST_F(BenchmarkReport, SaysWhenThereAreTooFewRounds) {
  job_.set_rounds(5);
  AddGraph("a.pb", 100, 1);
  AddGraph("b.pb", 200, 1);
  EXPECT_THAT(Text(), AllOf(HasSubstr("2.00  "), HasSubstr("too few rounds")));
}

TEST_F(BenchmarkReport, KeepsFoldersWhereNamesAreTheSame) {
  AddGraph("a/model.pb", 100, 1);
  AddGraph("b/model.pb", 200, 1);
  EXPECT_THAT(Text(), HasSubstr("b/model.pb is 2.00 times as fast as a/model"));
}

TEST_F(BenchmarkReport, KeepsFoldersOfVersions) {
  AddGraph("a/saved_model/1", 100, 1);
  AddGraph("b.pb", 200, 1);
  EXPECT_THAT(Text(), HasSubstr("b.pb is 2.00 times as fast as a/saved_model"));
}

TEST_F(BenchmarkReport, HasTheDifferenceOfOutputsInJson) {
  AddGraph("a.pb", 100, 1);
  AddGraph("b.pb", 200, 1);
  OutputDifferenceMessage& difference =
      *result_.mutable_entry(1)->mutable_difference();
  difference.set_mse(0.25);
  difference.set_rows(4);
  difference.set_agreeing_rows(3);
  EXPECT_TRUE(GraphJson(0).fields().at("output_difference").has_null_value());
  const Struct json =
      GraphJson(1).fields().at("output_difference").struct_value();
  EXPECT_EQ(json.fields().at("mse").number_value(), 0.25);
  EXPECT_EQ(json.fields().at("top_1_agreement").number_value(), 0.75);
  EXPECT_EQ(json.fields().at("never_finite_values").number_value(), 0);
}

TEST_F(BenchmarkReport, HasNoFiguresOfOutputsThatAreNeverFiniteInJson) {
  AddGraph("a.pb", 100, 1);
  AddGraph("b.pb", 200, 1);
  OutputDifference difference;
  difference.Add({NAN, INFINITY}, {NAN, INFINITY}, 2);
  *result_.mutable_entry(1)->mutable_difference() = difference.Result();
  const Struct json =
      GraphJson(1).fields().at("output_difference").struct_value();
  EXPECT_TRUE(json.fields().at("mse").has_null_value());
  EXPECT_TRUE(json.fields().at("max").has_null_value());
  EXPECT_TRUE(json.fields().at("cosine").has_null_value());
  EXPECT_EQ(json.fields().at("never_finite_values").number_value(), 2);
}

TEST_F(BenchmarkReport, ShowsEachGraphsSettingWhenTuned) {
  AddGraph("a.pb", 100, 1);
  AddGraph("b.pb", 200, 1);
  job_.set_tune_each(true);
  result_.mutable_entry(1)->mutable_setting()->set_streams(1);
  result_.mutable_entry(1)->mutable_setting()->set_threads(2);
  EXPECT_THAT(Text(), AllOf(HasSubstr("a.pb: 2 streams x 1 thread on"),
                            HasSubstr("b.pb: 1 stream x 2 threads on")));
}

TEST_F(BenchmarkReport, WarnsOfABusyMachine) {
  AddGraph("a.pb", 100, 0.9);
  for (RoundMeasurement& round : *result_.mutable_entry(0)->mutable_round()) {
    round.set_waited_seconds(0.01);
  }
  EXPECT_THAT(Text(), Not(HasSubstr("warning")));
  for (RoundMeasurement& round : *result_.mutable_entry(0)->mutable_round()) {
    round.set_waited_seconds(0.1);
  }
  EXPECT_THAT(Text(), HasSubstr("warning: for 10 % of their time"));
}

TEST_F(BenchmarkReport, ShowsOperationsThatMatter) {
  AddGraph("a.pb", 100, 1);
  AddProfile();
  EXPECT_THAT(Text(), HasSubstr(R"(
  share  us/batch  calls  operation
100.0 %     100.0      3  MatMul

 share  us/batch  calls  node
60.0 %      60.0      1  MatMul  dense/MatMul
)"));
}

TEST_F(BenchmarkReport, HasRatiosInJson) {
  AddGraph("a.pb", 100, 1);
  AddGraph("b \"quoted\".pb", 250, 0.5);
  AddTrial(1, 2, 90);
  const Struct first = GraphJson(0), second = GraphJson(1);
  EXPECT_EQ(first.fields().at("speed_ratio").number_value(), 1);
  EXPECT_TRUE(first.fields().at("verdict").has_null_value());
  EXPECT_EQ(second.fields().at("graph").string_value(), "b \"quoted\".pb");
  EXPECT_EQ(second.fields().at("speed_ratio").number_value(), 2.5);
  EXPECT_EQ(second.fields().at("cpu_time_ratio").number_value(), 0.5);
  EXPECT_EQ(second.fields().at("verdict").string_value(), "faster");
  EXPECT_EQ(second.fields().at("rounds").list_value().values_size(), 6);
  EXPECT_TRUE(second.fields().at("profile").has_null_value());
}

TEST_F(BenchmarkReport, HasProfilesInJson) {
  AddGraph("a.pb", 100, 1);
  AddProfile();
  const Struct profile = GraphJson(0).fields().at("profile").struct_value();
  // All of them, too small to be shown to people or not.
  EXPECT_EQ(profile.fields().at("operations").list_value().values_size(), 2);
  EXPECT_EQ(profile.fields()
                .at("costliest_nodes")
                .list_value()
                .values(0)
                .struct_value()
                .fields()
                .at("node")
                .string_value(),
            "dense/MatMul");
}

}  // namespace
}  // namespace requant::benchmark_report_test
