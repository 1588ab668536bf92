#include "runtime/servable/servable.h"

#include <limits>

#include "absl/strings/str_join.h"
#include "base/testing/testing.h"
#include "graph/testing/testing.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/servable/check_graph.h"
#include "runtime/servable/signature_files.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::servable_test {
namespace {

using tensorflow::SignatureDef;

class ServableTest : public testing::Test {
 protected:
  // Returns a dataset of `count` records with two columns and a label.
  DatasetSpec Dataset(int count) {
    std::string csv = "x,color,label\n";
    for (int i = 0; i < count; ++i) absl::StrAppend(&csv, i, ",red,1\n");
    folder_.Write("data.csv", csv);
    return ReadDatasetSpec(folder_.Write("data.textproto", R"(
                   csv { files: "data.csv" }
                   input { feature: "x" placeholder: "x" dtype: "float" }
                   input { feature: "color" placeholder: "color"
                           dtype: "string" }
                   label { feature: "label" dtype: "int64" }
                   prediction { tensor: "scores" })"),
                           {})
        .value();
  }

  std::pair<int64_t, int64_t> Divided(int count, int64_t most) {
    const auto records = DivideRecords("s", Dataset(count), most, 0);
    EXPECT_OK(records);
    return {records->calibrated, records->held_back};
  }

  const ScratchFolder folder_;
};

TEST_F(ServableTest, HoldsRecordsBack) {
  EXPECT_EQ(Divided(100, 10), std::make_pair(int64_t{10}, int64_t{10}));
  EXPECT_EQ(Divided(100, 60), std::make_pair(int64_t{60}, int64_t{40}));
  EXPECT_EQ(Divided(100, 1000), std::make_pair(int64_t{80}, int64_t{20}));
  EXPECT_EQ(Divided(100, 0), std::make_pair(int64_t{80}, int64_t{20}));
  EXPECT_EQ(Divided(3, 1000), std::make_pair(int64_t{2}, int64_t{1}));
  EXPECT_EQ(Divided(1, 1000), std::make_pair(int64_t{1}, int64_t{0}));
  EXPECT_EQ(Divided(100, std::numeric_limits<int64_t>::max()),
            std::make_pair(int64_t{80}, int64_t{20}));
}

TEST_F(ServableTest, CalibratesOnExactlyAsManyRecordsAsAskedFor) {
  const auto divided = [&](int count, int64_t records) {
    CalibrateJob job;
    *job.mutable_dataset() = Dataset(count);
    job.set_max_records(records);
    const auto parts = HoldBack(/*exact=*/true, &job);
    EXPECT_OK(parts);
    EXPECT_EQ(job.max_records(), records);
    return parts->held_back;
  };
  EXPECT_EQ(divided(100, 90), 10);
  EXPECT_EQ(divided(100, 100), 0);
  EXPECT_EQ(divided(100, 200), 0);
  EXPECT_EQ(divided(100, 0), 0);
  EXPECT_EQ(divided(5000, 10), 4096);
}

Comparison Compared(double agreement, double points) {
  Comparison comparison;
  comparison.mutable_agreement()->set_share(agreement - 0.001);
  comparison.mutable_agreement()->mutable_interval()->set_high(agreement);
  comparison.mutable_accuracy()->set_points(points - 0.1);
  comparison.mutable_accuracy()->mutable_interval()->set_high(points);
  return comparison;
}

TEST(LossWarning, IsForWhatIsCertainAndUnusual) {
  EXPECT_EQ(LossWarning(Comparison()), "");
  EXPECT_EQ(LossWarning(Compared(0.991, -0.4)), "");
  EXPECT_THAT(LossWarning(Compared(0.989, 0.1)),
              testing::HasSubstr("agrees with the float one on 98.80 %"));
  EXPECT_THAT(LossWarning(Compared(0.999, -0.6)),
              testing::HasSubstr("loses 0.70 points"));
}

SignatureDef SignatureOf(const std::vector<std::string>& inputs,
                         const std::string& output,
                         tensorflow::DataType type = tensorflow::DT_FLOAT) {
  SignatureDef signature;
  for (const std::string& input : inputs) {
    (*signature.mutable_inputs())[input].set_name(input + ":0");
  }
  auto& info = (*signature.mutable_outputs())[output];
  info.set_name(output + ":0");
  info.set_dtype(type);
  return signature;
}

TEST_F(ServableTest, TakesOneFileForAllSignaturesWhoseInputsItHas) {
  FrozenModel model;
  model.signatures["classify"] = SignatureOf({"x", "color"}, "scores");
  model.signatures["encode"] = SignatureOf({"x"}, "code");
  model.signatures["constants"] = SignatureOf({}, "weights");
  model.signatures["draw"] = SignatureOf({"x", "size"}, "image");
  model.signatures["name"] = SignatureOf({"x"}, "word", tensorflow::DT_STRING);
  const DatasetSpec dataset = Dataset(1);
  const auto classify = DatasetForSignature(model, "classify", dataset);
  ASSERT_TRUE(classify.has_value());
  EXPECT_EQ(classify->input_size(), 2);
  EXPECT_TRUE(classify->has_label());
  const auto encode = DatasetForSignature(model, "encode", dataset);
  ASSERT_TRUE(encode.has_value());
  ASSERT_EQ(encode->input_size(), 1);
  EXPECT_EQ(encode->input(0).feature(0), "x");
  // The label is that of the other prediction.
  EXPECT_FALSE(encode->has_label());
  EXPECT_EQ(encode->prediction().tensor(), "code");
  EXPECT_FALSE(DatasetForSignature(model, "constants", dataset).has_value());
  EXPECT_FALSE(DatasetForSignature(model, "draw", dataset).has_value());
  EXPECT_FALSE(DatasetForSignature(model, "name", dataset).has_value());
}

TEST_F(ServableTest, FindsNoRangesForASignatureWithoutLayers) {
  FrozenModel model;
  model.frozen.graph = GraphFromText(R"(
    x = Placeholder dtype=float
    code = Neg(x) T=float
  )");
  model.signatures["encode"] = SignatureOf({"x"}, "code");
  FirstBatchShapes shapes;
  ASSERT_OK_AND_ASSIGN(const RangeTable table,
                       CalibrateSignature(model, {"encode", Dataset(1), 1, 0},
                                          CalibrateJob(), &shapes));
  EXPECT_TRUE(table.entries().empty());
}

TEST_F(ServableTest, GroupsFilesBySignature) {
  tensorflow::SavedModel saved_model;
  auto* meta = saved_model.add_meta_graphs();
  meta->mutable_meta_info_def()->add_tags("serve");
  for (const char* key : {"classify", "encode"}) {
    (*meta->mutable_signature_def())[key] = SignatureOf({"x"}, "scores");
  }
  folder_.Write("model/saved_model.pb", saved_model.SerializeAsString());
  const std::string odd = folder_.Write("day=1.csv", "x\n");
  ModelSpec model;
  model.set_path(folder_.Path("model"));
  const auto grouped = [&](const std::vector<std::string>& declarations,
                           const std::vector<std::string>& data) {
    std::string text;
    const auto files = FilesBySignature(model, declarations, data);
    if (!files.ok()) return std::string(files.status().message());
    for (const SignatureFiles& part : *files) {
      absl::StrAppend(&text, part.signature, "(", part.declaration, " ",
                      absl::StrJoin(part.data, " "), ")");
    }
    return text;
  };
  EXPECT_EQ(grouped({"d"}, {"a", odd}), absl::StrCat("(d a ", odd, ")"));
  EXPECT_EQ(grouped({}, {"a/b=1", "encode=b", "c"}), "( a/b=1)encode( b c)");
  EXPECT_EQ(grouped({"encode=d"}, {"classify=a", "encode=b=1"}),
            "encode(d b=1)classify( a)");
  model.set_signature("classify");
  EXPECT_EQ(grouped({}, {"encode=a", "classify=b"}), "classify( b)encode( a)");
  EXPECT_THAT(
      grouped({}, {"encod=a"}),
      testing::HasSubstr("no signature \"encod\" (did you mean "
                         "\"encode\"?); it has classify, encode, and there "
                         "is no file \"encod=a\""));
  EXPECT_THAT(grouped({"d", "e"}, {}), testing::HasSubstr("same signature"));
}

TEST_F(ServableTest, ChoosesASignature) {
  FrozenModel model;
  model.directory = "m";
  model.signatures["encode"] = SignatureOf({"x"}, "code");
  EXPECT_EQ(*ChooseSignature(model, ""), "encode");
  model.signatures["classify"] = SignatureOf({"x"}, "scores");
  EXPECT_EQ(*ChooseSignature(model, "classify"), "classify");
  EXPECT_THAT(ChooseSignature(model, "").status().message(),
              testing::HasSubstr("no signature \"serving_default\"; it has "
                                 "classify, encode"));
  EXPECT_THAT(ChooseSignature(model, "encod").status().message(),
              testing::HasSubstr("did you mean \"encode\"?"));
  model.signatures["serving_default"] = SignatureOf({"x"}, "scores");
  EXPECT_EQ(*ChooseSignature(model, ""), "serving_default");
}

}  // namespace
}  // namespace requant::servable_test
