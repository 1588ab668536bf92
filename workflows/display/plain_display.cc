#include "workflows/display/plain_display.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/message_text.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "workflows/display/run_figures.h"
#include "workflows/report/figures.h"
#include "workflows/report/stage_figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

constexpr double kSecondsBetweenLines = 10;

std::string NameOf(const RunRecord& record, const TaskPlace& place) {
  if (place.stage < 0) return record.baseline(place.baseline).name();
  return absl::StrCat(record.stage(place.stage).name(),
                      place.verifies ? "/verify" : "");
}

const TaskRecord& TaskOf(const RunRecord& record, const TaskPlace& place) {
  if (place.stage < 0) return record.baseline(place.baseline).work();
  const StageRecord& stage = record.stage(place.stage);
  return place.verifies ? stage.verification().work() : OwnWork(stage);
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

// The conclusion tells all gates.
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
  switch (outcome) {
    case RunRecord::PASSED:
      return "PASSED";
    case RunRecord::INCONCLUSIVE:
      return "INCONCLUSIVE";
    case RunRecord::GATE_FAILED:
      return "FAILED a gate";
    case RunRecord::INTERRUPTED:
      return "interrupted";
    default:
      return "FAILED";
  }
}

}  // namespace

void PlainDisplay::RunStarted(const RunRecord& record) {
  int cached = 0;
  for (const StageRecord& stage : record.stage()) {
    if (StateOf(stage) == StageState::kCached) ++cached;
  }
  Write(absl::StrCat(
      record.workflow(), "  ", CountText(record.stage_size(), "stage"),
      cached == 0 ? "" : absl::StrCat(", ", cached, " of them cached")));
}

void PlainDisplay::TaskStarted(const RunRecord& record,
                               const TaskPlace& place) {
  const double now = environment_.now();
  running_.push_back({NameOf(record, place), TaskClock(now), now});
}

void PlainDisplay::TaskProgressed(const RunRecord& record,
                                  const TaskPlace& place,
                                  const TaskProgress& progress) {
  const std::string name = NameOf(record, place);
  for (Running& running : running_) {
    if (running.name != name) continue;
    running.clock.Take(environment_.now(), progress);
  }
  Tick();
}

void PlainDisplay::TaskEnded(const RunRecord& record, const TaskPlace& place) {
  const std::string name = NameOf(record, place);
  running_.erase(std::remove_if(running_.begin(), running_.end(),
                                [&name](const Running& running) {
                                  return running.name == name;
                                }),
                 running_.end());
  const TaskRecord& task = TaskOf(record, place);
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

void PlainDisplay::Said(std::string_view text) {
  for (std::string_view line : absl::StrSplit(text, '\n')) Write(line);
}

void PlainDisplay::RunEnded(const RunRecord& record) {
  running_.clear();
  Write(absl::StrCat(record.workflow(), "  ", OutcomeText(record.outcome()),
                     " after ", SecondsText(record.seconds())));
}

void PlainDisplay::Tick() {
  const double now = environment_.now();
  for (Running& running : running_) {
    if (now - running.last_line < kSecondsBetweenLines) continue;
    running.last_line = now;
    const TaskClock& clock = running.clock;
    Write(absl::StrCat(
        running.name, "  ",
        clock.progress().what.empty()
            ? absl::StrCat("running for ", HumanDuration(clock.Seconds(now)))
            : ProgressText(clock.progress(), clock.Rate(now))));
  }
}

void PlainDisplay::Write(std::string_view text) {
  // A log file takes any UTF-8, whatever the locale.
  environment_.write(absl::StrCat(environment_.time_of_day(), " ",
                                  PrintableLine(text, true), "\n"));
}

}  // namespace requant
