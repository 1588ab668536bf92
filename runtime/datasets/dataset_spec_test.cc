#include "runtime/datasets/dataset_spec.h"

#include <sys/stat.h>

#include "absl/strings/str_replace.h"
#include "runtime/datasets/testing/testing.h"

namespace requant::dataset_spec_test {
namespace {

constexpr char kGood[] = R"(tfrecord { files: "one.rec" }
input {
  feature: "x"
  placeholder: "p"
  dtype: "float"
  shape: [13]
}
label { feature: "label" dtype: "int64" }
)";

std::string Input() {
  return "input { feature: 'x' placeholder: 'p' dtype: 'float' }";
}

// Returns the error of reading `text`, without the path in front, or "".
std::string Problem(const std::string& text) {
  WriteTestFile("one.rec", "");
  const std::string path = WriteTestFile("problem.textproto", text);
  const auto spec = ReadDatasetSpec(path);
  if (spec.ok()) return "";
  return absl::StrReplaceAll(spec.status().message(),
                             {{path, "F"}, {testing::TempDir(), "T"}});
}

std::string GoodWith(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kGood, {{from, to}});
  EXPECT_NE(text, kGood) << from;
  return text;
}

TEST(ReadDatasetSpec, ReadsADeclaration) {
  WriteTestFile("one.rec", "");
  const auto spec = ReadDatasetSpec(WriteTestFile("good.textproto", kGood));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->input(0).placeholder(), "p");
  EXPECT_EQ(spec->tfrecord().files(0), testing::TempDir() + "/one.rec");
}

TEST(ReadDatasetSpec, NamesTheLineOfASyntaxError) {
  EXPECT_EQ(Problem(GoodWith("dtype: \"float\"", "dtype: 7")),
            "F:5: Expected string, got: 7");
}

TEST(ReadDatasetSpec, SuggestsTheFieldThatWasMeant) {
  EXPECT_EQ(Problem(GoodWith("placeholder:", "placholder:")),
            "F:4: InputSpec has no field \"placholder\" (did you mean "
            "\"placeholder\"?)");
  EXPECT_EQ(Problem(GoodWith("tfrecord {", "tfrecords {")),
            "F:1: DatasetSpec has no field \"tfrecords\" (did you mean "
            "\"tfrecord\"?)");
}

TEST(ReadDatasetSpec, SaysWhatHasYetToBeFilledIn) {
  EXPECT_EQ(Problem(GoodWith("\"x\"", "\"FILL_IN\"")),
            "F:3: \"FILL_IN\" has yet to be filled in; the comments there say "
            "with what");
  EXPECT_EQ(Problem(GoodWith("\"x\"", "\"x\"  # formerly \"FILL_IN\"")), "");
}

TEST(ReadDatasetSpec, RefusesAThresholdThatIsNotUsed) {
  EXPECT_EQ(Problem(absl::StrCat(kGood, R"(prediction {
  tensor: "t" kind: PROBABILITIES
  threshold: 0.3
})")),
            "F:11: threshold is for kind PROBABILITY, one value per record; "
            "kind PROBABILITIES does not use it");
  EXPECT_EQ(Problem(absl::StrCat(
                kGood, "prediction { kind: PROBABILITY threshold: 0.3 }")),
            "");
}

TEST(ReadDatasetSpec, RefusesADeclarationWithoutSourceOrInputs) {
  EXPECT_EQ(Problem(Input()),
            "F:1: no source: add tfrecord, csv, jsonl, numpy or in_graph");
  EXPECT_EQ(Problem("\ntfrecord { files: 'one.rec' }"),
            "F: no inputs: add one input per placeholder");
  EXPECT_EQ(Problem(""),
            "F: no source: add tfrecord, csv, jsonl, numpy or in_graph");
}

TEST(ReadDatasetSpec, RefusesIncompleteInputs) {
  EXPECT_EQ(Problem(GoodWith("feature: \"x\"", "")),
            "F:2: an input has no feature");
  EXPECT_EQ(Problem(GoodWith("placeholder: \"p\"", "")),
            "F:2: an input has no placeholder");
  EXPECT_EQ(Problem(GoodWith("\"p\"", "\"p:1\"")),
            "F:4: \"p:1\" is no placeholder: write \"name\" or \"name:0\"");
  EXPECT_EQ(Problem(GoodWith("feature: \"label\"", "")),
            "F:8: the label has no feature");
}

TEST(ReadDatasetSpec, RefusesUnknownTypes) {
  EXPECT_EQ(Problem(GoodWith("float", "flaot")),
            "F:5: unknown dtype \"flaot\" (did you mean \"float\"?); there are "
            "float, double, half, bfloat16, int8, uint8, int32, int64, bool, "
            "string");
  EXPECT_EQ(Problem(GoodWith("dtype: \"int64\"", "")),
            "F:8: no dtype; write one of float, double, half, bfloat16, int8, "
            "uint8, int32, int64, bool, string");
}

TEST(ReadDatasetSpec, RefusesLabelsThatAreNoNumbers) {
  EXPECT_EQ(Problem(GoodWith("dtype: \"int64\"", "dtype: \"string\"")),
            "F:8: labels are numbers, such as int64: a label of dtype string "
            "cannot be scored without a vocabulary, which lists the texts of "
            "the classes");
}

TEST(ReadDatasetSpec, RefusesFeaturesThatCannotBeJoined) {
  EXPECT_EQ(Problem(GoodWith("feature: \"x\"", "feature: ['x', 'y']")),
            "F:6: an input of 2 features, which are one value each, has a "
            "shape of as many elements, such as shape: 2, not of 13");
  EXPECT_EQ(Problem(GoodWith("feature: \"x\"", "feature: 'x'\nfeature: 'x'")),
            "F:4: feature \"x\" is joined with itself");
  EXPECT_EQ(Problem(GoodWith("feature: \"x\"", "feature: 'x'\nfeature: ''")),
            "F:4: a feature has no name");
  EXPECT_EQ(Problem(absl::StrCat(
                kGood,
                "input { feature: ['a', 'b'] placeholder: 'q' dtype: 'bool' "
                "shape: [1, 2] }")),
            "");
}

constexpr char kConstant[] = R"(constant {
  placeholder: "keep_prob"
  dtype: "float"
  value: "1"
})";

// Returns the error of a declaration with a constant, which starts in line 9.
std::string ConstantProblem(const std::string& from, const std::string& to) {
  return Problem(
      absl::StrCat(kGood, absl::StrReplaceAll(kConstant, {{from, to}})));
}

TEST(ReadDatasetSpec, ChecksConstants) {
  EXPECT_EQ(ConstantProblem("", ""), "");
  EXPECT_EQ(ConstantProblem("\"1\"", "\"1\"\nshape: [2, 3]"), "");
  EXPECT_EQ(ConstantProblem("\"keep_prob\"", "\"\""),
            "F:10: a constant has no placeholder");
  EXPECT_EQ(ConstantProblem("keep_prob", "^keep_prob"),
            "F:10: \"^keep_prob\" is no placeholder: write \"name\" or "
            "\"name:0\"");
  EXPECT_EQ(ConstantProblem("keep_prob", "p:0"),
            "F:10: placeholder \"p:0\" is fed twice");
  EXPECT_THAT(ConstantProblem("\"float\"", "\"flaot\""),
              StartsWith("F:11: unknown dtype \"flaot\""));
  EXPECT_EQ(ConstantProblem("\"1\"", "\"one\""), "F:12: \"one\" is no float");
  EXPECT_EQ(ConstantProblem("value: \"1\"", ""),
            "F:9: a constant of 1 element has one value, not 0");
  EXPECT_EQ(ConstantProblem("\"1\"", "['1', '2'] shape: 3"),
            "F:12: a constant of 3 elements has one value for all or one for "
            "each, not 2");
  EXPECT_THAT(ConstantProblem("\"1\"", "\"1\" shape: 0"),
              StartsWith("F:12: shape has 0;"));
  EXPECT_EQ(ConstantProblem("\"1\"", "\"1\" shape: [2048, 1024]"),
            "F:12: a constant of 2097152 elements is too large; 1048576 are "
            "the most");
}

// Returns the error of a label with these further fields.
std::string LabelProblem(const std::string& fields,
                         const std::string& dtype = "string") {
  return Problem(
      GoodWith("dtype: \"int64\" }",
               absl::StrCat("dtype: \"", dtype, "\"\n", fields, " }")));
}

TEST(ReadDatasetSpec, ChecksVocabularies) {
  EXPECT_EQ(LabelProblem("vocabulary: ['no', 'yes']"), "");
  EXPECT_EQ(LabelProblem("vocabulary: 'no'\nvocabulary: 'no'"),
            "F:10: \"no\" is twice in the vocabulary");
  EXPECT_EQ(LabelProblem("vocabulary: 'no'", "int64"),
            "F:8: a label with a vocabulary is of dtype string");
  WriteTestFile("words.txt", "no\r\nyes\n");
  EXPECT_EQ(LabelProblem("vocabulary_file: 'words.txt'"), "");
  EXPECT_EQ(LabelProblem("vocabulary: 'no'\nvocabulary_file: 'words.txt'"),
            "F:10: the label has both a vocabulary and a vocabulary_file; give "
            "one of them");
  EXPECT_EQ(LabelProblem("vocabulary_file: 'no_words.txt'"),
            "F:9: cannot read T/no_words.txt: No such file or directory");
  for (const auto& [content, problem] :
       std::vector<std::pair<std::string, std::string>>{
           {"", " is empty; a vocabulary has a text per line"},
           {"a\n\nb\n", ":2: a line of a vocabulary is empty"},
           {"a\nb\na", ":3: \"a\" is also in line 1"}}) {
    WriteTestFile("bad_words.txt", content);
    EXPECT_EQ(LabelProblem("vocabulary_file: 'bad_words.txt'"),
              absl::StrCat("F:9: T/bad_words.txt", problem));
  }
}

TEST(ReadDatasetSpec, ReadsTheVocabularysFileEvenForRecordsToCome) {
  WriteTestFile("words.txt", "no\r\nyes\n");
  const std::string path = WriteTestFile(
      "vocabulary.textproto", "tfrecord { files: 'absent' }" + Input() +
                                  "label { feature: 'l' dtype: 'string' "
                                  "vocabulary_file: 'words.txt' }");
  const auto spec = ReadDatasetDeclaration(path);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->label().vocabulary(), ElementsAre("no", "yes"));
  EXPECT_EQ(spec->label().vocabulary_file(), testing::TempDir() + "/words.txt");
}

TEST(ReadDatasetSpec, TakesNamesThatAreNotUtf8) {
  WriteTestFile("one\xff.rec", "");
  const auto spec = ReadDatasetSpec(
      WriteTestFile("bytes.textproto", GoodWith("one.rec", "one\xff.rec")));
  ASSERT_TRUE(spec.ok()) << spec.status();
  DatasetSpec received;
  ASSERT_TRUE(received.ParseFromString(spec->SerializeAsString()));
  EXPECT_EQ(received.tfrecord().files(0), testing::TempDir() + "/one\xff.rec");
}

TEST(ReadDatasetSpec, RefusesAPlaceholderThatIsFedTwice) {
  EXPECT_EQ(Problem(absl::StrCat(kGood, R"(input {
  feature: "y" dtype: "float"
  placeholder: "p:0"
})")),
            "F:11: placeholder \"p:0\" is fed twice");
}

TEST(ReadDatasetSpec, RefusesShapesThatCannotBe) {
  EXPECT_EQ(Problem(GoodWith("[13]", "[13, -1]")),
            "F:6: shape has -1; every dimension is at least 1, and the batch's "
            "own is not part of it");
  EXPECT_EQ(Problem(GoodWith("[13]", "[4294967296, 4294967296]")),
            "F:6: a record of shape [4294967296, 4294967296] is too large");
  const std::string feed = "[13]\nfeed_shape: ";
  EXPECT_EQ(Problem(GoodWith("[13]", feed + "[-1, -1]")),
            "F:7: feed_shape [-1, -1] needs exactly one -1, because the last "
            "batch may be smaller");
  EXPECT_EQ(Problem(GoodWith("[13]", feed + "[13]")),
            "F:7: feed_shape [13] needs exactly one -1, because the last batch "
            "may be smaller");
  EXPECT_EQ(Problem(GoodWith("[13]", feed + "[-1, 2]")),
            "F:7: feed_shape [-1, 2] does not fit records of 13 elements: 2 "
            "does not divide it");
  EXPECT_EQ(Problem(GoodWith("[13]", feed + "[-1, 26]")),
            "F:7: feed_shape [-1, 26] does not fit records of 13 elements: its "
            "known dimensions have more");
  EXPECT_EQ(Problem(GoodWith("[13]", feed + "[-1, 0]")),
            "F:7: feed_shape [-1, 0] has 0; every dimension is -1 or at least "
            "1");
  EXPECT_EQ(Problem(GoodWith("[13]", feed + "[-1, 13, 1]")), "");
}

TEST(ReadDatasetSpec, RefusesADefaultThatIsNoValueOfTheType) {
  EXPECT_EQ(Problem(GoodWith("[13]", "[13]\ndefault_value: '1,5'")),
            "F:7: default_value \"1,5\" is no float");
  EXPECT_EQ(Problem(GoodWith("[13]", "[13]\ndefault_value: '1.5'")), "");
}

TEST(ReadDatasetSpec, RefusesCsvColumnsNamedTwiceAndLongDelimiters) {
  EXPECT_EQ(
      Problem("csv { files: 'one.rec'\ncolumns: 'a'\ncolumns: 'a' }" + Input()),
      "F:3: column \"a\" is named twice");
  EXPECT_EQ(Problem("csv { files: 'one.rec' delimiter: '::' }" + Input()),
            "F:1: delimiter \"::\" is not one character");
  EXPECT_EQ(Problem("csv { files: 'one.rec' delimiter: '\"' }" + Input()),
            "F:1: a quote or line break cannot be the delimiter");
}

TEST(ReadDatasetSpec, AsksForWhatAGraphThatReadsItsDataNeeds) {
  EXPECT_EQ(Problem("in_graph { files: 'one.rec' file_name: 'f' }"),
            "F:1: in_graph needs an initializer");
  EXPECT_EQ(Problem("in_graph { files: 'one.rec' initializer: 'i' }"),
            "F:1: in_graph needs a file_name placeholder");
  EXPECT_EQ(
      Problem("in_graph { files: 'one.rec' initializer: 'i' file_name: 'f' }"),
      "");
}

TEST(ReadDatasetSpec, NamesFilesThatAreNotThere) {
  EXPECT_EQ(Problem(GoodWith("one.rec", "no-*.rec")),
            "F:1: no file matches T/no-*.rec");
  EXPECT_EQ(Problem(GoodWith("files: \"one.rec\"", "")),
            "F:1: the source names no files");
  EXPECT_EQ(ReadDatasetSpec("/nowhere").status().message(),
            "cannot read /nowhere: No such file or directory");
}

TEST(ReadDatasetSpec, FindsAGlobsFilesByNameBesideTheDeclaration) {
  // The folder's name is a pattern.
  const std::string folder = testing::TempDir() + "/[ab]*";
  mkdir(folder.c_str(), 0700);
  mkdir((folder + "/part-9").c_str(), 0700);
  for (const char* name : {"part-2", "part-10", "part-1"}) {
    WriteTestFile(absl::StrCat("[ab]*/", name), "");
  }
  const std::string path =
      WriteTestFile("[ab]*/d.textproto", GoodWith("one.rec", "part-*"));
  const auto spec = ReadDatasetSpec(path);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(
      Strings(spec->tfrecord().files().begin(), spec->tfrecord().files().end()),
      (Strings{folder + "/part-1", folder + "/part-10", folder + "/part-2"}));
}

TEST(ReadDatasetSpec, TakesOtherFilesThanTheDeclarations) {
  const std::string other = WriteTestFile("other.rec", "");
  const std::string path =
      WriteTestFile("replaced.textproto", GoodWith("one.rec", "not_there.rec"));
  auto spec = ReadDatasetSpec(path, {other});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->tfrecord().files(0), other);
  spec = ReadDatasetSpec(path, {"/nowhere*"});
  EXPECT_EQ(spec.status().message(), "no file matches /nowhere*");
}

TEST(ReadDatasetSpec, ResolvesTheFilesOfArrays) {
  WriteTestFile("x.npy", "");
  const auto spec = ReadDatasetSpec(
      WriteTestFile("arrays.textproto",
                    "numpy { arrays { key: 'x' value: 'x.npy' } }" + Input()));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->numpy().arrays().at("x"), testing::TempDir() + "/x.npy");
  EXPECT_EQ(Problem("numpy { arrays { key: 'x' value: 'y.npy' } }" + Input()),
            "F:1: no file matches T/y.npy");
}

TEST(ReadDatasetDeclaration, DoesNotLookForTheFiles) {
  const std::string good = WriteTestFile(
      "declared.textproto", "tfrecord { files: 'absent-*' }" + Input());
  EXPECT_FALSE(ReadDatasetSpec(good).ok());
  const auto spec = ReadDatasetDeclaration(good);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->tfrecord().files(0), "absent-*");
  EXPECT_FALSE(
      ReadDatasetDeclaration(WriteTestFile("bad.textproto", Input())).ok());
}

// Whatever the text, reading it returns and does not crash.
TEST(ReadDatasetSpec, SurvivesMutations) {
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {"shape: ",
                                           "[-1",
                                           "9223372036854775807",
                                           "{",
                                           "}",
                                           "'",
                                           "feed_shape: 0",
                                           ":",
                                           "default_value: 'nan'",
                                           "#",
                                           "label",
                                           "\n",
                                           "feature: 'z'",
                                           "vocabulary: 'a'",
                                           "vocabulary_file: 'one.rec'",
                                           "constant {",
                                           "value: '1'",
                                           "dtype: 'string'"};
  const std::string seed = absl::StrCat(
      kGood,
      "input { feature: 'y' placeholder: 'q' dtype: 'int32' shape: [2, 3] "
      "feed_shape: [-1, 3] default_value: '4' }\n"
      "constant { placeholder: 'c' dtype: 'half' shape: 2 value: ['1', '2'] }");
  const int rounds = FuzzRounds(300);
  for (int round = 0; round < rounds; ++round) {
    const std::string problem = Problem(MutatedText(seed, pieces, &random));
    EXPECT_EQ(problem.find('\n'), std::string::npos) << problem;
  }
}

}  // namespace
}  // namespace requant::dataset_spec_test
