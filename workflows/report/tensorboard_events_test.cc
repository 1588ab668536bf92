#include "workflows/report/tensorboard_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/record_format.h"
#include "tensorflow/core/framework/summary.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/util/event.pb.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_runs.h"

namespace requant::tensorboard_events_test {
namespace {

using tensorflow::Event;
using tensorflow::Summary;
using testing::HasSubstr;

std::vector<Event> EventsOf(const RunRecord& record) {
  const std::string file = EventFile(record);
  std::vector<Event> events;
  for (std::string_view rest = file; !rest.empty();) {
    const uint64_t size = RecordLength(rest).value_or(rest.size());
    EXPECT_LE(kRecordHeaderBytes + size + kRecordFooterBytes, rest.size());
    if (kRecordHeaderBytes + size + kRecordFooterBytes > rest.size()) break;
    const std::string_view data = rest.substr(kRecordHeaderBytes, size);
    EXPECT_TRUE(ChecksumIs(data, data.data() + data.size()));
    EXPECT_TRUE(events.emplace_back().ParseFromString(std::string(data)));
    rest.remove_prefix(kRecordHeaderBytes + size + kRecordFooterBytes);
  }
  return events;
}

// A tag's values by step.
std::map<int64_t, Summary::Value> ValuesOf(const std::vector<Event>& events,
                                           const std::string& tag) {
  std::map<int64_t, Summary::Value> values;
  for (const Event& event : events) {
    for (const Summary::Value& value : event.summary().value()) {
      if (value.tag() == tag) values[event.step()] = value;
    }
  }
  return values;
}

TEST(EventFile, StartsWithItsVersion) {
  const std::vector<Event> events = EventsOf(PassedRun());
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[0].wall_time(), 1794845400.123);
}

TEST(EventFile, HasFiguresByStage) {
  const auto accuracy = ValuesOf(EventsOf(PassedRun()), "quality/accuracy");
  EXPECT_EQ(accuracy.size(), 8);
  ASSERT_EQ(accuracy.count(11), 1);
  EXPECT_EQ(accuracy.at(11).simple_value(), 0.75946f);
  EXPECT_EQ(accuracy.at(11).metadata().plugin_data().plugin_name(), "scalars");
}

TEST(EventFile, HasTheSignalToNoiseOfEachLayer) {
  const auto layer =
      ValuesOf(EventsOf(PassedRun()),
               "layer_signal_to_noise_db/import/dnn/logits/MatMul");
  EXPECT_EQ(layer.size(), 5);
}

TEST(EventFile, LeavesOutWhatNoChartCanShow) {
  RunRecord record = PassedRun();
  record.mutable_stage(11)
      ->mutable_verification()
      ->mutable_result()
      ->mutable_layer(3)
      ->set_signal_to_noise(std::numeric_limits<double>::infinity());
  const auto layer = ValuesOf(
      EventsOf(record), "layer_signal_to_noise_db/import/dnn/logits/MatMul");
  EXPECT_EQ(layer.size(), 4);
}

TEST(EventFile, HasTheTableAsText) {
  const auto table = ValuesOf(EventsOf(PassedRun()), "stages");
  ASSERT_EQ(table.size(), 1);
  EXPECT_EQ(table.at(0).metadata().plugin_data().plugin_name(), "text");
  EXPECT_THAT(table.at(0).tensor().string_val(0),
              HasSubstr("| 11 | fuse | done | 75.9460 | -0.0160 | 99.483 | "
                        "0.003580 | 187310 | 56 | 4969116 | pass |\n"));
}

TEST(EventFile, TextsStayInTheirCells) {
  RunRecord record = OneStageRun();
  record.mutable_stage(0)->set_name("a|b\n<i>\xff");
  const auto table = ValuesOf(EventsOf(record), "stages");
  EXPECT_THAT(table.at(0).tensor().string_val(0),
              HasSubstr("| a&#124;b &lt;i&gt;\xef\xbf\xbd | failed |"));
}

TEST(EventFile, IsTheSameForTheSameRecord) {
  EXPECT_EQ(EventFile(PassedRun()), EventFile(PassedRun()));
}

TEST(EventFileName, HasTheRunsTime) {
  EXPECT_EQ(EventFileName(PassedRun()),
            "events.out.tfevents.1794845400.requant");
}

}  // namespace
}  // namespace requant::tensorboard_events_test
