#include "absl/strings/str_replace.h"
#include "runtime/datasets/testing/testing.h"

namespace requant::csv_source_test {
namespace {

// Reads files with these contents, skipping bad records.
ReadResult ReadCsv(const Strings& contents,
                   const std::string& inputs = kNumberAndText,
                   const std::string& csv = "") {
  return ReadContents("csv", contents, inputs, csv);
}

std::string OpenError(const std::string& content, const std::string& csv = "") {
  return std::string(ReadCsv({content}, kNumberAndText, csv).status.message());
}

TEST(Csv, FindsColumnsByTheNamesInTheFirstLine) {
  const ReadResult result =
      ReadCsv({"s,other,n\na,x,1\nb,y,2\n", "n,s\n3,c\n"});
  ASSERT_EQ(result.status, absl::OkStatus());
  EXPECT_EQ(result.Values(0), (Strings{"1", "2", "3"}));
  EXPECT_EQ(result.Values(1), (Strings{"a", "b", "c"}));
}

TEST(Csv, PassesOverAFirstLineThatRepeatsTheGivenNames) {
  const ReadResult result = ReadCsv({"n,s\r\n1,a\n", "n,s\n2,b\nn,s\n", "n,s"},
                                    kNumberAndText, "columns: ['n', 's']");
  EXPECT_EQ(result.Values(0), (Strings{"1", "2"}));
  EXPECT_EQ(result.bad_messages,
            Strings{"1.csv:3: column \"n\" has \"n\", which is no float"});
}

TEST(Csv, TakesGivenNamesAndThenTheFirstLineIsARecord) {
  const ReadResult result =
      ReadCsv({"1,a\n2,b"}, kNumberAndText, "columns: ['n', 's']");
  EXPECT_EQ(result.Values(0), (Strings{"1", "2"}));
}

TEST(Csv, TellsTabsFromCommasByTheFirstLine) {
  EXPECT_EQ(ReadCsv({"n\ts\n1\ta,b\n"}).Values(1), Strings{"a,b"});
  EXPECT_EQ(ReadCsv({"n;s\n1;a\n"}, kNumberAndText, "delimiter: ';'").Values(1),
            Strings{"a"});
}

TEST(Csv, ReadsQuotedFields) {
  const ReadResult result = ReadCsv(
      {"n,s\r\n\"1\",\"a,\"\"b\"\"\r\nc\"\r\n2,in\"side\r\n3,\"\"\r\n"});
  ASSERT_EQ(result.bad_messages, Strings());
  EXPECT_EQ(result.Values(0), (Strings{"1", "2", "3"}));
  EXPECT_EQ(result.Values(1), (Strings{"a,\"b\"\r\nc", "in\"side", ""}));
}

TEST(Csv, PassesOverAByteOrderMarkAndEmptyLines) {
  const ReadResult result = ReadCsv({"\xef\xbb\xbfn,s\n\n1,a\r\n\r\n2,b\n\n"});
  EXPECT_EQ(result.bad_messages, Strings());
  EXPECT_EQ(result.Values(0), (Strings{"1", "2"}));
}

TEST(Csv, ReadsGzip) {
  EXPECT_EQ(ReadCsv({Gzip("n,s\n1,a\n")}).Values(0), Strings{"1"});
}

TEST(Csv, NamesTheLineOfABadRecord) {
  const ReadResult result = ReadCsv(
      {"n,s\n1,\"two\nlines\"\nx,a\n2\n3,\n,b\n4,\"c\"d\n5,e,f\n6,g\n"});
  EXPECT_EQ(result.Values(0), (Strings{"1", "6"}));
  EXPECT_EQ(
      result.bad_messages,
      (Strings{"0.csv:4: column \"n\" has \"x\", which is no float",
               "0.csv:5: it has 1 field, not 2",
               "0.csv:6: column \"s\" is empty, and no declaration gives it a "
               "default_value",
               "0.csv:7: column \"n\" is empty, and no declaration gives it a "
               "default_value",
               "0.csv:8: field 2 goes on after its closing quote",
               "0.csv:9: it has 3 fields, not 2"}));
}

TEST(Csv, ReadsNumbersStrictly) {
  const auto bad = [](const std::string& dtype, const std::string& text) {
    const ReadResult result =
        ReadCsv({absl::StrCat("n\n", text, "\n")},
                absl::StrCat("input { feature: 'n' dtype: '", dtype, "' }"));
    return result.bad_messages.size() == 1;
  };
  for (const char* good :
       {"1", " 1.5e3 ", "+2", "-3", "nan", "inf", "1e-400"}) {
    EXPECT_FALSE(bad("float", good)) << good;
  }
  for (const char* text : {"1x", "1,5", "0x10", "1e400", "--1", "+-1", "1 2"}) {
    EXPECT_TRUE(bad("float", text)) << text;
  }
  EXPECT_FALSE(bad("double", "1e300"));
  EXPECT_FALSE(bad("int32", " -5 "));
  EXPECT_TRUE(bad("int32", "2147483648"));
  EXPECT_TRUE(bad("int64", "1.0"));
  EXPECT_TRUE(bad("uint8", "-1"));
  EXPECT_TRUE(bad("int8", "128"));
  EXPECT_FALSE(bad("bool", "TRUE"));
  EXPECT_TRUE(bad("bool", "2"));
}

TEST(Csv, FillsInTheDefaultForAnEmptyField) {
  const ReadResult result = ReadCsv({"n,s\n,a\n"}, R"(
      input { feature: "n" dtype: "int32" default_value: "-7" }
      input { feature: "s" dtype: "string" default_value: "none" })");
  EXPECT_EQ(result.Values(0), Strings{"-7"});
}

TEST(Csv, ReadsSeveralValuesBetweenBlanks) {
  const ReadResult result =
      ReadCsv({"n\n1 2  3\n4 5\n6 7 x\n\"8 9 10\"\n"},
              "input { feature: 'n' dtype: 'float' shape: 3 }");
  EXPECT_EQ(result.Values(0), (Strings{"1", "2", "3", "8", "9", "10"}));
  EXPECT_EQ(result.bad_messages,
            (Strings{"0.csv:3: column \"n\" has 2 values, not 3",
                     "0.csv:4: column \"n\" has \"x\", which is no float"}));
}

TEST(Csv, AQuoteThatIsNotClosedEndsItsFile) {
  const ReadResult result =
      ReadCsv({"n,s\n1,a\n2,\"b\n3,c\n4,d\n", "n,s\n5,e\n"});
  EXPECT_EQ(result.Values(0), (Strings{"1", "5"}));
  EXPECT_EQ(result.bad_messages,
            Strings{"0.csv:3: a field that starts with a quote does not end "
                    "with one, so the records after it cannot be found"});
  EXPECT_EQ(result.lost_rests, 1);
}

TEST(Csv, BoundsTheLengthOfARecord) {
  const ReadResult result = ReadCsv(
      {absl::StrCat("n,s\n1,\"", std::string(17 << 20, '\n'), "\"\n2,b\n"),
       "n,s\n3,c\n"});
  EXPECT_EQ(result.Values(0), Strings{"3"});
  EXPECT_EQ(result.bad_messages,
            Strings{"0.csv:2: a record of more than 16 MB; a closing quote may "
                    "be missing, so the records after it cannot be found"});
}

TEST(Csv, RefusesFilesWithoutTheColumns) {
  EXPECT_EQ(OpenError("N,s\n1,a\n"),
            "0.csv has no column \"n\" (did you mean \"N\"?)");
  EXPECT_EQ(OpenError("n,s,n\n1,a,2\n"),
            "0.csv:1: column \"n\" is there twice");
  EXPECT_EQ(OpenError("n,\"s\n1,a\n"),
            "0.csv:1: a field that starts with a quote does not end with one");
  EXPECT_EQ(OpenError(""), "no records in 0.csv");
  EXPECT_EQ(OpenError("n,s\n"), "no records in 0.csv");
  EXPECT_EQ(OpenError("1,a\n", "columns: ['first', 'second']"),
            "0.csv has no column \"n\"");
}

TEST(Csv, AnEmptyFileHasNoRecords) {
  EXPECT_EQ(ReadCsv({"", "n,s\n1,a\n"}).Values(0), Strings{"1"});
}

std::string QuotedField(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

TEST(Csv, GivesBackWhatWasQuoted) {
  std::mt19937 random(1);
  const int rounds = FuzzRounds(50);
  for (int round = 0; round < rounds; ++round) {
    std::string content = "n,s\n";
    Strings texts;
    for (int i = random() % 100; i >= 0; --i) {
      std::string text;
      for (int j = random() % 12; j > 0; --j)
        text += "ab,\"\n\r\t "[random() % 8];
      absl::StrAppend(&content, i, ",", QuotedField(text), "\n");
      texts.push_back(text);
    }
    const ReadResult result = ReadCsv({content});
    EXPECT_EQ(result.bad_messages, Strings());
    EXPECT_EQ(result.Values(1), texts);
  }
}

TEST(Csv, SurvivesMutations) {
  std::mt19937 random(2);
  const std::string seed =
      "n,s\r\n1,a\n2,\"b \"\"c\"\"\"\n3.5e-3,\"d\ne\"\n\"4\",f\n";
  const Strings pieces = {"\"", ",", "\n", "\r", "\t", std::string(1, '\0'),
                          "x",  "9"};
  const int rounds = FuzzRounds(300);
  for (int round = 0; round < rounds; ++round) {
    const ReadResult result = ReadCsv({MutatedText(seed, pieces, &random)});
    for (const std::string& message : result.bad_messages) {
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace requant::csv_source_test
