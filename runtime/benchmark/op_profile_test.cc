#include "runtime/benchmark/op_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace requant::op_profile_test {
namespace {

using testing::ElementsAre;

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

// Adds a batch in which each of these nodes ran.
void AddBatch(const std::vector<std::string>& nodes, OpProfile* profile) {
  tensorflow::StepStats stats;
  for (const std::string& node : nodes) {
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        node, stats.add_dev_stats()->add_node_stats()));
  }
  profile->Add(stats);
}

std::string Node(const std::string& name, const std::string& op,
                 int microseconds) {
  return absl::StrCat(
      "node_name: '", name, "' timeline_label: '[1.0MB] ", name, " = ", op,
      "(x, w)' all_start_nanos: 2000 ",
      "op_start_rel_nanos: 10 op_end_rel_nanos: ", 1000 * microseconds + 10);
}

TEST(OpProfile, AveragesOverBatches) {
  OpProfile profile;
  AddBatch({Node("a", "Add", 1), Node("m", "MatMul", 5)}, &profile);
  AddBatch({Node("a", "Add", 3), Node("m", "MatMul", 5), Node("b", "Add", 4)},
           &profile);
  const ProfileMessage result = profile.Result(/*max_nodes=*/2);
  EXPECT_EQ(result.batches(), 2);
  EXPECT_DOUBLE_EQ(result.operation_microseconds(), 9);
  EXPECT_THAT(Lines(result.type()),
              ElementsAre("MatMul : 1 x, 5 us", "Add : 1.5 x, 4 us"));
}

TEST(OpProfile, KeepsTheCostliestNodes) {
  OpProfile profile;
  AddBatch({Node("cheap", "Add", 1), Node("z", "Add", 7), Node("y", "Add", 7),
            Node("dear", "Mul", 9)},
           &profile);
  EXPECT_THAT(Lines(profile.Result(/*max_nodes=*/3).node()),
              ElementsAre("Mul dear: 1 x, 9 us", "Add y: 1 x, 7 us",
                          "Add z: 1 x, 7 us"));
}

TEST(OpProfile, TakesMicrosecondsAndNamesWhatHasNoOperation) {
  OpProfile profile;
  AddBatch({"node_name: 'recv' timeline_label: 'edge_5 @ CPU:1' "
            "all_start_micros: 5 op_start_rel_micros: 1 op_end_rel_micros: 4"},
           &profile);
  EXPECT_THAT(Lines(profile.Result(1).node()),
              ElementsAre("(other) recv: 1 x, 3 us"));
}

TEST(OpProfile, OfNothingIsEmpty) {
  EXPECT_EQ(OpProfile().Result(5).type_size(), 0);
}

}  // namespace
}  // namespace requant::op_profile_test
