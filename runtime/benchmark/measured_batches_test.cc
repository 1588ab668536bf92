#include "runtime/benchmark/measured_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/testing/status_matchers.h"
#include "google/protobuf/text_format.h"
#include "runtime/datasets/testing/testing.h"

namespace requant::measured_batches_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMuch = 1 << 30;

// Returns the sizes of the batches of two that a file of `records` gives.
absl::StatusOr<std::vector<int64_t>> Sizes(int records, int64_t max_batches,
                                           int64_t max_bytes) {
  std::string file;
  for (int i = 0; i < records; ++i) file += RecordBytes(SmallExample(i, 0));
  const DatasetSpec spec = SpecFromText(absl::StrCat(
      "tfrecord { files: \"", WriteTestFile("small.tfrecords", file), "\" }",
      "input { feature: \"x\" placeholder: \"x\" dtype: \"float\" }"));
  BatchOptions options;
  options.batch_size = 2;
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<Batch> batches,
      PreloadBatches(spec, "data.textproto", options, max_batches, max_bytes));
  std::vector<int64_t> sizes;
  for (const Batch& batch : batches) sizes.push_back(batch.size);
  return sizes;
}

TEST(PreloadBatches, LeavesOutAPartialLastBatchUnlessItIsAllThereIs) {
  EXPECT_THAT(Sizes(5, kMuch, kMuch).value(), ElementsAre(2, 2));
  EXPECT_THAT(Sizes(1, kMuch, kMuch).value(), ElementsAre(1));
}

TEST(PreloadBatches, StopsAtTheNumberOfBatchesOrBytes) {
  EXPECT_THAT(Sizes(20, 3, kMuch).value(), ElementsAre(2, 2, 2));
  // But not before one batch; two floats each.
  EXPECT_THAT(Sizes(20, kMuch, 0).value(), ElementsAre(2));
  EXPECT_THAT(Sizes(20, kMuch, 9).value(), ElementsAre(2, 2));
}

TEST(PreloadBatches, RefusesADatasetWithoutRecords) {
  EXPECT_THAT(Sizes(0, kMuch, kMuch), FailsWith(HasSubstr("no records")));
}

TEST(PreloadBatches, RefusesRecordsThatTheGraphReadsItself) {
  const DatasetSpec spec =
      SpecFromText("in_graph { files: \"a\" initializer: \"init\" }");
  EXPECT_THAT(PreloadBatches(spec, "bert.textproto", {}, 1, kMuch),
              FailsWith(HasSubstr(
                  "bert.textproto: its records are read by the graph")));
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

// Returns what is recorded of a batch in which each of these nodes ran.
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
}  // namespace requant::measured_batches_test
