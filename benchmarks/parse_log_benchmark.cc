// Compares our log parser with TensorFlow's own, which is part of its
// freeze_requantization_ranges: speed and peak memory on the same log, and
// whether both choose the same ranges. Every measurement runs in its own
// process.
//
//   bazel run //benchmarks:parse_log_benchmark

#include <gflags/gflags.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"
#include "benchmarks/frame.h"
#include "graph/const_node.h"
#include "logs_parser/log_parser.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/pipeline_parser.h"
#include "transforms/registry.h"
#include "transforms/transform.h"

DEFINE_int64(megabytes, 1000, "Size of the log, in millions of bytes.");
DEFINE_int32(repeats, 3, "Runs of each parser, in turn; the best one counts.");
DEFINE_string(child, "", "For the program's own use: ours or stock.");
DEFINE_string(log, "", "For the program's own use: the log.");

namespace requant {
namespace {

constexpr int kNodes = 40;
constexpr double kMinSpeedRatio = 8;
constexpr double kMaxMemoryRatio = 0.1;

// The chosen range by node, as text that is equal for equal floats.
using Choices = std::map<std::string, std::string>;

std::string RangeText(float min, float max) {
  return absl::StrFormat("%.9g %.9g", min, max);
}

std::string NodeName(int i) {
  return absl::StrFormat(
      "import/dnn/hiddenlayer_%d/MatMul_eightbit/"
      "requant_range_of_the_layer_%02d",
      i, i);
}

// Formats a float like Print: with six digits, or nine if six are not exact.
std::string FloatText(float value) {
  std::string text = absl::StrFormat("%.6g", value);
  float read_back = 0;
  if (absl::SimpleAtof(text, &read_back) && read_back == value) return text;
  return absl::StrFormat("%.9g", value);
}

std::string RandomLines(int64_t bytes, std::mt19937& random) {
  std::normal_distribution<float> min(-3, 0.2f), max(7, 0.3f);
  std::string lines;
  while (static_cast<int64_t>(lines.size()) < bytes) {
    for (int i = 0; i < kNodes; ++i) {
      absl::StrAppend(&lines, ";", NodeName(i), "__print__;__requant_min_max:[",
                      FloatText(min(random)), "][", FloatText(max(random)),
                      "]\n");
      if (random() % 20 != 0) continue;
      absl::StrAppend(&lines,
                      "2026-01-02 03:04:05.678901: I tensorflow/core/"
                      "platform/cpu_feature_guard.cc:210] step ",
                      random() % 100000, " done; batch of 1024\n");
    }
  }
  return lines;
}

absl::Status WriteLog(const std::string& path) {
  constexpr int64_t kChunk = 1000000;
  return WriteFileAtomically(path, [&](int fd) -> absl::Status {
    std::mt19937 random(1);
    for (int64_t i = 0; i < FLAGS_megabytes; ++i) {
      REQUANT_RETURN_IF_ERROR(WriteAll(fd, RandomLines(kChunk, random)));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Choices> ParseWithOurs(const std::string& log) {
  REQUANT_ASSIGN_OR_RETURN(const ParsedLogs logs, ParseLogFiles({log}));
  Choices choices;
  for (const auto& [key, entry] : logs.ranges.entries()) {
    const RangeChoice choice = ChooseRange(entry, {});
    choices[key.first] =
        RangeText(choice.min.value_or(NAN), choice.max.value_or(NAN));
  }
  return choices;
}

// TensorFlow's own transform and the arguments to call it with.
struct StockFreeze {
  const RegisteredTransform* transform = nullptr;
  TransformContext context;
};

absl::StatusOr<StockFreeze> FindStockFreeze(const std::string& log) {
  StockFreeze freeze;
  REQUANT_ASSIGN_OR_RETURN(TransformRegistry * registry,
                           TransformRegistry::Get());
  REQUANT_ASSIGN_OR_RETURN(
      const auto calls,
      ParsePipeline(absl::StrCat("stock:freeze_requantization_ranges("
                                 "min_max_log_file=\"",
                                 log, "\")")));
  REQUANT_ASSIGN_OR_RETURN(freeze.transform, registry->Find(calls[0].name));
  REQUANT_ASSIGN_OR_RETURN(freeze.context.parameters,
                           ResolveParameters(freeze.transform->spec, calls[0]));
  return freeze;
}

absl::StatusOr<Choices> ParseWithStock(StockFreeze freeze) {
  tensorflow::GraphDef graph;
  for (int i = 0; i < kNodes; ++i) {
    tensorflow::NodeDef* node = graph.add_node();
    node->set_name(NodeName(i));
    node->set_op("RequantizationRange");
  }
  REQUANT_RETURN_IF_ERROR(freeze.transform->run(freeze.context, &graph));
  std::map<std::string, float> constants;
  for (const tensorflow::NodeDef& node : graph.node()) {
    constants[node.name()] = ScalarConstValue(node).value_or(NAN);
  }
  Choices choices;
  for (int i = 0; i < kNodes; ++i) {
    choices[NodeName(i)] = RangeText(constants[NodeName(i) + "/frozen_min"],
                                     constants[NodeName(i) + "/frozen_max"]);
  }
  return choices;
}

int64_t PeakMemory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * int64_t{1024};
}

// Runs in a child: parses the log and reports "<seconds> <peak bytes> <peak
// bytes before>" and then the choices.
absl::Status RunAsChild() {
  const bool ours = FLAGS_child == "ours";
  StockFreeze freeze;
  if (!ours) {
    REQUANT_ASSIGN_OR_RETURN(freeze, FindStockFreeze(FLAGS_log));
  }
  const int64_t before = PeakMemory();
  const auto start = std::chrono::steady_clock::now();
  REQUANT_ASSIGN_OR_RETURN(const Choices choices, ours
                                                      ? ParseWithOurs(FLAGS_log)
                                                      : ParseWithStock(freeze));
  ReportToParent(
      absl::StrFormat("%.6f %d %d", SecondsSince(start), PeakMemory(), before));
  for (const auto& [node, range] : choices) {
    ReportToParent(absl::StrCat(node, " ", range));
  }
  return absl::OkStatus();
}

struct Measurement {
  double seconds = 0;
  double peak = 0;
  // The peak memory beyond what the program and its libraries took before.
  double increase = 0;
  std::vector<std::string> choices;
};

absl::StatusOr<Measurement> Measure(const std::string& parser,
                                    const std::string& log) {
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<std::string> lines,
      RunSelf({absl::StrCat("--child=", parser), absl::StrCat("--log=", log)}));
  const std::vector<std::string> fields = absl::StrSplit(lines[0], ' ');
  Measurement measurement;
  double before = 0;
  if (fields.size() != 3 ||
      !absl::SimpleAtod(fields[0], &measurement.seconds) ||
      !absl::SimpleAtod(fields[1], &measurement.peak) ||
      !absl::SimpleAtod(fields[2], &before)) {
    return absl::InternalError(absl::StrCat("unexpected report: ", lines[0]));
  }
  measurement.increase = measurement.peak - before;
  measurement.choices.assign(lines.begin() + 1, lines.end());
  return measurement;
}

void KeepBest(Measurement measured, std::optional<Measurement>* best) {
  if (!best->has_value() || measured.seconds < (*best)->seconds) {
    *best = std::move(measured);
  }
}

void Print(std::string_view parser, const Measurement& measurement,
           double bytes) {
  std::printf(
      "%-11s %8.2f s %8.0f MB/s   peak memory %6.0f MB, %5.0f MB of it to "
      "parse: %.3f bytes per byte of log\n",
      std::string(parser).c_str(), measurement.seconds,
      bytes / measurement.seconds / 1e6, measurement.peak / 1e6,
      measurement.increase / 1e6, measurement.increase / bytes);
}

absl::Status Compare(const std::string& log) {
  REQUANT_RETURN_IF_ERROR(WriteLog(log));
  struct stat info;
  if (stat(log.c_str(), &info) != 0) return absl::NotFoundError(log);
  std::printf("log: %lld bytes, %d nodes; best of %d runs each\n",
              static_cast<long long>(info.st_size), kNodes, FLAGS_repeats);
  std::optional<Measurement> ours, stock;
  for (int i = 0; i < FLAGS_repeats; ++i) {
    REQUANT_ASSIGN_OR_RETURN(Measurement our_run, Measure("ours", log));
    REQUANT_ASSIGN_OR_RETURN(Measurement stock_run, Measure("stock", log));
    KeepBest(std::move(our_run), &ours);
    KeepBest(std::move(stock_run), &stock);
  }
  Print("requant", *ours, info.st_size);
  Print("TensorFlow", *stock, info.st_size);
  const double speed = stock->seconds / ours->seconds;
  const double memory = ours->increase / stock->increase;
  std::printf("speed %.1f times TensorFlow's (target: at least %g): %s\n",
              speed, kMinSpeedRatio, MetText(speed >= kMinSpeedRatio));
  std::printf("memory %.3f of TensorFlow's (target: under %g): %s\n", memory,
              kMaxMemoryRatio, MetText(memory < kMaxMemoryRatio));
  if (ours->choices != stock->choices) {
    return absl::InternalError("the two chose different ranges");
  }
  std::printf("ranges chosen: the same for all %zu nodes\n",
              ours->choices.size());
  return absl::OkStatus();
}

absl::Status Run() {
  if (!FLAGS_child.empty()) return RunAsChild();
  if (FLAGS_megabytes < 1 || FLAGS_repeats < 1) {
    return absl::InvalidArgumentError(
        "--megabytes and --repeats are at least 1");
  }
  return WithFolder([](const std::string& folder) {
    return Compare(folder + "/min_max.log");
  });
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::BenchmarkMain(argc, argv,
                                {"parse_log_benchmark",
                                 "Compares our log parser with TensorFlow's "
                                 "freeze_requantization_ranges.",
                                 "parse_log_benchmark --megabytes=1000",
                                 {__FILE__},
                                 ""},
                                requant::Run);
}
