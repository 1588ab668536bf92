#include "workflows/commands/init_files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/output_op.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/signature_names.h"
#include "graph/summary/summarize.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/declaration_text.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/datasets/guess_dataset.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

using tensorflow::SignatureDef;

constexpr int64_t kMostCalibrationRecords = 10'000;
// If there are so many, a fifth is held back although the most are calibrated
// on, and more need not be counted.
constexpr int64_t kMostCountedRecords = kMostCalibrationRecords * 5 / 4;
constexpr int64_t kUsualBatchSize = 128;

// The parts of both workflows. What is in "<>" is replaced.
constexpr std::string_view kTop =
    R"(# proto-file: workflows/workflow.proto
# proto-message: requant.Workflow
#
# From a float model to int8, made by `requant init`. `requant plan` shows what
# it does, `requant run` does it; docs/workflows.md explains the format. Relative
# paths start at this file's folder.
name: "<name>"
summary: "<name> in int8, verified on records that were not calibrated on"

# To change one without editing: requant run FILE --set calibration_records=500
variable {
  name: "model"
  default_value: "<model>"
  kind: <kind>
  help: "<what>"
}
variable {
  name: "calibration_records"
  default_value: "<calibration_records>"
  kind: COUNT
  help: "ranges are observed on this many of the first records"
}
variable {
  name: "eval_records"
  default_value: "<eval_records>"
  kind: COUNT
  help: "the models are compared on this many records after those, and on more "
        "if a gate is not certain then"
}
variable {
  name: "batch_size"
  default_value: "<batch_size>"
  kind: COUNT
  help: "records per run of the model"
}
variable {
  name: "target"
  default_value: "any"
  help: "the CPU: any (safe everywhere), avx2, avx512, vnni, avx_vnni, amx, or "
        "host, which is this machine's"
}
variable {
  name: "seconds"
  default_value: "0.25"
  help: "how long the speed stage runs each model, nine times"
}

evaluation {
  name: "held_back"
  on {
    dataset: "data.textproto"<signature>
    skip: "${calibration_records}"
    records: "${eval_records}"
    batch_size: "${batch_size}"
  }
<baseline>
  # A run whose int8 model is certainly beyond a limit ends with exit code 3.
  gates {
<gates>
  }
}
)";

constexpr std::string_view kAgreementGate =
    R"(    # The share of records for which both models predict the same class.
    min_agreement: 0.97)";

constexpr std::string_view kAccuracyGate =
    R"(    # The loss of accuracy in percentage points.
    max_accuracy_drop: 0.5
)";

constexpr std::string_view kNumberGates =
    R"(    # The prediction is a number: there is no accuracy.
    max_accuracy_drop: -1
    # How much it may change on average, in its own unit:
    # max_mean_output_change: 0.1)";

constexpr std::string_view kSavedModelBaseline =
    R"(  baseline { stage: "float" })";

constexpr std::string_view kGraphBaseline =
    R"(  baseline { file: "${model}" }
  # Each layer is compared on this many records.
  layer_records: "500")";

constexpr std::string_view kSavedModelStages = R"(
# The float model as it is.
stage {
  name: "float"
  evaluate {
    graph { file: "${model}" }
    verify { evaluation: "held_back" }
  }
}

# Calibrates, quantizes and writes a SavedModel that serves, int8_saved_model in
# the run's folder; docs/serving.md says how to load it.
stage {
  name: "int8"
  export {
    saved_model { file: "${model}" }
    on {
      dataset: "data.textproto"<signature>
      records: "${calibration_records}"
      batch_size: "${batch_size}"
    }
    target: "${target}"
    # To keep a node in float: excluded_node: "NAME"
  }
  verify { evaluation: "held_back" }
}
)";

constexpr std::string_view kGraphStages = R"(
stage {
  name: "calibrate"
  calibrate {
    graph { file: "${model}" }
    on {
      dataset: "data.textproto"
      records: "${calibration_records}"
      batch_size: "${batch_size}"
    }
    direct {}
  }
}

# Writes int8.pb into the run's folder.
stage {
  name: "int8"
  quantize {
    graph { file: "${model}" }
    calibrated { ranges { stage: "calibrate" } }
<outputs>    target: "${target}"
    # To keep a node in float: excluded_node: "NAME"
  }
  verify { evaluation: "held_back" }
}
)";

constexpr std::string_view kSpeedStage = R"(
# Both models in turns, on the first records.
stage {
  name: "speed"
  benchmark {
    graph { file: "${model}" }
    graph { stage: "int8" }
    on {
      dataset: "data.textproto"<signature>
      batch_size: "${batch_size}"
    }
    seconds: "${seconds}"
  }
}
)";

// Returns the text for a field that is in double quotes.
std::string FieldText(std::string_view text) {
  return absl::StrReplaceAll(absl::CEscape(text), {{"${", "$${"}});
}

// Returns the name with "_" for what the name of a workflow cannot have.
std::string PlainName(std::string_view name) {
  std::string plain(name);
  for (char& c : plain) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("_-.", c)) c = '_';
  }
  plain.erase(0, plain.find_first_not_of("-."));
  return plain.empty() ? "model" : plain;
}

// Returns what a graph says of itself.
absl::StatusOr<SignatureDef> SignatureOfGraph(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::GraphDef graph, ReadGraph(path));
  SignatureDef signature = KeptSignature(graph);
  if (!signature.inputs().empty() && !signature.outputs().empty()) {
    return signature;
  }
  signature.Clear();
  const GraphSummary summary = SummarizeGraph(graph);
  if (!summary.placeholders || summary.chosen_inputs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has no placeholder that an output needs and records can feed"));
  }
  const auto add = [](const std::string& name, auto* tensors) {
    auto& info = (*tensors)[name];
    info.set_name(absl::StrContains(name, ':') ? name : name + ":0");
    info.mutable_tensor_shape()->set_unknown_rank(true);
    return &info;
  };
  for (const TensorSummary& input : summary.chosen_inputs) {
    auto* const info = add(input.name, signature.mutable_inputs());
    info->set_dtype(input.type);
    if (input.has_shape) *info->mutable_tensor_shape() = input.shape;
  }
  for (const std::string& output : summary.chosen_outputs) {
    add(output, signature.mutable_outputs());
  }
  return signature;
}

// Returns the batch size that the model's inputs allow.
int64_t BatchSize(const SignatureDef& signature) {
  int64_t size = 0;
  for (const auto& [name, info] : signature.inputs()) {
    const auto& shape = info.tensor_shape();
    if (shape.dim_size() > 0) size = std::max(size, shape.dim(0).size());
  }
  return size > 0 ? size : kUsualBatchSize;
}

// How the records are divided.
struct Division {
  int64_t calibration = 1000;
  int64_t eval = 1000;
};

// Counts the records and divides them, unless what they feed is left to fill
// in; adds what is wrong with them to the gaps.
Division DivideRecords(GuessedDataset* dataset, InitFiles* files) {
  Division division;
  for (const GuessNote& gap : dataset->gaps) {
    if (gap.field != DatasetSpec::kPredictionFieldNumber) return division;
  }
  BatchOptions options;
  options.max_records = kMostCountedRecords;
  const absl::StatusOr<int64_t> counted = CountRecords(dataset->spec, options);
  if (!counted.ok()) {
    dataset->gaps.push_back(
        {GuessNote::kSource,
         absl::StrCat(
             "the records cannot be read: ", counted.status().message(),
             "; mend the file, or give the input a default_value if a "
             "record may lack it")});
    return division;
  }
  division.calibration =
      RecordsToCalibrateOn(*counted, kMostCalibrationRecords);
  division.eval = std::max<int64_t>(1, *counted - division.calibration);
  if (*counted < 2) {
    dataset->gaps.push_back(
        {GuessNote::kSource,
         "there is only one record, and none to compare the models on"});
  } else if (*counted < kMostCountedRecords) {
    files->guessed.push_back(absl::StrCat(
        "of the ", *counted, " records, the first ", division.calibration,
        " are for calibration and the others for verification"));
  } else {
    division.eval = kMostCalibrationRecords;
    files->guessed.push_back(absl::StrCat(
        "the first ", division.calibration,
        " records are for calibration and the next ", division.eval,
        ", if there are so many, for verification"));
  }
  return division;
}

// Returns whether the prediction is a number, not a class.
bool IsNumber(const DatasetSpec& dataset) {
  return dataset.prediction().kind() == PredictionSpec::VALUE;
}

std::string OutputNodes(const SignatureDef& signature) {
  std::set<std::string> nodes;
  for (const auto& [name, info] : signature.outputs()) {
    nodes.emplace(NodeOf(info.name()));
  }
  std::string text;
  for (const std::string& node : nodes) {
    absl::StrAppend(&text, "    output_node: \"", FieldText(node), "\"\n");
  }
  return text;
}

std::string GatesText(const DatasetSpec& dataset) {
  if (IsNumber(dataset)) return std::string(kNumberGates);
  return absl::StrCat(dataset.has_label() ? kAccuracyGate : "", kAgreementGate);
}

std::string WorkflowText(const InitModel& model, const std::string& model_path,
                         const Division& division, const DatasetSpec& dataset) {
  const bool saved = model.is_saved_model;
  const std::string parts =
      absl::StrCat(kTop, saved ? kSavedModelStages : kGraphStages, kSpeedStage);
  return absl::StrReplaceAll(
      parts, {{"<name>", model.name},
              {"<model>", absl::CEscape(model_path)},
              {"<kind>", saved ? "FOLDER" : "FILE"},
              {"<what>", saved ? "the float model, a SavedModel"
                               : "the frozen float graph"},
              {"<calibration_records>", absl::StrCat(division.calibration)},
              {"<eval_records>", absl::StrCat(division.eval)},
              {"<batch_size>", absl::StrCat(BatchSize(model.signature))},
              {"<signature>",
               saved ? absl::StrCat(" signature: \"",
                                    FieldText(model.signature_key), "\"")
                     : ""},
              {"<baseline>", saved ? kSavedModelBaseline : kGraphBaseline},
              {"<gates>", GatesText(dataset)},
              {"<outputs>", OutputNodes(model.signature)}});
}

}  // namespace

absl::StatusOr<InitModel> ReadInitModel(const std::string& path,
                                        const std::string& signature) {
  InitModel model;
  model.is_saved_model = !SavedModelDirectory(path).empty();
  if (!model.is_saved_model) {
    REQUANT_ASSIGN_OR_RETURN(model.signature, SignatureOfGraph(path));
    if (!signature.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--signature is for SavedModels; ", path, " is a graph"));
    }
    model.path = path;
    model.name = PlainName(fs::path(path).stem().string());
    return model;
  }
  REQUANT_ASSIGN_OR_RETURN(model.path, FindSavedModel(path));
  model.name = PlainName(SavedModelName(model.path));
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::MetaGraphDef meta,
                           ReadSavedModel(model.path));
  model.signature_key = MeantSignature(meta, signature);
  const absl::Status known =
      CheckSignature(meta, model.signature_key, model.path);
  if (!known.ok()) {
    return absl::NotFoundError(absl::StrCat(known.message(), " (--signature)"));
  }
  model.signature = meta.signature_def().at(model.signature_key);
  model.sums = SumsAmongOutputs(meta.graph_def(), model.signature);
  return model;
}

std::string PathFrom(const std::string& folder, const std::string& path) {
  std::error_code error;
  // Below a link, ".." would lead elsewhere.
  const auto real = [&](const fs::path& any) {
    return fs::weakly_canonical(fs::absolute(any, error), error);
  };
  fs::path target = fs::absolute(path, error).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  const fs::path relative = (real(target.parent_path()) / target.filename())
                                .lexically_relative(real(folder));
  const bool is_inside = !relative.empty() && *relative.begin() != "..";
  return fs::path(path).is_absolute() && !is_inside ? path : relative.string();
}

absl::StatusOr<InitFiles> MakeInitFiles(const InitModel& model,
                                        const std::vector<std::string>& data,
                                        const std::string& folder) {
  const std::string model_path = PathFrom(folder, model.path);
  if (absl::StrContains(model_path, "${")) {
    return absl::InvalidArgumentError(absl::StrCat(
        model_path, ": a workflow takes \"${\" for a variable; rename this"));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> existing,
                           ExistingFiles(data));
  GuessOptions options;
  options.leaves_gaps = true;
  options.sums = model.sums;
  REQUANT_ASSIGN_OR_RETURN(GuessedDataset guessed,
                           GuessDataset(model.signature, existing, options));
  InitFiles files;
  for (const GuessNote& note : guessed.notes) {
    files.guessed.push_back(note.text);
  }
  const Division division = DivideRecords(&guessed, &files);
  for (const GuessNote& gap : guessed.gaps) files.gaps.push_back(gap.text);
  if (IsNumber(guessed.spec)) {
    files.guessed.push_back(absl::StrCat(
        "no limit is set on how much the number changes: ", kInitWorkflow,
        " says where"));
  }
  if (!data.empty()) {
    auto* const declared = FormatOf(guessed.spec)->files(&guessed.spec);
    declared->Clear();
    for (const std::string& name : data) declared->Add(PathFrom(folder, name));
  }
  files.declaration = DeclarationText(guessed);
  files.workflow = WorkflowText(model, model_path, division, guessed.spec);
  return files;
}

}  // namespace requant
