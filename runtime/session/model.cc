#include "runtime/session/model.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/message_text.h"
#include "base/process/machine.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "graph/constant_store.h"
#include "graph/freeze/checkpoint.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/signature_names.h"
#include "graph/tensorflow_library.h"
#include "runtime/datasets/formats/column.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::SessionOptions;
using tensorflow::Tensor;

// If there are more, only their number is reported.
constexpr int64_t kNamedBadRecords = 10;

constexpr std::string_view kImportPrefix = "import/";

SessionOptions OptionsFor(const SessionSpec& spec) {
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(
      spec.intra_op_threads() > 0 ? spec.intra_op_threads()
                                  : ReadCoreLimits().usable());
  options.config.set_inter_op_parallelism_threads(spec.inter_op_threads());
  // Sessions with other numbers of threads may live in this process.
  options.config.set_use_per_session_threads(true);
  // This pass only rewrites control flow, but it writes quantized weights as
  // text and reads them back, which takes half a second for a graph of 2 MB.
  options.config.mutable_graph_options()
      ->mutable_rewrite_options()
      ->set_disable_tfg_optimizer(true);
  return options;
}

// Returns whether the node is a variable of either kind.
bool IsVariable(const NodeDef& node) {
  return node.op() == "VarHandleOp" || node.op() == "VariableV2" ||
         node.op() == "Variable";
}

// Returns "2 variables, the first is \"w\"", or "" if there are none.
std::string VariablesOf(const GraphDef& graph) {
  const auto& nodes = graph.node();
  const auto first = std::find_if(nodes.begin(), nodes.end(), IsVariable);
  if (first == nodes.end()) return "";
  const int64_t count = std::count_if(first, nodes.end(), IsVariable);
  return absl::StrCat(CountText(count, "variable"), ", the first is \"",
                      first->name(), "\"");
}

// Returns the tensor of a signature's input or output with its key.
absl::StatusOr<std::string> OneTensor(
    const google::protobuf::MapPair<std::string, tensorflow::TensorInfo>& value,
    const std::string& path) {
  if (value.second.has_name()) return value.second.name();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", value.first, "\" of ", path,
                   " is a sparse or composite value of several tensors; only "
                   "single tensors can be fed and fetched"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Load(
    const ModelSpec& spec, const SessionSpec& session,
    const GraphInspector& inspect, bool extendable) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  std::unique_ptr<Model> model(new Model);
  model->path_ = spec.path();
  SessionOptions options = OptionsFor(session);
  options.config.mutable_experimental()->set_disable_optimize_for_static_graph(
      extendable);
  const std::string directory = SavedModelDirectory(spec.path());
  if (!directory.empty()) {
    REQUANT_RETURN_IF_ERROR(
        model->LoadSavedModelDirectory(spec, directory, options, inspect));
    return model;
  }
  REQUANT_ASSIGN_OR_RETURN(GraphDef graph, ReadGraph(spec.path()));
  model->signature_ = KeptSignature(graph);
  REQUANT_RETURN_IF_ERROR(model->TakeGraph(std::move(graph), options, inspect));
  return model;
}

absl::StatusOr<std::unique_ptr<Model>> Model::Make(
    const std::string& path, GraphDef graph,
    const tensorflow::SignatureDef& signature, const SessionSpec& session,
    const GraphInspector& inspect, int64_t most_constant_bytes) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  std::unique_ptr<Model> model(new Model);
  model->path_ = path;
  model->signature_ = signature;
  REQUANT_RETURN_IF_ERROR(model->TakeGraph(
      std::move(graph), OptionsFor(session), inspect, most_constant_bytes));
  return model;
}

Model::~Model() {
  if (session_ != nullptr) (void)session_->Close();
}

absl::Status Model::TakeStored(int64_t most_bytes, GraphDef* graph) {
  const bool fill_in =
      FilledBytes(*graph) - static_cast<int64_t>(graph->ByteSizeLong()) <=
      most_bytes;
  for (NodeDef& node : *graph->mutable_node()) {
    if (fill_in) FillIn(&node);
    const auto attribute = node.attr().find("value");
    if (fill_in || node.op() != "Const" || attribute == node.attr().end()) {
      continue;
    }
    const auto value = StoredValue(attribute->second.tensor());
    if (!value.has_value()) continue;
    node.set_op("Placeholder");
    node.mutable_attr()->erase("value");
    value->shape().AsProto((*node.mutable_attr())["shape"].mutable_shape());
    stored_.emplace_back(absl::StrCat(node.name(), ":0"), *value);
  }
  if (graph->ByteSizeLong() <= static_cast<size_t>(kMaxGraphBytes)) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(
      absl::StrCat(path_,
                   " has more than 2 GB of small constants, which no "
                   "session of TensorFlow takes"));
}

absl::Status Model::TakeGraph(GraphDef graph, const SessionOptions& options,
                              const GraphInspector& inspect,
                              int64_t most_constant_bytes) {
  IndexNodes(graph);
  if (const std::string variables = VariablesOf(graph); !variables.empty()) {
    no_values_ = absl::StrCat(path_, " has ", variables,
                              ", and a graph file holds no values for them: "
                              "freeze it first (requant freeze)");
  }
  if (inspect) REQUANT_RETURN_IF_ERROR(inspect(*this, &graph));
  REQUANT_RETURN_IF_ERROR(TakeStored(most_constant_bytes, &graph));
  session_.reset(tensorflow::NewSession(options));
  if (session_ == nullptr) {
    return absl::InternalError("TensorFlow gives no session");
  }
  return RunError(session_->Create(std::move(graph)), path_,
                  "TensorFlow refuses the graph");
}

absl::Status Model::LoadSavedModelDirectory(const ModelSpec& spec,
                                            const std::string& directory,
                                            const SessionOptions& options,
                                            const GraphInspector& inspect) {
  const std::set<std::string> wanted(spec.tags().begin(), spec.tags().end());
  REQUANT_ASSIGN_OR_RETURN(MetaGraphDef meta_graph,
                           ReadSavedModel(directory, wanted));
  IndexNodes(meta_graph.graph_def());
  const std::string checkpoint =
      absl::StrCat(directory, "/variables/variables");
  REQUANT_RETURN_IF_ERROR(CheckCheckpointFiles(checkpoint));
  const std::string variables = VariablesOf(meta_graph.graph_def());
  if (!variables.empty() &&
      access((checkpoint + ".index").c_str(), F_OK) != 0) {
    no_values_ = absl::StrCat(path_, " has ", variables,
                              ", but their values are missing: there is no ",
                              checkpoint, ".index");
  }
  const std::string key = MeantSignature(meta_graph, spec.signature());
  const auto signature = meta_graph.signature_def().find(key);
  if (signature != meta_graph.signature_def().end()) {
    signature_ = signature->second;
  } else if (!spec.signature().empty()) {
    return CheckSignature(meta_graph, key, path_);
  }
  if (inspect) {
    REQUANT_RETURN_IF_ERROR(inspect(*this, meta_graph.mutable_graph_def()));
  }
  const auto& names = meta_graph.meta_info_def().tags();
  const std::unordered_set<std::string> tags(names.begin(), names.end());
  // TensorFlow reads it again.
  meta_graph.Clear();
  tensorflow::SavedModelBundle bundle;
  const absl::Status loaded = tensorflow::LoadSavedModel(
      options, tensorflow::RunOptions(), directory, tags, &bundle);
  if (!loaded.ok()) {
    REQUANT_RETURN_IF_ERROR(WithoutValues(loaded));
    return RunError(loaded, path_, "TensorFlow cannot load the SavedModel");
  }
  session_ = std::move(bundle.session);
  return absl::OkStatus();
}

absl::Status Model::WithoutValues(const absl::Status& failure) const {
  if (!absl::IsFailedPrecondition(failure) || no_values_.empty()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(no_values_);
}

void Model::IndexNodes(const GraphDef& graph) {
  nodes_.reserve(graph.node_size());
  for (const NodeDef& node : graph.node()) {
    DataType type = tensorflow::DT_INVALID;
    const auto dtype = node.attr().find("dtype");
    if (absl::StartsWith(node.op(), "Placeholder") &&
        dtype != node.attr().end()) {
      type = dtype->second.type();
    }
    nodes_[node.name()] = type;
  }
}

absl::StatusOr<std::string> Model::InputTensor(const std::string& name) const {
  const auto input = signature_.inputs().find(name);
  if (input != signature_.inputs().end()) return OneTensor(*input, path_);
  return ExistingTensor(name, /*is_input=*/true);
}

absl::StatusOr<std::string> Model::OutputTensor(const std::string& name) const {
  const auto output = signature_.outputs().find(name);
  if (output != signature_.outputs().end()) return OneTensor(*output, path_);
  return ExistingTensor(name, /*is_input=*/false);
}

absl::StatusOr<std::string> Model::ExistingTensor(const std::string& name,
                                                  bool is_input) const {
  const std::string tensor =
      absl::StrContains(name, ':') ? name : absl::StrCat(name, ":0");
  for (const std::string& candidate :
       {tensor, absl::StrCat(kImportPrefix, tensor),
        std::string(absl::StripPrefix(tensor, kImportPrefix))}) {
    if (nodes_.contains(NodeOf(candidate))) return candidate;
  }
  std::vector<std::string> known;
  for (const auto& [node, type] : nodes_) {
    if (!is_input || type != tensorflow::DT_INVALID) known.push_back(node);
  }
  const auto add_keys = [&](const auto& tensors) {
    for (const auto& [key, info] : tensors) known.push_back(key);
  };
  add_keys(is_input ? signature_.inputs() : signature_.outputs());
  // If several names are equally close, the first is suggested.
  std::sort(known.begin(), known.end());
  return absl::NotFoundError(
      absl::StrCat(path_, " has no ", is_input ? "placeholder" : "node", " \"",
                   NodeOf(tensor), "\"", DidYouMean(name, known),
                   "; requant summarize lists its inputs and outputs"));
}

absl::StatusOr<std::string> Model::FedTensor(const std::string& placeholder,
                                             const std::string& dtype) const {
  REQUANT_ASSIGN_OR_RETURN(std::string tensor, InputTensor(placeholder));
  REQUANT_ASSIGN_OR_RETURN(const DataType type, ParseDtype(dtype));
  const auto node = nodes_.find(NodeOf(tensor));
  if (node == nodes_.end() || node->second == tensorflow::DT_INVALID ||
      node->second == type) {
    return tensor;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the placeholder ", tensor, " of ", path_, " takes ",
      tensorflow::DataTypeString(node->second), ", but the dataset feeds ",
      tensorflow::DataTypeString(type), ": change its dtype there"));
}

absl::StatusOr<std::vector<std::string>> Model::ConnectInputs(
    const DatasetSpec& dataset) {
  std::vector<std::string> tensors;
  for (const InputSpec& input : dataset.input()) {
    REQUANT_ASSIGN_OR_RETURN(tensors.emplace_back(),
                             FedTensor(input.placeholder(), input.dtype()));
  }
  constants_.clear();
  for (const ConstantSpec& constant : dataset.constant()) {
    REQUANT_ASSIGN_OR_RETURN(
        std::string tensor,
        FedTensor(constant.placeholder(), constant.dtype()));
    REQUANT_ASSIGN_OR_RETURN(Tensor value, ConstantTensor(constant));
    constants_.emplace_back(std::move(tensor), std::move(value));
  }
  return tensors;
}

absl::StatusOr<std::string> PredictionTensor(
    const Model& model, const DatasetSpec& dataset,
    const std::vector<std::string>& inputs) {
  REQUANT_ASSIGN_OR_RETURN(std::string tensor,
                           model.OutputTensor(dataset.prediction().tensor()));
  if (std::find(inputs.begin(), inputs.end(), tensor) == inputs.end()) {
    return tensor;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the prediction ", tensor, " of ", model.path(),
      " is one of the inputs that the dataset feeds, so there is nothing to "
      "run: name an output in prediction { tensor: \"...\" }"));
}

absl::StatusOr<std::unique_ptr<ModelFunction>> ModelFunction::Make(
    Model* model, const std::vector<std::string>& input_tensors,
    const std::vector<std::string>& output_tensors, bool in_caller_thread,
    bool trace) {
  std::unique_ptr<ModelFunction> function(new ModelFunction(model));
  tensorflow::CallableOptions callable;
  for (const std::string& input : input_tensors) callable.add_feed(input);
  for (const auto* constants : {&model->constants_, &model->stored_}) {
    for (const auto& [tensor, value] : *constants) {
      callable.add_feed(tensor);
      function->constants_.push_back(value);
    }
  }
  const auto& feeds = callable.feed();
  for (const std::string& output : output_tensors) {
    const auto feed = std::find(feeds.begin(), feeds.end(), output);
    const bool is_fed = feed != feeds.end();
    function->fed_.push_back(is_fed ? feed - feeds.begin() : -1);
    if (!is_fed) callable.add_fetch(output);
  }
  if (callable.fetch().empty()) return function;
  if (in_caller_thread) {
    callable.mutable_run_options()->set_inter_op_thread_pool(-1);
  }
  if (trace) {
    callable.mutable_run_options()->set_trace_level(
        tensorflow::RunOptions::FULL_TRACE);
  }
  const absl::Status made =
      model->session().MakeCallable(callable, &function->handle_.emplace());
  if (made.ok()) return function;
  function->handle_.reset();
  return absl::Status(made.code(),
                      absl::StrCat(model->path(), ": ", made.message()));
}

ModelFunction::~ModelFunction() {
  if (handle_.has_value()) (void)model_->session().ReleaseCallable(*handle_);
}

absl::Status ModelFunction::Run(const std::vector<Tensor>& inputs,
                                std::vector<Tensor>* outputs,
                                tensorflow::RunMetadata* metadata) {
  std::vector<Tensor> with_constants, fetched;
  if (!constants_.empty()) {
    with_constants = inputs;
    with_constants.insert(with_constants.end(), constants_.begin(),
                          constants_.end());
  }
  const std::vector<Tensor>& feeds =
      constants_.empty() ? inputs : with_constants;
  if (handle_.has_value()) {
    const absl::Status status =
        model_->session().RunCallable(*handle_, feeds, &fetched, metadata);
    REQUANT_RETURN_IF_ERROR(model_->WithoutValues(status));
    REQUANT_RETURN_IF_ERROR(status);
  }
  outputs->clear();
  auto next = fetched.begin();
  for (const int feed : fed_) {
    outputs->push_back(feed < 0 ? std::move(*next++) : feeds[feed]);
  }
  return absl::OkStatus();
}

void SayWarning(std::string_view text) {
  Say(ProgramName(), absl::StrCat("warning: ", text));
}

void BadRecordWarnings::Watch(BatchOptions* options) {
  options->on_bad_record = [this](const std::string& message) {
    static auto* const said = new absl::flat_hash_set<size_t>();
    if (!said->insert(absl::HashOf(message)).second) return;
    if (count_++ < kNamedBadRecords) SayWarning(message);
  };
}

void BadRecordWarnings::Finish() const {
  if (count_ <= kNamedBadRecords) return;
  SayWarning(absl::StrCat(count_, " bad records were left out while ",
                          while_doing_, ", of which the first ",
                          kNamedBadRecords, " are named above"));
}

std::string RecordsText(const Batch& batch) {
  return absl::StrCat("records ", batch.first_record, " to ",
                      batch.first_record + batch.size - 1, " (counted from 0)");
}

absl::Status RunError(const absl::Status& status, const std::string& path,
                      std::string_view what) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", what, ": ", status.message()));
}

}  // namespace requant
