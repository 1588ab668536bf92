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
#include "base/terminal/terminal_text.h"
#include "benchmarks/frame.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {
namespace {

constexpr char kUnknown[] = "-";

// What ours is to reach, by the arithmetic of the CPU, in the order of Int8Isa.
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
constexpr double kMatMulShare = 0.75;
constexpr double kSizeRatio = 0.27;
constexpr double kQuantizeSeconds = 2.5;
// On an idle machine threads wait for less than one percent of their time.
constexpr double kNoticeableWait = 0.05;

// Judges a ratio by its interval where there are rounds enough for one.
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

// Adds a line of texts to a table.
void AddLine(const std::vector<std::string>& line, Table* table) {
  std::vector<StyledText> cells;
  for (const std::string& text : line) cells.push_back({text});
  table->AddRow(std::move(cells));
}

Table TableOf(const std::vector<std::string>& titles) {
  Table table;
  for (const std::string& title : titles) {
    table.AddColumn(title, Table::kAlways, /*left=*/true);
  }
  return table;
}

// Returns which part of the time of all operations on one core is in matmuls.
double MatMulShare(const ProfileMessage& profile) {
  double microseconds = 0;
  for (const OperationTime& type : profile.type()) {
    if (absl::StrContains(type.op(), "MatMul")) {
      microseconds += type.microseconds();
    }
  }
  return microseconds / profile.operation_microseconds();
}

// The table under construction. Cells of the peer come from the same function
// as ours.
class FiguresTable {
 public:
  explicit FiguresTable(const Int8Figures& figures)
      : figures_(figures), targets_(TargetsFor(figures.isa)) {}

  std::string Text() {
    AddAccuracy();
    AddOutputs();
    for (const SpeedRun& run : figures_.speed) AddSpeed(run);
    AddMatMulShare();
    AddCosts();
    return table_.Text(/*width=*/0, /*color=*/false);
  }

 private:
  template <typename CellOf>
  void Add(const std::string& figure, const std::string& original,
           const CellOf& cell_of, const std::string& target,
           const std::string& verdict) {
    AddLine(
        {figure, original,
         figures_.peer.has_value() ? cell_of(*figures_.peer, kPeer) : kUnknown,
         cell_of(figures_.ours, kOurs), target, verdict},
        &table_);
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

  // A line on the speed of each int8 graph against that of `reference`.
  void AddRatio(const std::string& figure, const std::string& original,
                const SpeedRun& run, SpeedEntry reference, double target) {
    const auto ratio = [&](int entry) {
      return SpeedRatio(run.result, entry, reference);
    };
    Add(
        absl::StrCat(figure, ", ", run.setting), original,
        [&](const Int8Graph&, int entry) { return RatioText(ratio(entry)); },
        absl::StrFormat(">= %.2f", target), MetBy(ratio(kOurs), target));
  }

  void AddSpeed(const SpeedRun& run) {
    AddRatio("speed / fp32",
             figures_.isa == Int8Isa::kVnni ? "2.1-2.6" : kUnknown, run, kFp32,
             targets_.speed);
    if (!figures_.peer.has_value()) return;
    AddRatio("speed / peer", "", run, kPeer, kOursToPeer);
  }

  // Where time is spent, whatever the threads do beside operations.
  void AddMatMulShare() {
    const auto share = [&](int entry) {
      return MatMulShare(figures_.one_core.entry(entry).profile());
    };
    Add(
        "matmuls' share of operation time on one core", "",
        [&](const Int8Graph&, int entry) {
          return absl::StrFormat("%.2f", share(entry));
        },
        absl::StrFormat(">= %.2f", kMatMulShare),
        MetText(share(kOurs) >= kMatMulShare));
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
  Table table_ = TableOf(
      {"figure", "original*", "peer", "ours", "target for ours", "verdict"});
};

// Rates of every graph in every setting, and CPU time, which stays comparable
// when others use the machine.
std::string RatesText(const Int8Figures& figures) {
  std::vector<std::string> titles = {"records/s", "one core"};
  for (const SpeedRun& run : figures.speed) titles.push_back(run.setting);
  titles.push_back("CPU us/record on one core");
  Table table = TableOf(titles);
  const std::vector<GraphFigures> one_core = FiguresOf(figures.one_core);
  const auto rate = [](const GraphFigures& graph) {
    return absl::StrFormat("%.0f", graph.records_per_second);
  };
  constexpr const char* kNames[] = {"fp32", "ours", "peer"};
  for (size_t entry = 0; entry < one_core.size(); ++entry) {
    std::vector<std::string> line = {kNames[entry], rate(one_core[entry])};
    for (const SpeedRun& run : figures.speed) {
      line.push_back(rate(FiguresOf(run.result)[entry]));
    }
    line.push_back(
        absl::StrFormat("%.3f", one_core[entry].cpu_microseconds_per_record));
    AddLine(line, &table);
  }
  return table.Text(/*width=*/0, /*color=*/false);
}

// Returns a warning if the machine was not idle beside the graphs, or "".
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
