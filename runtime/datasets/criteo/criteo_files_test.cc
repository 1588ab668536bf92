#include "runtime/datasets/criteo/criteo_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "tensorflow/core/example/example.pb.h"
#include "tensorflow/core/lib/io/record_reader.h"
#include "tensorflow/core/platform/env.h"

namespace requant::criteo_files_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Returns a row of label 1, I1 = 1 ... I13 = 13, C1 = "c1" ... C26 = "c26".
std::vector<std::string> Row() {
  std::vector<std::string> fields = {"1"};
  for (int i = 1; i <= 13; ++i) fields.push_back(absl::StrCat(i));
  for (int i = 1; i <= 26; ++i) fields.push_back(absl::StrCat("c", i));
  return fields;
}

std::string Line(const std::vector<std::string>& fields,
                 std::string_view delimiter = ",") {
  return absl::StrJoin(fields, delimiter);
}

std::string LineWith(int column, const std::string& value) {
  std::vector<std::string> fields = Row();
  fields[column] = value;
  return Line(fields);
}

struct ReadFileResult {
  std::vector<int64_t> labels;
  // The first and the last of each row.
  std::vector<std::string> categories;
  std::vector<std::string> last_categories;
  std::vector<std::string> bad_rows;
  absl::Status status;
};

ReadFileResult ReadText(const std::string& text) {
  const std::string path = testing::TempDir() + "rows.csv";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  ReadFileResult result;
  auto reader =
      CriteoCsvReader::Open(path, [&](int64_t line, std::string_view reason) {
        result.bad_rows.push_back(absl::StrCat(line, ": ", reason));
        return absl::OkStatus();
      });
  EXPECT_TRUE(reader.ok()) << reader.status();
  CriteoRecord record;
  for (;;) {
    const auto more = (*reader)->Next(&record);
    result.status = more.status();
    if (!more.ok() || !*more) break;
    result.labels.push_back(record.label);
    result.categories.emplace_back(record.categorical[0]);
    result.last_categories.emplace_back(record.categorical[25]);
  }
  if (result.status.ok()) {
    EXPECT_EQ((*reader)->bytes(), text.size());
  }
  return result;
}

std::string BadRow(const std::string& line) {
  CriteoRecord record;
  return std::string(ParseCriteoLine(line, ',', &record).message());
}

TEST(ParseCriteoLine, ReadsEveryColumn) {
  CriteoRecord record;
  const std::string line = Line(Row());
  ASSERT_TRUE(ParseCriteoLine(line, ',', &record).ok());
  EXPECT_EQ(record.label, 1);
  EXPECT_EQ(record.missing_numeric, 0);
  for (int i = 0; i < kNumericColumns; ++i) {
    EXPECT_EQ(record.numeric[i], i + 1);
  }
  for (int i = 0; i < kCategoricalColumns; ++i) {
    EXPECT_EQ(record.categorical[i], absl::StrCat("c", i + 1));
  }
}

TEST(ParseCriteoLine, FillsMissingValues) {
  std::vector<std::string> fields(40);
  fields[0] = "0";
  const std::string line = Line(fields);
  CriteoRecord record;
  ASSERT_TRUE(ParseCriteoLine(line, ',', &record).ok());
  EXPECT_EQ(record.missing_numeric, (1u << 13) - 1);
  EXPECT_EQ(record.numeric[0], kMissingNumeric);
  EXPECT_EQ(record.categorical[25], kMissingCategorical);
}

TEST(ParseCriteoLine, ReadsNumbersOfAnySpelling) {
  const std::pair<std::string, float> cases[] = {
      {"-3", -3},      {"007", 7},
      {"0.1", 0.1f},   {"12345678", 12345678},
      {"1e3", 1000},   {"1234567890", 1234567890.0f},
      {"-0.5", -0.5f}, {" 1", 1},
      {"2.5 ", 2.5f},  {"1e-40", 1e-40f},
      {"1e-50", 0},    {"-1e-400", 0}};
  for (const auto& [text, value] : cases) {
    const std::string line = LineWith(13, text);
    CriteoRecord record;
    ASSERT_TRUE(ParseCriteoLine(line, ',', &record).ok()) << text;
    EXPECT_EQ(record.numeric[12], value) << text;
  }
}

TEST(ParseCriteoLine, SaysWhatIsWrongWithARow) {
  EXPECT_THAT(BadRow(""), HasSubstr("empty"));
  EXPECT_THAT(BadRow("1"), HasSubstr("has 1 column, not 40"));
  EXPECT_THAT(BadRow(Line(Row()) + ",,"), HasSubstr("has 42 columns, not 40"));
  std::vector<std::string> no_label = Row();
  no_label.erase(no_label.begin());
  EXPECT_THAT(BadRow(Line(no_label)), HasSubstr("without a label"));
  for (const char* label : {"", "2", "-1", "01", "1.0", "x"}) {
    EXPECT_THAT(BadRow(LineWith(0, label)), HasSubstr("not 0 or 1")) << label;
  }
  for (const char* number :
       {"x", "-", "1x", " ", "1 2", "nan", "inf", "1e99", "0x10", "1.2.3"}) {
    EXPECT_THAT(BadRow(LineWith(13, number)),
                AllOf(HasSubstr("column I13"), HasSubstr("not a number")))
        << number;
  }
  EXPECT_THAT(BadRow(LineWith(39, "\"c26\"")),
              AllOf(HasSubstr("column C26"), HasSubstr("in quotes")));
}

TEST(ParseCriteoLine, ShowsUnprintableFieldsShortened) {
  const std::string message = BadRow(LineWith(1, std::string(5000, '\x01')));
  EXPECT_THAT(message, HasSubstr("\\x01..."));
  EXPECT_LT(message.size(), 300);
}

TEST(CriteoCsvReader, ReadsAnyLineEndAndDelimiter) {
  const std::string comma = LineWith(0, "0");
  const std::string tab = Line(Row(), "\t");
  EXPECT_THAT(ReadText(comma + "\n" + comma + "\n").labels, ElementsAre(0, 0));
  EXPECT_THAT(ReadText(comma + "\n" + comma).labels, ElementsAre(0, 0));
  EXPECT_THAT(ReadText(tab + "\n" + tab + "\n").labels, ElementsAre(1, 1));
  const ReadFileResult dos = ReadText(comma + "\r\n" + Line(Row()) + "\r\n");
  EXPECT_THAT(dos.labels, ElementsAre(0, 1));
  EXPECT_THAT(dos.bad_rows, IsEmpty());
}

TEST(CriteoCsvReader, DosLineEndIsNoPartOfTheLastCategory) {
  std::vector<std::string> fields = Row();
  fields[39] = "";
  EXPECT_THAT(ReadText(Line(fields) + "\r\n").last_categories,
              ElementsAre(std::string(kMissingCategorical)));
}

TEST(CriteoCsvReader, PassesOverTheLineOfNames) {
  const ReadFileResult ours =
      ReadText(Line(CriteoColumnNames()) + "\n" + Line(Row()) + "\n");
  EXPECT_THAT(ours.labels, ElementsAre(1));
  EXPECT_THAT(ours.bad_rows, IsEmpty());
  std::vector<std::string> others;
  for (int i = 0; i < 40; ++i) others.push_back(absl::StrCat("_col", i));
  const ReadFileResult theirs =
      ReadText("\xef\xbb\xbf" + Line(others) + "\n" + Line(Row()) + "\n");
  EXPECT_THAT(theirs.labels, ElementsAre(1));
  EXPECT_THAT(theirs.bad_rows, IsEmpty());
}

TEST(CriteoCsvReader, RefusesNamesInAnotherOrder) {
  std::vector<std::string> names = CriteoColumnNames();
  std::swap(names[1], names[2]);
  EXPECT_THAT(
      std::string(ReadText(Line(names) + "\n" + Line(Row())).status.message()),
      HasSubstr("rows.csv:1: column 2 is I2"));
}

TEST(CriteoCsvReader, TellsBadRowsAndGoesOn) {
  const ReadFileResult result =
      ReadText(absl::StrCat("2,3\n", Line(Row()), "\n\n", LineWith(0, "0")));
  EXPECT_THAT(result.labels, ElementsAre(1, 0));
  EXPECT_THAT(result.bad_rows, ElementsAre(StartsWith("1: the row has 2"),
                                           StartsWith("3: the line is empty")));
}

TEST(CriteoCsvReader, CountsAnOverlongLineAsOneBadRow) {
  const std::string good = Line(Row());
  for (int64_t size : {int64_t{70000}, int64_t{3} << 20}) {
    const std::string longest(size, 'x');
    const ReadFileResult result =
        ReadText(absl::StrCat(good, "\n", longest, "\n", good, "\n", longest));
    EXPECT_THAT(result.labels, ElementsAre(1, 1)) << size;
    EXPECT_THAT(result.bad_rows,
                ElementsAre(HasSubstr("2: the line has more than"),
                            HasSubstr("4: the line has more than")));
  }
}

TEST(CriteoCsvReader, ReadsRowsAcrossItsBuffer) {
  std::string text;
  constexpr int kRows = 30000;
  for (int i = 0; i < kRows; ++i) {
    absl::StrAppend(&text, LineWith(14, absl::StrCat("t", i)), "\n");
  }
  ASSERT_GT(text.size(), 3 << 20);
  const ReadFileResult result = ReadText(text);
  EXPECT_THAT(result.bad_rows, IsEmpty());
  ASSERT_EQ(result.categories.size(), kRows);
  for (int i = 0; i < kRows; ++i) {
    ASSERT_EQ(result.categories[i], absl::StrCat("t", i));
  }
}

TEST(CriteoCsvReader, FindsNothingInAnEmptyFile) {
  const ReadFileResult result = ReadText("");
  EXPECT_TRUE(result.status.ok());
  EXPECT_THAT(result.labels, IsEmpty());
  EXPECT_THAT(result.bad_rows, IsEmpty());
}

TEST(CriteoCsvReader, RefusesACompressedFile) {
  EXPECT_THAT(std::string(ReadText("\x1f\x8b\x08 rest").status.message()),
              HasSubstr("unpack it first"));
}

TEST(CriteoCsvReader, NamesAFileItCannotOpen) {
  const auto reader = CriteoCsvReader::Open("nowhere/rows.csv", nullptr);
  EXPECT_THAT(std::string(reader.status().message()),
              HasSubstr("cannot read nowhere/rows.csv"));
}

TEST(CriteoCsvReader, EndsWhenToldToByABadRow) {
  const std::string path = testing::TempDir() + "bad.csv";
  ASSERT_TRUE(WriteFileAtomically(path, "x\n" + Line(Row()) + "\n").ok());
  auto reader = CriteoCsvReader::Open(path, [](int64_t, std::string_view) {
    return absl::InvalidArgumentError("enough");
  });
  ASSERT_TRUE(reader.ok());
  CriteoRecord record;
  EXPECT_EQ((*reader)->Next(&record).status().message(), "enough");
}

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
  NumericRanges ranges = {};
  ranges.range.fill(1);
  WriteRecords({some.record}, CriteoFormat::kPreprocessed, ranges, kMany);
  const tensorflow::Example many = ReadRecords().at(0);
  EXPECT_EQ(many.features().feature().at("string_1").int64_list().value(1),
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
}  // namespace requant::criteo_files_test
