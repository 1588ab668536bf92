#include "runtime/benchmark/benchmark_report.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/json.h"
#include "base/terminal/progress.h"
#include "base/text/printable.h"
#include "runtime/benchmark/benchmark_figures.h"
#include "runtime/evaluation.pb.h"
#include "runtime/session/worker.pb.h"

namespace requant {
namespace {

using Row = std::vector<std::string>;

// On an idle machine threads wait for less than one percent of their time.
constexpr double kNoticeableWait = 0.05;
// Operations below are not shown to people.
constexpr double kNoticeableShare = 0.0005;

// Rows in columns two blanks apart, each as wide as its widest cell; the last
// column is to the left, the others to the right.
std::string Table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppendFormat(&text, "%*s  ", widths[i], row[i]);
    }
    absl::StrAppend(&text, row.back(), "\n");
  }
  return text;
}

std::string_view Basename(std::string_view path) {
  while (absl::ConsumeSuffix(&path, "/")) {
  }
  return path.substr(path.rfind('/') + 1);
}

// Whether a folder's name says nothing of the model in it.
bool IsVersion(std::string_view name) {
  return name == "saved_model" ||
         name.find_first_not_of("0123456789") == name.npos;
}

// The graphs' names: without their folders, where that leaves them different
// and with a meaning.
std::vector<std::string> Names(const BenchmarkJob& job) {
  std::vector<std::string> names, paths;
  bool tells = true;
  for (const BenchmarkEntry& entry : job.entry()) {
    paths.push_back(Printable(entry.model().path()));
    names.push_back(Printable(Basename(entry.model().path())));
    tells = tells && !IsVersion(names.back());
  }
  const std::set<std::string> different(names.begin(), names.end());
  return tells && different.size() == names.size() ? names : paths;
}

// "1 thread", "12 threads".
std::string Count(int64_t number, std::string_view what) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
}

std::string SettingText(const StreamSetting& setting) {
  return absl::StrCat(Count(setting.streams(), "stream"), " x ",
                      Count(setting.threads(), "thread"));
}

// "2 streams x 1 thread on 2 cores (1 x 2: 98.1k records/s, 2 x 1: 121k)".
std::string SettingLine(const BenchmarkResult& result, int entry) {
  std::vector<std::string> trials;
  for (const SettingTrial& trial : result.trial()) {
    if (trial.entry() != entry) continue;
    trials.push_back(absl::StrCat(trial.setting().streams(), " x ",
                                  trial.setting().threads(), ": ",
                                  HumanRate(trial.records_per_second()), "/s"));
  }
  return absl::StrCat(SettingText(result.entry(entry).setting()), " on ",
                      Count(result.cores(), "core"),
                      trials.empty() ? "" : ", chosen from ",
                      absl::StrJoin(trials, ", "));
}

std::string RatioText(const PairedRatio& ratio) {
  if (!ratio.interval.has_value()) {
    return absl::StrFormat("%.2f", ratio.median);
  }
  return absl::StrFormat("%.2f (%.2f-%.2f)", ratio.median,
                         ratio.interval->low(), ratio.interval->high());
}

std::string FiguresTable(const std::vector<std::string>& names,
                         const std::vector<GraphFigures>& all) {
  std::vector<Row> rows = {{"speed", "CPU time", "records/s", "spread",
                            "ms/batch", "p99", "CPU us/record", "graph"}};
  for (size_t i = 0; i < all.size(); ++i) {
    const GraphFigures& figures = all[i];
    rows.push_back(
        {RatioText(figures.speed), RatioText(figures.cpu_time),
         absl::StrFormat("%.0f", figures.records_per_second),
         absl::StrFormat("%.1f %%", 100 * figures.spread),
         absl::StrFormat("%.3f", figures.milliseconds_per_batch),
         absl::StrFormat("%.3f", figures.milliseconds_per_batch_p99),
         absl::StrFormat("%.3f", figures.cpu_microseconds_per_record),
         names[i]});
  }
  return Table(rows);
}

std::string IntervalText(const Interval& interval) {
  return absl::StrFormat("(95 %% interval %.3f to %.3f)", interval.low(),
                         interval.high());
}

std::string SpeedText(const std::string& name, const std::string& first,
                      const PairedRatio& speed) {
  switch (JudgeSpeed(speed)) {
    case SpeedVerdict::kFaster:
      return absl::StrFormat("%s is %.2f times as fast as %s %s", name,
                             speed.median, first,
                             IntervalText(*speed.interval));
    case SpeedVerdict::kSlower:
      return absl::StrFormat("%s is slower than %s, %.2f times as fast %s",
                             name, first, speed.median,
                             IntervalText(*speed.interval));
    case SpeedVerdict::kNoDifference:
      return absl::StrCat("the speeds of ", name, " and ", first,
                          " do not differ beyond the noise ",
                          IntervalText(*speed.interval));
    case SpeedVerdict::kUnknown:
      break;
  }
  return absl::StrCat("there are too few rounds to tell whether ", name,
                      " and ", first,
                      " differ beyond the noise: it takes at least 6");
}

// One line on a graph against the first: its speed, and its CPU time if that
// certainly differs.
std::string VerdictText(const std::string& name, const std::string& first,
                        const GraphFigures& figures) {
  std::string text = SpeedText(name, first, figures.speed);
  const PairedRatio& cpu_time = figures.cpu_time;
  if (cpu_time.interval.has_value() &&
      (cpu_time.interval->low() > 1 || cpu_time.interval->high() < 1)) {
    absl::StrAppendFormat(&text, "; %s takes %.2f times the CPU time %s", name,
                          cpu_time.median, IntervalText(*cpu_time.interval));
  }
  return text + "\n";
}

// A warning when the graphs did not have the machine to themselves, or "".
std::string BusyWarning(const std::vector<GraphFigures>& all) {
  double most = 0;
  for (const GraphFigures& figures : all) {
    most = std::max(most, figures.waited_share.value_or(0));
  }
  if (most < kNoticeableWait) return "";
  return absl::StrFormat(
      "warning: for %.0f %% of their time the graphs were ready to run and all "
      "cores were busy, with other programs or with more threads than cores: "
      "compare the CPU times, or measure again on an idle machine\n",
      100 * most);
}

std::vector<Row> ProfileRows(
    const ProfileMessage& profile,
    const google::protobuf::RepeatedPtrField<OperationTime>& times) {
  std::vector<Row> rows;
  for (const OperationTime& time : times) {
    const double share = time.microseconds() / profile.operation_microseconds();
    if (!(share >= kNoticeableShare)) continue;
    rows.push_back({absl::StrFormat("%.1f %%", 100 * share),
                    absl::StrFormat("%.1f", time.microseconds()),
                    absl::StrFormat("%g", time.calls()),
                    time.node().empty() ? Printable(time.op())
                                        : Printable(absl::StrCat(
                                              time.op(), "  ", time.node()))});
  }
  return rows;
}

std::string ProfileText(const std::string& name,
                        const ProfileMessage& profile) {
  std::string text = absl::StrFormat(
      "\nProfile of %s: %.1f us per batch in operations, %.1f in all, in one "
      "traced stream (mean of %d)\n",
      name, profile.operation_microseconds(), profile.batch_microseconds(),
      profile.batches());
  std::vector<Row> types = ProfileRows(profile, profile.type());
  types.insert(types.begin(), {"share", "us/batch", "calls", "operation"});
  std::vector<Row> nodes = ProfileRows(profile, profile.node());
  nodes.insert(nodes.begin(), {"share", "us/batch", "calls", "node"});
  absl::StrAppend(&text, Table(types), "\n", Table(nodes));
  return text;
}

std::string IntervalJson(const std::optional<Interval>& interval) {
  if (!interval.has_value()) return "null";
  return JsonArray({JsonNumber(interval->low()), JsonNumber(interval->high())});
}

std::string VerdictJson(const PairedRatio& speed) {
  switch (JudgeSpeed(speed)) {
    case SpeedVerdict::kFaster:
      return "\"faster\"";
    case SpeedVerdict::kSlower:
      return "\"slower\"";
    case SpeedVerdict::kNoDifference:
      return "\"no difference\"";
    case SpeedVerdict::kUnknown:
      break;
  }
  return "null";
}

std::string RoundsJson(const EntryMeasurement& entry) {
  std::vector<std::string> rounds;
  for (const RoundMeasurement& round : entry.round()) {
    rounds.push_back(JsonObject(
        {{"records", absl::StrCat(round.records())},
         {"batches", absl::StrCat(round.batches())},
         {"records_per_second", JsonNumber(round.records_per_second())},
         {"cpu_seconds", JsonNumber(round.cpu_seconds())},
         {"waited_seconds", round.has_waited_seconds()
                                ? JsonNumber(round.waited_seconds())
                                : "null"}}));
  }
  return JsonArray(rounds);
}

std::string TimesJson(
    const google::protobuf::RepeatedPtrField<OperationTime>& times) {
  std::vector<std::string> json;
  for (const OperationTime& time : times) {
    std::vector<std::pair<std::string, std::string>> members = {
        {"op", JsonString(time.op())},
        {"calls_per_batch", JsonNumber(time.calls())},
        {"microseconds_per_batch", JsonNumber(time.microseconds())}};
    if (!time.node().empty()) {
      members.insert(members.begin(), {"node", JsonString(time.node())});
    }
    json.push_back(JsonObject(members));
  }
  return JsonArray(json);
}

std::string ProfileJson(const EntryMeasurement& entry) {
  if (!entry.has_profile()) return "null";
  const ProfileMessage& profile = entry.profile();
  return JsonObject(
      {{"batches", absl::StrCat(profile.batches())},
       {"microseconds_per_batch", JsonNumber(profile.batch_microseconds())},
       {"operation_microseconds_per_batch",
        JsonNumber(profile.operation_microseconds())},
       {"operations", TimesJson(profile.type())},
       {"costliest_nodes", TimesJson(profile.node())}});
}

std::string DifferenceJson(const EntryMeasurement& entry) {
  if (!entry.has_difference()) return "null";
  const OutputDifferenceMessage& difference = entry.difference();
  return JsonObject(
      {{"values", absl::StrCat(difference.values())},
       {"mse", JsonNumber(difference.mse())},
       {"max", JsonNumber(difference.max())},
       {"cosine", JsonNumber(difference.cosine())},
       {"rows", absl::StrCat(difference.rows())},
       {"agreeing_rows", absl::StrCat(difference.agreeing_rows())},
       {"top_1_agreement",
        difference.rows() > 0
            ? JsonNumber(static_cast<double>(difference.agreeing_rows()) /
                         static_cast<double>(difference.rows()))
            : "null"},
       {"lost_values", absl::StrCat(difference.lost_values())},
       {"never_finite_values",
        absl::StrCat(difference.never_finite_values())}});
}

std::string SyntheticJson(const BenchmarkResult& result) {
  std::vector<std::string> inputs;
  for (const std::string& input : result.synthetic_input()) {
    inputs.push_back(JsonString(input));
  }
  return JsonArray(inputs);
}

std::string GraphJson(const BenchmarkEntry& entry,
                      const EntryMeasurement& measurement,
                      const GraphFigures& figures, bool is_first) {
  return JsonObject({
      {"graph", JsonString(entry.model().path())},
      {"dataset", entry.dataset_name().empty()
                      ? "null"
                      : JsonString(entry.dataset_name())},
      {"streams", absl::StrCat(measurement.setting().streams())},
      {"threads", absl::StrCat(measurement.setting().threads())},
      {"records_per_second", JsonNumber(figures.records_per_second)},
      {"spread", JsonNumber(figures.spread)},
      {"milliseconds_per_batch", JsonNumber(figures.milliseconds_per_batch)},
      {"milliseconds_per_batch_p99",
       JsonNumber(figures.milliseconds_per_batch_p99)},
      {"cpu_microseconds_per_record",
       JsonNumber(figures.cpu_microseconds_per_record)},
      {"waited_share", figures.waited_share.has_value()
                           ? JsonNumber(*figures.waited_share)
                           : "null"},
      {"speed_ratio", JsonNumber(figures.speed.median)},
      {"speed_ratio_interval_95", IntervalJson(figures.speed.interval)},
      {"cpu_time_ratio", JsonNumber(figures.cpu_time.median)},
      {"cpu_time_ratio_interval_95", IntervalJson(figures.cpu_time.interval)},
      {"verdict", is_first ? "null" : VerdictJson(figures.speed)},
      {"output_difference", DifferenceJson(measurement)},
      {"rounds", RoundsJson(measurement)},
      {"profile", ProfileJson(measurement)},
  });
}

std::string TrialsJson(const BenchmarkJob& job, const BenchmarkResult& result) {
  std::vector<std::string> trials;
  for (const SettingTrial& trial : result.trial()) {
    trials.push_back(JsonObject(
        {{"graph", JsonString(job.entry(trial.entry()).model().path())},
         {"streams", absl::StrCat(trial.setting().streams())},
         {"threads", absl::StrCat(trial.setting().threads())},
         {"records_per_second", JsonNumber(trial.records_per_second())}}));
  }
  return JsonArray(trials);
}

}  // namespace

std::string BenchmarkText(const BenchmarkJob& job,
                          const BenchmarkResult& result) {
  const std::vector<std::string> names = Names(job);
  const std::vector<GraphFigures> figures = FiguresOf(result);
  std::string text = absl::StrCat(
      Count(job.rounds(), "round"), " of ", job.seconds(), " s per graph; ",
      Count(result.records(), "preloaded record"), " in batches of ",
      std::min(job.batch_size(), result.records()), "\n");
  for (int i = 0; i < result.entry_size(); ++i) {
    if (i > 0 && !job.tune_each()) break;
    absl::StrAppend(&text, job.tune_each() ? names[i] + ": " : "",
                    SettingLine(result, i), "\n");
  }
  absl::StrAppend(&text, "\n", FiguresTable(names, figures));
  if (names.size() > 1) text += "\n";
  for (size_t i = 1; i < names.size(); ++i) {
    absl::StrAppend(&text, VerdictText(names[i], names[0], figures[i]));
  }
  absl::StrAppend(&text, BusyWarning(figures));
  for (int i = 0; i < result.entry_size(); ++i) {
    if (!result.entry(i).has_profile()) continue;
    absl::StrAppend(&text, ProfileText(names[i], result.entry(i).profile()));
  }
  return text;
}

std::string BenchmarkJson(const BenchmarkJob& job,
                          const BenchmarkResult& result) {
  const std::vector<GraphFigures> figures = FiguresOf(result);
  std::vector<std::string> graphs;
  for (int i = 0; i < result.entry_size(); ++i) {
    graphs.push_back(
        GraphJson(job.entry(i), result.entry(i), figures[i], i == 0));
  }
  return JsonObject({{"batch_size", absl::StrCat(job.batch_size())},
                     {"preloaded_batches", absl::StrCat(result.batches())},
                     {"preloaded_records", absl::StrCat(result.records())},
                     {"synthetic_inputs", SyntheticJson(result)},
                     {"token_input", JsonString(result.token_input())},
                     {"rounds", absl::StrCat(job.rounds())},
                     {"seconds_per_round", JsonNumber(job.seconds())},
                     {"cores", absl::StrCat(result.cores())},
                     {"trials", TrialsJson(job, result)},
                     {"graphs", JsonArray(graphs)}}) +
         "\n";
}

}  // namespace requant
