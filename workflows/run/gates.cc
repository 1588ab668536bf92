#include "workflows/run/gates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/interval.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {
namespace {

using RecordVerdict = VerificationRecord::Verdict;

RecordVerdict ToRecord(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return VerificationRecord::PASS;
    case Verdict::kFail:
      return VerificationRecord::FAIL;
    case Verdict::kInconclusive:
      return VerificationRecord::INCONCLUSIVE;
  }
  return VerificationRecord::NONE;
}

// How a gate's figures are written.
struct Unit {
  // In front of the figures: "the accuracy drop".
  std::string what;
  // Of the figures: decimals, and what follows: " points".
  int decimals = 4;
  std::string suffix;
  bool at_least = false;
};

std::string Figure(double value, const Unit& unit) {
  // A limit such as 1e-05 would be shown as 0.
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
  // How many times over a limit only means something between positive numbers.
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

// Of a single number, which is no estimate: on these records it is so.
RecordVerdict JudgeNumber(double value, double limit, bool at_least) {
  const bool inside = at_least ? value >= limit : value <= limit;
  return inside ? VerificationRecord::PASS : VerificationRecord::FAIL;
}

// What is judged is missing.
GateRecord Unjudged(const std::string& name, double limit,
                    const std::string& why) {
  GateRecord gate = NewGate(name, limit);
  gate.set_verdict(VerificationRecord::FAIL);
  gate.set_sentence(why);
  return gate;
}

GateRecord JudgeDrop(const Comparison& comparison, double limit) {
  const char* name = "max_accuracy_drop";
  if (!comparison.has_accuracy()) {
    return Unjudged(name, limit,
                    "accuracy cannot be judged: the data have no labels, or "
                    "the predictions no classes");
  }
  GateRecord gate = NewGate(name, limit);
  const AccuracyDifference& accuracy = comparison.accuracy();
  // A minus alone would turn 0 into -0.
  gate.set_value(0 - accuracy.points());
  *gate.mutable_interval() = MakeInterval(0 - accuracy.interval().high(),
                                          0 - accuracy.interval().low());
  gate.set_verdict(ToRecord(JudgeAccuracyDrop(comparison, limit)));
  gate.set_sentence(Sentence(gate, {"accuracy drop", 3, " points"}));
  return gate;
}

GateRecord JudgeShare(const Comparison& comparison, double limit) {
  const char* name = "min_agreement";
  if (!comparison.has_agreement()) {
    return Unjudged(name, limit,
                    "agreement cannot be judged: the predictions are numbers, "
                    "not classes");
  }
  GateRecord gate = NewGate(name, limit);
  gate.set_value(comparison.agreement().share());
  *gate.mutable_interval() = comparison.agreement().interval();
  gate.set_verdict(ToRecord(JudgeAgreement(comparison, limit)));
  gate.set_sentence(Sentence(gate, {"agreement", 5, "", true}));
  return gate;
}

GateRecord JudgeMeanChange(const Comparison& comparison, double limit) {
  const char* name = "max_mean_output_change";
  const OutputChange* const change = JudgedChange(comparison);
  if (change == nullptr) {
    return Unjudged(name, limit,
                    "no value of the output is finite in both graphs");
  }
  GateRecord gate = NewGate(name, limit);
  gate.set_value(change->mean());
  if (change->has_interval()) *gate.mutable_interval() = change->interval();
  gate.set_verdict(ToRecord(JudgeMeanOutputChange(comparison, limit)));
  gate.set_sentence(Sentence(gate, {"mean output change", 5, ""}));
  return gate;
}

GateRecord JudgeMaxChange(const Comparison& comparison, double limit) {
  const char* name = "max_output_change";
  const OutputChange* const change = JudgedChange(comparison);
  if (change == nullptr) {
    return Unjudged(name, limit,
                    "no value of the output is finite in both graphs");
  }
  GateRecord gate = NewGate(name, limit);
  gate.set_value(change->max());
  gate.set_verdict(JudgeNumber(change->max(), limit, false));
  gate.set_sentence(
      absl::StrCat(Sentence(gate, {"largest output change", 5, ""}),
                   gate.verdict() == VerificationRecord::FAIL
                       ? absl::StrCat(" (record ", change->max_record(), ")")
                       : ""));
  return gate;
}

GateRecord JudgeSquares(const Comparison& comparison, double limit) {
  const char* name = "max_mse";
  if (!comparison.has_squared_change()) {
    return Unjudged(name, limit,
                    "no value of the output is finite in both graphs");
  }
  GateRecord gate = NewGate(name, limit);
  gate.set_value(comparison.squared_change().mean());
  if (comparison.squared_change().has_interval()) {
    *gate.mutable_interval() = comparison.squared_change().interval();
  }
  gate.set_verdict(ToRecord(JudgeMse(comparison, limit)));
  gate.set_sentence(Sentence(gate, {"mean squared error", 6, ""}));
  return gate;
}

constexpr char kRelativeMse[] = "relative_mse";

// The other stage's error has its own spread, far smaller than the factors
// that are asked for.
GateRecord JudgeRelativeMse(const EvaluateResult& result,
                            const RelativeMse& relative,
                            const EvaluateResult& other) {
  const std::string stage(relative.stage());
  if (!result.comparison().has_squared_change() ||
      !other.comparison().has_squared_change()) {
    return Unjudged(kRelativeMse, relative.at_most(),
                    absl::StrCat("no mean squared error to set against that of "
                                 "stage ",
                                 stage, ": one of the two has no baseline"));
  }
  const double mse = other.comparison().squared_change().mean();
  GateRecord gate = JudgeSquares(result.comparison(), relative.at_most() * mse);
  gate.set_name(kRelativeMse);
  gate.set_sentence(absl::StrFormat("%s: %g of stage %s's, %.6g",
                                    gate.sentence(), relative.at_most(), stage,
                                    mse));
  return gate;
}

constexpr char kLostValues[] = "lost_values";

GateRecord JudgeLostValues(const Comparison& comparison) {
  GateRecord gate = NewGate(kLostValues, 0);
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
    gate.set_verdict(VerificationRecord::FAIL);
    gate.set_sentence("no value of the output is finite in both graphs");
  } else {
    gate.set_sentence("no output became NaN or infinite");
  }
  return gate;
}

// Of a graph that is compared with nothing: it may have its own reasons for a
// NaN, but not in every record.
GateRecord JudgeLostValues(const Scores& scores) {
  GateRecord gate = NewGate(kLostValues, 0);
  const int64_t lost = scores.nan_records() + scores.infinite_records();
  const bool all = lost >= scores.records();
  gate.set_verdict(all ? VerificationRecord::FAIL : VerificationRecord::PASS);
  gate.set_sentence(
      all ? "every record's output is NaN or infinite"
          : absl::StrCat(lost, " of ", scores.records(),
                         " records' outputs are NaN or infinite"));
  return gate;
}

// A figure of a layer that is judged; NaN is as bad as can be.
struct LayerFigure {
  std::string name;
  Unit unit;
  std::function<double(const ComparedLayer&)> of;
};

double InSteps(double value, const ComparedLayer& layer) {
  return std::abs(value) / layer.step();
}

// How many times as wide the range is as that of the values and zero, which
// every range has in it; 0 for a float tensor, which has none, and for a layer
// that only gives zeros.
double RangeExcess(const ComparedLayer& layer) {
  const double used = std::max(layer.observed().high(), 0.0) -
                      std::min(layer.observed().low(), 0.0);
  if (!layer.has_range() || used == 0) return 0;
  return (layer.range().high() - layer.range().low()) / used;
}

GateRecord JudgeLayers(const EvaluateResult& result, const LayerFigure& figure,
                       double limit) {
  if (result.layer().empty() || !result.unmatched_layer().empty()) {
    return Unjudged(
        figure.name, limit,
        result.unmatched_layer().empty()
            ? "no layer was compared: the baseline has none, or layer_records "
              "is not set"
            : absl::StrCat("layer ", result.unmatched_layer(0),
                           " of the baseline has no counterpart in the graph"));
  }
  GateRecord gate = NewGate(figure.name, limit);
  const double worst_possible = figure.unit.at_least
                                    ? -std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::infinity();
  for (const ComparedLayer& layer : result.layer()) {
    double value = figure.of(layer);
    if (std::isnan(value)) value = worst_possible;
    const bool worse =
        figure.unit.at_least ? value < gate.value() : value > gate.value();
    if (gate.has_value() && !worse) continue;
    gate.set_value(value);
    gate.set_layer(layer.name());
  }
  gate.set_verdict(JudgeNumber(gate.value(), limit, figure.unit.at_least));
  gate.set_sentence(Sentence(gate, figure.unit));
  return gate;
}

// One for each gate on layers.
const std::vector<LayerFigure>& LayerFigures() {
  static const auto* figures = new std::vector<LayerFigure>{
      {"max_layer_error",
       {"error", 3, " steps"},
       [](const ComparedLayer& layer) {
         return InSteps(layer.rms_error(), layer);
       }},
      {"max_layer_shift",
       {"mean error of the worst channel", 3, " steps"},
       [](const ComparedLayer& layer) {
         return InSteps(layer.worst_channel_shift(), layer);
       }},
      {"min_layer_snr",
       {"signal to noise", 1, " dB", true},
       [](const ComparedLayer& layer) { return layer.signal_to_noise(); }},
      {"max_layer_clipped",
       {"share of clipped values", 5, ""},
       [](const ComparedLayer& layer) { return layer.clipped_share(); }},
      {"max_layer_clipped_records",
       {"share of records with clipped values", 5, ""},
       [](const ComparedLayer& layer) { return layer.clipped_records(); }},
      {"max_layer_gain_error",
       {"error of the gain", 4, ""},
       [](const ComparedLayer& layer) { return std::abs(layer.gain() - 1); }},
      {"max_layer_range_excess",
       {"range", 2, " times as wide as its values"},
       RangeExcess},
  };
  return *figures;
}

GateRecord JudgeExpectation(const EvaluateResult& result,
                            const Expect& expect) {
  GateRecord gate = NewGate("expect", expect.within());
  if (!result.has_scores() || !result.scores().has_accuracy()) {
    gate.set_verdict(VerificationRecord::FAIL);
    gate.set_sentence(
        absl::StrFormat("accuracy %.4f %% is expected, and there is none: the "
                        "data have no labels, or the predictions no classes",
                        expect.accuracy()));
    return gate;
  }
  const double accuracy = 100 * result.scores().accuracy();
  gate.set_value(std::abs(accuracy - expect.accuracy()));
  gate.set_verdict(JudgeNumber(gate.value(), expect.within(), false));
  gate.set_sentence(absl::StrFormat(
      "accuracy %.4f %%; %.4f %%, as published or otherwise known, was "
      "expected within %g points",
      accuracy, expect.accuracy(), expect.within()));
  return gate;
}

// What to try when a gate did not pass.
std::string Advice(const GateRecord& gate) {
  if (gate.verdict() == VerificationRecord::INCONCLUSIVE) {
    return "evaluate on more records";
  }
  const std::string name = gate.name();
  if (name == "expect") {
    return "check that these are the model and the data with the known "
           "accuracy, with all records in their order; for another model, "
           "remove the expectation";
  }
  if (name == "max_accuracy_drop" && !gate.has_value()) {
    return "give the dataset a label, or take this gate away "
           "(max_accuracy_drop: -1) and set max_mean_output_change";
  }
  if (name == kLostValues) {
    return "look for a range of width zero or a division in the stage's graph: "
           "`requant diff` shows what the stage changed";
  }
  if (name == "max_layer_range_excess") {
    return "calibrate again, on this model: the range is of other values";
  }
  if (name == "max_layer_clipped" || name == "max_layer_clipped_records") {
    return "calibrate on more records, or with a wider percentile: values are "
           "outside the calibrated range";
  }
  if (!gate.layer().empty()) {
    return absl::StrCat("look at the ranges and the bias of ", gate.layer(),
                        " in the report; excluded_node keeps a MatMul float");
  }
  return "see in the report which layer lost the most; calibrate on more "
         "records, choose ranges by method mse, or keep the worst layer float "
         "(excluded_node)";
}

using OutputJudge = GateRecord (*)(const Comparison&, double limit);

const std::vector<std::pair<std::string, OutputJudge>>& OutputJudges() {
  static const auto* judges =
      new std::vector<std::pair<std::string, OutputJudge>>{
          {"max_accuracy_drop", JudgeDrop},
          {"min_agreement", JudgeShare},
          {"max_mean_output_change", JudgeMeanChange},
          {"max_output_change", JudgeMaxChange},
          {"max_mse", JudgeSquares},
      };
  return *judges;
}

// A gate's limit, if it is set and not taken away.
std::optional<double> Limit(const Gates& gates, const std::string& name) {
  const google::protobuf::FieldDescriptor* field =
      Gates::descriptor()->FindFieldByName(name);
  const google::protobuf::Reflection* reflection = Gates::GetReflection();
  if (!reflection->HasField(gates, field)) return std::nullopt;
  const double limit = reflection->GetDouble(gates, field);
  if (limit < 0) return std::nullopt;
  return limit;
}

}  // namespace

std::vector<GateRecord> JudgeGates(const EvaluateResult& result,
                                   const Gates& gates, const Expect* expect,
                                   bool accuracy_is_default,
                                   const MseReference& reference) {
  std::vector<GateRecord> judged;
  if (result.has_comparison()) {
    const Comparison& comparison = result.comparison();
    for (const auto& [name, judge] : OutputJudges()) {
      const std::optional<double> limit = Limit(gates, name);
      if (limit.has_value()) judged.push_back(judge(comparison, *limit));
    }
    for (const LayerFigure& figure : LayerFigures()) {
      const std::optional<double> limit = Limit(gates, figure.name);
      if (limit.has_value()) {
        judged.push_back(JudgeLayers(result, figure, *limit));
      }
    }
    if (accuracy_is_default && !comparison.has_accuracy() &&
        judged.size() > 1) {
      judged[0].set_verdict(VerificationRecord::NONE);
    }
    judged.push_back(JudgeLostValues(comparison));
  } else if (result.has_scores() && result.scores().records() > 0) {
    judged.push_back(JudgeLostValues(result.scores()));
  }
  if (expect != nullptr) judged.push_back(JudgeExpectation(result, *expect));
  if (reference.relative != nullptr) {
    judged.push_back(
        JudgeRelativeMse(result, *reference.relative, *reference.result));
  }
  for (GateRecord& gate : judged) {
    if (gate.verdict() == VerificationRecord::FAIL ||
        gate.verdict() == VerificationRecord::INCONCLUSIVE) {
      gate.set_advice(Advice(gate));
    }
  }
  return judged;
}

VerificationRecord::Verdict WorstVerdict(const std::vector<GateRecord>& gates) {
  RecordVerdict worst = VerificationRecord::NONE;
  for (const GateRecord& gate : gates) worst = std::max(worst, gate.verdict());
  return worst;
}

}  // namespace requant
