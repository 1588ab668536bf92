#include "workflows/run/task_maker.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/files/sha256.h"
#include "base/process/sibling_program.h"
#include "base/process/subprocess.h"
#include "base/program/child_death.h"
#include "base/program/flags.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"
#include "workflows/language/stage_fields.h"

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;

// A report needs no more of a program's lines than this.
constexpr int kMostNotes = 200;

// The bytes of a row in the largest format of synthesized data.
constexpr double kBytesPerRow = 800;
constexpr double kReservedBytes = 64 << 20;

struct TaskWork {
  const Task* task = nullptr;
  // Where the outputs will be, in the order of the task's outputs.
  std::vector<std::string> output_paths;
  // The folder that they are in; messages leave it out.
  std::string folder;
};

// Runs one of a task's programs and records what it says.
class ProgramRun {
 public:
  ProgramRun(const TaskWork& work, const TaskWatch& watch, TaskRecord* record)
      : work_(work), watch_(watch), record_(record) {}

  absl::Status Run(const TaskCommand& command, const RunMachine& machine) {
    const Program& program = *FindProgram(command.command);
    name_ = program.name();
    ChildOptions options;
    REQUANT_ASSIGN_OR_RETURN(
        const std::string path,
        SiblingProgram(machine.own_path, program.folder(), program.name()));
    options.argv = {path};
    for (const TaskArgument& arg : command.args) {
      options.argv.push_back(arg.Text());
    }
    options.environment = machine.environment;
    options.environment.emplace_back(kProgressVariable,
                                     absl::StrCat(kReportFd));
    options.on_report = [this](std::string_view line) { Report(line); };
    int out = -1;
    absl::Cleanup close_out = [&] {
      if (out >= 0) close(out);
    };
    other_success_ = program.other_success();
    if (command.stdout_file.empty()) {
      const bool keep = program.prints_notes();
      options.on_stdout = [this, keep](std::string_view line) {
        if (keep) AddNote(line);
      };
    } else {
      out = open(command.stdout_file.c_str(),
                 O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
      if (out < 0) {
        return absl::FailedPreconditionError(
            absl::StrCat("cannot write ", Shown(command.stdout_file), ": ",
                         std::strerror(errno)));
      }
      options.stdout_fd = out;
    }
    REQUANT_RETURN_IF_ERROR(RunToItsEnd(options));
    if (!command.stdout_file.empty() && program.prints_notes()) {
      std::ifstream printed(command.stdout_file);
      for (std::string line; std::getline(printed, line);) AddNote(line);
    }
    return absl::OkStatus();
  }

  absl::Status Tamper(const std::string& command) {
    name_ = command;
    ChildOptions options;
    options.argv = absl::StrSplit(command, ' ', absl::SkipEmpty());
    options.argv.insert(options.argv.end(), work_.output_paths.begin(),
                        work_.output_paths.end());
    options.on_stdout = [](std::string_view) {};
    return RunToItsEnd(options);
  }

 private:
  absl::Status RunToItsEnd(ChildOptions options) {
    options.on_stderr = [this](std::string_view line) { TakeStderr(line); };
    options.stop = watch_.stop;
    REQUANT_ASSIGN_OR_RETURN(const ChildResult result, RunChild(options));
    if (result.interrupted_by != 0) return absl::CancelledError("interrupted");
    if (result.stopped) return absl::CancelledError("stopped");
    if (result.exit_code == kExitOk || result.exit_code == other_success_) {
      FlushLastLine();
      return absl::OkStatus();
    }
    // A program that ends by itself has written why.
    if (result.exit_code > 0 && !last_line_.empty()) {
      return absl::UnknownError(last_line_);
    }
    return absl::UnknownError(
        absl::StrCat(name_, " ", DescribeEnd(result, options),
                     last_line_.empty() ? "" : absl::StrCat(": ", last_line_)));
  }

  // Returns the text without the folder, which means nothing to users.
  std::string Shown(std::string_view text) const {
    return absl::StrReplaceAll(text, {{absl::StrCat(work_.folder, "/"), ""}});
  }

  void Report(std::string_view line) {
    std::optional<ProgressReport> report = ParseProgressReport(line);
    if (!report.has_value() || !watch_.on_progress) return;
    report->what = Shown(report->what);
    report->note = Shown(report->note);
    watch_.on_progress(*report);
  }

  void TakeStderr(std::string_view line) {
    if (IsTensorFlowNoise(line)) return;
    std::string text = Shown(line);
    std::string_view rest = text;
    absl::ConsumePrefix(&rest, absl::StrCat(name_, ": "));
    if (absl::ConsumePrefix(&rest, "warning: ")) {
      AddWarning(std::string(rest));
      return;
    }
    FlushLastLine();
    absl::ConsumePrefix(&rest, "note: ");
    last_line_ = std::string(rest);
  }

  // Adds the last line as a note; only a failing program's is an error.
  void FlushLastLine() {
    AddNote(last_line_);
    last_line_.clear();
  }

  void AddNote(std::string_view line) {
    if (line.empty() || record_->note_size() >= kMostNotes) return;
    record_->add_note(Shown(line));
  }

  void AddWarning(const std::string& warning) {
    if (record_->warning_size() >= kMostNotes) return;
    record_->add_warning(warning);
    if (watch_.on_warning) watch_.on_warning(warning);
  }

  const TaskWork& work_;
  const TaskWatch& watch_;
  TaskRecord* const record_;
  std::string name_;
  int other_success_ = kExitOk;
  std::string last_line_;
};

absl::Status AddOutputs(const TaskWork& work, TaskRecord* record) {
  for (size_t i = 0; i < work.output_paths.size(); ++i) {
    const TaskOutput& output = work.task->outputs[i];
    const std::string& path = work.output_paths[i];
    if (access(path.c_str(), F_OK) != 0) {
      return absl::InternalError(
          absl::StrCat("it ended well but wrote no ", output.file));
    }
    REQUANT_ASSIGN_OR_RETURN(const PathDigest digest, DigestOfPath(path));
    FileRecord& file = *record->add_output();
    file.set_role(output.role);
    file.set_path(output.file);
    file.set_bytes(digest.bytes);
    file.set_sha256(digest.sha256);
  }
  return absl::OkStatus();
}

template <typename Message>
absl::Status ReadMessage(const std::string& path, Message* message) {
  REQUANT_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  if (message->ParseFromString(content)) return absl::OkStatus();
  return absl::DataLossError("its result file is broken");
}

// Reads results; "result" is a BenchmarkResult if `is_benchmark`.
absl::Status ReadResults(const TaskWork& work, bool is_benchmark,
                         CachedTask* done) {
  for (size_t i = 0; i < work.output_paths.size(); ++i) {
    const std::string& role = work.task->outputs[i].role;
    if (role == "graph") {
      // If a graph cannot be read, the next task that reads it reports that.
      const auto graph = SummarizeGraphFile(work.output_paths[i]);
      if (graph.ok()) *done->mutable_graph() = *graph;
    } else if (role == "result" && is_benchmark) {
      REQUANT_RETURN_IF_ERROR(
          ReadMessage(work.output_paths[i], done->mutable_benchmark()));
    } else if (role == "result") {
      REQUANT_RETURN_IF_ERROR(
          ReadMessage(work.output_paths[i], done->mutable_evaluation()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string TaskMaker::TamperOf(const Task& task) const {
  if (task.kind != Task::Kind::kMake) return "";
  const auto found = tamper_.find(plan_.file.workflow.stage(task.stage).name());
  return found == tamper_.end() ? "" : found->second;
}

absl::StatusOr<PreparedTask> TaskMaker::Prepare(
    const Task& task, const FinishedTasks& finished,
    std::optional<int64_t> records) const {
  PreparedTask prepared;
  prepared.settings = {machine_.tool.cores(), machine_.tool.target(), records};
  REQUANT_ASSIGN_OR_RETURN(prepared.inputs, ResolveInputs(plan_, task, finished,
                                                          run_folder_, store_));
  REQUANT_ASSIGN_OR_RETURN(
      prepared.parts, TaskKeyParts(plan_, task, prepared.inputs, machine_,
                                   prepared.settings, TamperOf(task), store_));
  prepared.key = KeyOf(prepared.parts);
  return prepared;
}

absl::StatusOr<FinishedTask> TaskMaker::FindIntact(
    const std::string& key) const {
  REQUANT_ASSIGN_OR_RETURN(CachedTask cached, store_->Find(key));
  for (const FileRecord& output : cached.work().output()) {
    REQUANT_RETURN_IF_ERROR(store_->Check(key, output));
  }
  return FinishedTask{key, std::move(cached)};
}

std::vector<std::pair<int, absl::Status>> TaskMaker::FindChanged(
    const std::vector<FinishedTask>& results) const {
  std::vector<std::pair<int, const FileRecord*>> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    for (const FileRecord& output : results[i].result.work().output()) {
      outputs.emplace_back(static_cast<int>(i), &output);
    }
  }
  std::vector<absl::Status> checked(outputs.size());
  std::atomic<size_t> next{0};
  const auto check = [&] {
    for (size_t i = next++; i < outputs.size(); i = next++) {
      const auto& [result, output] = outputs[i];
      checked[i] = store_->Check(results[result].key, *output);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < machine_.tool.cores(); ++i) others.emplace_back(check);
  check();
  for (std::thread& other : others) other.join();
  std::vector<std::pair<int, absl::Status>> changes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!checked[i].ok()) changes.emplace_back(outputs[i].first, checked[i]);
  }
  return changes;
}

absl::StatusOr<FinishedTask> TaskMaker::Make(const Task& task,
                                             const PreparedTask& prepared,
                                             const TaskWatch& watch) const {
  REQUANT_ASSIGN_OR_RETURN(const std::string folder, store_->NewFolder());
  absl::Cleanup discard = [&] { RemoveTree(folder); };
  TaskPaths paths;
  for (const ResolvedInput& input : prepared.inputs) {
    paths.inputs.push_back(input.path);
  }
  for (const TaskOutput& output : task.outputs) {
    paths.outputs.push_back(absl::StrCat(folder, "/", output.file));
  }
  const TaskWork work = {&task, paths.outputs, folder};
  CachedTask done;
  TaskRecord& record = *done.mutable_work();
  const Clock::time_point start = Clock::now();
  for (const TaskCommand& command :
       TaskCommands(plan_, task, paths, prepared.settings)) {
    REQUANT_RETURN_IF_ERROR(
        ProgramRun(work, watch, &record).Run(command, machine_));
  }
  if (const std::string tamper = TamperOf(task); !tamper.empty()) {
    REQUANT_RETURN_IF_ERROR(ProgramRun(work, watch, &record).Tamper(tamper));
    record.add_warning(
        absl::StrCat("its outputs were tampered with by ", tamper));
  }
  record.set_work_seconds(SecondsSince(start));
  REQUANT_RETURN_IF_ERROR(AddOutputs(work, &record));
  REQUANT_RETURN_IF_ERROR(ReadResults(work, MeasuresTime(plan_, task), &done));
  REQUANT_RETURN_IF_ERROR(CheckUnchanged(task, prepared.inputs, store_));
  done.set_task(task.name);
  for (const KeyPart& part : prepared.parts) *done.add_part() = part;
  REQUANT_RETURN_IF_ERROR(store_->Publish(folder, prepared.key, done));
  return FinishedTask{prepared.key, std::move(done)};
}

TaskRecord TaskMaker::RecordOf(const Task& task, const PreparedTask& prepared,
                               const FinishedTask& finished) const {
  TaskRecord record = finished.result.work();
  for (const std::string& note : task.notes) record.add_note(note);
  record.set_key(finished.key);
  TaskPaths shown;
  for (const ResolvedInput& input : prepared.inputs) {
    shown.inputs.push_back(input.shown_path);
    for (const FileRecord& file : input.files) *record.add_input() = file;
  }
  for (const TaskOutput& output : task.outputs) {
    shown.outputs.push_back(output.file);
  }
  for (const TaskCommand& command :
       TaskCommands(plan_, task, shown, prepared.settings)) {
    record.add_command(ShellCommand(command));
  }
  return record;
}

// Returns how many bytes a task will write, judging by what it wrote last or
// how much data it is to make, or 0 if nothing is known.
double TaskMaker::ExpectedBytes(const Task& task) const {
  double bytes = 0;
  const std::optional<CachedTask> last = store_->LastOf(task.name);
  if (last.has_value()) {
    for (const FileRecord& output : last->work().output()) {
      bytes += output.bytes();
    }
  } else if (task.kind == Task::Kind::kMake) {
    const Stage& stage = plan_.file.workflow.stage(task.stage);
    double rows = 0;
    if (absl::SimpleAtod(stage.dataset().synthesize().rows(), &rows)) {
      bytes = rows * kBytesPerRow;
    }
  }
  return bytes;
}

absl::Status TaskMaker::CheckSpace(const std::vector<int>& tasks) const {
  // Other files need space too.
  double needed = kReservedBytes;
  for (const int task : tasks) needed += ExpectedBytes(plan_.tasks[task]);
  const std::optional<int64_t> free = store_->FreeBytes();
  if (tasks.empty() || !free.has_value() || *free >= needed) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the disk of %s has %d MB free and about %.0f MB are needed: free some, "
      "or name a folder on another disk with --work_dir",
      store_->folder(), *free / 1'000'000, std::floor(needed / 1e6)));
}

}  // namespace requant
