#include "workflows/commands/doctor.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "base/process/machine.h"
#include "base/text/printable.h"
#include "base/version.h"

namespace requant {
namespace {

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

const char* StatusWord(CheckStatus status) {
  switch (status) {
    case CheckStatus::kOk:
      return "ok";
    case CheckStatus::kWarning:
      return "warning";
    case CheckStatus::kError:
      return "error";
  }
  return "error";
}

// Green, yellow, red.
const char* StatusColor(CheckStatus status) {
  switch (status) {
    case CheckStatus::kOk:
      return "\033[32m";
    case CheckStatus::kWarning:
      return "\033[33m";
    case CheckStatus::kError:
      return "\033[31m";
  }
  return "";
}

int Count(const std::vector<Check>& checks, CheckStatus status) {
  return std::count_if(
      checks.begin(), checks.end(),
      [status](const Check& check) { return check.status == status; });
}

std::string Counted(int count, std::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
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

Check CheckDisk(const DiskSpace& disk) {
  const std::string found =
      disk.available_bytes.has_value()
          ? absl::StrCat(Gibibytes(*disk.available_bytes),
                         " free in the working directory")
          : "the file system of the working directory does not tell";
  if (!disk.writable) {
    return Warning("disk", "the working directory cannot be written to",
                   "change to one that can, or name output files elsewhere");
  }
  if (disk.available_bytes.value_or(kLittleDisk) < kLittleDisk) {
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

std::vector<Check> CheckContainers(const ContainerClient& docker,
                                   const ContainerClient& podman) {
  std::vector<Check> checks;
  if (!docker.installed) {
    checks.push_back(Warning(
        "docker", "not installed",
        "install Docker for container sessions; nothing else needs it"));
  } else if (docker.version.empty()) {
    checks.push_back(Warning(
        "docker", absl::StrCat("the engine does not answer: ", docker.failure),
        "start it, or ask for access to it; only container sessions need it"));
  } else {
    checks.push_back(
        Ok("docker", absl::StrCat("engine ", docker.version, " answers")));
  }
  if (!podman.installed) {
    checks.push_back(Ok("podman", "not installed, and not needed"));
  } else if (podman.version.empty()) {
    checks.push_back(Warning("podman",
                             absl::StrCat("does not answer: ", podman.failure),
                             "nothing, unless you use it in place of docker"));
  } else {
    checks.push_back(Ok("podman", absl::StrCat("version ", podman.version)));
  }
  return checks;
}

std::string RenderText(const std::vector<Check>& checks, bool color) {
  std::string text;
  for (const Check& check : checks) {
    absl::StrAppendFormat(&text, "%s%-7s%s  %-11s  %s",
                          color ? StatusColor(check.status) : "",
                          StatusWord(check.status), color ? "\033[0m" : "",
                          check.name, Printable(check.found));
    if (!check.advice.empty()) {
      absl::StrAppend(&text, " -> ", Printable(check.advice));
    }
    text += "\n";
  }
  absl::StrAppend(
      &text, Counted(Count(checks, CheckStatus::kError), "error"), ", ",
      Counted(Count(checks, CheckStatus::kWarning), "warning"), "\n");
  return text;
}

std::string RenderJson(const std::vector<Check>& checks) {
  std::string text = absl::StrCat(
      "{\n  \"version\": ", JsonString(kRequantVersion),
      ",\n  \"status\": ", JsonString(StatusWord(WorstStatus(checks))),
      ",\n  \"checks\": [");
  for (size_t i = 0; i < checks.size(); ++i) {
    const Check& check = checks[i];
    absl::StrAppend(&text, i == 0 ? "\n" : ",\n",
                    "    {\"name\": ", JsonString(check.name),
                    ", \"status\": ", JsonString(StatusWord(check.status)),
                    ", \"found\": ", JsonString(check.found),
                    ", \"advice\": ", JsonString(check.advice), "}");
  }
  return text + "\n  ]\n}\n";
}

CheckStatus WorstStatus(const std::vector<Check>& checks) {
  CheckStatus worst = CheckStatus::kOk;
  for (const Check& check : checks) worst = std::max(worst, check.status);
  return worst;
}

}  // namespace requant
