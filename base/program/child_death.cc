#include "base/program/child_death.h"

#include <signal.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace requant {
namespace {

// Explains why an instruction may be illegal on this machine.
std::string IllegalInstructionHint(const CpuFeatures& cpu) {
  std::vector<std::string> broken;
  const auto add = [&](const InstructionSet& set, const char* name) {
    if (set.advertised && !set.works) broken.push_back(name);
  };
  add(cpu.avx2, "AVX2");
  add(cpu.avx_vnni, "AVX-VNNI");
  add(cpu.avx512, "AVX-512");
  add(cpu.avx512_vnni, "AVX512-VNNI");
  add(cpu.amx_int8, "AMX");
  if (broken.empty()) {
    return "an operation was compiled for another CPU; requant doctor shows "
           "what this one can do";
  }
  std::string hint =
      absl::StrCat("this CPU advertises ", absl::StrJoin(broken, " and "),
                   " and does not run it");
  const std::string cap = OneDnnIsaCap(cpu);
  if (!cap.empty()) {
    absl::StrAppend(&hint, "; ONEDNN_MAX_CPU_ISA=", cap,
                    " keeps oneDNN away from it");
  }
  return hint;
}

// Returns whether the system may have killed the child, by a SIGKILL that this
// process did not send.
bool WasKilledFromOutside(const ChildResult& result) {
  return result.signal == SIGKILL && !result.timed_out && !result.stalled &&
         !result.over_memory;
}

// Near its memory limit a process may also be refused memory and abort.
bool WasRefusedMemory(const ChildDeath& death, std::string_view last_words) {
  return death.result.signal == SIGABRT && death.options.memory_bytes > 0 &&
         absl::StrContains(last_words, "std::bad_alloc");
}

// Returns the most informative line of a log: the report of a failed check, or
// else the last line that is not noise.
std::string LastWords(std::string_view log_tail) {
  constexpr size_t kLongest = 300;
  std::string last, reason;
  for (std::string_view line : absl::StrSplit(log_tail, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || IsTensorFlowNoise(line)) continue;
    if (IsLastWord(line, &reason)) return reason;
    last = std::string(line.substr(0, kLongest));
  }
  return last;
}

std::string LimitFlag(const ChildResult& result) {
  if (result.timed_out) return " (--timeout sets the limit)";
  if (result.stalled) return " (--stall_timeout sets the limit)";
  if (result.over_memory) return " (--memory_limit sets the limit)";
  return "";
}

}  // namespace

bool IsTensorFlowNoise(std::string_view line) {
  for (std::string_view known :
       {"All log messages before absl::InitializeLog()",
        "oneDNN custom operations are on",
        "This TensorFlow binary is optimized to use available CPU",
        "To enable the following instructions",
        "contains invalid UTF-8 data when parsing a protocol buffer"}) {
    if (absl::StrContains(line, known)) return true;
  }
  return false;
}

bool IsLastWord(std::string_view line, std::string* reason) {
  const size_t check = line.find("Check failed: ");
  const bool fatal =
      absl::StartsWith(line, "F") && absl::StrContains(line, "] ");
  if (check != std::string_view::npos) {
    line.remove_prefix(check);
  } else if (fatal) {
    line.remove_prefix(line.find("] ") + 2);
  } else if (!absl::StartsWith(line, "terminate called")) {
    return false;
  }
  // Protobuf's debug marker and the first line of the message that follows it
  // mean nothing to a user.
  line = line.substr(0, line.find(" in goo.gle/debug"));
  *reason = std::string(absl::StripAsciiWhitespace(line));
  return true;
}

std::string ExplainDeath(const ChildDeath& death,
                         const std::function<CpuFeatures()>& probe) {
  ChildResult result = death.result;
  std::string last = LastWords(death.log_tail);
  if (WasRefusedMemory(death, last)) {
    result.over_memory = true;
    last.clear();
  }
  std::string sentence =
      absl::StrCat(death.activity, " failed: the worker process ",
                   DescribeEnd(result, death.options),
                   death.names_flags ? LimitFlag(result) : "");
  if (result.signal == SIGILL) {
    absl::StrAppend(&sentence, ": ", IllegalInstructionHint(probe()));
  }
  if (WasKilledFromOutside(result)) {
    absl::StrAppend(&sentence, "; it held ",
                    result.peak_memory_bytes / 1'000'000,
                    " MB at most: a smaller --batch_size may help");
  }
  if (!last.empty()) absl::StrAppend(&sentence, "; its last words: ", last);
  if (death.log_path.empty()) return sentence;
  return absl::StrCat(sentence, "; its log: ", death.log_path);
}

}  // namespace requant
