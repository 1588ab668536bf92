#include "runtime/benchmark/benchmark_report.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/json.h"
#include "base/message/message_json.h"
#include "base/message_text.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "base/text/printable.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "runtime/statistics/timing.h"

namespace requant {
namespace {

using tensorflow::NodeExecStats;

using Figure = std::function<double(const RoundMeasurement&)>;

// On an idle machine threads wait for less than one percent of their time.
constexpr double kNoticeableWait = 0.05;
// Operations with a smaller share are not shown to users.
constexpr double kNoticeableShare = 0.0005;

double RateOf(const RoundMeasurement& round) {
  return round.records_per_second();
}

double CpuMicrosecondsPerRecord(const RoundMeasurement& round) {
  return 1e6 * round.cpu_seconds() / static_cast<double>(round.records());
}

std::vector<double> OverRounds(const EntryMeasurement& entry,
                               const Figure& figure) {
  std::vector<double> figures;
  for (const RoundMeasurement& round : entry.round()) {
    figures.push_back(figure(round));
  }
  return figures;
}

PairedRatio RatioOf(const EntryMeasurement& entry,
                    const EntryMeasurement& first, const Figure& figure) {
  std::vector<double> ratios;
  for (int i = 0; i < entry.round_size(); ++i) {
    ratios.push_back(figure(entry.round(i)) / figure(first.round(i)));
  }
  return {Median(ratios), MedianInterval(ratios)};
}

std::optional<double> WaitedShare(const EntryMeasurement& entry) {
  double waited = 0, ran = 0;
  for (const RoundMeasurement& round : entry.round()) {
    if (!round.has_waited_seconds()) return std::nullopt;
    waited += round.waited_seconds();
    ran += round.cpu_seconds();
  }
  return waited + ran > 0 ? waited / (waited + ran) : 0;
}

std::string_view Basename(std::string_view path) {
  while (absl::ConsumeSuffix(&path, "/")) {
  }
  return path.substr(path.rfind('/') + 1);
}

// Returns whether a folder's name says nothing about the model in it.
bool IsVersion(std::string_view name) {
  return name == "saved_model" ||
         name.find_first_not_of("0123456789") == name.npos;
}

// Returns the graphs' names, without their folders if the names are then still
// distinct and meaningful.
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

// Returns "2 streams x 1 thread on 2 cores (1 x 2: 98.1k records/s, …)".
std::string SettingLine(const BenchmarkResult& result, int entry) {
  std::vector<std::string> trials;
  for (const SettingTrial& trial : result.trial()) {
    if (trial.entry() != entry) continue;
    trials.push_back(absl::StrCat(trial.setting().streams(), " x ",
                                  trial.setting().threads(), ": ",
                                  HumanRate(trial.records_per_second()), "/s"));
  }
  const StreamSetting& setting = result.entry(entry).setting();
  return absl::StrCat(CountText(setting.streams(), "stream"), " x ",
                      CountText(setting.threads(), "thread"), " on ",
                      CountText(result.cores(), "core"),
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

// Returns a table whose last column is left-aligned.
Table TableOf(const std::vector<std::string>& titles) {
  Table table;
  for (const std::string& title : titles) {
    table.AddColumn(title, Table::kAlways, title == titles.back());
  }
  return table;
}

std::string FiguresTable(const std::vector<std::string>& names,
                         const std::vector<GraphFigures>& all) {
  Table table = TableOf({"speed", "CPU time", "records/s", "spread", "ms/batch",
                         "p99", "CPU us/record", "graph"});
  for (size_t i = 0; i < all.size(); ++i) {
    const GraphFigures& figures = all[i];
    table.AddRow(
        {{RatioText(figures.speed)},
         {RatioText(figures.cpu_time)},
         {absl::StrFormat("%.0f", figures.records_per_second)},
         {absl::StrFormat("%.1f %%", 100 * figures.spread)},
         {absl::StrFormat("%.3f", figures.milliseconds_per_batch)},
         {absl::StrFormat("%.3f", figures.milliseconds_per_batch_p99)},
         {absl::StrFormat("%.3f", figures.cpu_microseconds_per_record)},
         {names[i]}});
  }
  return table.Text(/*width=*/0, /*color=*/false);
}

std::string IntervalText(const Interval& interval) {
  return absl::StrFormat("(95 %% interval %.3f to %.3f)", interval.low(),
                         interval.high());
}

// Returns "faster", "slower" or, if the interval holds 1, "no difference"; ""
// if there are too few rounds for an interval.
std::string VerdictOf(const PairedRatio& speed) {
  if (!speed.interval.has_value()) return "";
  if (speed.interval->low() > 1) return "faster";
  return speed.interval->high() < 1 ? "slower" : "no difference";
}

std::string SpeedText(const std::string& name, const std::string& first,
                      const PairedRatio& speed) {
  const std::string verdict = VerdictOf(speed);
  if (verdict.empty()) {
    return absl::StrCat("there are too few rounds to tell whether ", name,
                        " and ", first,
                        " differ beyond the noise: it takes at least 6");
  }
  const std::string interval = IntervalText(*speed.interval);
  if (verdict == "faster") {
    return absl::StrFormat("%s is %.2f times as fast as %s %s", name,
                           speed.median, first, interval);
  }
  if (verdict == "slower") {
    return absl::StrFormat("%s is slower than %s, %.2f times as fast %s", name,
                           first, speed.median, interval);
  }
  return absl::StrCat("the speeds of ", name, " and ", first,
                      " do not differ beyond the noise ", interval);
}

// Returns one line that compares a graph with the first: its speed, and its CPU
// time if that certainly differs.
std::string VerdictText(const std::string& name, const std::string& first,
                        const GraphFigures& figures) {
  std::string text = SpeedText(name, first, figures.speed);
  const PairedRatio& cpu_time = figures.cpu_time;
  const std::string verdict = VerdictOf(cpu_time);
  if (verdict == "faster" || verdict == "slower") {
    absl::StrAppendFormat(&text, "; %s takes %.2f times the CPU time %s", name,
                          cpu_time.median, IntervalText(*cpu_time.interval));
  }
  return text + "\n";
}

// Returns a warning if the graphs had to share the machine, else "".
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

// Returns a table of `what`, an operation or a node.
std::string TimesTable(
    const std::string& what, const ProfileMessage& profile,
    const google::protobuf::RepeatedPtrField<OperationTime>& times) {
  Table table = TableOf({"share", "us/batch", "calls", what});
  for (const OperationTime& time : times) {
    const double share = time.microseconds() / profile.operation_microseconds();
    if (!(share >= kNoticeableShare)) continue;
    table.AddRow(
        {{absl::StrFormat("%.1f %%", 100 * share)},
         {absl::StrFormat("%.1f", time.microseconds())},
         {absl::StrFormat("%g", time.calls())},
         {Printable(absl::StrCat(time.op(), time.node().empty() ? "" : "  ",
                                 time.node()))}});
  }
  return table.Text(/*width=*/0, /*color=*/false);
}

std::string ProfileText(const std::string& name,
                        const ProfileMessage& profile) {
  return absl::StrFormat(
      "\nProfile of %s: %.1f us per batch in operations, %.1f in all, in one "
      "traced stream (mean of %d)\n%s\n%s",
      name, profile.operation_microseconds(), profile.batch_microseconds(),
      profile.batches(), TimesTable("operation", profile, profile.type()),
      TimesTable("node", profile, profile.node()));
}

std::string IntervalJson(const std::optional<Interval>& interval) {
  if (!interval.has_value()) return "null";
  return JsonArray({JsonNumber(interval->low()), JsonNumber(interval->high())});
}

std::string TextJson(const std::string& text) {
  return text.empty() ? "null" : JsonString(text);
}

// Returns the message's members; the first, a name, is left out for types.
std::string TimeJson(const OperationTime& time) {
  JsonMembers members = MessageMembers(time);
  if (time.node().empty()) members.erase(members.begin());
  return JsonObject(members);
}

std::string ProfileJson(const EntryMeasurement& entry) {
  if (!entry.has_profile()) return "null";
  const ProfileMessage& profile = entry.profile();
  return JsonObject(
      {{"batches", absl::StrCat(profile.batches())},
       {"microseconds_per_batch", JsonNumber(profile.batch_microseconds())},
       {"operation_microseconds_per_batch",
        JsonNumber(profile.operation_microseconds())},
       {"operations", JsonArrayOf(profile.type(), TimeJson)},
       {"costliest_nodes", JsonArrayOf(profile.node(), TimeJson)}});
}

std::string DifferenceJson(const EntryMeasurement& entry) {
  if (!entry.has_difference()) return "null";
  const OutputDifferenceMessage& difference = entry.difference();
  JsonMembers members = MessageMembers(difference);
  // It comes before the last two, which count excluded values; 0 / 0 is null.
  members.insert(members.end() - 2,
                 {"top_1_agreement",
                  JsonNumber(static_cast<double>(difference.agreeing_rows()) /
                             static_cast<double>(difference.rows()))});
  return JsonObject(members);
}

std::string GraphJson(const BenchmarkEntry& entry,
                      const EntryMeasurement& measurement,
                      const GraphFigures& figures) {
  return JsonObject({
      {"graph", JsonString(entry.model().path())},
      {"dataset", TextJson(entry.dataset_name())},
      {"streams", absl::StrCat(measurement.setting().streams())},
      {"threads", absl::StrCat(measurement.setting().threads())},
      {"records_per_second", JsonNumber(figures.records_per_second)},
      {"spread", JsonNumber(figures.spread)},
      {"milliseconds_per_batch", JsonNumber(figures.milliseconds_per_batch)},
      {"milliseconds_per_batch_p99",
       JsonNumber(figures.milliseconds_per_batch_p99)},
      {"cpu_microseconds_per_record",
       JsonNumber(figures.cpu_microseconds_per_record)},
      {"waited_share", JsonNumber(figures.waited_share.value_or(NAN))},
      {"speed_ratio", JsonNumber(figures.speed.median)},
      {"speed_ratio_interval_95", IntervalJson(figures.speed.interval)},
      {"cpu_time_ratio", JsonNumber(figures.cpu_time.median)},
      {"cpu_time_ratio_interval_95", IntervalJson(figures.cpu_time.interval)},
      {"verdict", TextJson(VerdictOf(figures.speed))},
      {"output_difference", DifferenceJson(measurement)},
      {"rounds", JsonArrayOf(measurement.round(), MessageJson)},
      {"profile", ProfileJson(measurement)},
  });
}

std::string TrialJson(const BenchmarkJob& job, const SettingTrial& trial) {
  return JsonObject(
      {{"graph", JsonString(job.entry(trial.entry()).model().path())},
       {"streams", absl::StrCat(trial.setting().streams())},
       {"threads", absl::StrCat(trial.setting().threads())},
       {"records_per_second", JsonNumber(trial.records_per_second())}});
}

std::string Dashes() { return absl::StrCat(std::string(57, '-'), "\n"); }

// Returns a number as Python prints it: "0.0", "6.612018585205078", "nan".
std::string PythonNumber(double number) {
  if (std::isnan(number)) return "nan";
  std::string text = JsonNumber(number);
  if (text.find_first_of(".en") == text.npos) text += ".0";
  return text;
}

std::string ModelLines(const std::string& name, int64_t batch_size,
                       const EntryMeasurement& entry) {
  const double seconds = entry.median_batch_seconds();
  const double throughput =
      seconds > 0 ? static_cast<double>(batch_size) / seconds : 0;
  return absl::StrFormat(
      "%sThe infrence results of %s with TF2.x API\n"
      "Batch size = %d\n"
      "Latency: %.3f ms\n"
      "Throughput: %.3f images/sec\n",
      Dashes(), name, batch_size, 1000 * seconds, throughput);
}

std::string Values(int64_t count) {
  return absl::StrCat(count, count == 1 ? " value is" : " values are");
}

std::string DifferenceLines(const OutputDifferenceMessage& difference) {
  std::string text =
      absl::StrCat(Dashes(), "MSE of the output logits between two models = ",
                   PythonNumber(difference.mse()),
                   "\nCosine similarity of the output logits = ",
                   PythonNumber(difference.cosine()), "\n");
  if (difference.rows() > 0) {
    absl::StrAppendFormat(
        &text, "Top-1 agreement = %.4f %% (%d of %d rows of the output)\n",
        100.0 * static_cast<double>(difference.agreeing_rows()) /
            static_cast<double>(difference.rows()),
        difference.agreeing_rows(), difference.rows());
  }
  absl::StrAppend(&text, "Largest difference of the output logits = ",
                  PythonNumber(difference.max()), "\n");
  if (difference.lost_values() > 0) {
    absl::StrAppend(&text, "warning: ", Values(difference.lost_values()),
                    " NaN or infinite in only one of the two models, or in "
                    "different ways, and in none of these figures\n");
  }
  if (difference.never_finite_values() > 0) {
    absl::StrAppend(&text,
                    "warning: ", Values(difference.never_finite_values()),
                    " finite in neither model, and in none of these figures\n");
  }
  return text;
}

// Returns the operation in a label such as
// "[mem 1KB] layer/MatMul = MatMul(a, b)", or "(other)" if it names none.
std::string OpOf(const NodeExecStats& node) {
  const std::string_view label = node.timeline_label();
  const std::string name = absl::StrCat(node.node_name(), " = ");
  const size_t found = label.find(name);
  std::string_view op;
  if (found != std::string_view::npos) op = label.substr(found + name.size());
  op = op.substr(0, op.find('('));
  return op.empty() ? "(other)" : std::string(op);
}

int64_t Nanoseconds(const NodeExecStats& node) {
  // Either all times are also given in nanoseconds, or none are.
  const int64_t nanoseconds =
      node.all_start_nanos() > 0
          ? node.op_end_rel_nanos() - node.op_start_rel_nanos()
          : 1000 * (node.op_end_rel_micros() - node.op_start_rel_micros());
  return std::max<int64_t>(nanoseconds, 0);
}

struct Cost {
  int64_t calls = 0;
  int64_t nanoseconds = 0;
};
// Keyed by operation and node; the node is empty in a type's key.
using Costs = std::map<std::pair<std::string, std::string>, Cost>;

// Appends the averages of up to `most` costliest, the costliest first.
void AppendCosts(const Costs& costs, size_t most, double batches,
                 google::protobuf::RepeatedPtrField<OperationTime>* times) {
  std::vector<std::pair<Costs::key_type, Cost>> sorted(costs.begin(),
                                                       costs.end());
  // A stable sort keeps equal ones in the order of their names.
  absl::c_stable_sort(sorted, [](const auto& a, const auto& b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  for (size_t i = 0; i < std::min(most, sorted.size()); ++i) {
    const auto& [name, cost] = sorted[i];
    OperationTime& time = *times->Add();
    time.set_op(name.first);
    time.set_node(name.second);
    time.set_calls(static_cast<double>(cost.calls) / batches);
    time.set_microseconds(1e-3 * static_cast<double>(cost.nanoseconds) /
                          batches);
  }
}

}  // namespace

ProfileMessage ProfileOf(const std::vector<tensorflow::StepStats>& batches,
                         size_t max_nodes) {
  Costs types, nodes;
  int64_t all_nanoseconds = 0;
  for (const tensorflow::StepStats& batch : batches) {
    for (const tensorflow::DeviceStepStats& device : batch.dev_stats()) {
      for (const NodeExecStats& node : device.node_stats()) {
        const std::string op = OpOf(node);
        const int64_t nanoseconds = Nanoseconds(node);
        for (Cost* cost : {&types[{op, ""}], &nodes[{op, node.node_name()}]}) {
          ++cost->calls;
          cost->nanoseconds += nanoseconds;
        }
        all_nanoseconds += nanoseconds;
      }
    }
  }
  const auto count = static_cast<double>(batches.size());
  ProfileMessage profile;
  profile.set_batches(static_cast<int64_t>(batches.size()));
  profile.set_operation_microseconds(
      1e-3 * static_cast<double>(all_nanoseconds) / count);
  AppendCosts(types, types.size(), count, profile.mutable_type());
  AppendCosts(nodes, max_nodes, count, profile.mutable_node());
  return profile;
}

std::vector<GraphFigures> FiguresOf(const BenchmarkResult& result) {
  std::vector<GraphFigures> all;
  for (const EntryMeasurement& entry : result.entry()) {
    GraphFigures figures;
    const std::vector<double> rates = OverRounds(entry, RateOf);
    figures.records_per_second = Median(rates);
    figures.spread = RelativeSpread(rates);
    figures.cpu_microseconds_per_record =
        Median(OverRounds(entry, CpuMicrosecondsPerRecord));
    figures.milliseconds_per_batch = 1000 * entry.median_batch_seconds();
    figures.milliseconds_per_batch_p99 = 1000 * entry.p99_batch_seconds();
    figures.waited_share = WaitedShare(entry);
    if (!all.empty()) {
      figures.speed = RatioOf(entry, result.entry(0), RateOf);
      figures.cpu_time =
          RatioOf(entry, result.entry(0), CpuMicrosecondsPerRecord);
    }
    all.push_back(figures);
  }
  return all;
}

std::string BenchmarkText(const BenchmarkJob& job,
                          const BenchmarkResult& result) {
  const std::vector<std::string> names = Names(job);
  const std::vector<GraphFigures> figures = FiguresOf(result);
  std::string text = absl::StrCat(
      CountText(job.rounds(), "round"), " of ", job.seconds(), " s per graph; ",
      CountText(result.records(), "preloaded record"), " in batches of ",
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
    graphs.push_back(GraphJson(job.entry(i), result.entry(i), figures[i]));
  }
  return JsonObject({{"batch_size", absl::StrCat(job.batch_size())},
                     {"preloaded_batches", absl::StrCat(result.batches())},
                     {"preloaded_records", absl::StrCat(result.records())},
                     {"synthetic_inputs",
                      JsonArrayOf(result.synthetic_input(), JsonString)},
                     {"token_input", JsonString(result.token_input())},
                     {"rounds", absl::StrCat(job.rounds())},
                     {"seconds_per_round", JsonNumber(job.seconds())},
                     {"cores", absl::StrCat(result.cores())},
                     {"trials", JsonArrayOf(result.trial(),
                                            [&](const SettingTrial& trial) {
                                              return TrialJson(job, trial);
                                            })},
                     {"graphs", JsonArray(graphs)}}) +
         "\n";
}

std::string PublishedBenchmarkText(const BenchmarkJob& job,
                                   const BenchmarkResult& result) {
  const int64_t batch_size = std::min(job.batch_size(), result.records());
  std::string text;
  for (int i = 0; i < result.entry_size(); ++i) {
    std::string name =
        absl::StrCat(i == 0 ? "original " : "converted ", job.published_name());
    if (i > 0 && result.entry_size() > 2) {
      absl::StrAppend(&name, " (", job.entry(i).model().path(), ")");
    }
    absl::StrAppend(&text,
                    ModelLines(Printable(name), batch_size, result.entry(i)));
  }
  for (int i = 1; i < result.entry_size(); ++i) {
    if (!result.entry(i).has_difference()) continue;
    absl::StrAppend(&text, DifferenceLines(result.entry(i).difference()));
  }
  if (!result.token_input().empty()) {
    absl::StrAppend(&text, "note: ", Printable(result.token_input()), "\n");
  }
  for (const std::string& input : result.synthetic_input()) {
    absl::StrAppend(&text, "note: made up ", Printable(input),
                    "; --dataset or --tokens runs real ones\n");
  }
  absl::StrAppend(&text,
                  "note: latency is the median time of a batch, throughput the "
                  "batch size divided by it; the published throughput left the "
                  "batch size out\n");
  return text;
}

}  // namespace requant
