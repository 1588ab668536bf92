#include "workflows/run/task_work.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/files/files_below.h"
#include "base/files/sha256.h"
#include "base/process/sibling_program.h"
#include "base/process/subprocess.h"
#include "base/program/child_death.h"
#include "base/program/flags.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "workflows/language/programs.h"

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;

// A program that writes more lines than this says nothing that a report needs.
constexpr int kMostNotes = 200;

// A program, and where it stands among the task's.
class ProgramRun {
 public:
  ProgramRun(const TaskWork& work, const TaskWatch& watch, TaskRecord* record)
      : work_(work), watch_(watch), record_(record) {}

  absl::Status Run(const TaskCommand& command, const RunMachine& machine) {
    const Program& program = *FindProgram(command.command);
    name_ = program.name;
    ChildOptions options;
    REQUANT_ASSIGN_OR_RETURN(
        const std::string path,
        SiblingProgram(machine.own_path, program.folder, program.name));
    options.argv = {path};
    options.argv.insert(options.argv.end(), command.args.begin(),
                        command.args.end());
    options.environment = machine.environment;
    options.environment.emplace_back(kProgressVariable,
                                     absl::StrCat(kReportFd));
    options.on_report = [this](std::string_view line) { Report(line); };
    int out = -1;
    absl::Cleanup close_out = [&] {
      if (out >= 0) close(out);
    };
    other_success_ = program.other_success;
    if (command.stdout_file.empty()) {
      const bool keep = program.prints_notes;
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
    if (!command.stdout_file.empty() && program.prints_notes) {
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
    // A program that ends by itself has said why.
    if (result.exit_code > 0 && !last_line_.empty()) {
      return absl::UnknownError(last_line_);
    }
    return absl::UnknownError(
        absl::StrCat(name_, " ", DescribeEnd(result, options),
                     last_line_.empty() ? "" : absl::StrCat(": ", last_line_)));
  }

  // Without the folder that the user does not know.
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

  // The last line of a program that fails is its error, any other is a note.
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

absl::Status ReadResults(const TaskWork& work, CachedTask* done) {
  for (size_t i = 0; i < work.output_paths.size(); ++i) {
    const std::string& role = work.task->outputs[i].role;
    if (role == "graph") {
      // One that cannot be read is for whoever reads it next to complain about.
      const auto graph = SummarizeGraphFile(work.output_paths[i]);
      if (graph.ok()) *done->mutable_graph() = *graph;
    } else if (role == "result" && work.is_benchmark) {
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

absl::StatusOr<GraphRecord> SummarizeGraphFile(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::GraphDef graph, ReadGraph(path));
  std::map<std::string, int64_t> counts;
  for (const auto& node : graph.node()) ++counts[std::string(node.op())];
  int64_t nodes = graph.node_size();
  // A model that is not frozen has its layers there.
  for (const auto& function : graph.library().function()) {
    nodes += function.node_def_size();
    for (const auto& node : function.node_def()) {
      ++counts[std::string(node.op())];
    }
  }
  GraphRecord record;
  record.set_nodes(nodes);
  record.set_bytes(BytesOf(path).value_or(0));
  for (const auto& [op, nodes] : counts) {
    OpRecord& entry = *record.add_op();
    entry.set_op(op);
    entry.set_nodes(nodes);
  }
  return record;
}

absl::StatusOr<CachedTask> DoTaskWork(const TaskWork& work,
                                      const RunMachine& machine,
                                      const TaskWatch& watch) {
  CachedTask done;
  TaskRecord& record = *done.mutable_work();
  const Clock::time_point start = Clock::now();
  for (const TaskCommand& command : work.commands) {
    REQUANT_RETURN_IF_ERROR(
        ProgramRun(work, watch, &record).Run(command, machine));
  }
  if (!work.tamper.empty()) {
    REQUANT_RETURN_IF_ERROR(
        ProgramRun(work, watch, &record).Tamper(work.tamper));
    record.add_warning(
        absl::StrCat("its outputs were tampered with by ", work.tamper));
  }
  record.set_work_seconds(SecondsSince(start));
  REQUANT_RETURN_IF_ERROR(AddOutputs(work, &record));
  REQUANT_RETURN_IF_ERROR(ReadResults(work, &done));
  return done;
}

}  // namespace requant
