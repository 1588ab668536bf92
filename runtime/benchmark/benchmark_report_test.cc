#include "runtime/benchmark/benchmark_report.h"

#include <cmath>

#include "base/testing/testing.h"
#include "google/protobuf/text_format.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant::benchmark_report_test {
namespace {

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

  // Adds a graph with rounds of 1000 records each.
  void AddGraph(const std::string& path, const std::vector<double>& rates,
                double cpu_seconds) {
    job_.add_entry()->mutable_model()->set_path(path);
    EntryMeasurement& entry = *result_.add_entry();
    entry.mutable_setting()->set_streams(2);
    entry.mutable_setting()->set_threads(1);
    entry.set_median_batch_seconds(0.004);
    entry.set_p99_batch_seconds(0.005);
    for (const double rate : rates) {
      RoundMeasurement& round = *entry.add_round();
      round.set_records(1000);
      round.set_records_per_second(rate);
      round.set_cpu_seconds(cpu_seconds);
    }
  }
  void AddGraph(const std::string& path, double rate, double cpu_seconds) {
    AddGraph(path, std::vector<double>(job_.rounds(), rate), cpu_seconds);
  }

  void SetWaited(double seconds) {
    for (RoundMeasurement& round : *result_.mutable_entry(0)->mutable_round()) {
      round.set_waited_seconds(seconds);
    }
  }

  void AddTrial(int streams, int threads, double rate) {
    SettingTrial& trial = *result_.add_trial();
    trial.mutable_setting()->set_streams(streams);
    trial.mutable_setting()->set_threads(threads);
    trial.set_records_per_second(rate);
  }

  void AddProfile() {
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"(batches: 20 batch_microseconds: 120 operation_microseconds: 100
           type { op: "MatMul" calls: 3 microseconds: 99.99 }
           type { op: "Const" calls: 3 microseconds: 0.01 }
           node { op: "MatMul" node: "dense/MatMul" calls: 1 microseconds: 60 })",
        result_.mutable_entry(0)->mutable_profile()));
  }

  std::string Text() { return BenchmarkText(job_, result_); }

  std::string JsonText() { return BenchmarkJson(job_, result_); }

  BenchmarkJob job_;
  BenchmarkResult result_;
};

TEST_F(BenchmarkReport, HasMediansOverTheRounds) {
  AddGraph("a.pb", {100, 500, 110}, 0.25);
  const GraphFigures figures = FiguresOf(result_)[0];
  EXPECT_EQ(figures.records_per_second, 110);
  EXPECT_DOUBLE_EQ(figures.spread, (305.0 - 105) / 110);
  EXPECT_DOUBLE_EQ(figures.cpu_microseconds_per_record, 250);
  EXPECT_DOUBLE_EQ(figures.milliseconds_per_batch, 4);
  EXPECT_DOUBLE_EQ(figures.milliseconds_per_batch_p99, 5);
}

TEST_F(BenchmarkReport, ComparesGraphsRoundByRound) {
  // The machine keeps getting slower; the second graph is always twice as fast
  // as the first.
  AddGraph("a.pb", {600, 500, 400, 300, 200, 100}, 0.5);
  AddGraph("b.pb", {1200, 1000, 800, 600, 400, 200}, 0.125);
  const std::vector<GraphFigures> figures = FiguresOf(result_);
  EXPECT_EQ(figures[0].speed.median, 1);
  EXPECT_FALSE(figures[0].speed.interval.has_value());
  EXPECT_EQ(figures[1].speed.median, 2);
  ASSERT_TRUE(figures[1].speed.interval.has_value());
  EXPECT_EQ(figures[1].speed.interval->low(), 2);
  EXPECT_EQ(figures[1].speed.interval->high(), 2);
  EXPECT_EQ(figures[1].cpu_time.median, 0.25);
}

TEST_F(BenchmarkReport, KnowsTheShareOfTimeSpentWaiting) {
  AddGraph("a.pb", {1, 1}, 0.3);
  EXPECT_FALSE(FiguresOf(result_)[0].waited_share.has_value());
  SetWaited(0.1);
  EXPECT_DOUBLE_EQ(FiguresOf(result_)[0].waited_share.value_or(-1), 0.25);
}

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

TEST_F(BenchmarkReport, SaysWhatIsNotFaster) {
  const std::pair<std::vector<double>, const char*> cases[] = {
      {{50, 50, 50, 50, 50, 50},
       "b.pb is slower than a.pb, 0.50 times as fast (95 % interval"},
      {{90, 100, 100, 100, 100, 110},
       "\nthe speeds of b.pb and a.pb do not differ beyond the noise (95 % "
       "interval 0.900 to 1.100)\n"},
      {{200, 200, 200, 200, 200}, "too few rounds"}};
  for (const auto& [rates, sentence] : cases) {
    job_.clear_entry();
    result_.clear_entry();
    AddGraph("a.pb", std::vector<double>(rates.size(), 100), 1);
    AddGraph("b.pb", rates, 1);
    EXPECT_THAT(Text(), HasSubstr(sentence));
  }
}

// Folders stay if names are equal or say nothing.
TEST_F(BenchmarkReport, KeepsFoldersThatTellGraphsApart) {
  for (const std::string folder : {"a/model.pb", "a/saved_model/1"}) {
    job_.clear_entry();
    result_.clear_entry();
    AddGraph(folder, 100, 1);
    AddGraph("b/model.pb", 200, 1);
    EXPECT_THAT(Text(),
                HasSubstr("b/model.pb is 2.00 times as fast as " + folder));
  }
}

TEST_F(BenchmarkReport, HasTheDifferenceOfOutputsInJson) {
  AddGraph("a.pb", 100, 1);
  AddGraph("b.pb", 200, 1);
  AddGraph("c.pb", 200, 1);
  OutputDifferenceMessage& difference =
      *result_.mutable_entry(1)->mutable_difference();
  difference.set_mse(0.25);
  difference.set_rows(4);
  difference.set_agreeing_rows(3);
  // Outputs that are never finite have no figures.
  OutputDifference unknown;
  unknown.Add({NAN, INFINITY}, {NAN, INFINITY}, 1);
  *result_.mutable_entry(2)->mutable_difference() = unknown.Result();
  EXPECT_THAT(
      JsonText(),
      AllOf(
          HasSubstr(R"("output_difference": null)"),
          HasSubstr(R"("output_difference": {"values": 0, "mse": 0.25, )"
                    R"("max": 0, "cosine": 0, "rows": 4, "agreeing_rows": 3, )"
                    R"("top_1_agreement": 0.75, "lost_values": 0, )"
                    R"("never_finite_values": 0})"),
          HasSubstr(
              R"("output_difference": {"values": 0, "mse": null, )"
              R"("max": null, "cosine": null, "rows": 0, "agreeing_rows": 0, )"
              R"("top_1_agreement": null, "lost_values": 0, )"
              R"("never_finite_values": 2})")));
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
  SetWaited(0.01);
  EXPECT_THAT(Text(), Not(HasSubstr("warning")));
  SetWaited(0.1);
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
  EXPECT_THAT(
      JsonText(),
      AllOf(HasSubstr(R"("speed_ratio": 1, "speed_ratio_interval_95": null, )"
                      R"("cpu_time_ratio": 1, )"
                      R"("cpu_time_ratio_interval_95": null, "verdict": null)"),
            HasSubstr(R"({"graph": "b \"quoted\".pb", "dataset": null, )"
                      R"("streams": 2, "threads": 1, )"),
            HasSubstr(R"("speed_ratio": 2.5, )"
                      R"("speed_ratio_interval_95": [2.5, 2.5], )"
                      R"("cpu_time_ratio": 0.5, )"
                      R"("cpu_time_ratio_interval_95": [0.5, 0.5], )"
                      R"("verdict": "faster")"),
            HasSubstr(R"("trials": [{"graph": "a.pb", "streams": 1, )"
                      R"("threads": 2, "records_per_second": 90}])"),
            HasSubstr(R"("profile": null)")));
}

// JSON has all operations, including those too small for the text.
TEST_F(BenchmarkReport, HasRoundsAndProfilesInJson) {
  job_.set_rounds(2);
  AddGraph("a.pb", 100, 1);
  AddProfile();
  const std::string round =
      R"({"records": 1000, "batches": 0, "records_per_second": 100, )"
      R"("cpu_seconds": 1, "waited_seconds": null})";
  EXPECT_THAT(
      JsonText(),
      HasSubstr(
          absl::StrCat(R"("rounds": [)", round, ", ", round, "], ") +
          R"("profile": {"batches": 20, "microseconds_per_batch": 120, )"
          R"("operation_microseconds_per_batch": 100, "operations": [)"
          R"({"op": "MatMul", "calls_per_batch": 3, )"
          R"("microseconds_per_batch": 99.99}, {"op": "Const", )"
          R"("calls_per_batch": 3, "microseconds_per_batch": 0.01}], )"
          R"("costliest_nodes": [{"node": "dense/MatMul", "op": "MatMul", )"
          R"("calls_per_batch": 1, "microseconds_per_batch": 60}]})"));
}

class PublishedBenchmark : public testing::Test {
 protected:
  PublishedBenchmark() {
    job_.set_published_name("gpt-j");
    job_.set_batch_size(8);
    result_.set_records(8);
    AddModel("gpt-j-6B", 56.324354);
    AddModel("converted_gpt-j-6B", 48.612103);
  }

  void AddModel(const std::string& path, double seconds) {
    job_.add_entry()->mutable_model()->set_path(path);
    result_.add_entry()->set_median_batch_seconds(seconds);
  }

  OutputDifferenceMessage* Difference(int entry) {
    return result_.mutable_entry(entry)->mutable_difference();
  }

  std::string Text() { return PublishedBenchmarkText(job_, result_); }

  BenchmarkJob job_;
  BenchmarkResult result_;
};

TEST_F(PublishedBenchmark, HasThePublishedLines) {
  Difference(1)->set_mse(6.612018585205078);
  EXPECT_THAT(
      Text(),
      StartsWith(R"(---------------------------------------------------------
The infrence results of original gpt-j with TF2.x API
Batch size = 8
Latency: 56324.354 ms
Throughput: 0.142 images/sec
---------------------------------------------------------
The infrence results of converted gpt-j with TF2.x API
Batch size = 8
Latency: 48612.103 ms
Throughput: 0.165 images/sec
---------------------------------------------------------
MSE of the output logits between two models = 6.612018585205078
)"));
}

TEST_F(PublishedBenchmark, WritesZeroAsPythonDoes) {
  Difference(1)->set_cosine(1);
  Difference(1)->set_rows(512);
  Difference(1)->set_agreeing_rows(512);
  EXPECT_THAT(Text(),
              HasSubstr(R"(MSE of the output logits between two models = 0.0
Cosine similarity of the output logits = 1.0
Top-1 agreement = 100.0000 % (512 of 512 rows of the output)
Largest difference of the output logits = 0.0
)"));
}

TEST_F(PublishedBenchmark, HasNoDifferenceOfOneModel) {
  job_.mutable_entry()->RemoveLast();
  result_.mutable_entry()->RemoveLast();
  EXPECT_THAT(Text(), Not(HasSubstr("MSE")));
}

TEST_F(PublishedBenchmark, TellsSeveralConvertedModelsApartAndExplainsItself) {
  AddModel("third", 1);
  EXPECT_THAT(Text(), HasSubstr("converted gpt-j (third) with TF2.x API"));
  EXPECT_THAT(Text(),
              HasSubstr("the published throughput left the batch size out\n"));
}

TEST_F(PublishedBenchmark, WarnsOfLostValues) {
  Difference(1)->set_lost_values(3);
  EXPECT_THAT(Text(), HasSubstr("warning: 3 values are NaN"));
  EXPECT_THAT(Text(), Not(HasSubstr("in neither model")));
}

TEST_F(PublishedBenchmark, SaysThatNoValueWasFinite) {
  Difference(1)->set_mse(NAN);
  Difference(1)->set_cosine(NAN);
  Difference(1)->set_never_finite_values(8);
  EXPECT_THAT(Text(), HasSubstr("between two models = nan\n"));
  EXPECT_THAT(Text(), HasSubstr("similarity of the output logits = nan\n"));
  EXPECT_THAT(Text(),
              HasSubstr("warning: 8 values are finite in neither model"));
}

std::vector<std::string> Lines(
    const google::protobuf::RepeatedPtrField<OperationTime>& times) {
  std::vector<std::string> lines;
  for (const OperationTime& time : times) {
    lines.push_back(absl::StrCat(time.op(), " ", time.node(), ": ",
                                 time.calls(), " x, ", time.microseconds(),
                                 " us"));
  }
  return lines;
}

// Returns what is recorded for a batch in which each of these nodes ran.
tensorflow::StepStats BatchOf(const std::vector<std::string>& nodes) {
  tensorflow::StepStats stats;
  for (const std::string& node : nodes) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        node, stats.add_dev_stats()->add_node_stats()));
  }
  return stats;
}

std::string Node(const std::string& name, const std::string& op,
                 int microseconds) {
  return absl::StrCat(
      "node_name: '", name, "' timeline_label: '[1.0MB] ", name, " = ", op,
      "(x, w)' all_start_nanos: 2000 ",
      "op_start_rel_nanos: 10 op_end_rel_nanos: ", 1000 * microseconds + 10);
}

TEST(ProfileOf, AveragesOverBatches) {
  const ProfileMessage profile =
      ProfileOf({BatchOf({Node("a", "Add", 1), Node("m", "MatMul", 5)}),
                 BatchOf({Node("a", "Add", 3), Node("m", "MatMul", 5),
                          Node("b", "Add", 4)})},
                /*max_nodes=*/2);
  EXPECT_EQ(profile.batches(), 2);
  EXPECT_DOUBLE_EQ(profile.operation_microseconds(), 9);
  EXPECT_THAT(Lines(profile.type()),
              ElementsAre("MatMul : 1 x, 5 us", "Add : 1.5 x, 4 us"));
}

TEST(ProfileOf, KeepsTheCostliestNodes) {
  const tensorflow::StepStats batch =
      BatchOf({Node("cheap", "Add", 1), Node("z", "Add", 7),
               Node("y", "Add", 7), Node("dear", "Mul", 9)});
  EXPECT_THAT(Lines(ProfileOf({batch}, /*max_nodes=*/3).node()),
              ElementsAre("Mul dear: 1 x, 9 us", "Add y: 1 x, 7 us",
                          "Add z: 1 x, 7 us"));
}

TEST(ProfileOf, TakesMicrosecondsAndNamesWhatHasNoOperation) {
  const tensorflow::StepStats batch = BatchOf(
      {"node_name: 'recv' timeline_label: 'edge_5 @ CPU:1' "
       "all_start_micros: 5 op_start_rel_micros: 1 op_end_rel_micros: 4"});
  EXPECT_THAT(Lines(ProfileOf({batch}, 1).node()),
              ElementsAre("(other) recv: 1 x, 3 us"));
}

}  // namespace
}  // namespace requant::benchmark_report_test
