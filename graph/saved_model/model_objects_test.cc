#include "graph/saved_model/model_objects.h"

#include "graph/freeze/freeze.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/testing/testing.h"

namespace requant::model_objects_test {
namespace {

using tensorflow::FunctionDef;
using tensorflow::MetaGraphDef;
using tensorflow::SavedObject;

class Objects : public testing::Test {
 protected:
  void SetUp() override {
    FreezeOptions freezing;
    freezing.files.saved_model = "graph/testdata/functions";
    freezing.all_signatures = true;
    ASSERT_OK_AND_ASSIGN(FrozenGraph frozen, Freeze(freezing));
    graph_ = std::move(frozen.graph);
    ASSERT_OK_AND_ASSIGN(source_, ReadSavedModel(freezing.files.saved_model));
    for (const std::string& key : SignatureNames(source_)) {
      options_.signatures[key] = source_.signature_def().at(key);
    }
    // All constants are shared.
    options_.least_shared_bytes = 0;
  }

  absl::StatusOr<std::optional<ModelObjects>> Add() {
    return AddModelObjects(source_, options_, &graph_);
  }
  // Returns the original's object behind a path of names from the root.
  SavedObject* Original(const std::vector<std::string>& path) {
    auto* objects = source_.mutable_object_graph_def();
    SavedObject* object = objects->mutable_nodes(0);
    for (const std::string& name : path) {
      for (const auto& child : object->children()) {
        if (child.local_name() != name) continue;
        object = objects->mutable_nodes(child.node_id());
        break;
      }
    }
    return object;
  }
  FunctionDef* WrapperFunction() {
    for (FunctionDef& function :
         *source_.mutable_graph_def()->mutable_library()->mutable_function()) {
      if (absl::StrContains(function.signature().name(), "signature_wrapper")) {
        return &function;
      }
    }
    return nullptr;
  }
  // Expects that nothing was found, and that the graph is as it was.
  void ExpectNothing() {
    const std::string before = DeterministicBytes(graph_);
    ASSERT_OK_AND_ASSIGN(const auto objects, Add());
    EXPECT_FALSE(objects.has_value());
    EXPECT_TRUE(DeterministicBytes(graph_) == before);
  }

  MetaGraphDef source_;
  GraphDef graph_;
  ModelObjectsOptions options_;
};

std::map<std::string, int> ChildrenOf(const SavedObject& object) {
  std::map<std::string, int> children;
  for (const auto& child : object.children()) {
    children[child.local_name()] = child.node_id();
  }
  return children;
}

TEST_F(Objects, KeepsSignaturesAndTheFunctionsThatTheyCall) {
  ASSERT_OK_AND_ASSIGN(const auto objects, Add());
  ASSERT_TRUE(objects.has_value());
  const auto& graph = objects->graph;
  const auto root = ChildrenOf(graph.nodes(0));
  ASSERT_EQ(root.count("signatures"), 1u);
  const auto signatures = ChildrenOf(graph.nodes(root.at("signatures")));
  EXPECT_EQ(signatures.size(), options_.signatures.size());
  for (const auto& [key, index] : signatures) {
    EXPECT_TRUE(graph.nodes(index).has_bare_concrete_function()) << key;
  }
  int functions = 0;
  for (const auto& [name, index] : root) {
    if (!graph.nodes(index).has_function()) continue;
    ++functions;
    EXPECT_TRUE(SameMessage(graph.nodes(index).function().function_spec(),
                            Original({name})->function().function_spec()));
  }
  EXPECT_GE(functions, 1);
  // Every function that is described is in the library, and takes as many
  // captured values as are bound.
  for (const auto& [name, concrete] : graph.concrete_functions()) {
    const FunctionDef* found = nullptr;
    for (const FunctionDef& function : graph_.library().function()) {
      if (function.signature().name() == name) found = &function;
    }
    ASSERT_NE(found, nullptr) << name;
    EXPECT_GE(found->signature().input_arg_size(),
              concrete.bound_inputs_size());
    EXPECT_GT(concrete.bound_inputs_size(), 0);
    for (const int index : concrete.bound_inputs()) {
      EXPECT_TRUE(graph.nodes(index).has_constant());
    }
  }
  EXPECT_EQ(objects->checkpoint.nodes_size(), graph.nodes_size());
}

TEST_F(Objects, AreNotMadeForModelsWithoutThem) {
  source_.clear_object_graph_def();
  ExpectNothing();
}

TEST_F(Objects, AreNotMadeIfASignatureIsNotKnown) {
  options_.signatures["more"] = options_.signatures.begin()->second;
  ExpectNothing();
}

TEST_F(Objects, AreNotMadeIfAChildIsOutOfRange) {
  Original({})->mutable_children(0)->set_node_id(1 << 30);
  for (auto& child : *Original({"signatures"})->mutable_children()) {
    child.set_node_id(-1);
  }
  ExpectNothing();
}

TEST_F(Objects, AreNotMadeIfASignatureCallsAnUnknownFunction) {
  WrapperFunction()->mutable_signature()->set_name("renamed");
  ExpectNothing();
}

TEST_F(Objects, AreNotMadeIfAFunctionIsThereAlready) {
  *graph_.mutable_library()->add_function() = *WrapperFunction();
  ExpectNothing();
}

TEST_F(Objects, AreNotMadeIfASignatureIsNotOfSingleTensors) {
  auto& outputs = *options_.signatures.begin()->second.mutable_outputs();
  outputs.begin()->second.mutable_coo_sparse();
  ExpectNothing();
}

TEST_F(Objects, HaveCallsWithTypesEvenOfNoArguments) {
  options_.least_shared_bytes = int64_t{1} << 40;
  for (auto& [key, signature] : options_.signatures) {
    signature.clear_inputs();
    (*source_.mutable_signature_def())[key].clear_inputs();
  }
  for (FunctionDef& function :
       *source_.mutable_graph_def()->mutable_library()->mutable_function()) {
    function.mutable_signature()->clear_input_arg();
  }
  for (auto& object : *source_.mutable_object_graph_def()->mutable_nodes()) {
    if (!object.has_bare_concrete_function()) continue;
    object.mutable_bare_concrete_function()->clear_argument_keywords();
  }
  ASSERT_OK(Add().status());
  int calls = 0;
  for (const FunctionDef& function : graph_.library().function()) {
    for (const auto& node : function.node_def()) {
      if (!absl::EndsWith(node.op(), "PartitionedCall")) continue;
      ++calls;
      EXPECT_TRUE(node.attr().contains("Tin")) << node.name();
    }
  }
  EXPECT_GT(calls, 0);
}

TEST_F(Objects, HaveNoTwoFunctionsOfOneName) {
  FunctionDef* wrapper = WrapperFunction();
  for (auto& node : *wrapper->mutable_node_def()) {
    const auto f = node.mutable_attr()->find("f");
    if (f == node.mutable_attr()->end()) continue;
    f->second.mutable_func()->set_name(wrapper->signature().name());
  }
  ASSERT_OK(Add().status());
  std::set<std::string> names;
  for (const FunctionDef& function : graph_.library().function()) {
    EXPECT_TRUE(names.insert(function.signature().name()).second);
  }
}

// Only signatures are left of a model whose functions are called in a way that
// is not understood.
TEST_F(Objects, LeaveOutFunctionsWhoseResultsAreUnknown) {
  for (FunctionDef& function :
       *source_.mutable_graph_def()->mutable_library()->mutable_function()) {
    if (!absl::StrContains(function.signature().name(), "signature_wrapper")) {
      continue;
    }
    for (auto& [name, value] : *function.mutable_ret()) value = "x:output:999";
  }
  ASSERT_OK_AND_ASSIGN(const auto objects, Add());
  ASSERT_TRUE(objects.has_value());
  EXPECT_THAT(ChildrenOf(objects->graph.nodes(0)),
              ElementsAre(testing::Key("signatures")));
}

}  // namespace
}  // namespace requant::model_objects_test
