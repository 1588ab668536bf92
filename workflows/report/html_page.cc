#include "workflows/report/html_page.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/sha256.h"
#include "base/json.h"
#include "workflows/report/report_files.h"

namespace requant {
namespace {

// Returns a policy that forbids loading anything, and all other scripts.
std::string ContentPolicy(const std::vector<std::string_view>& scripts) {
  std::string sources = scripts.empty() ? "" : "script-src";
  for (const std::string_view script : scripts) {
    absl::StrAppend(&sources, " 'sha256-", Sha256Base64(script), "'");
  }
  return absl::StrCat("default-src 'none'; ", sources,
                      scripts.empty() ? "" : "; ",
                      "style-src 'unsafe-inline'; img-src data:; "
                      "base-uri 'none'; form-action 'none'");
}

}  // namespace

std::string EscapedHtml(std::string_view text) {
  return absl::StrReplaceAll(ValidUtf8(text), {{"&", "&amp;"},
                                               {"<", "&lt;"},
                                               {">", "&gt;"},
                                               {"\"", "&quot;"},
                                               {"'", "&#39;"}});
}

std::string HtmlPage(std::string_view title, std::string_view version,
                     std::string_view body,
                     const std::vector<std::string_view>& scripts) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"",
      ContentPolicy(scripts),
      "\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"generator\" content=\"requant ",
      EscapedHtml(version), "\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
      EscapedHtml(title), "</title>\n<style>\n", kReportCss,
      "</style>\n</head>\n<body>\n", body, "</body>\n</html>\n");
}

}  // namespace requant
