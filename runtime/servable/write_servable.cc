#include "runtime/servable/write_servable.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/json.h"
#include "base/message_text.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "base/version.h"
#include "graph/constant_store.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/saved_model/saved_model_writer.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/evaluation/evaluation_report.h"
#include "runtime/quantization/quantize.h"
#include "runtime/servable/check_graph.h"
#include "runtime/servable/tensorflow_versions.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/model.h"
#include "transforms/layers/quantized_weights.h"

namespace requant {
namespace {

// What the written model's meta_graph_version begins with.
constexpr std::string_view kTarget = "requant --target=";

// Returns a phrase on the CPUs on which the sums are right.
std::string CpusText(const std::string& target) {
  const auto rule = WeightRuleOf(target);
  return rule.ok() && *rule == WeightRule::kAnyCode
             ? "those with VNNI or AMX only; elsewhere sums may saturate"
             : "every x86-64 CPU";
}

// The number of records in a request to warm up with.
constexpr int64_t kWarmUpRecords = 4;

std::string Megabytes(int64_t bytes) {
  return absl::StrFormat("%.3f MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

std::string TargetOf(const tensorflow::MetaGraphDef& meta) {
  std::string_view version = meta.meta_info_def().meta_graph_version();
  return absl::ConsumePrefix(&version, kTarget) ? std::string(version) : "";
}

absl::StatusOr<std::unique_ptr<ServableWriter>> ServableWriter::Open(
    const FrozenModel& model, const ServableRequest& request) {
  REQUANT_RETURN_IF_ERROR(CheckSavedModelTarget(model.directory, request.target,
                                                request.overwrite));
  // A folder of versions that is not there is made and put in place with the
  // model, so that nothing stays of it if this process is killed.
  const std::filesystem::path target = ResolvedPath(request.target);
  const std::filesystem::path around = target.parent_path();
  std::error_code error;
  const bool makes_around =
      !std::filesystem::exists(around, error) &&
      std::filesystem::exists(around.parent_path(), error);
  auto folder = makes_around
                    ? StagedFolder::Create(around.string(), /*replace=*/false)
                    : StagedFolder::Create(request.target, request.overwrite);
  if (absl::IsAlreadyExists(folder.status()) && !request.overwrite) {
    return absl::AlreadyExistsError(
        absl::StrCat(folder.status().message(),
                     ": name another folder, or replace a SavedModel by "
                     "--overwrite"));
  }
  if (absl::IsNotFound(folder.status()) && !makes_around) {
    return absl::NotFoundError(absl::StrCat(
        "cannot write ", request.target, ": there is no folder ",
        around.parent_path().string(), ", which must be made first"));
  }
  REQUANT_RETURN_IF_ERROR(folder.status());
  std::string path = (*folder)->path();
  if (makes_around) {
    path += "/" + target.filename().string();
    if (mkdir(path.c_str(), 0777) != 0) {
      return absl::ErrnoToStatus(errno,
                                 absl::StrCat("cannot write ", request.target));
    }
  }
  return absl::WrapUnique(
      new ServableWriter(model, request, path, *std::move(folder)));
}

absl::StatusOr<WarmUpRequest> ServableWriter::RequestFor(
    const SignatureRecords& records, const CalibrateJob& settings) {
  ModelSpec spec;
  spec.set_path(path_);
  spec.set_signature(records.signature);
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                           Model::Load(spec, SessionSpec()));
  BatchOptions options;
  options.batch_size = kWarmUpRecords;
  options.max_records = kWarmUpRecords;
  options.max_bad_records = settings.max_bad_records();
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                           OpenBatchSource(records.dataset, options));
  Batch batch;
  REQUANT_RETURN_IF_ERROR(source->Next(&batch).status());
  REQUANT_ASSIGN_OR_RETURN(
      WarmUpRequest request,
      RecordRequest(model.get(), records.signature, records.dataset, batch));
  request.model = SavedModelName(request_.target);
  return request;
}

absl::Status ServableWriter::Write(tensorflow::GraphDef graph,
                                   const std::vector<SignatureRecords>& records,
                                   const CalibrateJob& settings) {
  const absl::Status status =
      WriteAndCompare(std::move(graph), records, settings);
  // The temporary folder's name means nothing to users.
  return absl::Status(
      status.code(),
      absl::StrReplaceAll(status.message(), {{path_, request_.target}}));
}

absl::Status ServableWriter::WriteAndCompare(
    tensorflow::GraphDef graph, const std::vector<SignatureRecords>& records,
    const CalibrateJob& settings) {
  ExportOptions options;
  options.source = model_.directory;
  options.tags = model_.tags;
  options.signatures = model_.signatures;
  options.vocabularies = model_.frozen.vocabularies;
  is_float_ = QuantizedMatMuls(graph) == 0;
  if (!is_float_) options.version = absl::StrCat(kTarget, request_.cpus);
  requirements_ = RequirementsText(graph);
  SetActivity(absl::StrCat("writing ", request_.target));
  REQUANT_ASSIGN_OR_RETURN(exported_,
                           ExportSavedModel(options, std::move(graph), path_));
  // Loading both models takes memory.
  ForgetAllBut(tensorflow::GraphDef());
  std::vector<WarmUpRequest> requests;
  for (const SignatureRecords& part : records) {
    REQUANT_ASSIGN_OR_RETURN(requests.emplace_back(),
                             RequestFor(part, settings));
    ServedSignature& served = signatures_.emplace_back();
    served.records = part;
    if (part.held_back == 0) continue;
    REQUANT_ASSIGN_OR_RETURN(served.comparison,
                             CompareSignature(model_, path_, part, settings));
    const std::string warning = LossWarning(served.comparison->comparison());
    if (!warning.empty()) SayWarning(warning);
  }
  REQUANT_RETURN_IF_ERROR(WriteWarmUp(path_, requests));
  return WriteFileAtomically(path_ + "/README.md", ReadmeText());
}

std::string ServableWriter::FindingsText() const {
  std::string text;
  for (const ServedSignature& served : signatures_) {
    const SignatureRecords& records = served.records;
    absl::StrAppend(&text, "signature \"", Printable(records.signature),
                    "\": calibrated on ",
                    CountText(records.calibrated, "record"), ", ");
    if (!served.comparison.has_value()) {
      absl::StrAppend(&text, "not compared: there are no other records\n");
      continue;
    }
    absl::StrAppend(
        &text, "compared on ", CountText(records.held_back, "other"), "\n",
        ComparisonText(*served.comparison,
                       {SavedModelName(request_.target), request_.dataset,
                        SavedModelName(model_.directory)}));
  }
  for (const auto& [key, signature] : model_.signatures) {
    if (!IsCalibrated(key)) {
      absl::StrAppend(&text, "signature \"", Printable(key),
                      "\": not calibrated, because the records lack its "
                      "inputs, or because it has no input or no float "
                      "output; what only it computes stays float\n");
    }
  }
  return text;
}

bool ServableWriter::IsCalibrated(const std::string& key) const {
  const auto& signature = model_.signatures.at(key);
  return absl::c_any_of(signatures_, [&](const ServedSignature& served) {
    return SameMessage(model_.signatures.at(served.records.signature),
                       signature);
  });
}

std::string ServableWriter::Text() const {
  std::string text = absl::StrCat(Printable(request_.target),
                                  ": a SavedModel with a graph of ",
                                  Megabytes(exported_.graph_bytes));
  if (exported_.variables > 0) {
    absl::StrAppend(&text, ", ", CountText(exported_.variables, "variable"),
                    " of ", Megabytes(exported_.variable_bytes));
  }
  if (exported_.tables > 0) {
    absl::StrAppend(&text, ", ", CountText(exported_.tables, "table"));
  }
  return absl::StrCat(text, "\n", FindingsText());
}

JsonMembers ServableWriter::Members() const {
  const auto json = [](const ServedSignature& served) {
    const bool compared = served.comparison.has_value();
    return JsonObject(
        {{"signature", JsonString(served.records.signature)},
         {"calibrated_records", absl::StrCat(served.records.calibrated)},
         {"compared_records",
          absl::StrCat(compared ? served.records.held_back : 0)},
         {"comparison",
          compared ? MessageJson(served.comparison->comparison()) : "null"}});
  };
  return {
      {"bytes", absl::StrCat(exported_.graph_bytes + exported_.variable_bytes)},
      {"signatures", JsonArrayOf(signatures_, json)}};
}

std::string ServableWriter::ReadmeText() const {
  const std::string made =
      absl::StrCat("made from \"", Printable(SavedModelName(model_.directory)),
                   "\" by ", VersionLine(), ".\n\n");
  const std::string what =
      is_float_
          ? absl::StrCat(
                "A SavedModel, ", made,
                "It is in float, because no layer is worth quantizing; "
                "every x86-64 CPU runs it.\n\n- TensorFlow: ",
                requirements_)
          : absl::StrCat(
                "An eight-bit SavedModel, ", made,
                "- CPUs: ", CpusText(request_.cpus),
                "\n- TensorFlow and environment: ", requirements_,
                " In virtual machines that advertise AMX but hide its tile "
                "palettes, every int8 model needs "
                "`ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI`.");
  return absl::StrCat(
      "# ", Printable(SavedModelName(request_.target)), "\n\n", what,
      "\n- Check it where it will be served: `requant check_serving FOLDER` "
      "runs the requests in `assets.extra` and compares the answers with "
      "those recorded when it was made.\n\n## What was found\n\n```\n",
      FindingsText(), "```\n");
}

}  // namespace requant
