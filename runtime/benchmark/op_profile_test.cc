#include "runtime/benchmark/op_profile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "runtime/benchmark/step_events.h"

namespace requant::op_profile_test {
namespace {

StepEvent Event(const std::string& node, const std::string& op,
                int64_t nanoseconds) {
  StepEvent event;
  event.node = node;
  event.op = op;
  event.nanoseconds = nanoseconds;
  return event;
}

TEST(OpProfile, AveragesOverBatches) {
  OpProfile profile;
  profile.Add({Event("a", "Add", 1000), Event("m", "MatMul", 5000)});
  profile.Add({Event("a", "Add", 3000), Event("m", "MatMul", 5000),
               Event("b", "Add", 4000)});
  const ProfileMessage result = profile.Result(/*max_nodes=*/2);
  EXPECT_EQ(result.batches(), 2);
  EXPECT_DOUBLE_EQ(result.operation_microseconds(), 9);
  ASSERT_EQ(result.type_size(), 2);
  EXPECT_EQ(result.type(0).op(), "MatMul");
  EXPECT_DOUBLE_EQ(result.type(0).microseconds(), 5);
  EXPECT_DOUBLE_EQ(result.type(0).calls(), 1);
  EXPECT_EQ(result.type(1).op(), "Add");
  EXPECT_DOUBLE_EQ(result.type(1).microseconds(), 4);
  EXPECT_DOUBLE_EQ(result.type(1).calls(), 1.5);
}

TEST(OpProfile, KeepsTheCostliestNodes) {
  OpProfile profile;
  profile.Add({Event("cheap", "Add", 1), Event("z", "Add", 7),
               Event("y", "Add", 7), Event("dear", "Mul", 9)});
  const ProfileMessage result = profile.Result(/*max_nodes=*/3);
  ASSERT_EQ(result.node_size(), 3);
  EXPECT_EQ(result.node(0).node(), "dear");
  EXPECT_EQ(result.node(0).op(), "Mul");
  EXPECT_EQ(result.node(1).node(), "y");
  EXPECT_EQ(result.node(2).node(), "z");
}

TEST(OpProfile, NamesWhatHasNoOperation) {
  OpProfile profile;
  profile.Add({Event("recv", "", 1)});
  EXPECT_EQ(profile.Result(1).type(0).op(), "(other)");
}

TEST(OpProfile, OfNothingIsEmpty) {
  EXPECT_EQ(OpProfile().Result(5).type_size(), 0);
}

}  // namespace
}  // namespace requant::op_profile_test
