#include "runtime/benchmark/published_benchmark.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "base/text/printable.h"
#include "runtime/session/worker.pb.h"

namespace requant {
namespace {

std::string Dashes() { return absl::StrCat(std::string(57, '-'), "\n"); }

// As Python prints a number: "0.0", "6.612018585205078", "nan".
std::string PythonNumber(double number) {
  if (std::isnan(number)) return "nan";
  std::string text = JsonNumber(number);
  if (text.find_first_of(".en") == text.npos) text += ".0";
  return text;
}

std::string ModelLines(const std::string& name, int64_t batch_size,
                       const EntryMeasurement& entry) {
  const double seconds = entry.median_batch_seconds();
  const double throughput =
      seconds > 0 ? static_cast<double>(batch_size) / seconds : 0;
  return absl::StrFormat(
      "%sThe infrence results of %s with TF2.x API\n"
      "Batch size = %d\n"
      "Latency: %.3f ms\n"
      "Throughput: %.3f images/sec\n",
      Dashes(), name, batch_size, 1000 * seconds, throughput);
}

std::string Values(int64_t count) {
  return absl::StrCat(count, count == 1 ? " value is" : " values are");
}

std::string DifferenceLines(const OutputDifferenceMessage& difference) {
  std::string text =
      absl::StrCat(Dashes(), "MSE of the output logits between two models = ",
                   PythonNumber(difference.mse()),
                   "\nCosine similarity of the output logits = ",
                   PythonNumber(difference.cosine()), "\n");
  if (difference.rows() > 0) {
    absl::StrAppendFormat(
        &text, "Top-1 agreement = %.4f %% (%d of %d rows of the output)\n",
        100.0 * static_cast<double>(difference.agreeing_rows()) /
            static_cast<double>(difference.rows()),
        difference.agreeing_rows(), difference.rows());
  }
  absl::StrAppend(&text, "Largest difference of the output logits = ",
                  PythonNumber(difference.max()), "\n");
  if (difference.lost_values() > 0) {
    absl::StrAppend(&text, "warning: ", Values(difference.lost_values()),
                    " NaN or infinite in only one of the two models, or in "
                    "different ways, and in none of these figures\n");
  }
  if (difference.never_finite_values() > 0) {
    absl::StrAppend(&text,
                    "warning: ", Values(difference.never_finite_values()),
                    " finite in neither model, and in none of these figures\n");
  }
  return text;
}

}  // namespace

std::string PublishedBenchmarkText(const BenchmarkJob& job,
                                   const BenchmarkResult& result) {
  const int64_t batch_size = std::min(job.batch_size(), result.records());
  std::string text;
  for (int i = 0; i < result.entry_size(); ++i) {
    std::string name =
        absl::StrCat(i == 0 ? "original " : "converted ", job.published_name());
    if (i > 0 && result.entry_size() > 2) {
      absl::StrAppend(&name, " (", job.entry(i).model().path(), ")");
    }
    absl::StrAppend(&text,
                    ModelLines(Printable(name), batch_size, result.entry(i)));
  }
  for (int i = 1; i < result.entry_size(); ++i) {
    if (!result.entry(i).has_difference()) continue;
    absl::StrAppend(&text, DifferenceLines(result.entry(i).difference()));
  }
  if (!result.token_input().empty()) {
    absl::StrAppend(&text, "note: ", Printable(result.token_input()), "\n");
  }
  for (const std::string& input : result.synthetic_input()) {
    absl::StrAppend(&text, "note: made up ", Printable(input),
                    "; --dataset or --tokens runs real ones\n");
  }
  absl::StrAppend(&text,
                  "note: latency is the median time of a batch, throughput the "
                  "batch size divided by it; the published throughput left the "
                  "batch size out\n");
  return text;
}

}  // namespace requant
