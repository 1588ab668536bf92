#ifndef REQUANT_WORKFLOWS_REPORT_RESULTS_H_
#define REQUANT_WORKFLOWS_REPORT_RESULTS_H_

// What a run found, for people and programs to read. Nothing but the record
// decides any of it.

#include <string>

#include "workflows/report/figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// Returns results.json as one object on one line, with all that the record has
// but the workflow file's text, and the figures of workflows/report/figures.h.
// Numbers have full precision; what is not known, and numbers that JSON cannot
// hold, are null.
std::string ResultsJson(const RunRecord& record);

// Returns the part of it that manifests have too.
std::string FiguresJson(const StageFigures& figures);

// Returns results.csv: a line per stage, in the order of the file, under a line
// of column names; what is not known is empty. It is quoted by RFC 4180, and
// lines end in "\r\n".
std::string ResultsCsv(const RunRecord& record);

// Returns report.html, one file that needs no other and asks the network for
// nothing. Its numbers are those of ResultsJson, which it holds. Whatever the
// record's texts are, they appear as text.
std::string ReportHtml(const RunRecord& record);

// Returns the file that `tensorboard --logdir` shows: the stages' figures and
// the layers' signal to noise as scalars, a stage's step being its place in the
// workflow (from 0), and the run and the table of its stages as texts.
std::string EventFile(const RunRecord& record);

// Returns its name, "events.out.tfevents.<seconds since 1970>.requant".
std::string EventFileName(const RunRecord& record);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_RESULTS_H_
