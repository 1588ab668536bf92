#include "workflows/language/stage_fields.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "workflows/language/stage_parts.h"

namespace requant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;
using Kind = StageField::Kind;
using Texts = std::vector<std::string>;

// Rows of the tables. A flag that is not given is called like its field.

StageField Row(Kind kind, const std::string& field, const std::string& flag) {
  StageField row;
  row.kind = kind;
  row.field = field;
  row.flag = flag;
  return row;
}

StageField Constant(const std::string& word, const std::string& field = "") {
  return Row(Kind::kConstant, field, word);
}

StageField Value(const std::string& field, const std::string& flag = "") {
  return Row(Kind::kValue, field, flag.empty() ? LastName(field) : flag);
}

StageField Word(const std::string& field, const Texts& words,
                const std::string& flag = "") {
  StageField row = Value(field, flag);
  row.check = StageField::Check::kWord;
  row.words = words;
  return row;
}

StageField Checked(const std::string& field, StageField::Check check,
                   double above = 0) {
  StageField row = Value(field);
  row.check = check;
  row.above = above;
  return row;
}

StageField Count(const std::string& field) {
  return Checked(field, StageField::Check::kCount);
}

StageField Whole(const std::string& field) {
  return Checked(field, StageField::Check::kWhole);
}

StageField Above(double least, const std::string& field) {
  return Checked(field, StageField::Check::kAbove, least);
}

StageField Input(const std::string& role, const std::string& field,
                 const std::string& flag, const Texts& fitting) {
  StageField row = Row(Kind::kInput, field, flag);
  row.role = role;
  row.fitting = fitting;
  return row;
}

StageField GraphInput(const std::string& flag,
                      const std::string& field = "graph") {
  return Input(LastName(field), field, flag, {"graph", "logged_graph"});
}

StageField SavedModelInput(const std::string& flag) {
  return Input("saved_model", "saved_model", flag, {"graph"});
}

// What the task has, whichever field it comes from.
StageField TaskFile(Kind kind, const std::string& role, const std::string& flag,
                    bool optional = false) {
  StageField row = Row(kind, "", flag);
  row.role = role;
  row.optional = optional;
  return row;
}

StageField Path(const std::string& role, const std::string& field,
                const std::string& flag) {
  StageField row = Row(Kind::kPath, field, flag);
  row.role = role;
  return row;
}

StageField Output(const std::string& role, const std::string& flag,
                  const std::string& ending,
                  const std::string& field = "output") {
  StageField row = Row(Kind::kOutput, field, flag);
  row.role = role;
  row.ending = ending;
  return row;
}

StageField Optional(StageField row) {
  row.optional = true;
  return row;
}

// An output whose name is not the stage's to give.
StageField Unnamed(StageField row) {
  row.unnamed = true;
  return row;
}

StageField OutputIfNamed(const std::string& name) {
  StageField row = Optional(Output(name, name, "", name));
  row.even_empty = true;
  return row;
}

StageField Needed(StageField row, const std::string& sentence,
                  const std::string& at = "") {
  row.needed = sentence;
  row.needed_at = at.empty() ? LastName(row.field) : at;
  return row;
}

StageField Need(const std::string& field, const std::string& sentence,
                const std::string& at = "") {
  return Needed(Row(Kind::kNeed, field, ""), sentence, at);
}

StageField With(StageField row, const std::string& other) {
  row.goes_with = other;
  return row;
}

StageField Dataset() { return TaskFile(Kind::kInput, "dataset", "dataset"); }
StageField Data() { return TaskFile(Kind::kInput, "data", "data", true); }
StageField Streams() { return Row(Kind::kStreams, "", "streams"); }

// Fields that several messages have.

StageField Format(const std::string& field) {
  return Word(field, {"csv", "tfrecord", "preprocessed"});
}

StageField QdqInputs(const std::string& field) {
  return Word(field, {"activations", "weights", "both"});
}

StageField Method(const std::string& calibrated) {
  return Word(absl::StrCat(calibrated, ".method"),
              {"minmax", "percentile", "mse"});
}

StageField Percentile(const std::string& calibrated) {
  return Above(50, absl::StrCat(calibrated, ".value_percentile"));
}

StageField Ranges(const std::string& calibrated) {
  return Input("ranges", absl::StrCat(calibrated, ".ranges"), "ranges",
               {"ranges"});
}

StageField Target() {
  StageField row = Word(
      "target", {"any", "avx2", "avx512", "vnni", "avx_vnni", "amx", "host"});
  row.kind = Kind::kTarget;
  return row;
}

StageField QuantizedNodes(const std::string& flag) {
  return Needed(Value("output_node", flag),
                "quantize needs output_node, what the graph is to compute");
}

using Fields = std::vector<StageField>;

StageForm DatasetForm() {
  const auto ranges = [](const std::string& field) {
    return Optional(Input("ranges", field, "ranges", {"text"}));
  };
  return {
      "dataset",
      "",
      "make records",
      {{"dataset",
        {Constant("preprocess", "preprocess"),
         Input("data", "preprocess.data", "", {"data"}),
         Format("preprocess.format"), ranges("preprocess.ranges"),
         Count("preprocess.buckets"), Constant("synthesize", "synthesize"),
         Word("synthesize.split", {"train", "calibration", "eval"}),
         Count("synthesize.rows"), Whole("synthesize.seed"),
         Format("synthesize.format"), ranges("synthesize.ranges"),
         Count("synthesize.buckets"), Output("data", "out", ".tfrecords"),
         Need("way", "dataset needs synthesize or preprocess", "output")}}}};
}

StageForm SummarizeForm() {
  return {
      "summarize",
      "",
      "list inputs and outputs",
      {{"summarize", {GraphInput("in_graph"), Output("text", ">", ".txt")}}}};
}

StageForm FreezeForm() {
  return {
      "freeze",
      "",
      "variables become constants",
      {{"freeze",
        {GraphInput("input_graph", "graph.graph"),
         Needed(Path("checkpoint", "graph.checkpoint", "input_checkpoint"),
                "graph needs a checkpoint, the path before \".index\""),
         SavedModelInput("input_saved_model_dir"), Value("saved_model_tags"),
         Value("output_node", "output_node_names"),
         Output("graph", "output_graph", ".pb"),
         Need("from", "freeze needs saved_model or graph", "output")}}}};
}

StageForm TransformForm() {
  return {"transform",
          "",
          "transform the graph",
          {{"transform",
            {GraphInput("in_graph"), Output("graph", "out_graph", ".pb"),
             Value("inputs"), Value("outputs"),
             Optional(Path("plugin", "plugin", "plugins")),
             Row(Kind::kTransforms, "transforms", "transforms"),
             Row(Kind::kFiles, "file", "")}}}};
}

StageForm QuantizeForm(const std::string& when, const std::string& command,
                       Fields fields) {
  fields.push_back(Value("excluded_op", "excluded_ops"));
  fields.push_back(Value("excluded_node", "excluded_nodes"));
  fields.push_back(
      Need("way", "quantize needs dynamic {} or calibrated { ... }", "output"));
  return {"quantize", when, "quantize the graph", {{command, fields}}};
}

StageForm CalibratedQuantizeForm() {
  return QuantizeForm(
      "calibrated", "quantize",
      {GraphInput("graph"), Ranges("calibrated"),
       Output("graph", "output", ".pb"), QuantizedNodes("outputs"), Target(),
       Method("calibrated"), Percentile("calibrated")});
}

StageForm DynamicQuantizeForm() {
  return QuantizeForm("dynamic", "quantize_graph",
                      {GraphInput("input"), Output("graph", "output", ".pb"),
                       QuantizedNodes("output_node_names"), Target()});
}

// Batches run one after the other: lines of Print operations that several
// streams write would interleave.
StageForm LoggingForm() {
  return {
      "calibrate",
      "logging",
      "observe ranges",
      {{"transform",
        {GraphInput("in_graph"),
         Output("logged_graph", "out_graph", ".logged.pb",
                "logging.logged_graph"),
         Value("logging", "transforms"),
         Need("logging.op", "logging needs op, such as \"Min\""),
         Need("logging.message", "logging needs message, such as \"__min:\"")}},
       {"evaluate",
        {TaskFile(Kind::kOutput, "logged_graph", "graph"), Dataset(), Data(),
         Value("on.output"), Value("on.batch_size"), Value("on.records"),
         Output("log", "log_file", ".log.txt", "logging.log")}},
       {"parse_log",
        {Constant("--allow_empty"),
         Output("ranges", "output", ".ranges", "ranges"),
         TaskFile(Kind::kOutput, "log", "")}}}};
}

StageForm CalibrateForm() {
  return {"calibrate",
          "direct",
          "observe ranges",
          {{"calibrate",
            {GraphInput("graph"), Dataset(), Data(), Value("on.batch_size"),
             Value("on.records", "max_records"), Whole("direct.moment_records"),
             Value("direct.qdq_op", "qdq_ops"),
             With(QdqInputs("direct.qdq_inputs"), "qdq_op"),
             Output("ranges", "output", ".ranges", "ranges"),
             Need("way", "calibrate needs logging { ... } or direct {}",
                  "ranges")}}}};
}

StageForm EvaluateForm() {
  return {"evaluate",
          "",
          "evaluate the graph",
          {{"evaluate", {GraphInput("graph")}}}};
}

// Graphs run as evaluations do, SavedModels one batch at a time on all cores,
// as the published example does.
StageForm BenchmarkForm(bool is_published) {
  Fields fields = {
      Needed(GraphInput(is_published ? "saved_model" : "graph"),
             "benchmark needs a graph"),
      Value("published_name", "name"),
      Dataset(),
      Data(),
      Value("on.output"),
      Value("on.batch_size"),
      Count("rounds"),
      Above(0, "seconds"),
      Unnamed(Output("result", "result_out", ".benchmark.pb", "graph"))};
  if (is_published) {
    fields.push_back(Unnamed(Output("text", ">", ".txt", "published_name")));
  } else {
    fields.insert(fields.begin() + 6, Streams());
  }
  return {"benchmark",
          is_published ? "published_name" : "",
          "measure speed",
          {{"benchmark", fields}}};
}

// A run's commands.sh makes the same files again: --overwrite.
StageForm ConvertForm() {
  const std::string calibrated = "insert_qdq.calibrated";
  return {
      "convert",
      "",
      "convert the SavedModel",
      {{"convert",
        {SavedModelInput("saved_model"), Output("graph", "out", "_saved_model"),
         Value("saved_model_tags", "tags"), Constant("--overwrite"),
         Word("variables", {"auto", "link", "copy"}, "copy"),
         OutputIfNamed("extracted_graph_def"),
         OutputIfNamed("converted_graph_def"),
         Constant("--insert_qdq", "insert_qdq"), Value("insert_qdq.op", "ops"),
         QdqInputs("insert_qdq.inputs"), Value("insert_qdq.fixed", "ranges"),
         Ranges(calibrated), Method(calibrated), Percentile(calibrated),
         Need("insert_qdq.way",
              "insert_qdq needs fixed { min: \"-1\" max: \"1\" } or "
              "calibrated { ... }",
              "op")}}}};
}

StageForm CompareForm() {
  return {"compare",
          "",
          "compare two graphs",
          {{"evaluate",
            {GraphInput("graph"), GraphInput("baseline", "baseline"),
             Count("layer_records")}}}};
}

StageForm DiffForm() {
  return {"diff",
          "",
          "list what changed",
          {{"diff",
            {GraphInput("", "before"), GraphInput("", "after"),
             Whole("max_nodes"), Output("text", ">", ".txt")}}}};
}

std::vector<std::string> Names(const std::string& path) {
  return absl::StrSplit(path, '.', absl::SkipEmpty());
}

const FieldDescriptor* DescriptorOf(const std::string& kind,
                                    const std::string& path) {
  const FieldDescriptor* field = Stage::descriptor()->FindFieldByName(kind);
  for (const std::string& name : Names(path)) {
    field = field->message_type()->FindFieldByName(name);
  }
  return field;
}

std::vector<std::string> MessageTexts(const Message& message) {
  if (message.GetDescriptor() == FixedRange::descriptor()) {
    const auto& fixed = static_cast<const FixedRange&>(message);
    return {absl::StrCat("fixed(", fixed.min(), ",", fixed.max(), ")")};
  }
  if (message.GetDescriptor() != Logging::descriptor()) return {};
  const auto& logging = static_cast<const Logging&>(message);
  return {absl::StrCat(
      "insert_logging(op=", logging.op(), ", show_name=true, message=\"",
      absl::StrReplaceAll(logging.message(), {{"\\", "\\\\"}, {"\"", "\\\""}}),
      "\")")};
}

}  // namespace

const std::vector<StageForm>& StageForms() {
  static const auto* const forms =
      new std::vector<StageForm>{DatasetForm(),
                                 SummarizeForm(),
                                 FreezeForm(),
                                 TransformForm(),
                                 CalibratedQuantizeForm(),
                                 DynamicQuantizeForm(),
                                 LoggingForm(),
                                 CalibrateForm(),
                                 EvaluateForm(),
                                 BenchmarkForm(true),
                                 BenchmarkForm(false),
                                 CompareForm(),
                                 ConvertForm(),
                                 DiffForm()};
  return *forms;
}

const std::vector<StageField>& JudgingFields() {
  static const auto* const fields = new std::vector<StageField>{
      TaskFile(Kind::kInput, "graph", "graph"),
      Dataset(),
      Data(),
      Value("on.output"),
      Value("on.batch_size"),
      Value("on.records"),
      Streams(),
      TaskFile(Kind::kOutput, "result", "result_out"),
      TaskFile(Kind::kOutput, "predictions", "predictions_out", true),
      TaskFile(Kind::kInput, "baseline_predictions", "baseline_predictions",
               true),
      TaskFile(Kind::kInput, "baseline", "baseline", true),
      Value("layer_records")};
  return *fields;
}

const Message& KindMessage(const Stage& stage) {
  return stage.GetReflection()->GetMessage(
      stage, Stage::descriptor()->FindFieldByName(StageKind(stage)));
}

const StageForm& FormOf(const Stage& stage) {
  const StageForm* last = nullptr;
  for (const StageForm& form : StageForms()) {
    if (form.kind != StageKind(stage)) continue;
    last = &form;
    const auto when = FindField(KindMessage(stage), form.when);
    if (when.has_value() && when->IsSet()) break;
  }
  return *last;
}

std::vector<const StageField*> FieldsOf(const Stage& stage) {
  std::vector<const StageField*> fields;
  for (const StageStep& step : FormOf(stage).steps) {
    for (const StageField& field : step.fields) fields.push_back(&field);
  }
  return fields;
}

bool FoundField::IsSet() const {
  const Reflection* const reflection = message->GetReflection();
  if (oneof != nullptr) return reflection->HasOneof(*message, oneof);
  if (field == nullptr) return false;
  return field->is_repeated() ? reflection->FieldSize(*message, field) > 0
                              : reflection->HasField(*message, field);
}

std::vector<std::string> FoundField::Texts() const {
  if (field == nullptr) return {};
  const Reflection* const reflection = message->GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (field->is_repeated() || !IsSet()) return {};
    return MessageTexts(reflection->GetMessage(*message, field));
  }
  if (!field->is_repeated()) return {reflection->GetString(*message, field)};
  const auto texts =
      reflection->GetRepeatedFieldRef<std::string>(*message, field);
  return {texts.begin(), texts.end()};
}

std::string FoundField::Text() const { return absl::StrJoin(Texts(), ","); }

std::optional<FoundField> FindField(const Message& message,
                                    const std::string& path) {
  FoundField found = {&message, nullptr, nullptr};
  for (const std::string& name : Names(path)) {
    if (found.field != nullptr) {
      if (!found.IsSet()) return std::nullopt;
      found.message = &found.message->GetReflection()->GetMessage(
          *found.message, found.field);
    }
    const Descriptor* const type = found.message->GetDescriptor();
    found.field = type->FindFieldByName(name);
    found.oneof = type->FindOneofByName(name);
  }
  if (found.IsSet() || found.field == nullptr) return found;
  const OneofDescriptor* const choice = found.field->real_containing_oneof();
  if (choice != nullptr &&
      found.message->GetReflection()->HasOneof(*found.message, choice)) {
    return std::nullopt;
  }
  return found;
}

FieldPlaces PlacesAround(const FieldPlaces& places, const std::string& path) {
  std::vector<std::string> names = Names(path);
  FieldPlaces around = places;
  for (size_t i = 0; i + 1 < names.size(); ++i)
    around = around.Nested(names[i]);
  return around;
}

std::string LastName(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

bool IsStagePath(const FieldDescriptor* field) {
  static const auto* const paths = [] {
    auto* found = new std::set<const FieldDescriptor*>;
    for (const StageForm& form : StageForms()) {
      for (const StageStep& step : form.steps) {
        for (const StageField& row : step.fields) {
          if (row.kind != Kind::kPath) continue;
          found->insert(DescriptorOf(form.kind, row.field));
        }
      }
    }
    return found;
  }();
  return paths->count(field) > 0;
}

}  // namespace requant
