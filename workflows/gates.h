#ifndef REQUANT_WORKFLOWS_GATES_H_
#define REQUANT_WORKFLOWS_GATES_H_

// Whether what an evaluation found is within a stage's limits, and what to say
// about it.

#include <vector>

#include "runtime/worker.pb.h"
#include "workflows/run_record.pb.h"
#include "workflows/workflow.pb.h"

namespace requant {

// Judges every gate that is set and not negative, and `expect` unless it is
// null, in the order of their fields. Against a baseline there is one gate
// more, "lost_values", with which a value that became infinite or NaN never
// passes. A gate that what it judges is missing for (layers that have no
// counterpart, an output without classes) does not pass either; only the
// accuracy of data without labels goes without a verdict.
std::vector<GateRecord> JudgeGates(const EvaluateResult& result,
                                   const Gates& gates, const Expect* expect);

// The worst; NONE when none was judged.
VerificationRecord::Verdict WorstVerdict(const std::vector<GateRecord>& gates);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_GATES_H_
