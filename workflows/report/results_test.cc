#include "workflows/report/results.h"

#include <limits>
#include <map>
#include <string_view>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/records/record_format.h"
#include "base/testing/golden_cases.h"
#include "google/protobuf/json/json.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "graph/testing/testing.h"
#include "re2/re2.h"
#include "tensorflow/core/framework/summary.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/util/event.pb.h"
#include "workflows/report/report_files.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::results_test {
namespace {

using tensorflow::Event;
using tensorflow::Summary;

RunRecord ExampleRun(const std::string& name) {
  return name == "passed"        ? PassedRun()
         : name == "refused"     ? RefusedRun()
         : name == "interrupted" ? InterruptedRun()
         : name == "failed"      ? OneStageRun()
                                 : RunRecord();
}

// Returns what results.json has at the paths in the input's first line. The
// second line names the run, and the others are added to its record.
std::string Selected(const std::string& input) {
  std::vector<std::string> lines =
      absl::StrSplit(input, absl::MaxSplits('\n', 2));
  lines.resize(3);
  RunRecord record = ExampleRun(lines[1]);
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(lines[2], &record));
  const auto results = ParseJson(ResultsJson(record));
  std::vector<std::string> found;
  for (const std::string_view path : absl::StrSplit(lines[0], ' ')) {
    std::string& value = found.emplace_back(absl::StrCat(path, ": "));
    std::string json;
    EXPECT_TRUE(
        google::protobuf::json::MessageToJsonString(At(results, path), &json)
            .ok());
    absl::StrAppend(&value, json);
  }
  return absl::StrJoin(found, "\n");
}

TEST(ResultsJson, HasWhatTheRecordHas) {
  CheckGoldenCases("workflows/report/results_cases.txt", Selected);
}

TEST(ResultsCsv, HasALinePerStageWithAFieldPerColumn) {
  std::vector<std::vector<std::string>> lines;
  const std::string csv = ResultsCsv(PassedRun());
  for (std::string_view line : absl::StrSplit(csv, "\r\n", absl::SkipEmpty())) {
    lines.push_back(absl::StrSplit(line, ','));
    EXPECT_THAT(lines.back(), SizeIs(lines[0].size()));
  }
  ASSERT_THAT(lines, SizeIs(PassedRun().stage_size() + 1));
  const auto column = std::find(lines[0].begin(), lines[0].end(), "accuracy") -
                      lines[0].begin();
  ASSERT_LT(column, lines[0].size());
  EXPECT_EQ(lines[12][column], "0.75946") << "in full precision";
  EXPECT_EQ(lines[1][column], "");
}

TEST(ResultsCsv, QuotesTextsThatNeedIt) {
  RunRecord record = OneStageRun();
  record.mutable_stage(0)->set_name("a,\"b\"\nc");
  EXPECT_THAT(ResultsCsv(record),
              HasSubstr("\r\n\"a,\"\"b\"\"\nc\",freeze,failed,"));
}

TEST(ResultsFiles, AreTheSameForTheSameRecord) {
  EXPECT_EQ(ResultsJson(PassedRun()), ResultsJson(PassedRun()));
  EXPECT_EQ(EventFile(PassedRun()), EventFile(PassedRun()));
}

int Count(std::string_view text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

std::string DataOf(const std::string& html) {
  std::string data;
  EXPECT_TRUE(RE2::PartialMatch(
      html, "(?s)<script type=\"application/json\" id=\"run\">(.*?)</script>",
      &data));
  return data;
}

TEST(ReportHtml, HoldsTheResultsToTheDigit) {
  const RunRecord record = PassedRun();
  const auto data = ParseJson(DataOf(ReportHtml(record)));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
      At(data, "results"), ParseJson(ResultsJson(record))));
  EXPECT_EQ(At(data, "workflow_text").string_value(), record.file_content());
}

TEST(ReportHtml, LoadsNothing) {
  const std::string html = ReportHtml(PassedRun());
  EXPECT_THAT(html, HasSubstr("content=\"default-src 'none'; script-src "
                              "'sha256-"));
  EXPECT_EQ(Count(html, " src="), 0);
  EXPECT_EQ(Count(html, "<link "), 1);
  EXPECT_THAT(html, HasSubstr("<link rel=\"icon\" href=\"data:,\">"));
  EXPECT_EQ(Count(html, "url("), 0);
  EXPECT_EQ(Count(html, "@import"), 0);
}

TEST(ReportHtml, KeepsTheChartingLibrarysNotice) {
  const std::string html = ReportHtml(OneStageRun());
  EXPECT_THAT(html, HasSubstr("Chart.js Contributors"));
  EXPECT_THAT(html, HasSubstr("Permission is hereby granted"));
}

// Nothing in a script may end its element.
TEST(ReportHtml, ScriptsStayInTheirElements) {
  for (const std::string_view script : {kChartJs, kReportJs}) {
    EXPECT_EQ(Count(script, "</script"), 0);
    EXPECT_EQ(Count(script, "<!--"), 0);
  }
  EXPECT_EQ(Count(kReportCss, "</style"), 0);
  EXPECT_EQ(Count(kChartJsLicense, "--"), 0);
}

TEST(ReportHtml, NoTextOfTheRunIsMarkup) {
  const int scripts = Count(ReportHtml(PassedRun()), "<script");
  RunRecord record = PassedRun();
  AppendToEveryText("</script><script>x</script><!--&\"'\xe2\x80\xa8\xff",
                    &record);
  const std::string html = ReportHtml(record);
  EXPECT_EQ(Count(html, "<script"), scripts);
  EXPECT_EQ(Count(html, "</script"), scripts);
  EXPECT_EQ(Count(html, "<!--"), 1);
  EXPECT_EQ(Count(DataOf(html), "\xe2\x80\xa8"), 0);
  EXPECT_THAT(DataOf(html), Not(testing::ContainsRegex("[<>&]")));
}

TEST(ReportHtml, HasTheOutcomeInItsTitleAndWithoutScripts) {
  EXPECT_THAT(ReportHtml(RefusedRun()),
              HasSubstr("<title>wide_deep: gate failed "));
  EXPECT_THAT(ReportHtml(PassedRun()),
              HasSubstr("<noscript><p>The run's outcome: passed. "));
}

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

// Returns a tag's values by step.
std::map<int64_t, Summary::Value> ValuesOf(const RunRecord& record,
                                           const std::string& tag) {
  std::map<int64_t, Summary::Value> values;
  for (const Event& event : EventsOf(record)) {
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
  EXPECT_EQ(EventFileName(PassedRun()),
            "events.out.tfevents.1794845400.requant");
}

TEST(EventFile, HasFiguresByStage) {
  const auto accuracy = ValuesOf(PassedRun(), "quality/accuracy");
  EXPECT_EQ(accuracy.size(), 8);
  ASSERT_EQ(accuracy.count(11), 1);
  EXPECT_EQ(accuracy.at(11).simple_value(), 0.75946f);
  EXPECT_EQ(accuracy.at(11).metadata().plugin_data().plugin_name(), "scalars");
}

TEST(EventFile, HasTheSignalToNoiseOfEachLayerThatAChartCanShow) {
  constexpr char kTag[] = "layer_signal_to_noise_db/import/dnn/logits/MatMul";
  RunRecord record = PassedRun();
  EXPECT_EQ(ValuesOf(record, kTag).size(), 5);
  record.mutable_stage(11)
      ->mutable_verification()
      ->mutable_result()
      ->mutable_layer(3)
      ->set_signal_to_noise(std::numeric_limits<double>::infinity());
  EXPECT_EQ(ValuesOf(record, kTag).size(), 4);
}

TEST(EventFile, HasTheTableAsText) {
  const auto table = ValuesOf(PassedRun(), "stages");
  ASSERT_EQ(table.size(), 1);
  EXPECT_EQ(table.at(0).metadata().plugin_data().plugin_name(), "text");
  EXPECT_THAT(table.at(0).tensor().string_val(0),
              HasSubstr("| 11 | fuse | done | 75.9460 | -0.0160 | 99.483 | "
                        "0.003580 | 187310 | 56 | 4969116 | pass |\n"));
}

TEST(EventFile, TextsStayInTheirCells) {
  RunRecord record = OneStageRun();
  record.mutable_stage(0)->set_name("a|b\n<i>\xff");
  const auto table = ValuesOf(record, "stages");
  EXPECT_THAT(table.at(0).tensor().string_val(0),
              HasSubstr("| a&#124;b &lt;i&gt;\xef\xbf\xbd | failed |"));
}

}  // namespace
}  // namespace requant::results_test
