#include "base/process/tensorflow_child.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/files/file.h"
#include "base/files/sha256.h"
#include "base/status_macros.h"

namespace requant {
namespace {

constexpr char kCapVariable[] = "ONEDNN_MAX_CPU_ISA";
constexpr char kOneDnnVariable[] = "TF_ENABLE_ONEDNN_OPTS";

// Holds the value of kCapVariable if one of our programs set it, so that its
// children do not mistake it for the user's.
constexpr char kOwnCapVariable[] = "REQUANT_ONEDNN_CAP";

constexpr std::time_t kRememberedSeconds = 30 * 24 * 3600;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the folder for disposable files, where ./requant also keeps its own,
// or "" if the user has none.
std::string CacheFolder() {
  if (const std::string cache = Variable("XDG_CACHE_HOME"); !cache.empty()) {
    return absl::StrCat(cache, "/requant");
  }
  const std::string home = Variable("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.cache/requant");
}

// This machine's cap and the file that stores it.
class MachineCap {
 public:
  static MachineCap& Get() {
    static auto* const cap = new MachineCap;
    return *cap;
  }

  // Other processes may have found a lower one meanwhile.
  std::string Value() {
    const absl::MutexLock lock(&mutex_);
    const std::string remembered = memory_.Recall(std::time(nullptr));
    if (!remembered.empty()) value_ = remembered;
    return value_;
  }

  // Returns the cap to try after a child died under `cap`: one that another
  // process has found to work, else the next lower one, or "" if there is none.
  std::string LowerThan(const std::string& cap) {
    std::string known = Value();
    if (IsaCapRank(known) < IsaCapRank(cap)) return known;
    return LowerIsaCap(ProbeCpu(), cap);
  }

  void Keep(const std::string& cap) {
    const absl::MutexLock lock(&mutex_);
    value_ = cap;
    memory_.Remember(cap, std::time(nullptr));
  }

 private:
  MachineCap() : MachineCap(AdvertisedBy(ThisCpu())) {}
  explicit MachineCap(const CpuFeatures& advertised)
      : memory_(CacheFolder(), advertised, REQUANT_TENSORFLOW_VERSION),
        value_(advertised.avx512.advertised || advertised.amx_int8.advertised
                   ? OneDnnIsaCap(ProbeCpu())
                   : "") {}

  const IsaCapMemory memory_;
  absl::Mutex mutex_;
  std::string value_ ABSL_GUARDED_BY(mutex_);
};

using Environment = std::vector<std::pair<std::string, std::string>>;

Environment EnvironmentWithCap(const std::string& cap) {
  Environment environment;
  if (!cap.empty()) {
    environment.emplace_back(kCapVariable, cap);
    if (UsersIsaCap().empty()) environment.emplace_back(kOwnCapVariable, cap);
  }
  if (std::getenv(kOneDnnVariable) == nullptr) {
    environment.emplace_back(kOneDnnVariable, "1");
  }
  return environment;
}

absl::StatusOr<ChildResult> RunWithCap(const std::string& cap,
                                       ChildOptions options) {
  for (auto& variable : EnvironmentWithCap(cap)) {
    options.environment.push_back(std::move(variable));
  }
  return RunChild(options);
}

}  // namespace

std::string UsersIsaCap() {
  for (const char* name : {kCapVariable, "DNNL_MAX_CPU_ISA"}) {
    const std::string value = Variable(name);
    if (!value.empty() && value != Variable(kOwnCapVariable)) return value;
  }
  return "";
}

std::string CachedOneDnnIsaCap() {
  const std::string users = UsersIsaCap();
  return users.empty() ? MachineCap::Get().Value() : users;
}

Environment TensorFlowEnvironment() {
  return EnvironmentWithCap(CachedOneDnnIsaCap());
}

std::string ServingVariables() {
  // This child may be the second try, with a cap that is not stored yet.
  const std::string own = Variable(kOwnCapVariable);
  const std::string cap = !own.empty() && own == Variable(kCapVariable)
                              ? own
                              : MachineCap::Get().Value();
  std::string variables =
      cap.empty() ? "" : absl::StrCat(kCapVariable, "=", cap);
  if (TensorFlowLeavesOneDnnOff(AdvertisedBy(ThisCpu()))) {
    absl::StrAppend(&variables, variables.empty() ? "" : " ", kOneDnnVariable,
                    "=1");
  }
  return variables;
}

std::string ServingHint() {
  const std::string variables = ServingVariables();
  return absl::StrCat(
      variables.empty()
          ? "A stock TensorFlow serves it on this machine as it is"
          : absl::StrCat("To serve it on this machine, set ", variables,
                         " before TensorFlow loads"),
      "; for other CPUs see docs/quantization.md, \"Serving the graph\".");
}

absl::StatusOr<ChildResult> RunTensorFlowChild(
    ChildOptions options,
    const std::function<void(const std::string& sentence,
                             const ChildResult& died)>& start_over) {
  const std::string cap = CachedOneDnnIsaCap();
  REQUANT_ASSIGN_OR_RETURN(const ChildResult died, RunWithCap(cap, options));
  if (died.signal != SIGILL || died.interrupted_by != 0 ||
      !UsersIsaCap().empty()) {
    return died;
  }
  const std::string lower = MachineCap::Get().LowerThan(cap);
  if (lower.empty()) return died;
  start_over(
      absl::StrCat("TensorFlow died of an instruction that this CPU does not "
                   "run (SIGILL); trying again with ",
                   kCapVariable, "=", lower,
                   ", which is kept for this machine if it helps"),
      died);
  REQUANT_ASSIGN_OR_RETURN(const ChildResult result,
                           RunWithCap(lower, std::move(options)));
  if (result.exit_code >= 0) MachineCap::Get().Keep(lower);
  return result;
}

IsaCapMemory::IsaCapMemory(const std::string& folder, const CpuFeatures& cpu,
                           const std::string& tensorflow)
    : folder_(folder) {
  if (folder_.empty()) return;
  const std::string machine = Sha256(absl::StrCat(
      cpu.vendor, "\n", cpu.model, "\n", cpu.answers, "\n", tensorflow));
  path_ = absl::StrCat(folder_, "/onednn_cap-", machine.substr(0, 16));
}

std::string IsaCapMemory::Recall(std::time_t now) const {
  constexpr int64_t kLongest = 100;
  if (path_.empty()) return "";
  const absl::StatusOr<std::string> content = ReadFile(path_, kLongest);
  if (!content.ok()) return "";
  const std::vector<std::string_view> words =
      absl::StrSplit(*content, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t when;
  const bool valid = words.size() == 2 && absl::SimpleAtoi(words[1], &when) &&
                     when <= now && now - when < kRememberedSeconds &&
                     IsaCapRank(words[0]) < IsaCapRank("");
  return valid ? std::string(words[0]) : "";
}

void IsaCapMemory::Remember(const std::string& cap, std::time_t now) const {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  // A machine that cannot store the cap finds it again each time.
  (void)WriteFileAtomically(path_, absl::StrCat(cap, " ", now, "\n"));
}

void EnterTensorFlowEnvironment(char** argv) {
  bool complete = true;
  for (const auto& [name, value] : TensorFlowEnvironment()) {
    if (Variable(name.c_str()) == value) continue;
    setenv(name.c_str(), value.c_str(), 1);
    complete = false;
  }
  if (!complete) execv("/proc/self/exe", argv);
}

}  // namespace requant
