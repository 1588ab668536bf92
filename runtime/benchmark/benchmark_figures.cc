#include "runtime/benchmark/benchmark_figures.h"

#include <functional>
#include <optional>
#include <vector>

#include "runtime/session/worker.pb.h"
#include "runtime/statistics/order_statistics.h"

namespace requant {
namespace {

using Figure = std::function<double(const RoundMeasurement&)>;

double RecordsPerSecond(const RoundMeasurement& round) {
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

}  // namespace

std::vector<GraphFigures> FiguresOf(const BenchmarkResult& result) {
  std::vector<GraphFigures> all;
  for (const EntryMeasurement& entry : result.entry()) {
    GraphFigures figures;
    const std::vector<double> rates = OverRounds(entry, RecordsPerSecond);
    figures.records_per_second = Median(rates);
    figures.spread = RelativeSpread(rates);
    figures.cpu_microseconds_per_record =
        Median(OverRounds(entry, CpuMicrosecondsPerRecord));
    figures.milliseconds_per_batch = 1000 * entry.median_batch_seconds();
    figures.milliseconds_per_batch_p99 = 1000 * entry.p99_batch_seconds();
    figures.waited_share = WaitedShare(entry);
    if (!all.empty()) {
      figures.speed = RatioOf(entry, result.entry(0), RecordsPerSecond);
      figures.cpu_time =
          RatioOf(entry, result.entry(0), CpuMicrosecondsPerRecord);
    }
    all.push_back(figures);
  }
  return all;
}

SpeedVerdict JudgeSpeed(const PairedRatio& speed) {
  if (!speed.interval.has_value()) return SpeedVerdict::kUnknown;
  if (speed.interval->low() > 1) return SpeedVerdict::kFaster;
  if (speed.interval->high() < 1) return SpeedVerdict::kSlower;
  return SpeedVerdict::kNoDifference;
}

}  // namespace requant
