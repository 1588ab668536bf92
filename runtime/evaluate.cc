#include "runtime/evaluate.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "runtime/batch_timer.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/evaluation_message.h"
#include "runtime/metrics.h"
#include "runtime/model.h"
#include "runtime/paired_comparison.h"
#include "runtime/prediction.h"
#include "runtime/worker.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;
using EventSink = std::function<void(const WorkerEvent&)>;
using tensorflow::Tensor;

constexpr double kSecondsBetweenProgress = 0.1;

// Of more, only the number is told.
constexpr int64_t kBadRecordsTold = 10;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One of the graphs under evaluation.
class Contender {
 public:
  static absl::StatusOr<std::unique_ptr<Contender>> Load(
      const ModelSpec& spec, const EvaluateJob& job) {
    std::unique_ptr<Contender> contender(new Contender(job.dataset()));
    REQUANT_ASSIGN_OR_RETURN(contender->model_,
                             Model::Load(spec, job.session()));
    REQUANT_RETURN_IF_ERROR(contender->Connect());
    return contender;
  }

  const std::string& path() const { return model_->path(); }

  // Starts the reading of `file` by a graph that reads its own data.
  absl::Status StartFile(const std::string& file) {
    const InGraphSource& source = dataset_.in_graph();
    std::vector<std::pair<std::string, Tensor>> feeds;
    if (!source.file_name().empty()) {
      REQUANT_ASSIGN_OR_RETURN(const std::string tensor,
                               model_->InputTensor(source.file_name()));
      feeds.emplace_back(tensor, Tensor(tensorflow::tstring(file)));
    }
    REQUANT_ASSIGN_OR_RETURN(std::string initializer,
                             model_->OutputTensor(source.initializer()));
    initializer.resize(initializer.rfind(':'));
    return Explained(model_->session().Run(feeds, {}, {initializer}, nullptr),
                     absl::StrCat("starting to read ", file));
  }

  // Runs one batch. OutOfRange is the end of the data that the graph reads
  // itself.
  absl::Status Run(const std::vector<Tensor>& inputs) {
    const Clock::time_point start = Clock::now();
    const absl::Status status = function_->Run(inputs, &outputs_);
    seconds_ = Since(start);
    return status;
  }

  // Leaves the first `records` of what Run gave, for their share of its time.
  void KeepFirst(int64_t records) {
    const int64_t all = outputs_[0].dim_size(0);
    for (Tensor& output : outputs_) {
      if (output.dims() > 0 && output.dim_size(0) == all) {
        output = output.Slice(0, records);
      }
    }
    seconds_ *= static_cast<double>(records) / static_cast<double>(all);
  }

  // How many records what Run gave is for, by its first dimension.
  int64_t OutputRecords() const {
    return outputs_[0].dims() < 1 ? 0 : outputs_[0].dim_size(0);
  }

  // Of a graph that reads its own data; empty when it has none.
  absl::StatusOr<std::vector<double>> OwnLabels() const {
    if (outputs_.size() < 2) return std::vector<double>();
    return LabelValues(outputs_[1]);
  }

  // An error of Run, with the graph's name.
  absl::Status Explained(const absl::Status& status,
                         const std::string& what) const {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(path(), ": ", what, ": ",
                                                    status.message()));
  }

  // Scores what Run gave.
  absl::Status Score(int64_t first_record, int64_t records,
                     absl::Span<const double> labels) {
    if (!metrics_.has_value()) {
      REQUANT_ASSIGN_OR_RETURN(
          format_,
          FormatOf(dataset_.prediction(), output_name_, outputs_[0], records));
      REQUANT_ASSIGN_OR_RETURN(MetricAccumulator metrics,
                               MetricAccumulator::Create(format_));
      metrics_.emplace(std::move(metrics));
    }
    if (outputs_[0].dims() < 1 || outputs_[0].dim_size(0) != records ||
        outputs_[0].NumElements() != records * format_.values_per_record) {
      return absl::InvalidArgumentError(
          absl::StrCat(path(), ": the output ", output_name_, " has shape ",
                       outputs_[0].shape().DebugString(), " for a batch of ",
                       records, " records, unlike before"));
    }
    const auto values = FloatValues(outputs_[0], &buffer_);
    if (!values.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path(), ": the output ", output_name_,
                       " cannot be scored: ", values.status().message()));
    }
    values_ = *values;
    timer_.Add(records, seconds_);
    if (labels.empty()) return absl::OkStatus();
    is_scored_ = true;
    return metrics_->Add(first_record, values_, labels);
  }

  absl::Span<const float> values() const { return values_; }
  const PredictionFormat& format() const { return format_; }
  const BatchTimer& timer() const { return timer_; }
  std::optional<double> accuracy() const {
    return metrics_.has_value() ? metrics_->accuracy() : std::nullopt;
  }
  // Unset without labels.
  std::optional<Metrics> Result() const {
    if (!is_scored_) return std::nullopt;
    return metrics_->Result();
  }

 private:
  explicit Contender(const DatasetSpec& dataset) : dataset_(dataset) {}

  // Finds the tensors that the dataset names.
  absl::Status Connect() {
    REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                             InputTensors(*model_, dataset_));
    REQUANT_ASSIGN_OR_RETURN(
        output_name_, model_->OutputTensor(dataset_.prediction().tensor()));
    std::vector<std::string> outputs = {output_name_};
    if (!dataset_.in_graph().label_tensor().empty()) {
      REQUANT_ASSIGN_OR_RETURN(
          std::string labels,
          model_->OutputTensor(dataset_.in_graph().label_tensor()));
      outputs.push_back(std::move(labels));
    }
    REQUANT_ASSIGN_OR_RETURN(
        function_, ModelFunction::Make(model_.get(), inputs, outputs));
    return absl::OkStatus();
  }

  const DatasetSpec& dataset_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelFunction> function_;
  std::string output_name_;
  PredictionFormat format_;
  std::optional<MetricAccumulator> metrics_;
  BatchTimer timer_;
  bool is_scored_ = false;
  // Of the last batch.
  std::vector<Tensor> outputs_;
  double seconds_ = 0;
  std::vector<float> buffer_;
  absl::Span<const float> values_;
};

class Evaluation {
 public:
  Evaluation(const EvaluateJob& job, const EventSink& send)
      : job_(job), send_(send) {}

  absl::StatusOr<EvaluateResult> Run() {
    REQUANT_RETURN_IF_ERROR(AddContender(job_.model()));
    if (job_.has_baseline()) {
      REQUANT_RETURN_IF_ERROR(AddContender(job_.baseline()));
    }
    REQUANT_RETURN_IF_ERROR(job_.dataset().has_in_graph() ? RunGraphsOwnData()
                                                          : RunBatches());
    return Result();
  }

 private:
  Contender& model() { return *contenders_.front(); }
  // The model itself when it is alone.
  Contender& baseline() { return *contenders_.back(); }

  void SendActivity(const std::string& activity) {
    WorkerEvent event;
    event.set_activity(activity);
    send_(event);
  }

  void SendWarning(const std::string& warning) {
    WorkerEvent event;
    event.set_warning(warning);
    send_(event);
  }

  absl::Status AddContender(const ModelSpec& spec) {
    SendActivity(absl::StrCat("loading ", spec.path()));
    REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<Contender> contender,
                             Contender::Load(spec, job_));
    contenders_.push_back(std::move(contender));
    return absl::OkStatus();
  }

  absl::Status RunBatches() {
    BatchOptions options;
    options.batch_size = job_.batch_size();
    options.max_records = job_.max_records();
    options.max_bad_records = job_.max_bad_records();
    int64_t told = 0;
    options.on_bad_record = [this, &told](const std::string& message) {
      if (told++ < kBadRecordsTold) SendWarning(message);
    };
    SendActivity(absl::StrCat("reading ", DescribeFiles(job_.dataset())));
    REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> source,
                             OpenBatchSource(job_.dataset(), options));
    Batch batch;
    while (true) {
      REQUANT_ASSIGN_OR_RETURN(const bool more, source->Next(&batch));
      if (!more) break;
      const std::string what =
          absl::StrCat("records ", batch.first_record, " to ",
                       batch.first_record + batch.size - 1);
      for (const auto& contender : contenders_) {
        SendRunning(*contender);
        REQUANT_RETURN_IF_ERROR(
            contender->Explained(contender->Run(batch.inputs), what));
      }
      total_ = source->EstimatedRecords();
      REQUANT_ASSIGN_OR_RETURN(const std::vector<double> labels,
                               LabelValues(batch.labels));
      REQUANT_RETURN_IF_ERROR(Score(batch.first_record, batch.size, labels));
    }
    bad_records_ = source->bad_records();
    lost_rests_ = source->lost_rests();
    if (told > kBadRecordsTold) {
      SendWarning(absl::StrCat(told, " bad records in all, of which the first ",
                               kBadRecordsTold, " are named above"));
    }
    return absl::OkStatus();
  }

  absl::Status RunGraphsOwnData() {
    for (const std::string& file : job_.dataset().in_graph().files()) {
      if (HasEnough()) break;
      SendActivity(absl::StrCat("reading ", file));
      running_ = nullptr;
      for (const auto& contender : contenders_) {
        REQUANT_RETURN_IF_ERROR(contender->StartFile(file));
      }
      bool more = true;
      while (more && !HasEnough()) {
        REQUANT_ASSIGN_OR_RETURN(more, RunOwnBatch(file));
      }
    }
    return absl::OkStatus();
  }

  bool HasEnough() const {
    return job_.max_records() > 0 && records_ >= job_.max_records();
  }

  // One batch of the graphs' own reading; false at the end of the file.
  absl::StatusOr<bool> RunOwnBatch(const std::string& file) {
    size_t ended = 0;
    for (const auto& contender : contenders_) {
      SendRunning(*contender);
      const absl::Status status = contender->Run({});
      if (absl::IsOutOfRange(status)) {
        ++ended;
      } else {
        REQUANT_RETURN_IF_ERROR(
            contender->Explained(status, absl::StrCat("reading ", file)));
      }
    }
    if (ended == contenders_.size()) return false;
    if (ended > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("one of the two graphs reads fewer records from ", file,
                       " than the other: they cannot be compared"));
    }
    REQUANT_RETURN_IF_ERROR(ScoreOwnBatch(file));
    return true;
  }

  absl::Status ScoreOwnBatch(const std::string& file) {
    int64_t records = model().OutputRecords();
    if (own_batch_size_ == 0) own_batch_size_ = records;
    if (baseline().OutputRecords() != records) {
      return absl::InvalidArgumentError(absl::StrCat(
          model().path(), " reads ", records, " records at a time from ", file,
          " and ", baseline().path(), " ", baseline().OutputRecords(),
          ": they cannot be compared"));
    }
    if (job_.max_records() > 0 && job_.max_records() - records_ < records) {
      records = job_.max_records() - records_;
      for (const auto& contender : contenders_) contender->KeepFirst(records);
    }
    REQUANT_ASSIGN_OR_RETURN(const std::vector<double> labels,
                             model().OwnLabels());
    REQUANT_ASSIGN_OR_RETURN(const std::vector<double> baseline_labels,
                             baseline().OwnLabels());
    if (labels != baseline_labels) {
      return absl::InvalidArgumentError(absl::StrCat(
          model().path(), " and ", baseline().path(),
          " read different labels from ", file, " for the records from number ",
          records_,
          " on (counting from 0 over all files): they cannot be compared"));
    }
    return Score(records_, records, labels);
  }

  absl::Status Score(int64_t first_record, int64_t records,
                     absl::Span<const double> labels) {
    for (const auto& contender : contenders_) {
      REQUANT_RETURN_IF_ERROR(contender->Score(first_record, records, labels));
    }
    if (contenders_.size() > 1) {
      REQUANT_RETURN_IF_ERROR(Compare(first_record, labels));
    }
    records_ += records;
    SendProgress();
    return absl::OkStatus();
  }

  absl::Status Compare(int64_t first_record, absl::Span<const double> labels) {
    if (!comparison_.has_value()) {
      REQUANT_RETURN_IF_ERROR(CheckSameFormat());
      REQUANT_ASSIGN_OR_RETURN(PairedComparison comparison,
                               PairedComparison::Create(model().format()));
      comparison_.emplace(std::move(comparison));
    }
    return comparison_->Add(first_record, baseline().values(), model().values(),
                            labels);
  }

  // Once for all batches: Contender::Score holds each to its first format.
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
        PredictionSpec::Kind_Name(DeclaredKind(format.kind)), ", those of ",
        baseline().path(), " like ",
        PredictionSpec::Kind_Name(DeclaredKind(other.kind)),
        ": declare what they are by prediction { kind: ... } in the dataset"));
  }

  // What a worker's death is blamed on.
  void SendRunning(const Contender& contender) {
    if (running_ == &contender) return;
    running_ = &contender;
    SendActivity(absl::StrCat("running ", contender.path()));
  }

  void SendProgress() {
    if (last_progress_.has_value() &&
        Since(*last_progress_) < kSecondsBetweenProgress) {
      return;
    }
    last_progress_ = Clock::now();
    WorkerEvent event;
    EvaluateProgress& progress = *event.mutable_evaluate_progress();
    progress.set_records(records_);
    progress.set_total(total_);
    const std::optional<double> accuracy = model().accuracy();
    if (accuracy.has_value()) progress.set_accuracy(*accuracy);
    send_(event);
  }

  EvaluateResult Result() {
    EvaluateResult result;
    result.set_batch_size(job_.dataset().has_in_graph() ? own_batch_size_
                                                        : job_.batch_size());
    result.set_bad_records(bad_records_);
    result.set_lost_rests(lost_rests_);
    if (records_ > 0) {
      result.set_prediction_kind(DeclaredKind(model().format().kind));
      result.set_guessed_kind(job_.dataset().prediction().kind() ==
                              PredictionSpec::KIND_AUTO);
    }
    const std::optional<Metrics> scores = model().Result();
    if (scores.has_value()) *result.mutable_scores() = ToMessage(*scores);
    *result.mutable_timing() = ToMessage(model().timer());
    if (contenders_.size() > 1) {
      const std::optional<Metrics> baseline_scores = baseline().Result();
      if (baseline_scores.has_value()) {
        *result.mutable_baseline_scores() = ToMessage(*baseline_scores);
      }
      *result.mutable_baseline_timing() = ToMessage(baseline().timer());
    }
    if (comparison_.has_value()) {
      *result.mutable_comparison() = ToMessage(comparison_->Result());
    }
    return result;
  }

  const EvaluateJob& job_;
  const EventSink& send_;
  std::vector<std::unique_ptr<Contender>> contenders_;
  std::optional<PairedComparison> comparison_;
  int64_t records_ = 0;
  int64_t bad_records_ = 0;
  int64_t lost_rests_ = 0;
  // The first batch that the graphs read themselves.
  int64_t own_batch_size_ = 0;
  // About how many records there are in all.
  int64_t total_ = 0;
  const Contender* running_ = nullptr;
  std::optional<Clock::time_point> last_progress_;
};

}  // namespace

absl::StatusOr<EvaluateResult> Evaluate(const EvaluateJob& job,
                                        const EventSink& send) {
  return Evaluation(job, send).Run();
}

}  // namespace requant
