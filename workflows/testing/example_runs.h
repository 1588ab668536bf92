#ifndef REQUANT_WORKFLOWS_TESTING_EXAMPLE_RUNS_H_
#define REQUANT_WORKFLOWS_TESTING_EXAMPLE_RUNS_H_

// Records of runs as the runner makes them, for tests of what is made from
// them. Figures are plausible, not measured.

#include <string_view>

#include "workflows/run/run_record.pb.h"

namespace requant {

// Returns the ten steps of the Wide & Deep recipe, all verified, with a
// benchmark at the end; two stages come from the cache.
RunRecord PassedRun();

// Returns PassedRun stopped at "fuse" by two gates; the benchmark did not run.
RunRecord RefusedRun();

// Returns PassedRun interrupted while "freeze_min" was verified.
RunRecord InterruptedRun();

// Returns a run of one stage, which failed, and nothing else.
RunRecord OneStageRun();

// Appends `text` to every text of the record.
void AppendToEveryText(std::string_view text, RunRecord* record);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_TESTING_EXAMPLE_RUNS_H_
