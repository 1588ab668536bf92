#include "benchmarks/int8_figures.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/frame.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {
namespace {

using Row = std::vector<std::string>;

constexpr char kUnknown[] = "-";

// The targets of our graph, by the CPU's arithmetic, in the order of Int8Isa.
struct Targets {
  const char* isa;
  double mean_change;
  double agreement;
  double speed;
};

constexpr Targets kTargets[] = {{"AVX512 with VNNI", .0012, .9980, 3.5},
                                {"AVX2", .0016, .9970, 1.9},
                                {"AVX512 without VNNI", .0016, .9970, 1.6},
                                {"AVX2-VNNI", .0012, .9980, 3.6}};

const Targets& TargetsFor(Int8Isa isa) {
  return kTargets[static_cast<int>(isa)];
}

constexpr double kMaxAccuracyChange = 0.03;
constexpr double kMinAccuracyBound = -0.1;
constexpr double kOursToPeer = 1.15;
constexpr double kChainShare = 0.75;
constexpr double kSizeRatio = 0.27;
constexpr double kQuantizeSeconds = 2.5;
// On an idle machine threads wait for less than one percent of their time.
constexpr double kNoticeableWait = 0.05;

// Formats rows in columns two spaces apart, each as wide as its widest cell.
std::string Table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppendFormat(&line, "%-*s  ", widths[i], row[i]);
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

// Judges a ratio by its interval if there are enough rounds for one.
std::string MetBy(const PairedRatio& ratio, double at_least) {
  if (!ratio.interval.has_value()) return MetText(ratio.median >= at_least);
  const Verdict verdict = JudgeAtLeast(*ratio.interval, at_least);
  return verdict == Verdict::kInconclusive ? "unclear"
                                           : MetText(verdict == Verdict::kPass);
}

std::string RatioText(const PairedRatio& ratio) {
  std::string text = absl::StrFormat("%.2f", ratio.median);
  if (ratio.interval.has_value()) {
    absl::StrAppendFormat(&text, " (%.2f-%.2f)", ratio.interval->low(),
                          ratio.interval->high());
  }
  return text;
}

// Returns the entry of a graph's own matmul chain, which follows it.
int ChainOf(int entry) { return entry + 1; }

// The table under construction. The peer's cells come from the same functions
// as ours.
class FiguresTable {
 public:
  explicit FiguresTable(const Int8Figures& figures)
      : figures_(figures), targets_(TargetsFor(figures.isa)) {
    rows_.push_back(
        {"figure", "original*", "peer", "ours", "target for ours", ""});
  }

  std::string Text() {
    AddAccuracy();
    AddOutputs();
    for (const SpeedRun& run : figures_.speed) AddSpeed(run);
    for (const SpeedRun& run : figures_.speed) AddChainShare(run);
    AddChainShareByOperations();
    AddCosts();
    return Table(rows_);
  }

 private:
  template <typename CellOf>
  void Add(const std::string& figure, const std::string& original,
           const CellOf& cell_of, const std::string& target,
           const std::string& verdict) {
    rows_.push_back(
        {figure, original,
         figures_.peer.has_value() ? cell_of(*figures_.peer, kPeer) : kUnknown,
         cell_of(figures_.ours, kOurs), target, verdict});
  }

  void AddAccuracy() {
    const auto cell = [](const Int8Graph& graph, int) -> std::string {
      const AccuracyDifference& accuracy = graph.comparison.accuracy();
      if (!graph.comparison.has_accuracy()) return kUnknown;
      return absl::StrFormat("%+.3f (%+.3f to %+.3f)", accuracy.points(),
                             accuracy.interval().low(),
                             accuracy.interval().high());
    };
    const Comparison& ours = figures_.ours.comparison;
    Add("accuracy change, points (95 %)", "-0.016", cell,
        absl::StrFormat("within %.2f, interval above %g", kMaxAccuracyChange,
                        kMinAccuracyBound),
        MetText(ours.has_accuracy() &&
                std::abs(ours.accuracy().points()) <= kMaxAccuracyChange &&
                ours.accuracy().interval().low() > kMinAccuracyBound));
  }

  void AddOutputs() {
    const auto change = [](const Int8Graph& graph) {
      return graph.comparison.has_class_1_change()
                 ? std::optional(graph.comparison.class_1_change().mean())
                 : std::nullopt;
    };
    const auto change_cell = [&](const Int8Graph& graph, int) {
      const std::optional<double> mean = change(graph);
      return mean.has_value() ? absl::StrFormat("%.5f", *mean) : kUnknown;
    };
    Add("mean |output change|", ".0049", change_cell,
        absl::StrFormat("<= %.4f", targets_.mean_change),
        MetText(change(figures_.ours).value_or(1) <= targets_.mean_change));
    const auto agreement_cell = [](const Int8Graph& graph, int) {
      return graph.comparison.has_agreement()
                 ? absl::StrFormat("%.4f", graph.comparison.agreement().share())
                 : kUnknown;
    };
    const Comparison& ours = figures_.ours.comparison;
    Add("agreement with fp32", kUnknown, agreement_cell,
        absl::StrFormat(">= %.4f", targets_.agreement),
        MetText(ours.has_agreement() &&
                ours.agreement().share() >= targets_.agreement));
  }

  // Adds a line on the speed of each int8 graph relative to the entry that
  // `reference_of` returns for it.
  template <typename ReferenceOf>
  void AddRatio(const std::string& figure, const std::string& original,
                const BenchmarkResult& result, const ReferenceOf& reference_of,
                double target) {
    const auto ratio = [&](int entry) {
      return SpeedRatio(result, entry, reference_of(entry));
    };
    Add(
        figure, original,
        [&](const Int8Graph&, int entry) { return RatioText(ratio(entry)); },
        absl::StrFormat(">= %.2f", target), MetBy(ratio(kOurs), target));
  }

  void AddSpeed(const SpeedRun& run) {
    AddRatio(
        absl::StrCat("speed / fp32, ", run.setting),
        figures_.isa == Int8Isa::kVnni ? "2.1-2.6" : kUnknown, run.result,
        [](int) { return kFp32; }, targets_.speed);
    if (!figures_.peer.has_value()) return;
    AddRatio(
        absl::StrCat("speed / peer, ", run.setting), "", run.result,
        [](int) { return kPeer; }, kOursToPeer);
  }

  void AddChainShare(const SpeedRun& run) {
    AddRatio(absl::StrCat("share of its own chain, ", run.setting), "",
             run.result, ChainOf, kChainShare);
    if (!figures_.peer.has_value()) return;
    AddRatio(
        absl::StrCat("share of the peer's chain, ", run.setting), "",
        run.result, [](int) { return kPeerChain; }, kChainShare);
  }

  // Compares the time in operations, ignoring other work of the threads.
  void AddChainShareByOperations() {
    const auto share = [&](int entry) {
      const auto time = [&](int which) {
        return figures_.one_core.entry(which)
            .profile()
            .operation_microseconds();
      };
      return time(ChainOf(entry)) / time(entry);
    };
    Add(
        "share of its own chain, by operation time on one core", "",
        [&](const Int8Graph&, int entry) {
          return absl::StrFormat("%.2f", share(entry));
        },
        absl::StrFormat(">= %.2f", kChainShare),
        MetText(share(kOurs) >= kChainShare));
  }

  void AddCosts() {
    Add(
        "file size / fp32", ".52",
        [](const Int8Graph& graph, int) {
          return absl::StrFormat("%.3f", graph.size_ratio);
        },
        absl::StrFormat("<= %.2f", kSizeRatio),
        MetText(figures_.ours.size_ratio <= kSizeRatio));
    const auto& ours = figures_.ours.quantize_seconds;
    if (!ours.has_value()) return;
    Add(
        "fp32 to int8, seconds", "minutes",
        [](const Int8Graph& graph, int) {
          return graph.quantize_seconds.has_value()
                     ? absl::StrFormat("%.2f", *graph.quantize_seconds)
                     : kUnknown;
        },
        absl::StrFormat("<= %.1f", kQuantizeSeconds),
        MetText(*ours <= kQuantizeSeconds));
  }

  const Int8Figures& figures_;
  const Targets targets_;
  std::vector<Row> rows_;
};

// Returns every graph's rates in every setting, and CPU time, which stays
// comparable when others use the machine.
std::string RatesText(const Int8Figures& figures) {
  static constexpr const char* kNames[] = {"fp32", "fp32's matmul chain",
                                           "ours", "ours' matmul chain",
                                           "peer", "peer's matmul chain"};
  std::vector<Row> rows = {{"records/s", "one core"}};
  for (const SpeedRun& run : figures.speed) rows[0].push_back(run.setting);
  rows[0].push_back("CPU us/record on one core");
  const std::vector<GraphFigures> one_core = FiguresOf(figures.one_core);
  const auto rate = [](const GraphFigures& graph) {
    return absl::StrFormat("%.0f", graph.records_per_second);
  };
  for (size_t entry = 0; entry < one_core.size(); ++entry) {
    Row row = {kNames[entry], rate(one_core[entry])};
    for (const SpeedRun& run : figures.speed) {
      row.push_back(rate(FiguresOf(run.result)[entry]));
    }
    row.push_back(
        absl::StrFormat("%.3f", one_core[entry].cpu_microseconds_per_record));
    rows.push_back(std::move(row));
  }
  return Table(rows);
}

// Returns a warning if other work kept the machine busy, or "".
std::string BusyWarning(const Int8Figures& figures) {
  double most = 0;
  for (const SpeedRun& run : figures.speed) {
    for (const GraphFigures& graph : FiguresOf(run.result)) {
      most = std::max(most, graph.waited_share.value_or(0));
    }
  }
  if (most < kNoticeableWait) return "";
  return absl::StrFormat(
      "\nwarning: for up to %.0f %% of their time the graphs waited for a "
      "core: measure again on an idle machine\n",
      100 * most);
}

}  // namespace

Int8Isa EffectiveIsa(const CpuFeatures& features, const std::string& cap) {
  const std::string upper = absl::AsciiStrToUpper(cap);
  const bool is_capped = !upper.empty() && upper != "DEFAULT" && upper != "ALL";
  const bool allows_512 = !is_capped || absl::StartsWith(upper, "AVX512") ||
                          absl::StartsWith(upper, "AVX10");
  // AVX512_CORE is the only AVX-512 cap without VNNI.
  const bool allows_512_vnni = allows_512 && upper != "AVX512_CORE";
  if (allows_512_vnni && features.avx512_vnni.works) return Int8Isa::kVnni;
  if (allows_512 && features.avx512.works) return Int8Isa::kAvx512;
  // oneDNN's AVX512 sets do not include AVX2-VNNI.
  const bool allows_vnni = !is_capped || absl::StartsWith(upper, "AVX2_VNNI");
  return allows_vnni && features.avx_vnni.works ? Int8Isa::kAvx2Vnni
                                                : Int8Isa::kAvx2;
}

std::string IsaName(Int8Isa isa) { return TargetsFor(isa).isa; }

PairedRatio SpeedRatio(const BenchmarkResult& result, int entry,
                       int reference) {
  BenchmarkResult pair;
  *pair.add_entry() = result.entry(reference);
  *pair.add_entry() = result.entry(entry);
  return FiguresOf(pair)[1].speed;
}

std::string FiguresText(const Int8Figures& figures) {
  return absl::StrCat(
      FiguresTable(figures).Text(),
      "* the published recipe by its own code on TensorFlow 2.12, measured "
      "earlier: today's TensorFlow gives garbage for it\n\n",
      RatesText(figures), BusyWarning(figures));
}

}  // namespace requant
