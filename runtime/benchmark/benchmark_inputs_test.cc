#include "runtime/benchmark/benchmark_inputs.h"

#include <filesystem>
#include <tuple>

#include "base/status_macros.h"
#include "base/testing/testing.h"
#include "google/protobuf/text_format.h"
#include "runtime/datasets/testing/testing.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant::benchmark_inputs_test {
namespace {

using tensorflow::SignatureDef;

SignatureDef Signature(const std::string& text) {
  SignatureDef signature;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &signature));
  return signature;
}

// Returns a decoder's signature: ids and a mask for texts of any length.
SignatureDef Decoder() {
  return Signature(R"(
    inputs { key: "input_ids" value { name: "ids:0" dtype: DT_INT32
      tensor_shape { dim { size: -1 } dim { size: -1 } } } }
    inputs { key: "attention_mask" value { name: "mask:0" dtype: DT_INT64
      tensor_shape { dim { size: -1 } dim { size: -1 } } } }
    outputs { key: "logits" value { name: "logits:0" } }
    outputs { key: "past" value { name: "past:0" } })");
}

SyntheticInputs Settings() {
  SyntheticInputs settings;
  settings.set_length(5);
  settings.set_ids(7);
  return settings;
}

TEST(MakeSyntheticBatch, FillsShapesThatAreLeftOpen) {
  const auto made = MakeSyntheticBatch(Decoder(), "model", Settings(), 8);
  ASSERT_OK(made);
  EXPECT_EQ(made->batch.size, 8);
  ASSERT_EQ(made->batch.inputs.size(), 2);
  // Inputs are sorted by name.
  const auto mask = made->batch.inputs[0].flat<int64_t>();
  const auto ids = made->batch.inputs[1].flat<int32_t>();
  EXPECT_EQ(made->batch.inputs[1].shape().DebugString(), "[8,5]");
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(mask(i), 1);
    EXPECT_GE(ids(i), 0);
    EXPECT_LT(ids(i), 7);
  }
  EXPECT_THAT(made->notes,
              ElementsAre("attention_mask: int64 [8,5], all 1",
                          "input_ids: int32 [8,5], random whole numbers from 0 "
                          "to 6"));
  EXPECT_EQ(made->dataset.input(1).placeholder(), "input_ids");
  EXPECT_EQ(made->dataset.prediction().tensor(), "logits");
  // The values are the same every time.
  const auto again = MakeSyntheticBatch(Decoder(), "model", Settings(), 8);
  EXPECT_EQ(made->batch.inputs[1].tensor_data(),
            again->batch.inputs[1].tensor_data());
}

// Returns a decoder's signature whose logits show that there are six ids.
SignatureDef DecoderOfSix() {
  SignatureDef signature = Decoder();
  for (const int size : {-1, -1, 6}) {
    (*signature.mutable_outputs())["logits"]
        .mutable_tensor_shape()
        ->add_dim()
        ->set_size(size);
  }
  return signature;
}

// Writes rows of two numbers, as numpy.save does.
std::string WriteTokens(const std::string& name, const std::string& type,
                        const std::vector<int64_t>& numbers) {
  std::string header =
      absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': (",
                   numbers.size() / 2, ", 2), }");
  header.resize(117, ' ');
  std::string content =
      absl::StrCat(std::string("\x93NUMPY\x01\x00\x76\x00", 10), header, "\n");
  for (const int64_t number : numbers) {
    content.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return WriteTestFile(name, content);
}

TEST(MakeSyntheticBatch, TakesTheVocabularyFromTheLogits) {
  SyntheticInputs settings = Settings();
  settings.clear_ids();
  SignatureDef signature = DecoderOfSix();
  (*signature.mutable_inputs())["position_ids"] =
      signature.inputs().at("input_ids");
  const auto made = MakeSyntheticBatch(signature, "model", settings, 8);
  ASSERT_OK(made);
  EXPECT_EQ(made->ids, 6);
  EXPECT_THAT(made->notes[1], EndsWith("from 0 to 5"));
  EXPECT_THAT(made->notes[2], EndsWith("from 0 to 31"));
  EXPECT_EQ(MakeSyntheticBatch(Decoder(), "model", settings, 8)->ids, 32);
}

TEST(MakeSyntheticBatch, FeedsTheFirstRowsOfATokenArray) {
  SyntheticInputs settings = Settings();
  const std::string file = WriteTokens("ids.npy", "<i8", {0, 5, 1, 2, 3, 4});
  settings.set_tokens(file);
  const auto made = MakeSyntheticBatch(DecoderOfSix(), "model", settings, 2);
  ASSERT_OK(made);
  EXPECT_EQ(made->batch.size, 2);
  EXPECT_EQ(made->batch.inputs[0].shape().DebugString(), "[2,2]");
  const auto ids = made->batch.inputs[1].flat<int32_t>();
  EXPECT_THAT(std::vector<int>(ids.data(), ids.data() + ids.size()),
              ElementsAre(0, 5, 1, 2));
  EXPECT_EQ(made->token_note,
            "input_ids: int32 [2,2], the first of 3 rows of " + file);
  EXPECT_THAT(made->notes, ElementsAre("attention_mask: int64 [2,2], all 1"));
  // Fewer rows than a batch holds make a smaller batch.
  EXPECT_EQ(MakeSyntheticBatch(Decoder(), "model", settings, 8)->batch.size, 3);
}

TEST(MakeSyntheticBatch, RefusesTokensBeyondTheVocabulary) {
  SyntheticInputs settings = Settings();
  const std::string file = WriteTokens("big.npy", "<i8", {0, 5, 1, 6});
  settings.set_tokens(file);
  EXPECT_THAT(
      MakeSyntheticBatch(DecoderOfSix(), "model", settings, 8),
      FailsWith(file +
                " has 6 in row 1, and the model takes whole numbers from 0 to "
                "5; name another file by --tokens, or take this one away"));
  settings.set_tokens(WriteTokens("float.npy", "<f8", {0, 0}));
  EXPECT_THAT(MakeSyntheticBatch(Decoder(), "model", settings, 8),
              FailsWith(HasSubstr("is not a token array")));
}

TEST(FindTokenArray, PrefersTheNameOfTheInputAndSkipsOtherArrays) {
  const std::string here = testing::TempDir() + "/here";
  std::filesystem::create_directory(here);
  WriteTokens("here/a_float.npy", "<f8", {0, 0});
  EXPECT_EQ(FindTokenArray(here).value(), "");
  const std::string other = WriteTokens("here/b_ids.npy", "<i8", {1, 1});
  EXPECT_EQ(FindTokenArray(here).value(), other);
  const std::string named = WriteTokens("here/input_ids.npy", "<i8", {1, 1});
  EXPECT_EQ(FindTokenArray(here).value(), named);
  EXPECT_EQ(FindTokenArray(other).value(), other);
  EXPECT_FALSE(FindTokenArray(here + "/none.npy").ok());
}

TEST(MakeSyntheticBatch, RefusesWhatItCannotMakeUp) {
  const std::string text = "nothing can be made up for the input \"x\": ";
  const std::string hint = "; give records by --dataset";
  const std::tuple<std::string, std::string, std::string> refused[] = {
      {"DT_STRING", "dim { size: -1 }", text + "it is of type string" + hint},
      {"DT_FLOAT", "unknown_rank: true",
       text + "the signature gives it no shape" + hint},
      {"DT_FLOAT", "",
       text + "it is a scalar, without a dimension for records" + hint},
      {"DT_FLOAT",
       "dim { size: -1 } dim { size: 4000000000 } dim { size: 4000000000 }",
       text + "it would be too big" + hint},
      {"DT_FLOAT", "dim { size: 4 } dim { size: 3 }",
       "the input \"x\" takes batches of 4 (its shape is [4,3]), not of 8: set "
       "--batch_size=4"}};
  for (const auto& [type, shape, message] : refused) {
    const SignatureDef signature = Signature(
        absl::StrCat("inputs { key: 'x' value { dtype: ", type,
                     " tensor_shape { ", shape, " } } } outputs { key: 'y' }"));
    EXPECT_THAT(MakeSyntheticBatch(signature, "model", Settings(), 8),
                FailsWith("model: " + message));
  }
}

TEST(MakeSyntheticBatch, AsksForTheOutput) {
  SignatureDef signature = Decoder();
  signature.mutable_outputs()->erase("logits");
  (*signature.mutable_outputs())["hidden"].set_name("h:0");
  EXPECT_THAT(
      MakeSyntheticBatch(signature, "model", Settings(), 8),
      FailsWith("model: its signature has the outputs hidden, past: name the "
                "one to compute by --output"));
}

constexpr int64_t kMuch = 1 << 30;

// Returns the sizes of a file's batches of up to two records.
absl::StatusOr<std::vector<int64_t>> Sizes(int records, int64_t max_batches,
                                           int64_t max_bytes) {
  std::string file;
  for (int i = 0; i < records; ++i) file += RecordBytes(SmallExample(i, 0));
  const DatasetSpec spec = SpecFromText(absl::StrCat(
      "tfrecord { files: \"", WriteTestFile("small.tfrecords", file), "\" }",
      "input { feature: \"x\" placeholder: \"x\" dtype: \"float\" }"));
  BatchOptions options;
  options.batch_size = 2;
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<Batch> batches,
      PreloadBatches(spec, "data.textproto", options, max_batches, max_bytes));
  std::vector<int64_t> sizes;
  for (const Batch& batch : batches) sizes.push_back(batch.size);
  return sizes;
}

TEST(PreloadBatches, LeavesOutAPartialLastBatchUnlessItIsAllThereIs) {
  EXPECT_THAT(Sizes(5, kMuch, kMuch).value(), ElementsAre(2, 2));
  EXPECT_THAT(Sizes(1, kMuch, kMuch).value(), ElementsAre(1));
}

TEST(PreloadBatches, StopsAtTheNumberOfBatchesOrBytes) {
  EXPECT_THAT(Sizes(20, 3, kMuch).value(), ElementsAre(2, 2, 2));
  // At least one batch is read; each has two floats.
  EXPECT_THAT(Sizes(20, kMuch, 0).value(), ElementsAre(2));
  EXPECT_THAT(Sizes(20, kMuch, 9).value(), ElementsAre(2, 2));
}

TEST(PreloadBatches, RefusesADatasetWithoutRecords) {
  EXPECT_THAT(Sizes(0, kMuch, kMuch), FailsWith(HasSubstr("no records")));
}

TEST(PreloadBatches, RefusesRecordsThatTheGraphReadsItself) {
  const DatasetSpec spec =
      SpecFromText("in_graph { files: \"a\" initializer: \"init\" }");
  EXPECT_THAT(PreloadBatches(spec, "bert.textproto", {}, 1, kMuch),
              FailsWith(HasSubstr(
                  "bert.textproto: its records are read by the graph")));
}

}  // namespace
}  // namespace requant::benchmark_inputs_test
