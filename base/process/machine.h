#ifndef REQUANT_BASE_PROCESS_MACHINE_H_
#define REQUANT_BASE_PROCESS_MACHINE_H_

// Finds what the CPU can really do and how much of the machine this process may
// use. Some virtual machines advertise an instruction set (usually AMX) and
// trap on it, so each one is tried in a child process. A container or job
// scheduler often gives a process less than the machine has.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace requant {

struct CpuidWords {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// What a CPU or its hypervisor reports to programs.
struct CpuAnswers {
  // May return anything beyond the highest leaf, as CPUs do.
  std::function<CpuidWords(uint32_t leaf, uint32_t subleaf)> cpuid;
  // XGETBV: the register states that the operating system saves, or 0 if the
  // instruction is missing.
  uint64_t xcr0 = 0;
};

// Returns this machine's answers, all zero if the CPU is not x86-64.
CpuAnswers ThisCpu();

struct InstructionSet {
  // CPUID lists it and the operating system saves its registers (XGETBV).
  bool advertised = false;
  // One of its instructions gave the right result in a child process.
  bool works = false;
};

// All false if the CPU is not x86-64.
struct CpuFeatures {
  // "GenuineIntel", "AuthenticAMD"; empty when unknown.
  std::string vendor;
  // "AMD EPYC 7B13"; empty when unknown.
  std::string model;
  InstructionSet avx2;
  // The 256-bit vpdpbusd of CPUs without AVX-512 ("AVX2-VNNI").
  InstructionSet avx_vnni;
  // The sets F, BW, DQ and VL together, which oneDNN calls AVX512_CORE.
  InstructionSet avx512;
  InstructionSet avx512_vnni;
  // It works only if oneDNN can use it too (`tile_palettes`).
  InstructionSet amx_int8;
  // CPUID describes the layout of tiles (leaves 0x1D and 0x1E). oneDNN needs
  // this, and where a hypervisor omits it, oneDNN's AMX instructions trap.
  bool tile_palettes = false;
  // The CPU advertises sets that oneDNN ranks above AVX512_CORE_VNNI: bfloat16,
  // half precision, AMX.
  bool beyond_vnni = false;
  // The answers from which all of this was read, as text. It is the same on
  // every core of a machine and changes with the CPU or hypervisor.
  std::string answers;
};

// Reads what is advertised without trying it.
CpuFeatures AdvertisedBy(const CpuAnswers& answers);

// Reads what this CPU advertises and tries each of these sets, in a child
// process of its own. This takes a few milliseconds.
CpuFeatures ProbeCpu();

// Does the same for a CPU that gives these answers; `runs` tries an instruction
// set.
CpuFeatures ProbeWith(const CpuAnswers& answers,
                      bool (*runs)(bool (*action)()));

// Returns whether stock TensorFlow leaves oneDNN, and with it all int8 kernels,
// off on this CPU unless TF_ENABLE_ONEDNN_OPTS=1 is set: it has neither VNNI
// nor AMX.
bool TensorFlowLeavesOneDnnOff(const CpuFeatures& features);

// Returns the value that ONEDNN_MAX_CPU_ISA must have before TensorFlow loads,
// so that oneDNN avoids every set that is advertised but does not work, or ""
// when no cap is needed.
std::string OneDnnIsaCap(const CpuFeatures& features);

// Returns the rank of a value of ONEDNN_MAX_CPU_ISA; a higher rank allows more.
// Unknown values allow everything.
int IsaCapRank(std::string_view cap);

// Returns the next lower value of ONEDNN_MAX_CPU_ISA than `cap` ("" if unset)
// that changes what oneDNN does on this CPU, or "" if there is none.
std::string LowerIsaCap(const CpuFeatures& features, const std::string& cap);

// Returns the int8 arithmetic to quantize for: "vnni" if products of uint8 and
// int8 are summed exactly, or "avx2" if pairs of them saturate in int16, which
// limits the size of neighboring weights. `isa_cap`, a value of
// ONEDNN_MAX_CPU_ISA or "", may keep oneDNN from using what the CPU has.
std::string QuantizationTarget(const CpuFeatures& features,
                               const std::string& isa_cap = "");

// Where the files are; tests use folders of their own.
struct MachineSources {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

struct CoreLimits {
  // Cores that the affinity mask allows.
  int allowed = 1;
  // CPU seconds per second that the control group grants, if it limits them.
  std::optional<double> quota;

  // Returns how many threads can run at once: at least 1.
  int usable() const;
};

struct MemoryLimits {
  // The machine's memory in bytes, or unset when /proc/meminfo cannot be read.
  std::optional<int64_t> total;
  std::optional<int64_t> available;
  // The control group's limit and how much of it is free (counting page cache
  // that can be dropped), if it limits memory.
  std::optional<int64_t> group_limit;
  std::optional<int64_t> group_available;

  // Returns the smaller of what the machine and the group have available.
  std::optional<int64_t> usable() const;
};

// Read the limits of this process, which are the tightest between its control
// group and the root. Both versions of control groups are supported, and
// missing or malformed files impose no limit.
CoreLimits ReadCoreLimits(const MachineSources& sources = {});
MemoryLimits ReadMemoryLimits(const MachineSources& sources = {});

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_MACHINE_H_
