#include "runtime/benchmark/step_events.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace requant::step_events_test {
namespace {

std::vector<StepEvent> Events(const std::string& text) {
  tensorflow::StepStats stats;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &stats));
  return StepEvents(stats);
}

TEST(StepEvents, AreOperationsInTheOrderOfTheirStart) {
  const auto events = Events(R"pb(
    dev_stats {
      device: "/job:localhost/replica:0/task:0/device:CPU:0"
      node_stats {
        node_name: "b"
        timeline_label: "b = Relu(a)"
        all_start_nanos: 2000
        op_start_rel_nanos: 10
        op_end_rel_nanos: 60
      }
      node_stats {
        node_name: "a"
        timeline_label: "[1.0MB 2.0MB] a = MatMul(x, w)"
        all_start_nanos: 1000
        op_start_rel_nanos: 0
        op_end_rel_nanos: 900
      }
    }
  )pb");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].node, "a");
  EXPECT_EQ(events[0].op, "MatMul");
  EXPECT_EQ(events[1].op, "Relu");
  EXPECT_EQ(events[1].device, "CPU:0");
  EXPECT_EQ(events[1].start_nanoseconds, 2010);
  EXPECT_EQ(events[1].nanoseconds, 50);
}

TEST(StepEvents, HaveTimesInMicrosecondsWhereThereAreNoOthers) {
  const auto events = Events(R"pb(
    dev_stats {
      device: "cpu"
      node_stats {
        node_name: "a"
        all_start_micros: 5
        op_start_rel_micros: 1
        op_end_rel_micros: 4
      }
    }
  )pb");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].device, "cpu");
  EXPECT_EQ(events[0].start_nanoseconds, 6000);
  EXPECT_EQ(events[0].nanoseconds, 3000);
}

TEST(StepEvents, HaveNoOperationWhereTheLabelNamesNone) {
  const auto events = Events(R"pb(
    dev_stats {
      node_stats { node_name: "recv" timeline_label: "edge_5 @ CPU:1" }
    }
  )pb");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].op, "");
}

}  // namespace
}  // namespace requant::step_events_test
