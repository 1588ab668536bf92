#include "graph/freeze/freeze.h"

#include <memory>
#include <random>

#include "graph/graph_io.h"
#include "graph/signature_names.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/saved_models.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/public/session.h"

namespace requant::freeze_test {
namespace {

using Feeds = std::vector<std::pair<std::string, Tensor>>;

std::string TestModel(const std::string& name) {
  return "graph/testdata/" + name;
}

// Runs the SavedModel's signature and the frozen graph on the same inputs,
// several times in the same sessions.
void ExpectSameAsSavedModel(const std::string& directory,
                            const GraphDef& frozen,
                            const std::string& tag = "serve") {
  ASSERT_OK(LoadTensorFlow());
  tensorflow::SavedModelBundle bundle;
  ASSERT_OK(tensorflow::LoadSavedModel({}, {}, directory, {tag}, &bundle));
  const auto& signature =
      bundle.meta_graph_def.signature_def().at("serving_default");
  std::vector<std::string> fetches;
  for (const auto& [key, info] : signature.outputs()) {
    fetches.push_back(info.name());
  }
  std::unique_ptr<tensorflow::Session> session(tensorflow::NewSession({}));
  ASSERT_OK(session->Create(frozen));
  std::mt19937 generator(1);
  for (int round = 0; round < 4; ++round) {
    Feeds feeds;
    for (const auto& [key, info] : signature.inputs()) {
      feeds.emplace_back(info.name(), RandomInput(info, &generator));
    }
    std::vector<Tensor> expected, actual;
    ASSERT_OK(bundle.session->Run(feeds, fetches, {}, &expected));
    ASSERT_OK(session->Run(feeds, fetches, {}, &actual));
    for (size_t i = 0; i < fetches.size(); ++i) {
      ExpectSameTensors(expected[i], actual[i]);
    }
  }
}

absl::StatusOr<FrozenGraph> FreezeSavedModel(const std::string& directory) {
  FreezeOptions options;
  options.files.saved_model = directory;
  return Freeze(options);
}

class FreezeRealModel : public testing::TestWithParam<std::string> {};

TEST_P(FreezeRealModel, ComputesWhatTheSavedModelDoes) {
  const std::string model = TestModel(GetParam());
  ASSERT_OK_AND_ASSIGN(const auto frozen, FreezeSavedModel(model));
  for (const auto& node : frozen.graph.node()) {
    EXPECT_THAT(node.op(), Not(HasSubstr("Variable"))) << node.name();
  }
  ExpectSameAsSavedModel(model, frozen.graph);
}

TEST_P(FreezeRealModel, GivesTheSameBytesEachTime) {
  const auto first = FreezeSavedModel(TestModel(GetParam()));
  const auto second = FreezeSavedModel(TestModel(GetParam()));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(*SerializeGraph(first->graph) == *SerializeGraph(second->graph));
}

TEST(Freeze, KeepsTheNamesOfTensorFlow2sSignatures) {
  ASSERT_OK_AND_ASSIGN(const auto frozen,
                       FreezeSavedModel(TestModel("functions")));
  const tensorflow::SignatureDef kept = KeptSignature(frozen.graph);
  EXPECT_EQ(kept.inputs().at("x").name(), "serving_default_x:0");
  EXPECT_EQ(kept.inputs().at("ids").dtype(), tensorflow::DT_INT32);
  EXPECT_THAT(kept.outputs().at("y").name(),
              StartsWith("StatefulPartitionedCall:"));
  EXPECT_NE(kept.outputs().at("y").name(), kept.outputs().at("norm").name());
}

TEST(Freeze, KeepsTheNamesOfTheSignatureWithAllOutputs) {
  tensorflow::MetaGraphDef meta;
  *meta.mutable_graph_def() = GraphFromText(R"(
    serving_default_x = Placeholder dtype=float
    classify_x = Placeholder dtype=float
    inner = Neg(serving_default_x) T=float
    PartitionedCall = Identity(inner) T=float
    PartitionedCall_1 = Identity(classify_x) T=float
    PartitionedCall_2 = Identity(classify_x) T=float
  )");
  const auto add = [&](const std::string& key, const std::string& input,
                       const std::string& output, const std::string& node) {
    auto& signature = (*meta.mutable_signature_def())[key];
    (*signature.mutable_inputs())["x"].set_name(input);
    (*signature.mutable_outputs())[output].set_name(node);
  };
  add("serving_default", "serving_default_x:0", "y", "PartitionedCall:0");
  add("classify", "classify_x:0", "score", "PartitionedCall_1:0");
  add("encode", "classify_x:0", "code", "PartitionedCall_2:0");
  TestFolder folder;
  FreezeOptions options;
  options.files.meta_graph = folder.Write("m.meta", meta.SerializeAsString());
  const auto kept = [&](const std::vector<std::string>& outputs) {
    options.outputs = outputs;
    const auto frozen = Freeze(options);
    EXPECT_OK(frozen);
    return KeptSignature(frozen->graph);
  };
  EXPECT_EQ(kept({}).outputs().at("y").name(), "PartitionedCall:0");
  const tensorflow::SignatureDef classify = kept({"PartitionedCall_1"});
  EXPECT_EQ(classify.outputs().at("score").name(), "PartitionedCall_1:0");
  EXPECT_EQ(classify.inputs().at("x").name(), "classify_x:0");
  EXPECT_EQ(kept({"PartitionedCall_1", "PartitionedCall_2"}).outputs_size(), 0);
  EXPECT_EQ(kept({"inner"}).inputs().at("x").name(), "serving_default_x:0");
}

// Published graphs are compared to the byte.
TEST(Freeze, WritesNoNamesOfTensorFlow1sSignatures) {
  ASSERT_OK_AND_ASSIGN(const auto frozen,
                       FreezeSavedModel(TestModel("ref_variables")));
  for (const NodeDef& node : frozen.graph.node()) {
    for (const auto& [name, value] : node.attr()) {
      EXPECT_THAT(name, Not(StartsWith("_requant")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FreezeRealModel,
                         testing::Values("ref_variables", "resource_variables",
                                         "partitioned_variables", "functions",
                                         "vocabulary_v1", "vocabulary_v2"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace requant::freeze_test
