#include "runtime/calibration/calibration_key.h"

#include <gtest/gtest.h>

#include <string>

#include "base/files/file.h"
#include "runtime/session/job.pb.h"

namespace requant::calibration_key_test {
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
  const auto key = CalibrationKey(job);
  EXPECT_TRUE(key.ok()) << key.status();
  return key.ok() ? *key : "";
}

TEST(CalibrationKey, IsByContentNotByPath) {
  CalibrateJob moved = Job();
  moved.mutable_model()->set_path(Written("moved.pb", "graph"));
  moved.mutable_dataset()->mutable_tfrecord()->set_files(
      0, Written("moved", "records"));
  EXPECT_EQ(KeyOf(moved), KeyOf(Job()));
}

TEST(CalibrationKey, IsNotByThreads) {
  CalibrateJob job = Job();
  job.mutable_session()->set_intra_op_threads(1);
  EXPECT_EQ(KeyOf(job), KeyOf(Job()));
}

TEST(CalibrationKey, ChangesWithAnythingThatChangesTheResult) {
  const std::string key = KeyOf(Job());
  CalibrateJob job = Job();
  job.set_batch_size(512);
  EXPECT_NE(KeyOf(job), key);
  job = Job();
  job.set_max_records(10);
  EXPECT_NE(KeyOf(job), key);
  job = Job();
  job.add_tensors("x");
  EXPECT_NE(KeyOf(job), key);
  job = Job();
  job.set_moment_records(10);
  EXPECT_NE(KeyOf(job), key);
  job = Job();
  job.mutable_dataset()->add_input()->set_feature("x");
  EXPECT_NE(KeyOf(job), key);
  job = Job();
  job.mutable_dataset()->mutable_tfrecord()->mutable_files()->SwapElements(0,
                                                                           1);
  EXPECT_NE(KeyOf(job), key);
  job = Job();
  Written("a", "other records");
  EXPECT_NE(KeyOf(job), key);
  job = Job();
  Written("graph.pb", "other graph");
  EXPECT_NE(KeyOf(job), key);
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
  const auto key = CalibrationKey(job);
  ASSERT_FALSE(key.ok());
  EXPECT_NE(std::string(key.status().message()).find("/no/such/graph.pb"),
            std::string::npos);
}

}  // namespace
}  // namespace requant::calibration_key_test
