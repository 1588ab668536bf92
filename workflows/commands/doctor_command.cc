#include "workflows/commands/doctor_command.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/process/machine.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/terminal_guard.h"
#include "runtime/session/tensorflow_check.h"
#include "workflows/commands/doctor.h"
#include "workflows/commands/format_flag.h"

namespace requant {
namespace {

constexpr char kDoctorProgram[] = "requant doctor";

// The library's 788 MB may have to come from a slow disk.
constexpr double kTensorFlowSeconds = 120;
// A client whose engine hangs waits for ever.
constexpr double kContainerSeconds = 5;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status InterruptedError() { return absl::CancelledError("interrupted"); }

void TakeReport(std::string_view line, TensorFlowProbe* probe) {
  if (absl::ConsumePrefix(&line, "version ")) {
    probe->version = std::string(line);
  } else if (absl::ConsumePrefix(&line, "int8 ")) {
    probe->int8 = line == "exact" ? TensorFlowProbe::kExact
                                  : TensorFlowProbe::kSaturating;
  } else if (absl::ConsumePrefix(&line, "failure ")) {
    probe->failure = std::string(line);
  }
}

// Runs int8 layers in a child: a stock process, or one as requant's own are.
absl::StatusOr<TensorFlowProbe> ProbeTensorFlow(bool stock) {
  TensorFlowProbe probe;
  const std::string one_dnn = Environment("TF_ENABLE_ONEDNN_OPTS");
  probe.one_dnn_is_off = one_dnn == "0" || one_dnn == "false";
  REQUANT_ASSIGN_OR_RETURN(const std::string self, OwnPath());
  ChildOptions options;
  options.argv = {self, kTensorFlowCheckCommand};
  options.timeout_seconds = kTensorFlowSeconds;
  options.on_report = [&](std::string_view line) { TakeReport(line, &probe); };
  // TensorFlow's notices are not for this report; its errors come as a failure.
  options.on_stderr = [](std::string_view) {};
  options.on_stdout = [](std::string_view) {};
  const auto start_over = [&](const std::string&, const ChildResult&) {
    probe.version.clear();
  };
  REQUANT_ASSIGN_OR_RETURN(
      const ChildResult result,
      stock ? RunChild(options) : RunTensorFlowChild(options, start_over));
  if (result.interrupted_by != 0) return InterruptedError();
  if (probe.failure.empty()) {
    probe.failure = absl::StrCat("the process ", DescribeEnd(result, options));
  }
  return probe;
}

std::optional<std::string> FindInPath(const std::string& program) {
  const std::string path = Environment("PATH");
  for (std::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    std::string candidate = absl::StrCat(folder, "/", program);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

// Asks `program` for the version that the Go template `field` names.
absl::StatusOr<ContainerClient> ProbeContainers(const std::string& program,
                                                const std::string& field) {
  ContainerClient client;
  const std::optional<std::string> path = FindInPath(program);
  if (!path.has_value()) return client;
  client.installed = true;
  ChildOptions options;
  options.argv = {*path, "version", "--format",
                  absl::StrCat("{{", field, "}}")};
  options.timeout_seconds = kContainerSeconds;
  options.on_stdout = [&](std::string_view line) {
    if (client.version.empty()) client.version = std::string(line);
  };
  options.on_stderr = [&](std::string_view line) {
    if (client.failure.empty()) client.failure = std::string(line);
  };
  REQUANT_ASSIGN_OR_RETURN(const ChildResult result, RunChild(options));
  if (result.interrupted_by != 0) return InterruptedError();
  if (result.exit_code != 0) client.version.clear();
  if (client.failure.empty()) {
    client.failure =
        absl::StrCat(program, " version ", DescribeEnd(result, options));
  }
  return client;
}

DiskSpace ProbeDisk() {
  DiskSpace disk;
  struct statvfs info;
  if (statvfs(".", &info) == 0) {
    disk.available_bytes = static_cast<int64_t>(info.f_bavail) * info.f_frsize;
  }
  disk.writable = access(".", W_OK) == 0;
  return disk;
}

void Append(std::vector<Check> more, std::vector<Check>* checks) {
  checks->insert(checks->end(), more.begin(), more.end());
}

absl::StatusOr<std::vector<Check>> Examine() {
  const CpuFeatures features = ProbeCpu();
  // First: it may find out that this machine needs a cap.
  REQUANT_ASSIGN_OR_RETURN(const TensorFlowProbe tensorflow,
                           ProbeTensorFlow(/*stock=*/false));
  std::vector<Check> checks = CheckCpu(features);
  const std::string users_cap = UsersIsaCap();
  checks.push_back(CheckIsaCap(
      users_cap.empty() ? CachedOneDnnIsaCap() : OneDnnIsaCap(features),
      users_cap));
  checks.push_back(CheckCores(ReadCoreLimits()));
  checks.push_back(CheckMemory(ReadMemoryLimits()));
  checks.push_back(CheckDisk(ProbeDisk()));
  Append(CheckTensorFlow(tensorflow, REQUANT_TENSORFLOW_VERSION, features),
         &checks);
  if (!tensorflow.version.empty() && !tensorflow.one_dnn_is_off) {
    REQUANT_ASSIGN_OR_RETURN(const TensorFlowProbe stock,
                             ProbeTensorFlow(/*stock=*/true));
    checks.push_back(CheckStock(stock, features, ServingVariables()));
  }
  REQUANT_ASSIGN_OR_RETURN(const ContainerClient docker,
                           ProbeContainers("docker", ".Server.Version"));
  REQUANT_ASSIGN_OR_RETURN(const ContainerClient podman,
                           ProbeContainers("podman", ".Client.Version"));
  Append(CheckContainers(docker, podman), &checks);
  return checks;
}

}  // namespace

int RunDoctorCommand(const std::vector<std::string>& args) {
  const ProgramHelp help = {
      kDoctorProgram,
      "looks at this machine and says what int8 models can expect of it: CPU "
      "features as tried in a child process, memory, TensorFlow, Docker.",
      "requant doctor\nrequant doctor --format=json",
      {OutputFormatFlagFile()},
      "Exit code: 0 when no check is an error, else 1."};
  std::vector<std::string> positional;
  if (auto code = ParseFlags(args, help, &positional)) return *code;
  if (!positional.empty()) {
    return ReportUsage(kDoctorProgram, absl::StrCat("unexpected argument \"",
                                                    positional[0], "\""));
  }
  if (OutputFormatFlag() != "text" && OutputFormatFlag() != "json") {
    return ReportUsage(kDoctorProgram,
                       absl::StrCat("--format is text or json, not \"",
                                    OutputFormatFlag(), "\""));
  }
  const absl::StatusOr<std::vector<Check>> checks = Examine();
  if (!checks.ok()) return ReportFailure(kDoctorProgram, checks.status());
  const bool color = isatty(STDOUT_FILENO) && Environment("NO_COLOR").empty();
  const std::string text = OutputFormatFlag() == "json"
                               ? RenderJson(*checks)
                               : RenderText(*checks, color);
  PrintStyled(stdout, text);
  return WorstStatus(*checks) == CheckStatus::kError ? kExitFailed : kExitOk;
}

int RunTensorFlowCheckCommand(const std::vector<std::string>&) {
  const absl::StatusOr<std::string> version = LoadedTensorFlowVersion();
  if (!version.ok()) {
    ReportToParent(absl::StrCat("failure ", version.status().message()));
    return kExitFailed;
  }
  ReportToParent(absl::StrCat("version ", *version));
  const absl::StatusOr<Int8Sums> sums = RunInt8Layers();
  if (!sums.ok()) {
    ReportToParent(absl::StrCat("failure ", sums.status().message()));
    return kExitFailed;
  }
  ReportToParent(*sums == Int8Sums::kExact ? "int8 exact" : "int8 saturating");
  return kExitOk;
}

}  // namespace requant
