#include "runtime/benchmark/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "runtime/benchmark/step_events.h"

namespace requant::chrome_trace_test {
namespace {

using google::protobuf::Struct;
using testing::ElementsAre;

StepEvent Event(const std::string& node, int64_t start, int64_t nanoseconds) {
  StepEvent event;
  event.node = node;
  event.op = "Op";
  event.device = "CPU:0";
  event.start_nanoseconds = start;
  event.nanoseconds = nanoseconds;
  return event;
}

class ChromeTraceTest : public testing::Test {
 protected:
  // The events of the whole text, parsed.
  std::vector<Struct> Parse() {
    trace_.Finish();
    Struct json;
    const auto status =
        google::protobuf::util::JsonStringToMessage(text_, &json);
    EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << text_;
    std::vector<Struct> events;
    for (const auto& value :
         json.fields().at("traceEvents").list_value().values()) {
      events.push_back(value.struct_value());
    }
    return events;
  }

  static std::string Text(const Struct& event, const std::string& field) {
    return event.fields().at(field).string_value();
  }
  static double Number(const Struct& event, const std::string& field) {
    return event.fields().at(field).number_value();
  }

  // "name@ts+dur/pid.tid" of the complete events, batches excluded.
  std::vector<std::string> Operations() {
    std::vector<std::string> operations;
    for (const Struct& event : Parse()) {
      if (Text(event, "ph") != "X" || Text(event, "cat") != "op") continue;
      operations.push_back(
          absl::StrCat(Text(event.fields().at("args").struct_value(), "node"),
                       "@", Number(event, "ts"), "+", Number(event, "dur"), "/",
                       Number(event, "pid"), ".", Number(event, "tid")));
    }
    return operations;
  }

  std::string text_;
  ChromeTrace trace_{[this](std::string_view text) { text_.append(text); }};
};

TEST_F(ChromeTraceTest, GivesEachGraphAProcessThatStartsAtZero) {
  trace_.StartGraph("first.pb");
  trace_.AddBatch({Event("a", 5000, 1500)});
  trace_.AddBatch({Event("a", 9000, 1000)});
  trace_.StartGraph("second.pb");
  trace_.AddBatch({Event("b", 20000, 1000)});
  EXPECT_THAT(Operations(),
              ElementsAre("a@0+1.5/1.1", "a@4+1/1.1", "b@0+1/2.1"));
}

TEST_F(ChromeTraceTest, PutsNodesThatRunAtTheSameTimeInDifferentRows) {
  trace_.StartGraph("g");
  trace_.AddBatch({Event("a", 0, 5000), Event("b", 1000, 1000),
                   Event("c", 2000, 9000), Event("d", 5000, 1000)});
  EXPECT_THAT(Operations(),
              ElementsAre("a@0+5/1.1", "b@1+1/1.2", "c@2+9/1.2", "d@5+1/1.1"));
}

TEST_F(ChromeTraceTest, NamesProcessesAndRows) {
  trace_.StartGraph("first.pb");
  trace_.AddBatch({Event("a", 0, 1)});
  std::vector<std::string> names;
  for (const Struct& event : Parse()) {
    if (Text(event, "ph") != "M") continue;
    names.push_back(Text(event.fields().at("args").struct_value(), "name"));
  }
  EXPECT_THAT(names, ElementsAre("first.pb CPU:0", "batches", "nodes 1"));
}

TEST_F(ChromeTraceTest, SpansEachBatchFromItsFirstStartToItsLastEnd) {
  trace_.StartGraph("g");
  trace_.AddBatch({Event("a", 1000, 9000), Event("b", 2000, 1000)});
  std::vector<std::string> batches;
  for (const Struct& event : Parse()) {
    if (Text(event, "ph") != "X" || Text(event, "cat") != "batch") continue;
    batches.push_back(absl::StrCat(Text(event, "name"), "@",
                                   Number(event, "ts"), "+",
                                   Number(event, "dur")));
  }
  EXPECT_THAT(batches, ElementsAre("batch 1@0+9"));
}

TEST_F(ChromeTraceTest, EscapesNames) {
  trace_.StartGraph("a\"b\\c");
  trace_.AddBatch({Event("no\nde", 0, 1000)});
  EXPECT_THAT(Operations(), ElementsAre("no\nde@0+1/1.1"));
}

TEST_F(ChromeTraceTest, OfNothingIsValid) { EXPECT_TRUE(Parse().empty()); }

}  // namespace
}  // namespace requant::chrome_trace_test
