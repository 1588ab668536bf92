#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/records/record_format.h"
#include "base/testing/fuzz_rounds.h"
#include "base/testing/gzip.h"
#include "runtime/datasets/testing/testing.h"

namespace requant::tfrecord_source_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Strings = std::vector<std::string>;

constexpr char kLost[] = ", so the records after it cannot be found";

// Reads two files, `first` and one good record whose x is 99, with every bad
// record skipped.
ReadResult ReadWithNext(const std::string& first,
                        const std::string& input = "dtype: 'float'") {
  return ReadContents(
      "tfrecord", {first, RecordBytes(SmallExample(99, 0))},
      absl::StrCat("input { feature: 'x' placeholder: 'p' ", input, "}"));
}

// Returns the messages about `first`.
Strings Problems(const std::string& first,
                 const std::string& input = "dtype: 'float'") {
  return ReadWithNext(first, input).bad_messages;
}

std::string GoodRecord(float x) { return RecordBytes(SmallExample(x, 0)); }

// Returns a header with a correct checksum.
std::string Header(uint64_t length) {
  std::string header(reinterpret_cast<const char*>(&length), sizeof(length));
  const uint32_t checksum = MaskedChecksum(header);
  header.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return header;
}

TEST(TfRecords, ABadLengthEndsItsFileAndCountsOnce) {
  std::string bad = GoodRecord(2);
  bad[9] ^= 1;
  const ReadResult result =
      ReadWithNext(GoodRecord(1) + bad + GoodRecord(3) + GoodRecord(4));
  EXPECT_EQ(result.Values(0), (Strings{"1", "99"}));
  EXPECT_EQ(result.bad_messages,
            Strings{absl::StrCat("0.tfrecord: record 1 (counting from 0): the "
                                 "checksum of its length is wrong",
                                 kLost)});
}

TEST(TfRecords, ABadChecksumOfTheDataLosesOnlyItsRecord) {
  std::string bad = GoodRecord(2);
  bad[kRecordHeaderBytes] ^= 1;
  const ReadResult result = ReadWithNext(GoodRecord(1) + bad + GoodRecord(3));
  EXPECT_EQ(result.Values(0), (Strings{"1", "3", "99"}));
  EXPECT_EQ(
      result.bad_messages,
      Strings{"0.tfrecord: record 1 (counting from 0): the checksum of its "
              "data is wrong"});
}

TEST(TfRecords, NamesTheRecordThatAFileEndsIn) {
  const std::string good = GoodRecord(1);
  const size_t data = good.size() - kRecordHeaderBytes - kRecordFooterBytes;
  EXPECT_EQ(
      Problems(good + good.substr(0, 5)),
      Strings{"0.tfrecord: record 1 (counting from 0): the file ends after 5 "
              "bytes of its header's 12"});
  EXPECT_EQ(
      Problems(good + good.substr(0, 14)),
      Strings{absl::StrCat("0.tfrecord: record 1 (counting from 0): the file "
                           "ends within it, after 2 of its ",
                           data, " bytes")});
  EXPECT_EQ(Problems(good + good.substr(0, good.size() - 1)),
            Strings{absl::StrCat(
                "0.tfrecord: record 1 (counting from 0): the file ends "
                "within it, after ",
                data, " of its ", data, " bytes")});
}

TEST(TfRecords, AHugeLengthCostsNoMemory) {
  EXPECT_EQ(Problems(Header(uint64_t{1} << 60) + "xyz"),
            Strings{"0.tfrecord: record 0 (counting from 0): it claims to have "
                    "1152921504606846976 bytes; a tf.train.Example has at most "
                    "2147483647"});
  EXPECT_EQ(
      Problems(Header(2000000000) + "xyz"),
      Strings{"0.tfrecord: record 0 (counting from 0): the file ends within "
              "it, after 3 of its 2000000000 bytes"});
}

TEST(TfRecords, SaysThatAFileIsNotTfRecord) {
  EXPECT_EQ(
      Problems("label,x\n1,2\n3,4\n"),
      Strings{"0.tfrecord: record 0 (counting from 0): this is not a TFRecord "
              "file: it looks like text"});
  EXPECT_EQ(
      Problems("x\n"),
      Strings{"0.tfrecord: record 0 (counting from 0): this is not a TFRecord "
              "file: it looks like text"});
  EXPECT_EQ(
      Problems(std::string("\0\1\2\3\4\5\6\7\10\11\12\13\14", 13)),
      Strings{"0.tfrecord: record 0 (counting from 0): the checksum of its "
              "length is wrong, so this is not a TFRecord file, or one "
              "that is corrupt from the start"});
}

TEST(TfRecords, TellsTextFromBinaryFiles) {
  EXPECT_THAT(Problems("name,text\n1,gr\u00fc\u00df\u20ac\n"),
              ElementsAre(HasSubstr("looks like text")));
  // Graphs, which start with a line break and printable lengths.
  for (const std::string& content :
       {"\n0\n)" + std::string(41, 'x') + "\x12\x03op",
        std::string("\n\xb3\x82\x0c\n\x0bsome_weights"),
        std::string("\n\xb3\xb3 0123456789")}) {
    EXPECT_THAT(Problems(content),
                ElementsAre(Not(HasSubstr("looks like text"))));
  }
}

TEST(TfRecords, ReadsGzipByItsContent) {
  const std::string packed = Gzip(GoodRecord(1) + GoodRecord(2));
  EXPECT_EQ(ReadWithNext(packed).Values(0), (Strings{"1", "2", "99"}));
  EXPECT_EQ(ReadWithNext(packed + Gzip(GoodRecord(3))).Values(0),
            (Strings{"1", "2", "3", "99"}));
  EXPECT_EQ(ReadWithNext(packed + std::string(600, '\0')).Values(0),
            (Strings{"1", "2", "99"}));
}

TEST(TfRecords, TakesAPlainFileThatStartsLikeGzipForWhatItIs) {
  // Its length, 559903, is gzip's magic number.
  const std::string example = ExampleBytes(absl::StrCat(
      "features { feature { key: 'x' value { float_list { value: 5 } } } "
      "feature { key: 'y' value { bytes_list { value: '",
      std::string(559903 - 38, 'y'), "' } } } }"));
  ASSERT_EQ(example.size(), 559903);
  EXPECT_EQ(ReadWithNext(RecordBytes(example)).Values(0), (Strings{"5", "99"}));
}

TEST(TfRecords, ReadsGzipUpToWhereItIsDamaged) {
  const std::string packed = Gzip(GoodRecord(1) + GoodRecord(2));
  ReadResult result = ReadWithNext(packed + "garbage");
  EXPECT_EQ(result.Values(0), (Strings{"1", "2", "99"}));
  EXPECT_EQ(result.bad_messages,
            Strings{"0.tfrecord: record 2 (counting from 0): its gzip data are "
                    "followed by something that is not gzip"});

  result = ReadWithNext(packed.substr(0, packed.size() - 4));
  EXPECT_EQ(result.Values(0), (Strings{"1", "2", "99"}));
  EXPECT_EQ(
      result.bad_messages,
      Strings{"0.tfrecord: record 2 (counting from 0): its gzip data are cut "
              "off"});

  std::string corrupt = packed;
  corrupt[corrupt.size() - 6] ^= 1;
  EXPECT_EQ(ReadWithNext(corrupt).bad_messages,
            Strings{"0.tfrecord: record 2 (counting from 0): its gzip data are "
                    "corrupt (incorrect data check)"});
}

TEST(TfRecords, NamesTheFeatureThatIsWrong) {
  const auto problem = [](const std::string& example,
                          const std::string& input = "dtype: 'float'") {
    const Strings problems = Problems(RecordBytes(example), input);
    return problems.empty()
               ? ""
               : absl::StrReplaceAll(
                     problems[0],
                     {{"0.tfrecord: record 0 (counting from 0): ", ""}});
  };
  EXPECT_EQ(problem("not a message"), "it is not a tf.train.Example");
  EXPECT_EQ(problem(""), "it has no feature \"x\"");
  EXPECT_EQ(problem(ExampleBytes("features { feature { key: 'X' value {} } }")),
            "it has no feature \"x\" (did you mean \"X\"?)");
  EXPECT_EQ(problem(ExampleBytes("features { feature { key: 'x' value {} } }")),
            "its feature \"x\" is empty");
  const std::string integers = ExampleBytes(
      "features { feature { key: 'x' value { int64_list { value: [1, 300] } } "
      "} }");
  EXPECT_EQ(problem(integers), "its feature \"x\" has int64 values, not float");
  EXPECT_EQ(problem(integers, "dtype: 'int64'"),
            "its feature \"x\" has 2 values, not 1");
  EXPECT_EQ(problem(integers, "dtype: 'string' shape: 2"),
            "its feature \"x\" has int64 values, not bytes");
  EXPECT_EQ(problem(integers, "dtype: 'uint8' shape: 2"),
            "its feature \"x\" has a value that is no uint8");
}

TEST(TfRecords, FillsInTheDefault) {
  const ReadResult result = ReadWithNext(
      RecordBytes(ExampleBytes("features {}")) +
          RecordBytes(
              ExampleBytes("features { feature { key: 'x' value {} } }")),
      "dtype: 'half' default_value: '-1.5'");
  EXPECT_EQ(result.Values(0), (Strings{"-1.5", "-1.5", "99"}));
}

TEST(TfRecords, ConvertsToTheDeclaredType) {
  const std::string record = RecordBytes(ExampleBytes(R"(features {
      feature { key: "f" value { float_list { value: [0.5, -2] } } }
      feature { key: "i" value { int64_list { value: [1, 0] } } }
      feature { key: "s" value { bytes_list { value: ["a", "bc"] } } } })"));
  DatasetSpec spec = SpecFromText(R"(
    input { feature: "f" placeholder: "0" dtype: "float" shape: 2 }
    input { feature: "f" placeholder: "1" dtype: "double" shape: 2 }
    input { feature: "f" placeholder: "2" dtype: "half" shape: [2, 1] }
    input { feature: "f" placeholder: "3" dtype: "bfloat16" shape: 2 }
    input { feature: "i" placeholder: "4" dtype: "int8" shape: 2 }
    input { feature: "i" placeholder: "5" dtype: "uint8" shape: 2 }
    input { feature: "i" placeholder: "6" dtype: "int32" shape: 2 }
    input { feature: "i" placeholder: "7" dtype: "int64" shape: [1, 2] }
    input { feature: "i" placeholder: "8" dtype: "bool" shape: 2 }
    input { feature: "s" placeholder: "9" dtype: "string" shape: 2 })");
  spec.mutable_tfrecord()->add_files(WriteTestFile("types", record));
  const ReadResult result = ReadAll(spec);
  ASSERT_EQ(result.status, absl::OkStatus());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(result.Values(i), (Strings{"0.5", "-2"})) << i;
  }
  for (int i = 4; i < 9; ++i) {
    EXPECT_EQ(result.Values(i), (Strings{"1", "0"})) << i;
  }
  EXPECT_EQ(result.Values(9), (Strings{"a", "bc"}));
  EXPECT_EQ(result.batches[0].inputs[7].shape(),
            tensorflow::TensorShape({1, 1, 2}));
}

TEST(TfRecords, RefusesDeclarationsThatContradictEachOther) {
  DatasetSpec spec = SpecFromText(R"(
    input { feature: "x" placeholder: "a" dtype: "float" }
    label { feature: "x" dtype: "int64" })");
  spec.mutable_tfrecord()->add_files(WriteTestFile("contradiction", ""));
  EXPECT_EQ(ReadAll(spec).status.message(),
            "feature \"x\" is used twice with different types, shapes or "
            "default values");
}

// Whatever the bytes, good records are those that were written.
TEST(TfRecords, SurvivesMutations) {
  std::mt19937 random(1);
  std::string seed;
  for (int i = 0; i < 5; ++i) seed += GoodRecord(i);
  const std::string packed = Gzip(seed);
  const int rounds = FuzzRounds(300);
  for (int round = 0; round < rounds; ++round) {
    const ReadResult result = ReadWithNext(MutatedText(
        round % 3 == 0 ? packed : seed, {"\xff\xff\xff\xff", "x"}, &random));
    EXPECT_EQ(result.status, absl::OkStatus());
    ASSERT_FALSE(result.batches.empty());
    for (const std::string& value : result.Values(0)) {
      EXPECT_TRUE(value == "99" || value < "5") << value;
    }
    EXPECT_EQ(result.Values(0).back(), "99");
  }
}

}  // namespace
}  // namespace requant::tfrecord_source_test
