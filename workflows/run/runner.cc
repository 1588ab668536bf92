#include "workflows/run/runner.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "base/program/flags.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"
#include "workflows/run/gates.h"
#include "workflows/run/run_places.h"
#include "workflows/run/task_command.h"
#include "workflows/run/task_key.h"
#include "workflows/run/task_maker.h"
#include "workflows/run/task_space.h"
#include "workflows/run/task_verdict.h"
#include "workflows/run/task_work.h"

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;

// The files of cached outputs, which are read to see whether they changed.
struct OutputToCheck {
  int task = -1;
  std::string key;
  FileRecord output;
};

// By output: whether it is still what it was, looked at side by side.
std::vector<absl::Status> CheckOutputs(
    const std::vector<OutputToCheck>& outputs, const StageStore& store,
    int threads) {
  std::vector<absl::Status> checked(outputs.size());
  std::atomic<size_t> next{0};
  const auto check = [&] {
    for (size_t i = next++; i < outputs.size(); i = next++) {
      checked[i] = store.Check(outputs[i].key, outputs[i].output);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(check);
  check();
  for (std::thread& other : others) other.join();
  return checked;
}

class Runner {
 public:
  Runner(const Plan& plan, const RunMachine& machine, const RunOptions& options,
         RunRecord record, StageStore* store,
         const std::vector<RunObserver*>& observers)
      : plan_(plan),
        machine_(machine),
        options_(options),
        store_(store),
        observers_(observers),
        choice_(ChooseTasks(plan, options.choice)),
        maker_(plan, machine, options.run_folder, options.tamper, store),
        jobs_(options.jobs > 0 ? options.jobs : machine.cores),
        tasks_(plan.tasks.size()),
        empty_record_(std::move(record)),
        record_(empty_record_) {}

  absl::StatusOr<RunResult> Run() {
    const SignalForwarding forwarding;
    empty_record_.set_started_ms(absl::ToUnixMillis(absl::Now()));
    REQUANT_RETURN_IF_ERROR(UseCache());
    REQUANT_RETURN_IF_ERROR(CheckSpace(plan_, TasksToRun(), *store_));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (RunObserver* observer : observers_) observer->RunStarted(record_);
      for (const std::string& line : early_lines_) Say(line);
    }
    DoTheRest();
    return Conclude();
  }

  absl::StatusOr<std::vector<TaskOutlook>> LookAhead() {
    REQUANT_RETURN_IF_ERROR(UseCache());
    std::vector<TaskOutlook> outlooks;
    for (int i = 0; i < Count(); ++i) {
      TaskOutlook& outlook = outlooks.emplace_back();
      outlook.chosen = choice_.chosen[i];
      outlook.cached = HasResult(i);
      if (!outlook.cached) outlook.reason = ReasonToRun(i);
    }
    return outlooks;
  }

 private:
  enum class State { kWaiting, kRunning, kSucceeded, kFailed };
  struct TaskState {
    State state = State::kWaiting;
    // For the tasks that read it.
    FinishedTask finished;
    // What it is judged by: of a verification it may be on more records than
    // those who read its predictions take.
    std::string judged_key;
    // It failed only because another task did.
    bool stopped = false;
    std::thread thread;
    double start = 0;
  };

  int Count() const { return static_cast<int>(plan_.tasks.size()); }
  const Task& TaskAt(int i) const { return plan_.tasks[i]; }
  // One whose gate failed has a result too.
  bool HasResult(int i) const { return !tasks_[i].finished.key.empty(); }
  double Now() const { return SecondsSince(start_); }
  TaskRecord* Work(int i) { return WorkOf(plan_, i, &record_); }

  void Say(const std::string& line) {
    for (RunObserver* observer : observers_) observer->Said(line);
  }
  void TellEnd(int i) {
    for (RunObserver* observer : observers_) {
      observer->TaskEnded(record_, PlaceOf(plan_, i));
    }
  }

  // --- What the cache has.

  absl::Status UseCache();
  // One pass over the plan; results in changed_ are as good as gone.
  absl::StatusOr<std::vector<OutputToCheck>> FindCached();
  // Notes that the result of task `i` changed, as `change` says.
  void AddChanged(int i, const std::string& key, const absl::Status& change);
  // "warning: x.pb was changed since it was made; "freeze" is done again".
  std::string ChangeLine(int i, const absl::Status& change) const {
    return absl::StrCat("warning: ", change.message(), "; \"", TaskAt(i).name,
                        "\" is done again");
  }
  std::string ReasonToRun(int i);
  std::vector<int> TasksToRun() const;

  // --- A single task.

  bool AllBeforeSucceeded(int i) const;
  // Null unless it is done.
  const FinishedTask* Finished(int i) const {
    return HasResult(i) ? &tasks_[i].finished : nullptr;
  }
  absl::StatusOr<PreparedTask> Prepare(int i) const {
    return maker_.Prepare(TaskAt(i), finished_, std::nullopt);
  }
  // The result of a task of which everything it waits for is done; `judged` is
  // that on the most records.
  absl::StatusOr<FinishedTask> Obtain(int i, FinishedTask* judged);
  // From the cache unless `forced`, or made. It is told as the work of task
  // `teller`.
  absl::StatusOr<FinishedTask> ObtainPrepared(int i,
                                              const PreparedTask& prepared,
                                              bool forced, bool* cached,
                                              int teller);
  TaskWatch WatchFor(int teller);
  // Prepares it on another number of records, once those whose predictions it
  // reads are obtained on as many.
  absl::StatusOr<PreparedTask> PrepareOnMore(int i, int64_t records);

  // --- The record, with the mutex held or before there are threads.

  void Describe(int i, const PreparedTask& prepared,
                const FinishedTask& finished, bool cached);
  void RecordResult(int i, const CachedTask& result);
  // `judged` is of the same task, on as many records or more.
  void Succeed(int i, FinishedTask finished, const FinishedTask& judged);
  void Fail(int i, const absl::Status& status);

  // --- All tasks.

  void DoTheRest();
  bool MayStart(int i) const;
  void Start(int i);
  void WorkInThread(int i);
  RunResult Conclude();
  void ExplainWhatDidNotRun();
  RunRecord::Outcome Outcome() const;

  const Plan& plan_;
  const RunMachine& machine_;
  const RunOptions& options_;
  StageStore* const store_;
  const std::vector<RunObserver*>& observers_;
  const TaskChoice choice_;
  const TaskMaker maker_;
  const FinishedTasks finished_ = [this](int i) { return Finished(i); };
  const int jobs_;
  const Clock::time_point start_ = Clock::now();

  std::mutex mutex_;
  std::condition_variable something_ended_;
  std::vector<TaskState> tasks_;
  // Before anything was found in the cache.
  RunRecord empty_record_;
  RunRecord record_;
  // Of tasks that have ended and whose threads are to be joined.
  std::vector<int> ended_;
  // Something failed, and not everything else may go on.
  bool failed_ = false;
  std::atomic<bool> stop_{false};
  std::vector<std::string> early_lines_;
  // The keys of results that were found changed before anything ran.
  std::set<std::string> changed_;
};

absl::Status Runner::UseCache() {
  bool found_changed = true;
  while (found_changed) {
    found_changed = false;
    REQUANT_ASSIGN_OR_RETURN(const std::vector<OutputToCheck> outputs,
                             FindCached());
    const std::vector<absl::Status> checked =
        CheckOutputs(outputs, *store_, machine_.cores);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (checked[i].ok()) continue;
      AddChanged(outputs[i].task, outputs[i].key, checked[i]);
      found_changed = true;
    }
  }
  return absl::OkStatus();
}

void Runner::AddChanged(int i, const std::string& key,
                        const absl::Status& change) {
  changed_.insert(key);
  early_lines_.push_back(ChangeLine(i, change));
}

absl::StatusOr<std::vector<OutputToCheck>> Runner::FindCached() {
  std::vector<OutputToCheck> outputs;
  record_ = empty_record_;
  for (int i = 0; i < Count(); ++i) {
    tasks_[i].state = State::kWaiting;
    tasks_[i].finished = {};
    if (!choice_.chosen[i] || choice_.forced[i] || !AllBeforeSucceeded(i)) {
      continue;
    }
    REQUANT_ASSIGN_OR_RETURN(const PreparedTask prepared, Prepare(i));
    if (changed_.count(prepared.key) > 0) continue;
    absl::StatusOr<CachedTask> cached = store_->Find(prepared.key);
    if (absl::IsDataLoss(cached.status())) {
      AddChanged(i, prepared.key, cached.status());
    }
    if (!cached.ok()) continue;
    // Such a verification takes further steps, which may be cached too.
    if (RecordsToRepeatOn(plan_, TaskAt(i), *cached,
                          RecordLimit(plan_, TaskAt(i)), finished_)
            .has_value()) {
      continue;
    }
    for (const FileRecord& output : cached->work().output()) {
      outputs.push_back({i, prepared.key, output});
    }
    FinishedTask finished = {prepared.key, std::move(*cached)};
    Describe(i, prepared, finished, /*cached=*/true);
    Succeed(i, finished, finished);
  }
  return outputs;
}

std::string Runner::ReasonToRun(int i) {
  if (!choice_.chosen[i]) return "it is not asked for";
  if (choice_.forced[i]) return "it is asked to run again";
  for (const int other : TaskAt(i).after) {
    if (tasks_[other].state == State::kFailed) {
      return absl::StrCat("\"", TaskAt(other).name, "\" does not pass");
    }
  }
  for (const TaskInput& input : TaskAt(i).inputs) {
    if (input.task >= 0 && !HasResult(input.task)) {
      return absl::StrCat("its input \"", input.role, "\" is made anew");
    }
  }
  const std::optional<CachedTask> last = store_->LastOf(TaskAt(i).name);
  if (!last.has_value()) return "it never ran here";
  const absl::StatusOr<PreparedTask> prepared = Prepare(i);
  if (!prepared.ok()) return std::string(prepared.status().message());
  return WhatChanged(*last, prepared->parts);
}

std::vector<int> Runner::TasksToRun() const {
  std::vector<int> tasks;
  for (int i = 0; i < Count(); ++i) {
    if (choice_.chosen[i] && !HasResult(i)) tasks.push_back(i);
  }
  return tasks;
}

bool Runner::AllBeforeSucceeded(int i) const {
  for (const int other : TaskAt(i).after) {
    if (tasks_[other].state != State::kSucceeded) return false;
  }
  return true;
}

TaskWatch Runner::WatchFor(int teller) {
  TaskWatch watch;
  watch.stop = &stop_;
  watch.on_progress = [this, teller](const ProgressReport& report) {
    const TaskProgress progress = {report.what, report.unit, report.done,
                                   report.total, report.note};
    const std::lock_guard<std::mutex> lock(mutex_);
    for (RunObserver* observer : observers_) {
      observer->TaskProgressed(record_, PlaceOf(plan_, teller), progress);
    }
  };
  watch.on_warning = [this, teller](const std::string& warning) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Say(absl::StrCat(TaskAt(teller).name, ": warning: ", warning));
  };
  return watch;
}

absl::StatusOr<FinishedTask> Runner::ObtainPrepared(
    int i, const PreparedTask& prepared, bool forced, bool* cached,
    int teller) {
  if (!forced && changed_.count(prepared.key) == 0) {
    absl::StatusOr<FinishedTask> intact = maker_.FindIntact(prepared.key);
    if (intact.ok()) {
      *cached = true;
      return intact;
    }
    if (absl::IsDataLoss(intact.status())) {
      const std::lock_guard<std::mutex> lock(mutex_);
      Say(ChangeLine(i, intact.status()));
    }
  }
  *cached = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Work(teller)->state() != TaskRecord::RUNNING) {
      Work(teller)->set_state(TaskRecord::RUNNING);
      Work(teller)->set_start(Now());
      for (RunObserver* observer : observers_) {
        observer->TaskStarted(record_, PlaceOf(plan_, teller));
      }
    }
  }
  if (SignalForwarding::Received() != 0) {
    return absl::CancelledError("interrupted");
  }
  return maker_.Make(TaskAt(i), prepared, WatchFor(teller));
}

absl::StatusOr<PreparedTask> Runner::PrepareOnMore(int i, int64_t records) {
  std::map<int, FinishedTask> baselines;
  for (const TaskInput& input : TaskAt(i).inputs) {
    if (input.role != "baseline_predictions" || input.task < 0) continue;
    REQUANT_ASSIGN_OR_RETURN(const PreparedTask baseline,
                             PrepareOnMore(input.task, records));
    bool cached = false;
    REQUANT_ASSIGN_OR_RETURN(
        baselines[input.task],
        ObtainPrepared(input.task, baseline, /*forced=*/false, &cached, i));
  }
  const auto finished = [&](int task) -> const FinishedTask* {
    const auto baseline = baselines.find(task);
    return baseline != baselines.end() ? &baseline->second : Finished(task);
  };
  return maker_.Prepare(TaskAt(i), finished, records);
}

absl::StatusOr<FinishedTask> Runner::Obtain(int i, FinishedTask* judged) {
  REQUANT_ASSIGN_OR_RETURN(PreparedTask prepared, Prepare(i));
  bool cached = false;
  REQUANT_ASSIGN_OR_RETURN(
      FinishedTask finished,
      ObtainPrepared(i, prepared, choice_.forced[i], &cached, i));
  *judged = finished;
  int64_t limit = RecordLimit(plan_, TaskAt(i));
  while (const auto more = RecordsToRepeatOn(plan_, TaskAt(i), judged->result,
                                             limit, finished_)) {
    limit = *more;
    REQUANT_ASSIGN_OR_RETURN(prepared, PrepareOnMore(i, limit));
    bool more_cached = false;
    REQUANT_ASSIGN_OR_RETURN(
        *judged,
        ObtainPrepared(i, prepared, choice_.forced[i], &more_cached, i));
    cached = cached && more_cached;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  Describe(i, prepared, *judged, cached);
  if (judged->key != finished.key) {
    Work(i)->add_note(absl::StrCat(
        "not certain on ", RecordLimit(plan_, TaskAt(i)), " records, so ",
        judged->result.evaluation().timing().records(), " were taken"));
  }
  return finished;
}

void Runner::Describe(int i, const PreparedTask& prepared,
                      const FinishedTask& finished, bool cached) {
  const Task& task = TaskAt(i);
  TaskRecord& record = *Work(i);
  const double start = record.start();
  const bool ran = record.state() == TaskRecord::RUNNING;
  record = finished.result.work();
  for (const std::string& note : task.notes) record.add_note(note);
  record.set_state(cached ? TaskRecord::CACHED : TaskRecord::DONE);
  record.set_key(finished.key);
  record.set_start(ran ? start : Now());
  record.set_seconds(ran ? Now() - start : 0);
  TaskPaths shown;
  for (const ResolvedInput& input : prepared.inputs) {
    shown.inputs.push_back(input.shown_path);
    for (const FileRecord& file : input.files) *record.add_input() = file;
  }
  for (const TaskOutput& output : task.outputs) {
    shown.outputs.push_back(output.file);
  }
  const auto commands = TaskCommands(plan_, task, shown, prepared.settings);
  if (!commands.ok()) return;
  for (const TaskCommand& command : *commands) {
    record.add_command(ShellCommand(command));
  }
}

void Runner::RecordResult(int i, const CachedTask& result) {
  const TaskPlace place = PlaceOf(plan_, i);
  if (place.stage < 0) {
    *record_.mutable_baseline(place.baseline)->mutable_result() =
        result.evaluation();
    return;
  }
  StageRecord& stage = *record_.mutable_stage(place.stage);
  if (!place.verifies) {
    if (result.has_graph()) *stage.mutable_graph() = result.graph();
    if (result.has_benchmark()) {
      *stage.mutable_benchmark()->mutable_result() = result.benchmark();
    }
    return;
  }
  VerificationRecord& verification = *stage.mutable_verification();
  *verification.mutable_result() = result.evaluation();
  const std::vector<GateRecord> gates =
      JudgeTask(plan_, TaskAt(i), result, finished_);
  verification.clear_gate();
  for (const GateRecord& gate : gates) *verification.add_gate() = gate;
  verification.set_verdict(WorstVerdict(gates));
}

void Runner::Succeed(int i, FinishedTask finished, const FinishedTask& judged) {
  tasks_[i].finished = std::move(finished);
  tasks_[i].judged_key = judged.key;
  RecordResult(i, judged.result);
  tasks_[i].state = State::kSucceeded;
  if (TaskAt(i).kind != Task::Kind::kVerify) return;
  const VerificationRecord::Verdict verdict =
      record_.stage(TaskAt(i).stage).verification().verdict();
  if (verdict == VerificationRecord::FAIL ||
      (verdict == VerificationRecord::INCONCLUSIVE && options_.strict)) {
    tasks_[i].state = State::kFailed;
  }
}

void Runner::Fail(int i, const absl::Status& status) {
  TaskRecord& record = *Work(i);
  tasks_[i].state = State::kFailed;
  record.set_seconds(Now() - record.start());
  if (SignalForwarding::Received() != 0) {
    record.set_state(TaskRecord::INTERRUPTED);
    record.set_message("interrupted");
  } else if (absl::IsCancelled(status)) {
    tasks_[i].stopped = true;
    record.set_state(TaskRecord::NOT_RUN);
    record.set_message("stopped because another task failed");
  } else {
    record.set_state(TaskRecord::FAILED);
    record.set_message(status.message());
    if (absl::StrContains(status.message(), std::strerror(ENOSPC))) {
      record.set_message(absl::StrCat(
          status.message(),
          "; free some space and run the same command again, what is done is "
          "kept"));
    }
  }
}

bool Runner::MayStart(int i) const {
  if (tasks_[i].state != State::kWaiting || !choice_.chosen[i] ||
      !AllBeforeSucceeded(i)) {
    return false;
  }
  int running = 0;
  bool cores_are_taken = false;
  for (int other = 0; other < Count(); ++other) {
    if (tasks_[other].state != State::kRunning) continue;
    ++running;
    cores_are_taken = cores_are_taken || UsesAllCores(plan_, TaskAt(other));
  }
  if (running == 0) return true;
  return running < jobs_ && !cores_are_taken && !UsesAllCores(plan_, TaskAt(i));
}

void Runner::Start(int i) {
  tasks_[i].state = State::kRunning;
  tasks_[i].thread = std::thread([this, i] { WorkInThread(i); });
}

void Runner::WorkInThread(int i) {
  FinishedTask judged;
  absl::StatusOr<FinishedTask> finished = Obtain(i, &judged);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (finished.ok()) {
    Succeed(i, std::move(*finished), judged);
  } else {
    Fail(i, finished.status());
  }
  if (tasks_[i].state == State::kFailed && !options_.keep_going) {
    failed_ = true;
    stop_ = true;
  }
  TellEnd(i);
  ended_.push_back(i);
  something_ended_.notify_one();
}

void Runner::DoTheRest() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (int i = 0; i < Count(); ++i) {
    failed_ =
        failed_ || (tasks_[i].state == State::kFailed && !options_.keep_going);
  }
  int running = 0;
  while (true) {
    for (int i = 0; i < Count(); ++i) {
      if (failed_ || SignalForwarding::Received() != 0 || !MayStart(i)) {
        continue;
      }
      Start(i);
      ++running;
    }
    if (running == 0) return;
    something_ended_.wait(lock, [this] { return !ended_.empty(); });
    for (const int i : ended_) {
      tasks_[i].thread.join();
      --running;
    }
    ended_.clear();
  }
}

void Runner::ExplainWhatDidNotRun() {
  // By task: itself if it failed, or else what failed before it; "": nothing.
  std::vector<std::string> failure(Count());
  for (int i = 0; i < Count(); ++i) {
    if (!choice_.chosen[i]) {
      Work(i)->set_message("not asked for");
      continue;
    }
    if (tasks_[i].state == State::kFailed) failure[i] = TaskAt(i).name;
    if (tasks_[i].state != State::kWaiting) continue;
    for (const int other : TaskAt(i).after) {
      if (failure[i].empty()) failure[i] = failure[other];
    }
    Work(i)->set_message(
        failure[i].empty()
            ? "the run stopped before"
            : absl::StrCat("\"", failure[i], "\" did not succeed"));
  }
}

RunRecord::Outcome Runner::Outcome() const {
  RunRecord::Outcome worst = RunRecord::PASSED;
  for (int i = 0; i < Count(); ++i) {
    if (!choice_.chosen[i]) continue;
    const bool has_result = HasResult(i);
    if (tasks_[i].state == State::kFailed && !has_result &&
        !tasks_[i].stopped) {
      return SignalForwarding::Received() != 0 ? RunRecord::INTERRUPTED
                                               : RunRecord::FAILED;
    }
    if (!has_result && SignalForwarding::Received() != 0) {
      return RunRecord::INTERRUPTED;
    }
    if (TaskAt(i).kind != Task::Kind::kVerify || !has_result) continue;
    const VerificationRecord::Verdict verdict =
        record_.stage(TaskAt(i).stage).verification().verdict();
    if (verdict == VerificationRecord::FAIL) worst = RunRecord::GATE_FAILED;
    if (verdict == VerificationRecord::INCONCLUSIVE &&
        worst == RunRecord::PASSED) {
      worst = RunRecord::INCONCLUSIVE;
    }
  }
  return worst;
}

RunResult Runner::Conclude() {
  const std::lock_guard<std::mutex> lock(mutex_);
  RunResult result;
  ExplainWhatDidNotRun();
  record_.set_outcome(Outcome());
  record_.set_seconds(Now());
  if (record_.outcome() == RunRecord::INTERRUPTED) {
    result.interrupted_by = SignalForwarding::Received();
  }
  for (int i = 0; i < Count(); ++i) {
    result.keys.push_back(HasResult(i) ? tasks_[i].judged_key : "");
    if (!choice_.chosen[i]) continue;
    ++result.tasks;
    if (!HasResult(i)) continue;
    ++result.done;
    if (Work(i)->state() == TaskRecord::CACHED) ++result.cached;
  }
  for (RunObserver* observer : observers_) observer->RunEnded(record_);
  result.record = record_;
  return result;
}

}  // namespace

absl::StatusOr<std::vector<TaskOutlook>> LookAhead(const Plan& plan,
                                                   const RunMachine& machine,
                                                   const RunOptions& options,
                                                   StageStore* store) {
  const std::vector<RunObserver*> nobody;
  return Runner(plan, machine, options, StartRecord(plan, machine), store,
                nobody)
      .LookAhead();
}

absl::StatusOr<RunResult> RunPlan(const Plan& plan, const RunMachine& machine,
                                  const RunOptions& options, RunRecord record,
                                  StageStore* store,
                                  const std::vector<RunObserver*>& observers) {
  return Runner(plan, machine, options, std::move(record), store, observers)
      .Run();
}

int ExitCodeOf(const RunResult& result, bool strict) {
  switch (result.record.outcome()) {
    case RunRecord::PASSED:
      return kExitOk;
    case RunRecord::INCONCLUSIVE:
      return strict ? kExitAccuracyGate : kExitOk;
    case RunRecord::GATE_FAILED:
      return kExitAccuracyGate;
    case RunRecord::INTERRUPTED:
      return 128 + result.interrupted_by;
    default:
      return kExitFailed;
  }
}

}  // namespace requant
