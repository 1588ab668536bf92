#include "workflows/display/run_display.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/message_text.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "workflows/display/run_conclusion.h"
#include "workflows/report/figures.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

constexpr double kSecondsBetweenLines = 10;

std::string NameOf(const RunRecord& record, const TaskPlace& place) {
  if (place.stage < 0) return record.baseline(place.baseline).name();
  return absl::StrCat(record.stage(place.stage).name(),
                      place.verifies ? "/verify" : "");
}

std::string StateText(const TaskRecord& task) {
  const std::string seconds = SecondsText(task.seconds());
  switch (task.state()) {
    case TaskRecord::CACHED:
      return "cached";
    case TaskRecord::GIVEN:
      return "given";
    case TaskRecord::FAILED:
      return absl::StrCat("FAILED after ", seconds, ": ", task.message());
    case TaskRecord::INTERRUPTED:
      return absl::StrCat("interrupted after ", seconds);
    case TaskRecord::NOT_RUN:
      return absl::StrCat("stopped after ", seconds);
    default:
      return absl::StrCat("done in ", seconds);
  }
}

void AppendResult(const EvaluateResult& result,
                  std::vector<std::string>* parts) {
  StageFigures stage;
  stage.result = &result;
  for (const Figure& figure : Figures()) {
    const std::string text =
        figure.word == nullptr ? "" : FigureText(stage, figure);
    if (!text.empty()) parts->push_back(absl::StrCat(figure.word, " ", text));
  }
}

// Appends the first decisive gate; the conclusion has all of them.
void AppendVerdict(const VerificationRecord& verification,
                   std::vector<std::string>* parts) {
  if (verification.verdict() == VerificationRecord::NONE) return;
  parts->push_back(VerdictName(verification.verdict()));
  if (verification.verdict() == VerificationRecord::PASS) return;
  int more = -1;
  for (const GateRecord& gate : verification.gate()) {
    if (gate.verdict() != verification.verdict()) continue;
    if (++more > 0) continue;
    parts->push_back(absl::StrCat(gate.name(), ": ", gate.sentence()));
  }
  if (more > 0) {
    parts->push_back(absl::StrCat("and ", CountText(more, "more gate")));
  }
}

std::string ProgressText(const TaskProgress& progress, double rate) {
  std::vector<std::string> parts = {progress.what};
  const int64_t left = progress.total - progress.done;
  if (progress.total > 0) {
    parts.push_back(absl::StrFormat(
        "%s/%s %s (%d %%)", HumanCount(progress.done),
        HumanCount(progress.total), progress.unit,
        std::min<int64_t>(100, static_cast<int64_t>(
                                   100.0 * static_cast<double>(progress.done) /
                                   static_cast<double>(progress.total)))));
  } else if (progress.done > 0) {
    parts.push_back(
        absl::StrCat(HumanCount(progress.done), " ", progress.unit));
  }
  if (rate > 0) parts.push_back(absl::StrCat(HumanRate(rate), "/s"));
  if (rate > 0 && progress.total > 0 && left >= 0) {
    parts.push_back(
        absl::StrCat(HumanDuration(static_cast<double>(left) / rate), " left"));
  }
  if (!progress.note.empty()) parts.push_back(progress.note);
  return absl::StrJoin(parts, "  ");
}

std::string_view OutcomeText(RunRecord::Outcome outcome) {
  constexpr std::string_view kTexts[] = {"FAILED",       "PASSED",
                                         "INCONCLUSIVE", "FAILED a gate",
                                         "FAILED",       "interrupted"};
  return kTexts[outcome];
}

// The display for output in which no line can be rewritten.
class PlainDisplay : public RunObserver {
 public:
  explicit PlainDisplay(ProgressEnvironment environment)
      : environment_(std::move(environment)) {}

  void RunStarted(const RunRecord& record) override {
    const auto cached =
        std::count_if(record.stage().begin(), record.stage().end(),
                      [](const StageRecord& stage) {
                        return StateOf(stage) == StageState::kCached;
                      });
    Write(absl::StrCat(
        record.workflow(), "  ", CountText(record.stage_size(), "stage"),
        cached == 0 ? "" : absl::StrCat(", ", cached, " of them cached")));
  }

  void TaskStarted(const RunRecord& record, const TaskPlace& place) override {
    const double now = environment_.now();
    running_.push_back({NameOf(record, place), {TaskClock(now), now}});
  }

  void TaskProgressed(const RunRecord& record, const TaskPlace& place,
                      const TaskProgress& progress) override {
    for (auto& [name, running] : running_) {
      if (name != NameOf(record, place)) continue;
      running.clock.Take(environment_.now(), progress);
    }
    Tick();
  }

  void TaskEnded(const RunRecord& record, const TaskPlace& place) override {
    const std::string name = NameOf(record, place);
    running_.erase(
        std::remove_if(running_.begin(), running_.end(),
                       [&](const auto& each) { return each.first == name; }),
        running_.end());
    const TaskRecord& task = WorkOf(place, record);
    std::vector<std::string> parts = {name, StateText(task)};
    const bool succeeded =
        task.state() == TaskRecord::DONE || task.state() == TaskRecord::CACHED;
    if (succeeded && place.stage < 0) {
      AppendResult(record.baseline(place.baseline).result(), &parts);
    } else if (succeeded && place.verifies) {
      const VerificationRecord& verification =
          record.stage(place.stage).verification();
      AppendResult(verification.result(), &parts);
      AppendVerdict(verification, &parts);
    }
    Write(absl::StrJoin(parts, "  "));
  }

  void Said(std::string_view text) override {
    for (std::string_view line : absl::StrSplit(text, '\n')) Write(line);
  }

  void RunEnded(const RunRecord& record) override {
    running_.clear();
    Write(absl::StrCat(record.workflow(), "  ", OutcomeText(record.outcome()),
                       " after ", SecondsText(record.seconds())));
  }

  void Tick() override {
    const double now = environment_.now();
    for (auto& [name, running] : running_) {
      if (now - running.last_line < kSecondsBetweenLines) continue;
      running.last_line = now;
      const TaskClock& clock = running.clock;
      Write(absl::StrCat(
          name, "  ",
          clock.progress().what.empty()
              ? absl::StrCat("running for ", HumanDuration(clock.Seconds(now)))
              : ProgressText(clock.progress(), clock.Rate(now))));
    }
  }

 private:
  struct Running {
    TaskClock clock;
    double last_line = 0;
  };

  void Write(std::string_view text) {
    // A log file may contain any UTF-8, whatever the locale.
    environment_.write(absl::StrCat(environment_.time_of_day(), " ",
                                    PrintableLine(text, true), "\n"));
  }

  const ProgressEnvironment environment_;
  // The tasks in the order in which they started, by their names in the plan,
  // such as "optimize/verify".
  std::vector<std::pair<std::string, Running>> running_;
};

}  // namespace

std::unique_ptr<RunObserver> MakeRunDisplay(const RunDisplayOptions& options,
                                            ProgressEnvironment environment) {
  if (environment.is_terminal) {
    return MakeLiveDisplay(options, std::move(environment));
  }
  return std::make_unique<PlainDisplay>(std::move(environment));
}

std::unique_ptr<RunObserver> MakeStderrDisplay(bool erase_at_end) {
  return MakeRunDisplay({LocaleIsUtf8(), ColorIsWelcome(), erase_at_end},
                        ProgressEnvironment::Stderr());
}

}  // namespace requant
