#include "runtime/calibration/calibrate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/process/machine.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/terminal/progress.h"
#include "graph/graph_index.h"
#include "ranges/range_table.h"
#include "runtime/calibration/calibration_key.h"
#include "runtime/calibration/value_observer.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/job_reports.h"
#include "runtime/session/model.h"
#include "runtime/statistics/prediction_tensor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "transforms/layers/calibration_tensors.h"
#include "transforms/layers/float_layer.h"
#include "transforms/qdq/qdq_observers.h"
#include "transforms/qdq/qdq_sites.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::Tensor;

// Weights that are fetched at once.
constexpr size_t kWeightsPerPass = 16;

// If there are more, only their number is reported.
constexpr size_t kNamedUnobserved = 10;

std::string TensorText(const std::string& node, int output) {
  return absl::StrCat(node, ":", output);
}

// The values that one run of the graph gave, and the records they are of.
struct RunValues {
  std::vector<Tensor> inputs;
  std::vector<Tensor> fetched;
  int64_t first_record = 0;
  int64_t records = 0;
};

// Where a tensor's values are: the graph is not asked for what it is fed.
struct ValueSource {
  bool is_input = false;
  size_t number = 0;

  const Tensor& In(const RunValues& run) const {
    return is_input ? run.inputs[number] : run.fetched[number];
  }
};

// Observes one entry of the table.
class EntryObserver {
 public:
  EntryObserver(CalibrationTensor tensor, std::vector<ValueSource> sources,
                const MomentOptions& moments)
      : tensor_(std::move(tensor)),
        sources_(std::move(sources)),
        values_(TensorText(tensor_.node, tensor_.output), moments) {}

  const CalibrationTensor& tensor() const { return tensor_; }

  // Sets where its sources start; they are fetched one after the other.
  void SetFirstSource(size_t number) {
    for (ValueSource& source : sources_) source.number = number++;
  }

  // Returns what a run holds for it.
  int64_t Bytes(const RunValues& run) const {
    int64_t bytes = 0;
    for (const ValueSource& source : sources_) {
      bytes += static_cast<int64_t>(source.In(run).TotalBytes());
    }
    return bytes;
  }

  absl::Status Add(const RunValues& run) {
    std::vector<absl::Span<const float>> outputs;
    buffers_.resize(sources_.size());
    for (size_t i = 0; i < sources_.size(); ++i) {
      const auto values = FloatValues(sources_[i].In(run), &buffers_[i]);
      if (!values.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the tensor ", TensorText(tensor_.node, tensor_.output),
            " has no range: ", values.status().message()));
      }
      outputs.push_back(*values);
    }
    if (tensor_.kind == ObservedKind::kTensor) {
      // Several are of one tensor in a function that is called from several
      // places.
      for (size_t i = 0; i < sources_.size(); ++i) {
        const Tensor& tensor = sources_[i].In(run);
        const int64_t channels =
            tensor.dims() < 2 ? 0 : tensor.dim_size(tensor.dims() - 1);
        values_.Add({outputs[i], channels, run.first_record, run.records});
      }
    } else {
      AddComputedRange(run, outputs);
    }
    return absl::OkStatus();
  }

  RangeEntry Take() {
    return tensor_.kind == ObservedKind::kTensor ? values_.Take()
                                                 : std::move(ranges_);
  }

 private:
  void AddComputedRange(const RunValues& run,
                        const std::vector<absl::Span<const float>>& outputs) {
    const std::string place =
        absl::StrCat("tensor ", TensorText(tensor_.node, tensor_.output),
                     " record ", run.first_record);
    if (tensor_.kind == ObservedKind::kMin) {
      ObserveMin(outputs[0], place, &ranges_);
    } else if (tensor_.kind == ObservedKind::kMax) {
      ObserveMax(outputs[0], place, &ranges_);
    } else {
      ObserveRange(outputs[0], outputs[1], place, &ranges_);
    }
    records_ += run.records;
    ranges_.records = records_;
  }

  const CalibrationTensor tensor_;
  std::vector<ValueSource> sources_;
  std::vector<std::vector<float>> buffers_;
  ValueObserver values_;
  RangeEntry ranges_;
  int64_t records_ = 0;
};

// What is observed by one run of the graph.
struct ObservationPass {
  // Null when all of it is fed.
  std::unique_ptr<ModelFunction> function;
  std::vector<EntryObserver*> observers;
  // The values are the same in every batch.
  bool once = false;
};

// A calibration; what it observes is up to its subclasses.
class CalibrationRun {
 public:
  CalibrationRun(const CalibrateJob& job, const GraphInspector& inspect)
      : job_(job),
        inspect_(inspect),
        progress_({"calibrating", "records", job.max_records()},
                  WorkProgress()) {}
  virtual ~CalibrationRun() = default;

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

 protected:
  // Chooses what to observe, before the graph goes into a session.
  virtual absl::Status Choose(const Model& model, GraphDef* graph) = 0;
  // Makes the observers of a model that is fed `inputs`.
  virtual absl::Status AddObservers(const std::vector<std::string>& inputs) = 0;
  // Makes the passes, given the first batch, unless AddObservers made them.
  virtual absl::Status PlanPasses(const Batch&) { return absl::OkStatus(); }

  // Returns the tensor of the dataset's prediction; none if it has none.
  absl::StatusOr<std::vector<std::string>> PredictionTensor(
      const Model& model) const {
    const std::string& name = job_.dataset().prediction().tensor();
    if (name.empty()) return std::vector<std::string>();
    REQUANT_ASSIGN_OR_RETURN(std::string output, model.OutputTensor(name));
    return std::vector<std::string>{std::move(output)};
  }

  const CalibrateJob& job() const { return job_; }

  // Outlives the functions of the passes.
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<EntryObserver>> observers_;
  std::vector<ObservationPass> passes_;

 private:
  absl::Status Load() {
    SetActivity(absl::StrCat("loading ", job_.model().path()));
    const auto choose = [&](const Model& model,
                            GraphDef* graph) -> absl::Status {
      if (inspect_) REQUANT_RETURN_IF_ERROR(inspect_(model, *graph));
      return Choose(model, graph);
    };
    REQUANT_ASSIGN_OR_RETURN(model_,
                             Model::Load(job_.model(), job_.session(), choose,
                                         /*extendable=*/job_.has_qdq()));
    REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                             InputTensors(*model_, job_.dataset()));
    return AddObservers(inputs);
  }

  absl::Status RunBatches() {
    BatchOptions options;
    options.batch_size = job_.batch_size();
    options.max_records = job_.max_records();
    options.max_bad_records = job_.max_bad_records();
    BadRecordWarnings bad_records;
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
    if (passes_.empty()) REQUANT_RETURN_IF_ERROR(PlanPasses(batch));
    for (const ObservationPass& pass : passes_) {
      REQUANT_RETURN_IF_ERROR(RunPass(pass, batch));
      // A big model takes a minute for each: this is a sign of life.
      progress_.Update(records_);
    }
    if (records_ == 0 && passes_.front().once) {
      REQUANT_RETURN_IF_ERROR(DropPassesDone());
    }
    records_ += batch.size;
    return absl::OkStatus();
  }

  // Runs the graph while the values of the run before it are observed.
  absl::Status RunPass(const ObservationPass& pass, const Batch& batch) {
    auto run = std::make_shared<RunValues>();
    run->inputs = batch.inputs;
    run->first_record = batch.first_record;
    run->records = batch.size;
    if (pass.function != nullptr) {
      REQUANT_RETURN_IF_ERROR(
          RunError(pass.function->Run(batch.inputs, &run->fetched),
                   model_->path(), RecordsText(batch)));
    }
    REQUANT_RETURN_IF_ERROR(FinishObserving());
    observing_ =
        std::async(std::launch::async,
                   [observers = pass.observers, run]() -> absl::Status {
                     for (EntryObserver* observer : observers) {
                       REQUANT_RETURN_IF_ERROR(observer->Add(*run));
                     }
                     return absl::OkStatus();
                   });
    return absl::OkStatus();
  }

  absl::Status DropPassesDone() {
    REQUANT_RETURN_IF_ERROR(FinishObserving());
    passes_.erase(
        std::remove_if(passes_.begin(), passes_.end(),
                       [](const ObservationPass& pass) { return pass.once; }),
        passes_.end());
    // Only weights: a pass without anything, not a plan to be made.
    if (passes_.empty()) passes_.emplace_back();
    return absl::OkStatus();
  }

  absl::Status FinishObserving() {
    return observing_.valid() ? observing_.get() : absl::OkStatus();
  }

  RangeTable TakeTable() {
    RangeTable table;
    for (const auto& observer : observers_) {
      const CalibrationTensor& tensor = observer->tensor();
      table.FindOrAdd(tensor.node, tensor.output) = observer->Take();
    }
    return table;
  }

  const CalibrateJob& job_;
  const GraphInspector& inspect_;
  int64_t records_ = 0;
  Progress progress_;
  // Waits in its destructor: the last member, gone before what it uses.
  std::future<absl::Status> observing_;
};

// Observes what the transforms for eight-bit graphs need, or the tensors that
// the job names, in one run of the graph per batch.
class PlainCalibration : public CalibrationRun {
 public:
  using CalibrationRun::CalibrationRun;

 private:
  absl::Status Choose(const Model& model, GraphDef* graph) override {
    REQUANT_ASSIGN_OR_RETURN(tensors_, ChooseTensors(model, graph));
    return absl::OkStatus();
  }

  absl::Status AddObservers(const std::vector<std::string>& inputs) override {
    std::vector<std::string> fetches;
    for (const CalibrationTensor& tensor : tensors_) {
      AddObserver(tensor, inputs, &fetches);
    }
    ObservationPass& pass = passes_.emplace_back();
    for (const auto& observer : observers_) {
      pass.observers.push_back(observer.get());
    }
    // What is fed alone needs no run.
    if (fetches.empty()) return absl::OkStatus();
    REQUANT_ASSIGN_OR_RETURN(
        pass.function, ModelFunction::Make(model_.get(), inputs, fetches));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<CalibrationTensor>> ChooseTensors(
      const Model& model, GraphDef* graph) {
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
    std::vector<CalibrationTensor> tensors;
    for (const std::string& name : job().tensors()) {
      REQUANT_ASSIGN_OR_RETURN(const std::string tensor,
                               model.OutputTensor(name));
      REQUANT_ASSIGN_OR_RETURN(CalibrationTensor found,
                               FindCalibrationTensor(index, tensor));
      const auto same = [&](const CalibrationTensor& other) {
        return other.node == found.node && other.output == found.output;
      };
      if (std::none_of(tensors.begin(), tensors.end(), same)) {
        tensors.push_back(std::move(found));
      }
    }
    if (!tensors.empty()) {
      MarkLayerInputs(index, &tensors);
      return tensors;
    }
    REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> outputs,
                             PredictionTensor(model));
    tensors = FindCalibrationTensors(index, outputs);
    if (tensors.empty()) {
      return absl::NotFoundError(absl::StrCat(
          model.path(),
          " has nothing to calibrate: no node computes ranges, and ",
          WhyNoLayers(*graph, FindFloatLayers(index)),
          "; requant calibrate --tensors observes any tensor"));
    }
    return tensors;
  }

  void AddObserver(const CalibrationTensor& tensor,
                   const std::vector<std::string>& inputs,
                   std::vector<std::string>* fetches) {
    std::vector<std::string> names = {TensorText(tensor.node, tensor.output)};
    if (tensor.kind == ObservedKind::kRange) {
      names.push_back(TensorText(tensor.node, 1));
    }
    std::vector<ValueSource> sources;
    for (std::string& name : names) {
      const auto input = std::find(inputs.begin(), inputs.end(), name);
      if (input != inputs.end()) {
        sources.push_back({true, static_cast<size_t>(input - inputs.begin())});
      } else {
        sources.push_back({false, fetches->size()});
        fetches->push_back(std::move(name));
      }
    }
    MomentOptions moments;
    moments.records = tensor.layer_input ? job().moment_records() : 0;
    const int threads = job().session().intra_op_threads();
    moments.threads = threads > 0 ? threads : ReadCoreLimits().usable();
    observers_.push_back(
        std::make_unique<EntryObserver>(tensor, std::move(sources), moments));
  }

  std::vector<CalibrationTensor> tensors_;
};

// Observes what insert_qdq would quantize, in functions too. Of a big model not
// all of it is held at once, so that the graph may run several times per batch.
class QdqCalibration : public CalibrationRun {
 public:
  using CalibrationRun::CalibrationRun;

 private:
  // Finds out how to observe what insert_qdq would quantize.
  absl::Status Choose(const Model& model, GraphDef* graph) override {
    QdqSiteOptions options;
    options.ops.assign(job().qdq().op().begin(), job().qdq().op().end());
    if (!job().qdq().inputs().empty()) {
      REQUANT_ASSIGN_OR_RETURN(options.inputs,
                               ParseQdqInputs(job().qdq().inputs()));
    }
    REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> outputs,
                             PredictionTensor(model));
    for (const auto& [key, output] : model.signature().outputs()) {
      outputs.push_back(output.name());
    }
    if (outputs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(model.path(),
                       " has no signature that tells its outputs: name one by "
                       "prediction { tensor: ... } in the dataset"));
    }
    // A map has no order of its own.
    std::sort(outputs.begin(), outputs.end());
    REQUANT_ASSIGN_OR_RETURN(qdq_, MakeQdqObservers(*graph, options, outputs));
    WarnOfNotObserved(model);
    if (!qdq_.observers.empty()) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(
        model.path(), " has nothing to calibrate: no ",
        job().qdq().op().empty() ? "MatMul"
                                 : absl::StrJoin(job().qdq().op(), ", "),
        " whose inputs can be observed"));
  }

  void WarnOfNotObserved(const Model& model) {
    // A graph without signatures has the outputs that the dataset names.
    std::string not_needed = "the outputs do not depend on it";
    if (!model.signature().outputs().empty()) {
      not_needed = absl::StrCat(
          "the signature ",
          job().model().signature().empty() ? "serving_default"
                                            : job().model().signature(),
          " does not compute it (--signature chooses another)");
    }
    const std::vector<NotObserved>& keys = qdq_.not_observed;
    for (size_t i = 0; i < std::min(keys.size(), kNamedUnobserved); ++i) {
      const RangeKey& key = keys[i].range;
      SayWarning(absl::StrCat(
          "the range of ", TensorText(key.first, key.second),
          " is not observed: ",
          keys[i].is_needed ? "it is in a loop or under a condition (While, If)"
                            : not_needed));
    }
    if (keys.size() > kNamedUnobserved) {
      SayWarning(absl::StrCat(keys.size(),
                              " ranges are not observed, of which the "
                              "first ",
                              kNamedUnobserved, " are named above"));
    }
  }

  // Makes the session able to give the tensors, and their observers.
  absl::Status AddObservers(const std::vector<std::string>& inputs) override {
    const absl::Status extended = model_->session().Extend(qdq_.added);
    if (!extended.ok()) {
      return absl::Status(
          extended.code(),
          absl::StrCat(model_->path(), ": its functions cannot be observed: ",
                       extended.message()));
    }
    qdq_.added.Clear();
    inputs_ = inputs;
    for (const QdqObserver& observer : qdq_.observers) {
      std::vector<ValueSource> sources;
      for (size_t i = 0; i < observer.tensors.size(); ++i) {
        // Numbered when it is known what is fetched together.
        sources.push_back({false, i});
      }
      observers_.push_back(std::make_unique<EntryObserver>(
          CalibrationTensor{ObservedKind::kTensor, observer.range.first,
                            observer.range.second},
          std::move(sources), MomentOptions()));
    }
    return absl::OkStatus();
  }

  // Shares the tensors out to passes by what they take in a run of one record.
  // One that fits is in one pass; more passes run the graph more often, but
  // hold no more than held_bytes each.
  absl::Status PlanPasses(const Batch& batch) override {
    std::vector<size_t> weights, others;
    for (size_t i = 0; i < qdq_.observers.size(); ++i) {
      (qdq_.observers[i].is_weight ? weights : others).push_back(i);
    }
    for (size_t i = 0; i < weights.size(); i += kWeightsPerPass) {
      const size_t end = std::min(i + kWeightsPerPass, weights.size());
      REQUANT_RETURN_IF_ERROR(
          AddPass({weights.begin() + i, weights.begin() + end}, /*once=*/true));
    }
    if (others.empty()) return absl::OkStatus();
    REQUANT_RETURN_IF_ERROR(AddPass(others, /*once=*/false));
    REQUANT_ASSIGN_OR_RETURN(const std::vector<int64_t> bytes,
                             MeasureLastPass(batch));
    int64_t all = 0;
    for (const int64_t each : bytes) all += each;
    if (all <= job().qdq().held_bytes()) return absl::OkStatus();
    passes_.pop_back();
    std::vector<size_t> together;
    int64_t held = 0;
    for (size_t i = 0; i < others.size(); ++i) {
      if (!together.empty() && held + bytes[i] > job().qdq().held_bytes()) {
        REQUANT_RETURN_IF_ERROR(AddPass(together, /*once=*/false));
        together.clear();
        held = 0;
      }
      together.push_back(others[i]);
      held += bytes[i];
    }
    return AddPass(together, /*once=*/false);
  }

  absl::Status AddPass(const std::vector<size_t>& observers, bool once) {
    std::vector<std::string> fetches;
    ObservationPass pass;
    pass.once = once;
    for (const size_t i : observers) {
      pass.observers.push_back(observers_[i].get());
      observers_[i]->SetFirstSource(fetches.size());
      const std::vector<std::string>& tensors = qdq_.observers[i].tensors;
      fetches.insert(fetches.end(), tensors.begin(), tensors.end());
    }
    // Weights are read without feeding anything.
    REQUANT_ASSIGN_OR_RETURN(
        pass.function, ModelFunction::Make(model_.get(), inputs_, fetches));
    passes_.push_back(std::move(pass));
    return absl::OkStatus();
  }

  // Measures what a whole batch takes for each observer, from its first record
  // alone where inputs can be cut.
  absl::StatusOr<std::vector<int64_t>> MeasureLastPass(const Batch& batch) {
    RunValues run;
    int64_t records = 1;
    for (const Tensor& input : batch.inputs) {
      if (input.dims() == 0 || input.dim_size(0) != batch.size) {
        records = batch.size;
      }
    }
    for (const Tensor& input : batch.inputs) {
      run.inputs.push_back(records == 1 ? input.Slice(0, 1) : input);
    }
    REQUANT_RETURN_IF_ERROR(
        RunError(passes_.back().function->Run(run.inputs, &run.fetched),
                 model_->path(), RecordsText(batch)));
    std::vector<int64_t> bytes;
    for (const EntryObserver* observer : passes_.back().observers) {
      bytes.push_back(observer->Bytes(run) * (batch.size / records));
    }
    return bytes;
  }

  QdqObservers qdq_;
  std::vector<std::string> inputs_;
};

}  // namespace

absl::StatusOr<RangeTable> ObserveRanges(const CalibrateJob& job,
                                         const GraphInspector& inspect,
                                         bool for_file) {
  auto key =
      std::async(std::launch::async, [&]() -> absl::StatusOr<std::string> {
        return for_file ? CalibrationKey(job) : "";
      });
  std::unique_ptr<CalibrationRun> run;
  if (job.has_qdq()) {
    run = std::make_unique<QdqCalibration>(job, inspect);
  } else {
    run = std::make_unique<PlainCalibration>(job, inspect);
  }
  REQUANT_ASSIGN_OR_RETURN(RangeTable table, run->Run());
  REQUANT_ASSIGN_OR_RETURN(std::string made_from, key.get());
  table.set_made_from(std::move(made_from));
  return table;
}

}  // namespace requant
