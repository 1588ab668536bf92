#include "runtime/benchmark/benchmark.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/process/machine.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/terminal/progress.h"
#include "runtime/benchmark/benchmark_inputs.h"
#include "runtime/benchmark/benchmark_report.h"
#include "runtime/benchmark/stream_pool.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/session/model.h"
#include "runtime/session/model_signature.h"
#include "runtime/statistics/paired_comparison.h"
#include "runtime/statistics/prediction_tensor.h"
#include "runtime/statistics/timing.h"
#include "tensorflow/core/framework/step_stats.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {
namespace {

using tensorflow::Tensor;

constexpr RunLength kOneBatch = {0, 1, 0};
constexpr int kWarmUpBatches = 20;
constexpr double kWarmUpSeconds = 0.5;
constexpr double kMaxWarmUpSeconds = 5;
// A trial of one setting is a short warm-up, then the median of a few runs, or
// a single run for slow graphs.
constexpr RunLength kTrialWarmUp = {0.3, 3, 0.8};
constexpr RunLength kTrialRun = {0.2, 1, 0.4};
constexpr int kTrialRuns = 3;
constexpr std::chrono::seconds kMaxTrial(2);
// With fewer, a round's figure would be dominated by chance.
constexpr int kRoundBatchesPerStream = 3;

// The first traced runs are slower than the others.
constexpr int kProfileWarmUpBatches = 3;
constexpr int kProfileBatches = 20;
constexpr double kMaxProfileSeconds = 10;
constexpr size_t kProfiledNodes = 15;

bool IsSame(const StreamSetting& a, const StreamSetting& b) {
  return a.streams() == b.streams() && a.threads() == b.threads();
}

// One of the graphs under measurement, loaded for a setting of streams and
// threads. Errors name the graph.
class Contender {
 public:
  // `batches` must outlive it and not be empty.
  static absl::StatusOr<std::unique_ptr<Contender>> Load(
      const BenchmarkEntry& entry, const StreamSetting& setting,
      const std::vector<Batch>& batches) {
    std::unique_ptr<Contender> contender(
        new Contender(entry, setting, batches));
    // Streams of one thread run in their callers' threads and share a session.
    // Larger ones get a session each, because streams share their session's
    // threads.
    const int models = setting.threads() == 1 ? 1 : setting.streams();
    for (int i = 0; i < models; ++i) {
      REQUANT_RETURN_IF_ERROR(contender->AddModel());
    }
    contender->pool_.emplace(
        setting.streams(), [self = contender.get()](int stream, int64_t batch) {
          const size_t which = stream % self->functions_.size();
          std::vector<Tensor> outputs;
          return self->RunBatch(self->functions_[which].get(), batch, nullptr,
                                &outputs);
        });
    return contender;
  }

  const StreamSetting& setting() const { return setting_; }

  // Runs the batches over and over in all streams.
  absl::StatusOr<StreamTimes> Run(const RunLength& length,
                                  const std::function<void()>& on_alive) {
    return pool_->Run(length, on_alive);
  }

  // Returns what the first stream's session computes for one batch.
  absl::StatusOr<Tensor> Output(int64_t batch) {
    std::vector<Tensor> outputs;
    REQUANT_RETURN_IF_ERROR(
        RunBatch(functions_.front().get(), batch, nullptr, &outputs).status());
    return outputs.front();
  }

  // Runs some batches in one stream and returns where their time went.
  absl::StatusOr<ProfileMessage> Profile(
      const std::function<void()>& on_alive) {
    REQUANT_ASSIGN_OR_RETURN(
        const std::unique_ptr<ModelFunction> function,
        MakeFunction(models_.front().get(), /*trace=*/true));
    std::vector<tensorflow::StepStats> traced;
    std::chrono::duration<double> measured{0};
    for (int i = 0; i < kProfileWarmUpBatches + kProfileBatches; ++i) {
      tensorflow::RunMetadata metadata;
      const auto start = std::chrono::steady_clock::now();
      std::vector<Tensor> outputs;
      REQUANT_RETURN_IF_ERROR(
          RunBatch(function.get(), i, &metadata, &outputs).status());
      const auto seconds = std::chrono::steady_clock::now() - start;
      on_alive();
      if (i < kProfileWarmUpBatches) continue;
      measured += seconds;
      traced.push_back(std::move(*metadata.mutable_step_stats()));
      if (measured.count() > kMaxProfileSeconds) break;
    }
    ProfileMessage profile = ProfileOf(traced, kProfiledNodes);
    profile.set_batch_microseconds(1e6 * measured.count() /
                                   static_cast<double>(traced.size()));
    return profile;
  }

 private:
  Contender(const BenchmarkEntry& entry, const StreamSetting& setting,
            const std::vector<Batch>& batches)
      : entry_(entry), setting_(setting), batches_(batches) {}

  absl::Status AddModel() {
    SessionSpec session;
    session.set_intra_op_threads(setting_.threads());
    session.set_inter_op_threads(setting_.threads());
    REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                             Model::Load(entry_.model(), session));
    models_.push_back(std::move(model));
    REQUANT_ASSIGN_OR_RETURN(
        std::unique_ptr<ModelFunction> function,
        MakeFunction(models_.back().get(), /*trace=*/false));
    functions_.push_back(std::move(function));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<ModelFunction>> MakeFunction(
      Model* model, bool trace) const {
    REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                             model->ConnectInputs(entry_.dataset()));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string output,
        PredictionTensor(*model, entry_.dataset(), inputs));
    return ModelFunction::Make(model, inputs, {output},
                               /*in_caller_thread=*/setting_.threads() == 1,
                               trace);
  }

  absl::StatusOr<int64_t> RunBatch(ModelFunction* function, int64_t number,
                                   tensorflow::RunMetadata* metadata,
                                   std::vector<Tensor>* outputs) const {
    const Batch& batch = batches_[number % batches_.size()];
    const absl::Status status = function->Run(batch.inputs, outputs, metadata);
    if (status.ok()) return batch.size;
    return RunError(
        status, entry_.model().path(),
        absl::StrCat(RecordsText(batch), " of ", entry_.dataset_name()));
  }

  const BenchmarkEntry entry_;
  const StreamSetting setting_;
  const std::vector<Batch>& batches_;
  // One model for all streams, or one for each.
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::unique_ptr<ModelFunction>> functions_;
  std::optional<StreamPool> pool_;
};

class BenchmarkRun {
 public:
  explicit BenchmarkRun(const BenchmarkJob& job)
      : job_(job),
        cores_(ReadCoreLimits().usable()),
        entries_(job.entry().begin(), job.entry().end()) {}

  absl::StatusOr<BenchmarkResult> Run() {
    const std::vector<StreamSetting> candidates =
        SettingsToTry(cores_, job_.streams(), job_.threads());
    const int64_t trials = candidates.size() == 1 ? 0
                           : job_.tune_each()
                               ? candidates.size() * job_.entry_size()
                               : candidates.size();
    runs_total_ =
        trials + static_cast<int64_t>(job_.rounds()) * job_.entry_size();
    REQUANT_RETURN_IF_ERROR(job_.has_synthetic() ? MakeUpInputs() : Preload());
    REQUANT_RETURN_IF_ERROR(LoadContenders(candidates));
    if (job_.compare_outputs()) REQUANT_RETURN_IF_ERROR(CompareOutputs());
    REQUANT_RETURN_IF_ERROR(MeasureRounds());
    if (job_.profile()) REQUANT_RETURN_IF_ERROR(Profile());
    progress_.Finish();
    return Result();
  }

 private:
  const std::vector<Batch>& BatchesOf(int entry) const {
    return batches_.at(entries_[entry].dataset().SerializeAsString());
  }

  // Generates one batch for the signature of the first model, used for all.
  absl::Status MakeUpInputs() {
    const ModelSpec& model = entries_.front().model();
    SetActivity(absl::StrCat("reading the signature of ", model.path()));
    REQUANT_ASSIGN_OR_RETURN(const tensorflow::SignatureDef signature,
                             ReadSignature(model));
    REQUANT_ASSIGN_OR_RETURN(
        SyntheticBatch made,
        MakeSyntheticBatch(signature, model.path(), job_.synthetic(),
                           job_.batch_size()));
    for (BenchmarkEntry& entry : entries_) {
      *entry.mutable_dataset() = made.dataset;
      // The likeliest failures come from numbers beyond a vocabulary.
      entry.set_dataset_name(
          absl::StrCat("the inputs made up for it (--synthetic_ids=", made.ids,
                       ", --synthetic_length=", made.length, ")"));
    }
    result_.set_token_input(made.token_note);
    for (const std::string& note : made.notes) {
      result_.add_synthetic_input(note);
    }
    batches_[made.dataset.SerializeAsString()].push_back(std::move(made.batch));
    return absl::OkStatus();
  }

  // Reads each dataset once, and as many batches as every dataset has.
  absl::Status Preload() {
    BatchOptions options;
    options.batch_size = job_.batch_size();
    options.max_bad_records = job_.max_bad_records();
    options.on_bad_record = SayWarning;
    size_t fewest = job_.max_batches();
    for (const BenchmarkEntry& entry : entries_) {
      const std::string key = entry.dataset().SerializeAsString();
      if (batches_.count(key) > 0) continue;
      SetActivity(
          absl::StrCat("reading the records of ", entry.dataset_name()));
      REQUANT_ASSIGN_OR_RETURN(
          std::vector<Batch> batches,
          PreloadBatches(entry.dataset(), entry.dataset_name(), options,
                         job_.max_batches(), job_.max_bytes()));
      fewest = std::min(fewest, batches.size());
      batches_[key] = std::move(batches);
    }
    for (auto& [key, batches] : batches_) batches.resize(fewest);
    return absl::OkStatus();
  }

  // Loads every graph with its best setting and warms it up. Each runs once
  // before anything takes long, so that a bad one is found immediately.
  absl::Status LoadContenders(const std::vector<StreamSetting>& candidates) {
    for (int entry = 0; entry < job_.entry_size(); ++entry) {
      REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<Contender> contender,
                               Load(entry, candidates.front()));
      REQUANT_RETURN_IF_ERROR(
          RunEntry(entry, contender.get(), kOneBatch, "starting").status());
      contenders_.push_back(std::move(contender));
    }
    batch_seconds_.resize(job_.entry_size());
    for (int entry = 0; entry < job_.entry_size(); ++entry) {
      REQUANT_RETURN_IF_ERROR(ChooseSetting(entry, candidates));
      *result_.add_entry()->mutable_setting() = contenders_[entry]->setting();
    }
    for (int entry = 0; entry < job_.entry_size(); ++entry) {
      REQUANT_RETURN_IF_ERROR(WarmUp(entry));
    }
    return absl::OkStatus();
  }

  // Gives the contender the setting that it is measured with.
  absl::Status ChooseSetting(int entry,
                             const std::vector<StreamSetting>& candidates) {
    if (candidates.size() == 1) return absl::OkStatus();
    if (entry == 0 || job_.tune_each()) return Search(entry, candidates);
    const StreamSetting& wanted = contenders_.front()->setting();
    if (IsSame(wanted, contenders_[entry]->setting())) return absl::OkStatus();
    REQUANT_ASSIGN_OR_RETURN(contenders_[entry], Load(entry, wanted));
    return absl::OkStatus();
  }

  // Gives the contender, which has the first setting, the fastest one.
  absl::Status Search(int entry, const std::vector<StreamSetting>& candidates) {
    std::unique_ptr<Contender> contender = std::move(contenders_[entry]);
    double best_rate = -1;
    for (const StreamSetting& setting : candidates) {
      if (contender == nullptr) {
        REQUANT_ASSIGN_OR_RETURN(contender, Load(entry, setting));
      }
      REQUANT_ASSIGN_OR_RETURN(const double rate, Try(entry, contender.get()));
      SettingTrial& trial = *result_.add_trial();
      trial.set_entry(entry);
      *trial.mutable_setting() = setting;
      trial.set_records_per_second(rate);
      ++runs_done_;
      if (rate > best_rate) {
        contenders_[entry] = std::move(contender);
        best_rate = rate;
      }
      contender = nullptr;
    }
    return absl::OkStatus();
  }

  absl::Status WarmUp(int entry) {
    Contender& contender = *contenders_[entry];
    const int streams = contender.setting().streams();
    const int64_t each = (kWarmUpBatches + streams - 1) / streams;
    return RunEntry(entry, &contender,
                    {kWarmUpSeconds, each, kMaxWarmUpSeconds}, "warming up")
        .status();
  }

  // Returns a quick estimate of the records per second.
  absl::StatusOr<double> Try(int entry, Contender* contender) {
    const std::string what =
        absl::StrCat("trying ", contender->setting().streams(), " x ",
                     contender->setting().threads());
    const auto start = std::chrono::steady_clock::now();
    REQUANT_RETURN_IF_ERROR(
        RunEntry(entry, contender, kTrialWarmUp, what).status());
    std::vector<double> rates;
    for (int i = 0; i < kTrialRuns; ++i) {
      const auto elapsed = std::chrono::steady_clock::now() - start;
      if (i > 0 && elapsed > kMaxTrial) break;
      REQUANT_ASSIGN_OR_RETURN(const StreamTimes times,
                               RunEntry(entry, contender, kTrialRun, what));
      rates.push_back(times.round.records_per_second());
    }
    return Median(rates);
  }

  // Runs every batch through the first graph and each other one, so that no
  // more than two outputs are in memory.
  absl::Status CompareOutputs() {
    std::vector<OutputDifference> differences(job_.entry_size());
    const size_t batches = BatchesOf(0).size();
    for (size_t batch = 0; batch < batches; ++batch) {
      REQUANT_ASSIGN_OR_RETURN(const Tensor first, OutputOf(0, batch));
      for (int entry = 1; entry < job_.entry_size(); ++entry) {
        REQUANT_ASSIGN_OR_RETURN(const Tensor other, OutputOf(entry, batch));
        REQUANT_RETURN_IF_ERROR(
            AddDifference(entry, first, other, &differences[entry]));
      }
    }
    for (int entry = 1; entry < job_.entry_size(); ++entry) {
      *result_.mutable_entry(entry)->mutable_difference() =
          differences[entry].Result();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> OutputOf(int entry, int64_t batch) {
    SetActivity(absl::StrCat("running ", entries_[entry].model().path()));
    SendProgress("comparing outputs");
    return contenders_[entry]->Output(batch);
  }

  absl::Status AddDifference(int entry, const Tensor& first,
                             const Tensor& other,
                             OutputDifference* difference) {
    const std::string& first_path = entries_[0].model().path();
    const std::string& path = entries_[entry].model().path();
    if (first.shape() != other.shape()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the outputs of ", first_path, " and ", path,
          " cannot be compared: their shapes are ", first.shape().DebugString(),
          " and ", other.shape().DebugString()));
    }
    const auto values = FloatValues(first, &first_buffer_);
    const auto other_values = FloatValues(other, &other_buffer_);
    for (const auto* taken : {&values, &other_values}) {
      if (taken->ok()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the output of ", taken == &values ? first_path : path,
                       " cannot be compared: ", taken->status().message()));
    }
    const int64_t row =
        first.dims() == 0 ? 1 : first.dim_size(first.dims() - 1);
    difference->Add(*values, *other_values, row);
    return absl::OkStatus();
  }

  // Changes the order from round to round, so that no graph always runs after
  // the same other one.
  absl::Status MeasureRounds() {
    const int entries = job_.entry_size();
    const int round_batches = job_.round_batches() > 0 ? job_.round_batches()
                                                       : kRoundBatchesPerStream;
    for (int round = 0; round < job_.rounds(); ++round) {
      const std::string what =
          absl::StrCat("round ", round + 1, " of ", job_.rounds());
      for (int i = 0; i < entries; ++i) {
        const int entry = (round + i) % entries;
        REQUANT_ASSIGN_OR_RETURN(
            const StreamTimes times,
            RunEntry(entry, contenders_[entry].get(),
                     {job_.seconds(), round_batches, 0}, what));
        AddRound(entry, times);
        ++runs_done_;
      }
    }
    SendProgress("done");
    return absl::OkStatus();
  }

  void AddRound(int entry, const StreamTimes& times) {
    *result_.mutable_entry(entry)->add_round() = times.round;
    std::vector<double>& all = batch_seconds_[entry];
    all.insert(all.end(), times.batch_seconds.begin(),
               times.batch_seconds.end());
  }

  absl::Status Profile() {
    for (int entry = 0; entry < job_.entry_size(); ++entry) {
      SetActivity(absl::StrCat("profiling ", entries_[entry].model().path()));
      REQUANT_ASSIGN_OR_RETURN(
          *result_.mutable_entry(entry)->mutable_profile(),
          contenders_[entry]->Profile([this] { SendProgress("profiling"); }));
    }
    return absl::OkStatus();
  }

  BenchmarkResult Result() {
    result_.set_cores(cores_);
    const std::vector<Batch>& batches = BatchesOf(0);
    int64_t records = 0;
    for (const Batch& batch : batches) records += batch.size;
    result_.set_batches(static_cast<int64_t>(batches.size()));
    result_.set_records(records);
    for (int entry = 0; entry < job_.entry_size(); ++entry) {
      EntryMeasurement& measurement = *result_.mutable_entry(entry);
      measurement.set_median_batch_seconds(Median(batch_seconds_[entry]));
      measurement.set_p99_batch_seconds(Quantile(batch_seconds_[entry], 0.99));
    }
    return std::move(result_);
  }

  absl::StatusOr<std::unique_ptr<Contender>> Load(
      int entry, const StreamSetting& setting) {
    SetActivity(absl::StrCat("loading ", entries_[entry].model().path()));
    return Contender::Load(entries_[entry], setting, BatchesOf(entry));
  }

  absl::StatusOr<StreamTimes> RunEntry(int entry, Contender* contender,
                                       const RunLength& length,
                                       const std::string& what) {
    SetActivity(absl::StrCat("running ", entries_[entry].model().path()));
    SendProgress(what);
    return contender->Run(length, [&] { SendProgress(what); });
  }

  void SendProgress(const std::string& what) {
    progress_.SetTotal(runs_total_);
    progress_.Update(runs_done_, what);
  }

  const BenchmarkJob& job_;
  const int cores_;
  // The job's entries, with the inputs that were generated for them.
  std::vector<BenchmarkEntry> entries_;
  // Keyed by the serialized dataset.
  std::map<std::string, std::vector<Batch>> batches_;
  std::vector<std::unique_ptr<Contender>> contenders_;
  // For each graph, the times over all rounds.
  std::vector<std::vector<double>> batch_seconds_;
  std::vector<float> first_buffer_;
  std::vector<float> other_buffer_;
  BenchmarkResult result_;
  int64_t runs_done_ = 0;
  int64_t runs_total_ = 0;
  Progress progress_{{"benchmarking", "runs"}, WorkProgress()};
};

}  // namespace

absl::StatusOr<BenchmarkResult> Benchmark(const BenchmarkJob& job) {
  return BenchmarkRun(job).Run();
}

}  // namespace requant
