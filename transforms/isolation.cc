#include "transforms/isolation.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/subprocess.h"

namespace requant {
namespace {

constexpr char kChildVariable[] = "REQUANT_ISOLATED_CHILD";

// Lines that TensorFlow's libraries print whatever a program does.
bool IsNoise(std::string_view line) {
  for (std::string_view known :
       {"All log messages before absl::InitializeLog()",
        "oneDNN custom operations are on",
        "This TensorFlow binary is optimized to use available CPU",
        "To enable the following instructions"}) {
    if (absl::StrContains(line, known)) return true;
  }
  return false;
}

// Passes a child's stderr on, but keeps the report of a failed CHECK and the
// stack trace behind it for the sentence about its death.
class StderrFilter {
 public:
  void Line(std::string_view line) {
    if (dying_ || IsNoise(line)) return;
    const size_t check = line.find("Check failed: ");
    const bool fatal =
        !line.empty() && line[0] == 'F' && absl::StrContains(line, "] ");
    const bool terminate = absl::StartsWith(line, "terminate called");
    if (fatal || terminate || check != std::string_view::npos) {
      dying_ = true;
      reason_ = std::string(check != std::string_view::npos ? line.substr(check)
                            : fatal ? line.substr(line.find("] ") + 2)
                                    : line);
      return;
    }
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  }
  const std::string& reason() const { return reason_; }

 private:
  bool dying_ = false;
  std::string reason_;
};

std::string DeathSentence(const IsolationOptions& options,
                          const ChildResult& result,
                          const std::string& activity,
                          const std::string& reason) {
  return absl::StrCat(
      activity.empty() ? "the work" : activity, " ",
      DescribeEnd(result, options.timeout_seconds),
      options.subject.empty() ? "" : absl::StrCat(" on ", options.subject),
      reason.empty() ? "" : absl::StrCat(": ", reason), "; nothing was written",
      result.timed_out ? " (--timeout sets the limit)" : "");
}

}  // namespace

bool IsIsolatedChild() { return std::getenv(kChildVariable) != nullptr; }

void SetActivity(const std::string& activity) { ReportToParent(activity); }

int RunIsolated(const IsolationOptions& options) {
  const auto path = OwnPath();
  if (!path.ok()) return ReportFailure(options.program, path.status());
  ChildOptions child;
  child.argv = {*path};
  child.argv.insert(child.argv.end(), options.arguments.begin(),
                    options.arguments.end());
  child.environment = TensorFlowEnvironment();
  child.environment.emplace_back(kChildVariable, "1");
  if (std::getenv("TF_CPP_MIN_LOG_LEVEL") == nullptr) {
    child.environment.emplace_back("TF_CPP_MIN_LOG_LEVEL", "1");
  }
  child.timeout_seconds = options.timeout_seconds;
  StderrFilter filter;
  std::string activity;
  child.on_stderr = [&](std::string_view line) { filter.Line(line); };
  child.on_report = [&](std::string_view line) { activity = line; };
  const auto result = RunChild(child);
  if (!result.ok()) return ReportFailure(options.program, result.status());
  if (result->exit_code >= 0 && result->exit_code != 127) {
    return result->exit_code;
  }
  for (const std::string& output : options.outputs) {
    unlink(TemporaryName(output, result->pid).c_str());
  }
  if (result->interrupted_by != 0) {
    std::fprintf(stderr, "%s: interrupted; nothing was written\n",
                 options.program.c_str());
    return 128 + result->interrupted_by;
  }
  return ReportFailure(options.program,
                       absl::InternalError(DeathSentence(
                           options, *result, activity, filter.reason())));
}

}  // namespace requant
