#include "runtime/datasets/criteo/criteo_format.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files/file.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/example/example.pb.h"
#include "tensorflow/core/lib/io/record_reader.h"
#include "tensorflow/core/platform/env.h"

namespace requant::criteo_format_test {
namespace {

using Strings = std::vector<std::string>;

TEST(HashBucket, IsWhatTheKernelComputes) {
  const std::vector<tensorflow::tstring> categories = {
      "",         "68fd1e64",           "a", "\xff\x00 b", std::string(40, 'x'),
      "0b153874", std::string(100, 'y')};
  for (const int64_t buckets : {int64_t{1000}, int64_t{1} << 40}) {
    const GraphDef graph = GraphFromText(
        absl::StrCat("text = Placeholder dtype=string\n"
                     "bucket = StringToHashBucketFast(text) num_buckets=",
                     buckets));
    const Tensor text = TensorOf<tensorflow::tstring>({7}, categories);
    const std::vector<int64_t> found =
        ValuesOf<int64_t>(MustRunGraph(graph, {{"text", text}}, {"bucket"})[0]);
    for (size_t i = 0; i < categories.size(); ++i) {
      EXPECT_EQ(HashBucket(categories[i], buckets), found[i]) << categories[i];
    }
  }
}

TEST(Order, IsThatOfTheModelZoo) {
  Strings numeric, categorical;
  for (int column : kNumericOrder) numeric.push_back(NumericName(column));
  for (int column : kCategoricalOrder) {
    categorical.push_back(CategoricalName(column));
  }
  EXPECT_EQ(absl::StrJoin(numeric, " "),
            "I1 I10 I11 I12 I13 I2 I3 I4 I5 I6 I7 I8 I9");
  EXPECT_EQ(absl::StrJoin(categorical, " "),
            "C10 C11 C12 C13 C14 C15 C16 C17 C18 C19 C1 C20 C21 C22 C23 C24 "
            "C25 C26 C2 C3 C4 C5 C6 C7 C8 C9");
}

CriteoRecord RecordOf(float value) {
  CriteoRecord record;
  record.numeric.fill(value);
  return record;
}

TEST(RangeCollector, TakesSmallestValueAndSpan) {
  RangeCollector collector;
  for (float value : {4.0f, -2.0f, 10.0f}) collector.Add(RecordOf(value));
  ASSERT_OK_AND_ASSIGN(const NumericRanges ranges, collector.Ranges());
  EXPECT_EQ(ranges.min[12], -2);
  EXPECT_EQ(ranges.range[12], 12);
  EXPECT_EQ(Normalize(-2, ranges, 12), 0);
  EXPECT_EQ(Normalize(10, ranges, 12), 1);
  EXPECT_EQ(Normalize(2, ranges, 12), 4.0f / 12.0f);
}

TEST(RangeCollector, NormalisesAConstantColumnToZero) {
  RangeCollector collector;
  collector.Add(RecordOf(7));
  collector.Add(RecordOf(7));
  EXPECT_EQ(Normalize(7, collector.Ranges().value(), 0), 0);
}

TEST(RangeCollector, RefusesNothingAndARangeBeyondFloat) {
  RangeCollector collector;
  EXPECT_THAT(collector.Ranges(), FailsWith(HasSubstr("no record")));
  collector.Add(RecordOf(std::numeric_limits<float>::max()));
  collector.Add(RecordOf(std::numeric_limits<float>::lowest()));
  EXPECT_THAT(collector.Ranges(), FailsWith(HasSubstr("beyond float32")));
}

absl::StatusOr<NumericRanges> RangesOf(const std::string& json) {
  const ScratchFolder folder;
  return ReadRanges(folder.Write("ranges.json", json));
}

NumericRanges SomeRanges() {
  NumericRanges ranges;
  for (int i = 0; i < kNumericColumns; ++i) {
    ranges.min[i] = -0.1f * i;
    ranges.range[i] = 1.0f / (3 + i);
  }
  return ranges;
}

TEST(Ranges, SurviveTheirFile) {
  const NumericRanges ranges = SomeRanges();
  ASSERT_OK_AND_ASSIGN(const NumericRanges read,
                       RangesOf(RangesAsJson(ranges, 5)));
  EXPECT_EQ(read.min, ranges.min);
  EXPECT_EQ(read.range, ranges.range);
}

TEST(Ranges, RefuseWhatIsNotTheirFile) {
  const std::string good = RangesAsJson(SomeRanges(), 5);
  const std::pair<std::string, std::string> cases[] = {
      {"", "not a file of ranges"},
      {"{}", "column I1 is missing"},
      {"[1, 2]", "not a file of ranges"},
      {absl::StrReplaceAll(good, {{"\"I7\"", "\"I6\""}}), "I6 is there twice"},
      {absl::StrReplaceAll(good, {{"\"I7\"", "\"C7\""}}), "no column \"C7\""},
      {absl::StrReplaceAll(good, {{"0.25", "0"}}), "range above 0"},
      {absl::StrReplaceAll(good, {{"0.25", "\"NaN\""}}), "range above 0"},
  };
  for (const auto& [json, reason] : cases) {
    EXPECT_THAT(RangesOf(json), FailsWith(HasSubstr(reason))) << json;
  }
}

// Returns a row of label 1, I1 = 1 ... I13 = 13, C1 = "c1" ... C26 = "c26".
Strings Row() {
  Strings fields = {"1"};
  for (int i = 1; i <= 13; ++i) fields.push_back(absl::StrCat(i));
  for (int i = 1; i <= 26; ++i) fields.push_back(absl::StrCat("c", i));
  return fields;
}

std::string Line(const Strings& fields, std::string_view delimiter = ",") {
  return absl::StrJoin(fields, delimiter);
}

std::string LineWith(int column, const std::string& value) {
  Strings fields = Row();
  fields[column] = value;
  return Line(fields);
}

struct TextContent {
  // The records' categories are in `categories`.
  std::vector<CriteoRecord> records;
  std::vector<int64_t> labels;
  std::vector<Strings> categories;
  Strings bad_rows;
  int64_t bytes = 0;
  absl::Status status;
};

TextContent ReadText(const std::string& text) {
  const ScratchFolder folder;
  TextContent content;
  content.status = ReadCriteoText(
      folder.Write("rows.csv", text),
      [&](const CriteoRecord& record, int64_t bytes) {
        content.records.push_back(record);
        content.labels.push_back(record.label);
        content.categories.emplace_back(record.categorical.begin(),
                                        record.categorical.end());
        content.bytes = bytes;
        return absl::OkStatus();
      },
      [&](int64_t line, std::string_view reason) {
        content.bad_rows.push_back(absl::StrCat(line, ": ", reason));
        return absl::OkStatus();
      });
  return content;
}

// Returns the problem of the only row.
std::string Problem(const std::string& line) {
  const TextContent content = ReadText(line + "\n");
  EXPECT_THAT(content.bad_rows, SizeIs(1)) << line;
  return absl::StrJoin(content.bad_rows, "\n");
}

TEST(ReadCriteoText, ReadsEveryColumn) {
  const TextContent content = ReadText(Line(Row()));
  ASSERT_THAT(content.labels, ElementsAre(1));
  EXPECT_EQ(content.records[0].missing_numeric, 0);
  for (int i = 0; i < kNumericColumns; ++i) {
    EXPECT_EQ(content.records[0].numeric[i], i + 1);
  }
  for (int i = 0; i < kCategoricalColumns; ++i) {
    EXPECT_EQ(content.categories[0][i], absl::StrCat("c", i + 1));
  }
}

TEST(ReadCriteoText, FillsMissingValues) {
  Strings fields(40);
  fields[0] = "0";
  const TextContent content = ReadText(Line(fields) + "\r\n");
  ASSERT_THAT(content.labels, ElementsAre(0));
  EXPECT_EQ(content.records[0].missing_numeric, (1u << 13) - 1);
  EXPECT_EQ(content.records[0].numeric[0], kMissingNumeric);
  EXPECT_EQ(content.categories[0][25], kMissingCategorical);
}

TEST(ReadCriteoText, ReadsNumbersOfAnySpelling) {
  const std::pair<std::string, float> cases[] = {
      {"-3", -3},      {"007", 7},
      {"0.1", 0.1f},   {"12345678", 12345678},
      {"1e3", 1000},   {"1234567890", 1234567890.0f},
      {"-0.5", -0.5f}, {" 1", 1},
      {"2.5 ", 2.5f},  {"1e-40", 1e-40f},
      {"1e-50", 0},    {"-1e-400", 0}};
  for (const auto& [text, value] : cases) {
    const TextContent content = ReadText(LineWith(13, text));
    ASSERT_THAT(content.records, SizeIs(1)) << text;
    EXPECT_EQ(content.records[0].numeric[12], value) << text;
  }
}

TEST(ReadCriteoText, SaysWhatIsWrongWithARow) {
  EXPECT_EQ(Problem(""), "1: the line is empty");
  EXPECT_THAT(Problem("1"), HasSubstr("has 1 column, not 40"));
  EXPECT_THAT(Problem(Line(Row()) + ",,"), HasSubstr("has 42 columns, not 40"));
  Strings no_label = Row();
  no_label.erase(no_label.begin());
  EXPECT_THAT(Problem(Line(no_label)), HasSubstr("without a label"));
  for (const char* label : {"", "2", "-1", "01", "1.0", "x"}) {
    EXPECT_THAT(Problem(LineWith(0, label)), HasSubstr("not 0 or 1"));
  }
  for (const char* number :
       {"x", "-", "1x", " ", "1 2", "nan", "inf", "1e99", "0x10", "1.2.3"}) {
    EXPECT_THAT(Problem(LineWith(13, number)),
                AllOf(HasSubstr("column I13"), HasSubstr("not a number")));
  }
  EXPECT_THAT(Problem(LineWith(39, "\"c26\"")),
              AllOf(HasSubstr("column C26"), HasSubstr("in quotes")));
  const std::string message = Problem(LineWith(1, std::string(5000, '\x01')));
  EXPECT_THAT(message, HasSubstr("\\x01..."));
  EXPECT_LT(message.size(), 300);
}

TEST(ReadCriteoText, ReadsAnyLineEndAndDelimiter) {
  const std::string comma = LineWith(0, "0");
  const std::string tab = Line(Row(), "\t");
  for (const std::string& text :
       {comma + "\n" + Line(Row()) + "\n", comma + "\n" + Line(Row()),
        comma + "\r\n" + Line(Row()) + "\r\n",
        absl::StrReplaceAll(comma, {{",", "\t"}}) + "\n" + tab + "\n"}) {
    const TextContent content = ReadText(text);
    EXPECT_THAT(content.labels, ElementsAre(0, 1));
    EXPECT_THAT(content.bad_rows, IsEmpty());
    EXPECT_EQ(content.bytes, text.size());
  }
}

TEST(ReadCriteoText, PassesOverTheLineOfNames) {
  Strings others;
  for (int i = 0; i < 40; ++i) others.push_back(absl::StrCat("_col", i));
  for (const std::string& names :
       {Line(CriteoColumnNames()), "\xef\xbb\xbf" + Line(others)}) {
    const TextContent content = ReadText(names + "\n" + Line(Row()) + "\n");
    EXPECT_THAT(content.labels, ElementsAre(1));
    EXPECT_THAT(content.bad_rows, IsEmpty());
  }
}

TEST(ReadCriteoText, RefusesNamesInAnotherOrder) {
  Strings names = CriteoColumnNames();
  std::swap(names[1], names[2]);
  EXPECT_THAT(ReadText(Line(names) + "\n" + Line(Row())).status,
              FailsWith(HasSubstr("rows.csv:1: column 2 is I2")));
}

TEST(ReadCriteoText, TellsBadRowsAndGoesOn) {
  const TextContent content =
      ReadText(absl::StrCat("2,3\n", Line(Row()), "\n\n", LineWith(0, "0"),
                            "\n", std::string(70000, 'x')));
  EXPECT_THAT(content.labels, ElementsAre(1, 0));
  EXPECT_THAT(content.bad_rows,
              ElementsAre(StartsWith("1: the row has 2"),
                          StartsWith("3: the line is empty"),
                          "5: the line has more than 65536 bytes"));
}

TEST(ReadCriteoText, FindsNothingInAnEmptyFile) {
  const TextContent content = ReadText("");
  EXPECT_OK(content.status);
  EXPECT_THAT(content.labels, IsEmpty());
  EXPECT_THAT(content.bad_rows, IsEmpty());
}

TEST(ReadCriteoText, RefusesACompressedFile) {
  EXPECT_THAT(ReadText("\x1f\x8b\x08 rest").status,
              FailsWith(HasSubstr("unpack it first")));
}

class CriteoWriterTest : public testing::Test, protected ScratchFolder {
 protected:
  // Uses label 1, I1 = 0, I2 = 10 ..., C1 = "c1" ..., but no I3 and C4.
  CriteoWriterTest() {
    record_.label = 1;
    for (int i = 0; i < kNumericColumns; ++i) record_.numeric[i] = 10 * i;
    for (int i = 0; i < kCategoricalColumns; ++i) {
      categories_.push_back(absl::StrCat("c", i + 1));
    }
    record_.numeric[2] = kMissingNumeric;
    record_.missing_numeric = 1u << 2;
    categories_[3] = kMissingCategorical;
    for (int i = 0; i < kCategoricalColumns; ++i) {
      record_.categorical[i] = categories_[i];
    }
  }

  // Writes the record twice.
  std::string WriteRecords(CriteoFormat format,
                           const NumericRanges& ranges = {},
                           int64_t buckets = kDefaultBuckets) {
    EXPECT_OK(WriteFileAtomically(Path("records"), [&](int fd) {
      CriteoWriter writer(fd, format, ranges, buckets);
      EXPECT_OK(writer.Write(record_));
      EXPECT_OK(writer.Write(record_));
      return writer.Flush();
    }));
    return Read("records");
  }

  // Returns the features of the second record, as TensorFlow reads them.
  google::protobuf::Map<std::string, tensorflow::Feature> ReadFeatures() {
    std::unique_ptr<tensorflow::RandomAccessFile> file;
    EXPECT_OK(tensorflow::Env::Default()->NewRandomAccessFile(Path("records"),
                                                              &file));
    tensorflow::io::RecordReader reader(file.get());
    uint64_t offset = 0;
    tensorflow::tstring text;
    EXPECT_OK(reader.ReadRecord(&offset, &text));
    EXPECT_OK(reader.ReadRecord(&offset, &text));
    tensorflow::Example example;
    EXPECT_TRUE(example.ParseFromString(text));
    EXPECT_TRUE(absl::IsOutOfRange(reader.ReadRecord(&offset, &text)));
    return example.features().feature();
  }

  CriteoRecord record_;
  Strings categories_;
};

TEST_F(CriteoWriterTest, WritesMissingValuesAsNothingInText) {
  EXPECT_THAT(
      WriteRecords(CriteoFormat::kCsv),
      EndsWith("\n1,0,10,,30,40,50,60,70,80,90,100,110,120,c1,c2,c3,,c5,c6,c7,"
               "c8,c9,c10,c11,c12,c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,"
               "c24,c25,c26\n"));
}

TEST_F(CriteoWriterTest, WritesNumbersThatReadBackTheSame) {
  record_.numeric[0] = 0.1f;
  record_.numeric[1] = -16777216;
  record_.numeric[3] = 1.0e30f;
  EXPECT_THAT(WriteRecords(CriteoFormat::kCsv),
              StartsWith("1,0.1,-16777216,,1e+30,40,"));
}

TEST_F(CriteoWriterTest, WritesRawRecordsWithMissingValuesFilled) {
  categories_[0] = std::string(60000, 'x');
  record_.categorical[0] = categories_[0];
  WriteRecords(CriteoFormat::kTfRecord);
  const auto features = ReadFeatures();
  ASSERT_THAT(features, SizeIs(40));
  EXPECT_THAT(features.at("label").int64_list().value(), ElementsAre(1));
  for (int i = 0; i < kNumericColumns; ++i) {
    EXPECT_THAT(features.at(NumericName(i)).float_list().value(),
                ElementsAre(record_.numeric[i]));
  }
  for (int i = 0; i < kCategoricalColumns; ++i) {
    EXPECT_THAT(features.at(CategoricalName(i)).bytes_list().value(),
                ElementsAre(categories_[i]));
  }
}

TEST_F(CriteoWriterTest, WritesPreprocessedRecordsInTheirOrder) {
  NumericRanges ranges;
  ranges.min.fill(-1);
  ranges.range.fill(3);
  for (const int64_t buckets : {int64_t{700}, int64_t{1} << 60}) {
    WriteRecords(CriteoFormat::kPreprocessed, ranges, buckets);
    const auto features = ReadFeatures();
    ASSERT_THAT(features, SizeIs(3));
    EXPECT_THAT(features.at("label").int64_list().value(), ElementsAre(1));
    const auto& numbers = features.at("numeric_1").float_list().value();
    ASSERT_THAT(numbers, SizeIs(13));
    for (int i = 0; i < 13; ++i) {
      EXPECT_EQ(numbers[i], (record_.numeric[kNumericOrder[i]] + 1) / 3);
    }
    const auto& pairs = features.at("string_1").int64_list().value();
    ASSERT_THAT(pairs, SizeIs(52));
    for (int i = 0; i < 26; ++i) {
      EXPECT_EQ(pairs[2 * i], i);
      EXPECT_EQ(pairs[2 * i + 1],
                HashBucket(categories_[kCategoricalOrder[i]], buckets));
    }
  }
}

TEST(CriteoGenerator, LooksLikeTheChallenge) {
  constexpr int kRows = 20000;
  const CriteoGenerator next_row = MakeCriteoGenerator(1, CriteoSplit::kTrain);
  std::array<std::set<std::string_view>, kCategoricalColumns> tokens;
  std::array<int, kNumericColumns> missing = {};
  float lowest = 0;
  CriteoRecord record;
  for (int row = 0; row < kRows; ++row) {
    next_row(&record);
    for (int i = 0; i < kCategoricalColumns; ++i) {
      tokens[i].insert(record.categorical[i]);
    }
    for (int i = 0; i < kNumericColumns; ++i) {
      missing[i] += record.missing_numeric >> i & 1;
      lowest = std::min(lowest, record.numeric[i]);
      EXPECT_EQ(record.numeric[i], static_cast<int>(record.numeric[i]));
    }
  }
  EXPECT_LT(lowest, 0);
  EXPECT_NEAR(missing[0], 0.45 * kRows, 0.02 * kRows);
  EXPECT_EQ(missing[1], 0);
  EXPECT_EQ(tokens[8].size(), 3);
  EXPECT_GT(tokens[2].size(), 2000);
  EXPECT_TRUE(tokens[18].count(kMissingCategorical));
  for (std::string_view token : tokens[2]) {
    if (token != kMissingCategorical) {
      ASSERT_EQ(token.size(), 8);
      ASSERT_EQ(token.find_first_not_of("0123456789abcdef"), token.npos);
    }
  }
}

TEST(CriteoGenerator, LabelsFollowTheProbability) {
  constexpr int kRows = 50000;
  const CriteoGenerator next_row = MakeCriteoGenerator(1, CriteoSplit::kTrain);
  double expected = 0, guessed = 0, best = 0;
  int positives = 0;
  CriteoRecord record;
  for (int row = 0; row < kRows; ++row) {
    const double probability = next_row(&record);
    expected += probability;
    positives += record.label;
    best += std::max(probability, 1 - probability);
    guessed += record.label == (probability > 0.5 ? 1 : 0);
  }
  // The tolerance is five standard deviations of 50,000 coin flips.
  EXPECT_NEAR(positives, expected, 5 * 0.5 * 224);
  EXPECT_NEAR(guessed, best, 5 * 0.4 * 224);
  EXPECT_NEAR(best / kRows, 0.80, 0.01);
}

}  // namespace
}  // namespace requant::criteo_format_test
