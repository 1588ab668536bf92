#include "runtime/datasets/guess_dataset.h"

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/text_format.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/declaration_text.h"
#include "runtime/datasets/testing/testing.h"

namespace requant::guess_dataset_test {
namespace {

using tensorflow::SignatureDef;

// A signature as Keras writes it. `more` has further inputs and outputs.
SignatureDef Signature(const std::string& more = "") {
  SignatureDef signature;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat(R"(
        inputs { key: "age" value { name: "serving_default_age:0"
          dtype: DT_FLOAT
          tensor_shape { dim { size: -1 } dim { size: 1 } } } }
        inputs { key: "city" value { name: "serving_default_city:0"
          dtype: DT_STRING tensor_shape { dim { size: -1 } } } })",
                   more.empty() ? R"(
        outputs { key: "output_0" value { name: "StatefulPartitionedCall:0"
          dtype: DT_FLOAT
          tensor_shape { dim { size: -1 } dim { size: 1 } } } })"
                                : more),
      &signature));
  return signature;
}

// Returns an output of [batch, values] floats.
std::string Output(const std::string& name, int values = 1,
                   const std::string& tensor = "StatefulPartitionedCall:0") {
  return absl::StrCat("outputs { key: '", name, "' value { name: '", tensor,
                      "' dtype: DT_FLOAT tensor_shape { dim { size: -1 } dim { "
                      "size: ",
                      values, " } } } }");
}

std::string Input(const std::string& name, const std::string& dtype,
                  const std::string& dims) {
  std::string text =
      absl::StrCat("inputs { key: '", name, "' value { name: 'serving_default_",
                   name, ":0' dtype: ", dtype, " tensor_shape {");
  for (const std::string_view dim :
       absl::StrSplit(dims, ',', absl::SkipEmpty())) {
    absl::StrAppend(&text, " dim { size: ", dim, " }");
  }
  return absl::StrCat(text, " } } }");
}

std::string WithoutFolder(std::string_view text) {
  return absl::StrReplaceAll(text, {{testing::TempDir() + "/", ""}});
}

// Returns the declaration of a file, without its source, and the notes; or the
// error.
std::string Guess(const std::string& name, const std::string& content,
                  const SignatureDef& signature = Signature(),
                  const GuessOptions& options = {}) {
  const auto guessed =
      GuessDataset(signature, {WriteTestFile(name, content)}, options);
  if (!guessed.ok()) return WithoutFolder(guessed.status().message());
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  EXPECT_TRUE(printer.PrintToString(guessed->spec, &text));
  for (const GuessNote& note : guessed->notes) {
    absl::StrAppend(&text, "\n", note.text);
  }
  return WithoutFolder(text);
}

constexpr char kCsv[] = "id,age,city,label\n7,31,Rome,1\n8,12.5,Oslo,0\n";

TEST(GuessDataset, TakesColumnsThatAreNamedAsTheInputs) {
  const auto guessed =
      GuessDataset(Signature(), {WriteTestFile("people.csv", kCsv)});
  ASSERT_OK(guessed);
  EXPECT_EQ(guessed->spec.SerializeAsString(),
            SpecFromText(absl::StrCat("csv { files: '", testing::TempDir(),
                                      R"(/people.csv' }
    input { feature: "age" placeholder: "age" dtype: "float" shape: 1 }
    input { feature: "city" placeholder: "city" dtype: "string" }
    label { feature: "label" dtype: "int64" }
    prediction { tensor: "output_0" })"))
                .SerializeAsString());
  Strings notes;
  for (const GuessNote& note : guessed->notes) {
    notes.push_back(WithoutFolder(note.text));
  }
  EXPECT_THAT(
      notes,
      ElementsAre("people.csv is read as CSV, and the "
                  "columns \"age\" and \"city\" feed the model's inputs of "
                  "these names",
                  "the model's output \"output_0\" is taken as the prediction",
                  "the column \"label\" is taken as the label",
                  "the column \"id\" is not read"));
  const ReadResult result = ReadAll(guessed->spec);
  ASSERT_OK(result.status);
  EXPECT_EQ(result.Values(0), (Strings{"31", "12.5"}));
  EXPECT_EQ(result.Values(1), (Strings{"Rome", "Oslo"}));
}

TEST(GuessDataset, KnowsFilesByTheirContent) {
  const std::string json =
      "{\"age\": 31, \"city\": \"Rome\", \"y\": true}\n"
      "{\"age\": 12.5, \"city\": null, \"y\": false}\n";
  const std::string example = RecordBytes(ExampleBytes(R"(features {
      feature { key: "age" value { float_list { value: 31 } } }
      feature { key: "city" value { bytes_list { value: "Rome" } } }
      feature { key: "Target" value { float_list { value: 1 } } } })"));
  for (const auto& [content, source, label] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {kCsv, "csv", "\"label\" dtype: \"int64\""},
           {absl::StrReplaceAll(kCsv, {{",", "\t"}}), "csv", "\"int64\""},
           {Gzip(kCsv), "csv", "\"int64\""},
           {json, "jsonl", "\"y\" dtype: \"bool\""},
           {Gzip("\n" + json), "jsonl", "\"bool\""},
           {example, "tfrecord", "\"Target\" dtype: \"float\""},
           {Gzip(example), "tfrecord", "\"float\""}}) {
    EXPECT_THAT(Guess("some.data", content),
                AllOf(HasSubstr(source + " {"), HasSubstr(label)));
  }
}

TEST(GuessDataset, SaysWhatIsMissingAndWhatIsThere) {
  EXPECT_EQ(Guess("a.csv", "Age,town\n1,x\n"),
            "a.csv has no columns \"age\" (did you mean \"Age\"?) and \"city\" "
            "for the model's inputs of these names; it has \"Age\" and "
            "\"town\": rename them, or declare by --dataset what feeds which "
            "input");
  EXPECT_THAT(Guess("a.jsonl", "{\"city\": \"x\"}\n"),
              StartsWith("a.jsonl has no key \"age\" for the model's input of "
                         "that name; it has \"city\": "));
}

TEST(GuessDataset, RefusesFilesOfOtherKinds) {
  const std::string hint =
      "; CSV with a line of names, JSON lines, .npz and TFRecord files need no "
      "declaration";
  EXPECT_EQ(Guess("a.npy", "\x93NUMPY..."),
            "a.npy is a single array: save all arrays in one .npz file, under "
            "the names of the model's inputs" +
                hint);
  EXPECT_EQ(Guess("a.json", " [{}]"),
            "a.json is a JSON array, not an object per line" + hint);
  EXPECT_EQ(Guess("a.bin", std::string("a\0b", 3)),
            "a.bin is in no format that is known" + hint);
  EXPECT_EQ(Guess("a.csv", "\n \n"), "no records in a.csv");
  EXPECT_EQ(Guess("a.rec", RecordBytes("no Example")),
            "no records with a feature in a.rec");
  EXPECT_EQ(Guess("a.zip", "PK\x03\x04"),
            "a.zip is not a sound zip archive: its directory is missing");
  const auto two =
      GuessDataset(Signature(), {WriteTestFile("1.csv", kCsv),
                                 WriteTestFile("2.jsonl", "{\"age\": 1}\n")});
  EXPECT_EQ(WithoutFolder(two.status().message()),
            "1.csv is CSV and 2.jsonl is JSON lines: all files must be of one "
            "format");
  EXPECT_THAT(GuessDataset(Signature(), {}),
              FailsWith("there are no files to read"));
  EXPECT_THAT(GuessDataset(Signature(), {"/dev/null"}),
              FailsWith(HasSubstr("/dev/null")));
}

TEST(GuessDataset, TakesOpenDimensionsFromTheFirstRecords) {
  const SignatureDef tokens = Signature(
      absl::StrCat(Input("tokens", "DT_INT64", "-1,-1,2"), Output("output_0")));
  const std::string csv = "age,city,tokens\n1,x,1 2 3 4 5 6\n2,y,";
  EXPECT_THAT(Guess("open.csv", csv + "6 5 4 3 2 1\n", tokens),
              AllOf(HasSubstr("shape: 3 shape: 2"),
                    HasSubstr("the model leaves the shape of \"tokens\" open, "
                              "which is [3, 2] in the first records")));
  EXPECT_EQ(
      Guess("open.csv", csv + "6 5 4 3\n", tokens),
      "the model's input \"tokens\" has the shape [?, -1, 2], where -1 is "
      "open, and the first records of open.csv have different numbers of "
      "values for it: declare it by --dataset");
  EXPECT_THAT(Guess("open.csv", "age,city,tokens\n1,x,1 2 3\n", tokens),
              HasSubstr("do not tell the rest"));
  EXPECT_THAT(
      Guess("open.csv", csv + "6 5 4 3 2 1\n",
            Signature(absl::StrCat(Input("tokens", "DT_INT64", "-1,-1,-1"),
                                   Output("output_0")))),
      HasSubstr("do not tell the rest"));
}

TEST(GuessDataset, SaysWhichInputsNoFileCanFeed) {
  const auto with = [](const std::string& input) {
    return Guess("more.csv", "age,city,x\n1,a,2\n",
                 Signature(absl::StrCat(input, Output("output_0"))));
  };
  EXPECT_THAT(Guess("a.csv", kCsv,
                    Signature(absl::StrCat(Input("training", "DT_BOOL", ""),
                                           Output("output_0")))),
              AllOf(HasSubstr("\"training\" is a single value, not one per "
                              "record"),
                    HasSubstr("constant { placeholder: \"training\" dtype: "
                              "\"bool\" value: ... }")));
  EXPECT_THAT(with(Input("x", "DT_COMPLEX64", "-1")),
              StartsWith("the model's input \"x\" is of type complex64"));
  EXPECT_THAT(with("inputs { key: 'x' value { dtype: DT_FLOAT coo_sparse { } "
                   "} }"),
              StartsWith("the model's input \"x\" is sparse or ragged"));
  EXPECT_THAT(with("inputs { key: 'x' value { name: 'x:0' dtype: DT_FLOAT "
                   "tensor_shape { unknown_rank: true } } }"),
              StartsWith("the model's input \"x\" has no known shape"));
  EXPECT_THAT(with(Input("x", "DT_FLOAT", "8,1")),
              HasSubstr("takes batches of 8 records only, so that "
                        "--batch_size=8 is needed"));
}

TEST(GuessDataset, TakesTheOutputThatLooksLikeAPrediction) {
  const std::string ids =
      "outputs { key: 'class_ids' value { name: 'StatefulPartitionedCall:1' "
      "dtype: DT_INT64 tensor_shape { dim { size: -1 } } } }";
  EXPECT_THAT(Guess("a.csv", kCsv, Signature(ids + Output("anything"))),
              HasSubstr("the output \"anything\" is taken"));
  EXPECT_THAT(Guess("a.csv", kCsv,
                    Signature(Output("embedding") + Output("probabilities"))),
              HasSubstr("prediction { tensor: \"probabilities\" }"));
  const SignatureDef unclear =
      Signature(Output("churn") + Output("amount") + ids);
  EXPECT_EQ(Guess("a.csv", kCsv, unclear),
            "which of the model's outputs \"amount\", \"churn\" and "
            "\"class_ids\" is the prediction? Name it by --output");
  GuessOptions options;
  options.output_flag = "--outputs";
  EXPECT_THAT(Guess("a.csv", kCsv, unclear, options),
              EndsWith("Name it by --outputs"));
  options.needs_prediction = false;
  EXPECT_THAT(Guess("a.csv", kCsv, unclear, options),
              Not(HasSubstr("prediction")));
  options.output = "churn";
  EXPECT_THAT(Guess("a.csv", kCsv, unclear, options),
              HasSubstr("prediction { tensor: \"churn\" }"));
}

// Graphs of TensorFlow 1 do not keep a signature's names.
TEST(GuessDataset, NamesNodesWhereFreezingKeepsNoNames) {
  SignatureDef signature =
      Signature(Output("probabilities", 2, "head/probabilities:0"));
  (*signature.mutable_inputs())["age"].set_name("Placeholder_3:0");
  EXPECT_THAT(
      Guess("a.csv", kCsv, signature),
      AllOf(HasSubstr("feature: \"age\" placeholder: \"Placeholder_3\""),
            HasSubstr("tensor: \"head/probabilities:0\"")));
}

TEST(GuessDataset, TakesOneColumnThatIsNamedLikeALabelOrNone) {
  const auto label = [](const std::string& names, const std::string& values) {
    return Guess("label.csv", absl::StrCat("age,city,", names, "\n1,x,", values,
                                           "\n2,y,", values, "\n"));
  };
  EXPECT_THAT(label("Label", "1"), HasSubstr("label { feature: \"Label\""));
  EXPECT_THAT(label("OUTPUT_0", "1"),
              HasSubstr("label { feature: \"OUTPUT_0\""));
  EXPECT_THAT(label("clicked", "1"),
              AllOf(Not(HasSubstr("label {")),
                    HasSubstr("there is no label, and so no accuracy: no "
                              "column is named like a label")));
  EXPECT_THAT(label("y,target", "1,1"),
              AllOf(Not(HasSubstr("label {")),
                    HasSubstr("several columns are named like a label "
                              "(\"target\" and \"y\")")));
  EXPECT_THAT(label("class", "red"),
              AllOf(Not(HasSubstr("label { feature")),
                    HasSubstr("\"class\" has texts, whose classes only the "
                              "vocabulary")));
  EXPECT_THAT(label("y", "1 2"), HasSubstr("does not have one value"));
  EXPECT_THAT(label("y", ""), HasSubstr("does not have one value"));
}

TEST(GuessDataset, ComparesNumbersByTheirDistance) {
  const auto kind = [](const std::string& outputs, const std::string& label) {
    return Guess("kind.csv",
                 absl::StrCat("age,city,y\n1,x,0\n2,y,", label, "\n"),
                 Signature(outputs));
  };
  EXPECT_THAT(kind(Output("p"), "1.0"), Not(HasSubstr("kind:")));
  EXPECT_THAT(kind(Output("p"), "2"), HasSubstr("kind: VALUE"));
  EXPECT_THAT(kind(Output("p", 3), "2"), Not(HasSubstr("kind:")));
  // A frozen graph does not tell the shapes of its outputs.
  const std::string unknown =
      "outputs { key: 'p' value { name: 'StatefulPartitionedCall:0' "
      "tensor_shape { unknown_rank: true } } }";
  EXPECT_THAT(kind(unknown, "2"), Not(HasSubstr("kind:")));
  EXPECT_THAT(kind(unknown, "2.5"), HasSubstr("kind: VALUE"));
}

TEST(GuessDataset, TakesASingleSumAsANumber) {
  const auto guess = [](int values, const std::string& sum) {
    GuessOptions options;
    options.sums = {"another", sum};
    return Guess("sum.csv", kCsv, Signature(Output("p", values)), options);
  };
  EXPECT_THAT(guess(1, "p"),
              AllOf(HasSubstr("kind: VALUE"),
                    HasSubstr("\nthe prediction is a sum, so it is taken as a "
                              "number that is compared with the labels")));
  EXPECT_THAT(guess(3, "p"), Not(HasSubstr("kind:")));
  EXPECT_THAT(guess(1, "q"), Not(HasSubstr("kind:")));
}

// Returns the declaration's text with gaps, without its comments on fields, and
// the gaps.
std::string GuessWithGaps(const SignatureDef& signature, const Strings& files) {
  GuessOptions options;
  options.leaves_gaps = true;
  const auto guessed = GuessDataset(signature, files, options);
  if (!guessed.ok()) return WithoutFolder(guessed.status().message());
  std::string text;
  for (const std::string_view line :
       absl::StrSplit(DeclarationText(*guessed), '\n', absl::SkipEmpty())) {
    if (line[0] != '#') absl::StrAppend(&text, line, "\n");
  }
  for (const GuessNote& gap : guessed->gaps) {
    absl::StrAppend(&text, "GAP ", gap.text, "\n");
  }
  return WithoutFolder(text);
}

TEST(GuessDataset, DoesNotSayThatRecordsFeedASingleValue) {
  GuessOptions options;
  options.leaves_gaps = true;
  const auto guessed =
      GuessDataset(Signature(absl::StrCat(Input("rate", "DT_FLOAT", ""),
                                          Output("output_0"))),
                   {}, options);
  ASSERT_OK(guessed);
  EXPECT_EQ(guessed->notes[0].text,
            "the columns \"age\" and \"city\" feed the model's inputs of these "
            "names");
}

TEST(GuessDataset, LeavesGapsForWhatOnlyAPersonCanTell) {
  EXPECT_EQ(GuessWithGaps(Signature(),
                          {WriteTestFile("gaps.csv", "Age,city\n31,Rome\n")}),
            R"(csv { files: "gaps.csv" }
input { feature: "FILL_IN" placeholder: "age" dtype: "float" shape: [1] }
input { feature: "city" placeholder: "city" dtype: "string" }
prediction { tensor: "output_0" }
GAP gaps.csv has no column "age" (did you mean "Age"?) for the model's input of that name; it has "Age" and "city": rename them, or write which feature feeds which input
)");
  EXPECT_EQ(
      GuessWithGaps(
          Signature(absl::StrCat(
              Input("rate", "DT_FLOAT", ""), Input("text", "DT_INT32", "-1,-1"),
              Output("left"), Output("right", 1, "PartitionedCall:1"))),
          {}),
      R"(csv { files: "FILL_IN" }
input { feature: "age" placeholder: "age" dtype: "float" shape: [1] }
input { feature: "city" placeholder: "city" dtype: "string" }
input { feature: "text" placeholder: "text" dtype: "int32" shape: [-1] }
constant { placeholder: "rate" dtype: "float" value: "FILL_IN" }
prediction { tensor: "FILL_IN" }
GAP the files with the records; if they are not CSV, write jsonl, numpy or tfrecord instead of csv
GAP the model's input "rate" is a single value, not one per record: say which
GAP the model's input "text" has the shape [?, -1], where -1 is open
GAP which of the model's outputs "left" and "right" is the prediction?
)");
}

TEST(DeclarationText, IsRefusedUntilItIsFilledIn) {
  GuessOptions options;
  options.leaves_gaps = true;
  const auto guessed = GuessDataset(Signature(), {}, options);
  ASSERT_OK(guessed);
  std::string text = DeclarationText(*guessed);
  EXPECT_THAT(ReadDatasetSpec(WriteTestFile("skeleton.textproto", text))
                  .status()
                  .message(),
              HasSubstr("\"FILL_IN\" has yet to be filled in"));
  WriteTestFile("filled.csv", "age,city\n31,Rome\n");
  text = absl::StrReplaceAll(text, {{"FILL_IN", "filled.csv"}});
  EXPECT_OK(ReadDatasetSpec(WriteTestFile("skeleton.textproto", text)));
}

TEST(DeclarationText, IsReadAsTheSameDeclaration) {
  SignatureDef signature = Signature();
  (*signature.mutable_inputs())["a\"\n\x01{"] = signature.inputs().at("age");
  const auto guessed = GuessDataset(
      signature, {WriteTestFile("text.csv",
                                "age,city,\"a\"\"\n\x01{\",label\n1,x,2,0\n")});
  ASSERT_OK(guessed);
  const std::string text = DeclarationText(*guessed);
  const auto read = ReadDatasetSpec(WriteTestFile("text.textproto", text));
  ASSERT_OK(read);
  EXPECT_EQ(read->SerializeAsString(), guessed->spec.SerializeAsString());
  EXPECT_THAT(text, HasSubstr("# Guessed: the column \"label\" is taken as the "
                              "label\nlabel {"));
}

// Whatever the bytes, there is a declaration or a sentence.
TEST(GuessDataset, SurvivesMutations) {
  std::mt19937 random(1);
  const Strings seeds = {kCsv, "{\"age\": [1, 2], \"city\": \"x\", \"y\": 1}\n",
                         RecordBytes(ExampleBytes(R"(features {
          feature { key: "age" value { float_list { value: 31 } } }
          feature { key: "city" value { bytes_list { value: "Rome" } } } })"))};
  const int rounds = FuzzRounds(300);
  for (int round = 0; round < rounds; ++round) {
    const auto guessed = GuessDataset(
        Signature(),
        {WriteTestFile("mutated.data",
                       MutatedText(seeds[round % seeds.size()],
                                   {"\xff\xff\xff\xff", "\n", ",", "\"", "[",
                                    "age", std::string(1, '\0')},
                                   &random))});
    if (!guessed.ok()) continue;
    const std::string text = DeclarationText(*guessed);
    EXPECT_OK(ReadDatasetSpec(WriteTestFile("mutated.textproto", text)))
        << text;
  }
}

}  // namespace
}  // namespace requant::guess_dataset_test
