#ifndef REQUANT_BASE_CPU_H_
#define REQUANT_BASE_CPU_H_

// What the CPU can really do. Some virtual machines advertise an instruction
// set and trap on it (AMX most often), so each one is tried in a child process.

#include <string>
#include <utility>
#include <vector>

namespace requant {

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
  InstructionSet amx_int8;
};

// Reads what is advertised and tries it; a few milliseconds. Nothing that is
// not advertised is tried.
CpuFeatures ProbeCpu();

// The value that ONEDNN_MAX_CPU_ISA must have before TensorFlow loads, so that
// oneDNN keeps away from every set that is advertised and does not work; ""
// when there is none.
std::string OneDnnIsaCap(const CpuFeatures& features);

// The kind of int8 arithmetic to quantize for: "vnni" when products of uint8
// and int8 are summed exactly, "avx2" when pairs of them saturate in int16
// (two neighbouring weights must not be large then). `isa_cap`, a value of
// ONEDNN_MAX_CPU_ISA, may keep oneDNN from what the CPU has; "": none.
std::string QuantizationTarget(const CpuFeatures& features,
                               const std::string& isa_cap = "");

// The cap for this machine, as every program sets it for its children. The
// environment's ONEDNN_MAX_CPU_ISA (or its old name DNNL_MAX_CPU_ISA) is
// returned as it is. Only AVX-512 and AMX, where advertised, are tried, once
// per process. Thread-safe.
std::string CachedOneDnnIsaCap();

// The variables that a child which loads TensorFlow needs on top of this
// process's environment: the cap above, if there is one, and
// TF_ENABLE_ONEDNN_OPTS=1, because TensorFlow turns oneDNN off by itself on
// CPUs without VNNI, and its int8 ops have no other kernels. What the
// environment already sets is left as it is.
std::vector<std::pair<std::string, std::string>> TensorFlowEnvironment();

// Whether `action` returns true within `timeout_ms` in a child process of its
// own. Any signal that it raises ends only that child, without a core dump.
// `action` may call async-signal-safe functions only: other threads' locks stay
// locked in the child.
bool SucceedsInChild(bool (*action)(), int timeout_ms);

}  // namespace requant

#endif  // REQUANT_BASE_CPU_H_
