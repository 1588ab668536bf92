#include "runtime/session/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::model_test {
namespace {

using tensorflow::Tensor;
using testing::EndsWith;
using testing::HasSubstr;

constexpr char kDouble[] = R"pb(
  node {
    name: "import/x"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
  }
  node {
    name: "twice"
    op: "AddV2"
    input: "import/x"
    input: "import/x"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
  }
)pb";

std::string GraphFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteGraph(GraphFromText(text), path, GraphFormat::kBinary).ok());
  return path;
}

absl::StatusOr<std::unique_ptr<Model>> Load(const std::string& path) {
  ModelSpec spec;
  spec.set_path(path);
  return Model::Load(spec, {});
}

TEST(Model, SaysWhichSignaturesASavedModelHas) {
  tensorflow::SavedModel saved;
  tensorflow::MetaGraphDef& meta = *saved.add_meta_graphs();
  meta.mutable_meta_info_def()->add_tags("serve");
  *meta.mutable_graph_def() = GraphFromText(kDouble);
  (*meta.mutable_signature_def())["score"];
  (*meta.mutable_signature_def())["embed"];
  const std::string folder = testing::TempDir() + "/signatures";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/saved_model.pb", saved.SerializeAsString())
          .ok());
  ModelSpec spec;
  spec.set_path(folder);
  spec.set_signature("scores");
  EXPECT_THAT(std::string(Model::Load(spec, {}).status().message()),
              EndsWith("signatures has no signature \"scores\" (did you mean "
                       "\"score\"?); it has embed, score"));
}

TEST(Model, RunsAGraphFromAFile) {
  const auto model = Load(GraphFile("double.pb", kDouble));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto function =
      ModelFunction::Make(model->get(), {"import/x:0"}, {"twice:0"});
  ASSERT_TRUE(function.ok()) << function.status();
  Tensor x(21.f);
  std::vector<Tensor> outputs;
  ASSERT_TRUE((*function)->Run({x}, &outputs).ok());
  EXPECT_EQ(outputs[0].scalar<float>()(), 42.f);
}

TEST(Model, FindsNamesWithAndWithoutTheImportPrefix) {
  const auto model = Load(GraphFile("double.pb", kDouble));
  EXPECT_EQ(*(*model)->InputTensor("x"), "import/x:0");
  EXPECT_EQ(*(*model)->InputTensor("import/x:0"), "import/x:0");
  EXPECT_EQ(*(*model)->OutputTensor("import/twice"), "twice:0");
}

TEST(Model, SuggestsANameForOneThatIsMissing) {
  const auto model = Load(GraphFile("double.pb", kDouble));
  EXPECT_THAT((*model)->OutputTensor("twise").status().message(),
              testing::AllOf(HasSubstr("has no node \"twise\""),
                             HasSubstr("did you mean \"twice\"")));
  // Only placeholders are suggested as inputs.
  EXPECT_THAT((*model)->InputTensor("twise").status().message(),
              testing::Not(HasSubstr("did you mean \"twice\"")));
}

TEST(Model, SuggestsTheFirstOfNamesThatAreAsNear) {
  std::string text;
  for (char last = 'z'; last >= 'a'; --last) {
    text += absl::StrCat("node { name: 'node_", std::string(1, last),
                         "' op: 'NoOp' }");
  }
  const auto model = Load(GraphFile("alike.pb", text));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT((*model)->OutputTensor("node_0").status().message(),
              HasSubstr("did you mean \"node_a\""));
}

TEST(Model, RefusesAFeedOfAnotherType) {
  const auto model = Load(GraphFile("double.pb", kDouble));
  EXPECT_TRUE(
      (*model)->CheckInputType("import/x:0", tensorflow::DT_FLOAT).ok());
  EXPECT_THAT(
      (*model)->CheckInputType("import/x:0", tensorflow::DT_INT64).message(),
      HasSubstr("takes float, but the dataset feeds int64"));
}

DatasetSpec FeedX(const std::string& dtype) {
  DatasetSpec dataset;
  dataset.add_input()->set_placeholder("x");
  dataset.mutable_input(0)->set_dtype(dtype);
  return dataset;
}

TEST(InputTensors, AreThoseThatTheDatasetFeeds) {
  const auto model = Load(GraphFile("double.pb", kDouble));
  EXPECT_THAT(InputTensors(**model, FeedX("float")).value(),
              testing::ElementsAre("import/x:0"));
  EXPECT_THAT(InputTensors(**model, FeedX("int64")).status().message(),
              HasSubstr("takes float, but the dataset feeds int64"));
}

TEST(ModelFunction, RecordsWhatRanWhenItTraces) {
  const auto model = Load(GraphFile("double.pb", kDouble));
  const auto function =
      ModelFunction::Make(model->get(), {"import/x:0"}, {"twice:0"},
                          {.in_caller_thread = true, .trace = true});
  ASSERT_TRUE(function.ok()) << function.status();
  std::vector<Tensor> outputs;
  tensorflow::RunMetadata metadata;
  ASSERT_TRUE((*function)->Run({Tensor(1.f)}, &outputs, &metadata).ok());
  std::vector<std::string> nodes;
  for (const auto& device : metadata.step_stats().dev_stats()) {
    for (const auto& node : device.node_stats()) {
      nodes.push_back(node.node_name());
    }
  }
  EXPECT_THAT(nodes, testing::Contains("twice"));
}

TEST(Model, SaysWhyAGraphIsRefused) {
  const auto model = Load(GraphFile("broken.pb", R"pb(
    node { name: "a" op: "NoSuchOp" }
  )pb"));
  EXPECT_THAT(model.status().message(),
              testing::AllOf(HasSubstr("broken.pb"), HasSubstr("NoSuchOp")));
}

TEST(Model, SaysThatVariablesHaveNoValues) {
  const auto model = Load(GraphFile("variables.pb", R"pb(
    node {
      name: "w"
      op: "VarHandleOp"
      attr {
        key: "dtype"
        value { type: DT_FLOAT }
      }
      attr {
        key: "shape"
        value { shape {} }
      }
    }
    node {
      name: "value"
      op: "ReadVariableOp"
      input: "w"
      attr {
        key: "dtype"
        value { type: DT_FLOAT }
      }
    }
  )pb"));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto function = ModelFunction::Make(model->get(), {}, {"value:0"});
  ASSERT_TRUE(function.ok()) << function.status();
  std::vector<Tensor> outputs;
  EXPECT_THAT((*function)->Run({}, &outputs).message(),
              HasSubstr("has 1 variable, the first is \"w\", and a graph file "
                        "holds no values for them: freeze it first"));
}

TEST(Model, SaysWhenThereIsNoFile) {
  EXPECT_THAT(Load("no/such/graph.pb").status().message(),
              HasSubstr("no/such/graph.pb"));
}

}  // namespace
}  // namespace requant::model_test
