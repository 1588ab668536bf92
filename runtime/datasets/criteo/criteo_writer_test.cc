#include "runtime/datasets/criteo/criteo_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "runtime/datasets/criteo/criteo_format.h"
#include "tensorflow/core/example/example.pb.h"
#include "tensorflow/core/lib/io/record_reader.h"
#include "tensorflow/core/platform/env.h"

namespace requant::criteo_writer_test {
namespace {

using testing::HasSubstr;

// Label 1, I1 = 0, I2 = 10 ..., C1 = "c1" ...; I3 and C4 are missing.
struct SomeRecord {
  CriteoRecord record;
  std::vector<std::string> categories;

  SomeRecord() {
    record.label = 1;
    for (int i = 0; i < kNumericColumns; ++i) record.numeric[i] = 10 * i;
    for (int i = 0; i < kCategoricalColumns; ++i) {
      categories.push_back(absl::StrCat("c", i + 1));
    }
    record.numeric[2] = kMissingNumeric;
    record.missing_numeric = 1u << 2;
    categories[3] = kMissingCategorical;
    for (int i = 0; i < kCategoricalColumns; ++i) {
      record.categorical[i] = categories[i];
    }
  }
};

std::string Path() { return testing::TempDir() + "records"; }

std::string WriteRecords(const std::vector<CriteoRecord>& records,
                         CriteoFormat format, const NumericRanges& ranges = {},
                         int64_t buckets = kDefaultBuckets) {
  EXPECT_TRUE(WriteFileAtomically(Path(), [&](int fd) {
                CriteoWriter writer(fd, format, ranges, buckets);
                for (const CriteoRecord& record : records) {
                  EXPECT_TRUE(writer.Write(record).ok());
                }
                return writer.Flush();
              }).ok());
  return ReadFile(Path()).value();
}

// Reads them back as TensorFlow does.
std::vector<tensorflow::Example> ReadRecords() {
  std::unique_ptr<tensorflow::RandomAccessFile> file;
  EXPECT_TRUE(
      tensorflow::Env::Default()->NewRandomAccessFile(Path(), &file).ok());
  tensorflow::io::RecordReader reader(file.get());
  uint64_t offset = 0;
  tensorflow::tstring text;
  std::vector<tensorflow::Example> records;
  for (;;) {
    const absl::Status status = reader.ReadRecord(&offset, &text);
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
      return records;
    }
    EXPECT_TRUE(records.emplace_back().ParseFromString(text));
  }
}

TEST(CriteoWriter, WritesMissingValuesAsNothingInText) {
  EXPECT_EQ(WriteRecords({SomeRecord().record}, CriteoFormat::kCsv),
            "1,0,10,,30,40,50,60,70,80,90,100,110,120,c1,c2,c3,,c5,c6,c7,c8,c9,"
            "c10,c11,c12,c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,c24,c25,"
            "c26\n");
}

TEST(CriteoWriter, WritesNumbersThatReadBackTheSame) {
  SomeRecord some;
  some.record.numeric[0] = 0.1f;
  some.record.numeric[1] = -16777216;
  some.record.numeric[3] = 1.0e30f;
  EXPECT_THAT(WriteRecords({some.record}, CriteoFormat::kCsv),
              HasSubstr("1,0.1,-16777216,,1e+30,40,"));
}

TEST(CriteoWriter, WritesRawRecordsWithMissingValuesFilled) {
  const SomeRecord some;
  WriteRecords({some.record, some.record}, CriteoFormat::kTfRecord);
  const std::vector<tensorflow::Example> records = ReadRecords();
  ASSERT_EQ(records.size(), 2);
  const auto& features = records[1].features().feature();
  ASSERT_EQ(features.size(), 40);
  EXPECT_EQ(features.at("label").int64_list().value(0), 1);
  for (int i = 0; i < kNumericColumns; ++i) {
    const auto& values = features.at(NumericName(i)).float_list();
    ASSERT_EQ(values.value_size(), 1);
    EXPECT_EQ(values.value(0), some.record.numeric[i]);
  }
  for (int i = 0; i < kCategoricalColumns; ++i) {
    const auto& values = features.at(CategoricalName(i)).bytes_list();
    ASSERT_EQ(values.value_size(), 1);
    EXPECT_EQ(values.value(0), some.categories[i]);
  }
}

TEST(CriteoWriter, WritesPreprocessedRecordsInTheirOrder) {
  const SomeRecord some;
  NumericRanges ranges;
  ranges.min.fill(-1);
  ranges.range.fill(3);
  WriteRecords({some.record}, CriteoFormat::kPreprocessed, ranges, 700);
  const std::vector<tensorflow::Example> records = ReadRecords();
  ASSERT_EQ(records.size(), 1);
  const auto& features = records[0].features().feature();
  ASSERT_EQ(features.size(), 3);
  EXPECT_EQ(features.at("label").int64_list().value(0), 1);
  const auto& numbers = features.at("numeric_1").float_list();
  ASSERT_EQ(numbers.value_size(), 13);
  for (int i = 0; i < 13; ++i) {
    EXPECT_EQ(numbers.value(i),
              (some.record.numeric[kNumericOrder[i]] + 1.0f) / 3.0f);
  }
  const auto& pairs = features.at("string_1").int64_list();
  ASSERT_EQ(pairs.value_size(), 52);
  for (int i = 0; i < 26; ++i) {
    EXPECT_EQ(pairs.value(2 * i), i);
    EXPECT_EQ(pairs.value(2 * i + 1),
              HashBucket(some.categories[kCategoricalOrder[i]], 700));
  }
}

TEST(CriteoWriter, WritesCategoriesOfAnyLengthAndManyBuckets) {
  SomeRecord some;
  const std::string longest(60000, 'x');
  some.record.categorical[0] = longest;
  WriteRecords({some.record}, CriteoFormat::kTfRecord);
  EXPECT_EQ(
      ReadRecords().at(0).features().feature().at("C1").bytes_list().value(0),
      longest);
  constexpr int64_t kMany = int64_t{1} << 60;
  NumericRanges ranges;
  ranges.min.fill(0);
  ranges.range.fill(1);
  WriteRecords({some.record}, CriteoFormat::kPreprocessed, ranges, kMany);
  EXPECT_EQ(ReadRecords()
                .at(0)
                .features()
                .feature()
                .at("string_1")
                .int64_list()
                .value(1),
            HashBucket("c10", kMany));
}

TEST(CriteoWriter, FailsOnAFullDevice) {
  const absl::Status status = WriteFileAtomically("/dev/full", [](int fd) {
    CriteoWriter writer(fd, CriteoFormat::kCsv);
    EXPECT_TRUE(writer.Write(SomeRecord().record).ok());
    return writer.Flush();
  });
  EXPECT_THAT(std::string(status.message()), HasSubstr("No space left"));
}

}  // namespace
}  // namespace requant::criteo_writer_test
