#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/sha256.h"
#include "base/json.h"
#include "workflows/report/figures.h"
#include "workflows/report/report_files.h"
#include "workflows/report/results.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

std::string EscapedHtml(std::string_view text) {
  return absl::StrReplaceAll(ValidUtf8(text), {{"&", "&amp;"},
                                               {"<", "&lt;"},
                                               {">", "&gt;"},
                                               {"\"", "&quot;"},
                                               {"'", "&#39;"}});
}

// JSON that may stand in a script element: nothing in it can end the element or
// open a comment. The two separators end lines for readers older than ES2019.
std::string JsonForScript(std::string_view json) {
  return absl::StrReplaceAll(json, {{"<", "\\u003c"},
                                    {">", "\\u003e"},
                                    {"&", "\\u0026"},
                                    {"\xe2\x80\xa8", "\\u2028"},
                                    {"\xe2\x80\xa9", "\\u2029"}});
}

// Nothing is loaded from anywhere, and no script runs but these two.
std::string ContentPolicy() {
  const auto source = [](std::string_view script) {
    return absl::StrCat("'sha256-", Sha256Base64(script), "'");
  };
  return absl::StrCat("default-src 'none'; script-src ", source(kChartJs), " ",
                      source(kReportJs),
                      "; style-src 'unsafe-inline'; img-src data:; "
                      "base-uri 'none'; form-action 'none'");
}

}  // namespace

std::string ReportHtml(const RunRecord& record) {
  const std::string data =
      JsonObject({{"results", ResultsJson(record)},
                  {"workflow_text", JsonString(record.file_content())}});
  const std::string outcome =
      absl::StrReplaceAll(OutcomeName(record.outcome()), {{"_", " "}});
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"",
      ContentPolicy(),
      "\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"generator\" content=\"requant ",
      EscapedHtml(record.tool().version()),
      "\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
      EscapedHtml(record.workflow()), ": ", outcome,
      " – Requant report</title>\n<style>\n", kReportCss,
      "</style>\n</head>\n<body>\n<noscript><p>The run's outcome: ", outcome,
      ". This page is drawn by a script; the same numbers are in results.csv "
      "and results.json beside it.</p></noscript>\n"
      "<script type=\"application/json\" id=\"run\">",
      JsonForScript(data), "</script>\n<!--\n", kChartJsLicense,
      "-->\n<script>", kChartJs, "</script>\n<script>", kReportJs,
      "</script>\n</body>\n</html>\n");
}

}  // namespace requant
