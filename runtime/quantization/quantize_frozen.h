#ifndef REQUANT_RUNTIME_QUANTIZATION_QUANTIZE_FROZEN_H_
#define REQUANT_RUNTIME_QUANTIZATION_QUANTIZE_FROZEN_H_

// Takes a frozen float graph through calibration to an eight-bit graph.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/diff.h"
#include "runtime/quantization/quantize.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/preparation/prepare_graph.h"

namespace requant {

struct FrozenJob {
  // The graph, and the records to calibrate on. With ranges, of the dataset
  // only the prediction matters.
  CalibrateJob calibration;
  // The outputs of the graph are added to its `layers`.
  QuantizeParameters parameters;
  // Names of outputs beside the dataset's prediction.
  std::vector<std::string> outputs;
  // RangeTable files to take instead of calibrating.
  std::vector<std::string> ranges;
  // Whether the calibration's RangeTable is wanted.
  bool keep_ranges = false;
};

struct QuantizedFrozen {
  tensorflow::GraphDef graph;
  // The size of the graph as it was.
  GraphSize before;
  // Tells the work of each product, and in `nothing` why the graph stays float.
  PreparedGraph prepared;
  // 0 with ranges.
  int64_t calibration_records = 0;
  // The content of a RangeTable file, if it is wanted.
  std::string ranges;
  // Descriptions for users of what was done: the table of layers.
  std::vector<std::string> notes;
};

// Does all in this process: TensorFlow starts once, and neither the graph nor
// the ranges pass through a file. If there is nothing to quantize, the graph
// stays as it is.
absl::StatusOr<QuantizedFrozen> QuantizeFrozen(const FrozenJob& job);

}  // namespace requant

#endif  // REQUANT_RUNTIME_QUANTIZATION_QUANTIZE_FROZEN_H_
