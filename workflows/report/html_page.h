#ifndef REQUANT_WORKFLOWS_REPORT_HTML_PAGE_H_
#define REQUANT_WORKFLOWS_REPORT_HTML_PAGE_H_

// What all pages have in common: one file in the report's style that needs no
// other and no network.

#include <string>
#include <string_view>
#include <vector>

namespace requant {

// Returns the text as HTML that shows it, and never as markup.
std::string EscapedHtml(std::string_view text);

// Returns a page. `title` is a text, `version` Requant's, and `body` is HTML,
// in which only `scripts` run.
std::string HtmlPage(std::string_view title, std::string_view version,
                     std::string_view body,
                     const std::vector<std::string_view>& scripts = {});

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_HTML_PAGE_H_
