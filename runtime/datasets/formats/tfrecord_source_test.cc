#include "absl/strings/str_replace.h"
#include "base/records/record_format.h"
#include "runtime/datasets/testing/testing.h"

namespace requant::tfrecord_source_test {
namespace {

// Reads two files, `first` and one good record whose x is 99, skipping every
// bad record.
ReadResult ReadWithNext(const std::string& first,
                        const std::string& input = "dtype: 'float'") {
  return ReadContents(
      "tfrecord", {first, RecordBytes(SmallExample(99, 0))},
      absl::StrCat("input { feature: 'x' placeholder: 'p' ", input, "}"));
}

// Returns "N: PROBLEM", the message about the bad record of `first`, or "" if
// there is none.
std::string Problem(const std::string& first,
                    const std::string& input = "dtype: 'float'") {
  const Strings messages = ReadWithNext(first, input).bad_messages;
  if (messages.empty()) return "";
  EXPECT_THAT(messages, Contains(StartsWith("0.tfrecord: record ")).Times(1));
  return absl::StrReplaceAll(
      messages[0], {{"0.tfrecord: record ", ""}, {" (counting from 0)", ""}});
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
  EXPECT_THAT(result.bad_messages,
              ElementsAre("0.tfrecord: record 1 (counting from 0): the "
                          "checksum of its length is wrong, so the records "
                          "after it cannot be found"));
}

TEST(TfRecords, ABadChecksumOfTheDataLosesOnlyItsRecord) {
  std::string bad = GoodRecord(2);
  bad[kRecordHeaderBytes] ^= 1;
  const std::string file = GoodRecord(1) + bad + GoodRecord(3);
  EXPECT_EQ(ReadWithNext(file).Values(0), (Strings{"1", "3", "99"}));
  EXPECT_EQ(Problem(file), "1: the checksum of its data is wrong");
}

TEST(TfRecords, NamesTheRecordThatAFileEndsIn) {
  const std::string good = GoodRecord(1);
  const size_t data = good.size() - kRecordHeaderBytes - kRecordFooterBytes;
  EXPECT_EQ(Problem(good + good.substr(0, 5)),
            "1: the file ends after 5 bytes of its header's 12");
  EXPECT_EQ(Problem(good + good.substr(0, 14)),
            absl::StrCat("1: the file ends within it, after 2 of its ", data,
                         " bytes"));
  EXPECT_EQ(Problem(good + good.substr(0, good.size() - 1)),
            absl::StrCat("1: the file ends within it, after ", data, " of its ",
                         data, " bytes"));
}

TEST(TfRecords, AHugeLengthCostsNoMemory) {
  EXPECT_EQ(Problem(Header(uint64_t{1} << 60) + "xyz"),
            "0: it claims to have 1152921504606846976 bytes; a "
            "tf.train.Example has at most 2147483647");
  EXPECT_EQ(Problem(Header(2000000000) + "xyz"),
            "0: the file ends within it, after 3 of its 2000000000 bytes");
}

TEST(TfRecords, TellsTextFromBinaryFiles) {
  for (const char* text :
       {"label,x\n1,2\n3,4\n", "x\n", "name,text\n1,gr\u00fc\u00df\u20ac\n"}) {
    EXPECT_EQ(Problem(text),
              "0: this is not a TFRecord file: it looks like text");
  }
  // Graphs start with a line break and printable lengths; the rest is noise.
  for (const std::string& content :
       {std::string("\0\1\2\3\4\5\6\7\10\11\12\13\14", 13),
        "\n0\n)" + std::string(41, 'x') + "\x12\x03op",
        std::string("\n\xb3\x82\x0c\n\x0bsome_weights"),
        std::string("\n\xb3\xb3 0123456789")}) {
    EXPECT_EQ(Problem(content),
              "0: the checksum of its length is wrong, so this is not a "
              "TFRecord file, or one that is corrupt from the start");
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
  // The record's length, 559903, is gzip's magic number.
  const std::string example = ExampleBytes(absl::StrCat(
      "features { feature { key: 'x' value { float_list { value: 5 } } } "
      "feature { key: 'y' value { bytes_list { value: '",
      std::string(559903 - 38, 'y'), "' } } } }"));
  ASSERT_EQ(example.size(), 559903);
  EXPECT_EQ(ReadWithNext(RecordBytes(example)).Values(0), (Strings{"5", "99"}));
}

TEST(TfRecords, ReadsGzipUpToWhereItIsDamaged) {
  const std::string packed = Gzip(GoodRecord(1) + GoodRecord(2));
  std::string corrupt = packed;
  corrupt[corrupt.size() - 6] ^= 1;
  for (const auto& [file, problem] :
       std::vector<std::pair<std::string, std::string>>{
           {packed + "garbage", "followed by something that is not gzip"},
           {packed.substr(0, packed.size() - 4), "cut off"},
           {corrupt, "corrupt (incorrect data check)"}}) {
    EXPECT_EQ(ReadWithNext(file).Values(0), (Strings{"1", "2", "99"}));
    EXPECT_EQ(Problem(file), "2: its gzip data are " + problem);
  }
}

TEST(TfRecords, NamesTheFeatureThatIsWrong) {
  const auto problem = [](const std::string& example,
                          const std::string& input = "dtype: 'float'") {
    return Problem(RecordBytes(example), input);
  };
  EXPECT_EQ(problem("not a message"), "0: it is not a tf.train.Example");
  EXPECT_EQ(problem(""), "0: it has no feature \"x\"");
  EXPECT_EQ(problem(ExampleBytes("features { feature { key: 'X' value {} } }")),
            "0: it has no feature \"x\" (did you mean \"X\"?)");
  EXPECT_EQ(problem(ExampleBytes("features { feature { key: 'x' value {} } }")),
            "0: its feature \"x\" is empty, and no declaration gives it a "
            "default_value");
  const std::string integers = ExampleBytes(
      "features { feature { key: 'x' value { int64_list { value: [1, 300] } } "
      "} }");
  EXPECT_EQ(problem(integers),
            "0: its feature \"x\" has int64 values, not float");
  EXPECT_EQ(problem(integers, "dtype: 'int64'"),
            "0: its feature \"x\" has 2 values, not 1");
  EXPECT_EQ(problem(integers, "dtype: 'string' shape: 2"),
            "0: its feature \"x\" has int64 values, not bytes");
  EXPECT_EQ(problem(integers, "dtype: 'uint8' shape: 2"),
            "0: its feature \"x\" has a value that is no uint8");
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
  const ReadResult result = ReadContents("tfrecord", {record}, R"(
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
  ASSERT_OK(result.status);
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
  const ReadResult result = ReadContents("tfrecord", {""}, R"(
    input { feature: "x" placeholder: "a" dtype: "float" }
    label { feature: "x" dtype: "int64" })");
  EXPECT_EQ(result.status.message(),
            "feature \"x\" is used twice with different types, shapes or "
            "default values");
}

TEST(TfRecords, SaysWhichLabelIsNotInTheVocabulary) {
  std::string file;
  for (const char* kind : {"dog", "cow", "cat"}) {
    file += RecordBytes(ExampleBytes(absl::StrCat(R"(features {
        feature { key: "x" value { float_list { value: 1 } } }
        feature { key: "kind" value { bytes_list { value: ")",
                                                  kind, "\" } } } }")));
  }
  const ReadResult result = ReadContents("tfrecord", {file}, R"(
    input { feature: "x" placeholder: "a" dtype: "float" }
    label { feature: "kind" dtype: "string" vocabulary: ["cat", "dog"] })");
  EXPECT_THAT(result.bad_messages,
              ElementsAre("0.tfrecord: record 1 (counting from 0): label "
                          "\"kind\" has \"cow\", which is not in its "
                          "vocabulary"));
  ASSERT_EQ(result.batches.size(), 1u);
  EXPECT_EQ(result.batches[0].labels.flat<int64_t>()(0), 1);
  EXPECT_EQ(result.batches[0].labels.flat<int64_t>()(1), 0);
}

// Whatever the bytes, good records are ones that were written.
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
