#include "workflows/commands/doctor.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/message_text.h"
#include "base/process/machine.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/terminal/terminal_text.h"
#include "base/terminal_guard.h"
#include "base/text/printable.h"
#include "runtime/session/tensorflow_check.h"
#include "workflows/commands/commands.h"

namespace requant {
namespace {

constexpr char kDoctorProgram[] = "requant doctor";

constexpr char kNoPalettes[] =
    "the virtual machine hides the tile palettes (CPUID leaf 0x1D)";

constexpr int64_t kGiB = int64_t{1} << 30;

// TensorFlow's library, a small model and a batch fit; a real model may not.
constexpr int64_t kLittleMemory = 2 * kGiB;
// A run keeps about fifteen graphs and logs of the model.
constexpr int64_t kLittleDisk = 1 * kGiB;

Check Ok(std::string name, std::string found) {
  return {std::move(name), CheckStatus::kOk, std::move(found), ""};
}

Check Warning(std::string name, std::string found, std::string advice) {
  return {std::move(name), CheckStatus::kWarning, std::move(found),
          std::move(advice)};
}

Check Error(std::string name, std::string found, std::string advice) {
  return {std::move(name), CheckStatus::kError, std::move(found),
          std::move(advice)};
}

std::string Gibibytes(int64_t bytes) {
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / kGiB);
}

Check CheckModel(const CpuFeatures& features) {
  if (features.vendor.empty()) {
    return Warning("cpu", "not an x86-64 CPU",
                   "run on x86-64: TensorFlow's int8 kernels are for it alone");
  }
  return Ok("cpu", features.model.empty() ? features.vendor
                                          : absl::StrCat(features.model, " (",
                                                         features.vendor, ")"));
}

Check CheckSet(std::string name, const InstructionSet& set,
               std::string failure =
                   "advertised, but failed when tried in a child process") {
  if (set.works) return Ok(std::move(name), "works");
  if (!set.advertised) return Ok(std::move(name), "not on this CPU");
  return Warning(
      std::move(name), std::move(failure),
      "nothing for requant, which keeps oneDNN away from it; set the "
      "variable of onednn_cap for programs of your own");
}

Check CheckInt8Target(const CpuFeatures& features) {
  if (QuantizationTarget(features) == "vnni") {
    return Ok("int8",
              "sums of products are exact (VNNI or AMX): quantize with "
              "target=vnni for CPUs like this one, or target=any, the default, "
              "for all");
  }
  return Ok("int8",
            "no VNNI: sums of two products saturate in int16 where both "
            "weights are large; quantize with target=any, the default, or "
            "target=avx2, never target=vnni");
}

Check CheckLoaded(const TensorFlowProbe& probe, const std::string& built_for) {
  if (probe.version.empty()) {
    return Error("tensorflow",
                 absl::StrCat("the library does not load: ", probe.failure),
                 "run ./requant setup to install it again");
  }
  if (probe.version != built_for) {
    return Error(
        "tensorflow",
        absl::StrCat("version ", probe.version,
                     " loads, but this program was built for ", built_for),
        "run ./requant setup and ./requant build");
  }
  return Ok("tensorflow", absl::StrCat("version ", probe.version, " loads"));
}

Check CheckInt8Layer(const TensorFlowProbe& probe,
                     const CpuFeatures& features) {
  constexpr char kName[] = "int8_matmul";
  if (probe.one_dnn_is_off) {
    return Error(
        kName,
        "TF_ENABLE_ONEDNN_OPTS=0 in the environment turns TensorFlow's "
        "int8 kernels off",
        "unset it");
  }
  if (probe.int8 == TensorFlowProbe::kDidNotRun) {
    return Error(
        kName, absl::StrCat("a quantized layer does not run: ", probe.failure),
        "set ONEDNN_MAX_CPU_ISA=AVX2 and try again; if that helps, "
        "keep it and report this CPU");
  }
  const bool promised = QuantizationTarget(features) == "vnni";
  if (probe.int8 == TensorFlowProbe::kExact) {
    return Ok(kName, "a quantized layer runs, sums are exact with any weights");
  }
  if (promised) {
    return Warning(
        kName,
        "a quantized layer runs, but its sums saturate although this "
        "CPU has VNNI",
        "unset ONEDNN_MAX_CPU_ISA if it is set, else quantize with "
        "target=any");
  }
  return Ok(kName,
            "a quantized layer runs; as expected without VNNI, sums saturate "
            "unless weights are quantized for target=any or avx2");
}

constexpr const char* kStatusWords[] = {"ok", "warning", "error"};
constexpr Style kStatusStyles[] = {Style::kGood, Style::kDoubtful, Style::kBad};

int Count(const std::vector<Check>& checks, CheckStatus status) {
  return std::count_if(
      checks.begin(), checks.end(),
      [status](const Check& check) { return check.status == status; });
}

// The library's 788 MB may have to come from a slow disk.
constexpr double kTensorFlowSeconds = 120;
// Without a limit, a client would wait forever for an engine that hangs.
constexpr double kContainerSeconds = 5;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status InterruptedError() { return absl::CancelledError("interrupted"); }

void TakeReport(std::string_view line, TensorFlowProbe* probe) {
  if (absl::ConsumePrefix(&line, "version ")) {
    probe->version = std::string(line);
  } else if (absl::ConsumePrefix(&line, "int8 ")) {
    probe->int8 = line == "exact" ? TensorFlowProbe::kExact
                                  : TensorFlowProbe::kSaturating;
  } else if (absl::ConsumePrefix(&line, "failure ")) {
    probe->failure = std::string(line);
  }
}

// Runs int8 layers in a child, with or without requant's own environment.
absl::StatusOr<TensorFlowProbe> ProbeTensorFlow(bool stock) {
  TensorFlowProbe probe;
  const std::string one_dnn = Environment("TF_ENABLE_ONEDNN_OPTS");
  probe.one_dnn_is_off = one_dnn == "0" || one_dnn == "false";
  REQUANT_ASSIGN_OR_RETURN(const std::string self, OwnPath());
  ChildOptions options;
  options.argv = {self, kTensorFlowCheckCommand};
  options.timeout_seconds = kTensorFlowSeconds;
  options.on_report = [&](std::string_view line) { TakeReport(line, &probe); };
  // This report leaves out TensorFlow's notices; its errors become failures.
  options.on_stderr = [](std::string_view) {};
  options.on_stdout = [](std::string_view) {};
  const auto start_over = [&](const std::string&, const ChildResult&) {
    probe.version.clear();
  };
  REQUANT_ASSIGN_OR_RETURN(
      const ChildResult result,
      stock ? RunChild(options) : RunTensorFlowChild(options, start_over));
  if (result.interrupted_by != 0) return InterruptedError();
  if (probe.failure.empty()) {
    probe.failure = absl::StrCat("the process ", DescribeEnd(result, options));
  }
  return probe;
}

std::string FindDocker() {
  const std::string path = Environment("PATH");
  for (std::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    std::string program = absl::StrCat(folder, "/docker");
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

// Asks Docker's client. The result is never an error, because only container
// sessions need an engine.
absl::StatusOr<Check> CheckDocker() {
  const std::string program = FindDocker();
  if (program.empty()) {
    return Warning(
        "docker", "not installed",
        "install Docker for container sessions; nothing else needs it");
  }
  std::string version, failure;
  ChildOptions options;
  options.argv = {program, "version", "--format", "{{.Server.Version}}"};
  options.timeout_seconds = kContainerSeconds;
  options.on_stdout = [&](std::string_view line) {
    if (version.empty()) version = std::string(line);
  };
  options.on_stderr = [&](std::string_view line) {
    if (failure.empty()) failure = std::string(line);
  };
  REQUANT_ASSIGN_OR_RETURN(const ChildResult result, RunChild(options));
  if (result.interrupted_by != 0) return InterruptedError();
  if (result.exit_code == 0 && !version.empty()) {
    return Ok("docker", absl::StrCat("engine ", version, " answers"));
  }
  if (failure.empty()) {
    failure = absl::StrCat("docker version ", DescribeEnd(result, options));
  }
  return Warning(
      "docker", absl::StrCat("the engine does not answer: ", failure),
      "start it, or ask for access to it; only container sessions need it");
}

Check CheckWorkingDirectory() {
  std::optional<int64_t> available_bytes;
  struct statvfs info;
  if (statvfs(".", &info) == 0) {
    available_bytes = static_cast<int64_t>(info.f_bavail) * info.f_frsize;
  }
  return CheckDisk(available_bytes, access(".", W_OK) == 0);
}

absl::StatusOr<std::vector<Check>> Examine() {
  const CpuFeatures features = ProbeCpu();
  // This comes first because it may find out that this machine needs a cap.
  REQUANT_ASSIGN_OR_RETURN(const TensorFlowProbe tensorflow,
                           ProbeTensorFlow(/*stock=*/false));
  std::vector<Check> checks = CheckCpu(features);
  const std::string users_cap = UsersIsaCap();
  checks.push_back(CheckIsaCap(
      users_cap.empty() ? CachedOneDnnIsaCap() : OneDnnIsaCap(features),
      users_cap));
  checks.push_back(CheckCores(ReadCoreLimits()));
  checks.push_back(CheckMemory(ReadMemoryLimits()));
  checks.push_back(CheckWorkingDirectory());
  for (Check& check :
       CheckTensorFlow(tensorflow, REQUANT_TENSORFLOW_VERSION, features)) {
    checks.push_back(std::move(check));
  }
  if (!tensorflow.version.empty() && !tensorflow.one_dnn_is_off) {
    REQUANT_ASSIGN_OR_RETURN(const TensorFlowProbe stock,
                             ProbeTensorFlow(/*stock=*/true));
    checks.push_back(CheckStock(stock, features, ServingVariables()));
  }
  REQUANT_ASSIGN_OR_RETURN(checks.emplace_back(), CheckDocker());
  return checks;
}

}  // namespace

std::vector<Check> CheckCpu(const CpuFeatures& features) {
  std::vector<Check> checks = {CheckModel(features)};
  checks.push_back(CheckSet("avx2", features.avx2));
  if (!features.avx2.advertised) {
    checks.back() =
        Warning("avx2", "not on this CPU",
                "use a CPU of this decade: int8 is slow without it");
  }
  checks.push_back(CheckSet("avx_vnni", features.avx_vnni));
  checks.push_back(CheckSet("avx512", features.avx512));
  checks.push_back(CheckSet("avx512_vnni", features.avx512_vnni));
  checks.push_back(
      features.tile_palettes
          ? CheckSet("amx_int8", features.amx_int8)
          : CheckSet("amx_int8", features.amx_int8,
                     absl::StrCat("advertised, but oneDNN cannot use it: ",
                                  kNoPalettes)));
  checks.push_back(CheckInt8Target(features));
  return checks;
}

Check CheckIsaCap(const std::string& needed,
                  const std::string& from_environment) {
  constexpr char kName[] = "onednn_cap";
  if (from_environment.empty()) {
    return Ok(kName,
              needed.empty()
                  ? "none needed: everything that is advertised works"
                  : absl::StrCat("requant sets ONEDNN_MAX_CPU_ISA=", needed));
  }
  const std::string found = absl::StrCat(
      "ONEDNN_MAX_CPU_ISA=", from_environment, ", from the environment");
  if (!needed.empty() && IsaCapRank(from_environment) > IsaCapRank(needed)) {
    return Warning(kName,
                   absl::StrCat(found, ", allows what does not work here"),
                   absl::StrCat("unset it or set it to ", needed));
  }
  return Ok(kName, found);
}

Check CheckCores(const CoreLimits& limits) {
  std::string found = absl::StrCat(limits.usable(), " usable");
  if (limits.quota.has_value()) {
    absl::StrAppendFormat(&found, " (%d allowed, control group's quota %.3g)",
                          limits.allowed, *limits.quota);
    if (*limits.quota < 1) {
      return Warning("cores", found,
                     "give the container or job at least one whole core");
    }
  }
  return Ok("cores", found);
}

Check CheckMemory(const MemoryLimits& limits) {
  if (!limits.usable().has_value()) {
    return Warning("memory", "neither /proc/meminfo nor a control group tells",
                   "mount /proc");
  }
  std::string found = Gibibytes(*limits.usable()) + " available";
  if (limits.total.has_value()) {
    absl::StrAppend(&found, " of ", Gibibytes(*limits.total));
  }
  if (limits.group_limit.has_value()) {
    absl::StrAppend(&found, ", control group's limit ",
                    Gibibytes(*limits.group_limit));
  }
  if (*limits.usable() < kLittleMemory) {
    return Warning(
        "memory", found,
        absl::StrCat("have ", Gibibytes(kLittleMemory),
                     " free: end other programs or raise the limit"));
  }
  return Ok("memory", found);
}

Check CheckDisk(std::optional<int64_t> available_bytes, bool writable) {
  const std::string found =
      available_bytes.has_value()
          ? absl::StrCat(Gibibytes(*available_bytes),
                         " free in the working directory")
          : "the file system of the working directory does not tell";
  if (!writable) {
    return Warning("disk", "the working directory cannot be written to",
                   "change to one that can, or name output files elsewhere");
  }
  if (available_bytes.value_or(kLittleDisk) < kLittleDisk) {
    return Warning("disk", found,
                   absl::StrCat("free some, to ", Gibibytes(kLittleDisk),
                                ": a run keeps the graph of every stage"));
  }
  return Ok("disk", found);
}

std::vector<Check> CheckTensorFlow(const TensorFlowProbe& probe,
                                   const std::string& built_for,
                                   const CpuFeatures& features) {
  std::vector<Check> checks = {CheckLoaded(probe, built_for)};
  if (!probe.version.empty()) checks.push_back(CheckInt8Layer(probe, features));
  return checks;
}

Check CheckStock(const TensorFlowProbe& stock, const CpuFeatures& features,
                 const std::string& needed) {
  constexpr char kName[] = "stock_int8";
  if (stock.int8 != TensorFlowProbe::kDidNotRun) {
    return Ok(kName, "a stock TensorFlow runs int8 graphs in this environment");
  }
  std::string found = absl::StrCat(
      "a stock TensorFlow does not run int8 graphs in this "
      "environment (",
      stock.failure, ")");
  if (features.amx_int8.advertised && !features.tile_palettes) {
    absl::StrAppend(&found, ": oneDNN uses AMX although ", kNoPalettes);
  } else if (TensorFlowLeavesOneDnnOff(features)) {
    absl::StrAppend(&found,
                    ": it leaves oneDNN, which has the int8 kernels, turned "
                    "off on CPUs without VNNI");
  }
  return Warning(kName, std::move(found),
                 needed.empty()
                     ? "see int8_matmul: nothing is known that helps"
                     : absl::StrCat("wherever int8 graphs are served, set ",
                                    needed, " before TensorFlow loads"));
}

std::string RenderText(const std::vector<Check>& checks, bool color) {
  std::string text;
  for (const Check& check : checks) {
    const int status = static_cast<int>(check.status);
    absl::StrAppendFormat(&text, "%s  %-11s  %s",
                          Styled(PaddedRight(kStatusWords[status], 7),
                                 kStatusStyles[status], color),
                          check.name, Printable(check.found));
    if (!check.advice.empty()) {
      absl::StrAppend(&text, " -> ", Printable(check.advice));
    }
    text += "\n";
  }
  absl::StrAppend(
      &text, CountText(Count(checks, CheckStatus::kError), "error"), ", ",
      CountText(Count(checks, CheckStatus::kWarning), "warning"), "\n");
  return text;
}

CheckStatus WorstStatus(const std::vector<Check>& checks) {
  CheckStatus worst = CheckStatus::kOk;
  for (const Check& check : checks) worst = std::max(worst, check.status);
  return worst;
}

int RunDoctorCommand(const std::vector<std::string>& args) {
  const ProgramHelp help = {
      kDoctorProgram,
      "looks at this machine and says what int8 models can expect of it: CPU "
      "features as tried in a child process, memory, TensorFlow, Docker.",
      "requant doctor",
      {},
      "Exit code: 0 when no check is an error, else 1."};
  std::vector<std::string> positional;
  if (auto code = ParseFlags(args, help, &positional)) return *code;
  if (!positional.empty()) {
    return ReportUsage(kDoctorProgram, absl::StrCat("unexpected argument \"",
                                                    positional[0], "\""));
  }
  const absl::StatusOr<std::vector<Check>> checks = Examine();
  if (!checks.ok()) return ReportFailure(kDoctorProgram, checks.status());
  const bool color = isatty(STDOUT_FILENO) && Environment("NO_COLOR").empty();
  PrintStyled(stdout, RenderText(*checks, color));
  return WorstStatus(*checks) == CheckStatus::kError ? kExitFailed : kExitOk;
}

int RunTensorFlowCheckCommand(const std::vector<std::string>&) {
  const absl::StatusOr<std::string> version = LoadedTensorFlowVersion();
  if (!version.ok()) {
    ReportToParent(absl::StrCat("failure ", version.status().message()));
    return kExitFailed;
  }
  ReportToParent(absl::StrCat("version ", *version));
  const absl::StatusOr<Int8Sums> sums = RunInt8Layers();
  if (!sums.ok()) {
    ReportToParent(absl::StrCat("failure ", sums.status().message()));
    return kExitFailed;
  }
  ReportToParent(*sums == Int8Sums::kExact ? "int8 exact" : "int8 saturating");
  return kExitOk;
}

}  // namespace requant
