#include "runtime/calibration/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/files/sha256.h"
#include "base/process/machine.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/terminal/progress.h"
#include "base/version.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "runtime/calibration/calibration_report.h"
#include "runtime/calibration/observed_entries.h"
#include "runtime/calibration/value_observer.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/session/model.h"
#include "runtime/statistics/prediction_tensor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/calibration_tensors.h"
#include "transforms/layers/graph_builder.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::Tensor;

// The number of weights that are fetched at once.
constexpr size_t kWeightsPerPass = 16;

// The results of one run of the graph, and the records that it was for.
struct RunValues {
  std::vector<Tensor> fetched;
  int64_t first_record = 0;
  int64_t records = 0;
};

// Observes one entry of the table.
class EntryObserver {
 public:
  EntryObserver(const ObservedEntry& entry, const MomentOptions& moments)
      : entry_(entry),
        name_(TensorText(entry.tensor.node, entry.tensor.output)),
        values_(name_, moments) {}

  const ObservedEntry& entry() const { return entry_; }

  // Adds `tensors`, those that the run fetched for this entry.
  absl::Status Add(const RunValues& run, absl::Span<const Tensor> tensors) {
    std::vector<absl::Span<const float>> outputs;
    buffers_.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto values = FloatValues(tensors[i], &buffers_[i]);
      if (!values.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the tensor ", name_,
                         " has no range: ", values.status().message()));
      }
      outputs.push_back(*values);
    }
    if (entry_.tensor.kind != ObservedKind::kTensor) {
      AddComputedRange(run, outputs);
      return absl::OkStatus();
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      const int dims = tensors[i].dims();
      const int64_t channels = dims < 2 ? 0 : tensors[i].dim_size(dims - 1);
      values_.Add({outputs[i], channels, run.first_record, run.records});
    }
    return absl::OkStatus();
  }

  RangeEntry Take() {
    return entry_.tensor.kind == ObservedKind::kTensor ? values_.Take()
                                                       : std::move(ranges_);
  }

 private:
  void AddComputedRange(const RunValues& run,
                        const std::vector<absl::Span<const float>>& outputs) {
    const std::string place =
        absl::StrCat("tensor ", name_, " record ", run.first_record);
    if (entry_.tensor.kind == ObservedKind::kMin) {
      ObserveMin(outputs[0], place, &ranges_);
    } else if (entry_.tensor.kind == ObservedKind::kMax) {
      ObserveMax(outputs[0], place, &ranges_);
    } else {
      ObserveRange(outputs[0], outputs[1], place, &ranges_);
    }
    records_ += run.records;
    ranges_.records = records_;
  }

  const ObservedEntry entry_;
  const std::string name_;
  std::vector<std::vector<float>> buffers_;
  ValueObserver values_;
  RangeEntry ranges_;
  int64_t records_ = 0;
};

// What one run of the graph observes.
struct ObservationPass {
  std::unique_ptr<ModelFunction> function;
  std::vector<EntryObserver*> observers;
  // Whether the values are the same in every batch.
  bool once = false;
};

class CalibrationRun {
 public:
  CalibrationRun(const CalibrateJob& job, const Model::GraphInspector& inspect,
                 FirstBatchShapes* shapes, const GraphToCalibrate* graph)
      : job_(job),
        inspect_(inspect),
        shapes_(shapes),
        graph_(graph),
        progress_({"calibrating", "records", job.max_records()},
                  WorkProgress()) {}

  absl::StatusOr<RangeTable> Run() {
    if (job_.dataset().has_in_graph()) {
      return absl::UnimplementedError(
          "a calibration feeds its records, and this dataset's graph reads its "
          "own (in_graph): declare the records as tfrecord, csv, jsonl or "
          "numpy and feed the placeholders after the reading");
    }
    REQUANT_RETURN_IF_ERROR(Load());
    REQUANT_RETURN_IF_ERROR(RunBatches());
    progress_.Finish();
    return TakeTable();
  }

 private:
  absl::Status Load() {
    SetActivity(absl::StrCat("loading ", job_.model().path()));
    std::vector<ObservedEntry> entries;
    GraphDef added;
    const auto choose = [&](const Model& model,
                            GraphDef* graph) -> absl::Status {
      if (inspect_) REQUANT_RETURN_IF_ERROR(inspect_(model, graph));
      REQUANT_ASSIGN_OR_RETURN(
          entries, job_.has_qdq()
                       ? ChooseQdqEntries(job_, model, *graph, &added)
                       : ChooseEntries(job_, model, MoreOutputs(), graph));
      return AddShapeNodes(graph);
    };
    REQUANT_ASSIGN_OR_RETURN(
        model_, graph_ == nullptr
                    ? Model::Load(job_.model(), job_.session(), choose,
                                  /*extendable=*/job_.has_qdq())
                    : Model::Make(job_.model().path(), graph_->graph,
                                  graph_->signature, job_.session(), choose));
    REQUANT_ASSIGN_OR_RETURN(inputs_, model_->ConnectInputs(job_.dataset()));
    if (job_.has_qdq()) {
      REQUANT_RETURN_IF_ERROR(RunError(model_->session().Extend(added),
                                       model_->path(),
                                       "its functions cannot be observed"));
    }
    const int threads = job_.session().intra_op_threads();
    for (const ObservedEntry& entry : entries) {
      MomentOptions moments;
      moments.records = entry.tensor.layer_input ? job_.moment_records() : 0;
      moments.threads = threads > 0 ? threads : ReadCoreLimits().usable();
      observers_.push_back(std::make_unique<EntryObserver>(entry, moments));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> MoreOutputs() const {
    return graph_ == nullptr ? std::vector<std::string>() : graph_->outputs;
  }

  // Adds a node for each wanted shape.
  absl::Status AddShapeNodes(GraphDef* graph) {
    if (shapes_ == nullptr || shapes_->wanted.empty()) return absl::OkStatus();
    REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
    for (const ProductOperand& operand : shapes_->wanted) {
      REQUANT_ASSIGN_OR_RETURN(
          const tensorflow::NodeDef* node,
          index.Add(MakeNode(
              index.FreeName("requant/shape"), "Shape", {operand.tensor},
              {{"T", operand.type}, {"out_type", tensorflow::DT_INT64}})));
      shape_fetches_.push_back(TensorText(node->name(), 0));
    }
    return absl::OkStatus();
  }

  absl::Status RunBatches() {
    BatchOptions options;
    options.batch_size = job_.batch_size();
    options.max_records = job_.max_records();
    options.max_bad_records = job_.max_bad_records();
    BadRecordWarnings bad_records("calibrating");
    bad_records.Watch(&options);
    SetActivity(absl::StrCat("reading ", DescribeFiles(job_.dataset())));
    REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> source,
                             OpenBatchSource(job_.dataset(), options));
    SetActivity(absl::StrCat("running ", model_->path()));
    Batch batch;
    while (true) {
      REQUANT_ASSIGN_OR_RETURN(const bool more, source->Next(&batch));
      if (!more) break;
      progress_.SetTotal(source->EstimatedRecords());
      REQUANT_RETURN_IF_ERROR(RunBatch(batch));
      progress_.Update(records_);
    }
    REQUANT_RETURN_IF_ERROR(FinishObserving());
    bad_records.Finish();
    return absl::OkStatus();
  }

  absl::Status RunBatch(const Batch& batch) {
    const bool is_first = records_ == 0;
    if (is_first) {
      // TensorFlow rewrites the graph for each pass.
      SetActivity(absl::StrCat("loading ", model_->path()));
      REQUANT_RETURN_IF_ERROR(PlanPasses(batch));
      FindShapes(batch);
      SetActivity(absl::StrCat("running ", model_->path()));
    }
    for (const ObservationPass& pass : passes_) {
      REQUANT_RETURN_IF_ERROR(RunPass(pass, batch));
      // A pass of a big model may take a minute, so this is a sign of life.
      progress_.Update(records_);
    }
    if (is_first) {
      passes_.erase(
          std::remove_if(passes_.begin(), passes_.end(),
                         [](const ObservationPass& pass) { return pass.once; }),
          passes_.end());
    }
    records_ += batch.size;
    return absl::OkStatus();
  }

  // Divides the tensors among passes by the memory they take in a run of one
  // record. If they fit, there is one pass; for a big model, several passes run
  // the graph more often but hold at most held_bytes each.
  absl::Status PlanPasses(const Batch& batch) {
    std::vector<EntryObserver*> weights, others;
    for (const auto& observer : observers_) {
      (observer->entry().is_weight ? weights : others)
          .push_back(observer.get());
    }
    for (size_t i = 0; i < weights.size(); i += kWeightsPerPass) {
      const size_t end = std::min(i + kWeightsPerPass, weights.size());
      REQUANT_RETURN_IF_ERROR(
          AddPass({weights.begin() + i, weights.begin() + end}, /*once=*/true));
    }
    if (others.empty()) return absl::OkStatus();
    REQUANT_RETURN_IF_ERROR(AddPass(others, /*once=*/false));
    if (!job_.has_qdq()) return absl::OkStatus();
    REQUANT_ASSIGN_OR_RETURN(const std::vector<int64_t> bytes,
                             MeasureLastPass(batch));
    const int64_t most = job_.qdq().held_bytes();
    if (std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) <= most) {
      return absl::OkStatus();
    }
    passes_.pop_back();
    std::vector<EntryObserver*> together;
    int64_t held = 0;
    for (size_t i = 0; i < others.size(); ++i) {
      if (!together.empty() && held + bytes[i] > most) {
        REQUANT_RETURN_IF_ERROR(AddPass(together, /*once=*/false));
        together.clear();
        held = 0;
      }
      together.push_back(others[i]);
      held += bytes[i];
    }
    return AddPass(together, /*once=*/false);
  }

  absl::Status AddPass(const std::vector<EntryObserver*>& observers,
                       bool once) {
    std::vector<std::string> fetches;
    for (const EntryObserver* observer : observers) {
      const std::vector<std::string>& tensors = observer->entry().fetches;
      fetches.insert(fetches.end(), tensors.begin(), tensors.end());
    }
    // Weights can be read without feeding anything.
    REQUANT_ASSIGN_OR_RETURN(
        auto function, ModelFunction::Make(model_.get(), inputs_, fetches));
    passes_.push_back({std::move(function), observers, once});
    return absl::OkStatus();
  }

  // Sets *inputs to those of the first record and returns true, or to those of
  // the batch if they cannot be cut.
  static bool CutToFirstRecord(const Batch& batch,
                               std::vector<Tensor>* inputs) {
    const bool can_cut = std::all_of(
        batch.inputs.begin(), batch.inputs.end(), [&](const Tensor& input) {
          return input.dims() > 0 && input.dim_size(0) == batch.size;
        });
    for (const Tensor& input : batch.inputs) {
      inputs->push_back(can_cut ? input.Slice(0, 1) : input);
    }
    return can_cut;
  }

  // Fills in shapes_->operands. A failure, as in a branch that is not taken,
  // does not matter for the ranges and leaves them empty.
  void FindShapes(const Batch& batch) {
    if (shape_fetches_.empty()) return;
    std::vector<Tensor> inputs, fetched;
    const bool can_cut = CutToFirstRecord(batch, &inputs);
    const auto function =
        ModelFunction::Make(model_.get(), inputs_, shape_fetches_);
    if (!function.ok() || !(*function)->Run(inputs, &fetched).ok()) return;
    SeenShapes& seen = shapes_->operands;
    seen.records = can_cut ? 1 : batch.size;
    for (size_t i = 0; i < fetched.size(); ++i) {
      tensorflow::TensorShape shape;
      const auto sizes = fetched[i].flat<int64_t>();
      if (tensorflow::TensorShape::BuildTensorShape(
              absl::MakeConstSpan(sizes.data(), sizes.size()), &shape)
              .ok()) {
        seen.shapes[shapes_->wanted[i].tensor] = shape;
      }
    }
  }

  // Keeps the shapes that the first run of a pass has. Bad records may come
  // before the first batch.
  void KeepShapes(const ObservationPass& pass, const RunValues& run) {
    if (shapes_ == nullptr || records_ > 0) return;
    shapes_->observed.records = run.records;
    auto tensor = run.fetched.begin();
    for (const EntryObserver* observer : pass.observers) {
      for (const std::string& fetch : observer->entry().fetches) {
        shapes_->observed.shapes[fetch] = (tensor++)->shape();
      }
    }
  }

  // Measures the memory that a whole batch takes for each observer, from its
  // first record alone if inputs can be cut.
  absl::StatusOr<std::vector<int64_t>> MeasureLastPass(const Batch& batch) {
    std::vector<Tensor> inputs, fetched;
    const bool can_cut = CutToFirstRecord(batch, &inputs);
    REQUANT_RETURN_IF_ERROR(
        RunError(passes_.back().function->Run(inputs, &fetched), model_->path(),
                 RecordsText(batch)));
    std::vector<int64_t> bytes;
    auto tensor = fetched.begin();
    for (const EntryObserver* observer : passes_.back().observers) {
      int64_t held = 0;
      for (size_t i = 0; i < observer->entry().fetches.size(); ++i) {
        held += static_cast<int64_t>((tensor++)->TotalBytes());
      }
      bytes.push_back(held * (can_cut ? batch.size : 1));
    }
    return bytes;
  }

  // Runs the graph while the values of the previous run are observed.
  absl::Status RunPass(const ObservationPass& pass, const Batch& batch) {
    auto run = std::make_shared<RunValues>();
    run->first_record = batch.first_record;
    run->records = batch.size;
    REQUANT_RETURN_IF_ERROR(
        RunError(pass.function->Run(batch.inputs, &run->fetched),
                 model_->path(), RecordsText(batch)));
    REQUANT_RETURN_IF_ERROR(FinishObserving());
    KeepShapes(pass, *run);
    observing_ = std::async(
        std::launch::async,
        [observers = pass.observers, run]() -> absl::Status {
          absl::Span<const Tensor> rest = run->fetched;
          for (EntryObserver* observer : observers) {
            const size_t own = observer->entry().fetches.size();
            REQUANT_RETURN_IF_ERROR(observer->Add(*run, rest.first(own)));
            rest.remove_prefix(own);
          }
          return absl::OkStatus();
        });
    return absl::OkStatus();
  }

  absl::Status FinishObserving() {
    return observing_.valid() ? observing_.get() : absl::OkStatus();
  }

  RangeTable TakeTable() {
    RangeTable table;
    for (const auto& observer : observers_) {
      const CalibrationTensor& tensor = observer->entry().tensor;
      table.FindOrAdd(tensor.node, tensor.output) = observer->Take();
    }
    return table;
  }

  const CalibrateJob& job_;
  const Model::GraphInspector& inspect_;
  // May be null.
  FirstBatchShapes* const shapes_;
  // The tensors that are shapes_->wanted.
  std::vector<std::string> shape_fetches_;
  // May be null.
  const GraphToCalibrate* const graph_;
  // The model must outlive the functions of the passes.
  std::unique_ptr<Model> model_;
  // The tensors that are fed.
  std::vector<std::string> inputs_;
  std::vector<std::unique_ptr<EntryObserver>> observers_;
  std::vector<ObservationPass> passes_;
  int64_t records_ = 0;
  Progress progress_;
  // Must be the last member: its destructor waits for the use of the others.
  std::future<absl::Status> observing_;
};

}  // namespace

absl::StatusOr<std::string> CalibrationKey(const CalibrateJob& job) {
  CalibrateJob settings = job;
  settings.mutable_model()->clear_path();
  settings.clear_session();
  // How often the graph runs for a batch does not change the result.
  settings.mutable_qdq()->clear_held_bytes();
  if (!job.has_qdq()) settings.clear_qdq();
  ClearFiles(settings.mutable_dataset());
  ContentHash hash;
  hash.Add(VersionLine());
  hash.Add(DeterministicBytes(settings));
  const std::string directory = SavedModelDirectory(job.model().path());
  REQUANT_RETURN_IF_ERROR(
      hash.AddFile(directory.empty() ? job.model().path() : directory));
  for (const std::string& file : FilesOf(job.dataset())) {
    REQUANT_RETURN_IF_ERROR(hash.AddFile(file));
  }
  return hash.Finish();
}

absl::StatusOr<RangeTable> ObserveRanges(const CalibrateJob& job,
                                         const Model::GraphInspector& inspect,
                                         bool for_file,
                                         FirstBatchShapes* shapes,
                                         const GraphToCalibrate* graph) {
  auto key =
      std::async(std::launch::async, [&]() -> absl::StatusOr<std::string> {
        return for_file ? CalibrationKey(job) : "";
      });
  absl::StatusOr<RangeTable> run =
      CalibrationRun(job, inspect, shapes, graph).Run();
  // This also waits after an error, which cannot leave this function before the
  // key is ready.
  while (key.wait_for(std::chrono::milliseconds(200)) !=
         std::future_status::ready) {
    ReportAlive();
  }
  REQUANT_ASSIGN_OR_RETURN(RangeTable table, std::move(run));
  for (const std::string& warning : CalibrationWarnings(table)) {
    SayWarning(warning);
  }
  REQUANT_ASSIGN_OR_RETURN(std::string made_from, key.get());
  table.set_made_from(std::move(made_from));
  return table;
}

}  // namespace requant
