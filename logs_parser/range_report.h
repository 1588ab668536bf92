#ifndef REQUANT_LOGS_PARSER_RANGE_REPORT_H_
#define REQUANT_LOGS_PARSER_RANGE_REPORT_H_

// Ranges for people and for programs to read.

#include <string>
#include <vector>

#include "logs_parser/log_parser.h"
#include "ranges/range_choice.h"

namespace requant {

// What in `logs` will hurt later, one sentence each: values that are not
// finite, inverted ranges, drift, too few observations, malformed records.
std::vector<std::string> RangeWarnings(const ParsedLogs& logs,
                                       const Percentiles& percentiles);

// A row for either side (min, max) of every entry that has values there:
// count, lowest, 5th, 50th and 95th percentile and highest of the values, and
// the one that the freeze transforms take. Below the rows, what was read.
std::string RangesAsTable(const ParsedLogs& logs,
                          const Percentiles& percentiles);

// The same rows with a header line and numbers that read back exactly.
std::string RangesAsCsv(const ParsedLogs& logs, const Percentiles& percentiles);

// One object with everything: entries, faults, files, malformed, warnings.
std::string RangesAsJson(const ParsedLogs& logs,
                         const Percentiles& percentiles);

}  // namespace requant

#endif  // REQUANT_LOGS_PARSER_RANGE_REPORT_H_
