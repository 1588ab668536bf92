#ifndef REQUANT_RUNTIME_SESSION_MODEL_H_
#define REQUANT_RUNTIME_SESSION_MODEL_H_

// Holds a graph in a session, ready to run, and reports on its runs to the
// user. Only isolated child processes make one, because a user's graph can
// crash or stall TensorFlow.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace requant {

class Model {
 public:
  // Inspects the graph before it goes into the session; names already resolve.
  // An error ends the loading.
  using GraphInspector =
      std::function<absl::Status(const Model& model, tensorflow::GraphDef*)>;

  // Reads the graph (or loads the SavedModel with its variables) into a session
  // of its own, after calling `inspect` if it is set. Opens TensorFlow's
  // library. With `extendable`, nodes can be added to the session's graph, at
  // the cost of a copy of it.
  static absl::StatusOr<std::unique_ptr<Model>> Load(
      const ModelSpec& spec, const SessionSpec& session,
      const GraphInspector& inspect = nullptr, bool extendable = false);

  // The most bytes of stored constants (graph/constant_store.h) that Make puts
  // into the session's graph, which TensorFlow holds several times.
  static constexpr int64_t kMostConstantBytes = int64_t{1} << 28;

  // Does the same with a graph that is in memory, for which `path` stands in
  // messages. The keys of `signature` may name inputs and outputs. If its
  // stored constants are larger than `most_constant_bytes`, they become
  // placeholders, which functions feed with the values as they are.
  static absl::StatusOr<std::unique_ptr<Model>> Make(
      const std::string& path, tensorflow::GraphDef graph,
      const tensorflow::SignatureDef& signature, const SessionSpec& session,
      const GraphInspector& inspect = nullptr,
      int64_t most_constant_bytes = kMostConstantBytes);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Returns the path as given in the ModelSpec.
  const std::string& path() const { return path_; }
  // Returns a SavedModel's signature, or what a graph kept of it when it was
  // frozen (graph/signature_names.h); empty if there is none.
  const tensorflow::SignatureDef& signature() const { return signature_; }
  tensorflow::Session& session() { return *session_; }
  // Returns the tensors that ConnectInputs found to be the same in every run,
  // with their values.
  const std::vector<std::pair<std::string, tensorflow::Tensor>>& constants()
      const {
    return constants_;
  }

  // Return the tensor ("name:0") that `name` means: a key of signature(), the
  // name of a node or tensor, or that name with or without the prefix
  // "import/", which the recipe's fourth step adds.
  absl::StatusOr<std::string> InputTensor(const std::string& name) const;
  absl::StatusOr<std::string> OutputTensor(const std::string& name) const;

  // Returns the tensors that the dataset's inputs feed, in order. From now on
  // the functions that are made of this model are also fed the dataset's
  // constants. Fails, naming the input, if a placeholder takes another type.
  absl::StatusOr<std::vector<std::string>> ConnectInputs(
      const DatasetSpec& dataset);

  // Returns the error to report instead of `failure`, a run's error, if
  // variables without values caused it; else OK.
  absl::Status WithoutValues(const absl::Status& failure) const;

 private:
  Model() = default;

  absl::Status TakeGraph(tensorflow::GraphDef graph,
                         const tensorflow::SessionOptions& options,
                         const GraphInspector& inspect,
                         int64_t most_constant_bytes = kMostConstantBytes);
  // Puts stored constants into the graph, or feeds them.
  absl::Status TakeStored(int64_t most_bytes, tensorflow::GraphDef* graph);
  absl::Status LoadSavedModelDirectory(
      const ModelSpec& spec, const std::string& directory,
      const tensorflow::SessionOptions& options, const GraphInspector& inspect);
  void IndexNodes(const tensorflow::GraphDef& graph);
  absl::StatusOr<std::string> ExistingTensor(const std::string& name,
                                             bool is_input) const;
  // Returns the tensor of a placeholder that takes the type `dtype`.
  absl::StatusOr<std::string> FedTensor(const std::string& placeholder,
                                        const std::string& dtype) const;

  std::string path_;
  // The message about variables whose values are in no file; "" without any.
  std::string no_values_;
  std::unique_ptr<tensorflow::Session> session_;
  tensorflow::SignatureDef signature_;
  // Every node, with its type if it is a placeholder.
  absl::flat_hash_map<std::string, tensorflow::DataType> nodes_;
  // Tensors that are fed the same values in every run: those of the dataset,
  // and large constants.
  std::vector<std::pair<std::string, tensorflow::Tensor>> constants_;
  std::vector<std::pair<std::string, tensorflow::Tensor>> stored_;

  friend class ModelFunction;
};

// Returns the tensor of `model` that is the dataset's prediction. Fails if it
// is one of `inputs`, because there would be nothing to run.
absl::StatusOr<std::string> PredictionTensor(
    const Model& model, const DatasetSpec& dataset,
    const std::vector<std::string>& inputs);

// Computes fixed outputs from fixed inputs, without looking names up in every
// run. TensorFlow cannot fetch what is fed, so an output that is one of the
// inputs is returned unchanged, and if there are no other outputs nothing runs.
// Thread-safe once made.
class ModelFunction {
 public:
  // With `in_caller_thread`, operations run one by one in the calling thread,
  // but may still split up their own work. With `trace`, every run records when
  // each operation ran (RunMetadata::step_stats).
  static absl::StatusOr<std::unique_ptr<ModelFunction>> Make(
      Model* model, const std::vector<std::string>& input_tensors,
      const std::vector<std::string>& output_tensors,
      bool in_caller_thread = false, bool trace = false);
  ~ModelFunction();
  ModelFunction(const ModelFunction&) = delete;
  ModelFunction& operator=(const ModelFunction&) = delete;

  absl::Status Run(const std::vector<tensorflow::Tensor>& inputs,
                   std::vector<tensorflow::Tensor>* outputs,
                   tensorflow::RunMetadata* metadata = nullptr);

 private:
  explicit ModelFunction(Model* model) : model_(model) {}

  Model* const model_;
  // Unset when nothing is fetched.
  std::optional<tensorflow::Session::CallableHandle> handle_;
  // The values that are fed after the inputs.
  std::vector<tensorflow::Tensor> constants_;
  // The index of the input or value that each output is, or -1 if it is
  // fetched.
  std::vector<int> fed_;
};

// Prints a warning.
void SayWarning(std::string_view text);

// Warns of records that cannot be read: names the first ten, then says how many
// there are. A record that this process reads again is not named and counted
// again.
class BadRecordWarnings {
 public:
  // `while_doing` is a word such as "calibrating".
  explicit BadRecordWarnings(std::string_view while_doing)
      : while_doing_(while_doing) {}

  // Makes the source report bad records here; this object must outlive it.
  void Watch(BatchOptions* options);
  // Must be called after the last record.
  void Finish() const;

 private:
  const std::string while_doing_;
  int64_t count_ = 0;
};

// Returns "records 16 to 31 (counted from 0)".
std::string RecordsText(const Batch& batch);

// Puts `path` and `what`, such as RecordsText, in front of an error of loading
// or running a graph; OK stays OK.
absl::Status RunError(const absl::Status& status, const std::string& path,
                      std::string_view what);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_MODEL_H_
