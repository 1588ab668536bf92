#ifndef REQUANT_WORKFLOWS_REPORT_RESULTS_H_
#define REQUANT_WORKFLOWS_REPORT_RESULTS_H_

// What a run found, for people and programs to read. Nothing but the record
// decides any of it.

#include <string>

#include "workflows/report/figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// Returns results.json as one object on one line: everything in the record but
// the workflow file's text, and the figures of workflows/report/figures.h.
// Numbers have full precision; unknown values, and numbers that JSON cannot
// hold, are null.
std::string ResultsJson(const RunRecord& record);

// Returns a stage's figures as results.json has them.
std::string FiguresJson(const StageFigures& figures);

// Returns results.csv: a line of column names and a line per stage, in the
// order of the file. Unknown values are empty. Quoting follows RFC 4180, and
// lines end in "\r\n".
std::string ResultsCsv(const RunRecord& record);

// Returns report.html, a single file that needs no other and no network. It
// contains the ResultsJson that it shows. The record's texts always appear as
// text, never as markup.
std::string ReportHtml(const RunRecord& record);

// Returns the file that `tensorboard --logdir` shows: the stages' figures and
// the layers' signal to noise as scalars, and the run and the table of its
// stages as texts. A stage's step is its place in the workflow, from 0.
std::string EventFile(const RunRecord& record);

// Returns "events.out.tfevents.<seconds since 1970>.requant".
std::string EventFileName(const RunRecord& record);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_RESULTS_H_
