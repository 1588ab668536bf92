#include "runtime/calibration/calibrate.h"

#include <functional>

#include "base/files/file.h"
#include "base/testing/testing.h"

namespace requant::calibrate_test {
namespace {

std::string Written(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  return path;
}

CalibrateJob Job() {
  CalibrateJob job;
  job.mutable_model()->set_path(Written("graph.pb", "graph"));
  job.mutable_dataset()->mutable_tfrecord()->add_files(Written("a", "records"));
  job.mutable_dataset()->mutable_tfrecord()->add_files(Written("b", "more"));
  job.set_batch_size(1024);
  return job;
}

std::string KeyOf(const CalibrateJob& job) {
  return CalibrationKey(job).value();
}

TEST(CalibrationKey, IsByContentNotByPathOrThreads) {
  CalibrateJob moved = Job();
  moved.mutable_model()->set_path(Written("moved.pb", "graph"));
  moved.mutable_dataset()->mutable_tfrecord()->set_files(
      0, Written("moved", "records"));
  moved.mutable_session()->set_intra_op_threads(1);
  EXPECT_EQ(KeyOf(moved), KeyOf(Job()));
}

TEST(CalibrationKey, ChangesWithAnythingThatChangesTheResult) {
  const std::string key = KeyOf(Job());
  const std::function<void(CalibrateJob*)> changes[] = {
      [](CalibrateJob* job) { job->set_batch_size(512); },
      [](CalibrateJob* job) { job->set_max_records(10); },
      [](CalibrateJob* job) { job->add_tensors("x"); },
      [](CalibrateJob* job) { job->set_moment_records(10); },
      [](CalibrateJob* job) { job->mutable_qdq()->add_op("MatMul"); },
      [](CalibrateJob* job) {
        job->mutable_dataset()->add_input()->add_feature("x");
      },
      [](CalibrateJob* job) {
        TfRecordSource& source = *job->mutable_dataset()->mutable_tfrecord();
        source.mutable_files()->SwapElements(0, 1);
      },
      [](CalibrateJob*) { Written("a", "other records"); },
      [](CalibrateJob*) { Written("graph.pb", "other graph"); }};
  for (const auto& change : changes) {
    CalibrateJob job = Job();
    change(&job);
    EXPECT_NE(KeyOf(job), key) << job.DebugString();
  }
}

TEST(CalibrationKey, ReadsTheArraysOfNumpyFiles) {
  CalibrateJob job;
  job.mutable_model()->set_path(Written("graph.pb", "graph"));
  auto& arrays = *job.mutable_dataset()->mutable_numpy()->mutable_arrays();
  arrays["x"] = Written("x.npy", "1");
  const std::string key = KeyOf(job);
  Written("x.npy", "2");
  EXPECT_NE(KeyOf(job), key);
}

TEST(CalibrationKey, NamesAMissingFile) {
  CalibrateJob job = Job();
  job.mutable_model()->set_path("/no/such/graph.pb");
  EXPECT_THAT(CalibrationKey(job), FailsWith(HasSubstr("/no/such/graph.pb")));
}

}  // namespace
}  // namespace requant::calibrate_test
