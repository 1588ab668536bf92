#include "runtime/datasets/batch_source.h"

#include "runtime/datasets/testing/testing.h"

namespace requant::batch_source_test {
namespace {

// Writes a file of `count` records whose x is their number.
std::string RecordsFile(const std::string& name, int count, int first = 0) {
  std::string bytes;
  for (int i = first; i < first + count; ++i) {
    bytes += RecordBytes(SmallExample(i, i % 2));
  }
  return WriteTestFile(name, bytes);
}

DatasetSpec SmallSpec(const Strings& files) {
  DatasetSpec spec = SpecFromText(R"(
    input { feature: "x" placeholder: "p" dtype: "float" }
    label { feature: "label" dtype: "int64" })");
  spec.mutable_tfrecord();
  for (const std::string& file : files)
    spec.mutable_tfrecord()->add_files(file);
  return spec;
}

Strings Numbers(int count) {
  Strings numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(absl::StrCat(i));
  return numbers;
}

BatchOptions WithBatchSize(int64_t size) {
  BatchOptions options;
  options.batch_size = size;
  return options;
}

TEST(BatchSource, GivesRecordsInOrderWhateverTheThreadsAndBatches) {
  const DatasetSpec spec =
      SmallSpec({RecordsFile("order_a", 700), RecordsFile("order_b", 1, 700),
                 RecordsFile("order_c", 1000, 701)});
  for (const int threads : {1, 3}) {
    for (const int batch_size : {1, 7, 64, 100, 5000}) {
      BatchOptions options = WithBatchSize(batch_size);
      options.threads = threads;
      options.prefetch = threads - 1;
      const ReadResult result = ReadAll(spec, options);
      ASSERT_EQ(result.status, absl::OkStatus());
      EXPECT_EQ(result.Values(0), Numbers(1701)) << batch_size;
      int64_t first = 0;
      for (const Batch& batch : result.batches) {
        EXPECT_EQ(batch.first_record, first);
        EXPECT_EQ(batch.size, std::min<int64_t>(batch_size, 1701 - first));
        ASSERT_EQ(batch.labels.shape(), tensorflow::TensorShape({batch.size}));
        EXPECT_EQ(batch.labels.flat<int64_t>()(0), first % 2);
        first += batch.size;
      }
    }
  }
}

TEST(BatchSource, EndsAfterMaxRecordsAndSeesNoErrorBehindThem) {
  const std::string file = WriteTestFile(
      "max_records", RecordBytes(SmallExample(0, 0)) +
                         RecordBytes(SmallExample(1, 1)) + "garbage");
  BatchOptions options = WithBatchSize(10);
  options.max_records = 2;
  const ReadResult result = ReadAll(SmallSpec({file}), options);
  EXPECT_EQ(result.status, absl::OkStatus());
  EXPECT_EQ(result.Values(0), Numbers(2));
}

TEST(BatchSource, PassesOverTheFirstGoodRecords) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    std::string record = RecordBytes(SmallExample(i, 0));
    if (i == 3) record.back() ^= 1;
    bytes += record;
  }
  const DatasetSpec spec = SmallSpec({WriteTestFile("pass_over", bytes)});
  for (const int batch_size : {1, 7, 100}) {
    BatchOptions options = WithBatchSize(batch_size);
    options.max_bad_records = 1;
    options.skip_records = 250;
    options.max_records = 20;
    const ReadResult result = ReadAll(spec, options);
    ASSERT_OK(result.status);
    // Record 3 is bad and counts for nothing but the records' numbers.
    EXPECT_EQ(result.batches[0].first_record, 251);
    EXPECT_EQ(result.Values(0).front(), "251");
    EXPECT_THAT(result.Values(0), testing::SizeIs(20));
    options.skip_records = 300;
    EXPECT_THAT(ReadAll(spec, options).status.message(),
                testing::HasSubstr("pass_over after the first 299"));
  }
}

TEST(BatchSource, SkipsAndCountsBadRecordsUpToTheLimit) {
  std::string bytes;
  for (int i = 0; i < 10; ++i) {
    std::string record = RecordBytes(SmallExample(i, 0));
    if (i == 0 || i == 5 || i == 9) record.back() ^= 1;
    bytes += record;
  }
  const DatasetSpec spec = SmallSpec({WriteTestFile("skips", bytes)});
  BatchOptions options = WithBatchSize(4);
  options.max_bad_records = 3;
  ReadResult result = ReadAll(spec, options);
  ASSERT_EQ(result.status, absl::OkStatus());
  EXPECT_EQ(result.Values(0), (Strings{"1", "2", "3", "4", "6", "7", "8"}));
  ASSERT_EQ(result.batches.size(), 2);
  EXPECT_EQ(result.batches[0].first_record, 1);
  EXPECT_EQ(result.batches[1].first_record, 6);
  EXPECT_EQ(result.bad_records, 3);
  EXPECT_EQ(result.bad_messages.size(), 3);

  options.max_bad_records = 2;
  result = ReadAll(spec, options);
  EXPECT_TRUE(absl::IsDataLoss(result.status));
  EXPECT_EQ(result.status.message(),
            "skips: record 9 (counting from 0): the checksum of its data is "
            "wrong; 2 bad records before it were skipped, as many as allowed");
}

TEST(BatchSource, CountsTheFilesWhoseRestWasNotRead) {
  std::string bad_length = RecordBytes(SmallExample(2, 0));
  bad_length[0] ^= 1;
  std::string bad_data = RecordBytes(SmallExample(2, 0));
  bad_data.back() ^= 1;
  const std::string good = RecordBytes(SmallExample(1, 0));
  BatchOptions options = WithBatchSize(4);
  options.max_bad_records = 9;
  const ReadResult result =
      ReadAll(SmallSpec({WriteTestFile("lost_a", good + bad_length + good),
                         WriteTestFile("lost_b", good + bad_data + good),
                         WriteTestFile("lost_c", good + good.substr(0, 20))}),
              options);
  EXPECT_EQ(result.bad_records, 3);
  EXPECT_EQ(result.lost_rests, 2);
}

TEST(BatchSource, RepeatsItsErrorAndItsEnd) {
  auto source = OpenBatchSource(SmallSpec({RecordsFile("repeats", 1)}), {});
  ASSERT_TRUE(source.ok());
  Batch batch;
  EXPECT_TRUE(*(*source)->Next(&batch));
  EXPECT_FALSE(*(*source)->Next(&batch));
  EXPECT_FALSE(*(*source)->Next(&batch));

  source = OpenBatchSource(SmallSpec({WriteTestFile("text", "some text")}), {});
  ASSERT_TRUE(source.ok());
  const absl::Status status = (*source)->Next(&batch).status();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ((*source)->Next(&batch).status(), status);
}

TEST(BatchSource, CanBeLeftAtAnyTime) {
  const DatasetSpec spec = SmallSpec({RecordsFile("left", 5000)});
  for (int batches = 0; batches < 5; ++batches) {
    auto source = OpenBatchSource(spec, WithBatchSize(64));
    ASSERT_TRUE(source.ok());
    Batch batch;
    for (int i = 0; i < batches; ++i) ASSERT_TRUE(*(*source)->Next(&batch));
  }
}

TEST(BatchSource, RefusesFilesWithoutRecords) {
  const std::string empty = WriteTestFile("empty", "");
  ReadResult result = ReadAll(SmallSpec({empty, empty}));
  EXPECT_EQ(result.status.message(), "no records in empty, empty");

  std::string bad = RecordBytes("x");
  BatchOptions options;
  options.max_bad_records = 5;
  bad.back() ^= 1;
  result = ReadAll(SmallSpec({WriteTestFile("all_bad", bad + bad)}), options);
  EXPECT_EQ(result.status.message(),
            "no readable records in all_bad: 2 bad ones");
}

TEST(BatchSource, FeedsAWholeBatchInAnotherShape) {
  const ReadResult result = ReadContents(
      "jsonl", {"{\"x\": [1, 2, 3, 4]}\n{\"x\": [5, 6, 7, 8]}"}, R"(
          input { feature: "x" placeholder: "p" dtype: "int64" shape: 4
                  feed_shape: [-1, 2] })");
  ASSERT_OK(result.status);
  ASSERT_EQ(result.batches.size(), 1);
  EXPECT_EQ(result.batches[0].inputs[0].shape(),
            tensorflow::TensorShape({4, 2}));
  EXPECT_EQ(result.batches[0].labels.NumElements(), 0);
  EXPECT_EQ(result.Values(0),
            (Strings{"1", "2", "3", "4", "5", "6", "7", "8"}));
}

TEST(BatchSource, RefusesWhatItCannotOpen) {
  EXPECT_EQ(ReadAll(SmallSpec({"/nowhere"})).status.message(),
            "cannot read /nowhere: No such file or directory");
  EXPECT_EQ(ReadAll(SmallSpec({"/"})).status.message(),
            "cannot read /: Is a directory");
  EXPECT_FALSE(ReadAll(SpecFromText("in_graph { files: 'x' }")).status.ok());
}

// The estimate is based on bytes, so it is about right from the first batch on,
// and exact at the end.
TEST(BatchSource, EstimatesTheNumberOfRecords) {
  std::string records, lines = "x\n";
  for (int i = 0; i < 6000; ++i) {
    records += RecordBytes(SmallExample(i, 0));
    lines += "1234567890\n";
  }
  for (const auto& [source, file] :
       {std::pair("tfrecord", WriteTestFile("small.tfrecords", records)),
        std::pair("tfrecord", WriteTestFile("small.gz", Gzip(records))),
        std::pair("csv", WriteTestFile("small.csv", lines)),
        std::pair("csv", WriteTestFile("small.csv.gz", Gzip(lines)))}) {
    DatasetSpec spec = SpecFromText(
        absl::StrCat(source, " { files: '", file,
                     "' } input { feature: 'x' placeholder: 'x' dtype: "
                     "'float' }"));
    const auto opened = OpenBatchSource(spec, {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    Batch batch;
    ASSERT_TRUE(*(*opened)->Next(&batch));
    EXPECT_NEAR((*opened)->EstimatedRecords(), 6000, 600) << file;
    while (*(*opened)->Next(&batch)) {
    }
    EXPECT_EQ((*opened)->EstimatedRecords(), 6000) << file;
  }
}

TEST(BatchSource, JoinsFeaturesInTheirOrder) {
  const DatasetSpec spec = SpecFromText(absl::StrCat(
      "csv { files: '",
      WriteTestFile("joined.csv", "a,b,s,t,y\n1,2,u,v,0\n3,,w,,1\n5,6,x,y,1\n"),
      R"(' }
      input { feature: ["b", "a"] placeholder: "p" dtype: "float" shape: [2, 1]
              default_value: "-1" }
      input { feature: "a" placeholder: "q" dtype: "int32" }
      input { feature: ["t", "s", "y"] placeholder: "r" dtype: "string"
              shape: 3 feed_shape: -1 default_value: "none" }
      label { feature: "y" dtype: "int64" })"));
  for (const int batch_size : {1, 2, 3}) {
    const ReadResult result = ReadAll(spec, WithBatchSize(batch_size));
    ASSERT_EQ(result.status, absl::OkStatus());
    EXPECT_EQ(result.Values(0), (Strings{"2", "1", "-1", "3", "6", "5"}));
    EXPECT_EQ(result.Values(1), (Strings{"1", "3", "5"}));
    EXPECT_EQ(result.Values(2),
              (Strings{"v", "u", "0", "none", "w", "1", "y", "x", "1"}));
    EXPECT_EQ(result.batches[0].inputs[0].shape(),
              tensorflow::TensorShape({batch_size, 2, 1}));
    EXPECT_EQ(result.batches[0].inputs[2].shape(),
              tensorflow::TensorShape({3 * batch_size}));
    EXPECT_EQ(result.batches[0].labels.flat<int64_t>()(0), 0);
  }
}

TEST(BatchSource, GivesTheClassesOfTextLabels) {
  const DatasetSpec spec = SpecFromText(absl::StrCat(
      "csv { files: '",
      WriteTestFile("classes.csv",
                    "x,kind\n1,cat\n2,cow\n3,dog\n4,\"\"\n5,dog\n"),
      R"(' }
      input { feature: "x" placeholder: "p" dtype: "float" }
      label { feature: "kind" dtype: "string" vocabulary: ["dog", "cat"] })"));
  EXPECT_EQ(ReadAll(spec).status.message(),
            "classes.csv:3: label \"kind\" has \"cow\", which is not in its "
            "vocabulary; --max_bad_records leaves such records out");
  BatchOptions options = WithBatchSize(2);
  options.max_bad_records = 2;
  const ReadResult result = ReadAll(spec, options);
  ASSERT_EQ(result.status, absl::OkStatus());
  EXPECT_EQ(result.Values(0), (Strings{"1", "3", "5"}));
  EXPECT_EQ(result.bad_records, 2);
  std::vector<int64_t> labels;
  for (const Batch& batch : result.batches) {
    ASSERT_EQ(batch.labels.dtype(), tensorflow::DT_INT64);
    for (int64_t i = 0; i < batch.size; ++i) {
      labels.push_back(batch.labels.flat<int64_t>()(i));
    }
  }
  EXPECT_EQ(labels, (std::vector<int64_t>{1, 0, 0}));
}

}  // namespace
}  // namespace requant::batch_source_test
