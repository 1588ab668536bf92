#ifndef REQUANT_BASE_PROCESS_MACHINE_H_
#define REQUANT_BASE_PROCESS_MACHINE_H_

// What the CPU can really do, and how much of the machine this process may use.
// Some virtual machines advertise an instruction set and trap on it (AMX most
// often), so each one is tried in a child process; and a container or a job
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

// What a CPU, or the hypervisor before it, answers to programs that ask.
struct CpuAnswers {
  // May answer anything beyond the highest leaf, as CPUs do.
  std::function<CpuidWords(uint32_t leaf, uint32_t subleaf)> cpuid;
  // XGETBV: the register states that the operating system saves; 0 where the
  // instruction is missing.
  uint64_t xcr0 = 0;
};

// Returns this machine's answers; all zero on a CPU that is not x86-64.
CpuAnswers ThisCpu();

struct InstructionSet {
  // CPUID lists it and the operating system saves its registers (XGETBV).
  bool advertised = false;
  // One of its instructions gave the right result in a child process.
  bool works = false;
};

// All false on a CPU that is not x86-64.
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
  // It works only if oneDNN can use it, too (`tile_palettes`).
  InstructionSet amx_int8;
  // CPUID says how tiles are laid out (leaves 0x1D and 0x1E). oneDNN needs
  // this, and where a hypervisor leaves it out, oneDNN executes AMX
  // instructions that trap.
  bool tile_palettes = false;
  // Sets are advertised which oneDNN ranks above AVX512_CORE_VNNI: bfloat16,
  // half precision, AMX.
  bool beyond_vnni = false;
  // The answers that all of this was read from, as text: the same on every
  // core of a machine, and another one where CPU or hypervisor changed.
  std::string answers;
};

// Reads what is advertised and tries nothing.
CpuFeatures AdvertisedBy(const CpuAnswers& answers);

// Reads what this CPU advertises and tries it, each set in a child process of
// its own; a few milliseconds. Nothing that is not advertised is tried.
CpuFeatures ProbeCpu();

// Does the same for a CPU that gives these answers; `runs` tries an instruction
// set.
CpuFeatures ProbeWith(const CpuAnswers& answers,
                      bool (*runs)(bool (*action)()));

// Returns whether a stock TensorFlow keeps oneDNN, and with it all int8
// kernels, turned off on such a CPU unless TF_ENABLE_ONEDNN_OPTS=1 is set: it
// has neither VNNI nor AMX.
bool TensorFlowLeavesOneDnnOff(const CpuFeatures& features);

// Returns the value that ONEDNN_MAX_CPU_ISA must have before TensorFlow loads,
// so that oneDNN keeps away from every set that is advertised and does not
// work; "" when there is none.
std::string OneDnnIsaCap(const CpuFeatures& features);

// Returns the rank of a value of ONEDNN_MAX_CPU_ISA: of two values the higher
// one allows more. Values that are not known allow everything.
int IsaCapRank(std::string_view cap);

// Returns the next value of ONEDNN_MAX_CPU_ISA below `cap` ("": none is set)
// that changes what oneDNN does on such a CPU; "" when there is none.
std::string LowerIsaCap(const CpuFeatures& features, const std::string& cap);

// Returns the kind of int8 arithmetic to quantize for: "vnni" when products of
// uint8 and int8 are summed exactly, "avx2" when pairs of them saturate in
// int16 (two neighbouring weights must not be large then). `isa_cap`, a value
// of ONEDNN_MAX_CPU_ISA, may keep oneDNN from what the CPU has; "": none.
std::string QuantizationTarget(const CpuFeatures& features,
                               const std::string& isa_cap = "");

// Where to look; tests use folders of their own.
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
  // What the machine has, in bytes; unset when /proc/meminfo cannot be read.
  std::optional<int64_t> total;
  std::optional<int64_t> available;
  // The control group's limit and what of it is still free (page cache that can
  // be dropped counts as free), if it limits memory.
  std::optional<int64_t> group_limit;
  std::optional<int64_t> group_available;

  // Returns the smaller of what the machine and the group have left.
  std::optional<int64_t> usable() const;
};

// Read the limits of this process: the tightest on the way from its control
// group to the root counts. Control groups of both versions are read, and files
// that are missing or malformed limit nothing.
CoreLimits ReadCoreLimits(const MachineSources& sources = {});
MemoryLimits ReadMemoryLimits(const MachineSources& sources = {});

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_MACHINE_H_
