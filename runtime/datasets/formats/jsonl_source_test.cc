#include <tuple>

#include "runtime/datasets/testing/testing.h"

namespace requant::jsonl_source_test {
namespace {

ReadResult ReadJsonl(const std::vector<std::string>& contents,
                     const std::string& inputs = kNumberAndText) {
  return ReadContents("jsonl", contents, inputs);
}

// Returns what is wrong with a line, read for a float "n" or as `input` says.
std::string Problem(const std::string& line,
                    const std::string& input = "dtype: 'float'") {
  const ReadResult result = ReadJsonl(
      {line},
      absl::StrCat("input { feature: 'n' placeholder: 'p' ", input, "}"));
  return result.bad_messages.empty() ? "" : result.bad_messages[0];
}

TEST(Jsonl, FindsFeaturesByTheirKeys) {
  const ReadResult result =
      ReadJsonl({"{\"s\": \"a\", \"more\": {\"n\": [7]}, \"n\": 1}\r\n\n \t\n"
                 "\t{ \"n\" :-2.5e1 , \"s\":\"\" } \n",
                 "\xef\xbb\xbf{\"n\": 3, \"s\": \"b\"}"});
  EXPECT_THAT(result.bad_messages, IsEmpty());
  EXPECT_THAT(result.Values(0), ElementsAre("1", "-25", "3"));
  EXPECT_THAT(result.Values(1), ElementsAre("a", "", "b"));
}

TEST(Jsonl, ReadsGzipUpToWhereItIsDamaged) {
  const std::string packed = Gzip("{\"n\": 1, \"s\": \"a\"}\n");
  EXPECT_THAT(ReadJsonl({packed}).Values(0), ElementsAre("1"));
  const ReadResult result = ReadJsonl({packed + "x", packed});
  EXPECT_THAT(result.Values(0), ElementsAre("1", "1"));
  EXPECT_THAT(result.bad_messages,
              ElementsAre("0.jsonl:2: its gzip data are followed by something "
                          "that is not gzip, so the records after it cannot be "
                          "found"));
  EXPECT_EQ(result.lost_rests, 1);
}

TEST(Jsonl, FlattensArraysInTheOrderOfTheirRows) {
  const ReadResult result =
      ReadJsonl({"{\"n\": [[1, 2], [3, 4]], \"b\": [true], \"l\": 7}\n"
                 "{\"n\": [5, 6, 7, 8], \"b\": 0, \"l\": [8]}\n"},
                R"(input { feature: "n" dtype: "int32" shape: [2, 2] }
                   input { feature: "b" dtype: "bool" }
                   input { feature: "n" dtype: "half" shape: 4 }
                   label { feature: "l" dtype: "int64" })");
  ASSERT_EQ(result.status, absl::OkStatus());
  EXPECT_THAT(result.Values(0),
              ElementsAre("1", "2", "3", "4", "5", "6", "7", "8"));
  EXPECT_THAT(result.Values(1), ElementsAre("1", "0"));
  EXPECT_EQ(result.Values(2), result.Values(0));
  EXPECT_EQ(result.batches[0].labels.flat<int64_t>()(1), 8);
}

TEST(Jsonl, UnescapesStrings) {
  const auto read = [](const std::string& text) {
    const ReadResult result =
        ReadJsonl({absl::StrCat("{\"n\": 0, \"\\u0073\": ", text, "}")});
    return result.bad_messages.empty() ? result.Values(1)[0]
                                       : result.bad_messages[0];
  };
  EXPECT_EQ(read(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(read(R"("\u00e9\u20AC\ud83d\ude00")"), "\u00e9\u20ac\U0001f600");
  EXPECT_EQ(read("\"gr\u00fc\u00df\""), "gr\u00fc\u00df");
  EXPECT_EQ(read(R"("\u0000")"), std::string(1, '\0'));
  EXPECT_THAT(read(R"("\ud83d")"), HasSubstr("second half"));
  EXPECT_THAT(read(R"("\ud83d\u0041")"), HasSubstr("second half"));
  EXPECT_THAT(read(R"("\ude00")"), HasSubstr("lacks its first half"));
  EXPECT_THAT(read(R"("\u00g0")"), HasSubstr("four hexadecimal digits"));
  EXPECT_THAT(read(R"("\x41")"), HasSubstr("after a backslash"));
  EXPECT_THAT(read("\"a\tb\""), HasSubstr("no control character"));
  EXPECT_THAT(read("\"\xff\""), HasSubstr("expected UTF-8, not \"\\xff\""));
}

TEST(Jsonl, FillsInTheDefaultForWhatIsMissingOrNull) {
  const std::string input = "dtype: 'int32' default_value: '-7' shape: 2";
  const ReadResult result = ReadJsonl(
      {"{}\n{\"n\": null}\n{\"n\": [1, 2]}\n"},
      absl::StrCat("input { feature: 'n' placeholder: 'p' ", input, "}"));
  EXPECT_THAT(result.Values(0), ElementsAre("-7", "-7", "-7", "-7", "1", "2"));
  EXPECT_EQ(Problem("{\"n\": [1, null]}", input),
            "0.jsonl:1: feature \"n\" has null, which is no int32");
  EXPECT_EQ(Problem("{\"n\": null}"),
            "0.jsonl:1: feature \"n\" is null, and no declaration gives it a "
            "default_value");
  EXPECT_EQ(Problem("{\"N\": 1}"),
            "0.jsonl:1: feature \"n\" is missing, and no declaration gives it "
            "a default_value (did you mean \"N\"?)");
}

TEST(Jsonl, SaysWhichValueDoesNotFit) {
  for (const auto& [line, input, problem] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"{\"n\": \"1\"}", "dtype: 'float'", "has \"1\", which is no float"},
           {"{\"n\": true}", "dtype: 'float'", "has true, which is no float"},
           {"{\"n\": 1e400}", "dtype: 'float'", "has 1e400, which is no float"},
           {"{\"n\": 1.0}", "dtype: 'int64'", "has 1.0, which is no int64"},
           {"{\"n\": 256}", "dtype: 'uint8'", "has 256, which is no uint8"},
           {"{\"n\": 2}", "dtype: 'bool'", "has 2, which is no bool"},
           {"{\"n\": 2}", "dtype: 'string'", "has 2, which is no string"},
           {"{\"n\": {}}", "dtype: 'float'", "has an object, not values"},
           {"{\"n\": [{}]}", "dtype: 'float'", "has an object, not values"},
           {"{\"n\": []}", "dtype: 'float'", "has 0 values, not 1"},
           {"{\"n\": 1}", "dtype: 'float' shape: 3", "has 1 value, not 3"},
           {"{\"n\": [[1], [2, 3, 4]]}", "dtype: 'float' shape: 3",
            "has 4 values, not 3"}}) {
    EXPECT_EQ(Problem(line, input),
              absl::StrCat("0.jsonl:1: feature \"n\" ", problem));
  }
}

TEST(Jsonl, SaysWhatWasExpected) {
  for (const auto& [line, problem] :
       std::vector<std::pair<std::string, std::string>>{
           {"[1]",
            "1: expected a JSON object, which starts with '{', not "
            "\"[\""},
           {"{", "2: expected a key in quotes, not the end of the line"},
           {"{n: 1}", "2: expected a key in quotes, not \"n\""},
           {"{\"n\" 1}", "6: expected ':' after a key, not \"1\""},
           {"{\"n\": }", "7: expected a value, not \"}\""},
           {"{\"n\": NaN}", "7: expected a value, not \"N\""},
           {"{\"n\": -}", "8: expected a digit, not \"}\""},
           {"{\"n\": 01}", "8: expected ',' or '}', not \"1\""},
           {"{\"n\": 1.}", "9: expected a digit after '.', not \"}\""},
           {"{\"n\": 1e+}", "10: expected a digit of the exponent, not \"}\""},
           {"{\"n\": [1 2]}", "10: expected ',' or ']', not \"2\""},
           {"{\"n\": [1,]}", "10: expected a value, not \"]\""},
           {"{\"n\": 1,}", "9: expected a key in quotes, not \"}\""},
           {"\xef\xbb\xbf{\"n\": 1,}",
            "12: expected a key in quotes, not \"}\""},
           {"{\"n\": \"a",
            "9: expected a quote at the string's end, not the "
            "end of the line"},
           {"{\"n\": 1} 2",
            "10: expected nothing after the object, not "
            "\"2\""},
           {"{\"n\": 1, \"n\": 2}", "13: key \"n\" is there twice"}}) {
    EXPECT_EQ(Problem(line), absl::StrCat("0.jsonl:1: byte ", problem));
  }
}

TEST(Jsonl, BoundsDepthAndLength) {
  const std::string deep(99, '[');
  EXPECT_EQ(
      Problem("{\"x\": " + deep + "0" + std::string(99, ']') + ", \"n\": 1}"),
      "");
  EXPECT_EQ(Problem("{\"x\": [" + deep),
            "0.jsonl:1: byte 106: more than 100 arrays and objects inside one "
            "another");
  std::string objects;
  for (int i = 0; i < 1 << 20; ++i) objects += "{\"\":";
  EXPECT_THAT(Problem(objects), HasSubstr("more than 100"));
  const ReadResult result = ReadJsonl(
      {absl::StrCat("{\"n\": 1, \"s\": \"", std::string(17 << 20, 'x'),
                    "\"}\n{\"n\": 2, \"s\": \"b\"}\n")});
  EXPECT_THAT(result.Values(0), ElementsAre("2"));
  EXPECT_THAT(result.bad_messages,
              ElementsAre("0.jsonl:1: the line has more than 16 MB"));
  // Values that nobody asked for are only counted.
  std::string many = "{\"n\": [1";
  for (int i = 0; i < 1 << 20; ++i) many += ",1";
  EXPECT_EQ(Problem(many + "]}"),
            "0.jsonl:1: feature \"n\" has 1048577 values, not 1");
}

constexpr char kTextLabel[] = R"(
    input { feature: "n" placeholder: "0" dtype: "float" }
    label { feature: "s" dtype: "string" shape: 2
            vocabulary: ["ham", "spam"] })";

TEST(Jsonl, SaysWhichLabelIsNotInTheVocabulary) {
  const ReadResult result =
      ReadContents("jsonl",
                   {"{\"n\": 1, \"s\": [\"spam\", \"ham\"]}\n"
                    "{\"n\": 2, \"s\": [\"spam\", \"spa\\u0007m\"]}\n"},
                   kTextLabel);
  ASSERT_EQ(result.batches.size(), 1u);
  EXPECT_EQ(result.batches[0].labels.shape(), tensorflow::TensorShape({1, 2}));
  EXPECT_EQ(result.batches[0].labels.flat<int64_t>()(0), 1);
  EXPECT_EQ(result.batches[0].labels.flat<int64_t>()(1), 0);
  EXPECT_THAT(result.bad_messages,
              ElementsAre("0.jsonl:2: label \"s\" has \"spa\\x07m\", which is "
                          "not in its vocabulary (did you mean \"spam\"?)"));
}

TEST(Jsonl, SurvivesMutations) {
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {"{",  "}",  "[",       "]",
                                           "\"", "\\", "\\ud83d", ",",
                                           ":",  "\n", "null",    "-1e9"};
  const std::string seed =
      "{\"n\": 1, \"s\": \"a\\u00e9\", \"x\": [{\"y\": [true, null]}, 2.5]}\n"
      "{\"s\": \"\\\"\\n\", \"n\": [-3e-2]}\n";
  const int rounds = FuzzRounds(300);
  for (int round = 0; round < rounds; ++round) {
    const ReadResult result =
        ReadJsonl({MutatedText(seed, pieces, &random), seed});
    ASSERT_FALSE(result.batches.empty());
    EXPECT_EQ(result.Values(0).back(), absl::StrCat(-0.03f));
    EXPECT_THAT(result.bad_messages, Each(Not(HasSubstr("\n"))));
    const ReadResult labeled =
        ReadContents("jsonl", {MutatedText(seed, pieces, &random)}, kTextLabel);
    EXPECT_THAT(labeled.bad_messages, Each(Not(HasSubstr("\n"))));
  }
}

}  // namespace
}  // namespace requant::jsonl_source_test
