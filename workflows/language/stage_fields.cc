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

// The tables; their short names are for nothing else.
namespace stage_tables {

using Fields = std::vector<StageField>;

// Rows. A flag that is not given is called like its field.

StageField Row(Kind kind, const std::string& field, const std::string& flag,
               const std::string& role = "") {
  StageField row;
  row.kind = kind;
  row.field = field;
  row.flag = flag;
  row.role = role;
  return row;
}

StageField Constant(const std::string& word, const std::string& field = "") {
  return Row(Kind::kConstant, field, word);
}

StageField Value(const std::string& field, const std::string& flag = "") {
  return Row(Kind::kValue, field, flag.empty() ? LastName(field) : flag);
}

StageField Word(StageField row, const Texts& words) {
  row.check = StageField::Check::kWord;
  row.words = words;
  return row;
}

StageField Number(StageField::Check check, const std::string& field,
                  double above = 0) {
  StageField row = Value(field);
  row.check = check;
  row.above = above;
  return row;
}

StageField Count(const std::string& field) {
  return Number(StageField::Check::kCount, field);
}

StageField Whole(const std::string& field) {
  return Number(StageField::Check::kWhole, field);
}

StageField Input(const std::string& role, const std::string& field,
                 const std::string& flag, const Texts& fitting) {
  StageField row = Row(Kind::kInput, field, flag, role);
  row.fitting = fitting;
  return row;
}

StageField Graph(const std::string& flag, const std::string& field = "graph") {
  return Input(LastName(field), field, flag, {"graph", "logged_graph"});
}

StageField SavedModel(const std::string& flag) {
  return Input("saved_model", "saved_model", flag, {"graph"});
}

StageField Output(const std::string& role, const std::string& flag,
                  const std::string& ending,
                  const std::string& field = "output") {
  StageField row = Row(Kind::kOutput, field, flag, role);
  row.ending = ending;
  return row;
}

// What the task has, whichever field it comes from.
StageField Given(const std::string& role) {
  return Row(Kind::kInput, "", role, role);
}

StageField Made(const std::string& role, const std::string& flag) {
  return Row(Kind::kOutput, "", flag, role);
}

StageField Optional(StageField row) {
  row.optional = true;
  return row;
}

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

Fields Joined(const std::vector<Fields>& parts) {
  Fields all;
  for (const Fields& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Rows that several programs have.

Fields Fed() {
  return {Given("dataset"), Optional(Given("data")), Value("on.output"),
          Value("on.batch_size")};
}

StageField Streams() { return Row(Kind::kStreams, "", "streams"); }

StageField Format(const std::string& field) {
  return Word(Value(field), {"csv", "tfrecord", "preprocessed"});
}

StageField RangesOfColumns(const std::string& field) {
  return Optional(Input("ranges", field, "ranges", {"text"}));
}

StageField QdqInputs(const std::string& field) {
  return Word(Value(field), {"activations", "weights", "both"});
}

StageField Ranges(const std::string& field) {
  return Input("ranges", field, "ranges", {"ranges"});
}

// How a CalibratedRanges makes ranges.
Fields Method(const std::string& calibrated) {
  return {
      Word(Value(calibrated + ".method"), {"minmax", "percentile", "mse"}),
      Number(StageField::Check::kAbove, calibrated + ".value_percentile", 50)};
}

Fields Quantized(const std::string& output_flag) {
  StageField target = Word(Value("target"), {"any", "avx2", "avx512", "vnni",
                                             "avx_vnni", "amx", "host"});
  target.kind = Kind::kTarget;
  return {Output("graph", "output", ".pb"),
          Needed(Value("output_node", output_flag),
                 "quantize needs output_node, what the graph is to compute"),
          target};
}

Fields Excluded() {
  return {Value("excluded_op", "excluded_ops"),
          Value("excluded_node", "excluded_nodes")};
}

Fields Measured() {
  return {Count("rounds"), Number(StageField::Check::kAbove, "seconds"),
          Unnamed(Output("result", "result_out", ".benchmark.pb", "graph"))};
}

StageForm Form(const std::string& kind, const std::string& when,
               const std::string& summary, const std::string& command,
               const Fields& fields) {
  return {kind, when, summary, {{command, fields}}};
}

std::vector<StageForm> ModelForms() {
  const std::string qdq = "insert_qdq.calibrated";
  return {
      Form("freeze", "", "variables become constants", "freeze",
           {Graph("input_graph", "graph.graph"),
            Needed(Row(Kind::kPath, "graph.checkpoint", "input_checkpoint",
                       "checkpoint"),
                   "graph needs a checkpoint, the path before \".index\""),
            SavedModel("input_saved_model_dir"), Value("saved_model_tags"),
            Value("output_node", "output_node_names"),
            Output("graph", "output_graph", ".pb"),
            Need("from", "freeze needs saved_model or graph", "output")}),
      Form("transform", "", "transform the graph", "transform",
           {Graph("in_graph"), Output("graph", "out_graph", ".pb"),
            Value("inputs"), Value("outputs"),
            Optional(Row(Kind::kPath, "plugin", "plugins", "plugin")),
            Row(Kind::kTransforms, "transforms", "transforms"),
            Row(Kind::kFiles, "file", "")}),
      Form("quantize", "calibrated", "quantize the graph", "quantize",
           Joined({{Graph("graph"), Ranges("calibrated.ranges")},
                   Quantized("outputs"),
                   Method("calibrated"),
                   Excluded()})),
      Form("quantize", "dynamic", "quantize the graph", "quantize_graph",
           Joined(
               {{Graph("input")},
                Quantized("output_node_names"),
                Excluded(),
                {Need("way", "quantize needs dynamic {} or calibrated { ... }",
                      "output")}})),
      // A run's commands.sh makes the same files again: --overwrite.
      Form("convert", "", "convert the SavedModel", "convert",
           Joined(
               {{SavedModel("saved_model"),
                 Output("graph", "out", "_saved_model"),
                 Value("saved_model_tags", "tags"), Constant("--overwrite"),
                 Word(Value("variables", "copy"), {"auto", "link", "copy"}),
                 OutputIfNamed("extracted_graph_def"),
                 OutputIfNamed("converted_graph_def"),
                 Constant("--insert_qdq", "insert_qdq"),
                 Value("insert_qdq.op", "ops"), QdqInputs("insert_qdq.inputs"),
                 Value("insert_qdq.fixed", "ranges"), Ranges(qdq + ".ranges")},
                Method(qdq),
                {Need("insert_qdq.way",
                      "insert_qdq needs fixed { min: \"-1\" max: \"1\" } "
                      "or calibrated { ... }",
                      "op")}})),
  };
}

// By logging, batches run one after the other: lines of Print operations that
// several streams write would interleave.
std::vector<StageForm> CalibrateForms() {
  return {
      {"calibrate",
       "logging",
       "observe ranges",
       {{"transform",
         {Graph("in_graph"),
          Output("logged_graph", "out_graph", ".logged.pb",
                 "logging.logged_graph"),
          Value("logging", "transforms"),
          Need("logging.op", "logging needs op, such as \"Min\""),
          Need("logging.message",
               "logging needs message, such as \"__min:\"")}},
        {"evaluate",
         Joined({{Made("logged_graph", "graph")},
                 Fed(),
                 {Value("on.records"),
                  Output("log", "log_file", ".log.txt", "logging.log")}})},
        {"parse_log",
         {Constant("--allow_empty"),
          Output("ranges", "output", ".ranges", "ranges"), Made("log", "")}}}},
      Form("calibrate", "direct", "observe ranges", "calibrate",
           {Graph("graph"), Given("dataset"), Optional(Given("data")),
            Value("on.batch_size"), Value("on.records", "max_records"),
            Whole("direct.moment_records"), Value("direct.qdq_op", "qdq_ops"),
            With(QdqInputs("direct.qdq_inputs"), "qdq_op"),
            Output("ranges", "output", ".ranges", "ranges"),
            Need("way", "calibrate needs logging { ... } or direct {}",
                 "ranges")}),
  };
}

// Graphs are measured as they are evaluated, SavedModels one batch at a time on
// all cores, as the published example does.
std::vector<StageForm> OtherForms() {
  return {
      Form("dataset", "", "make records", "dataset",
           {Constant("preprocess", "preprocess"),
            Input("data", "preprocess.data", "", {"data"}),
            Format("preprocess.format"), RangesOfColumns("preprocess.ranges"),
            Count("preprocess.buckets"), Constant("synthesize", "synthesize"),
            Word(Value("synthesize.split"), {"train", "calibration", "eval"}),
            Count("synthesize.rows"), Whole("synthesize.seed"),
            Format("synthesize.format"), RangesOfColumns("synthesize.ranges"),
            Count("synthesize.buckets"), Output("data", "out", ".tfrecords"),
            Need("way", "dataset needs synthesize or preprocess", "output")}),
      Form("summarize", "", "list inputs and outputs", "summarize",
           {Graph("in_graph"), Output("text", ">", ".txt")}),
      Form("diff", "", "list what changed", "diff",
           {Graph("", "before"), Graph("", "after"), Whole("max_nodes"),
            Output("text", ">", ".txt")}),
      Form("evaluate", "", "evaluate the graph", "evaluate", {Graph("graph")}),
      Form("compare", "", "compare two graphs", "evaluate",
           {Graph("graph"), Graph("baseline", "baseline"),
            Count("layer_records")}),
      Form("benchmark", "published_name", "measure speed", "benchmark",
           Joined({{Needed(Graph("saved_model"), "benchmark needs a graph"),
                    Value("published_name", "name")},
                   Fed(),
                   Measured(),
                   {Unnamed(Output("text", ">", ".txt", "published_name"))}})),
      Form("benchmark", "", "measure speed", "benchmark",
           Joined({{Needed(Graph("graph"), "benchmark needs a graph")},
                   Fed(),
                   {Streams()},
                   Measured()})),
  };
}

Fields Judging() {
  return Joined({{Given("graph")},
                 Fed(),
                 {Value("on.records"), Streams(), Made("result", "result_out"),
                  Optional(Made("predictions", "predictions_out")),
                  Optional(Given("baseline_predictions")),
                  Optional(Given("baseline")), Value("layer_records")}});
}

}  // namespace stage_tables

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
  static const auto* const forms = [] {
    auto* all = new std::vector<StageForm>;
    for (const auto& some :
         {stage_tables::ModelForms(), stage_tables::CalibrateForms(),
          stage_tables::OtherForms()}) {
      all->insert(all->end(), some.begin(), some.end());
    }
    return all;
  }();
  return *forms;
}

const std::vector<StageField>& JudgingFields() {
  static const auto* const fields =
      new std::vector<StageField>(stage_tables::Judging());
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

std::vector<StageRow> RowsOf(const Stage& stage) {
  std::vector<StageRow> rows;
  for (const StageStep& step : FormOf(stage).steps) {
    for (const StageField& row : step.fields) {
      const auto found = FindField(KindMessage(stage), row.field);
      if (found.has_value()) rows.push_back({&row, *found});
    }
  }
  return rows;
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
