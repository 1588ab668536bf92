#ifndef REQUANT_RUNTIME_CALIBRATION_QUANTIZE_H_
#define REQUANT_RUNTIME_CALIBRATION_QUANTIZE_H_

// The quantization of a float graph to an eight-bit one.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/diff.h"
#include "runtime/session/job.pb.h"

namespace requant {

struct QuantizeOptions {
  // Its model is quantized, and its dataset's prediction is an output. With
  // `ranges_files` nothing is run, and there need be no dataset.
  CalibrateJob calibration;
  std::vector<std::string> ranges_files;
  // Whether the calibration's RangeTable is wanted too.
  bool keep_ranges = false;
  // Further outputs of the graph.
  std::vector<std::string> outputs;
  // Parameters of the transform quantize_static.
  std::string target;
  std::string method;
  double value_percentile = 0;
  std::vector<std::string> excluded_ops;
  std::vector<std::string> excluded_nodes;
};

struct QuantizedGraph {
  // 0 with `ranges_files`.
  int64_t calibration_records = 0;
  GraphSize before;
  GraphSize after;
  // What was done, for people to read: the table of layers.
  std::vector<std::string> notes;
  // The files' contents; `ranges` is empty unless they are kept.
  std::string graph;
  std::string ranges;
};

// Calibrates the model, unless there are ranges, and runs
//
//   quantize_static strip_unused_nodes quantize_embeddings strip_unused_nodes
//
// on it in this same process: TensorFlow starts once, and neither the graph nor
// the ranges pass through a file. Fails if there is nothing to quantize in the
// graph. Reports activities, progress and warnings
// (base/program/isolation.h).
absl::StatusOr<QuantizedGraph> Quantize(const QuantizeOptions& options);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_QUANTIZE_H_
