#ifndef REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_
#define REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_

// Calibrates a graph on a dataset.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ranges/range_table.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/model.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "transforms/layers/coverage.h"

namespace requant {

// Shapes in runs of the first batch.
struct FirstBatchShapes {
  // Tensors of the graph whose shapes are wanted; `inspect` may set it.
  std::vector<ProductOperand> wanted;
  // Those of the observed tensors, by "x:0".
  SeenShapes observed;
  // Those of the wanted tensors, in a run of one record if inputs can be cut.
  // Empty if not all of them can be computed in one run.
  SeenShapes operands;
};

// Returns a digest of everything that a calibration's result depends on: the
// contents of the model's and the dataset's files, in order, the declaration,
// the settings and this program's version. Paths, file times and thread counts
// are not included.
absl::StatusOr<std::string> CalibrationKey(const CalibrateJob& job);

// A graph in memory to calibrate instead of the job's model, whose path stands
// for it in messages.
struct GraphToCalibrate {
  const tensorflow::GraphDef& graph;
  // Its keys may name inputs and outputs.
  const tensorflow::SignatureDef& signature;
  // The nodes with which layers end, because their values are wanted.
  const std::vector<std::string>& outputs;
};

// Runs every batch through the model once and observes the tensors. Reports
// activities, progress and warnings (base/program/isolation.h). The table
// depends on the number of threads only if the model's values do. `inspect` may
// be empty. With `for_file`, the table records what it was made from
// (CalibrationKey). Fills in `shapes` if it is given.
absl::StatusOr<RangeTable> ObserveRanges(
    const CalibrateJob& job, const Model::GraphInspector& inspect,
    bool for_file, FirstBatchShapes* shapes = nullptr,
    const GraphToCalibrate* graph = nullptr);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_
