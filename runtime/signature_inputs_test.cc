#include "runtime/signature_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "google/protobuf/text_format.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/worker.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {
namespace {

using tensorflow::SignatureDef;
using testing::ElementsAre;
using testing::HasSubstr;

SignatureDef Signature(const std::string& text) {
  SignatureDef signature;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &signature));
  return signature;
}

// A decoder's: ids and a mask of any number of texts, of any length.
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

std::string ErrorOf(const SignatureDef& signature, int64_t batch_size = 8) {
  const auto made =
      MakeSyntheticBatch(signature, "model", Settings(), batch_size);
  EXPECT_FALSE(made.ok());
  return made.ok() ? "" : std::string(made.status().message());
}

TEST(MakeSyntheticBatch, FillsShapesThatAreLeftOpen) {
  const auto made = MakeSyntheticBatch(Decoder(), "model", Settings(), 8);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->batch.size, 8);
  ASSERT_EQ(made->batch.inputs.size(), 2);
  // By name.
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
}

TEST(MakeSyntheticBatch, IsTheSameEveryTime) {
  const auto first = MakeSyntheticBatch(Decoder(), "model", Settings(), 8);
  const auto second = MakeSyntheticBatch(Decoder(), "model", Settings(), 8);
  EXPECT_EQ(first->batch.inputs[1].tensor_data(),
            second->batch.inputs[1].tensor_data());
}

TEST(MakeSyntheticBatch, RefusesTypesThatItCannotMakeUp) {
  EXPECT_EQ(ErrorOf(Signature(R"(
              inputs { key: "text" value { dtype: DT_STRING
                tensor_shape { dim { size: -1 } } } }
              outputs { key: "y" })")),
            "model: nothing can be made up for the input \"text\": it is of "
            "type string; give records by --dataset");
}

TEST(MakeSyntheticBatch, RefusesShapesThatItDoesNotKnow) {
  EXPECT_THAT(ErrorOf(Signature(R"(
                inputs { key: "x" value { dtype: DT_FLOAT
                  tensor_shape { unknown_rank: true } } }
                outputs { key: "y" })")),
              HasSubstr("the signature gives it no shape"));
  EXPECT_THAT(ErrorOf(Signature(R"(
                inputs { key: "x" value { dtype: DT_FLOAT tensor_shape {} } }
                outputs { key: "y" })")),
              HasSubstr("it is a scalar"));
}

TEST(MakeSyntheticBatch, SaysWhichBatchSizeFits) {
  EXPECT_EQ(ErrorOf(Signature(R"(
              inputs { key: "x" value { dtype: DT_FLOAT
                tensor_shape { dim { size: 4 } dim { size: 3 } } } }
              outputs { key: "y" })")),
            "model: the input \"x\" takes batches of 4 (its shape is [4,3]), "
            "not of 8: set --batch_size=4");
}

TEST(MakeSyntheticBatch, RefusesSizesBeyondReason) {
  EXPECT_THAT(ErrorOf(Signature(R"(
                inputs { key: "x" value { dtype: DT_FLOAT tensor_shape {
                  dim { size: -1 } dim { size: 4000000000 }
                  dim { size: 4000000000 } } } }
                outputs { key: "y" })")),
              HasSubstr("it would be too big"));
}

TEST(MakeSyntheticBatch, AsksForTheOutput) {
  SignatureDef signature = Decoder();
  signature.mutable_outputs()->erase("logits");
  (*signature.mutable_outputs())["hidden"].set_name("h:0");
  EXPECT_EQ(ErrorOf(signature),
            "model: its signature has the outputs hidden, past: name the one "
            "to compute by --output");
}

TEST(CheckFedShapes, NamesTheInputThatDoesNotFit) {
  const SignatureDef signature = Signature(R"(
    inputs { key: "x" value { dtype: DT_FLOAT
      tensor_shape { dim { size: -1 } dim { size: 3 } } } })");
  DatasetSpec dataset;
  dataset.add_input()->set_placeholder("x");
  Batch batch;
  batch.inputs.emplace_back(tensorflow::DT_FLOAT,
                            tensorflow::TensorShape({8, 3}));
  EXPECT_TRUE(CheckFedShapes(signature, "model", dataset, batch).ok());
  batch.inputs[0] =
      tensorflow::Tensor(tensorflow::DT_FLOAT, tensorflow::TensorShape({8, 4}));
  EXPECT_EQ(CheckFedShapes(signature, "model", dataset, batch).message(),
            "model: its input \"x\" has the shape [?,3], and is fed [8,4]: the "
            "batch size or the dataset's shape does not fit");
}

TEST(ReadSignature, SaysThatAGraphFileHasNone) {
  ModelSpec spec;
  spec.set_path("graph.pb");
  EXPECT_THAT(ReadSignature(spec).status().message(),
              HasSubstr("graph.pb is no SavedModel"));
}

}  // namespace
}  // namespace requant
