#include "runtime/benchmark/published_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "runtime/session/worker.pb.h"

namespace requant::published_benchmark_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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

TEST_F(PublishedBenchmark, SaysThatThePublishedThroughputForgotTheBatch) {
  EXPECT_THAT(Text(), HasSubstr("the published throughput left the batch size "
                                "out\n"));
}

TEST_F(PublishedBenchmark, HasNoDifferenceOfOneModel) {
  job_.mutable_entry()->RemoveLast();
  result_.mutable_entry()->RemoveLast();
  EXPECT_THAT(Text(), Not(HasSubstr("MSE")));
}

TEST_F(PublishedBenchmark, TellsSeveralConvertedModelsApart) {
  AddModel("third", 1);
  EXPECT_THAT(Text(), HasSubstr("converted gpt-j (third) with TF2.x API"));
}

TEST_F(PublishedBenchmark, WarnsOfLostValues) {
  Difference(1)->set_lost_values(3);
  EXPECT_THAT(Text(), HasSubstr("warning: 3 values are NaN"));
  EXPECT_THAT(Text(), Not(HasSubstr("in neither model")));
}

TEST_F(PublishedBenchmark, SaysThatNoValueWasFinite) {
  Difference(1)->set_mse(std::numeric_limits<double>::quiet_NaN());
  Difference(1)->set_cosine(std::numeric_limits<double>::quiet_NaN());
  Difference(1)->set_never_finite_values(8);
  EXPECT_THAT(Text(), HasSubstr("between two models = nan\n"));
  EXPECT_THAT(Text(), HasSubstr("similarity of the output logits = nan\n"));
  EXPECT_THAT(Text(),
              HasSubstr("warning: 8 values are finite in neither model"));
}

}  // namespace
}  // namespace requant::published_benchmark_test
