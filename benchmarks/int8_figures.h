#ifndef REQUANT_BENCHMARKS_INT8_FIGURES_H_
#define REQUANT_BENCHMARKS_INT8_FIGURES_H_

// The figures by which int8 graphs of the Wide & Deep model are judged, and
// their table. Nothing is measured here.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process/machine.h"
#include "runtime/benchmark/benchmark_report.h"
#include "runtime/evaluation.pb.h"
#include "runtime/session/job.pb.h"

namespace requant {

// What int8 arithmetic oneDNN may use; the targets depend on it.
enum class Int8Isa { kVnni, kAvx2, kAvx512, kAvx2Vnni };

// Returns what may be used under `cap`, which is ONEDNN_MAX_CPU_ISA or "".
Int8Isa EffectiveIsa(const CpuFeatures& features, const std::string& cap);
std::string IsaName(Int8Isa isa);

// An int8 graph beside the fp32 graph that it was made from.
struct Int8Graph {
  Comparison comparison;
  double size_ratio = 0;
  // From the fp32 graph to this one; unset when not measured.
  std::optional<double> quantize_seconds;
};

// The graphs of a speed run, in this order. Without a peer the last two are
// missing.
enum SpeedEntry { kFp32, kFp32Chain, kOurs, kOursChain, kPeer, kPeerChain };

struct SpeedRun {
  // "1 stream x 2 threads", "each at its own best".
  std::string setting;
  BenchmarkResult result;
};

struct Int8Figures {
  Int8Isa isa = Int8Isa::kVnni;
  Int8Graph ours;
  std::optional<Int8Graph> peer;
  std::vector<SpeedRun> speed;
  // One stream on one core, with profiles of the operations.
  BenchmarkResult one_core;
};

// Returns the speed of `entry` over that of `reference` in the same rounds.
PairedRatio SpeedRatio(const BenchmarkResult& result, int entry, int reference);

// Returns the table: a line per figure with what the original recipe reached
// (as once measured, not in this run), the peer, ours, the target and whether
// ours meets it, which is unclear when the target is inside a speed's interval;
// then a table of the rates of all graphs.
std::string FiguresText(const Int8Figures& figures);

}  // namespace requant

#endif  // REQUANT_BENCHMARKS_INT8_FIGURES_H_
