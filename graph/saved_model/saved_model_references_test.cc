#include "graph/saved_model/saved_model_references.h"

#include "graph/graph_io.h"
#include "graph/testing/testing.h"

namespace requant::saved_model_references_test {
namespace {

using tensorflow::MetaGraphDef;

MetaGraphDef Functions() {
  auto meta = ReadSavedModel("graph/testdata/functions");
  EXPECT_OK(meta);
  return *std::move(meta);
}

void RemoveNode(const std::string& name, GraphDef* graph) {
  auto* nodes = graph->mutable_node();
  nodes->erase(
      std::remove_if(nodes->begin(), nodes->end(),
                     [&](const auto& node) { return node.name() == name; }),
      nodes->end());
}

std::string Problem(const MetaGraphDef& meta, const GraphDef& changed) {
  return std::string(
      SavedModelReferences(meta, meta.graph_def()).Check(changed).message());
}

TEST(References, OfAModelAreInItsGraph) {
  const MetaGraphDef meta = Functions();
  EXPECT_EQ(Problem(meta, meta.graph_def()), "");
}

TEST(References, ComeFromSignaturesAndTheSaver) {
  const MetaGraphDef meta = Functions();
  const SavedModelReferences references(meta, meta.graph_def());
  EXPECT_THAT(references.outputs(), Contains("StatefulPartitionedCall"));
  EXPECT_THAT(references.outputs(), Contains("saver_filename"));
  EXPECT_THAT(references.inputs(), Contains(HasSubstr("serving_default_")));
}

TEST(References, ToALostNodeAreNamed) {
  const MetaGraphDef meta = Functions();
  GraphDef graph = meta.graph_def();
  RemoveNode("saver_filename", &graph);
  EXPECT_THAT(Problem(meta, graph),
              AllOf(HasSubstr("saver_filename"), HasSubstr("the saver")));
}

TEST(References, ToALostInputAreNamed) {
  const MetaGraphDef meta = Functions();
  const std::string input =
      SavedModelReferences(meta, meta.graph_def()).inputs().front();
  GraphDef graph = meta.graph_def();
  RemoveNode(input, &graph);
  EXPECT_THAT(Problem(meta, graph),
              AllOf(HasSubstr(input), HasSubstr("the signature \"")));
}

// Only a program in Python calls these, so the graph itself is whole.
TEST(References, OfObjectsToALostFunctionAreNamed) {
  const MetaGraphDef meta = Functions();
  ASSERT_FALSE(meta.object_graph_def().concrete_functions().empty());
  const std::string name =
      meta.object_graph_def().concrete_functions().begin()->first;
  GraphDef graph = meta.graph_def();
  auto* functions = graph.mutable_library()->mutable_function();
  functions->erase(std::remove_if(functions->begin(), functions->end(),
                                  [&](const auto& function) {
                                    return function.signature().name() == name;
                                  }),
                   functions->end());
  EXPECT_THAT(Problem(meta, graph), HasSubstr("removed the function"));
}

TEST(References, OfObjectsToAFunctionWithOtherArgumentsAreNamed) {
  const MetaGraphDef meta = Functions();
  const std::string name =
      meta.object_graph_def().concrete_functions().begin()->first;
  GraphDef graph = meta.graph_def();
  for (auto& function : *graph.mutable_library()->mutable_function()) {
    if (function.signature().name() != name) continue;
    function.mutable_signature()->add_input_arg()->set_name("more");
  }
  EXPECT_THAT(Problem(meta, graph), HasSubstr("changed the arguments"));
}

// A model that was stripped by somebody else is as good afterwards as before.
TEST(References, ToWhatWasNeverThereDoNotCount) {
  MetaGraphDef meta = Functions();
  meta.mutable_saver_def()->set_restore_op_name("gone");
  EXPECT_EQ(Problem(meta, meta.graph_def()), "");
}

TEST(Signatures, AreSuggestedAndListed) {
  const MetaGraphDef meta = Functions();
  EXPECT_OK(CheckSignature(meta, "serving_default", "model"));
  EXPECT_THAT(
      std::string(CheckSignature(meta, "serving_defualt", "model").message()),
      AllOf(HasSubstr("model has no signature \"serving_defualt\""),
            HasSubstr("did you mean \"serving_default\"?")));
}

TEST(Signatures, OfTensorFlowItselfAreNotListed) {
  const MetaGraphDef meta = Functions();
  EXPECT_TRUE(meta.signature_def().contains("__saved_model_init_op"));
  EXPECT_THAT(SignatureNames(meta), ElementsAre("serving_default"));
}

}  // namespace
}  // namespace requant::saved_model_references_test
