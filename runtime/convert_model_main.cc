// convert_model (requant convert) transforms a SavedModel's graph and functions
// and writes them back with its variables.

#include <gflags/gflags.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/freeze/freeze.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/saved_model/saved_model_writer.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/model.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "transforms/pipeline.h"
#include "transforms/pipeline_parser.h"
#include "transforms/qdq/qdq_sites.h"
#include "transforms/registry.h"

DEFINE_string(saved_model, "",
              "the SavedModel to read: its folder, or one that has it in "
              "saved_model, in a version (1), or in saved_model/1");
DEFINE_string(output, "",
              "the SavedModel to write; empty: ./converted_NAME, with the name "
              "of the model's folder");
DEFINE_bool(overwrite, false, "replace a SavedModel that is at --output");
DEFINE_bool(overwrite_own, false,
            "replace what an earlier run wrote to --output: a SavedModel whose "
            "graph is the one in --converted_graph_def; any other stays, and "
            "is an error");
DEFINE_bool(insert_qdq, false,
            "put a QuantizeV2 and a Dequantize before the inputs of the layers "
            "(the transform insert_qdq), in functions too");
DEFINE_string(ops, "",
              "with --insert_qdq: the ops whose inputs get the pairs, "
              "separated by commas, such as MatMul,BatchMatMulV2");
DEFINE_string(inputs, "",
              "with --insert_qdq: which inputs: activations, weights or both");
DEFINE_string(ranges, "",
              "with --insert_qdq: where the ranges come from: fixed(-1,1), "
              "calibrate (by --dataset), or RangeTable files of requant "
              "calibrate, separated by commas; empty: calibrate with a "
              "--dataset, else fixed(-1,1) "
              "as in the published example");
DEFINE_string(dataset, "",
              "to calibrate: a declaration (.textproto) of records and inputs");
DEFINE_string(data, "",
              "to calibrate: files or globs, separated by commas, to read "
              "instead of those that the declaration names");
DEFINE_int64(max_records, 0,
             "calibrate on this many of the first records; 0: all");
DEFINE_int64(batch_size, 0,
             "records per run when calibrating; 0: the default of requant "
             "calibrate");
DEFINE_string(ranges_output, "",
              "also write the calibration's RangeTable file, for --ranges");
DEFINE_string(method, "",
              "with ranges that were measured: minmax, percentile or mse; "
              "empty: the default of insert_qdq");
DEFINE_double(value_percentile, 99.99,
              "with --method=percentile: this many percent of the values lie "
              "below the maximum, and as many above the minimum");
DEFINE_string(missing, "",
              "with ranges that were measured: what becomes of an input "
              "without one, as in a loop: error, or skip, which leaves it in "
              "float; empty: skip with --ranges=calibrate, error with files");
DEFINE_string(transforms, "",
              "transforms to run, after insert_qdq if that is asked for, as "
              "requant transform takes them; the model's signatures give "
              "their inputs and outputs");
DEFINE_string(plugins, "",
              "shared libraries with transforms of your own, separated by "
              "commas");
DEFINE_string(tags, "",
              "which graph of the SavedModel, tags separated by commas; "
              "empty: the only one, or the one tagged serve");
DEFINE_string(signature, "",
              "the signature that is calibrated, which must be there; empty: "
              "serving_default");
DEFINE_string(extracted_graph_def, "extracted_graph_def.pb",
              "where to write the graph as it was; empty: nowhere");
DEFINE_string(converted_graph_def, "converted_graph_def.pb",
              "where to write the graph as it is in --output; empty: nowhere");
DEFINE_string(
    copy, "auto",
    "how variables come to --output: link (hard links), copy, or auto "
    "(shared blocks where the file system can, else links, else "
    "copies)");
DEFINE_bool(verify, true,
            "check the graph before the first and after every transform");
DEFINE_double(timeout, 3600,
              "give up after this many seconds; 0 means never, which is also "
              "the default of a run that calibrates");

namespace requant {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;

const char* const kProgram = ProgramName();
constexpr char kCalibrate[] = "calibrate";
constexpr char kFixed[] = "fixed(-1,1)";

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "reads a SavedModel whose weights are in variables, transforms its graph "
      "and its functions, and writes all of it back as a SavedModel: the same "
      "signatures, objects, assets and variables. Without --insert_qdq and "
      "--transforms the model is written back as it is, to the byte.";
  help.usage =
      "$0 --saved_model=gpt-j-6B\n"
      "$0 --saved_model=gpt-j-6B --insert_qdq --overwrite\n"
      "$0 --saved_model=gpt-j-6B --output=int8 --insert_qdq "
      "--ranges=calibrate --dataset=data.textproto\n"
      "$0 --saved_model=gpt-j-6B --output=tidy "
      "--transforms='rename_op(old_op_name=BatchMatMul, "
      "new_op_name=BatchMatMulV2)'";
  help.flag_files = {__FILE__};
  help.aliases = {{"records", "max_records"}, {"out", "output"}};
  help.footer =
      "Variables are neither read nor loaded. --output is there as a whole or "
      "not "
      "at all. How to go on is in docs/saved_models.md.\n"
      "Exit code: 0 done, 1 failed (--output is as it was, unless the message "
      "says that it is written; ranges that were measured stay in "
      "--ranges_output), 2 usage, 128 + N interrupted by signal N.";
  help.repeatable_flags = {"ops", "data", "plugins"};
  return help;
}

// Returns the two numbers of "fixed(-1,1)" as they were typed, or nothing for
// any other text.
std::optional<std::pair<std::string, std::string>> ParseFixed(
    std::string_view text) {
  if (!absl::ConsumePrefix(&text, "fixed(") ||
      !absl::ConsumeSuffix(&text, ")")) {
    return std::nullopt;
  }
  std::vector<std::string> numbers = absl::StrSplit(text, ',');
  for (std::string& number : numbers) absl::StripAsciiWhitespace(&number);
  double min, max;
  if (numbers.size() != 2 || !absl::SimpleAtod(numbers[0], &min) ||
      !absl::SimpleAtod(numbers[1], &max) || !(min < max)) {
    return std::nullopt;
  }
  return std::make_pair(numbers[0], numbers[1]);
}

bool IsSet(const char* flag) {
  return !gflags::GetCommandLineFlagInfoOrDie(flag).is_default;
}

std::string Ranges() {
  if (!FLAGS_ranges.empty()) return FLAGS_ranges;
  return FLAGS_dataset.empty() ? kFixed : kCalibrate;
}

bool Calibrates() { return FLAGS_insert_qdq && Ranges() == kCalibrate; }

// Returns the treatment of inputs without a range. Calibrating a signature
// measures none in loops, in conditional branches and for other signatures.
std::string Missing() {
  if (!FLAGS_missing.empty()) return FLAGS_missing;
  return Calibrates() ? "skip" : "error";
}

// Returns what is wrong with the flags of --insert_qdq.
std::optional<std::string> QdqUsageProblem() {
  if (!FLAGS_insert_qdq) {
    for (const char* flag : {"ops", "inputs", "ranges", "dataset", "data",
                             "max_records", "batch_size", "ranges_output",
                             "method", "value_percentile", "missing"}) {
      if (IsSet(flag)) return absl::StrCat("--", flag, " needs --insert_qdq");
    }
    return std::nullopt;
  }
  if (absl::StartsWith(Ranges(), "fixed") && !ParseFixed(Ranges())) {
    return absl::StrCat("--ranges=", Ranges(),
                        " is not of the form fixed(MIN,MAX) with MIN < MAX");
  }
  if (!FLAGS_method.empty()) {
    const auto method = ParseRangeMethod(FLAGS_method);
    if (!method.ok()) return std::string(method.status().message());
  }
  if (!(FLAGS_value_percentile > 50 && FLAGS_value_percentile <= 100)) {
    return "--value_percentile is above 50 and at most 100";
  }
  if (Calibrates() && FLAGS_dataset.empty()) {
    return "--ranges=calibrate needs a --dataset";
  }
  for (const char* flag :
       {"dataset", "data", "max_records", "batch_size", "ranges_output"}) {
    if (!Calibrates() && IsSet(flag)) {
      return absl::StrCat("--", flag, " is for --ranges=calibrate");
    }
  }
  if (!(FLAGS_missing.empty() || FLAGS_missing == "error" ||
        FLAGS_missing == "skip")) {
    return "--missing is error or skip";
  }
  if (!FLAGS_missing.empty() && ParseFixed(Ranges())) {
    return "--missing is for ranges that were measured";
  }
  if (FLAGS_max_records < 0) return "--max_records must be at least 0";
  if (FLAGS_batch_size < 0) return "--batch_size must be at least 0";
  return std::nullopt;
}

std::optional<std::string> UsageProblem(
    const std::vector<std::string>& positional) {
  if (!positional.empty()) {
    return absl::StrCat("unexpected argument \"", positional.front(), "\"");
  }
  if (FLAGS_saved_model.empty()) return "--saved_model is missing";
  const auto copy = ParseVariablePlacement(FLAGS_copy);
  if (!copy.ok()) return absl::StrCat("--copy: ", copy.status().message());
  const auto calls = ParsePipeline(FLAGS_transforms);
  if (!calls.ok()) return std::string(calls.status().message());
  return QdqUsageProblem();
}

// Returns where the model goes, given where it is.
std::string Target(const std::string& source) {
  if (FLAGS_output.empty()) {
    return absl::StrCat("./converted_", SavedModelName(source));
  }
  std::string_view target = FLAGS_output;
  while (target.size() > 1 && absl::ConsumeSuffix(&target, "/")) {
  }
  return std::string(target);
}

// Returns where a calibration puts its ranges if no file was asked for.
std::string PrivateRanges(const std::string& target) {
  return absl::StrCat(target, ".ranges");
}

CalibrateJob CalibrationJob(const std::string& source) {
  constexpr int64_t kBatchSize = 8;
  constexpr int64_t kHeldBytes = 512'000'000;
  CalibrateJob job;
  job.mutable_model()->set_path(source);
  for (const std::string& tag : ParseNameList(FLAGS_tags)) {
    job.mutable_model()->add_tags(tag);
  }
  job.mutable_model()->set_signature(FLAGS_signature);
  job.set_batch_size(FLAGS_batch_size > 0 ? FLAGS_batch_size : kBatchSize);
  job.set_max_records(FLAGS_max_records);
  std::vector<std::string> ops = ParseNameList(FLAGS_ops);
  if (ops.empty()) ops = DefaultQdqOps();
  for (const std::string& op : ops) job.mutable_qdq()->add_op(op);
  job.mutable_qdq()->set_inputs(FLAGS_inputs);
  job.mutable_qdq()->set_held_bytes(kHeldBytes);
  return job;
}

// Measures the ranges of the model and writes them to `output`.
absl::Status Calibrate(const std::string& source, const std::string& output) {
  CalibrateJob job = CalibrationJob(source);
  REQUANT_ASSIGN_OR_RETURN(
      *job.mutable_dataset(),
      ReadDatasetSpec(FLAGS_dataset,
                      absl::StrSplit(FLAGS_data, ',', absl::SkipEmpty())));
  std::vector<std::string> inputs = FilesOf(job.dataset());
  inputs.push_back(FLAGS_dataset);
  REQUANT_RETURN_IF_ERROR(CheckDistinct(inputs, {output}));
  REQUANT_ASSIGN_OR_RETURN(const RangeTable table,
                           ObserveRanges(job, nullptr, /*for_file=*/true));
  return WriteRangeTable(table, output);
}

// Returns the transforms; `ranges_file` has the calibrated ranges.
std::vector<TransformCall> Calls(const std::string& ranges_file) {
  std::vector<TransformCall> calls = *ParsePipeline(FLAGS_transforms);
  if (!FLAGS_insert_qdq) return calls;
  TransformCall qdq = {"insert_qdq", {}};
  const std::vector<std::string> ops = ParseNameList(FLAGS_ops);
  if (!ops.empty()) qdq.parameters["op"] = ops;
  if (!FLAGS_inputs.empty()) qdq.parameters["inputs"] = {FLAGS_inputs};
  if (const auto fixed = ParseFixed(Ranges())) {
    qdq.parameters["min"] = {fixed->first};
    qdq.parameters["max"] = {fixed->second};
  } else {
    qdq.parameters["ranges_file"] = Calibrates()
                                        ? std::vector<std::string>{ranges_file}
                                        : ParseNameList(Ranges());
    if (!FLAGS_method.empty()) qdq.parameters["method"] = {FLAGS_method};
    // With 17 digits the number is read back as it is.
    qdq.parameters["value_percentile"] = {
        absl::StrFormat("%.17g", FLAGS_value_percentile)};
    qdq.parameters["missing"] = {Missing()};
  }
  calls.insert(calls.begin(), std::move(qdq));
  return calls;
}

absl::StatusOr<TransformRegistry*> OpenRegistry() {
  SetActivity("starting TensorFlow");
  REQUANT_ASSIGN_OR_RETURN(TransformRegistry * registry,
                           TransformRegistry::Get());
  for (const std::string& path : ParseNameList(FLAGS_plugins)) {
    SetActivity(absl::StrCat("loading the plugin ", path));
    std::vector<std::string> notes;
    REQUANT_RETURN_IF_ERROR(
        registry->LoadPlugin(path, /*allow_override=*/false, &notes));
  }
  return registry;
}

PipelineOptions Pipeline(const SavedModelReferences& references) {
  PipelineOptions options;
  options.inputs = references.inputs();
  options.outputs = references.outputs();
  options.verify = FLAGS_verify;
  options.on_note = [](std::string_view text) {
    std::printf("%s\n", std::string(text).c_str());
  };
  options.on_warning = SayWarning;
  return options;
}

std::string SizeText(const GraphDef& graph, size_t bytes) {
  int nodes = graph.node_size();
  for (const FunctionDef& function : graph.library().function()) {
    nodes += function.node_def_size();
  }
  return absl::StrFormat("%d nodes, in the graph and in %d functions, %.3f MB",
                         nodes, graph.library().function_size(), bytes / 1e6);
}

std::string VariablesText(const PlacedVariables& variables) {
  if (variables.files == 0) return "variables: none";
  std::string text = absl::StrFormat("variables: %d files, %.3f MB",
                                     variables.files, variables.bytes / 1e6);
  if (variables.linked > 0) {
    absl::StrAppend(&text,
                    ", hard links to those of the original: whoever writes "
                    "into one writes into both (--copy=copy makes copies)");
  } else {
    absl::StrAppend(&text, variables.cloned > 0
                               ? ", sharing their blocks with the original's"
                               : ", copied");
  }
  return text;
}

// Prints what was written; `after` is "" if the graph did not change.
void Tell(const SavedModelWriterOptions& files, const SavedModelWriter& writer,
          const std::string& before, const std::string& after) {
  for (const std::string& note : writer.notes()) {
    Say(kProgram, absl::StrCat("note: ", note));
  }
  std::printf("%s -> %s\n", Printable(files.source).c_str(),
              Printable(files.target).c_str());
  if (after.empty()) {
    std::printf("  graph: unchanged, %s\n", before.c_str());
  } else {
    std::printf("  graph: %s\n     -> %s\n", before.c_str(), after.c_str());
  }
  std::printf("  %s\n", VariablesText(writer.variables()).c_str());
  for (const std::string& path :
       {FLAGS_extracted_graph_def, FLAGS_converted_graph_def}) {
    if (!path.empty()) std::printf("  wrote %s\n", Printable(path).c_str());
  }
}

// Returns the files to write, without --output itself.
std::vector<std::string> OutputFiles() {
  std::vector<std::string> outputs;
  for (const std::string& path :
       {FLAGS_extracted_graph_def, FLAGS_converted_graph_def,
        FLAGS_ranges_output}) {
    if (!path.empty()) outputs.push_back(path);
  }
  return outputs;
}

absl::Status CheckOutputs(const std::string& source,
                          const std::string& target) {
  ModelFiles files;
  files.saved_model = source;
  REQUANT_RETURN_IF_ERROR(CheckDistinct(FilesOf(files), OutputFiles()));
  for (const std::string& output : OutputFiles()) {
    REQUANT_RETURN_IF_ERROR(CheckOutside(output, target));
    REQUANT_RETURN_IF_ERROR(CheckWritable(output));
  }
  return absl::OkStatus();
}

absl::StatusOr<SavedModelFile> ReadModelFile(const std::string& directory) {
  const std::vector<std::string> tags = ParseNameList(FLAGS_tags);
  return SavedModelFile::Read(directory, {tags.begin(), tags.end()});
}

// Returns whether an earlier run wrote --output, judging by the graph beside
// it.
bool IsOwnResult(const std::string& target) {
  const auto model = ReadModelFile(target);
  const auto graph = ReadFile(FLAGS_converted_graph_def);
  return model.ok() && graph.ok() && model->graph_bytes() == *graph;
}

// Calibrates the model if the transforms need it, and lets them report.
absl::Status CalibrateFirst(const std::string& source,
                            const std::string& ranges) {
  const absl::Status status = Calibrate(source, ranges);
  if (!status.ok()) {
    return absl::Status(
        status.code(), absl::StrCat("the calibration failed: ",
                                    status.message(), "; nothing was written"));
  }
  StartReport(/*more_work=*/true);
  return absl::OkStatus();
}

// Runs the transforms; returns whether the graph changed.
absl::StatusOr<bool> Transform(const std::vector<TransformCall>& calls,
                               const TransformRegistry& registry,
                               const tensorflow::MetaGraphDef& meta,
                               GraphDef* graph) {
  const SavedModelReferences references(meta, *graph);
  const std::string before = DeterministicBytes(*graph);
  REQUANT_RETURN_IF_ERROR(
      RunPipeline(calls, registry, Pipeline(references), graph));
  REQUANT_RETURN_IF_ERROR(references.Check(*graph));
  return graph->ByteSizeLong() != before.size() ||
         DeterministicBytes(*graph) != before;
}

absl::Status WriteGraphs(const std::string& extracted,
                         const std::string& converted,
                         const std::string& target) {
  std::vector<FileToWrite> files;
  for (const auto& [path, bytes] :
       {std::pair(FLAGS_extracted_graph_def, &extracted),
        std::pair(FLAGS_converted_graph_def, &converted)}) {
    if (path.empty()) continue;
    files.push_back(
        {path, [bytes = bytes](int fd) { return WriteAll(fd, *bytes); }});
  }
  const absl::Status status = WriteFilesAtomically(files);
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; ", target,
                                   " is written, its graphs are not"));
}

// Converts the model; `registry` may be null if `calls` is empty. After an
// error the target is unchanged and no graph is written, unless writing the
// graphs failed: they are written last, and the message then says that the
// target exists.
absl::Status Convert(const SavedModelWriterOptions& files,
                     const std::vector<TransformCall>& calls,
                     const TransformRegistry* registry,
                     const std::string& ranges) {
  SetActivity("reading the model");
  REQUANT_ASSIGN_OR_RETURN(SavedModelFile file, ReadModelFile(files.source));
  if (!FLAGS_signature.empty()) {
    REQUANT_RETURN_IF_ERROR(
        CheckSignature(file.meta(), FLAGS_signature, files.source));
  }
  REQUANT_RETURN_IF_ERROR(
      CheckVariables(files.source, file.meta().graph_def()));
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<SavedModelWriter> writer,
                           SavedModelWriter::Open(files));
  if (Calibrates()) {
    REQUANT_RETURN_IF_ERROR(CalibrateFirst(files.source, ranges));
  }
  GraphDef graph = file.TakeGraph();
  const std::string before = SizeText(graph, file.graph_bytes().size());
  bool changed = false;
  if (!calls.empty()) {
    REQUANT_ASSIGN_OR_RETURN(changed,
                             Transform(calls, *registry, file.meta(), &graph));
  }
  std::string bytes = file.graph_bytes();
  std::optional<std::string> content;
  if (changed) {
    REQUANT_ASSIGN_OR_RETURN(bytes, SerializeGraph(graph));
    REQUANT_ASSIGN_OR_RETURN(content, file.WithGraph(graph, bytes));
  }
  REQUANT_RETURN_IF_ERROR(writer->Fill(file.name(), content));
  REQUANT_RETURN_IF_ERROR(writer->Commit());
  REQUANT_RETURN_IF_ERROR(WriteGraphs(file.graph_bytes(), bytes, files.target));
  Tell(files, *writer, before, changed ? SizeText(graph, bytes.size()) : "");
  return absl::OkStatus();
}

// Does the work of the isolated child.
absl::StatusOr<int> Work(const std::string& source) {
  SavedModelWriterOptions files;
  files.source = source;
  files.target = Target(source);
  files.variables = *ParseVariablePlacement(FLAGS_copy);
  files.overwrite =
      FLAGS_overwrite || (FLAGS_overwrite_own && IsOwnResult(files.target));
  REQUANT_RETURN_IF_ERROR(CheckOutputs(source, files.target));
  const std::string private_ranges =
      TemporaryName(PrivateRanges(files.target), getpid());
  absl::Cleanup remove_ranges = [&] { unlink(private_ranges.c_str()); };
  const std::string& ranges =
      FLAGS_ranges_output.empty() ? private_ranges : FLAGS_ranges_output;
  const std::vector<TransformCall> calls = Calls(ranges);
  const TransformRegistry* registry = nullptr;
  if (!calls.empty()) {
    REQUANT_ASSIGN_OR_RETURN(registry, OpenRegistry());
    // A wrong call is a usage error, detected before the model is read.
    const absl::Status checked = CheckCalls(calls, *registry);
    if (!checked.ok()) {
      ReportFailure(kProgram, checked);
      return kExitUsage;
    }
  }
  if (FLAGS_insert_qdq && Ranges() == kFixed && FLAGS_ranges.empty()) {
    SayWarning(
        "all ranges are -1 to 1, as in the published example, which changes "
        "what the model answers; --ranges=calibrate measures them");
  }
  REQUANT_RETURN_IF_ERROR(Convert(files, calls, registry, ranges));
  return kExitOk;
}

int Main(int argc, char** argv) {
  std::vector<std::string> positional;
  if (auto code = ParseFlags(argc, argv, Help(), &positional)) return *code;
  if (auto problem = UsageProblem(positional)) {
    return ReportUsage(kProgram, *problem);
  }
  const auto source = FindSavedModel(FLAGS_saved_model);
  if (!source.ok()) return ReportFailure(kProgram, source.status());
  IsolationOptions isolation;
  isolation.program = kProgram;
  isolation.arguments.assign(argv + 1, argv + argc);
  isolation.outputs = OutputFiles();
  const std::string target = Target(*source);
  isolation.outputs.push_back(target);
  isolation.outputs.push_back(PrivateRanges(target));
  isolation.subject = *source;
  // A calibration takes as long as its records do, so only stalls are limited.
  const bool unlimited = Calibrates() && !IsSet("timeout");
  isolation.timeout_seconds = unlimited ? 0 : FLAGS_timeout;
  if (Calibrates()) {
    isolation.graph = GraphLimits();
    isolation.graph->has_flags = false;
    isolation.progress = {"calibrating", "records", FLAGS_max_records};
  }
  return RunIsolated(isolation, [&] { return Work(*source); });
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Main(argc, argv));
}
