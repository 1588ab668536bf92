#include "base/cpu.h"

#include <signal.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

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

struct CpuidResult {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero for a leaf that the CPU does not have.
CpuidResult Cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidResult r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) {
    return {};
  }
  return r;
}

bool Bit(uint32_t word, int bit) { return (word >> bit & 1) != 0; }

// XCR0: the register states that the operating system saves.
uint64_t EnabledStates() {
  constexpr int kOsxsave = 27;
  if (!Bit(Cpuid(1, 0).ecx, kOsxsave)) return 0;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

std::string VendorName() {
  const CpuidResult leaf = Cpuid(0, 0);
  const uint32_t words[] = {leaf.ebx, leaf.edx, leaf.ecx};
  char name[sizeof(words) + 1] = {};
  memcpy(name, words, sizeof(words));
  return name;
}

// The brand string, with runs of blanks as one.
std::string ModelName() {
  char padded[3 * sizeof(CpuidResult) + 1] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const CpuidResult leaf = Cpuid(0x80000002 + i, 0);
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

CpuFeatures ReadAdvertised() {
  constexpr uint64_t kAvxStates = 0x6;       // SSE, AVX
  constexpr uint64_t kAvx512States = 0xe6;   // and masks, two halves of zmm
  constexpr uint64_t kTileStates = 0x60000;  // configuration, data
  const uint64_t states = EnabledStates();
  const bool avx_enabled = (states & kAvxStates) == kAvxStates;
  const bool avx512_enabled = (states & kAvx512States) == kAvx512States;
  const bool tiles_enabled = (states & kTileStates) == kTileStates;
  const CpuidResult leaf7 = Cpuid(7, 0);
  // Leaf 7 tells in eax how many further parts it has.
  const CpuidResult leaf7_1 = leaf7.eax >= 1 ? Cpuid(7, 1) : CpuidResult();
  CpuFeatures features;
  features.vendor = VendorName();
  features.model = ModelName();
  features.avx2.advertised = avx_enabled && Bit(leaf7.ebx, 5);
  features.avx_vnni.advertised = avx_enabled && Bit(leaf7_1.eax, 4);
  features.avx512.advertised = avx512_enabled && Bit(leaf7.ebx, 16) &&
                               Bit(leaf7.ebx, 17) && Bit(leaf7.ebx, 30) &&
                               Bit(leaf7.ebx, 31);
  features.avx512_vnni.advertised =
      features.avx512.advertised && Bit(leaf7.ecx, 11);
  features.amx_int8.advertised =
      tiles_enabled && Bit(leaf7.edx, 24) && Bit(leaf7.edx, 25);
  return features;
}

void Try(bool (*action)(), InstructionSet* set) {
  set->works = set->advertised && SucceedsInChild(action, kProbeTimeoutMs);
}

void TryAdvertised(CpuFeatures* features) {
  Try(RunAvx2, &features->avx2);
  Try(RunAvxVnni, &features->avx_vnni);
  Try(RunAvx512, &features->avx512);
  Try(RunAvx512Vnni, &features->avx512_vnni);
  Try(RunAmxInt8, &features->amx_int8);
}

#else

CpuFeatures ReadAdvertised() { return {}; }
void TryAdvertised(CpuFeatures*) {}

#endif

bool IsBroken(const InstructionSet& set) {
  return set.advertised && !set.works;
}

}  // namespace

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
  CpuFeatures features = ReadAdvertised();
  TryAdvertised(&features);
  return features;
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

std::string CachedOneDnnIsaCap() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  static const auto* cap = new std::string([] {
    CpuFeatures features = ReadAdvertised();
    if (!features.avx512.advertised && !features.amx_int8.advertised) {
      return std::string();
    }
    TryAdvertised(&features);
    return OneDnnIsaCap(features);
  }());
  return *cap;
}

std::vector<std::pair<std::string, std::string>> TensorFlowEnvironment() {
  std::vector<std::pair<std::string, std::string>> environment;
  if (std::string cap = CachedOneDnnIsaCap(); !cap.empty()) {
    environment.emplace_back("ONEDNN_MAX_CPU_ISA", std::move(cap));
  }
  if (std::getenv("TF_ENABLE_ONEDNN_OPTS") == nullptr) {
    environment.emplace_back("TF_ENABLE_ONEDNN_OPTS", "1");
  }
  return environment;
}

}  // namespace requant
