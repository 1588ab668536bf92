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

// Returns the threads of a session: what is left open is one per usable core
// for one stream, else one.
SessionSpec SessionFor(const EvaluateOptions& options);

// One of the graphs under evaluation. Its errors name it.
class EvaluatedGraph {
 public:
  // Loads the graph; `options` must outlive it.
  static absl::StatusOr<std::unique_ptr<EvaluatedGraph>> Load(
      const ModelSpec& spec, const EvaluateOptions& options,
      const Model::GraphInspector& inspect);

  const std::string& path() const { return model_->path(); }
  Model& model() { return *model_; }

  // Starts the reading of `file` by a graph that reads its own data.
  absl::Status StartFile(const std::string& file);

  // Runs one batch; thread-safe. OutOfRange is the end of the data that the
  // graph reads itself. Errors do not name the graph.
  absl::Status Run(const std::vector<tensorflow::Tensor>& inputs,
                   GraphRun* run) const;

  // Scores the predictions of a batch, which took `seconds`, a position at a
  // time if the dataset says so. Batches come in the order of the records.
  absl::Status Score(const GraphRun& run, double seconds, int64_t first_record,
                     int64_t records, absl::Span<const double> labels);

  // Returns the values of the batch scored last.
  absl::Span<const float> values() const { return values_; }
  // Returns how many predictions of a record are scored by themselves; known
  // from the first batch on.
  int64_t positions() const { return positions_; }
  // Is known from the first batch on.
  const PredictionFormat& format() const { return format_; }
  Timing timing() const { return timer_.Result(); }
  std::optional<double> accuracy() const;
  // Returns nothing without labels.
  std::optional<Scores> Result() const;

 private:
  explicit EvaluatedGraph(const EvaluateOptions& options) : options_(options) {}

  // Finds the tensors that the dataset names.
  absl::Status Connect();
  // Makes records of positions: [records, positions, ...] becomes [records x
  // positions, ...].
  absl::Status SplitPositions(int64_t records);

  const EvaluateOptions& options_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelFunction> function_;
  std::string output_name_;
  PredictionFormat format_;
  std::optional<MetricAccumulator> metrics_;
  BatchTimer timer_;
  bool is_scored_ = false;
  // The last batch's; they may be values of its tensor.
  tensorflow::Tensor predictions_;
  int64_t positions_ = 1;
  std::vector<float> buffer_;
  absl::Span<const float> values_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_EVALUATED_GRAPH_H_
