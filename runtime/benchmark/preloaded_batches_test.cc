#include "runtime/benchmark/preloaded_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/testing/testing.h"

namespace requant::preloaded_batches_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMuch = 1 << 30;

// The sizes of the batches of two that a file of so many records gives.
absl::StatusOr<std::vector<int64_t>> Sizes(int records, int64_t max_batches,
                                           int64_t max_bytes) {
  std::string file;
  for (int i = 0; i < records; ++i) file += RecordBytes(SmallExample(i, 0));
  const DatasetSpec spec = SpecFromText(absl::StrCat(
      "tfrecord { files: \"", WriteTestFile("small.tfrecords", file), "\" }",
      "input { feature: \"x\" placeholder: \"x\" dtype: \"float\" }"));
  BatchOptions options;
  options.batch_size = 2;
  const absl::StatusOr<std::vector<Batch>> batches =
      PreloadBatches(spec, "data.textproto", options, max_batches, max_bytes);
  if (!batches.ok()) return batches.status();
  std::vector<int64_t> sizes;
  for (const Batch& batch : *batches) sizes.push_back(batch.size);
  return sizes;
}

TEST(PreloadBatches, LeavesOutAPartialLastBatch) {
  EXPECT_THAT(Sizes(5, kMuch, kMuch).value(), ElementsAre(2, 2));
}

TEST(PreloadBatches, KeepsAPartialBatchThatIsAllThereIs) {
  EXPECT_THAT(Sizes(1, kMuch, kMuch).value(), ElementsAre(1));
}

TEST(PreloadBatches, StopsAtTheNumberOfBatches) {
  EXPECT_THAT(Sizes(20, 3, kMuch).value(), ElementsAre(2, 2, 2));
}

TEST(PreloadBatches, StopsAtTheNumberOfBytesAfterOneBatch) {
  EXPECT_THAT(Sizes(20, kMuch, 0).value(), ElementsAre(2));
  // Two floats each.
  EXPECT_THAT(Sizes(20, kMuch, 9).value(), ElementsAre(2, 2));
}

TEST(PreloadBatches, RefusesADatasetWithoutRecords) {
  EXPECT_THAT(std::string(Sizes(0, kMuch, kMuch).status().message()),
              HasSubstr("no records"));
}

TEST(PreloadBatches, RefusesRecordsThatTheGraphReadsItself) {
  const DatasetSpec spec =
      SpecFromText("in_graph { files: \"a\" initializer: \"init\" }");
  EXPECT_THAT(std::string(PreloadBatches(spec, "bert.textproto", {}, 1, kMuch)
                              .status()
                              .message()),
              HasSubstr("bert.textproto: its records are read by the graph"));
}

}  // namespace
}  // namespace requant::preloaded_batches_test
