#ifndef REQUANT_WORKFLOWS_DISPLAY_RUN_CONCLUSION_H_
#define REQUANT_WORKFLOWS_DISPLAY_RUN_CONCLUSION_H_

// What is printed when a run has ended.

#include <string>

#include "workflows/run/run_record.pb.h"

namespace requant {

struct RunConclusionOptions {
  // The terminal's width; 0: it is none.
  int columns = 0;
  bool color = false;
  // The report's path, as people would type it; empty: there is none.
  std::string report;
  // The command that goes on where the run ended; empty: none is told.
  std::string resume;
  // What serving the result takes; empty: nothing is said.
  std::string serving;
};

// The table of the stages, the verdict in a sentence, and what belongs to it:
// the result against its baseline; by how much which gate failed, what to try
// and how to look closer; why a task failed; or how to go on.
std::string RunConclusion(const RunRecord& record,
                          const RunConclusionOptions& options);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_RUN_CONCLUSION_H_
