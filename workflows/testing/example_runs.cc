#include "workflows/testing/example_runs.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "runtime/statistics/paired_comparison.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

constexpr int64_t kRecords = 200000;
constexpr int64_t kBaselineCorrect = 151924;

// 64 digits that differ from name to name.
std::string Digest(const std::string& name) {
  uint64_t state = 1469598103934665603u;
  std::string digits;
  for (const char c : name) {
    state = (state ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  for (int i = 0; i < 4; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    absl::StrAppend(&digits, absl::Hex(state, absl::kZeroPad16));
  }
  return digits;
}

struct Example {
  std::string name;
  std::string summary;
  std::string kind;
  // Its graph's input; empty: the model.
  std::string from;
  std::string file;
  int64_t bytes = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, int64_t>> ops;
};

// The stages that make a graph which is verified.
std::vector<Example> Graphs() {
  return {
      {"freeze",
       "Variables become constants",
       "freeze",
       "",
       "wide_deep_frozen_fp32_graph.pb",
       9618423,
       1.31,
       {{"AddV2", 6},
        {"BiasAdd", 5},
        {"ConcatV2", 4},
        {"Const", 341},
        {"GatherV2", 52},
        {"Identity", 167},
        {"MatMul", 4},
        {"Placeholder", 39},
        {"Relu", 3},
        {"Reshape", 117},
        {"Sigmoid", 1},
        {"Softmax", 1},
        {"StringToHashBucketFast", 26},
        {"Unique", 26}}},
      {"optimize",
       "Training-only nodes go, constants are folded",
       "transform",
       "freeze",
       "wide_deep_fp32_graph.pb",
       9541210,
       0.84,
       {{"AddV2", 6},
        {"BiasAdd", 5},
        {"ConcatV2", 4},
        {"Const", 166},
        {"GatherV2", 52},
        {"MatMul", 4},
        {"Placeholder", 39},
        {"Relu", 3},
        {"Reshape", 78},
        {"Softmax", 1},
        {"StringToHashBucketFast", 26}}},
      {"fuse_columns",
       "26 embeddings become one lookup",
       "transform",
       "optimize",
       "optimized_wide_deep_fp32_graph.pb",
       9532987,
       0.61,
       {{"AddV2", 2},
        {"BiasAdd", 4},
        {"ConcatV2", 2},
        {"Const", 21},
        {"GatherNd", 2},
        {"MatMul", 4},
        {"Placeholder", 2},
        {"Relu", 3},
        {"Reshape", 3},
        {"Softmax", 1},
        {"Sum", 1}}},
      {"quantize",
       "Eight-bit layers with dynamic ranges",
       "quantize",
       "fuse_columns",
       "int8_dynamic_range_wide_deep_graph.pb",
       4991310,
       0.52,
       {{"AddV2", 2},
        {"BiasAdd", 1},
        {"ConcatV2", 2},
        {"Const", 44},
        {"Dequantize", 4},
        {"GatherNd", 2},
        {"Max", 4},
        {"Min", 4},
        {"Placeholder", 2},
        {"QuantizeV2", 4},
        {"QuantizedMatMulWithBias", 4},
        {"QuantizedRelu", 3},
        {"RequantizationRange", 4},
        {"Requantize", 4},
        {"Reshape", 11},
        {"Softmax", 1},
        {"Sum", 1}}},
      {"freeze_ranges",
       "Requantization ranges become constants",
       "transform",
       "quantize",
       "freezed_range_int8_wide_deep.pb",
       4990644,
       0.31,
       {{"AddV2", 2},
        {"BiasAdd", 1},
        {"ConcatV2", 2},
        {"Const", 52},
        {"Dequantize", 4},
        {"GatherNd", 2},
        {"Max", 4},
        {"Min", 4},
        {"Placeholder", 2},
        {"QuantizeV2", 4},
        {"QuantizedMatMulWithBias", 4},
        {"QuantizedRelu", 3},
        {"Requantize", 4},
        {"Reshape", 11},
        {"Softmax", 1},
        {"Sum", 1}}},
      {"freeze_min",
       "Minima become constants",
       "transform",
       "freeze_ranges",
       "freezed_range_int8_wide_deep_freezemin.pb",
       4990287,
       0.29,
       {{"AddV2", 2},
        {"BiasAdd", 1},
        {"ConcatV2", 2},
        {"Const", 56},
        {"Dequantize", 4},
        {"GatherNd", 2},
        {"Max", 4},
        {"Placeholder", 2},
        {"QuantizeV2", 4},
        {"QuantizedMatMulWithBias", 4},
        {"QuantizedRelu", 3},
        {"Requantize", 4},
        {"Reshape", 7},
        {"Softmax", 1},
        {"Sum", 1}}},
      {"freeze_max",
       "Maxima become constants",
       "transform",
       "freeze_min",
       "freezed_range_int8_wide_deep_minmaxfreeze.pb",
       4989902,
       0.30,
       {{"AddV2", 2},
        {"BiasAdd", 1},
        {"ConcatV2", 2},
        {"Const", 60},
        {"Dequantize", 4},
        {"GatherNd", 2},
        {"Placeholder", 2},
        {"QuantizeV2", 4},
        {"QuantizedMatMulWithBias", 4},
        {"QuantizedRelu", 3},
        {"Requantize", 4},
        {"Reshape", 3},
        {"Softmax", 1},
        {"Sum", 1}}},
      {"fuse",
       "One fused operation per layer",
       "transform",
       "freeze_max",
       "final_int8_wide_deep.pb",
       4969116,
       0.33,
       {{"AddV2", 2},
        {"ConcatV2", 2},
        {"Const", 38},
        {"GatherNd", 2},
        {"Placeholder", 2},
        {"QuantizeV2", 1},
        {"QuantizedMatMulWithBiasAndDequantize", 1},
        {"QuantizedMatMulWithBiasAndReluAndRequantize", 3},
        {"Reshape", 3},
        {"Softmax", 1},
        {"Sum", 1}}},
  };
}

void AddFile(const std::string& role, const std::string& path, int64_t bytes,
             const std::string& stage,
             google::protobuf::RepeatedPtrField<FileRecord>* files) {
  FileRecord* file = files->Add();
  file->set_role(role);
  file->set_path(path);
  file->set_sha256(Digest(path));
  file->set_bytes(bytes);
  file->set_stage(stage);
}

// Tasks run one after the other.
class Clock {
 public:
  void Run(double seconds, bool cached, TaskRecord* task) {
    task->set_state(cached ? TaskRecord::CACHED : TaskRecord::DONE);
    task->set_start(now_);
    task->set_seconds(cached ? 0.004 : seconds);
    task->set_work_seconds(seconds);
    now_ += task->seconds() + 0.006;
  }
  double now() const { return now_; }

 private:
  double now_ = 0.09;
};

void SetInterval(double low, double high, Interval* interval) {
  interval->set_low(low);
  interval->set_high(high);
}

void SetScores(int64_t correct, double auc, double log_loss, Scores* scores) {
  scores->set_records(kRecords);
  scores->set_correct(correct);
  scores->set_accuracy(static_cast<double>(correct) / kRecords);
  scores->set_auc(auc);
  scores->set_auc_error(2.5e-6);
  scores->set_log_loss(log_loss);
}

void SetTiming(double records_per_second, Timing* timing) {
  timing->set_batches(391);
  timing->set_warm_up_batches(5);
  timing->set_timed_records(kRecords - 5 * 512);
  timing->set_timed_seconds((kRecords - 5 * 512) / records_per_second);
  timing->set_records(kRecords);
}

// How far a stage's predictions are from the float graph's.
struct Deviation {
  int64_t lost = 0;
  int64_t won = 0;
  int64_t disagreeing = 0;
  double mean = 0;
  double max = 0;
  double records_per_second = 0;
};

void SetChange(const Deviation& deviation, OutputChange* change) {
  change->set_mean(deviation.mean);
  const double half = deviation.mean * 0.0043;
  SetInterval(deviation.mean - half, deviation.mean + half,
              change->mutable_interval());
  change->set_max(deviation.max);
  change->set_max_record(173204);
}

void SetComparison(const Deviation& deviation, Comparison* comparison) {
  comparison->set_records(kRecords);
  AccuracyDifference* accuracy = comparison->mutable_accuracy();
  accuracy->set_baseline_correct(kBaselineCorrect);
  accuracy->set_candidate_correct(kBaselineCorrect - deviation.lost +
                                  deviation.won);
  accuracy->set_only_baseline_correct(deviation.lost);
  accuracy->set_only_candidate_correct(deviation.won);
  accuracy->set_points(
      100.0 * static_cast<double>(deviation.won - deviation.lost) / kRecords);
  const Interval interval =
      PairedDifferenceInterval(kRecords, deviation.won, deviation.lost);
  SetInterval(100 * interval.low(), 100 * interval.high(),
              accuracy->mutable_interval());
  Agreement* agreement = comparison->mutable_agreement();
  const int64_t same = kRecords - deviation.disagreeing;
  agreement->set_records(same);
  agreement->set_share(static_cast<double>(same) / kRecords);
  *agreement->mutable_interval() = ShareInterval(same, kRecords);
  SetChange(deviation, comparison->mutable_output_change());
  SetChange(deviation, comparison->mutable_class_1_change());
}

void AddGate(const std::string& name, double limit, double value,
             const Interval* interval, const std::string& sentence,
             VerificationRecord* verification) {
  GateRecord* gate = verification->add_gate();
  gate->set_name(name);
  gate->set_limit(limit);
  gate->set_value(value);
  if (interval != nullptr) *gate->mutable_interval() = *interval;
  gate->set_verdict(VerificationRecord::PASS);
  gate->set_sentence(sentence);
}

void SetGates(VerificationRecord* verification) {
  const Comparison& comparison = verification->result().comparison();
  Interval drop;
  SetInterval(-comparison.accuracy().interval().high(),
              -comparison.accuracy().interval().low(), &drop);
  AddGate("max_accuracy_drop", 0.5, -comparison.accuracy().points(), &drop,
          "accuracy is inside the limit of 0.5 points", verification);
  AddGate("min_agreement", 0.99, comparison.agreement().share(),
          &comparison.agreement().interval(),
          "agreement is inside the limit of .99", verification);
  AddGate("max_mean_output_change", 0.0045, comparison.class_1_change().mean(),
          &comparison.class_1_change().interval(),
          "mean output change is inside the limit of .0045", verification);
  verification->set_verdict(VerificationRecord::PASS);
}

void AddLayer(const std::string& name, double low, double high,
              double range_low, double range_high, double clipped,
              double decibels, int channel, EvaluateResult* result) {
  ComparedLayer* layer = result->add_layer();
  layer->set_name(name);
  layer->set_baseline_tensor(absl::StrCat(name, "/Relu:0"));
  layer->set_tensor(absl::StrCat(name, "/eightbit/requantize:0"));
  layer->set_quantized(true);
  layer->set_records(10240);
  layer->set_step((range_high - range_low) / 255);
  SetInterval(range_low, range_high, layer->mutable_range());
  SetInterval(low, high, layer->mutable_observed());
  layer->set_clipped_share(clipped);
  layer->set_rms_signal((high - low) / 11.7);
  layer->set_rms_error(layer->rms_signal() / std::pow(10, decibels / 20));
  layer->set_max_error(layer->rms_error() * 7.3);
  layer->set_signal_to_noise(decibels);
  layer->set_worst_channel(channel);
  layer->set_worst_channel_shift(layer->step() * (channel % 2 ? 0.21 : -0.34));
}

void AddLayers(double loss, EvaluateResult* result) {
  const std::string prefix = "import/dnn/hiddenlayer_";
  AddLayer(prefix + "0/MatMul", 0, 1.2214, 0, 0.9624, 0.00031, 31.4 - loss, 417,
           result);
  AddLayer(prefix + "1/MatMul", 0, 1.0731, 0, 1.0493, 0.00002, 33.9 - loss, 12,
           result);
  AddLayer(prefix + "2/MatMul", 0, 2.4412, 0, 2.5003, 0, 36.2 - loss, 88,
           result);
  AddLayer("import/dnn/logits/MatMul", -4.8121, 1.9304, -4.8121, 1.9304, 0,
           38.7 - loss, 0, result);
  ComparedLayer* logits = result->mutable_layer(3);
  logits->set_quantized(false);
  logits->clear_range();
}

const std::map<std::string, Deviation>& Deviations() {
  static const auto* deviations = new std::map<std::string, Deviation>{
      {"freeze", {0, 0, 0, 0, 0, 38211}},
      {"optimize", {0, 0, 0, 0, 0, 52104}},
      {"fuse_columns", {0, 0, 0, 0, 0, 81933}},
      {"quantize", {462, 455, 941, 0.00301, 0.0411, 96120}},
      {"freeze_ranges", {501, 479, 1005, 0.00334, 0.0407, 118802}},
      {"freeze_min", {509, 490, 1021, 0.00351, 0.0424, 141207}},
      {"freeze_max", {522, 497, 1041, 0.00362, 0.0431, 155019}},
      {"fuse", {521, 489, 1034, 0.00358, 0.0428, 187310}},
  };
  return *deviations;
}

void Verify(const Example& example, Clock* clock, StageRecord* stage) {
  VerificationRecord* verification = stage->mutable_verification();
  const Deviation& deviation = Deviations().at(example.name);
  const bool prepared = example.bytes < 9540000;
  verification->set_evaluation(prepared ? "preprocessed" : "raw");
  EvaluateResult* result = verification->mutable_result();
  result->set_batch_size(512);
  result->set_prediction_kind(PredictionSpec::PROBABILITIES);
  SetScores(kBaselineCorrect - deviation.lost + deviation.won,
            0.78204113 - deviation.mean / 20, 0.49871 + deviation.mean / 90,
            result->mutable_scores());
  SetTiming(deviation.records_per_second, result->mutable_timing());
  clock->Run(kRecords / deviation.records_per_second + 0.42,
             example.name == "freeze", verification->mutable_work());
  std::string command = absl::StrCat(
      "requant evaluate --graph=", example.file,
      " --dataset=wide_deep.textproto "
      "--data=data/dataset_preprocessed_eval.tfrecords --batch_size=512 "
      "--streams=2 --predictions_out=",
      example.name, ".predictions");
  AddFile("graph", example.file, example.bytes, example.name,
          verification->mutable_work()->mutable_input());
  if (example.name != "freeze") {
    const std::string baseline =
        prepared && example.name != "fuse_columns" ? "fuse_columns" : "freeze";
    verification->set_baseline(baseline);
    SetScores(kBaselineCorrect, 0.78204113, 0.49871,
              result->mutable_baseline_scores());
    SetComparison(deviation, result->mutable_comparison());
    SetGates(verification);
    absl::StrAppend(&command, " --baseline_predictions=", baseline,
                    ".predictions");
  }
  if (deviation.mean > 0) {
    AddLayers(1e3 * (deviation.mean - 0.003), result);
    absl::StrAppend(&command, " --layer_records=10240");
  }
  verification->mutable_work()->add_command(command);
}

void AddGraphStage(const Example& example, Clock* clock, RunRecord* record) {
  StageRecord* stage = record->add_stage();
  stage->set_name(example.name);
  stage->set_summary(example.summary);
  stage->set_kind(example.kind);
  TaskRecord* work = stage->mutable_work();
  clock->Run(example.seconds, example.name == "freeze", work);
  work->set_key(Digest(example.name));
  work->add_command(
      example.from.empty()
          ? absl::StrCat("requant freeze --saved_model=model --output=",
                         example.file)
          : absl::StrCat("requant ", example.kind, " --in_graph=model.pb ",
                         "--out_graph=", example.file));
  AddFile("graph", example.from.empty() ? "model" : example.from + ".pb",
          example.bytes + 100, example.from, work->mutable_input());
  AddFile("graph", example.file, example.bytes, "", work->mutable_output());
  GraphRecord* graph = stage->mutable_graph();
  graph->set_bytes(example.bytes);
  for (const auto& [op, nodes] : example.ops) {
    OpRecord* count = graph->add_op();
    count->set_op(op);
    count->set_nodes(nodes);
    graph->set_nodes(graph->nodes() + nodes);
  }
  Verify(example, clock, stage);
}

void AddCalibration(const std::string& name, const std::string& summary,
                    const std::string& log, double seconds, Clock* clock,
                    RunRecord* record) {
  StageRecord* stage = record->add_stage();
  stage->set_name(name);
  stage->set_summary(summary);
  stage->set_kind("calibrate");
  TaskRecord* work = stage->mutable_work();
  clock->Run(seconds, false, work);
  work->set_key(Digest(name));
  work->add_command(absl::StrCat(
      "requant transform --in_graph=in.pb --out_graph=logged_", name,
      ".pb '--transforms=insert_logging(op=Min, "
      "message=\";__min:\")'"));
  work->add_command(
      absl::StrCat("requant evaluate --graph=logged_", name,
                   ".pb --data=data/dataset_preprocessed_train.tfrecords "
                   "--batch_size=1024 2> ",
                   log));
  work->add_note("1564 ranges of 4 nodes from 391 batches");
  AddFile("log", log, 181723, "", work->mutable_output());
}

void AddBenchmark(Clock* clock, RunRecord* record) {
  StageRecord* stage = record->add_stage();
  stage->set_name("speed");
  stage->set_summary("fp32 and int8 side by side");
  stage->set_kind("benchmark");
  BenchmarkRecord* benchmark = stage->mutable_benchmark();
  clock->Run(9.7, false, benchmark->mutable_work());
  benchmark->mutable_work()->add_command(
      "requant benchmark --graph=optimized_wide_deep_fp32_graph.pb "
      "--graph=final_int8_wide_deep.pb --rounds=9");
  benchmark->add_graph("fuse_columns");
  benchmark->add_graph("fuse");
  BenchmarkResult* result = benchmark->mutable_result();
  result->set_cores(2);
  result->set_batches(40);
  result->set_records(40 * 512);
  for (const double speed : {84200.0, 191400.0}) {
    EntryMeasurement* entry = result->add_entry();
    entry->mutable_setting()->set_streams(2);
    entry->mutable_setting()->set_threads(1);
    for (int i = 0; i < 9; ++i) {
      RoundMeasurement* round = entry->add_round();
      const double wobble =
          1 + 0.004 * ((i * (6 + result->entry_size()) % 9) - 4);
      round->set_records(40960);
      round->set_batches(80);
      round->set_records_per_second(speed * wobble);
      round->set_cpu_seconds(2 * 40960 / (speed * wobble));
    }
    entry->set_median_batch_seconds(1024 / speed);
    entry->set_p99_batch_seconds(1.21 * 1024 / speed);
  }
}

// It reads what a stage made, and so is behind that in every order.
void AddBaseline(RunRecord* record) {
  BaselineRecord* baseline = record->add_baseline();
  baseline->set_name("raw/baseline");
  baseline->set_path("model");
  TaskRecord* work = baseline->mutable_work();
  work->set_state(TaskRecord::CACHED);
  work->set_start(0.1);
  work->set_seconds(0.002);
  work->set_work_seconds(4.1);
  work->add_command("requant evaluate --graph=model --data=model_nodes.txt");
  AddFile("graph", "model", 9812003, "", work->mutable_input());
  AddFile("data", "model_nodes.txt", 2204, "summarize", work->mutable_input());
}

void SetTool(ToolRecord* tool) {
  tool->set_version("0.1.0");
  tool->set_tensorflow("2.21.0");
  tool->set_cpu("Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz");
  for (const char* feature : {"avx2", "fma", "avx512f", "avx512_vnni"}) {
    tool->add_cpu_feature(feature);
  }
  tool->set_cores(2);
  tool->set_target("vnni");
  tool->set_system("Debian GNU/Linux 12 (bookworm)");
}

void AddVariable(const std::string& name, const std::string& value,
                 const std::string& from, RunRecord* record) {
  SettingRecord* variable = record->add_variable();
  variable->set_name(name);
  variable->set_value(value);
  variable->set_from(from);
}

StageRecord* FindStage(const std::string& name, RunRecord* record) {
  for (StageRecord& stage : *record->mutable_stage()) {
    if (stage.name() == name) return &stage;
  }
  return nullptr;
}

// Nothing behind stage `name` ran.
void StopAfter(const std::string& name, RunRecord* record) {
  bool behind = false;
  for (StageRecord& stage : *record->mutable_stage()) {
    if (behind) {
      StageRecord kept;
      kept.set_name(stage.name());
      kept.set_summary(stage.summary());
      kept.set_kind(stage.kind());
      kept.mutable_work()->set_message(
          absl::StrCat("\"", name, "\" did not succeed"));
      stage = kept;
    }
    behind = behind || stage.name() == name;
  }
}

void FailGate(const std::string& name, double value,
              const std::string& sentence, const std::string& advice,
              VerificationRecord* verification) {
  for (GateRecord& gate : *verification->mutable_gate()) {
    if (gate.name() != name) continue;
    gate.set_value(value);
    gate.set_verdict(VerificationRecord::FAIL);
    gate.set_sentence(sentence);
    gate.set_advice(advice);
  }
  verification->set_verdict(VerificationRecord::FAIL);
}

}  // namespace

void AppendToEveryText(std::string_view text,
                       google::protobuf::Message* message) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const Field*> fields;
  reflection.ListFields(*message, &fields);
  for (const Field* field : fields) {
    const int size =
        field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
    for (int i = 0; i < size; ++i) {
      if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
        AppendToEveryText(
            text, field->is_repeated()
                      ? reflection.MutableRepeatedMessage(message, field, i)
                      : reflection.MutableMessage(message, field));
      } else if (field->cpp_type() != Field::CPPTYPE_STRING) {
        continue;
      } else if (field->is_repeated()) {
        reflection.SetRepeatedString(
            message, field, i,
            absl::StrCat(reflection.GetRepeatedString(*message, field, i),
                         text));
      } else {
        reflection.SetString(
            message, field,
            absl::StrCat(reflection.GetString(*message, field), text));
      }
    }
  }
}

RunRecord PassedRun() {
  RunRecord record;
  record.set_workflow("wide_deep");
  record.set_file("workflows/wide_deep.textproto");
  record.set_file_content(
      "# proto-file: workflows/workflow.proto\n# proto-message: Workflow\n"
      "name: \"wide_deep\"\nstage {\n  name: \"freeze\"\n  freeze {\n"
      "    saved_model { file: \"${model_dir}\" }\n"
      "    output: \"wide_deep_frozen_fp32_graph.pb\"\n  }\n"
      "  verify { evaluation: \"raw\" }\n}\n");
  record.set_summary("Wide & Deep from a SavedModel to int8, in ten steps");
  record.set_run("2026-11-16_161000");
  record.set_started_ms(1794845400123);
  record.set_command("requant run workflows/wide_deep.textproto");
  record.set_outcome(RunRecord::PASSED);
  SetTool(record.mutable_tool());
  AddVariable("model_dir", "model", "default", &record);
  AddVariable("records", "200000", "command line", &record);

  Clock clock;
  const std::vector<Example> graphs = Graphs();
  StageRecord* summarize = record.add_stage();
  summarize->set_name("summarize");
  summarize->set_summary("Inputs and outputs of the model");
  summarize->set_kind("summarize");
  clock.Run(0.21, true, summarize->mutable_work());
  summarize->mutable_work()->add_command(
      "requant summarize --in_graph=model > model_nodes.txt");
  AddFile("text", "model_nodes.txt", 2204, "",
          summarize->mutable_work()->mutable_output());
  AddGraphStage(graphs[0], &clock, &record);
  AddGraphStage(graphs[1], &clock, &record);
  AddGraphStage(graphs[2], &clock, &record);
  AddGraphStage(graphs[3], &clock, &record);
  AddCalibration("log_ranges", "Logs requantization ranges",
                 "wide_deep_min_max_log.txt", 4.4, &clock, &record);
  AddGraphStage(graphs[4], &clock, &record);
  AddCalibration("log_min", "Logs minima", "wide_deep_min_log.txt", 3.9, &clock,
                 &record);
  AddGraphStage(graphs[5], &clock, &record);
  AddCalibration("log_max", "Logs maxima", "wide_deep_max_log.txt", 3.8, &clock,
                 &record);
  AddGraphStage(graphs[6], &clock, &record);
  AddGraphStage(graphs[7], &clock, &record);
  AddBenchmark(&clock, &record);
  AddBaseline(&record);
  record.set_seconds(clock.now() + 0.05);
  return record;
}

RunRecord RefusedRun() {
  RunRecord record = PassedRun();
  record.set_outcome(RunRecord::GATE_FAILED);
  StageRecord* fuse = FindStage("fuse", &record);
  VerificationRecord* verification = fuse->mutable_verification();
  const Deviation broken = {4211, 2207, 6604, 0.0209, 0.311, 187310};
  SetScores(kBaselineCorrect - broken.lost + broken.won, 0.7719, 0.5081,
            verification->mutable_result()->mutable_scores());
  SetComparison(broken, verification->mutable_result()->mutable_comparison());
  verification->clear_gate();
  SetGates(verification);
  verification->mutable_result()->clear_layer();
  AddLayers(17, verification->mutable_result());
  FailGate("max_accuracy_drop", 1.002,
           "accuracy fell by 1.002 points (.924 to 1.080), limit .5",
           "Look at the layers below, worst first: a layer that lost far more "
           "than the others has a wrong scale or range.",
           verification);
  FailGate("max_mean_output_change", 0.0209,
           "mean output change .0209 (.0208 to .0210), limit .0045",
           "Calibrate on more records, or on records that are like those you "
           "serve.",
           verification);
  verification->mutable_work()->add_warning(
      "the outputs were edited by tests/defects (--tamper)");
  StopAfter("fuse", &record);
  return record;
}

RunRecord InterruptedRun() {
  RunRecord record = PassedRun();
  record.set_outcome(RunRecord::INTERRUPTED);
  VerificationRecord* verification =
      FindStage("freeze_min", &record)->mutable_verification();
  verification->mutable_work()->set_state(TaskRecord::INTERRUPTED);
  verification->mutable_work()->set_message("interrupted by SIGINT");
  verification->mutable_work()->set_seconds(0.7);
  verification->clear_result();
  verification->clear_gate();
  verification->set_verdict(VerificationRecord::NONE);
  StopAfter("freeze_min", &record);
  record.set_seconds(verification->work().start() + 0.7);
  return record;
}

RunRecord OneStageRun() {
  RunRecord record;
  record.set_workflow("one");
  record.set_file("one.textproto");
  record.set_run("1");
  record.set_started_ms(1794845400000);
  record.set_seconds(0.4);
  record.set_command("requant run one.textproto");
  record.set_outcome(RunRecord::FAILED);
  SetTool(record.mutable_tool());
  StageRecord* stage = record.add_stage();
  stage->set_name("freeze");
  stage->set_kind("freeze");
  TaskRecord* work = stage->mutable_work();
  work->set_state(TaskRecord::FAILED);
  work->set_message("model: no SavedModel there: saved_model.pb is missing");
  work->set_seconds(0.3);
  work->set_work_seconds(0.3);
  work->add_command("requant freeze --saved_model=model --output=frozen.pb");
  return record;
}

}  // namespace requant
