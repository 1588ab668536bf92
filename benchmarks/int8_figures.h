#ifndef REQUANT_BENCHMARKS_INT8_FIGURES_H_
#define REQUANT_BENCHMARKS_INT8_FIGURES_H_

// Tabulates the figures by which int8 graphs of the Wide & Deep model are
// judged. Nothing is measured here.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process/machine.h"
#include "runtime/benchmark/benchmark_report.h"
#include "runtime/evaluation.pb.h"
#include "runtime/session/job.pb.h"

namespace requant {

// The int8 arithmetic that oneDNN may use, which determines the targets.
enum class Int8Isa { kVnni, kAvx2, kAvx512, kAvx2Vnni };

// Returns what ONEDNN_MAX_CPU_ISA=`cap` allows; "" means that there is no cap.
Int8Isa EffectiveIsa(const CpuFeatures& features, const std::string& cap);
std::string IsaName(Int8Isa isa);

// An int8 graph compared with the fp32 graph that it was made from.
struct Int8Graph {
  Comparison comparison;
  double size_ratio = 0;
  // The time to make it from the fp32 graph; unset if not measured.
  std::optional<double> quantize_seconds;
};

// The graphs of a speed run, in this order. Without a peer the last two are
// missing.
enum SpeedEntry { kFp32, kFp32Chain, kOurs, kOursChain, kPeer, kPeerChain };

struct SpeedRun {
  // The setting, such as "1 stream x 2 threads" or "each at its own best".
  std::string setting;
  BenchmarkResult result;
};

struct Int8Figures {
  Int8Isa isa = Int8Isa::kVnni;
  Int8Graph ours;
  std::optional<Int8Graph> peer;
  std::vector<SpeedRun> speed;
  // The result of one stream on one core, with profiles of the operations.
  BenchmarkResult one_core;
};

// Returns the speed of `entry` relative to `reference` in the same rounds.
PairedRatio SpeedRatio(const BenchmarkResult& result, int entry, int reference);

// Returns the table: for each figure, the original recipe's (as once measured,
// not in this run), the peer's, ours, the target and whether we meet it, which
// is unclear when the target is inside a speed's interval; then a table of the
// rates of all graphs.
std::string FiguresText(const Int8Figures& figures);

}  // namespace requant

#endif  // REQUANT_BENCHMARKS_INT8_FIGURES_H_
