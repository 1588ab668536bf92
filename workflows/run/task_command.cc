#include "workflows/run/task_command.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/shell_quote.h"
#include "workflows/language/workflow_variables.h"
#include "workflows/workflow.pb.h"

namespace requant {
namespace {

using Commands = std::vector<TaskCommand>;

// Names and patterns as people write them in lists.
template <typename Names>
std::string Joined(const Names& names) {
  return absl::StrJoin(names, ",");
}

// Builds the arguments of one command.
class Arguments {
 public:
  explicit Arguments(std::string command) { command_.command = command; }

  Arguments& Word(const std::string& word) {
    command_.args.push_back(word);
    return *this;
  }
  // Leaves the flag out when the value is empty.
  Arguments& Flag(std::string_view name, const std::string& value) {
    if (!value.empty()) {
      command_.args.push_back(absl::StrCat("--", name, "=", value));
    }
    return *this;
  }
  Arguments& StdoutTo(const std::string& file) {
    command_.stdout_file = file;
    return *this;
  }
  TaskCommand Get() const { return command_; }

 private:
  TaskCommand command_;
};

class CommandMaker {
 public:
  CommandMaker(const Plan& plan, const Task& task, const TaskPaths& paths,
               const CommandSettings& settings)
      : plan_(plan), task_(task), paths_(paths), settings_(settings) {}

  absl::StatusOr<Commands> Make() {
    Commands commands = MakeCommands();
    if (!missing_.empty()) {
      return absl::InternalError(absl::StrCat(
          "the task \"", task_.name, "\" has no ", missing_, " in its plan"));
    }
    return commands;
  }

 private:
  const Workflow& workflow() const { return plan_.file.workflow; }
  const Stage& stage() const { return workflow().stage(task_.stage); }

  Commands MakeCommands() {
    if (task_.kind == Task::Kind::kBaseline) return {Baseline()};
    if (task_.kind == Task::Kind::kVerify) {
      return {stage().has_compare() ? Compare(stage().compare()) : Verify()};
    }
    switch (stage().kind_case()) {
      case Stage::kDataset:
        return {Dataset(stage().dataset())};
      case Stage::kSummarize:
        return {Arguments("summarize")
                    .Flag("in_graph", In("graph"))
                    .StdoutTo(Out("text"))
                    .Get()};
      case Stage::kFreeze:
        return {Freeze(stage().freeze())};
      case Stage::kTransform:
        return {Transform(stage().transform())};
      case Stage::kQuantize:
        return {Quantize(stage().quantize())};
      case Stage::kCalibrate:
        return Calibrate(stage().calibrate());
      case Stage::kBenchmark:
        return {Benchmark(stage().benchmark())};
      case Stage::kConvert:
        return {Convert(stage().convert())};
      case Stage::kEvaluate:
      case Stage::kCompare:
      case Stage::KIND_NOT_SET:
        break;
    }
    missing_ = "work of its own";
    return {};
  }

  // The paths of all inputs of a role.
  std::vector<std::string> AllIn(std::string_view role) const {
    std::vector<std::string> found;
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      if (task_.inputs[i].role == role) found.push_back(paths_.inputs[i]);
    }
    return found;
  }
  std::string OptionalIn(std::string_view role) const {
    const std::vector<std::string> found = AllIn(role);
    return found.empty() ? "" : found[0];
  }
  std::string In(std::string_view role) {
    const std::vector<std::string> found = AllIn(role);
    if (found.empty()) missing_ = absl::StrCat("input \"", role, "\"");
    return found.empty() ? "" : found[0];
  }
  std::string OptionalOut(std::string_view role) const {
    for (size_t i = 0; i < task_.outputs.size(); ++i) {
      if (task_.outputs[i].role == role) return paths_.outputs[i];
    }
    return "";
  }
  std::string Out(std::string_view role) {
    const std::string path = OptionalOut(role);
    if (path.empty()) missing_ = absl::StrCat("output \"", role, "\"");
    return path;
  }

  TaskCommand Dataset(const DatasetStage& dataset) {
    if (dataset.has_preprocess()) {
      const Preprocess& preprocess = dataset.preprocess();
      Arguments arguments("dataset");
      arguments.Word("preprocess")
          .Flag("format", preprocess.format())
          .Flag("ranges", OptionalIn("ranges"))
          .Flag("buckets", preprocess.buckets())
          .Flag("out", Out("data"));
      const std::string files = In("data");
      for (std::string_view file :
           absl::StrSplit(files, ',', absl::SkipEmpty())) {
        arguments.Word(std::string(file));
      }
      return arguments.Get();
    }
    const Synthesize& synthesize = dataset.synthesize();
    return Arguments("dataset")
        .Word("synthesize")
        .Flag("split", synthesize.split())
        .Flag("rows", synthesize.rows())
        .Flag("seed", synthesize.seed())
        .Flag("format", synthesize.format())
        .Flag("ranges", OptionalIn("ranges"))
        .Flag("buckets", synthesize.buckets())
        .Flag("out", Out("data"))
        .Get();
  }

  TaskCommand Freeze(const FreezeStage& freeze) {
    Arguments arguments("freeze");
    if (freeze.has_graph()) {
      arguments.Flag("input_graph", In("graph"))
          .Flag("input_checkpoint", In("checkpoint"));
    } else {
      arguments.Flag("input_saved_model_dir", In("saved_model"));
    }
    return arguments.Flag("saved_model_tags", freeze.saved_model_tags())
        .Flag("output_node_names", Joined(freeze.output_node()))
        .Flag("output_graph", Out("graph"))
        .Get();
  }

  TaskCommand Transform(const TransformStage& transform) {
    std::map<std::string, std::string> files;
    for (const NamedInput& file : transform.file()) {
      files.emplace(file.name(), In(file.name()));
    }
    return Arguments("transform")
        .Flag("in_graph", In("graph"))
        .Flag("out_graph", Out("graph"))
        .Flag("inputs", Joined(transform.inputs()))
        .Flag("outputs", Joined(transform.outputs()))
        .Flag("plugins", Joined(AllIn("plugin")))
        .Flag("transforms", FillInFiles(transform.transforms(), files))
        .Get();
  }

  std::string Target(const QuantizeStage& quantize) const {
    return quantize.target() == "host" ? settings_.host_target
                                       : std::string(quantize.target());
  }

  TaskCommand Quantize(const QuantizeStage& quantize) {
    if (quantize.has_calibrated()) {
      return Arguments("quantize")
          .Flag("graph", In("graph"))
          .Flag("ranges", In("ranges"))
          .Flag("output", Out("graph"))
          .Flag("outputs", Joined(quantize.output_node()))
          .Flag("target", Target(quantize))
          .Flag("method", quantize.calibrated().method())
          .Flag("value_percentile", quantize.calibrated().value_percentile())
          .Flag("excluded_ops", Joined(quantize.excluded_op()))
          .Flag("excluded_nodes", Joined(quantize.excluded_node()))
          .Get();
    }
    return Arguments("quantize_graph")
        .Flag("input", In("graph"))
        .Flag("output", Out("graph"))
        .Flag("output_node_names", Joined(quantize.output_node()))
        .Flag("target", Target(quantize))
        .Flag("excluded_ops", Joined(quantize.excluded_op()))
        .Flag("excluded_nodes", Joined(quantize.excluded_node()))
        .Get();
  }

  Commands Calibrate(const CalibrateStage& calibrate) {
    const Records& on = calibrate.on();
    if (calibrate.has_logging()) return CalibrateByLogging(calibrate);
    return {Arguments("calibrate")
                .Flag("graph", In("graph"))
                .Flag("dataset", In("dataset"))
                .Flag("data", OptionalIn("data"))
                .Flag("batch_size", on.batch_size())
                .Flag("max_records", on.records())
                .Flag("moment_records", calibrate.direct().moment_records())
                .Flag("qdq_ops", Joined(calibrate.direct().qdq_op()))
                .Flag("qdq_inputs", calibrate.direct().qdq_inputs())
                .Flag("output", Out("ranges"))
                .Get()};
  }

  // Batches run one after the other: lines of Print operations that several
  // streams write would interleave.
  Commands CalibrateByLogging(const CalibrateStage& calibrate) {
    const Records& on = calibrate.on();
    const Logging& logging = calibrate.logging();
    const std::string transforms = absl::StrCat(
        "insert_logging(op=", logging.op(), ", show_name=true, message=\"",
        absl::StrReplaceAll(logging.message(),
                            {{"\\", "\\\\"}, {"\"", "\\\""}}),
        "\")");
    Commands commands = {Arguments("transform")
                             .Flag("in_graph", In("graph"))
                             .Flag("out_graph", Out("logged_graph"))
                             .Flag("transforms", transforms)
                             .Get(),
                         Arguments("evaluate")
                             .Flag("graph", Out("logged_graph"))
                             .Flag("dataset", In("dataset"))
                             .Flag("data", OptionalIn("data"))
                             .Flag("output", on.output())
                             .Flag("batch_size", on.batch_size())
                             .Flag("records", on.records())
                             .Flag("log_file", Out("log"))
                             .Get()};
    if (!OptionalOut("ranges").empty()) {
      commands.push_back(Arguments("parse_log")
                             .Word("--allow_empty")
                             .Flag("output", Out("ranges"))
                             .Word(Out("log"))
                             .Get());
    }
    return commands;
  }

  // What every evaluation of `on` has.
  Arguments Evaluate(const Records& on) {
    Arguments arguments("evaluate");
    arguments.Flag("graph", In("graph"))
        .Flag("dataset", In("dataset"))
        .Flag("data", OptionalIn("data"))
        .Flag("output", on.output())
        .Flag("batch_size", on.batch_size())
        .Flag("records", settings_.records.has_value()
                             ? absl::StrCat(*settings_.records)
                             : std::string(on.records()));
    AddStreams(&arguments);
    return arguments.Flag("result_out", Out("result"))
        .Flag("predictions_out", OptionalOut("predictions"));
  }

  void AddStreams(Arguments* arguments) {
    if (settings_.streams <= 1) return;
    arguments->Flag("streams", absl::StrCat(settings_.streams))
        .Flag("threads", "1");
  }

  TaskCommand Baseline() {
    Records on = workflow().evaluation(task_.evaluation).on();
    if (!task_.baseline_records.empty()) {
      on.set_records(task_.baseline_records);
    }
    return Evaluate(on).Get();
  }

  TaskCommand Verify() {
    const Evaluation& evaluation = workflow().evaluation(task_.evaluation);
    Arguments arguments = Evaluate(evaluation.on());
    const std::string baseline = OptionalIn("baseline");
    arguments.Flag("baseline_predictions", OptionalIn("baseline_predictions"))
        .Flag("baseline", baseline);
    if (!baseline.empty()) {
      arguments.Flag("layer_records", evaluation.layer_records());
    }
    return arguments.Get();
  }

  TaskCommand Compare(const CompareStage& compare) {
    return Evaluate(compare.on())
        .Flag("baseline", In("baseline"))
        .Flag("layer_records", compare.layer_records())
        .Get();
  }

  TaskCommand Convert(const ConvertStage& convert) {
    Arguments arguments("convert");
    arguments.Flag("saved_model", In("saved_model"))
        .Flag("out", Out("graph"))
        .Flag("tags", convert.saved_model_tags())
        // A run's commands.sh makes the same files again.
        .Word("--overwrite")
        .Flag("copy", convert.variables())
        // Without a name it would write them under its own.
        .Word(absl::StrCat("--extracted_graph_def=",
                           OptionalOut("extracted_graph_def")))
        .Word(absl::StrCat("--converted_graph_def=",
                           OptionalOut("converted_graph_def")));
    if (!convert.has_insert_qdq()) return arguments.Get();
    const InsertQdq& qdq = convert.insert_qdq();
    arguments.Word("--insert_qdq")
        .Flag("ops", Joined(qdq.op()))
        .Flag("inputs", qdq.inputs());
    if (qdq.has_fixed()) {
      return arguments
          .Flag("ranges", absl::StrCat("fixed(", qdq.fixed().min(), ",",
                                       qdq.fixed().max(), ")"))
          .Get();
    }
    return arguments.Flag("ranges", In("ranges"))
        .Flag("method", qdq.calibrated().method())
        .Flag("value_percentile", qdq.calibrated().value_percentile())
        .Get();
  }

  // Graphs run as evaluations do, SavedModels one batch at a time on all cores,
  // as the published example does.
  TaskCommand Benchmark(const BenchmarkStage& benchmark) {
    Arguments arguments("benchmark");
    const bool is_published = !benchmark.published_name().empty();
    for (const std::string& graph : AllIn("graph")) {
      arguments.Flag(is_published ? "saved_model" : "graph", graph);
    }
    if (is_published) arguments.StdoutTo(Out("text"));
    arguments.Flag("name", benchmark.published_name())
        .Flag("dataset", In("dataset"))
        .Flag("data", OptionalIn("data"))
        .Flag("output", benchmark.on().output())
        .Flag("batch_size", benchmark.on().batch_size());
    if (!is_published) AddStreams(&arguments);
    return arguments.Flag("rounds", benchmark.rounds())
        .Flag("seconds", benchmark.seconds())
        .Flag("result_out", Out("result"))
        .Get();
  }

  const Plan& plan_;
  const Task& task_;
  const TaskPaths& paths_;
  const CommandSettings& settings_;
  // What the plan should have had.
  std::string missing_;
};

}  // namespace

absl::StatusOr<std::vector<TaskCommand>> TaskCommands(
    const Plan& plan, const Task& task, const TaskPaths& paths,
    const CommandSettings& settings) {
  return CommandMaker(plan, task, paths, settings).Make();
}

bool MeasuresTime(const Plan& plan, const Task& task) {
  return task.kind == Task::Kind::kMake &&
         plan.file.workflow.stage(task.stage).has_benchmark();
}

bool UsesAllCores(const Plan& plan, const Task& task) {
  if (task.kind != Task::Kind::kMake) return true;
  const Stage& stage = plan.file.workflow.stage(task.stage);
  return stage.has_benchmark() || stage.has_calibrate() ||
         (stage.has_quantize() && stage.quantize().has_calibrated());
}

std::string ShellCommand(const TaskCommand& command) {
  std::string line = absl::StrCat("requant ", command.command);
  for (const std::string& arg : command.args) {
    absl::StrAppend(&line, " ", ShellQuoted(arg));
  }
  if (!command.stdout_file.empty()) {
    absl::StrAppend(&line, " > ", ShellQuoted(command.stdout_file));
  }
  return line;
}

}  // namespace requant
