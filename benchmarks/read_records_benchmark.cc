// Compares our reading of TFRecord files with TensorFlow's RecordReader and
// FastParseExample, on the Wide & Deep recipe's preprocessed records.

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "benchmarks/frame.h"
#include "benchmarks/graphs.h"
#include "runtime/datasets/batch_source.h"
#include "tensorflow/core/lib/io/record_reader.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/util/example_proto_fast_parsing.h"

DEFINE_int32(records, 400000, "How many records the file has.");
DEFINE_int32(batch_size, 512, "Records in a batch.");
DEFINE_int32(repeats, 5, "Runs of each reader; the best one counts.");

namespace requant {
namespace {

using tensorflow::Tensor;

// Three times the rate per core of an int8 Wide & Deep graph.
constexpr double kTargetPerThread = 350000;

// Sums of what was read, for comparison.
struct Sums {
  int64_t records = 0;
  int64_t categorical = 0;
  int64_t labels = 0;
  double numeric = 0;

  void Add(const Tensor& numbers, const Tensor& pairs, const Tensor& label) {
    records += label.NumElements();
    // Only a few records of each batch are added, so that this costs nothing.
    for (int64_t i = 0; i < label.NumElements(); i += 64) {
      numeric += numbers.flat<float>()(i * kNumeric + i % kNumeric);
      categorical += pairs.flat<int64_t>()(i * kCategorical + i % kCategorical);
      labels += label.flat<int64_t>()(i);
    }
  }
  bool operator==(const Sums& other) const {
    return records == other.records && categorical == other.categorical &&
           labels == other.labels && numeric == other.numeric;
  }
};

absl::StatusOr<Sums> ReadWithOurs(const std::string& path, int threads) {
  const DatasetSpec spec = WideDeepDataset(path);
  BatchOptions options;
  options.threads = threads;
  options.batch_size = FLAGS_batch_size;
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                           OpenBatchSource(spec, options));
  Sums sums;
  for (;;) {
    Batch batch;
    REQUANT_ASSIGN_OR_RETURN(const bool more, source->Next(&batch));
    if (!more) return sums;
    sums.Add(batch.inputs[0], batch.inputs[1], batch.labels);
  }
}

absl::StatusOr<Sums> ReadWithTensorFlow(const std::string& path) {
  tensorflow::example::FastParseExampleConfig config;
  config.dense.emplace_back("numeric_1", tensorflow::DT_FLOAT,
                            tensorflow::PartialTensorShape({kNumeric}),
                            Tensor(tensorflow::DT_FLOAT, {0}), false, kNumeric);
  config.dense.emplace_back("string_1", tensorflow::DT_INT64,
                            tensorflow::PartialTensorShape({kCategorical}),
                            Tensor(tensorflow::DT_INT64, {0}), false,
                            kCategorical);
  config.dense.emplace_back("label", tensorflow::DT_INT64,
                            tensorflow::PartialTensorShape({}),
                            Tensor(tensorflow::DT_INT64, {0}), false, 1);
  std::unique_ptr<tensorflow::RandomAccessFile> file;
  REQUANT_RETURN_IF_ERROR(
      tensorflow::Env::Default()->NewRandomAccessFile(path, &file));
  tensorflow::io::RecordReaderOptions options;
  options.buffer_size = 256 << 10;
  tensorflow::io::SequentialRecordReader reader(file.get(), options);
  Sums sums;
  for (bool more = true; more;) {
    std::vector<tensorflow::tstring> batch;
    while (batch.size() < FLAGS_batch_size) {
      tensorflow::tstring record;
      const absl::Status status = reader.ReadRecord(&record);
      more = status.ok();
      if (absl::IsOutOfRange(status)) break;
      REQUANT_RETURN_IF_ERROR(status);
      batch.push_back(std::move(record));
    }
    if (batch.empty()) break;
    tensorflow::example::Result result;
    REQUANT_RETURN_IF_ERROR(tensorflow::example::FastParseExample(
        config, batch, {}, nullptr, &result));
    sums.Add(result.dense_values[0], result.dense_values[1],
             result.dense_values[2]);
  }
  return sums;
}

struct Rates {
  // Records per second of wall time and per CPU second of all threads.
  double wall = 0;
  double cpu = 0;
  Sums sums;
};

absl::StatusOr<Rates> Measure(
    const std::function<absl::StatusOr<Sums>()>& read) {
  Rates best;
  for (int i = 0; i < FLAGS_repeats; ++i) {
    REQUANT_ASSIGN_OR_RETURN(const Cost cost, CostOf([&]() -> absl::Status {
                               REQUANT_ASSIGN_OR_RETURN(best.sums, read());
                               return absl::OkStatus();
                             }));
    best.cpu = std::max(best.cpu, best.sums.records / cost.cpu);
    best.wall = std::max(best.wall, best.sums.records / cost.wall);
  }
  return best;
}

void Print(const char* reader, const Rates& rates) {
  std::printf("%-24s %9.0f records/s %9.0f records per CPU second\n", reader,
              rates.wall, rates.cpu);
}

absl::Status Compare(const std::string& path) {
  REQUANT_RETURN_IF_ERROR(WriteWideDeepRecords(path, FLAGS_records));
  std::printf("%d records in batches of %d; best of %d runs each\n",
              FLAGS_records, FLAGS_batch_size, FLAGS_repeats);
  REQUANT_ASSIGN_OR_RETURN(const Rates stock,
                           Measure([&] { return ReadWithTensorFlow(path); }));
  Print("TensorFlow, one thread", stock);
  for (const int threads : {1, 2}) {
    REQUANT_ASSIGN_OR_RETURN(
        const Rates ours, Measure([&] { return ReadWithOurs(path, threads); }));
    Print(threads == 1 ? "requant, one thread" : "requant, two threads", ours);
    if (!(ours.sums == stock.sums) || ours.sums.records != FLAGS_records) {
      return absl::InternalError("the two readers read different records");
    }
    std::printf("  target %.0f records per CPU second: %s\n", kTargetPerThread,
                MetText(ours.cpu >= kTargetPerThread));
  }
  return absl::OkStatus();
}

absl::Status Run() {
  if (FLAGS_records < 1 || FLAGS_batch_size < 1 || FLAGS_repeats < 1) {
    return absl::InvalidArgumentError(
        "--records, --batch_size and --repeats are at least 1");
  }
  return WithFolder([](const std::string& folder) {
    return Compare(folder + "/records.tfrecords");
  });
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::BenchmarkMain(
      argc, argv,
      {"read_records_benchmark",
       "Compares our reading of TFRecord files with TensorFlow's.",
       "read_records_benchmark --records=400000",
       {__FILE__},
       ""},
      requant::Run);
}
