#include "workflows/run/runner.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "base/program/flags.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"
#include "workflows/run/gates.h"
#include "workflows/run/task_command.h"
#include "workflows/run/task_maker.h"

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;

// The result that a task is judged by. A verification's may be on more records
// than the result that readers of its predictions take.
struct JudgedTask {
  FinishedTask finished;
  std::vector<GateRecord> gates;
};

class Runner {
 public:
  Runner(const Plan& plan, const RunMachine& machine, const RunOptions& options,
         RunRecord record, StageStore* store, RunObserver* observer)
      : plan_(plan),
        options_(options),
        store_(store),
        choice_(ChooseTasks(plan, options.choice)),
        maker_(plan, machine, options.run_folder, options.tamper, store),
        jobs_(options.jobs > 0 ? options.jobs : machine.tool.cores()),
        finished_tasks_(plan.tasks.size()),
        observer_(observer),
        tasks_(plan.tasks.size()),
        record_(std::move(record)) {}

  absl::StatusOr<RunResult> Run() {
    const SignalForwarding forwarding;
    {
      const absl::MutexLock lock(&mutex_);
      record_.set_started_ms(absl::ToUnixMillis(absl::Now()));
      REQUANT_RETURN_IF_ERROR(UseCache());
      REQUANT_RETURN_IF_ERROR(maker_.CheckSpace(TasksToRun()));
      observer_->RunStarted(record_);
      for (const std::string& line : early_lines_) observer_->Said(line);
    }
    DoTheRest();
    return Conclude();
  }

  absl::StatusOr<std::vector<TaskOutlook>> LookAhead() {
    const absl::MutexLock lock(&mutex_);
    REQUANT_RETURN_IF_ERROR(UseCache());
    std::vector<TaskOutlook> outlooks;
    for (int i = 0; i < Count(); ++i) {
      const bool cached = HasResult(i);
      outlooks.push_back(
          {cached, cached ? "" : ReasonToRun(i), choice_.chosen[i]});
    }
    return outlooks;
  }

 private:
  enum class State { kWaiting, kRunning, kSucceeded, kFailed };
  struct TaskRun {
    State state = State::kWaiting;
    std::string judged_key;
    // Whether it failed only because another task did.
    bool stopped = false;
    std::thread thread;
  };

  int Count() const { return static_cast<int>(plan_.tasks.size()); }
  const Task& TaskAt(int i) const { return plan_.tasks[i]; }
  // Is also true for a verification whose gate failed.
  bool HasResult(int i) const { return !finished_tasks_[i].key.empty(); }
  double Now() const { return SecondsSince(start_); }
  TaskRecord* Work(int i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return WorkOf(PlaceOf(TaskAt(i)), &record_);
  }

  // --- What the cache has, before anything runs.

  absl::Status UseCache() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<PreparedTask> prepared(Count());
    std::vector<std::vector<GateRecord>> gates(Count());
    for (int i = 0; i < Count(); ++i) {
      if (!choice_.chosen[i] || choice_.forced[i] || !AllBeforeSucceeded(i)) {
        continue;
      }
      REQUANT_ASSIGN_OR_RETURN(prepared[i], Prepare(i));
      gates[i] = FindCached(i, prepared[i].key);
    }
    for (const auto& [i, change] : maker_.FindChanged(finished_tasks_)) {
      AddChanged(i, finished_tasks_[i].key, change);
    }
    // Results that depend on a changed one wait until that is made again.
    for (int i = 0; i < Count(); ++i) {
      if (!HasResult(i)) continue;
      tasks_[i].state = State::kWaiting;
      const JudgedTask judged = {std::exchange(finished_tasks_[i], {}),
                                 gates[i]};
      if (changed_.count(judged.finished.key) > 0 || !AllBeforeSucceeded(i)) {
        continue;
      }
      Describe(i, prepared[i], judged.finished, /*cached=*/true);
      Succeed(i, judged.finished, judged);
    }
    return absl::OkStatus();
  }

  // Takes the task's result from the store, unless its gates, which are
  // returned, call for more records.
  std::vector<GateRecord> FindCached(int i, const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::StatusOr<CachedTask> cached = store_->Find(key);
    if (absl::IsDataLoss(cached.status())) AddChanged(i, key, cached.status());
    if (!cached.ok()) return {};
    std::vector<GateRecord> gates =
        JudgeTask(plan_, TaskAt(i), *cached, finished_);
    // Repeating a verification takes further steps, which may be cached too.
    if (!RecordsToRepeatOn(plan_, TaskAt(i), *cached,
                           RecordLimit(plan_, TaskAt(i)), gates)
             .has_value()) {
      finished_tasks_[i] = {key, *std::move(cached)};
      tasks_[i].state = StateBy(gates);
    }
    return gates;
  }

  // Notes that the stored result of task `i` changed, as `change` says.
  void AddChanged(int i, const std::string& key, const absl::Status& change) {
    changed_.insert(key);
    early_lines_.push_back(ChangeLine(i, change));
  }
  // Returns "warning: x.pb was changed …; "freeze" is done again".
  std::string ChangeLine(int i, const absl::Status& change) const {
    return absl::StrCat("warning: ", change.message(), "; \"", TaskAt(i).name,
                        "\" is done again");
  }
  std::string ReasonToRun(int i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
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

  std::vector<int> TasksToRun() const {
    std::vector<int> tasks;
    for (int i = 0; i < Count(); ++i) {
      if (choice_.chosen[i] && !HasResult(i)) tasks.push_back(i);
    }
    return tasks;
  }

  // --- A single task.

  // Returns the state of a task that has a result, as its gates decide it.
  State StateBy(const std::vector<GateRecord>& gates) const {
    const VerificationRecord::Verdict verdict = WorstVerdict(gates);
    return verdict == VerificationRecord::FAIL ||
                   (verdict == VerificationRecord::INCONCLUSIVE &&
                    options_.strict)
               ? State::kFailed
               : State::kSucceeded;
  }

  bool AllBeforeSucceeded(int i) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const int other : TaskAt(i).after) {
      if (tasks_[other].state != State::kSucceeded) return false;
    }
    return true;
  }

  absl::StatusOr<PreparedTask> Prepare(int i) const {
    return maker_.Prepare(TaskAt(i), finished_, std::nullopt);
  }
  // Returns the result of a task whose predecessors are all done. `judged` gets
  // the one on the most records.
  absl::StatusOr<FinishedTask> Obtain(int i, JudgedTask* judged)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const Task& task = TaskAt(i);
    REQUANT_ASSIGN_OR_RETURN(PreparedTask prepared, Prepare(i));
    bool cached = false;
    REQUANT_ASSIGN_OR_RETURN(
        const FinishedTask finished,
        ObtainPrepared(i, prepared, choice_.forced[i], &cached, i));
    judged->finished = finished;
    judged->gates = JudgeTask(plan_, task, finished.result, finished_);
    int64_t limit = RecordLimit(plan_, task);
    while (const auto more = RecordsToRepeatOn(
               plan_, task, judged->finished.result, limit, judged->gates)) {
      limit = *more;
      REQUANT_ASSIGN_OR_RETURN(prepared, PrepareOnMore(i, limit));
      bool more_cached = false;
      REQUANT_ASSIGN_OR_RETURN(
          judged->finished,
          ObtainPrepared(i, prepared, choice_.forced[i], &more_cached, i));
      judged->gates =
          JudgeTask(plan_, task, judged->finished.result, finished_);
      cached = cached && more_cached;
    }
    const absl::MutexLock lock(&mutex_);
    Describe(i, prepared, judged->finished, cached);
    if (judged->finished.key != finished.key) {
      Work(i)->add_note(absl::StrCat(
          "not certain on ", RecordLimit(plan_, task), " records, so ",
          judged->finished.result.evaluation().timing().records(),
          " were taken"));
    }
    return finished;
  }

  // Takes the result from the cache unless `forced`, or makes it. Observers see
  // this as the work of task `teller`.
  absl::StatusOr<FinishedTask> ObtainPrepared(int i,
                                              const PreparedTask& prepared,
                                              bool forced, bool* cached,
                                              int teller)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!forced && changed_.count(prepared.key) == 0) {
      absl::StatusOr<FinishedTask> intact = maker_.FindIntact(prepared.key);
      if (intact.ok()) {
        *cached = true;
        return intact;
      }
      if (absl::IsDataLoss(intact.status())) {
        const absl::MutexLock lock(&mutex_);
        observer_->Said(ChangeLine(i, intact.status()));
      }
    }
    *cached = false;
    {
      const absl::MutexLock lock(&mutex_);
      if (Work(teller)->state() != TaskRecord::RUNNING) {
        Work(teller)->set_state(TaskRecord::RUNNING);
        Work(teller)->set_start(Now());
        observer_->TaskStarted(record_, PlaceOf(TaskAt(teller)));
      }
    }
    if (SignalForwarding::Received() != 0) {
      return absl::CancelledError("interrupted");
    }
    return maker_.Make(TaskAt(i), prepared, WatchFor(teller));
  }

  TaskWatch WatchFor(int teller) {
    TaskWatch watch;
    watch.stop = &stop_;
    watch.on_progress = [this, teller](const ProgressReport& report) {
      const absl::MutexLock lock(&mutex_);
      observer_->TaskProgressed(record_, PlaceOf(TaskAt(teller)), report);
    };
    watch.on_warning = [this, teller](const std::string& warning) {
      const absl::MutexLock lock(&mutex_);
      observer_->Said(
          absl::StrCat(TaskAt(teller).name, ": warning: ", warning));
    };
    return watch;
  }

  // Prepares a verification on another number of records, after obtaining the
  // predictions that it reads on as many.
  absl::StatusOr<PreparedTask> PrepareOnMore(int i, int64_t records)
      ABSL_LOCKS_EXCLUDED(mutex_) {
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
      return baseline != baselines.end() ? &baseline->second : finished_(task);
    };
    return maker_.Prepare(TaskAt(i), finished, records);
  }

  // --- The record.

  void Describe(int i, const PreparedTask& prepared,
                const FinishedTask& finished, bool cached)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    TaskRecord& record = *Work(i);
    const double start = record.start();
    const bool ran = record.state() == TaskRecord::RUNNING;
    record = maker_.RecordOf(TaskAt(i), prepared, finished);
    record.set_state(cached ? TaskRecord::CACHED : TaskRecord::DONE);
    record.set_start(ran ? start : Now());
    record.set_seconds(ran ? Now() - start : 0);
  }

  // `judged` is the same task's result on as many records or more.
  void Succeed(int i, FinishedTask finished, const JudgedTask& judged)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_tasks_[i] = std::move(finished);
    tasks_[i].judged_key = judged.finished.key;
    tasks_[i].state = StateBy(judged.gates);
    RecordResult(TaskAt(i), judged.finished.result, judged.gates, &record_);
  }

  void Fail(int i, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
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

  // --- All tasks.

  void DoTheRest() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    for (const TaskRun& task : tasks_) {
      failed_ =
          failed_ || (task.state == State::kFailed && !options_.keep_going);
    }
    int running = 0;
    while (true) {
      for (int i = 0; i < Count(); ++i) {
        if (failed_ || SignalForwarding::Received() != 0 || !MayStart(i)) {
          continue;
        }
        tasks_[i].state = State::kRunning;
        tasks_[i].thread = std::thread([this, i] { WorkInThread(i); });
        ++running;
      }
      if (running == 0) return;
      const absl::Condition any_ended(
          +[](std::vector<int>* ended) { return !ended->empty(); }, &ended_);
      while (!mutex_.AwaitWithTimeout(any_ended, absl::Milliseconds(100))) {
        observer_->Tick();
      }
      for (const int i : ended_) {
        tasks_[i].thread.join();
        --running;
      }
      ended_.clear();
    }
  }

  bool MayStart(int i) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
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
    return running < jobs_ && !cores_are_taken &&
           !UsesAllCores(plan_, TaskAt(i));
  }

  void WorkInThread(int i) ABSL_LOCKS_EXCLUDED(mutex_) {
    JudgedTask judged;
    absl::StatusOr<FinishedTask> finished = Obtain(i, &judged);
    const absl::MutexLock lock(&mutex_);
    if (finished.ok()) {
      Succeed(i, std::move(*finished), judged);
    } else {
      Fail(i, finished.status());
    }
    if (tasks_[i].state == State::kFailed && !options_.keep_going) {
      failed_ = true;
      stop_ = true;
    }
    observer_->TaskEnded(record_, PlaceOf(TaskAt(i)));
    ended_.push_back(i);
  }

  RunResult Conclude() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
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
    observer_->RunEnded(record_);
    result.record = record_;
    return result;
  }

  void ExplainWhatDidNotRun() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // For each task, "", its own name if it failed, or what failed before it.
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

  RunRecord::Outcome Outcome() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
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

  const Plan& plan_;
  const RunOptions& options_;
  StageStore* const store_;
  const TaskChoice choice_;
  const TaskMaker maker_;
  const int jobs_;
  const Clock::time_point start_ = Clock::now();

  // The results by task, without a key if there is none. They need no lock:
  // each is written before any task that reads it starts and then stays as it
  // is.
  std::vector<FinishedTask> finished_tasks_;
  const FinishedTasks finished_ = [this](int i) {
    return HasResult(i) ? &finished_tasks_[i] : nullptr;
  };
  std::atomic<bool> stop_{false};
  // The keys of results that were found changed before anything ran, and what
  // to say about them. Neither changes after that.
  std::set<std::string> changed_;
  std::vector<std::string> early_lines_;

  absl::Mutex mutex_;
  // The lock keeps its calls from overlapping.
  RunObserver* const observer_ ABSL_PT_GUARDED_BY(mutex_);
  std::vector<TaskRun> tasks_ ABSL_GUARDED_BY(mutex_);
  RunRecord record_ ABSL_GUARDED_BY(mutex_);
  // Tasks that have ended and whose threads have yet to be joined.
  std::vector<int> ended_ ABSL_GUARDED_BY(mutex_);
  // Whether something failed that keeps other tasks from starting.
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<std::vector<TaskOutlook>> LookAhead(const Plan& plan,
                                                   const RunMachine& machine,
                                                   const RunOptions& options,
                                                   StageStore* store) {
  RunObserver nobody;
  return Runner(plan, machine, options, StartRecord(plan, machine), store,
                &nobody)
      .LookAhead();
}

absl::StatusOr<RunResult> RunPlan(const Plan& plan, const RunMachine& machine,
                                  const RunOptions& options, RunRecord record,
                                  StageStore* store, RunObserver* observer) {
  return Runner(plan, machine, options, std::move(record), store, observer)
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
