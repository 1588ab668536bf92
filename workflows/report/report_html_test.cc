#include "workflows/report/report_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "re2/re2.h"
#include "workflows/report/report_files.h"
#include "workflows/report/results.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::report_html_test {
namespace {

using testing::HasSubstr;
using testing::Not;

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

// Whatever the scripts hold, nothing in them may end their elements.
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

TEST(ReportHtml, TitleHasWorkflowAndOutcome) {
  EXPECT_THAT(ReportHtml(RefusedRun()),
              HasSubstr("<title>wide_deep: gate failed "));
}

TEST(ReportHtml, SaysTheOutcomeWithoutScripts) {
  EXPECT_THAT(ReportHtml(PassedRun()),
              HasSubstr("<noscript><p>The run's outcome: passed. "));
}

}  // namespace
}  // namespace requant::report_html_test
