#include "workflows/run_conclusion.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/styled_text.h"
#include "base/terminal_text.h"
#include "base/wrap_text.h"
#include "runtime/benchmark_figures.h"
#include "runtime/worker.pb.h"
#include "workflows/run_figures.h"
#include "workflows/run_record.pb.h"
#include "workflows/run_table.h"

namespace requant {
namespace {

// Of what a failed task wrote last.
constexpr int kMostNotes = 20;

struct GateWords {
  std::string_view name;
  std::string_view subject;
  std::string_view unit;
  int decimals;
  bool is_minimum;
};

constexpr GateWords kGates[] = {
    {"max_accuracy_drop", "accuracy drop", " points", 3, false},
    {"min_agreement", "agreement", "", 4, true},
    {"max_mean_output_change", "mean output change", "", 5, false},
    {"max_output_change", "largest output change", "", 5, false},
    {"max_layer_error", "error", " quantization steps", 3, false},
    {"max_layer_shift", "mean error of the worst channel",
     " quantization steps", 3, false},
    {"min_layer_snr", "signal to noise", " dB", 1, true},
    {"max_layer_clipped", "share of clipped values", "", 5, false},
};

std::string FactorText(double factor) {
  return absl::StrFormat("%.*f",
                         factor < 1.095  ? 2
                         : factor < 9.95 ? 1
                                         : 0,
                         factor);
}

std::string HowFarBeyond(const GateWords& words, const GateRecord& gate) {
  const double value = gate.value(), limit = gate.limit();
  const std::string limit_text =
      absl::StrFormat("the limit %g%s", limit, words.unit);
  if (words.is_minimum) {
    return absl::StrFormat(" is below %s, by %.*f", limit_text, words.decimals,
                           limit - value);
  }
  std::string text = absl::StrCat(" is beyond ", limit_text);
  if (limit > 0) {
    absl::StrAppend(&text, ": ", FactorText(value / limit), " times as much");
  }
  return text;
}

// Paragraphs of at most 80 columns.
class Text {
 public:
  explicit Text(bool color) : color_(color) {}

  void Verdict(std::string_view word, Style style, std::string_view sentence) {
    std::string paragraph;
    AppendWrapped(absl::StrCat(word, ": ", sentence), 0, &paragraph);
    absl::StrAppend(&text_, "\n", Styled(std::string(word), style, color_),
                    std::string_view(paragraph).substr(word.size()));
  }
  void Sentence(std::string_view sentence, size_t indent = 2) {
    AppendWrapped(PrintableLine(sentence, true), indent, &text_);
  }
  // Never broken: a path or a command.
  void Line(std::string_view line, size_t indent = 2) {
    absl::StrAppend(&text_, std::string(indent, ' '), PrintableLine(line, true),
                    "\n");
  }

  const std::string& text() const { return text_; }

 private:
  const bool color_;
  std::string text_;
};

std::vector<const StageRecord*> StagesIn(const RunRecord& record,
                                         StageState state) {
  std::vector<const StageRecord*> stages;
  for (const StageRecord& stage : record.stage()) {
    if (StateOf(stage) == state) stages.push_back(&stage);
  }
  return stages;
}

std::string StageNames(const std::vector<const StageRecord*>& stages) {
  return absl::StrCat(
      stages.size() == 1 ? "stage " : "stages ",
      absl::StrJoin(stages, ", ", [](std::string* out, const StageRecord* it) {
        absl::StrAppend(out, it->name());
      }));
}

const StageRecord* StageNamed(const RunRecord& record, std::string_view name) {
  for (const StageRecord& stage : record.stage()) {
    if (stage.name() == name) return &stage;
  }
  return nullptr;
}

// The last that was compared with something.
const StageRecord* Result(const RunRecord& record) {
  for (int i = record.stage_size() - 1; i >= 0; --i) {
    const StageRecord& stage = record.stage(i);
    if (stage.verification().result().has_comparison()) return &stage;
  }
  return nullptr;
}

void SayAccuracy(const EvaluateResult& result, Text* text) {
  const ComparisonMessage& comparison = result.comparison();
  if (comparison.has_accuracy()) {
    const AccuracyDifferenceMessage& accuracy = comparison.accuracy();
    text->Line(absl::StrFormat(
        "accuracy  %s points (%s to %s)%s", PointsText(accuracy.points()),
        PointsText(accuracy.interval().low()),
        PointsText(accuracy.interval().high()),
        result.scores().has_accuracy()
            ? absl::StrCat(", now ", AccuracyText(result.scores().accuracy()))
            : ""));
  }
  const OutputChangeMessage* change = OutputChangeOf(result);
  if (change != nullptr) {
    text->Line(absl::StrFormat("outputs   change by %s on average, %s at most",
                               ChangeText(change->mean()),
                               ChangeText(change->max())));
  }
}

void SaySize(const GraphRecord& now, const GraphRecord& before, Text* text) {
  if (now.bytes() <= 0 || before.bytes() <= 0) return;
  text->Line(absl::StrFormat("size      %s from %s, %.0f %%",
                             SizeText(now.bytes()), SizeText(before.bytes()),
                             100.0 * static_cast<double>(now.bytes()) /
                                 static_cast<double>(before.bytes())));
}

bool HasRounds(const BenchmarkResult& result) {
  for (const EntryMeasurement& entry : result.entry()) {
    if (entry.round_size() == 0 ||
        entry.round_size() != result.entry(0).round_size()) {
      return false;
    }
  }
  return result.entry_size() > 0;
}

void SaySpeed(const BenchmarkRecord& benchmark, std::string_view stage,
              Text* text) {
  if (!HasRounds(benchmark.result())) return;
  const std::vector<GraphFigures> figures = FiguresOf(benchmark.result());
  const int graphs =
      std::min(benchmark.graph_size(), static_cast<int>(figures.size()));
  for (int i = 1; i < graphs; ++i) {
    if (benchmark.graph(i) != stage) continue;
    const PairedRatio& speed = figures[i].speed;
    std::string line = absl::StrFormat("speed     %.2f times that of %s",
                                       speed.median, benchmark.graph(0));
    if (speed.interval.has_value()) {
      absl::StrAppendFormat(&line, " (%.2f to %.2f)", speed.interval->low,
                            speed.interval->high);
    }
    text->Line(line);
  }
}

void SayResult(const RunRecord& record, Text* text) {
  const StageRecord* stage = Result(record);
  if (stage == nullptr) return;
  const VerificationRecord& verification = stage->verification();
  text->Line("", 0);
  text->Line(
      absl::StrCat(stage->name(), " against ",
                   verification.baseline().empty() ? "its baseline"
                                                   : verification.baseline()),
      0);
  SayAccuracy(verification.result(), text);
  const StageRecord* baseline = StageNamed(record, verification.baseline());
  if (baseline != nullptr) SaySize(stage->graph(), baseline->graph(), text);
  for (const StageRecord& other : record.stage()) {
    if (other.has_benchmark()) SaySpeed(other.benchmark(), stage->name(), text);
  }
}

void SayWorstLayer(const EvaluateResult& result, Text* text) {
  const auto worst =
      std::min_element(result.layer().begin(), result.layer().end(),
                       [](const LayerMessage& a, const LayerMessage& b) {
                         return a.signal_to_noise() < b.signal_to_noise();
                       });
  if (worst == result.layer().end()) return;
  std::string sentence =
      absl::StrFormat("worst layer: %s, signal to noise %.1f dB", worst->name(),
                      worst->signal_to_noise());
  if (worst->step() > 0) {
    absl::StrAppendFormat(&sentence, ", error %.2f quantization steps",
                          worst->rms_error() / worst->step());
  }
  if (worst->clipped_share() > 0) {
    absl::StrAppendFormat(&sentence, ", %.2f %% of its values clipped",
                          100 * worst->clipped_share());
  }
  text->Sentence(sentence);
}

// The gates of that verdict, and what to do about them.
void SayGates(const StageRecord& stage, VerificationRecord::Verdict verdict,
              Text* text) {
  std::vector<std::string> advice;
  for (const GateRecord& gate : stage.verification().gate()) {
    if (gate.verdict() != verdict) continue;
    text->Sentence(absl::StrCat("stage ", stage.name(), ", gate ", gate.name(),
                                ": ", GateSentence(gate)));
    const bool is_new =
        std::find(advice.begin(), advice.end(), gate.advice()) == advice.end();
    if (!gate.advice().empty() && is_new) advice.push_back(gate.advice());
  }
  SayWorstLayer(stage.verification().result(), text);
  if (advice.empty()) return;
  text->Line("what to try:", 0);
  for (const std::string& sentence : advice) text->Sentence(sentence);
}

void SayFailedTask(const std::string& name, const TaskRecord& task,
                   Text* text) {
  text->Sentence(absl::StrCat(name, ": ", task.message()));
  if (task.note_size() > 0) text->Line("its last words:", 0);
  for (int i = std::max(0, task.note_size() - kMostNotes); i < task.note_size();
       ++i) {
    text->Line(task.note(i));
  }
  if (task.command_size() > 0) text->Line("its commands:", 0);
  for (const std::string& command : task.command()) text->Line(command);
}

void SayPassed(const RunRecord& record, Text* text) {
  int gates = 0, verified = 0;
  for (const StageRecord& stage : record.stage()) {
    gates += stage.verification().gate_size();
    if (stage.verification().verdict() != VerificationRecord::NONE) ++verified;
  }
  const size_t cached = StagesIn(record, StageState::kCached).size();
  std::string sentence = absl::StrCat(CountText(record.stage_size(), "stage"),
                                      " in ", SecondsText(record.seconds()));
  if (cached > 0) absl::StrAppend(&sentence, " (", cached, " cached)");
  if (gates > 0) {
    absl::StrAppend(&sentence, ", ", CountText(gates, "gate"), " of ",
                    CountText(verified, "verified stage"),
                    gates == 1 ? " holds" : " hold");
  }
  text->Verdict("PASSED", Style::kGood, sentence);
  SayResult(record, text);
}

void SayInconclusive(const RunRecord& record, Text* text) {
  const std::vector<const StageRecord*> stages =
      StagesIn(record, StageState::kInconclusive);
  text->Verdict("WARNING, INCONCLUSIVE", Style::kDoubtful,
                absl::StrCat("the records do not suffice to say whether ",
                             StageNames(stages),
                             stages.size() == 1 ? " keeps its" : " keep their",
                             " limits; do not take this for a pass"));
  for (const StageRecord* stage : stages) {
    SayGates(*stage, VerificationRecord::INCONCLUSIVE, text);
  }
  SayResult(record, text);
}

void SayGateFailed(const RunRecord& record, Text* text) {
  const std::vector<const StageRecord*> stages =
      StagesIn(record, StageState::kGateFailed);
  text->Verdict(
      "FAILED", Style::kBad,
      absl::StrCat(StageNames(stages), " changed the model more than ",
                   stages.size() == 1 ? "its" : "their",
                   " gates allow; nothing that needs it ran"));
  for (const StageRecord* stage : stages) {
    SayGates(*stage, VerificationRecord::FAIL, text);
  }
}

void SayFailed(const RunRecord& record, Text* text) {
  const std::vector<const StageRecord*> stages =
      StagesIn(record, StageState::kFailed);
  text->Verdict("FAILED", Style::kBad,
                stages.empty() ? "the run could not be finished"
                               : absl::StrCat(StageNames(stages),
                                              " could not be finished"));
  for (const StageRecord* stage : stages) {
    SayFailedTask(absl::StrCat("stage ", stage->name()), DecisiveTask(*stage),
                  text);
  }
  for (const BaselineRecord& baseline : record.baseline()) {
    if (StateOf(baseline) != StageState::kFailed) continue;
    SayFailedTask(baseline.name(), baseline.work(), text);
  }
}

void SayInterrupted(const RunRecord& record, Text* text) {
  text->Verdict("INTERRUPTED", Style::kDoubtful,
                absl::StrCat("what is done is kept. To go on where it stopped, "
                             "run the same command again:"));
  text->Line(record.command());
}

}  // namespace

std::string GateSentence(const GateRecord& gate) {
  const auto* words =
      std::find_if(std::begin(kGates), std::end(kGates),
                   [&](const GateWords& it) { return it.name == gate.name(); });
  if (words == std::end(kGates) || !gate.has_value()) return gate.sentence();
  std::string text;
  if (!gate.layer().empty()) absl::StrAppend(&text, gate.layer(), ": ");
  absl::StrAppendFormat(&text, "%s %.*f%s", words->subject, words->decimals,
                        gate.value(), words->unit);
  if (gate.has_interval()) {
    absl::StrAppendFormat(&text, " (%.*f to %.*f)", words->decimals,
                          gate.interval().low(), words->decimals,
                          gate.interval().high());
  }
  switch (gate.verdict()) {
    case VerificationRecord::FAIL:
      return absl::StrCat(text, HowFarBeyond(*words, gate));
    case VerificationRecord::INCONCLUSIVE:
      return absl::StrFormat("%s may be on either side of the limit %g%s", text,
                             gate.limit(), words->unit);
    default:
      return absl::StrFormat("%s, limit %g%s", text, gate.limit(), words->unit);
  }
}

std::string RunConclusion(const RunRecord& record,
                          const RunConclusionOptions& options) {
  Text text(options.color);
  switch (record.outcome()) {
    case RunRecord::PASSED:
      SayPassed(record, &text);
      break;
    case RunRecord::INCONCLUSIVE:
      SayInconclusive(record, &text);
      break;
    case RunRecord::GATE_FAILED:
      SayGateFailed(record, &text);
      break;
    case RunRecord::INTERRUPTED:
      SayInterrupted(record, &text);
      break;
    default:
      SayFailed(record, &text);
      break;
  }
  if (!options.report.empty()) {
    text.Line("", 0);
    text.Line(absl::StrCat("report: ", options.report), 0);
  }
  return absl::StrCat(RunTable(record, options.columns, options.color),
                      text.text());
}

}  // namespace requant
