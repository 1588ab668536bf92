#include "runtime/session/model.h"

#include <filesystem>
#include <utility>

#include "base/files/file.h"
#include "graph/const_node.h"
#include "graph/constant_store.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::model_test {
namespace {

constexpr char kDouble[] = R"(
  import/x = Placeholder dtype=float
  twice = AddV2(import/x, import/x) T=float
)";

std::string GraphFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  EXPECT_OK(WriteGraph(GraphFromText(text), path, GraphFormat::kBinary));
  return path;
}

absl::StatusOr<std::unique_ptr<Model>> Load(const std::string& path) {
  ModelSpec spec;
  spec.set_path(path);
  return Model::Load(spec, {});
}

std::unique_ptr<Model> LoadDouble() {
  auto model = Load(GraphFile("double.pb", kDouble));
  EXPECT_OK(model);
  return *std::move(model);
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
  ASSERT_OK(WriteFileAtomically(folder + "/saved_model.pb",
                                saved.SerializeAsString()));
  ModelSpec spec;
  spec.set_path(folder);
  spec.set_signature("scores");
  EXPECT_THAT(std::string(Model::Load(spec, {}).status().message()),
              EndsWith("signatures has no signature \"scores\" (did you mean "
                       "\"score\"?); it has embed, score"));
}

TEST(Model, RunsAGraphFromAFile) {
  const auto model = LoadDouble();
  const auto function =
      ModelFunction::Make(model.get(), {"import/x:0"}, {"twice:0"});
  ASSERT_OK(function);
  Tensor x(21.f);
  std::vector<Tensor> outputs;
  ASSERT_OK((*function)->Run({x}, &outputs));
  EXPECT_EQ(outputs[0].scalar<float>()(), 42.f);
}

TEST(Model, FindsNamesWithAndWithoutTheImportPrefix) {
  const auto model = LoadDouble();
  EXPECT_EQ(*model->InputTensor("x"), "import/x:0");
  EXPECT_EQ(*model->InputTensor("import/x:0"), "import/x:0");
  EXPECT_EQ(*model->OutputTensor("import/twice"), "twice:0");
}

TEST(Model, FindsTheNamesThatAGraphKeptOfASignature) {
  const auto model = Load(GraphFile("kept.pb", R"(
    serving_default_x = Placeholder dtype=float _requant_inputs=['0:x']
    call = IdentityN(serving_default_x, serving_default_x) T=[float,float]
        _requant_outputs=['0:first','1:second']
  )"));
  ASSERT_OK(model);
  EXPECT_EQ(*(*model)->InputTensor("x"), "serving_default_x:0");
  EXPECT_EQ(*(*model)->InputTensor("serving_default_x"), "serving_default_x:0");
  EXPECT_EQ(*(*model)->OutputTensor("second"), "call:1");
  EXPECT_THAT((*model)->OutputTensor("secend").status().message(),
              HasSubstr("did you mean \"second\""));
}

TEST(Model, SuggestsANameForOneThatIsMissing) {
  const auto model = LoadDouble();
  EXPECT_THAT(model->OutputTensor("twise").status().message(),
              AllOf(HasSubstr("has no node \"twise\""),
                    HasSubstr("did you mean \"twice\"")));
  // Only placeholders are suggested as inputs.
  EXPECT_THAT(model->InputTensor("twise").status().message(),
              Not(HasSubstr("did you mean \"twice\"")));
}

TEST(Model, SuggestsTheFirstOfNamesThatAreAsNear) {
  std::string text;
  for (char last = 'z'; last >= 'a'; --last) {
    text += absl::StrCat("node_", std::string(1, last), " = NoOp\n");
  }
  const auto model = Load(GraphFile("alike.pb", text));
  ASSERT_OK(model);
  EXPECT_THAT((*model)->OutputTensor("node_0").status().message(),
              HasSubstr("did you mean \"node_a\""));
}

DatasetSpec FeedX(const std::string& dtype) {
  DatasetSpec dataset;
  dataset.add_input()->set_placeholder("x");
  dataset.mutable_input(0)->set_dtype(dtype);
  return dataset;
}

TEST(ConnectInputs, GivesThoseThatTheDatasetFeeds) {
  const auto model = LoadDouble();
  EXPECT_THAT(model->ConnectInputs(FeedX("float")).value(),
              ElementsAre("import/x:0"));
  EXPECT_THAT(model->ConnectInputs(FeedX("int64")).status().message(),
              HasSubstr("takes float, but the dataset feeds int64"));
}

TEST(ConnectInputs, FeedsConstantsInEveryRun) {
  const auto model = Load(GraphFile("constants.pb", R"(
    x = Placeholder dtype=float shape=<?>
    keep_prob = Placeholder dtype=float shape=<>
    weights = PlaceholderWithDefault(zeros) dtype=float shape=<2>
    zeros = float<2>{0,0}
    scaled = Mul(x, keep_prob) T=float
    y = Mul(scaled, weights) T=float
  )"));
  ASSERT_OK(model);
  DatasetSpec dataset = FeedX("float");
  ConstantSpec& constant = *dataset.add_constant();
  constant.set_placeholder("keep_prob");
  constant.set_dtype("float");
  constant.add_value("0.5");
  const auto y = [&] {
    const auto inputs = (*model)->ConnectInputs(dataset);
    EXPECT_OK(inputs);
    const auto function = ModelFunction::Make(model->get(), *inputs, {"y:0"});
    EXPECT_OK(function);
    std::vector<Tensor> outputs;
    for (int run = 0; run < 2; ++run) {
      EXPECT_OK((*function)->Run({TensorOf<float>({2}, {2, 4})}, &outputs));
    }
    return ValuesOf(outputs[0]);
  };
  EXPECT_THAT(y(), ElementsAre(0, 0));
  ConstantSpec& weights = *dataset.add_constant();
  weights.set_placeholder("weights");
  weights.set_dtype("float");
  weights.add_shape(2);
  weights.add_value("10");
  weights.add_value("100");
  EXPECT_THAT(y(), ElementsAre(10, 200));
  weights.set_dtype("int32");
  EXPECT_THAT((*model)->ConnectInputs(dataset).status().message(),
              HasSubstr("takes float, but the dataset feeds int32"));
}

TEST(Model, FeedsLargeConstantsThatAreOutsideOfTheGraph) {
  Tensor weights(tensorflow::DT_FLOAT, {64});
  weights.flat<float>().setConstant(3);
  for (const int64_t most : {int64_t{1000}, int64_t{100}}) {
    std::unique_ptr<Model> model;
    {
      const ConstantStore store(100);
      GraphDef graph = GraphFromText(R"(
        x = Placeholder dtype=float
        y = Mul(x, weights) T=float
      )");
      *graph.add_node() = MakeConst("weights", weights);
      const auto inspect = [](const Model&, GraphDef* inspected) {
        return ConstValue(inspected->node(2)).status();
      };
      ASSERT_OK_AND_ASSIGN(model,
                           Model::Make("graph", graph, {}, {}, inspect, most));
    }
    ASSERT_OK(model->ConnectInputs(FeedX("float")).status());
    ASSERT_OK_AND_ASSIGN(
        const auto function,
        ModelFunction::Make(model.get(), {"x:0"}, {"y:0", "weights:0"}));
    std::vector<Tensor> outputs;
    for (int run = 0; run < 2; ++run) {
      ASSERT_OK(function->Run({TensorOf<float>({}, {2})}, &outputs));
      EXPECT_EQ(ValuesOf(outputs[0]), std::vector<float>(64, 6));
      EXPECT_EQ(ValuesOf(outputs[1]), std::vector<float>(64, 3));
    }
    // Only a constant has a value by itself.
    EXPECT_EQ(model->session().Run({}, {"weights:0"}, {}, &outputs).ok(),
              most == 1000);
  }
}

TEST(PredictionTensor, IsNoneOfTheInputs) {
  const auto model = LoadDouble();
  DatasetSpec dataset = FeedX("float");
  dataset.mutable_prediction()->set_tensor("twice");
  EXPECT_EQ(PredictionTensor(*model, dataset, {"import/x:0"}).value(),
            "twice:0");
  dataset.mutable_prediction()->set_tensor("x");
  EXPECT_THAT(
      PredictionTensor(*model, dataset, {"import/x:0"}).status().message(),
      HasSubstr("is one of the inputs"));
}

TEST(ModelFunction, GivesBackOutputsThatAreFed) {
  const auto model = LoadDouble();
  for (const auto& [names, values] :
       {std::make_pair(std::vector<std::string>{"import/x:0"},
                       std::vector<float>{3}),
        std::make_pair(std::vector<std::string>{"twice:0", "import/x:0"},
                       std::vector<float>{6, 3})}) {
    const auto function =
        ModelFunction::Make(model.get(), {"import/x:0"}, names);
    ASSERT_OK(function);
    std::vector<Tensor> outputs;
    ASSERT_OK((*function)->Run({Tensor(3.f)}, &outputs));
    std::vector<float> scalars;
    for (const Tensor& output : outputs) {
      scalars.push_back(output.scalar<float>()());
    }
    EXPECT_EQ(scalars, values);
  }
}

TEST(ModelFunction, RecordsWhatRanWhenItTraces) {
  const auto model = LoadDouble();
  const auto function =
      ModelFunction::Make(model.get(), {"import/x:0"}, {"twice:0"},
                          /*in_caller_thread=*/true, /*trace=*/true);
  ASSERT_OK(function);
  std::vector<Tensor> outputs;
  tensorflow::RunMetadata metadata;
  ASSERT_OK((*function)->Run({Tensor(1.f)}, &outputs, &metadata));
  std::vector<std::string> nodes;
  for (const auto& device : metadata.step_stats().dev_stats()) {
    for (const auto& node : device.node_stats()) {
      nodes.push_back(node.node_name());
    }
  }
  EXPECT_THAT(nodes, Contains("twice"));
}

TEST(Model, SaysWhyAGraphIsRefused) {
  const auto model = Load(GraphFile("broken.pb", "a = NoSuchOp"));
  EXPECT_THAT(model.status().message(),
              AllOf(HasSubstr("broken.pb"), HasSubstr("NoSuchOp")));
}

TEST(Model, SaysThatVariablesHaveNoValues) {
  const auto model = Load(GraphFile("variables.pb", R"(
    w = VarHandleOp dtype=float shape=<>
    value = ReadVariableOp(w) dtype=float
  )"));
  ASSERT_OK(model);
  const auto function = ModelFunction::Make(model->get(), {}, {"value:0"});
  ASSERT_OK(function);
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
