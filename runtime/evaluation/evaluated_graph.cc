#include "runtime/evaluation/evaluated_graph.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"
#include "runtime/session/model.h"
#include "runtime/statistics/prediction_tensor.h"

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;
using tensorflow::Tensor;

}  // namespace

SessionSpec SessionFor(const EvaluateOptions& options) {
  SessionSpec session = options.session;
  if (options.streams == 1) return session;
  if (session.intra_op_threads() == 0) session.set_intra_op_threads(1);
  // Operations run in the streams' own threads.
  if (session.inter_op_threads() == 0) session.set_inter_op_threads(1);
  return session;
}

absl::StatusOr<std::unique_ptr<EvaluatedGraph>> EvaluatedGraph::Load(
    const ModelSpec& spec, const EvaluateOptions& options,
    const Model::GraphInspector& inspect) {
  std::unique_ptr<EvaluatedGraph> graph(new EvaluatedGraph(options));
  REQUANT_ASSIGN_OR_RETURN(graph->model_,
                           Model::Load(spec, SessionFor(options), inspect));
  REQUANT_RETURN_IF_ERROR(graph->Connect());
  return graph;
}

absl::Status EvaluatedGraph::Connect() {
  const DatasetSpec& dataset = options_.dataset;
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                           model_->ConnectInputs(dataset));
  REQUANT_ASSIGN_OR_RETURN(output_name_,
                           PredictionTensor(*model_, dataset, inputs));
  std::vector<std::string> outputs = {output_name_};
  if (!dataset.in_graph().label_tensor().empty()) {
    REQUANT_ASSIGN_OR_RETURN(
        std::string labels,
        model_->OutputTensor(dataset.in_graph().label_tensor()));
    outputs.push_back(std::move(labels));
  }
  REQUANT_ASSIGN_OR_RETURN(
      function_,
      ModelFunction::Make(model_.get(), inputs, outputs,
                          /*in_caller_thread=*/options_.streams > 1));
  return absl::OkStatus();
}

absl::Status EvaluatedGraph::StartFile(const std::string& file) {
  const InGraphSource& source = options_.dataset.in_graph();
  std::vector<std::pair<std::string, Tensor>> feeds;
  if (!source.file_name().empty()) {
    REQUANT_ASSIGN_OR_RETURN(const std::string tensor,
                             model_->InputTensor(source.file_name()));
    feeds.emplace_back(tensor, Tensor(tensorflow::tstring(file)));
  }
  REQUANT_ASSIGN_OR_RETURN(std::string initializer,
                           model_->OutputTensor(source.initializer()));
  initializer.resize(initializer.rfind(':'));
  return RunError(model_->session().Run(feeds, {}, {initializer}, nullptr),
                  path(), absl::StrCat("starting to read ", file));
}

absl::Status EvaluatedGraph::Run(const std::vector<Tensor>& inputs,
                                 GraphRun* run) const {
  const Clock::time_point start = Clock::now();
  const absl::Status status = function_->Run(inputs, &run->outputs);
  run->seconds = SecondsSince(start);
  return status;
}

absl::Status EvaluatedGraph::SplitPositions(int64_t records) {
  if (predictions_.dims() < 2 || predictions_.dim_size(0) != records ||
      predictions_.dim_size(1) == 0 ||
      (metrics_.has_value() && predictions_.dim_size(1) != positions_)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path(), ": the output ", output_name_, " has shape ",
        predictions_.shape().DebugString(), " for a batch of ", records,
        " records: with each_position its first two dimensions must count the "
        "records and their positions, as many in every batch"));
  }
  positions_ = predictions_.dim_size(1);
  tensorflow::TensorShape shape = predictions_.shape();
  shape.RemoveDim(1);
  shape.set_dim(0, records * positions_);
  Tensor split;
  if (!split.CopyFrom(predictions_, shape)) {
    return absl::InternalError("a prediction cannot be reshaped");
  }
  predictions_ = std::move(split);
  return absl::OkStatus();
}

absl::Status EvaluatedGraph::Score(const GraphRun& run, double seconds,
                                   int64_t first_record, int64_t records,
                                   absl::Span<const double> labels) {
  predictions_ = run.outputs[0];
  timer_.Add(records, seconds);
  if (options_.dataset.prediction().each_position()) {
    REQUANT_RETURN_IF_ERROR(SplitPositions(records));
    first_record *= positions_;
    records *= positions_;
  }
  if (!metrics_.has_value()) {
    REQUANT_ASSIGN_OR_RETURN(
        format_, FormatOf(options_.dataset.prediction(), output_name_,
                          predictions_, records));
    if (options_.dataset.prediction().kind() == PredictionSpec::KIND_AUTO &&
        format_.values_per_record == 1 &&
        (baseline_kind_ == PredictionSpec::PROBABILITY ||
         baseline_kind_ == PredictionSpec::VALUE)) {
      format_.kind = baseline_kind_;
    }
    metrics_.emplace(format_);
  }
  if (predictions_.dims() < 1 || predictions_.dim_size(0) != records ||
      predictions_.NumElements() != records * format_.values_per_record) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": the output ", output_name_, " has shape ",
                     predictions_.shape().DebugString(), " for a batch of ",
                     records, " records, unlike before"));
  }
  const auto values = FloatValues(predictions_, &buffer_);
  if (!values.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": the output ", output_name_,
                     " cannot be scored: ", values.status().message()));
  }
  values_ = *values;
  if (labels.empty()) return absl::OkStatus();
  is_scored_ = true;
  return metrics_->Add(first_record, values_, labels);
}

std::optional<double> EvaluatedGraph::accuracy() const {
  return metrics_.has_value() ? metrics_->accuracy() : std::nullopt;
}

std::optional<Scores> EvaluatedGraph::Result() const {
  if (!is_scored_) return std::nullopt;
  return metrics_->Result();
}

}  // namespace requant
