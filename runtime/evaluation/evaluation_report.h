#ifndef REQUANT_RUNTIME_EVALUATION_EVALUATION_REPORT_H_
#define REQUANT_RUNTIME_EVALUATION_EVALUATION_REPORT_H_

// Formats what `requant evaluate` prints.

#include <optional>
#include <string>

#include "runtime/evaluation.pb.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {

// Returns the verdict for a limit in percentage points. Returns nothing if
// there is no accuracy to judge, i.e. without labels or classes.
std::optional<Verdict> JudgeGate(const Comparison& comparison, double max_drop);

// The user's names for what was evaluated.
struct EvaluationNames {
  std::string graph;
  std::string dataset;
  std::string baseline;
};

// Returns the end of the published recipe's log, line for line as scripts parse
// it: numbers are rounded to the original's number of decimals and written
// without trailing zeros ("3.98"). Omits the two lines on accuracy if there is
// none.
std::string LogTail(const EvaluateResult& result);

// Returns a line, with a newline, for each figure that the log tail lacks: AUC,
// log loss, perplexity (of predictions at each position), RMSE, how the
// predictions were read if that was guessed (and ComparisonText does not say
// it), and any bad records and NaN or infinite predictions.
std::string FurtherMetrics(const EvaluateResult& result);

// Returns a few lines on the graph compared with its baseline; "" without one.
std::string ComparisonText(const EvaluateResult& result,
                           const EvaluationNames& names);

// Returns a table with a line per layer, in ascending order of signal-to-noise,
// and a line on each layer without a counterpart; "" without layers.
std::string LayersText(const EvaluateResult& result);

// Returns everything as one JSON object and a newline. Values that are unknown
// or that JSON cannot hold are null. A negative `max_drop` means no gate.
std::string EvaluationJson(const EvaluateResult& result,
                           const EvaluationNames& names, double max_drop);

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_EVALUATION_REPORT_H_
