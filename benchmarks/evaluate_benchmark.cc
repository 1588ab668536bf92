// Measures what an evaluation costs beyond running the graph: reading alone, an
// int8 Wide & Deep graph alone, and both together, in turns on the same cores.

#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/process/machine.h"
#include "base/process/tensorflow_child.h"
#include "base/status_macros.h"
#include "benchmarks/frame.h"
#include "benchmarks/graphs.h"
#include "graph/graph_io.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/model.h"
#include "runtime/statistics/timing.h"

DEFINE_int32(records, 200000, "how many records there are");
DEFINE_int32(batch_size, 512, "records in a batch");
DEFINE_int32(rounds, 5, "runs of each kind; medians count");

namespace requant {
namespace {

using tensorflow::Tensor;

// Reading must be this many times as fast as the graph on the same cores.
constexpr double kTarget = 3;

// Measures one run over all records.
absl::StatusOr<Cost> Measure(
    const std::function<absl::StatusOr<int64_t>()>& work) {
  return CostOf([&]() -> absl::Status {
    REQUANT_ASSIGN_OR_RETURN(const int64_t records, work());
    if (records == FLAGS_records) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("only ", records, " of ", FLAGS_records, " records came"));
  });
}

class Benchmark {
 public:
  absl::Status Prepare(const std::string& folder) {
    const std::string data = folder + "/records.tfrecords";
    const std::string graph = folder + "/int8.pb";
    REQUANT_RETURN_IF_ERROR(WriteWideDeepRecords(data, FLAGS_records));
    REQUANT_RETURN_IF_ERROR(
        WriteGraph(Int8WideDeepGraph(), graph, GraphFormat::kBinary));
    ModelSpec model;
    model.set_path(graph);
    dataset_ = WideDeepDataset(data);
    REQUANT_ASSIGN_OR_RETURN(model_, Model::Load(model, {}));
    std::vector<std::string> inputs;
    for (const InputSpec& input : dataset_.input()) {
      inputs.push_back(input.placeholder() + ":0");
    }
    REQUANT_ASSIGN_OR_RETURN(
        function_,
        ModelFunction::Make(model_.get(), inputs,
                            {dataset_.prediction().tensor() + ":0"}));
    return Read([this](const Batch& batch) {
             batches_.push_back(batch);
             return absl::OkStatus();
           })
        .status();
  }

  absl::StatusOr<int64_t> ReadAlone() {
    return Read([](const Batch&) { return absl::OkStatus(); });
  }

  absl::StatusOr<int64_t> RunAlone() {
    int64_t records = 0;
    std::vector<Tensor> outputs;
    for (const Batch& batch : batches_) {
      REQUANT_RETURN_IF_ERROR(function_->Run(batch.inputs, &outputs));
      records += outputs[0].dim_size(0);
    }
    return records;
  }

  // Does what evaluate does, except for loading the graph.
  absl::StatusOr<int64_t> ReadAndRun() {
    std::vector<Tensor> outputs;
    return Read([&](const Batch& batch) {
      return function_->Run(batch.inputs, &outputs);
    });
  }

 private:
  // Reads all records, batch by batch, and returns how many there were.
  absl::StatusOr<int64_t> Read(
      const std::function<absl::Status(const Batch&)>& use) {
    BatchOptions options;
    options.batch_size = FLAGS_batch_size;
    REQUANT_ASSIGN_OR_RETURN(auto source, OpenBatchSource(dataset_, options));
    int64_t records = 0;
    Batch batch;
    while (true) {
      REQUANT_ASSIGN_OR_RETURN(const bool more, source->Next(&batch));
      if (!more) return records;
      REQUANT_RETURN_IF_ERROR(use(batch));
      records += batch.size;
    }
  }

  DatasetSpec dataset_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelFunction> function_;
  std::vector<Batch> batches_;
};

void PrintRow(const char* name, const std::vector<Cost>& costs) {
  std::vector<double> wall, cpu;
  for (const Cost& cost : costs) {
    wall.push_back(FLAGS_records / cost.wall);
    cpu.push_back(1e6 * cost.cpu / FLAGS_records);
  }
  std::printf("%-16s %10.0f records/s %8.3f CPU us/record\n", name,
              Median(wall), Median(cpu));
}

absl::Status Compare(Benchmark* benchmark) {
  std::vector<Cost> read, run, both;
  for (int round = 0; round <= FLAGS_rounds; ++round) {
    REQUANT_ASSIGN_OR_RETURN(const Cost a,
                             Measure([&] { return benchmark->ReadAlone(); }));
    REQUANT_ASSIGN_OR_RETURN(const Cost b,
                             Measure([&] { return benchmark->RunAlone(); }));
    REQUANT_ASSIGN_OR_RETURN(const Cost c,
                             Measure([&] { return benchmark->ReadAndRun(); }));
    // The first round is a warm-up.
    if (round == 0) continue;
    read.push_back(a);
    run.push_back(b);
    both.push_back(c);
  }
  PrintRow("reading", read);
  PrintRow("int8 graph", run);
  PrintRow("both", both);
  std::vector<double> faster, whole;
  for (size_t i = 0; i < read.size(); ++i) {
    faster.push_back(run[i].cpu / read[i].cpu);
    whole.push_back(both[i].wall / run[i].wall);
  }
  std::printf(
      "reading is %.1f times as fast as the graph, by CPU time (target "
      "%.0f: %s)\n",
      Median(faster), kTarget, MetText(Median(faster) >= kTarget));
  std::printf("both together take %.2f times as long as the graph alone\n",
              Median(whole));
  return absl::OkStatus();
}

absl::Status Run() {
  if (FLAGS_records < 1 || FLAGS_batch_size < 1 || FLAGS_rounds < 1) {
    return absl::InvalidArgumentError(
        "--records, --batch_size and --rounds are at least 1");
  }
  return WithFolder([](const std::string& folder) -> absl::Status {
    Benchmark benchmark;
    REQUANT_RETURN_IF_ERROR(benchmark.Prepare(folder));
    std::printf("%d records in batches of %d on %d cores, %d rounds\n",
                FLAGS_records, FLAGS_batch_size, ReadCoreLimits().usable(),
                FLAGS_rounds);
    return Compare(&benchmark);
  });
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  requant::EnterTensorFlowEnvironment(argv);
  return requant::BenchmarkMain(
      argc, argv,
      {"evaluate_benchmark",
       "measures what an evaluation costs beside the graph itself.",
       "evaluate_benchmark --records=200000",
       {__FILE__},
       ""},
      requant::Run);
}
