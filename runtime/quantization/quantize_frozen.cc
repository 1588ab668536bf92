#include "runtime/quantization/quantize_frozen.h"

#include <algorithm>
#include <future>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "ranges/range_table.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/model.h"
#include "transforms/layers/coverage.h"
#include "transforms/registry.h"

namespace requant {
namespace {

using tensorflow::GraphDef;

class FrozenQuantizer {
 public:
  explicit FrozenQuantizer(const FrozenJob& job)
      : job_(job), parameters_(job.parameters) {}

  absl::StatusOr<QuantizedFrozen> Run();

 private:
  absl::StatusOr<TransformRegistry*> Registry() const {
    return registry_.get();
  }
  absl::Status Prepare(bool may_change, GraphDef* graph);
  absl::Status Take(const Model& model, GraphDef* graph);
  absl::StatusOr<std::vector<std::string>> LoadAndCalibrate();
  absl::Status RunTransforms(const std::vector<std::string>& ranges_files);
  absl::Status TakeBack(const std::vector<std::string>& ranges_files);
  absl::Status StayFloat();

  const FrozenJob& job_;
  // With the outputs, and the products that are not to be exposed.
  QuantizeParameters parameters_;
  std::shared_future<absl::StatusOr<TransformRegistry*>> registry_;
  // They tell the work of each product.
  FirstBatchShapes shapes_;
  QuantizedFrozen result_;
};

absl::Status FrozenQuantizer::Prepare(bool may_change, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(result_.prepared,
                           PrepareGraph(
                               parameters_.layers, may_change,
                               [this] { return Registry(); }, graph));
  return absl::OkStatus();
}

// Takes the graph and its outputs from the model, and prepares the graph that
// goes into the session. Fails, with `nothing` set, if it stays in float.
absl::Status FrozenQuantizer::Take(const Model& model, GraphDef* graph) {
  std::vector<std::string> names = job_.outputs;
  const PredictionSpec& prediction = job_.calibration.dataset().prediction();
  if (!prediction.tensor().empty()) {
    names.insert(names.begin(), prediction.tensor());
  }
  REQUANT_ASSIGN_OR_RETURN(parameters_.layers.outputs,
                           OutputNodes(model, names));
  result_.before = SizeOf(*graph);
  // A SavedModel's session has the graph of its file.
  const bool may_change = SavedModelDirectory(model.path()).empty();
  REQUANT_RETURN_IF_ERROR(RunError(Prepare(may_change, graph), model.path(),
                                   "cannot be quantized"));
  result_.graph = *graph;
  const PreparedGraph& prepared = result_.prepared;
  if (!prepared.nothing.empty()) {
    return absl::CancelledError(prepared.nothing);
  }
  if (may_change) shapes_.wanted = UnknownOperands(prepared.products);
  return absl::OkStatus();
}

// Loads the model, and calibrates it unless there are ranges. Returns the
// ranges' files. Fails if the graph stays in float.
absl::StatusOr<std::vector<std::string>> FrozenQuantizer::LoadAndCalibrate() {
  const CalibrateJob& job = job_.calibration;
  const auto take = [this](const Model& model, GraphDef* graph) {
    return Take(model, graph);
  };
  if (!job_.ranges.empty()) {
    SetActivity(absl::StrCat("loading ", job.model().path()));
    REQUANT_RETURN_IF_ERROR(
        Model::Load(job.model(), job.session(), take).status());
    return job_.ranges;
  }
  REQUANT_ASSIGN_OR_RETURN(
      const RangeTable table,
      ObserveRanges(job, take, /*for_file=*/job_.keep_ranges, &shapes_));
  for (const auto& [name, entry] : table.entries()) {
    result_.calibration_records =
        std::max(result_.calibration_records, entry.records);
  }
  REQUANT_ASSIGN_OR_RETURN(std::string content, SerializeRangeTable(table));
  REQUANT_ASSIGN_OR_RETURN(std::string path, MemoryFile(content));
  if (job_.keep_ranges) result_.ranges = std::move(content);
  return std::vector<std::string>{std::move(path)};
}

// Quantizes the prepared graph.
absl::Status FrozenQuantizer::RunTransforms(
    const std::vector<std::string>& ranges_files) {
  std::vector<std::string> excluded;
  if (result_.prepared.changed && !job_.ranges.empty()) {
    REQUANT_ASSIGN_OR_RETURN(const RangeTable table,
                             ReadRangeTables(ranges_files));
    REQUANT_ASSIGN_OR_RETURN(
        excluded, LayersWithoutRanges(&result_.prepared, parameters_.layers,
                                      table, &result_.graph));
  }
  REQUANT_ASSIGN_OR_RETURN(const TransformRegistry* registry, Registry());
  return QuantizeGraph(parameters_, ranges_files, excluded, *registry,
                       &result_.notes, &result_.graph);
}

// Gives the products that were exposed in vain the form that they had: it may
// be faster. Quantizes the graph again.
absl::Status FrozenQuantizer::TakeBack(
    const std::vector<std::string>& ranges_files) {
  const std::vector<std::string> names = ExposedInVain(result_.graph);
  if (!result_.prepared.changed || names.empty()) return absl::OkStatus();
  std::vector<std::string>& excluded = parameters_.layers.excluded_nodes;
  excluded.insert(excluded.end(), names.begin(), names.end());
  result_.notes.clear();
  REQUANT_ASSIGN_OR_RETURN(result_.graph,
                           ReadGraph(job_.calibration.model().path()));
  REQUANT_RETURN_IF_ERROR(Prepare(/*may_change=*/true, &result_.graph));
  for (CountedProduct& product : result_.prepared.products) {
    if (absl::c_linear_search(names, product.name)) {
      product.in_float = "the ranges do not have it";
    }
  }
  if (!result_.prepared.nothing.empty()) return absl::OkStatus();
  return RunTransforms(ranges_files);
}

// Restores the float graph.
absl::Status FrozenQuantizer::StayFloat() {
  std::string& why = result_.prepared.nothing;
  if (why.empty()) why = "the outputs need no MatMul with constant weights";
  result_.notes.clear();
  if (job_.keep_ranges && result_.ranges.empty()) {
    REQUANT_ASSIGN_OR_RETURN(result_.ranges, SerializeRangeTable(RangeTable()));
  }
  REQUANT_ASSIGN_OR_RETURN(result_.graph,
                           ReadGraph(job_.calibration.model().path()));
  return absl::OkStatus();
}

absl::StatusOr<QuantizedFrozen> FrozenQuantizer::Run() {
  // The registry loads while the graph is calibrated.
  registry_ = std::async(std::launch::async, TransformRegistry::Get).share();
  const absl::StatusOr<std::vector<std::string>> ranges_files =
      LoadAndCalibrate();
  int64_t matmuls = 0;
  if (result_.prepared.nothing.empty()) {
    REQUANT_RETURN_IF_ERROR(ranges_files.status());
    matmuls = QuantizedMatMuls(result_.graph);
    REQUANT_RETURN_IF_ERROR(RunTransforms(*ranges_files));
    REQUANT_RETURN_IF_ERROR(TakeBack(*ranges_files));
  }
  if (!result_.prepared.nothing.empty() ||
      QuantizedMatMuls(result_.graph) == matmuls) {
    REQUANT_RETURN_IF_ERROR(StayFloat());
    return std::move(result_);
  }
  std::vector<CountedProduct>& products = result_.prepared.products;
  MarkLeftInFloat(result_.graph, &products);
  SetWork(shapes_.observed, shapes_.operands, &products);
  return std::move(result_);
}

}  // namespace

absl::StatusOr<QuantizedFrozen> QuantizeFrozen(const FrozenJob& job) {
  return FrozenQuantizer(job).Run();
}

}  // namespace requant
