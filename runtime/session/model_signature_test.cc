#include "runtime/session/model_signature.h"

#include "graph/graph_io.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace requant::model_signature_test {
namespace {

ModelSpec ModelAt(const std::string& path) {
  ModelSpec spec;
  spec.set_path(path);
  return spec;
}

ModelSpec GraphModel(const ScratchFolder& folder, const std::string& name,
                     const std::string& text) {
  EXPECT_OK(
      WriteGraph(GraphFromText(text), folder.Path(name), GraphFormat::kBinary));
  return ModelAt(folder.Path(name));
}

TEST(ReadSignature, SaysThatAGraphFileHasNone) {
  EXPECT_THAT(ReadSignature(ModelAt("graph.pb")),
              FailsWith(HasSubstr("graph.pb is no SavedModel")));
}

TEST(ReadSignature, TakesTheOnlyOne) {
  const ScratchFolder folder;
  tensorflow::SavedModel saved;
  tensorflow::MetaGraphDef& meta = *saved.add_meta_graphs();
  (*meta.mutable_signature_def())["__saved_model_init_op"];
  (*meta.mutable_signature_def())["predict"].set_method_name("m");
  folder.Write("saved_model.pb", saved.SerializeAsString());
  ASSERT_OK_AND_ASSIGN(const tensorflow::SignatureDef signature,
                       ReadSignature(ModelAt(folder.path())));
  EXPECT_EQ(signature.method_name(), "m");
  (*meta.mutable_signature_def())["other"];
  folder.Write("saved_model.pb", saved.SerializeAsString());
  EXPECT_THAT(ReadSignature(ModelAt(folder.path())),
              FailsWith(EndsWith("has no signature \"serving_default\"; it has "
                                 "other, predict")));
}

TEST(GuessJobDataset, TakesTheFirstModelThatTellsItsInputs) {
  const ScratchFolder folder;
  const ModelSpec silent = GraphModel(folder, "silent.pb", R"(
    x = Placeholder dtype=float shape=<?,1>
  )");
  const ModelSpec telling = GraphModel(folder, "telling.pb", R"(
    serving_default_x = Placeholder dtype=float shape=<?,1>
        _requant_inputs=['0:x']
    StatefulPartitionedCall = Identity(serving_default_x) T=float
        _requant_outputs=['0:output_0']
  )");
  const std::string csv = folder.Write("a.csv", "x,label\n1,1\n0.5,0\n");
  ASSERT_OK_AND_ASSIGN(
      const DatasetSpec spec,
      GuessJobDataset({silent, telling}, {folder.Path("*.csv")}, {}));
  EXPECT_EQ(spec.csv().files(0), csv);
  EXPECT_EQ(spec.input(0).placeholder(), "x");
  EXPECT_EQ(spec.prediction().tensor(), "output_0");
  EXPECT_THAT(GuessJobDataset({silent}, {csv}, {}),
              FailsWith(AllOf(HasSubstr("silent.pb does not say what feeds it"),
                              HasSubstr("--dataset"))));
  EXPECT_THAT(GuessJobDataset({telling}, {folder.Path("no*.csv")}, {}),
              FailsWith(StartsWith("no file matches")));
}

}  // namespace
}  // namespace requant::model_signature_test
