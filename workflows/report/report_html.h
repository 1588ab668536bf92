#ifndef REQUANT_WORKFLOWS_REPORT_REPORT_HTML_H_
#define REQUANT_WORKFLOWS_REPORT_REPORT_HTML_H_

// The report of a run, for people: report.html.

#include <string>

#include "workflows/run/run_record.pb.h"

namespace requant {

// One HTML file that needs no other and asks the network for nothing. Its
// numbers are those of ResultsJson, which it holds. Whatever the record's texts
// are, they appear as text.
std::string ReportHtml(const RunRecord& record);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_REPORT_HTML_H_
