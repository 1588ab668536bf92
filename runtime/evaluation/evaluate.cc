#include "runtime/evaluation/evaluate.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/terminal/progress.h"
#include "graph/graph_index.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/evaluation/batch_streams.h"
#include "runtime/evaluation/evaluated_graph.h"
#include "runtime/evaluation/layer_comparison.h"
#include "runtime/evaluation/predictions.h"
#include "runtime/session/model.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/paired_comparison.h"
#include "runtime/statistics/prediction_tensor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "transforms/layers/float_layer.h"

namespace requant {
namespace {

using tensorflow::Tensor;

BatchOptions Batching(const EvaluateOptions& options) {
  BatchOptions batching;
  batching.batch_size = options.batch_size;
  batching.skip_records = options.skip_records;
  batching.max_records = options.max_records;
  batching.max_bad_records = options.max_bad_records;
  batching.prefetch = std::max(batching.prefetch, 2 * options.streams);
  return batching;
}

// Returns the function that computes `tensors` of a graph for a batch.
absl::StatusOr<std::unique_ptr<ModelFunction>> LayerFunction(
    const EvaluateOptions& options, Model* model,
    const std::vector<std::string>& tensors) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                           model->ConnectInputs(options.dataset));
  return ModelFunction::Make(model, inputs, tensors,
                             /*in_caller_thread=*/options.streams > 1);
}

// Adds all batches to the layers' comparisons. Codes have three tensors. Sets
// (*failures)[i] to the first error of layer i, which is then left out.
absl::Status AddLayers(BatchStreams* streams, const LayerPairs& layers,
                       std::vector<LayerComparison>* comparisons,
                       std::vector<absl::Status>* failures) {
  failures->assign(layers.pairs.size(), absl::OkStatus());
  BatchRun run;
  while (true) {
    REQUANT_ASSIGN_OR_RETURN(const bool more, streams->Next(&run));
    if (!more) return absl::OkStatus();
    const std::vector<Tensor>& outputs = run.graphs[0].outputs;
    size_t next = 0;
    for (size_t i = 0; i < layers.pairs.size(); ++i) {
      const Tensor& tensor = outputs[next++];
      const Tensor* ends[2] = {nullptr, nullptr};
      if (layers.pairs[i].coding != LayerCoding::kFloat) {
        for (const Tensor*& end : ends) end = &outputs[next++];
      }
      absl::Status& failure = (*failures)[i];
      if (!failure.ok()) continue;
      failure = (*comparisons)[i].Add(run.batch.size, run.graphs[1].outputs[i],
                                      tensor, ends[0], ends[1]);
    }
  }
}

// The following functions are for runs of graphs that read their own data.

// Keeps only the first `records` records, with their share of the time.
void KeepFirst(int64_t records, GraphRun* run) {
  const int64_t all = run->outputs[0].dim_size(0);
  for (Tensor& output : run->outputs) {
    if (output.dims() > 0 && output.dim_size(0) == all) {
      output = output.Slice(0, records);
    }
  }
  run->seconds *= static_cast<double>(records) / static_cast<double>(all);
}

// Returns the number of the run's records, according to its first dimension.
int64_t OutputRecords(const GraphRun& run) {
  return run.outputs[0].dims() < 1 ? 0 : run.outputs[0].dim_size(0);
}

// Returns the labels, which are empty if the graph has none.
absl::StatusOr<std::vector<double>> OwnLabels(const GraphRun& run) {
  if (run.outputs.size() < 2) return std::vector<double>();
  return LabelValues(run.outputs[1]);
}

class Evaluation {
 public:
  Evaluation(const EvaluateOptions& options, std::string* predictions)
      : options_(options),
        predictions_(predictions),
        progress_({"evaluating", "records", options.max_records},
                  WorkProgress()) {}

  absl::StatusOr<EvaluateResult> Run() {
    REQUANT_RETURN_IF_ERROR(AddGraphs());
    REQUANT_RETURN_IF_ERROR(options_.dataset.has_in_graph() ? RunGraphsOwnData()
                                                            : RunBatches());
    progress_.Finish();
    REQUANT_RETURN_IF_ERROR(FinishPredictions());
    FillResult();
    if (layers_.has_value()) REQUANT_RETURN_IF_ERROR(RunLayers());
    return std::move(result_);
  }

 private:
  EvaluatedGraph& model() { return *graphs_.front(); }
  // Returns the model itself if there is no other graph.
  EvaluatedGraph& baseline() { return *graphs_.back(); }

  // Loads the graphs that are to run.
  absl::Status AddGraphs() {
    tensorflow::GraphDef model_graph;
    const auto keep = [&](const Model&, tensorflow::GraphDef* graph) {
      if (options_.layer_records > 0) model_graph = *graph;
      return absl::OkStatus();
    };
    const auto find_layers = [&](const Model& baseline,
                                 tensorflow::GraphDef* graph) {
      return options_.layer_records > 0
                 ? FindLayers(baseline, graph, &model_graph)
                 : absl::OkStatus();
    };
    REQUANT_RETURN_IF_ERROR(AddGraph(options_.model, keep));
    if (options_.baseline_predictions.empty()) {
      return options_.baseline.has_value()
                 ? AddGraph(*options_.baseline, find_layers)
                 : absl::OkStatus();
    }
    REQUANT_ASSIGN_OR_RETURN(
        stored_, StoredBaseline::Read(options_.baseline_predictions));
    if (!options_.baseline.has_value()) return absl::OkStatus();
    SetActivity(absl::StrCat("loading ", options_.baseline->path()));
    REQUANT_ASSIGN_OR_RETURN(
        layers_baseline_,
        Model::Load(*options_.baseline, SessionFor(options_), find_layers));
    return absl::OkStatus();
  }

  absl::Status AddGraph(const ModelSpec& spec,
                        const Model::GraphInspector& inspect) {
    SetActivity(absl::StrCat("loading ", spec.path()));
    REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<EvaluatedGraph> graph,
                             EvaluatedGraph::Load(spec, options_, inspect));
    graphs_.push_back(std::move(graph));
    return absl::OkStatus();
  }

  absl::Status FindLayers(const Model& baseline, tensorflow::GraphDef* graph,
                          tensorflow::GraphDef* model_graph) {
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex model_index,
                             GraphIndex::Create(model_graph));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string output,
        baseline.OutputTensor(options_.dataset.prediction().tensor()));
    layers_ = FindLayerPairs(index, model_index, {output});
    if (layers_->pairs.empty() && layers_->unmatched.empty()) {
      SayWarning(absl::StrCat(baseline.path(),
                              " has no layers to compare: no MatMul "
                              "whose weights are constants"));
    }
    return absl::OkStatus();
  }

  // Compares the layers of the baseline with those of the model on the first
  // options_.layer_records records. This is a separate run because fetching a
  // graph's inner tensors makes it slower.
  absl::Status RunLayers() {
    Model& own = model().model();
    Model& other =
        layers_baseline_ != nullptr ? *layers_baseline_ : baseline().model();
    SetActivity(absl::StrCat("running ", own.path(), " and ", other.path(),
                             " for their layers"));
    std::vector<std::string> tensors, baseline_tensors;
    std::vector<LayerComparison> comparisons;
    for (const LayerPair& pair : layers_->pairs) {
      comparisons.emplace_back(pair);
      baseline_tensors.push_back(pair.float_tensor);
      tensors.push_back(pair.tensor);
      if (pair.coding == LayerCoding::kFloat) continue;
      tensors.push_back(pair.min_tensor);
      tensors.push_back(pair.max_tensor);
    }
    for (const std::string& name : layers_->unmatched) {
      result_.add_unmatched_layer(name);
    }
    if (layers_->pairs.empty()) return absl::OkStatus();
    REQUANT_ASSIGN_OR_RETURN(const auto function,
                             LayerFunction(options_, &own, tensors));
    REQUANT_ASSIGN_OR_RETURN(const auto baseline_function,
                             LayerFunction(options_, &other, baseline_tensors));
    BatchOptions batching = Batching(options_);
    batching.max_records = options_.layer_records;
    if (options_.max_records > 0) {
      batching.max_records =
          std::min(batching.max_records, options_.max_records);
    }
    REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                             OpenBatchSource(options_.dataset, batching));
    const auto run_both = [&](const Batch& batch, std::vector<GraphRun>* runs) {
      runs->resize(2);
      const std::string what =
          absl::StrCat("its layers for the ", RecordsText(batch));
      REQUANT_RETURN_IF_ERROR(RunError(
          function->Run(batch.inputs, &(*runs)[0].outputs), own.path(), what));
      return RunError(baseline_function->Run(batch.inputs, &(*runs)[1].outputs),
                      other.path(), what);
    };
    BatchStreams streams(source.get(), options_.streams, run_both);
    std::vector<absl::Status> failures;
    REQUANT_RETURN_IF_ERROR(
        AddLayers(&streams, *layers_, &comparisons, &failures));
    for (size_t i = 0; i < comparisons.size(); ++i) {
      if (failures[i].ok()) {
        *result_.add_layer() = comparisons[i].Result();
        continue;
      }
      result_.add_unmatched_layer(layers_->pairs[i].name);
      SayWarning(absl::StrCat("the layer \"", layers_->pairs[i].name,
                              "\" is left out: ", failures[i].message()));
    }
    return absl::OkStatus();
  }

  absl::Status RunBatches() {
    BatchOptions batching = Batching(options_);
    BadRecordWarnings bad_records(options_.baseline.has_value() ? "comparing"
                                                                : "evaluating");
    bad_records.Watch(&batching);
    SetActivity(absl::StrCat("reading ", DescribeFiles(options_.dataset)));
    REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> source,
                             OpenBatchSource(options_.dataset, batching));
    if (options_.streams > 1) SetRunningAll();
    REQUANT_RETURN_IF_ERROR(ScoreBatches(source.get()));
    result_.set_batch_size(options_.batch_size);
    result_.set_bad_records(source->bad_records());
    result_.set_lost_rests(source->lost_rests());
    bad_records.Finish();
    return absl::OkStatus();
  }

  absl::Status ScoreBatches(BatchSource* source) {
    BatchStreams batches(
        source, options_.streams,
        [this](const Batch& batch, std::vector<GraphRun>* runs) {
          return RunBatch(batch, runs);
        });
    BatchRun run;
    while (true) {
      REQUANT_ASSIGN_OR_RETURN(const bool more, batches.Next(&run));
      if (!more) return absl::OkStatus();
      total_ = run.estimated_records;
      REQUANT_ASSIGN_OR_RETURN(const std::vector<double> labels,
                               LabelValues(run.batch.labels));
      REQUANT_RETURN_IF_ERROR(
          Score(run, run.batch.first_record, run.batch.size, labels));
    }
  }

  // Runs in a stream's thread.
  absl::Status RunBatch(const Batch& batch, std::vector<GraphRun>* runs) {
    runs->resize(graphs_.size());
    for (size_t i = 0; i < graphs_.size(); ++i) {
      if (options_.streams == 1) SetRunning(*graphs_[i]);
      REQUANT_RETURN_IF_ERROR(
          RunError(graphs_[i]->Run(batch.inputs, &(*runs)[i]),
                   graphs_[i]->path(), RecordsText(batch)));
    }
    return absl::OkStatus();
  }

  absl::Status RunGraphsOwnData() {
    for (const std::string& file : options_.dataset.in_graph().files()) {
      if (HasEnough()) break;
      SetActivity(absl::StrCat("reading ", file));
      running_ = nullptr;
      for (const auto& graph : graphs_) {
        REQUANT_RETURN_IF_ERROR(graph->StartFile(file));
      }
      bool more = true;
      while (more && !HasEnough()) {
        REQUANT_ASSIGN_OR_RETURN(more, RunOwnBatch(file));
      }
    }
    return absl::OkStatus();
  }

  bool HasEnough() const {
    return options_.max_records > 0 && records_ >= options_.max_records;
  }

  // Runs a batch that the graphs read themselves; returns false at file end.
  absl::StatusOr<bool> RunOwnBatch(const std::string& file) {
    size_t ended = 0;
    BatchRun run;
    run.graphs.resize(graphs_.size());
    for (size_t i = 0; i < graphs_.size(); ++i) {
      SetRunning(*graphs_[i]);
      const absl::Status status = graphs_[i]->Run({}, &run.graphs[i]);
      if (absl::IsOutOfRange(status)) {
        ++ended;
      } else {
        REQUANT_RETURN_IF_ERROR(RunError(status, graphs_[i]->path(),
                                         absl::StrCat("reading ", file)));
      }
    }
    if (ended == graphs_.size()) return false;
    if (ended > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("one of the two graphs reads fewer records from ", file,
                       " than the other: they cannot be compared"));
    }
    REQUANT_RETURN_IF_ERROR(ScoreOwnBatch(file, &run));
    return true;
  }

  absl::Status ScoreOwnBatch(const std::string& file, BatchRun* run) {
    GraphRun& own = run->graphs.front();
    GraphRun& other = run->graphs.back();
    int64_t records = OutputRecords(own);
    if (result_.batch_size() == 0) result_.set_batch_size(records);
    if (OutputRecords(other) != records) {
      return absl::InvalidArgumentError(absl::StrCat(
          model().path(), " reads ", records, " records at a time from ", file,
          " and ", baseline().path(), " ", OutputRecords(other),
          ": they cannot be compared"));
    }
    if (options_.max_records > 0 && options_.max_records - records_ < records) {
      records = options_.max_records - records_;
      for (GraphRun& graph : run->graphs) KeepFirst(records, &graph);
    }
    for (const GraphRun& graph : run->graphs) run->seconds += graph.seconds;
    REQUANT_ASSIGN_OR_RETURN(const std::vector<double> labels, OwnLabels(own));
    REQUANT_ASSIGN_OR_RETURN(const std::vector<double> baseline_labels,
                             OwnLabels(other));
    if (labels != baseline_labels) {
      return absl::InvalidArgumentError(absl::StrCat(
          model().path(), " and ", baseline().path(),
          " read different labels from ", file, " for the records from number ",
          records_,
          " on (counting from 0 over all files): they cannot be compared"));
    }
    return Score(*run, records_, records, labels);
  }

  absl::Status Score(const BatchRun& run, int64_t first_record, int64_t records,
                     absl::Span<const double> labels) {
    double graph_seconds = 0;
    for (const GraphRun& graph : run.graphs) graph_seconds += graph.seconds;
    if (stored_.has_value()) model().FollowBaseline(stored_->kind());
    // The baseline comes first.
    for (size_t i = graphs_.size(); i-- > 0;) {
      // If several batches run at once, their time is divided among them.
      const double share =
          graph_seconds > 0 ? run.graphs[i].seconds / graph_seconds : 0;
      REQUANT_RETURN_IF_ERROR(graphs_[i]->Score(
          run.graphs[i], run.seconds * share, first_record, records, labels));
      if (i > 0) model().FollowBaseline(graphs_[i]->format().kind);
    }
    const int64_t positions = model().positions();
    REQUANT_RETURN_IF_ERROR(
        Compare(first_record * positions, records * positions, labels));
    if (predictions_ != nullptr) {
      REQUANT_RETURN_IF_ERROR(KeepPredictions(records * positions, labels));
    }
    records_ += records;
    ShowProgress();
    return absl::OkStatus();
  }

  absl::Status Compare(int64_t first_record, int64_t records,
                       absl::Span<const double> labels) {
    if (stored_.has_value()) {
      REQUANT_ASSIGN_OR_RETURN(
          const int64_t count,
          stored_->Take(model().format(), first_record, records, labels));
      if (count == 0) return absl::OkStatus();
      const PredictionFormat& format = model().format();
      if (!comparison_.has_value()) comparison_.emplace(format);
      comparison_->Add(first_record, stored_->values(),
                       model().values().first(count * format.values_per_record),
                       labels.first(labels.size() / records * count));
      return absl::OkStatus();
    }
    if (graphs_.size() == 1) return absl::OkStatus();
    if (!comparison_.has_value()) {
      REQUANT_RETURN_IF_ERROR(CheckSameFormat());
      comparison_.emplace(model().format());
    }
    // Both may score positions of a record, but different numbers of them.
    if (baseline().values().size() != model().values().size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("from record ", first_record,
                       " (counted from 0) on the baseline predicts ",
                       baseline().values().size(), " values and the candidate ",
                       model().values().size(), "; both must predict ",
                       model().format().values_per_record, " per record"));
    }
    comparison_->Add(first_record, baseline().values(), model().values(),
                     labels);
    return absl::OkStatus();
  }

  // One call suffices: EvaluatedGraph::Score holds batches to the first format.
  absl::Status CheckSameFormat() {
    const PredictionFormat& format = model().format();
    const PredictionFormat& other = baseline().format();
    if (format.values_per_record != other.values_per_record) {
      return absl::InvalidArgumentError(absl::StrCat(
          model().path(), " and ", baseline().path(),
          " give predictions of different sizes: they cannot be compared"));
    }
    if (format.kind == other.kind) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the predictions of ", model().path(), " look like ",
        PredictionSpec::Kind_Name(format.kind), ", those of ",
        baseline().path(), " like ", PredictionSpec::Kind_Name(other.kind),
        ": declare what they are by prediction { kind: ... } in the dataset"));
  }

  absl::Status KeepPredictions(int64_t records,
                               absl::Span<const double> labels) {
    if (!encoder_.has_value()) {
      const PredictionFormat& format = model().format();
      encoder_.emplace(
          PredictionsHeader{format.kind, format.values_per_record,
                            static_cast<int64_t>(labels.size()) / records});
    }
    // A graph that reads its own data may omit labels from some batches.
    const int64_t each = encoder_->header().labels_per_record;
    if (static_cast<int64_t>(labels.size()) != records * each) {
      return absl::InvalidArgumentError(
          absl::StrCat(model().values().size(), " values and ", labels.size(),
                       " labels are not those of records with ",
                       model().format().values_per_record, " values and ", each,
                       each == 1 ? " label" : " labels"));
    }
    encoder_->Add(model().values(), labels);
    return absl::OkStatus();
  }

  absl::Status FinishPredictions() {
    if (predictions_ == nullptr) return absl::OkStatus();
    if (!encoder_.has_value()) {
      return absl::InvalidArgumentError(
          "there were no records, so there are no predictions");
    }
    *predictions_ = encoder_->Finish();
    return absl::OkStatus();
  }

  // Sets the graph that a crash is blamed on.
  void SetRunning(const EvaluatedGraph& graph) {
    if (running_ == &graph) return;
    running_ = &graph;
    SetActivity(absl::StrCat("running ", graph.path()));
  }

  // Does the same if it is not known which of the graphs runs.
  void SetRunningAll() {
    std::string paths = model().path();
    if (graphs_.size() > 1) {
      absl::StrAppend(&paths, " and ", baseline().path());
    }
    SetActivity(absl::StrCat("running ", paths));
  }

  void ShowProgress() {
    progress_.SetTotal(total_);
    const std::optional<double> accuracy = model().accuracy();
    progress_.Update(records_,
                     accuracy.has_value()
                         ? absl::StrFormat("accuracy %.2f %%", 100 * *accuracy)
                         : "");
  }

  void FillResult() {
    if (options_.dataset.prediction().each_position()) {
      result_.set_positions(model().positions());
    }
    if (records_ > 0) {
      result_.set_prediction_kind(model().format().kind);
      result_.set_guessed_kind(options_.dataset.prediction().kind() ==
                               PredictionSpec::KIND_AUTO);
    }
    const std::optional<Scores> scores = model().Result();
    if (scores.has_value()) *result_.mutable_scores() = *scores;
    *result_.mutable_timing() = model().timing();
    std::optional<Scores> baseline_scores;
    if (stored_.has_value()) {
      baseline_scores = stored_->Result();
    } else if (graphs_.size() > 1) {
      baseline_scores = baseline().Result();
      *result_.mutable_baseline_timing() = baseline().timing();
    }
    if (baseline_scores.has_value()) {
      *result_.mutable_baseline_scores() = *baseline_scores;
    }
    if (comparison_.has_value()) {
      *result_.mutable_comparison() = comparison_->Result();
    }
  }

  const EvaluateOptions& options_;
  // Receives the content of the predictions' file, unless null.
  std::string* const predictions_;
  // The model, then the baseline if it runs.
  std::vector<std::unique_ptr<EvaluatedGraph>> graphs_;
  // The baseline if it ran before.
  std::optional<StoredBaseline> stored_;
  // The layers of both graphs, if they are to be compared.
  std::optional<LayerPairs> layers_;
  // The baseline, if it runs for its layers only.
  std::unique_ptr<Model> layers_baseline_;
  std::optional<PairedComparison> comparison_;
  std::optional<PredictionsEncoder> encoder_;
  int64_t records_ = 0;
  EvaluateResult result_;
  // The approximate total number of records.
  int64_t total_ = 0;
  const EvaluatedGraph* running_ = nullptr;
  Progress progress_;
};

}  // namespace

absl::StatusOr<EvaluateResult> Evaluate(const EvaluateOptions& options,
                                        std::string* predictions) {
  return Evaluation(options, predictions).Run();
}

}  // namespace requant
