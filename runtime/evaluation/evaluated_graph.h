#ifndef REQUANT_RUNTIME_EVALUATION_EVALUATED_GRAPH_H_
#define REQUANT_RUNTIME_EVALUATION_EVALUATED_GRAPH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/evaluation/batch_streams.h"
#include "runtime/evaluation/evaluate.h"
#include "runtime/session/model.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/timing.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// Returns the threads of a session. An unset number becomes one per usable core
// if there is one stream, else one.
SessionSpec SessionFor(const EvaluateOptions& options);

// One of the evaluated graphs. Errors name it.
class EvaluatedGraph {
 public:
  // Loads the graph; `options` must outlive it.
  static absl::StatusOr<std::unique_ptr<EvaluatedGraph>> Load(
      const ModelSpec& spec, const EvaluateOptions& options,
      const Model::GraphInspector& inspect);

  const std::string& path() const { return model_->path(); }
  Model& model() { return *model_; }

  // Makes a graph that reads its own data start on `file`.
  absl::Status StartFile(const std::string& file);

  // Runs one batch; thread-safe. Returns OutOfRange at the end of the data that
  // a graph reads itself. Errors do not name the graph.
  absl::Status Run(const std::vector<tensorflow::Tensor>& inputs,
                   GraphRun* run) const;

  // Reads single values per record as the baseline's if their kind is a guess.
  void FollowBaseline(PredictionSpec::Kind kind) { baseline_kind_ = kind; }

  // Scores the predictions of a batch, which took `seconds`, separately for
  // each position if the dataset says so. Batches come in the records' order.
  absl::Status Score(const GraphRun& run, double seconds, int64_t first_record,
                     int64_t records, absl::Span<const double> labels);

  // Returns the values of the batch scored last.
  absl::Span<const float> values() const { return values_; }
  // Returns the number of predictions per record that are scored separately,
  // which is known from the first batch on.
  int64_t positions() const { return positions_; }
  // Returns the predictions' format, known from the first batch on.
  const PredictionFormat& format() const { return format_; }
  Timing timing() const { return timer_.Result(); }
  std::optional<double> accuracy() const;
  // Returns nothing without labels.
  std::optional<Scores> Result() const;

 private:
  explicit EvaluatedGraph(const EvaluateOptions& options) : options_(options) {}

  // Finds the tensors that the dataset names.
  absl::Status Connect();
  // Turns positions into records: [records, positions, ...] becomes [records x
  // positions, ...].
  absl::Status SplitPositions(int64_t records);

  const EvaluateOptions& options_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelFunction> function_;
  std::string output_name_;
  PredictionSpec::Kind baseline_kind_ = PredictionSpec::KIND_AUTO;
  PredictionFormat format_;
  std::optional<MetricAccumulator> metrics_;
  BatchTimer timer_;
  bool is_scored_ = false;
  // The last batch's predictions, whose memory `values_` may refer to.
  tensorflow::Tensor predictions_;
  int64_t positions_ = 1;
  std::vector<float> buffer_;
  absl::Span<const float> values_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_EVALUATED_GRAPH_H_
