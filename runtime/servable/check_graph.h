#ifndef REQUANT_RUNTIME_SERVABLE_CHECK_GRAPH_H_
#define REQUANT_RUNTIME_SERVABLE_CHECK_GRAPH_H_

// Compares an eight-bit graph with the float graph that it was made of, on
// records that it was not calibrated on.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/evaluation.pb.h"
#include "runtime/evaluation/evaluation_report.h"
#include "runtime/servable/servable.h"
#include "runtime/session/job.pb.h"

namespace requant {

// Divides the job's records, and has the job calibrate on its part. With
// `exact` that part is `max_records`, however many there are; otherwise see
// DivideRecords. At most 4096 are held back.
absl::StatusOr<SignatureRecords> HoldBack(bool exact, CalibrateJob* job);

// Compares the serialized `graph` with the job's model on the records that were
// held back. Returns lines for users on what was found, or on why nothing was
// compared. The first of `outputs` is the prediction if the dataset names none.
std::string CheckGraph(const std::string& graph, const CalibrateJob& job,
                       const std::vector<std::string>& outputs,
                       const SignatureRecords& records,
                       const EvaluationNames& names);

// Returns the command that makes such a comparison on records that the user
// must name. Without a declaration, the first of `outputs` is the prediction.
std::string EvaluateCommand(const EvaluationNames& names,
                            const PredictionSpec& prediction,
                            const std::vector<std::string>& outputs);

// Returns a sentence on a loss that is certain and larger than usual, with what
// to try, or "".
std::string LossWarning(const Comparison& comparison);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SERVABLE_CHECK_GRAPH_H_
