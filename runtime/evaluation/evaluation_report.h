#ifndef REQUANT_RUNTIME_EVALUATION_EVALUATION_REPORT_H_
#define REQUANT_RUNTIME_EVALUATION_EVALUATION_REPORT_H_

// What `requant evaluate` prints.

#include <optional>
#include <string>

#include "runtime/evaluation.pb.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {

// Returns the verdict of a limit in points; nothing when there is no accuracy
// to judge: without labels or classes.
std::optional<Verdict> JudgeGate(const Comparison& comparison, double max_drop);

// What was evaluated, as the user named it.
struct EvaluationNames {
  std::string graph;
  std::string dataset;
  std::string baseline;
};

// Returns the end of the published recipe's log, line for line as scripts parse
// it: numbers are rounded to the original's number of decimals and written
// without trailing zeros ("3.98"). The two lines on accuracy are left out when
// there is none.
std::string LogTail(const EvaluateResult& result);

// Returns what the log tail has no lines for: AUC, log loss, perplexity (of
// predictions at each position), RMSE, how the predictions were read if that
// was guessed, and, if there are any, bad records and NaN or infinite
// predictions. Each has a line, which ends in a newline.
std::string FurtherMetrics(const EvaluateResult& result);

// Returns a few lines on the graph against its baseline; "" without one.
std::string ComparisonText(const EvaluateResult& result,
                           const EvaluationNames& names);

// Returns a table with a line per layer, the worst signal-to-noise first, and a
// line on each that has no counterpart; "" without layers.
std::string LayersText(const EvaluateResult& result);

// Returns everything as one JSON object and a newline. What is not known, and
// numbers that JSON cannot hold, are null. A negative `max_drop` is no gate.
std::string EvaluationJson(const EvaluateResult& result,
                           const EvaluationNames& names, double max_drop);

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_EVALUATION_REPORT_H_
