#include "workflows/run/gates.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/paired_comparison.h"
#include "workflows/language/stage_fields.h"

namespace requant {
namespace {

using RecordVerdict = VerificationRecord::Verdict;

RecordVerdict ToRecord(Verdict verdict) {
  return verdict == Verdict::kPass   ? VerificationRecord::PASS
         : verdict == Verdict::kFail ? VerificationRecord::FAIL
                                     : VerificationRecord::INCONCLUSIVE;
}

// How a gate's figures are written.
struct Unit {
  // What precedes the figures, such as "the accuracy drop".
  std::string what;
  // How many decimals figures have, and what follows them, such as " points".
  int decimals = 4;
  std::string suffix;
  bool at_least = false;
};

std::string Figure(double value, const Unit& unit) {
  // Otherwise, a limit such as 1e-05 would be shown as 0.
  if (value != 0 && std::abs(value) < std::pow(10, -unit.decimals)) {
    return absl::StrFormat("%.2g%s", value, unit.suffix);
  }
  return absl::StrFormat("%.*f%s", unit.decimals, value, unit.suffix);
}

std::string Sentence(const GateRecord& gate, const Unit& unit) {
  std::string text = absl::StrCat(unit.what, " ", Figure(gate.value(), unit));
  if (gate.has_interval()) {
    absl::StrAppend(&text, " (", Figure(gate.interval().low(), unit), " to ",
                    Figure(gate.interval().high(), unit), ")");
  }
  absl::StrAppend(
      &text,
      gate.layer().empty() ? "" : absl::StrCat(" in layer ", gate.layer()),
      ", limit ", Figure(gate.limit(), unit));
  if (gate.verdict() == VerificationRecord::INCONCLUSIVE) {
    absl::StrAppend(&text, ": not certain from these records");
  }
  // A ratio to the limit only has a meaning between positive numbers.
  const double ratio = gate.value() / gate.limit();
  if (gate.verdict() == VerificationRecord::FAIL && !unit.at_least &&
      ratio > 0 && std::isfinite(ratio)) {
    absl::StrAppendFormat(&text, ": %.*f times as much", ratio < 10 ? 1 : 0,
                          ratio);
  }
  return text;
}

GateRecord NewGate(const std::string& name, double limit) {
  GateRecord gate;
  gate.set_name(name);
  gate.set_limit(limit);
  return gate;
}

// Fails a gate whose figure is missing; `why` says why.
void Refuse(const std::string& why, GateRecord* gate) {
  gate->set_verdict(VerificationRecord::FAIL);
  gate->set_sentence(why);
}

// Judges a number that is exact on these records rather than an estimate.
RecordVerdict JudgeNumber(double value, double limit, bool at_least) {
  const bool inside = at_least ? value >= limit : value <= limit;
  return inside ? VerificationRecord::PASS : VerificationRecord::FAIL;
}

// Adds what to try if the gate did not pass.
void Advise(const std::string& when_failed, GateRecord* gate) {
  if (gate->verdict() == VerificationRecord::FAIL) {
    gate->set_advice(when_failed);
  } else if (gate->verdict() == VerificationRecord::INCONCLUSIVE) {
    gate->set_advice("evaluate on more records");
  }
}

constexpr char kGeneralAdvice[] =
    "see in the report which layer lost the most; calibrate on more records, "
    "choose ranges by method mse, or keep the worst layer float "
    "(excluded_node)";
constexpr char kClippedAdvice[] =
    "calibrate on more records, or with a wider percentile: values are outside "
    "the calibrated range";
constexpr char kNeverFinite[] =
    "no value of the output is finite in both graphs";

// A gate of workflow.proto's Gates. It judges the output, by `found`, or the
// worst of the layers, by `of_layer`.
struct GateSpec {
  // The field of Gates.
  const char* name;
  Unit unit;

  // Returns the figure to judge, or nothing, for the reason in `missing`.
  std::optional<Estimate> (*found)(const Comparison&) = nullptr;
  const char* missing = nullptr;

  // Returns a layer's figure; NaN is the worst one.
  double (*of_layer)(const ComparedLayer&) = nullptr;

  // What to try if the gate failed, and if its figure is missing. If null, it
  // depends on whether a layer is to blame.
  const char* advice = nullptr;
  const char* advice_if_missing = nullptr;
};

std::optional<Estimate> AccuracyDrop(const Comparison& comparison) {
  const std::optional<Estimate> gain = AccuracyGain(comparison);
  if (!gain.has_value()) return std::nullopt;
  // A minus alone would turn 0 into -0.
  return Estimate{0 - gain->value, MakeInterval(0 - gain->interval->high(),
                                                0 - gain->interval->low())};
}

double InSteps(double value, const ComparedLayer& layer) {
  return std::abs(value) / layer.step();
}

// Returns the width of the range divided by that of the values and zero, which
// every range contains. Returns 0 for a float tensor, which has no range, and
// for a layer whose values are all zero.
double RangeExcess(const ComparedLayer& layer) {
  const double used = std::max(layer.observed().high(), 0.0) -
                      std::min(layer.observed().low(), 0.0);
  if (!layer.has_range() || used == 0) return 0;
  return (layer.range().high() - layer.range().low()) / used;
}

GateSpec OutputGate(const char* name, const Unit& unit,
                    std::optional<Estimate> (*found)(const Comparison&),
                    const char* missing,
                    const char* advice_if_missing = nullptr) {
  return {name, unit, found, missing, nullptr, nullptr, advice_if_missing};
}

GateSpec LayerGate(const char* name, const Unit& unit,
                   double (*of_layer)(const ComparedLayer&),
                   const char* advice = nullptr) {
  return {name, unit, nullptr, nullptr, of_layer, advice, advice};
}

// Returns all gates, in the order of Gates' fields.
const std::vector<GateSpec>& GateSpecs() {
  using Layer = const ComparedLayer&;
  static const auto* specs = new std::vector<GateSpec>{
      OutputGate("max_accuracy_drop", {"accuracy drop", 3, " points"},
                 AccuracyDrop,
                 "accuracy cannot be judged: the data have no labels, or the "
                 "predictions no classes",
                 "give the dataset a label, or take this gate away "
                 "(max_accuracy_drop: -1) and set max_mean_output_change"),
      OutputGate("min_agreement", {"agreement", 5, "", true}, AgreementShare,
                 "agreement cannot be judged: the predictions are numbers, not "
                 "classes"),
      OutputGate("max_mean_output_change", {"mean output change", 5, ""},
                 MeanOutputChange, kNeverFinite),
      OutputGate("max_output_change", {"largest output change", 5, ""},
                 MaxOutputChange, kNeverFinite),
      OutputGate("max_mse", {"mean squared error", 6, ""}, Mse, kNeverFinite),
      LayerGate("max_layer_error", {"error", 3, " steps"},
                [](Layer layer) { return InSteps(layer.rms_error(), layer); }),
      LayerGate("max_layer_shift",
                {"mean error of the worst channel", 3, " steps"},
                [](Layer layer) {
                  return InSteps(layer.worst_channel_shift(), layer);
                }),
      LayerGate("min_layer_snr", {"signal to noise", 1, " dB", true},
                [](Layer layer) { return layer.signal_to_noise(); }),
      LayerGate(
          "max_layer_clipped", {"share of clipped values", 5, ""},
          [](Layer layer) { return layer.clipped_share(); }, kClippedAdvice),
      LayerGate(
          "max_layer_clipped_records",
          {"share of records with clipped values", 5, ""},
          [](Layer layer) { return layer.clipped_records(); }, kClippedAdvice),
      LayerGate("max_layer_gain_error", {"error of the gain", 4, ""},
                [](Layer layer) { return std::abs(layer.gain() - 1); }),
      LayerGate("max_layer_range_excess",
                {"range", 2, " times as wide as its values"}, RangeExcess,
                "calibrate again, on this model: the range is of other values"),
  };
  return *specs;
}

void JudgeOutput(const GateSpec& spec, const Comparison& comparison,
                 GateRecord* gate) {
  const std::optional<Estimate> found = spec.found(comparison);
  if (!found.has_value()) return Refuse(spec.missing, gate);
  gate->set_value(found->value);
  if (found->interval.has_value()) {
    *gate->mutable_interval() = *found->interval;
  }
  gate->set_verdict(
      ToRecord(JudgeFigure(*found, gate->limit(), spec.unit.at_least)));
  gate->set_sentence(absl::StrCat(
      Sentence(*gate, spec.unit),
      found->record.has_value() && gate->verdict() == VerificationRecord::FAIL
          ? absl::StrCat(" (record ", *found->record, ")")
          : ""));
}

void JudgeLayers(const GateSpec& spec, const EvaluateResult& result,
                 GateRecord* gate) {
  if (!result.unmatched_layer().empty()) {
    return Refuse(
        absl::StrCat("layer ", result.unmatched_layer(0),
                     " of the baseline has no counterpart in the graph"),
        gate);
  }
  if (result.layer().empty()) {
    return Refuse(
        "no layer was compared: the baseline has none, or layer_records is not "
        "set",
        gate);
  }
  const bool at_least = spec.unit.at_least;
  const double worst_possible = at_least
                                    ? -std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::infinity();
  for (const ComparedLayer& layer : result.layer()) {
    double value = spec.of_layer(layer);
    if (std::isnan(value)) value = worst_possible;
    const bool worse = at_least ? value < gate->value() : value > gate->value();
    if (gate->has_value() && !worse) continue;
    gate->set_value(value);
    gate->set_layer(layer.name());
  }
  gate->set_verdict(JudgeNumber(gate->value(), gate->limit(), at_least));
  gate->set_sentence(Sentence(*gate, spec.unit));
}

GateRecord Judge(const GateSpec& spec, const EvaluateResult& result,
                 double limit) {
  GateRecord gate = NewGate(spec.name, limit);
  if (spec.of_layer != nullptr) {
    JudgeLayers(spec, result, &gate);
  } else {
    JudgeOutput(spec, result.comparison(), &gate);
  }
  const char* advice = gate.has_value() ? spec.advice : spec.advice_if_missing;
  if (advice != nullptr) {
    Advise(advice, &gate);
  } else if (!gate.layer().empty()) {
    Advise(absl::StrCat("look at the ranges and the bias of ", gate.layer(),
                        " in the report; excluded_node keeps a MatMul float"),
           &gate);
  } else {
    Advise(kGeneralAdvice, &gate);
  }
  return gate;
}

const GateSpec& SpecOf(std::string_view name) {
  const std::vector<GateSpec>& specs = GateSpecs();
  return *std::find_if(specs.begin(), specs.end(),
                       [name](const auto& spec) { return spec.name == name; });
}

// A verification that is not certain is repeated on this many times the
// records.
constexpr int64_t kMoreRecords = 4;

constexpr char kRelativeMse[] = "relative_mse";
constexpr char kLostAdvice[] =
    "look for a range of width zero or a division in the stage's graph: "
    "`requant diff` shows what the stage changed";
constexpr char kExpectAdvice[] =
    "check that these are the model and the data with the known accuracy, with "
    "all records in their order; for another model, remove the expectation";

// Ignores the other stage's own spread, which is far smaller than the factors
// that people ask for.
GateRecord JudgeRelativeMse(const EvaluateResult& result,
                            const RelativeMse& relative,
                            const EvaluateResult& other) {
  const std::string stage(relative.stage());
  const std::optional<Estimate> mse = Mse(other.comparison());
  GateRecord gate = NewGate(kRelativeMse, relative.at_most());
  if (!mse.has_value() || !result.comparison().has_squared_change()) {
    Refuse(absl::StrCat("no mean squared error to set against that of stage ",
                        stage, ": one of the two has no baseline"),
           &gate);
    Advise(kGeneralAdvice, &gate);
    return gate;
  }
  gate = Judge(SpecOf("max_mse"), result, relative.at_most() * mse->value);
  gate.set_name(kRelativeMse);
  gate.set_sentence(absl::StrFormat("%s: %g of stage %s's, %.6g",
                                    gate.sentence(), relative.at_most(), stage,
                                    mse->value));
  return gate;
}

GateRecord JudgeLostValues(const Comparison& comparison) {
  GateRecord gate = NewGate(kLostValuesGate, 0);
  gate.set_value(static_cast<double>(comparison.lost_values()));
  gate.set_verdict(JudgeNumber(gate.value(), 0, false));
  if (comparison.lost_values() > 0) {
    gate.set_sentence(absl::StrCat(
        comparison.lost_values(),
        " values of the output are NaN or infinite that were not in the "
        "baseline",
        comparison.candidate_non_finite().has_first_record()
            ? absl::StrCat(", the first in record ",
                           comparison.candidate_non_finite().first_record())
            : ""));
  } else if (!comparison.has_output_change()) {
    Refuse(kNeverFinite, &gate);
  } else {
    gate.set_sentence("no output became NaN or infinite");
  }
  Advise(kLostAdvice, &gate);
  return gate;
}

// Judges a graph that is compared with nothing. It may have reasons for a NaN,
// but not in every record.
GateRecord JudgeLostValues(const Scores& scores) {
  GateRecord gate = NewGate(kLostValuesGate, 0);
  const int64_t lost = scores.nan_records() + scores.infinite_records();
  const bool all = lost >= scores.records();
  gate.set_verdict(all ? VerificationRecord::FAIL : VerificationRecord::PASS);
  gate.set_sentence(
      all ? "every record's output is NaN or infinite"
          : absl::StrCat(lost, " of ", scores.records(),
                         " records' outputs are NaN or infinite"));
  Advise(kLostAdvice, &gate);
  return gate;
}

GateRecord JudgeExpectation(const EvaluateResult& result,
                            const Expect& expect) {
  GateRecord gate = NewGate("expect", expect.within());
  if (!result.has_scores() || !result.scores().has_accuracy()) {
    Refuse(absl::StrFormat(
               "accuracy %.4f %% is expected, and there is none: the data have "
               "no labels, or the predictions no classes",
               expect.accuracy()),
           &gate);
    Advise(kExpectAdvice, &gate);
    return gate;
  }
  const double accuracy = 100 * result.scores().accuracy();
  gate.set_value(std::abs(accuracy - expect.accuracy()));
  gate.set_verdict(JudgeNumber(gate.value(), expect.within(), false));
  gate.set_sentence(absl::StrFormat(
      "accuracy %.4f %%; %.4f %%, as published or otherwise known, was "
      "expected within %g points",
      accuracy, expect.accuracy(), expect.within()));
  Advise(kExpectAdvice, &gate);
  return gate;
}

// Returns a gate's limit, if it is set and not negative.
std::optional<double> Limit(const Gates& gates, const std::string& name) {
  const google::protobuf::FieldDescriptor* field =
      Gates::descriptor()->FindFieldByName(name);
  const google::protobuf::Reflection* reflection = Gates::GetReflection();
  if (!reflection->HasField(gates, field)) return std::nullopt;
  const double limit = reflection->GetDouble(gates, field);
  if (limit < 0) return std::nullopt;
  return limit;
}

// Returns the error of another, finished stage by which a stage's is judged.
MseReference ReferenceOf(const Plan& plan, const Stage& stage,
                         const FinishedTasks& finished) {
  const Verify* const verify = VerifyOf(stage);
  if (verify == nullptr || !verify->has_relative_mse()) return {};
  const Workflow& workflow = plan.file.workflow;
  for (int i = 0; i < workflow.stage_size(); ++i) {
    const int other = plan.verify_task[i];
    if (workflow.stage(i).name() != verify->relative_mse().stage() ||
        other < 0) {
      continue;
    }
    const FinishedTask* const reference = finished(other);
    return {&verify->relative_mse(), reference == nullptr
                                         ? &EvaluateResult::default_instance()
                                         : &reference->result.evaluation()};
  }
  return {};
}

}  // namespace

std::vector<GateRecord> JudgeGates(const EvaluateResult& result,
                                   const Gates& gates, const Expect* expect,
                                   bool accuracy_is_default,
                                   const MseReference& reference) {
  std::vector<GateRecord> judged;
  if (result.has_comparison()) {
    for (const GateSpec& spec : GateSpecs()) {
      const std::optional<double> limit = Limit(gates, spec.name);
      if (limit.has_value()) judged.push_back(Judge(spec, result, *limit));
    }
    if (accuracy_is_default && !result.comparison().has_accuracy() &&
        judged.size() > 1) {
      judged[0].set_verdict(VerificationRecord::NONE);
      judged[0].clear_advice();
    }
    judged.push_back(JudgeLostValues(result.comparison()));
  } else if (result.has_scores() && result.scores().records() > 0) {
    judged.push_back(JudgeLostValues(result.scores()));
  }
  if (expect != nullptr) judged.push_back(JudgeExpectation(result, *expect));
  if (reference.relative != nullptr) {
    judged.push_back(
        JudgeRelativeMse(result, *reference.relative, *reference.result));
  }
  return judged;
}

VerificationRecord::Verdict WorstVerdict(const std::vector<GateRecord>& gates) {
  RecordVerdict worst = VerificationRecord::NONE;
  for (const GateRecord& gate : gates) worst = std::max(worst, gate.verdict());
  return worst;
}

std::vector<GateRecord> JudgeTask(const Plan& plan, const Task& task,
                                  const CachedTask& result,
                                  const FinishedTasks& finished) {
  if (task.kind != Task::Kind::kVerify) return {};
  const Stage& stage = plan.file.workflow.stage(task.stage);
  const Verify* const verify = VerifyOf(stage);
  const bool expects =
      !stage.has_compare() && verify != nullptr && verify->has_expect();
  return JudgeGates(result.evaluation(), EffectiveGates(plan, task),
                    expects ? &verify->expect() : nullptr,
                    !LimitsAccuracyDrop(plan, task),
                    ReferenceOf(plan, stage, finished));
}

int64_t RecordLimit(const Plan& plan, const Task& task) {
  if (task.kind != Task::Kind::kVerify) return 0;
  const Workflow& workflow = plan.file.workflow;
  const std::string& records =
      task.evaluation >= 0
          ? workflow.evaluation(task.evaluation).on().records()
          : workflow.stage(task.stage).compare().on().records();
  int64_t limit = 0;
  return absl::SimpleAtoi(records, &limit) ? limit : 0;
}

std::optional<int64_t> RecordsToRepeatOn(const Plan& plan, const Task& task,
                                         const CachedTask& result,
                                         int64_t limit,
                                         const std::vector<GateRecord>& gates) {
  // A verification that took fewer has reached the end of the data.
  if (limit <= 0 || result.evaluation().timing().records() < limit ||
      WorstVerdict(gates) != VerificationRecord::INCONCLUSIVE) {
    return std::nullopt;
  }
  if (const TaskInput* baseline = task.Find("baseline_predictions")) {
    const Task& maker = plan.tasks[baseline->task];
    // The user has limited the comparison.
    if (maker.kind == Task::Kind::kBaseline &&
        !maker.baseline_records.empty()) {
      return std::nullopt;
    }
  }
  return limit * kMoreRecords;
}

}  // namespace requant
