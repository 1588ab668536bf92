#include "base/process/cpu.h"

#include <signal.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace requant {
namespace {

// One instruction takes nanoseconds; this only has to cover a child that waits
// for a core on a busy machine.
constexpr int kProbeTimeoutMs = 5000;

// The rest of the child's life. Async-signal-safe calls only.
[[noreturn]] void RunAndExit(bool (*action)(), int timeout_ms, pid_t parent,
                             volatile bool* succeeded) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  prctl(PR_SET_DUMPABLE, 0);
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // Handlers of this program (glog's, a sanitizer's) would print a stack trace.
  struct sigaction default_action;
  memset(&default_action, 0, sizeof(default_action));
  default_action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    sigaction(number, &default_action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // SIGALRM's default action bounds the child's life, and so the parent's wait.
  const struct itimerval limit = {
      {0, 0}, {timeout_ms / 1000, timeout_ms % 1000 * 1000}};
  setitimer(ITIMER_REAL, &limit, nullptr);
  *succeeded = action();
  _exit(0);
}

#ifdef __x86_64__

// Each of these multiplies four uint8 of 255 with four int8 of -127 (the sets
// without such an instruction: two int16 of the same values) and checks the
// sum. Written in assembler, which knows every set whatever CPU the compiler
// targets.
constexpr uint32_t kUnsignedQuad = 0xffffffff;
constexpr uint32_t kSignedQuad = 0x81818181;
constexpr int32_t kQuadSum = 4 * 255 * -127;

bool RunAvx2() {
  // 16-bit pairs: 255 * -127 * 2.
  const uint32_t a = 0x00ff00ff, b = 0xff81ff81;
  int32_t sum = 0;
  asm volatile(
      "vpbroadcastd %1, %%ymm0\n\t"
      "vpbroadcastd %2, %%ymm1\n\t"
      "vpmaddwd %%ymm0, %%ymm1, %%ymm2\n\t"
      "vextracti128 $1, %%ymm2, %%xmm2\n\t"
      "vmovd %%xmm2, %0\n\t"
      "vzeroupper"
      : "=m"(sum)
      : "m"(a), "m"(b)
      : "memory", "xmm0", "xmm1", "xmm2");
  return sum == 2 * 255 * -127;
}

bool RunAvxVnni() {
  const uint32_t a = kUnsignedQuad, b = kSignedQuad;
  int32_t sum = 0;
  asm volatile(
      "vpbroadcastd %1, %%ymm0\n\t"
      "vpbroadcastd %2, %%ymm1\n\t"
      "vpxor %%ymm2, %%ymm2, %%ymm2\n\t"
      "%{vex%} vpdpbusd %%ymm1, %%ymm0, %%ymm2\n\t"
      "vmovd %%xmm2, %0\n\t"
      "vzeroupper"
      : "=m"(sum)
      : "m"(a), "m"(b)
      : "memory", "xmm0", "xmm1", "xmm2");
  return sum == kQuadSum;
}

bool RunAvx512() {
  // F: the 512-bit broadcast; BW: vpmaddwd; DQ: vextracti32x8; VL: vprold.
  const uint32_t a = 0x00ff00ff, b = 0xff81ff81;
  int32_t sum = 0;
  asm volatile(
      "vpbroadcastd %1, %%zmm0\n\t"
      "vpbroadcastd %2, %%zmm1\n\t"
      "vpmaddwd %%zmm0, %%zmm1, %%zmm2\n\t"
      "vextracti32x8 $1, %%zmm2, %%ymm2\n\t"
      "vprold $32, %%ymm2, %%ymm2\n\t"
      "vmovd %%xmm2, %0\n\t"
      "vzeroupper"
      : "=m"(sum)
      : "m"(a), "m"(b)
      : "memory", "xmm0", "xmm1", "xmm2");
  return sum == 2 * 255 * -127;
}

bool RunAvx512Vnni() {
  const uint32_t a = kUnsignedQuad, b = kSignedQuad;
  int32_t sum = 0;
  asm volatile(
      "vpbroadcastd %1, %%zmm0\n\t"
      "vpbroadcastd %2, %%zmm1\n\t"
      "vpxord %%zmm2, %%zmm2, %%zmm2\n\t"
      "vpdpbusd %%zmm1, %%zmm0, %%zmm2\n\t"
      "vmovd %%xmm2, %0\n\t"
      "vzeroupper"
      : "=m"(sum)
      : "m"(a), "m"(b)
      : "memory", "xmm0", "xmm1", "xmm2");
  return sum == kQuadSum;
}

// The 64 bytes that ldtilecfg reads.
struct TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64);

bool RunAmxInt8() {
  // Linux gives tile registers only to processes that ask (arch_prctl(2)).
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return false;
  // Three tiles of one row with four bytes: sum, unsigned and signed factors.
  TileConfiguration configuration;
  for (int tile = 0; tile < 3; ++tile) {
    configuration.row_bytes[tile] = 4;
    configuration.rows[tile] = 1;
  }
  const uint32_t a = kUnsignedQuad, b = kSignedQuad;
  int32_t sum = 0;
  const int64_t stride = 4;
  asm volatile(
      "ldtilecfg %0\n\t"
      "tilezero %%tmm0\n\t"
      "tileloadd (%2,%1,1), %%tmm1\n\t"
      "tileloadd (%3,%1,1), %%tmm2\n\t"
      "tdpbusd %%tmm2, %%tmm1, %%tmm0\n\t"
      "tilestored %%tmm0, (%4,%1,1)\n\t"
      "tilerelease"
      :
      : "m"(configuration), "r"(stride), "r"(&a), "r"(&b), "r"(&sum)
      : "memory");
  return sum == kQuadSum;
}

// All zero for a leaf that the CPU does not have.
CpuidWords Cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidWords r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) {
    return {};
  }
  return r;
}

uint64_t Xcr0() {
  constexpr uint32_t kOsxsave = 1 << 27;
  if ((Cpuid(1, 0).ecx & kOsxsave) == 0) return 0;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

void TryAdvertised(bool (*runs)(bool (*action)()), CpuFeatures* features) {
  const auto try_set = [&](InstructionSet* set, bool (*action)()) {
    set->works = set->advertised && runs(action);
  };
  try_set(&features->avx2, RunAvx2);
  try_set(&features->avx_vnni, RunAvxVnni);
  try_set(&features->avx512, RunAvx512);
  try_set(&features->avx512_vnni, RunAvx512Vnni);
  try_set(&features->amx_int8, RunAmxInt8);
}

#else

CpuidWords Cpuid(uint32_t, uint32_t) { return {}; }
uint64_t Xcr0() { return 0; }
void TryAdvertised(bool (*)(bool (*)()), CpuFeatures*) {}

#endif

bool Bit(uint32_t word, int bit) { return (word >> bit & 1) != 0; }

std::string VendorName(const CpuidWords& leaf0) {
  const uint32_t words[] = {leaf0.ebx, leaf0.edx, leaf0.ecx};
  char name[sizeof(words) + 1] = {};
  memcpy(name, words, sizeof(words));
  return name;
}

// The brand string, with runs of blanks as one.
std::string ModelName(const CpuAnswers& answers) {
  char padded[3 * sizeof(CpuidWords) + 1] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const CpuidWords leaf = answers.cpuid(0x80000002 + i, 0);
    memcpy(padded + i * sizeof(leaf), &leaf, sizeof(leaf));
  }
  std::string name;
  for (const char* c = padded; *c != '\0'; ++c) {
    if (*c != ' ') {
      name.push_back(*c);
    } else if (!name.empty() && name.back() != ' ') {
      name.push_back(' ');
    }
  }
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name;
}

bool IsBroken(const InstructionSet& set) {
  return set.advertised && !set.works;
}

// Values of ONEDNN_MAX_CPU_ISA, in the order of what they allow. Every other
// one (AVX512_CORE_AMX, DEFAULT, …) allows more.
constexpr std::string_view kIsaCaps[] = {
    "SSE41",           "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE",
    "AVX512_CORE_VNNI"};

}  // namespace

CpuAnswers ThisCpu() { return {Cpuid, Xcr0()}; }

CpuFeatures AdvertisedBy(const CpuAnswers& answers) {
  constexpr uint64_t kAvxStates = 0x6;       // SSE, AVX
  constexpr uint64_t kAvx512States = 0xe6;   // and masks, two halves of zmm
  constexpr uint64_t kTileStates = 0x60000;  // configuration, data
  const auto enabled = [&](uint64_t states) {
    return (answers.xcr0 & states) == states;
  };
  const CpuidWords leaf0 = answers.cpuid(0, 0);
  const auto leaf = [&](uint32_t number, uint32_t part = 0) {
    return number <= leaf0.eax ? answers.cpuid(number, part) : CpuidWords();
  };
  const CpuidWords leaf7 = leaf(7);
  // Leaf 7 tells in eax how many further parts it has.
  const CpuidWords leaf7_1 = leaf7.eax >= 1 ? leaf(7, 1) : CpuidWords();
  CpuFeatures features;
  features.vendor = VendorName(leaf0);
  features.model = ModelName(answers);
  features.avx2.advertised = enabled(kAvxStates) && Bit(leaf7.ebx, 5);
  features.avx_vnni.advertised = enabled(kAvxStates) && Bit(leaf7_1.eax, 4);
  features.avx512.advertised = enabled(kAvx512States) && Bit(leaf7.ebx, 16) &&
                               Bit(leaf7.ebx, 17) && Bit(leaf7.ebx, 30) &&
                               Bit(leaf7.ebx, 31);
  features.avx512_vnni.advertised =
      features.avx512.advertised && Bit(leaf7.ecx, 11);
  features.amx_int8.advertised =
      enabled(kTileStates) && Bit(leaf7.edx, 24) && Bit(leaf7.edx, 25);
  features.tile_palettes = leaf(0x1d).eax >= 1 && leaf(0x1e).ebx != 0;
  features.beyond_vnni =
      features.amx_int8.advertised ||
      (features.avx512_vnni.advertised &&
       (Bit(leaf7_1.eax, 5) || Bit(leaf7.edx, 23)));  // bfloat16, half
  // Leaf 1's ebx is left out: it differs from core to core.
  const CpuidWords leaf1 = leaf(1);
  for (const uint64_t word :
       {uint64_t{leaf0.eax}, uint64_t{leaf1.eax}, uint64_t{leaf1.ecx},
        uint64_t{leaf7.ebx}, uint64_t{leaf7.ecx}, uint64_t{leaf7.edx},
        uint64_t{leaf7_1.eax}, uint64_t{leaf(0x1d).eax},
        uint64_t{leaf(0x1e).ebx}, answers.xcr0}) {
    char text[20];
    std::snprintf(text, sizeof(text), "%llx ",
                  static_cast<unsigned long long>(word));
    features.answers += text;
  }
  return features;
}

bool SucceedsInChild(bool (*action)(), int timeout_ms) {
  // The result comes back through shared memory: the exit status is lost where
  // SIGCHLD is ignored or another thread waits for any child.
  void* shared = mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  auto* succeeded = static_cast<volatile bool*>(shared);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) RunAndExit(action, timeout_ms, parent, succeeded);
  if (child > 0) {
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  const bool result = *succeeded;
  munmap(shared, sizeof(bool));
  return result;
}

CpuFeatures ProbeCpu() {
  return ProbeWith(ThisCpu(), [](bool (*action)()) {
    return SucceedsInChild(action, kProbeTimeoutMs);
  });
}

CpuFeatures ProbeWith(const CpuAnswers& answers,
                      bool (*runs)(bool (*action)())) {
  CpuFeatures features = AdvertisedBy(answers);
  TryAdvertised(runs, &features);
  features.amx_int8.works &= features.tile_palettes;
  return features;
}

bool TensorFlowLeavesOneDnnOff(const CpuFeatures& features) {
  return !features.avx512_vnni.advertised && !features.avx_vnni.advertised &&
         !features.amx_int8.advertised;
}

std::string OneDnnIsaCap(const CpuFeatures& features) {
  // The caps are alternatives, not a ladder: AVX512_CORE_VNNI excludes
  // AVX2_VNNI.
  if (IsBroken(features.avx2)) return "SSE41";
  const bool broken_512 = IsBroken(features.avx512);
  if (broken_512 || !features.avx512.advertised) {
    if (IsBroken(features.avx_vnni)) return "AVX2";
    if (!broken_512 && !IsBroken(features.amx_int8)) return "";
    return features.avx_vnni.works ? "AVX2_VNNI" : "AVX2";
  }
  if (IsBroken(features.avx512_vnni)) return "AVX512_CORE";
  if (!IsBroken(features.amx_int8) && !IsBroken(features.avx_vnni)) return "";
  return features.avx512_vnni.works ? "AVX512_CORE_VNNI" : "AVX512_CORE";
}

int IsaCapRank(std::string_view cap) {
  const auto* found = std::find_if(
      std::begin(kIsaCaps), std::end(kIsaCaps), [&](std::string_view known) {
        return known.size() == cap.size() &&
               strncasecmp(known.data(), cap.data(), cap.size()) == 0;
      });
  return static_cast<int>(found - std::begin(kIsaCaps));
}

std::string LowerIsaCap(const CpuFeatures& features, const std::string& cap) {
  const std::pair<const char*, bool> steps[] = {
      {"AVX512_CORE_VNNI", features.avx512_vnni.works},
      {"AVX512_CORE", features.avx512.works},
      {"AVX2_VNNI", features.avx_vnni.works},
      {"AVX2", features.avx2.works},
      {"SSE41", !features.vendor.empty()}};
  // What oneDNN uses without a cap.
  bool is_above = !cap.empty() || features.beyond_vnni;
  for (const auto& [step, works] : steps) {
    if (!works) continue;
    if (is_above && (cap.empty() || IsaCapRank(step) < IsaCapRank(cap))) {
      return step;
    }
    is_above = true;
  }
  return "";
}

std::string QuantizationTarget(const CpuFeatures& features,
                               const std::string& isa_cap) {
  for (const char* inexact : {"SSE41", "AVX", "AVX2", "AVX512_CORE"}) {
    if (strcasecmp(isa_cap.c_str(), inexact) == 0) return "avx2";
  }
  // AVX2_VNNI and AVX2_VNNI_2.
  const bool short_vectors_only =
      strncasecmp(isa_cap.c_str(), "AVX2_VNNI", 9) == 0;
  const bool exact = features.avx_vnni.works ||
                     (!short_vectors_only &&
                      (features.avx512_vnni.works || features.amx_int8.works));
  return exact ? "vnni" : "avx2";
}

}  // namespace requant
