#ifndef REQUANT_WORKFLOWS_REPORT_RESULTS_H_
#define REQUANT_WORKFLOWS_REPORT_RESULTS_H_

// What a run found, for programs to read: results.json and results.csv.

#include <string>

#include "workflows/report/stage_figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// One JSON object on one line, with all that the record has but the workflow
// file's text, and the figures of workflows/report/stage_figures.h. Numbers
// have full precision; what is not known, and numbers that JSON cannot hold,
// are null.
std::string ResultsJson(const RunRecord& record);

// A line per stage, in the order of the file, under a line of column names;
// what is not known is empty. Quoted as RFC 4180 has it, lines end in "\r\n".
std::string ResultsCsv(const RunRecord& record);

// The part of it that manifests have too.
std::string FiguresJson(const StageFigures& figures);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_RESULTS_H_
