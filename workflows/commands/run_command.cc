#include <gflags/gflags.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/process/tensorflow_child.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "base/terminal_guard.h"
#include "base/text/printable.h"
#include "workflows/commands/commands.h"
#include "workflows/display/run_conclusion.h"
#include "workflows/display/run_display.h"
#include "workflows/plan/plan.h"
#include "workflows/report/run_folder.h"
#include "workflows/run/run_record.h"
#include "workflows/run/runner.h"
#include "workflows/run/stage_store.h"

DEFINE_string(only, "",
              "Do only these stages, separated by commas, and what they need.");
DEFINE_string(from, "",
              "Do these stages, separated by commas, and everything after "
              "them again.");
DEFINE_string(force, "",
              "Do everything again; --force=STAGE,...: only these stages.");
DEFINE_bool(keep_going, false,
            "After a failure go on with what does not depend on it.");
DEFINE_int32(jobs, 0,
             "Stages to work on side by side; 0: as many as help. Evaluations "
             "use all cores and run alone.");
DEFINE_double(cache_gb, 20,
              "Once the run has ended, the least recently used results of "
              "former runs are removed from the work folder until this many GB "
              "remain. What this run used, and what stopped runs need to go "
              "on, always stays. 0: no limit.");
DEFINE_bool(dry_run, false, "Only say what would run, and why.");
DEFINE_bool(strict, false,
            "Stop, with exit code 3, also when a gate's verdict is not "
            "certain.");
DEFINE_string(tamper, "",
              "STAGE=PROGRAM: to see what the gates catch, let PROGRAM edit "
              "the stage's outputs, which are its arguments, before anything "
              "reads them; may be given several times.");

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr char kRunProgram[] = "requant run";
constexpr int kMostJobs = 1024;
// What a bare --force stands for; no stage can have this name.
constexpr char kEverything[] = "*";

ProgramHelp RunHelp() {
  ProgramHelp help;
  help.name = kRunProgram;
  help.summary =
      "runs a workflow stage by stage, verifies each stage's graph, and leaves "
      "graphs and a report in a folder. What a former run did is not done "
      "again. FILE is a path or the name of a workflow that comes with "
      "Requant; wide_deep unless given.";
  help.usage =
      "requant run [FILE] [--set NAME=VALUE ...]\n"
      "requant run wide_deep --set eval_records=20000 --only fuse\n"
      "requant run my.textproto --from=quantize --keep_going";
  help.flag_files = {__FILE__, OutputFlagFile(), WorkflowFlagsFile()};
  help.aliases = {{"out", "output"}};
  help.descriptions = {
      {"output", "The folder for the results; empty: out/WORKFLOW/TIME."}};
  help.footer =
      "Exit codes: 0 done and within all limits, 1 failed, 2 wrong usage, 3 a "
      "gate failed, 130 interrupted.";
  return help;
}

std::set<std::string> NameSet(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

absl::StatusOr<RunOptions> OptionsFromFlags(
    const Plan& plan, const std::map<std::string, std::string>& tampers) {
  RunOptions options;
  options.choice.only = NameSet(FLAGS_only);
  options.choice.from = NameSet(FLAGS_from);
  options.choice.force_all = FLAGS_force == kEverything;
  if (!options.choice.force_all) options.choice.force = NameSet(FLAGS_force);
  std::set<std::string> tampered;
  for (const auto& [stage, program] : tampers) {
    tampered.insert(stage);
    if (program.empty()) {
      return absl::InvalidArgumentError("--tamper takes STAGE=PROGRAM");
    }
  }
  for (const auto& names : {options.choice.only, options.choice.from,
                            options.choice.force, tampered}) {
    REQUANT_RETURN_IF_ERROR(CheckStageNames(plan, names));
  }
  options.keep_going = FLAGS_keep_going;
  options.strict = FLAGS_strict;
  options.jobs = FLAGS_jobs;
  options.tamper = tampers;
  return options;
}

std::string HomeOf(const Plan& plan) {
  return absl::StrCat("out/", plan.file.workflow.name());
}

std::string WorkDirOf(const Plan& plan, const std::string& flag) {
  return flag.empty() ? absl::StrCat(HomeOf(plan), "/work") : flag;
}

// Returns "out" for "out//", but "/" for "/".
std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string CommandLineOf(const std::vector<std::string>& args) {
  std::string line = kRunProgram;
  for (const std::string& arg : args) {
    absl::StrAppend(&line, " ", ShellQuoted(arg));
  }
  return line;
}

// Returns `args` without --force and --from, which would repeat finished work.
std::vector<std::string> ArgumentsToResume(
    const std::vector<std::string>& args) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string_view name = args[i];
    const bool is_flag = absl::ConsumePrefix(&name, "-");
    absl::ConsumePrefix(&name, "-");
    if (is_flag && name == "from") ++i;
    if (is_flag &&
        (name == "force" || name == "from" ||
         absl::StartsWith(name, "force=") || absl::StartsWith(name, "from="))) {
      continue;
    }
    rest.push_back(args[i]);
  }
  return rest;
}

// Returns the program that people call: ./requant if it started this one.
std::string FrontDoor(const RunMachine& machine) {
  const char* home = std::getenv("REQUANT_HOME");
  if (home == nullptr) return machine.own_path;
  const std::string front = absl::StrCat(home, "/requant");
  return access(front.c_str(), X_OK) == 0 ? front : machine.own_path;
}

// Reports a failure but does not fail: the run's results do not depend on it.
void Prune(StageStore* store) {
  if (FLAGS_cache_gb == 0) return;
  PruneLimits limits;
  limits.max_bytes = static_cast<int64_t>(FLAGS_cache_gb * 1e9);
  const absl::StatusOr<Pruned> pruned = PruneStore(limits, store);
  if (!pruned.ok()) {
    ReportFailure(kRunProgram, pruned.status());
  } else if (pruned->results > 0) {
    Say(kRunProgram, absl::StrCat(PrunedText(*pruned), " from ",
                                  store->folder(), ", which keeps at most ",
                                  FLAGS_cache_gb, " GB (--cache_gb)"));
  }
}

// Prints how the run ended. `report` and `resume` are those of
// RunConclusionOptions.
void Tell(const Plan& plan, const RunResult& result, const std::string& report,
          const std::string& resume) {
  RunConclusionOptions options;
  if (isatty(STDOUT_FILENO) != 0) {
    options.columns = ProgressEnvironment::Stderr().columns();
    options.color = ColorIsWelcome();
  }
  options.report = report;
  options.resume = resume;
  for (const Stage& stage : plan.file.workflow.stage()) {
    if (stage.has_quantize()) options.serving = ServingHint();
  }
  PrintStyled(stdout, RunConclusion(result.record, options));
  if (result.cached == result.tasks && result.tasks > 0) {
    std::printf(
        "Nothing had to run: %s done before.\n",
        result.tasks == 1
            ? "the one task was"
            : absl::StrCat("all ", result.tasks, " tasks were").c_str());
  }
  if (result.interrupted_by != 0) {
    std::printf("%d of %d tasks are done.\n", result.done, result.tasks);
  }
}

// Runs the plan, writes the run's folder, and returns the exit code. `args` are
// the command's.
absl::StatusOr<int> RunAndTell(const Plan& plan, RunOptions options,
                               const std::string& work_dir,
                               const std::vector<std::string>& args) {
  const std::string command = CommandLineOf(args);
  const bool named = !OutputFlag().empty();
  const std::string folder = named ? WithoutSlashes(OutputFlag())
                                   : NewRunFolder(HomeOf(plan), absl::Now());
  REQUANT_RETURN_IF_ERROR(PrepareRunFolder(folder, work_dir));
  options.run_folder = folder;
  REQUANT_ASSIGN_OR_RETURN(const RunMachine machine, ThisMachine());
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<StageStore> store,
                           StageStore::OpenForRun(work_dir, command));
  RunRecord record = StartRecord(plan, machine);
  record.set_run(fs::path(folder).filename().string());
  record.set_command(command);
  const std::unique_ptr<RunObserver> display =
      MakeStderrDisplay(/*erase_at_end=*/isatty(STDOUT_FILENO) != 0);
  REQUANT_ASSIGN_OR_RETURN(const RunResult result,
                           RunPlan(plan, machine, options, std::move(record),
                                   store.get(), display.get()));
  const absl::Status filled =
      FillRunFolder(plan, result, *store, FrontDoor(machine), folder);
  if (filled.ok() && !named) {
    // The link is only a convenience.
    (void)LinkLatest(absl::StrCat(HomeOf(plan), "/latest"), folder);
  }
  Tell(plan, result, filled.ok() ? absl::StrCat(folder, "/report.html") : "",
       CommandLineOf(ArgumentsToResume(args)));
  REQUANT_RETURN_IF_ERROR(filled);
  if (result.interrupted_by == 0) {
    store->RunEnded(/*finished=*/result.done == result.tasks);
  }
  // A run that did not finish may resume with results that it has yet to use.
  if (result.done == result.tasks) Prune(store.get());
  return ExitCodeOf(result, options.strict);
}

}  // namespace

int RunRunCommand(const std::vector<std::string>& args) {
  std::vector<std::string> rest = args;
  for (std::string& arg : rest) {
    if (arg == "--force" || arg == "-force") {
      arg = absl::StrCat("--force=", kEverything);
    }
  }
  const auto tampers = TakePairs("tamper", "STAGE=PROGRAM", &rest);
  if (!tampers.ok()) {
    return ReportUsage(kRunProgram, tampers.status().message());
  }
  WorkflowFlags flags;
  if (auto code = ParseWorkflowFlags(rest, RunHelp(), &flags)) return *code;
  if (FLAGS_jobs < 0 || FLAGS_jobs > kMostJobs) {
    return ReportUsage(kRunProgram,
                       absl::StrCat("--jobs is from 0 to ", kMostJobs));
  }
  if (!(FLAGS_cache_gb >= 0 && FLAGS_cache_gb < 1e9)) {
    return ReportUsage(kRunProgram, "--cache_gb is a number of GB, or 0");
  }
  const absl::StatusOr<Plan> plan = PlanOf(flags);
  if (!plan.ok()) return ReportMistakes(kRunProgram, plan.status());
  const absl::StatusOr<RunOptions> options = OptionsFromFlags(*plan, *tampers);
  if (!options.ok())
    return ReportUsage(kRunProgram, options.status().message());
  if (FLAGS_dry_run) {
    const auto states = FindTaskStates(*plan, flags.work_dir, *options);
    if (!states.ok()) return ReportFailure(kRunProgram, states.status());
    std::fputs(PlanAsText(*plan, *states).c_str(), stdout);
    return kExitOk;
  }
  const absl::StatusOr<int> exit_code =
      RunAndTell(*plan, *options, WorkDirOf(*plan, flags.work_dir), args);
  if (!exit_code.ok()) return ReportFailure(kRunProgram, exit_code.status());
  return *exit_code;
}

absl::StatusOr<std::vector<TaskOutlook>> FindTaskStates(
    const Plan& plan, const std::string& work_dir, const RunOptions& options) {
  REQUANT_ASSIGN_OR_RETURN(const RunMachine machine, ThisMachine());
  const std::unique_ptr<StageStore> store =
      StageStore::OpenToLook(WorkDirOf(plan, work_dir));
  return LookAhead(plan, machine, options, store.get());
}

}  // namespace requant
