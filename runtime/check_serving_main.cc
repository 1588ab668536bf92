// check_serving (requant check_serving) runs the requests that a SavedModel
// carries in the environment as it is, as a server would, and compares the
// answers with those that were recorded when the model was made.

#include <gflags/gflags.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/message_text.h"
#include "base/process/machine.h"
#include "base/process/tensorflow_child.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/tensorflow_library.h"
#include "runtime/quantization/quantize.h"
#include "runtime/servable/tensorflow_versions.h"
#include "runtime/servable/warm_up.h"
#include "runtime/servable/write_servable.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/model.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/util/util.h"
#include "transforms/layers/quantized_weights.h"

DEFINE_double(tolerance, 0.02,
              "how much a value may differ from the recorded one, as a share "
              "of the output's largest value");
DEFINE_string(target_tensorflow, "",
              "also check that this version of TensorFlow, such as 2.15, has "
              "all that the model needs; the request runs in 2.21");
DEFINE_double(timeout, 300, "give up after this many seconds; 0 means never");

namespace requant {
namespace {

using tensorflow::MetaGraphDef;
using tensorflow::Tensor;

const char* const kProgram = ProgramName();

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "loads a SavedModel that requant quantize wrote with the environment as "
      "it is, runs the requests in its assets.extra, and compares the answers "
      "with those recorded when it was made. Run it where, and as, your server "
      "runs.";
  help.usage =
      "$0 my_model_int8/1\n"
      "$0 my_model_int8/1 --target_tensorflow=2.17";
  help.flag_files = {__FILE__};
  help.footer =
      "Exit code: 0 the answers are right, 1 they are not, there are none, or "
      "something that the model needs is missing here, 2 usage.";
  return help;
}

template <typename T>
std::string FloatDifference(const Tensor& recorded, const Tensor& answer) {
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < recorded.NumElements(); ++i) {
    const double a = static_cast<double>(recorded.flat<T>()(i));
    const double b = static_cast<double>(answer.flat<T>()(i));
    if (std::isfinite(a)) largest = std::max(largest, std::fabs(a));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    // A NaN differs infinitely from a number.
    const double by = std::fabs(a - b);
    difference = std::max(difference, std::isnan(by) ? INFINITY : by);
  }
  if (difference <= FLAGS_tolerance * largest) return "";
  return absl::StrFormat("differs by up to %.3g, of values up to %.3g",
                         difference, largest);
}

// Returns what is different between two values of an output, or "".
std::string Difference(const Tensor& recorded, const Tensor& answer) {
  if (recorded.dtype() != answer.dtype() ||
      recorded.shape() != answer.shape()) {
    return "has another type or shape";
  }
  switch (recorded.dtype()) {
    case tensorflow::DT_FLOAT:
      return FloatDifference<float>(recorded, answer);
    case tensorflow::DT_DOUBLE:
      return FloatDifference<double>(recorded, answer);
    case tensorflow::DT_HALF:
      return FloatDifference<Eigen::half>(recorded, answer);
    case tensorflow::DT_BFLOAT16:
      return FloatDifference<tensorflow::bfloat16>(recorded, answer);
    default:
      return recorded.SummarizeValue(-1) == answer.SummarizeValue(-1)
                 ? ""
                 : "has other values";
  }
}

// Fails if oneDNN cannot compute the model's products on this CPU, or not
// exactly.
absl::Status CheckCpu(const std::string& directory, const MetaGraphDef& meta) {
  if (QuantizedMatMuls(meta.graph_def()) == 0) return absl::OkStatus();
  const std::string users_cap = UsersIsaCap(), cap = CachedOneDnnIsaCap();
  if (cap != users_cap) {
    return absl::FailedPreconditionError(absl::StrCat(
        "set ONEDNN_MAX_CPU_ISA=", cap,
        " before TensorFlow loads: this machine advertises instructions that "
        "it does not run, and ",
        directory, " would die of them"));
  }
  const std::string target = TargetOf(meta);
  const auto rule = WeightRuleOf(target);
  if (!rule.ok() || *rule != WeightRule::kAnyCode ||
      QuantizationTarget(ProbeCpu(), users_cap) == "vnni") {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      directory, " was quantized with --target=", target,
      ", for CPUs with VNNI or AMX; ",
      users_cap.empty() ? "this CPU has neither"
                        : "ONEDNN_MAX_CPU_ISA keeps oneDNN from both",
      ", so that sums may saturate: quantize it with --target=any"));
}

// Fails if this TensorFlow, or the one asked for, lacks something that the
// model has, or would have it with a variable set. Opens TensorFlow's library.
absl::Status CheckOperations(const std::string& directory,
                             const MetaGraphDef& meta) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  const auto& info = meta.meta_info_def();
  for (const auto& op : info.stripped_op_list().op()) {
    if (tensorflow::OpRegistry::Global()->LookUp(op.name()) != nullptr) {
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " has the operation ", Printable(op.name()),
                     ", which TensorFlow ", REQUANT_TENSORFLOW_VERSION,
                     " lacks; it was made with TensorFlow ",
                     Printable(info.tensorflow_version())));
  }
  if (NeedsOneDnn(meta.graph_def()) && !tensorflow::IsMKLEnabled()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "set TF_ENABLE_ONEDNN_OPTS=1 before TensorFlow loads: ", directory,
        " has operations that exist only while oneDNN is turned on; "
        "--ops=portable makes a model that needs no variable"));
  }
  return FLAGS_target_tensorflow.empty()
             ? absl::OkStatus()
             : CheckTensorFlow(FLAGS_target_tensorflow, meta.graph_def());
}

// Runs one request. Fails if an answer is not as it was recorded.
absl::Status CheckRequest(const std::string& directory,
                          const WarmUpRequest& request) {
  SetActivity(absl::StrCat("loading ", directory));
  ModelSpec spec;
  spec.set_path(directory);
  spec.set_signature(request.signature);
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                           Model::Load(spec, SessionSpec()));
  std::vector<std::string> inputs, outputs;
  std::vector<Tensor> fed, answers;
  for (const auto& [key, tensor] : request.inputs) {
    REQUANT_ASSIGN_OR_RETURN(inputs.emplace_back(), model->InputTensor(key));
    fed.push_back(tensor);
  }
  for (const auto& [key, tensor] : request.outputs) {
    REQUANT_ASSIGN_OR_RETURN(outputs.emplace_back(), model->OutputTensor(key));
  }
  SetActivity(absl::StrCat("running ", directory));
  REQUANT_ASSIGN_OR_RETURN(const auto function,
                           ModelFunction::Make(model.get(), inputs, outputs));
  REQUANT_RETURN_IF_ERROR(RunError(function->Run(fed, &answers), directory,
                                   "TensorFlow cannot run it here"));
  size_t next = 0;
  for (const auto& [key, recorded] : request.outputs) {
    const std::string difference = Difference(recorded, answers[next++]);
    if (difference.empty()) continue;
    return absl::DataLossError(absl::StrCat(
        directory,
        " gives other answers here than when it was "
        "made: the output \"",
        key, "\" of the signature \"", request.signature, "\" ", difference));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Work(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const std::string directory, FindSavedModel(path));
  REQUANT_ASSIGN_OR_RETURN(const std::vector<WarmUpRequest> requests,
                           ReadWarmUp(directory));
  REQUANT_ASSIGN_OR_RETURN(const MetaGraphDef meta, ReadSavedModel(directory));
  REQUANT_RETURN_IF_ERROR(CheckCpu(directory, meta));
  REQUANT_RETURN_IF_ERROR(CheckOperations(directory, meta));
  int answers = 0;
  for (const WarmUpRequest& request : requests) {
    REQUANT_RETURN_IF_ERROR(CheckRequest(directory, request));
    answers += static_cast<int>(request.outputs.size());
  }
  // Requests of others have no recorded answers.
  if (answers == 0) {
    return absl::NotFoundError(
        absl::StrCat(directory,
                     " carries no request with an answer in assets.extra; "
                     "requant quantize --saved_model writes some"));
  }
  StartReport();
  std::printf("%s: %s as when it was made, in this environment\n%s\n",
              Printable(path).c_str(), CountText(answers, "answer").c_str(),
              RequirementsText(meta.graph_def()).c_str());
  return kExitOk;
}

int Main(int argc, char** argv) {
  std::vector<std::string> positional;
  if (const auto code = ParseFlags(argc, argv, Help(), &positional)) {
    return *code;
  }
  if (positional.size() != 1) {
    return ReportUsage(kProgram, positional.empty()
                                     ? "the SavedModel's folder is missing"
                                     : "one SavedModel at a time");
  }
  if (!(FLAGS_tolerance >= 0)) {
    return ReportUsage(kProgram, "--tolerance must be at least 0");
  }
  if (!FLAGS_target_tensorflow.empty()) {
    const auto known = OpsForTensorFlow(FLAGS_target_tensorflow, "");
    if (!known.ok()) return ReportUsage(kProgram, known.status().message());
  }
  IsolationOptions isolation;
  isolation.program = kProgram;
  isolation.arguments.assign(argv + 1, argv + argc);
  isolation.timeout_seconds = FLAGS_timeout;
  isolation.graph = GraphLimits();
  isolation.graph->has_flags = false;
  isolation.stock_environment = true;
  return RunIsolated(isolation, [&] { return Work(positional.front()); });
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Main(argc, argv));
}
