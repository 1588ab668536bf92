#include "base/process/machine.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/process/forked_work.h"

namespace requant {
namespace {

#ifdef __x86_64__

// Each of these multiplies four uint8 of 255 by four int8 of -127 (or two int16
// of these values, where the set has no such instruction) and checks the sum.
// They are in assembly, so that they compile for every set whatever the target
// CPU is.
constexpr uint32_t kUnsignedQuad = 0xffffffff;
constexpr uint32_t kSignedQuad = 0x81818181;
constexpr int32_t kQuadSum = 4 * 255 * -127;
constexpr uint32_t kUnsignedPair = 0x00ff00ff;
constexpr uint32_t kSignedPair = 0xff81ff81;
constexpr int32_t kPairSum = 2 * 255 * -127;

// Defines the function `name`, which broadcasts kUnsigned`values` and
// kSigned`values` to the registers `r`0 and `r`1, executes `code`, which leaves
// their sum in xmm2, and checks that sum.
#define REQUANT_DEFINE_TRIAL(name, values, r, code)            \
  bool name() {                                                \
    const uint32_t a = kUnsigned##values, b = kSigned##values; \
    int32_t sum = 0;                                           \
    asm volatile("vpbroadcastd %1, %%" r                       \
                 "0\n\t"                                       \
                 "vpbroadcastd %2, %%" r "1\n\t" code          \
                 "vmovd %%xmm2, %0\n\t"                        \
                 "vzeroupper"                                  \
                 : "=m"(sum)                                   \
                 : "m"(a), "m"(b)                              \
                 : "memory", "xmm0", "xmm1", "xmm2");          \
    return sum == k##values##Sum;                              \
  }

REQUANT_DEFINE_TRIAL(RunAvx2, Pair, "ymm",
                     "vpmaddwd %%ymm0, %%ymm1, %%ymm2\n\t"
                     "vextracti128 $1, %%ymm2, %%xmm2\n\t")
REQUANT_DEFINE_TRIAL(RunAvxVnni, Quad, "ymm",
                     "vpxor %%ymm2, %%ymm2, %%ymm2\n\t"
                     "%{vex%} vpdpbusd %%ymm1, %%ymm0, %%ymm2\n\t")
// Uses F (512-bit broadcast), BW (vpmaddwd), DQ (vextracti32x8), VL (vprold).
REQUANT_DEFINE_TRIAL(RunAvx512, Pair, "zmm",
                     "vpmaddwd %%zmm0, %%zmm1, %%zmm2\n\t"
                     "vextracti32x8 $1, %%zmm2, %%ymm2\n\t"
                     "vprold $32, %%ymm2, %%ymm2\n\t")
REQUANT_DEFINE_TRIAL(RunAvx512Vnni, Quad, "zmm",
                     "vpxord %%zmm2, %%zmm2, %%zmm2\n\t"
                     "vpdpbusd %%zmm1, %%zmm0, %%zmm2\n\t")

#undef REQUANT_DEFINE_TRIAL

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
  // Linux gives tile registers only to processes that ask for them.
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return false;
  // Each of the three tiles (sum, unsigned, signed) is one row of four bytes.
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

// Returns zeros for a leaf that the CPU does not have.
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

// Returns the brand string with runs of spaces collapsed.
std::string ModelName(const CpuAnswers& answers) {
  char padded[3 * sizeof(CpuidWords) + 1] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const CpuidWords leaf = answers.cpuid(0x80000002 + i, 0);
    memcpy(padded + i * sizeof(leaf), &leaf, sizeof(leaf));
  }
  return absl::StrJoin(
      absl::StrSplit(std::string_view(padded), ' ', absl::SkipEmpty()), " ");
}

bool IsBroken(const InstructionSet& set) {
  return set.advertised && !set.works;
}

// Values of ONEDNN_MAX_CPU_ISA, ordered by what they allow. All others
// (AVX512_CORE_AMX, DEFAULT, …) allow more.
constexpr std::string_view kIsaCaps[] = {
    "SSE41",           "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE",
    "AVX512_CORE_VNNI"};

// Returns "" for a file that cannot be read.
std::string Read(const std::string& path) {
  return ReadFile(path, 1 << 20).value_or("");
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  int64_t number;
  if (!absl::SimpleAtoi(Read(path), &number)) return std::nullopt;
  return number;
}

// Returns the rest of the line that begins with `prefix`, or "".
std::string AfterPrefix(const std::string& text, const std::string& prefix) {
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, prefix)) return std::string(line);
  }
  return "";
}

// A control group.
struct Group {
  bool version_2;
  std::string folder;
};

void AddGroups(bool version_2, const std::string& mount, std::string path,
               std::vector<Group>* groups) {
  while (!path.empty() && path != "/") {
    groups->push_back({version_2, absl::StrCat(mount, path)});
    path = path.substr(0, path.rfind('/'));
  }
  groups->push_back({version_2, mount});
}

// Returns the groups that limit this process by `controller`, up to the root.
// If the process sees a path from outside its container, which does not exist
// inside, the root's files are the container's own. Lines of /proc/self/cgroup
// are "0::/path" (version 2) and "4:cpu,cpuacct:/path" (version 1, one per
// hierarchy).
std::vector<Group> GroupsOf(const MachineSources& sources,
                            std::string_view controller) {
  std::vector<Group> groups;
  const std::string text = Read(sources.proc + "/self/cgroup");
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || !absl::StartsWith(fields[2], "/")) continue;
    if (fields[1].empty()) {
      AddGroups(true, sources.cgroup, fields[2], &groups);
      continue;
    }
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (std::find(controllers.begin(), controllers.end(), controller) ==
        controllers.end()) {
      continue;
    }
    // The mount point is named after the controller or all of them, or one is a
    // link to the other.
    const std::string by_all = absl::StrCat(sources.cgroup, "/", fields[1]);
    const std::string by_one = absl::StrCat(sources.cgroup, "/", controller);
    const bool joint = access(by_all.c_str(), F_OK) == 0;
    AddGroups(false, joint ? by_all : by_one, fields[2], &groups);
  }
  return groups;
}

// Returns the cores that a group grants. Version 2's cpu.max has "200000
// 100000" for 2 cores and "max" for no limit; version 1 has each number in its
// own file and -1 for no limit.
std::optional<double> ReadQuota(const Group& group) {
  const std::string text =
      group.version_2
          ? Read(group.folder + "/cpu.max")
          : absl::StrCat(Read(group.folder + "/cpu.cfs_quota_us"), " ",
                         Read(group.folder + "/cpu.cfs_period_us"));
  const std::vector<std::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t quota, period;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &quota) ||
      !absl::SimpleAtoi(words[1], &period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(quota) / period;
}

// Returns the bytes given by a meminfo line like "MemAvailable:  23213924 kB".
std::optional<int64_t> MeminfoBytes(const std::string& meminfo,
                                    const std::string& field) {
  const std::string line = AfterPrefix(meminfo, field + ":");
  std::string_view number = line;
  int64_t kilobytes;
  if (!absl::ConsumeSuffix(&number, " kB") ||
      !absl::SimpleAtoi(number, &kilobytes) || kilobytes < 0 ||
      kilobytes > INT64_MAX / 1024) {
    return std::nullopt;
  }
  return kilobytes * 1024;
}

void TightenMemory(const Group& group, MemoryLimits* limits) {
  const auto& [version_2, folder] = group;
  // "No limit" is the largest number of pages in version 1 and "max", which is
  // not a number, in version 2.
  constexpr int64_t kUnlimited = int64_t{1} << 60;
  const auto limit = ReadNumber(
      folder + (version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
  if (!limit.has_value() || *limit <= 0 || *limit >= kUnlimited) return;
  const auto usage = ReadNumber(
      folder + (version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
  int64_t droppable;
  if (!absl::SimpleAtoi(
          AfterPrefix(Read(folder + "/memory.stat"),
                      version_2 ? "inactive_file " : "total_inactive_file "),
          &droppable)) {
    droppable = 0;
  }
  const int64_t free =
      std::clamp<int64_t>(*limit - usage.value_or(0) + droppable, 0, *limit);
  limits->group_limit = std::min(limits->group_limit.value_or(*limit), *limit);
  limits->group_available =
      std::min(limits->group_available.value_or(free), free);
}

int AllowedCores() {
  // The kernel determines the mask's size, and the call fails while ours is too
  // small.
  for (int cores = 1024; cores <= 1 << 20; cores *= 2) {
    cpu_set_t* mask = CPU_ALLOC(cores);
    if (mask == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(cores);
    const bool done = sched_getaffinity(0, size, mask) == 0;
    const int count = done ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (done) return std::max(1, count);
  }
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

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
  // Leaf 7 returns the number of its further subleaves in eax.
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
  // Leaf 1's ebx is left out because it differs between cores.
  const CpuidWords leaf1 = leaf(1);
  for (const uint64_t word :
       {uint64_t{leaf0.eax}, uint64_t{leaf1.eax}, uint64_t{leaf1.ecx},
        uint64_t{leaf7.ebx}, uint64_t{leaf7.ecx}, uint64_t{leaf7.edx},
        uint64_t{leaf7_1.eax}, uint64_t{leaf(0x1d).eax},
        uint64_t{leaf(0x1e).ebx}, answers.xcr0}) {
    absl::StrAppend(&features.answers, absl::Hex(word), " ");
  }
  return features;
}

CpuFeatures ProbeCpu() {
  return ProbeWith(ThisCpu(), [](bool (*action)()) {
    ForkedLimits limits;
    // One instruction takes nanoseconds; this only has to cover a child that
    // waits for a core on a busy machine.
    limits.stalled_seconds = 5;
    const auto result = RunForked(
        [action](const auto&) { return std::string(action() ? "yes" : ""); },
        limits);
    return result.ok() && result->output == "yes";
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
  // The caps are alternatives, not a sequence: AVX512_CORE_VNNI excludes
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
  const auto* found = std::find_if(std::begin(kIsaCaps), std::end(kIsaCaps),
                                   [&](std::string_view known) {
                                     return absl::EqualsIgnoreCase(known, cap);
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
  // Unless beyond_vnni, the first working step is oneDNN's default.
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
    if (absl::EqualsIgnoreCase(isa_cap, inexact)) return "avx2";
  }
  // Includes AVX2_VNNI_2.
  const bool short_vectors_only =
      absl::StartsWithIgnoreCase(isa_cap, "AVX2_VNNI");
  const bool exact = features.avx_vnni.works ||
                     (!short_vectors_only &&
                      (features.avx512_vnni.works || features.amx_int8.works));
  return exact ? "vnni" : "avx2";
}

int CoreLimits::usable() const {
  if (!quota.has_value()) return std::max(1, allowed);
  // Half a core more justifies a thread; a tenth does not.
  const double threads = std::min<double>(std::floor(*quota + 0.5), allowed);
  return std::max(1, static_cast<int>(threads));
}

std::optional<int64_t> MemoryLimits::usable() const {
  if (!available.has_value()) return group_available;
  return std::min(*available, group_available.value_or(*available));
}

CoreLimits ReadCoreLimits(const MachineSources& sources) {
  CoreLimits limits;
  limits.allowed = AllowedCores();
  for (const Group& group : GroupsOf(sources, "cpu")) {
    const std::optional<double> quota = ReadQuota(group);
    if (!quota.has_value()) continue;
    limits.quota = std::min(limits.quota.value_or(*quota), *quota);
  }
  return limits;
}

MemoryLimits ReadMemoryLimits(const MachineSources& sources) {
  MemoryLimits limits;
  const std::string meminfo = Read(sources.proc + "/meminfo");
  limits.total = MeminfoBytes(meminfo, "MemTotal");
  limits.available = MeminfoBytes(meminfo, "MemAvailable");
  for (const Group& group : GroupsOf(sources, "memory")) {
    TightenMemory(group, &limits);
  }
  return limits;
}

}  // namespace requant
