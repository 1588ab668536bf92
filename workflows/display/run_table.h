#ifndef REQUANT_WORKFLOWS_DISPLAY_RUN_TABLE_H_
#define REQUANT_WORKFLOWS_DISPLAY_RUN_TABLE_H_

// A run's stages as a table.

#include <string>

#include "workflows/run/run_record.pb.h"

namespace requant {

// A line per stage: time, accuracy, its difference from the baseline's in
// points with the 95 % interval, agreement, mean output change, mean squared
// error, records per second, size and verdict. Columns without a figure are
// left out, and so are the less important ones on a terminal that is narrower
// than the table. Names and figures are never cut. `columns` is the terminal's
// width; 0: there is no such limit.
std::string RunTable(const RunRecord& record, int columns, bool color);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_RUN_TABLE_H_
