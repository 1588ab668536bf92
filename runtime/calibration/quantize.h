#ifndef REQUANT_RUNTIME_CALIBRATION_QUANTIZE_H_
#define REQUANT_RUNTIME_CALIBRATION_QUANTIZE_H_

// From a float graph to an eight-bit one, as worker processes do it.

#include "absl/status/statusor.h"
#include "runtime/session/worker.pb.h"
#include "runtime/session/worker_events.h"

namespace requant {

// Calibrates the job's model, unless it has ranges, and runs
//
//   quantize_static strip_unused_nodes quantize_embeddings strip_unused_nodes
//
// on it in this same process: TensorFlow starts once, and neither the graph nor
// the ranges pass through a file. A graph in which there is nothing to quantize
// is an error. Sends activities, progress, notes (the table of layers),
// warnings, and the graph.
absl::StatusOr<QuantizeResult> Quantize(const QuantizeJob& job,
                                        const EventSink& send);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_QUANTIZE_H_
