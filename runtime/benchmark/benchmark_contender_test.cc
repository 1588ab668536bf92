#include "runtime/benchmark/benchmark_contender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/testing/status_matchers.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/testing/testing.h"

namespace requant::benchmark_contender_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMuch = 1 << 30;

// Returns the sizes of the batches of two that a file of `records` gives.
absl::StatusOr<std::vector<int64_t>> Sizes(int records, int64_t max_batches,
                                           int64_t max_bytes) {
  std::string file;
  for (int i = 0; i < records; ++i) file += RecordBytes(SmallExample(i, 0));
  const DatasetSpec spec = SpecFromText(absl::StrCat(
      "tfrecord { files: \"", WriteTestFile("small.tfrecords", file), "\" }",
      "input { feature: \"x\" placeholder: \"x\" dtype: \"float\" }"));
  BatchOptions options;
  options.batch_size = 2;
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<Batch> batches,
      PreloadBatches(spec, "data.textproto", options, max_batches, max_bytes));
  std::vector<int64_t> sizes;
  for (const Batch& batch : batches) sizes.push_back(batch.size);
  return sizes;
}

TEST(PreloadBatches, LeavesOutAPartialLastBatchUnlessItIsAllThereIs) {
  EXPECT_THAT(Sizes(5, kMuch, kMuch).value(), ElementsAre(2, 2));
  EXPECT_THAT(Sizes(1, kMuch, kMuch).value(), ElementsAre(1));
}

TEST(PreloadBatches, StopsAtTheNumberOfBatchesOrBytes) {
  EXPECT_THAT(Sizes(20, 3, kMuch).value(), ElementsAre(2, 2, 2));
  // But not before one batch; two floats each.
  EXPECT_THAT(Sizes(20, kMuch, 0).value(), ElementsAre(2));
  EXPECT_THAT(Sizes(20, kMuch, 9).value(), ElementsAre(2, 2));
}

TEST(PreloadBatches, RefusesADatasetWithoutRecords) {
  EXPECT_THAT(Sizes(0, kMuch, kMuch), FailsWith(HasSubstr("no records")));
}

TEST(PreloadBatches, RefusesRecordsThatTheGraphReadsItself) {
  const DatasetSpec spec =
      SpecFromText("in_graph { files: \"a\" initializer: \"init\" }");
  EXPECT_THAT(PreloadBatches(spec, "bert.textproto", {}, 1, kMuch),
              FailsWith(HasSubstr(
                  "bert.textproto: its records are read by the graph")));
}

}  // namespace
}  // namespace requant::benchmark_contender_test
