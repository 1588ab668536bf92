// Small models made by hand: one rule each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "graph/freeze/freeze.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"
#include "tensorflow/core/util/tensor_slice_writer.h"

namespace requant::freeze_small_test {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TensorSlice;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor Floats(const std::vector<float>& values) {
  Tensor tensor(tensorflow::DT_FLOAT,
                TensorShape({static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i)
    tensor.flat<float>()(i) = values[i];
  return tensor;
}

std::string Node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs,
                 const std::string& attributes = "") {
  std::string text = absl::StrCat("node { name: '", name, "' op: '", op, "' ");
  for (const std::string& input : inputs) {
    absl::StrAppend(&text, "input: '", input, "' ");
  }
  return absl::StrCat(text, attributes, " }\n");
}

std::string TypeAttribute(const std::string& name, const std::string& type) {
  return absl::StrCat("attr { key: '", name, "' value { type: ", type, " } } ");
}

std::string Variable(const std::string& name, const std::string& op,
                     const std::string& shape = "dim { size: 2 }",
                     const std::string& type = "DT_FLOAT") {
  return Node(
      name, op, {},
      absl::StrCat(TypeAttribute("dtype", type),
                   "attr { key: 'shape' value { shape { ", shape, " } } }"));
}

std::string Identity(const std::string& name, const std::string& input,
                     const std::string& type = "DT_FLOAT") {
  return Node(name, "Identity", {input}, TypeAttribute("T", type));
}

// A constant vector of one string.
std::string Strings(const std::string& name, const std::string& value) {
  return Node(name, "Const", {},
              absl::StrCat(TypeAttribute("dtype", "DT_STRING"),
                           "attr { key: 'value' value { tensor { dtype: "
                           "DT_STRING tensor_shape { dim { size: 1 } } "
                           "string_val: '",
                           value, "' } } }"));
}

std::string Read(const std::string& name, const std::string& variable) {
  return Node(name, "ReadVariableOp", {variable},
              TypeAttribute("dtype", "DT_FLOAT"));
}

// Writes a model with one output "y"; every test has files of its own.
class FreezeSmall : public testing::Test {
 protected:
  FreezeSmall()
      : prefix_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())),
        writer_(tensorflow::Env::Default(), prefix_) {
    options_.outputs = {"y"};
  }

  void Save(const std::string& key, const Tensor& value) {
    ASSERT_TRUE(writer_.Add(key, value).ok());
  }

  absl::StatusOr<FrozenGraph> FreezeText(const std::string& text) {
    const absl::Status finished = writer_.Finish();
    EXPECT_TRUE(finished.ok()) << finished;
    options_.files.graph = prefix_ + ".pb";
    if (options_.files.checkpoint.empty()) options_.files.checkpoint = prefix_;
    EXPECT_TRUE(WriteGraph(GraphFromText(text), options_.files.graph,
                           GraphFormat::kBinary)
                    .ok());
    return Freeze(options_);
  }

  std::string ErrorOf(const std::string& text) {
    const auto frozen = FreezeText(text);
    return frozen.ok() ? "no error" : std::string(frozen.status().message());
  }

  // What "y" is after freezing.
  Tensor ValueOf(const std::string& text) {
    const auto frozen = FreezeText(text);
    EXPECT_TRUE(frozen.ok()) << frozen.status();
    if (!frozen.ok()) return Tensor();
    const auto values = RunGraph(frozen->graph, {}, {"y"});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[0] : Tensor();
  }

  std::vector<float> FloatsOf(const std::string& text) {
    const Tensor value = ValueOf(text);
    if (value.dtype() != tensorflow::DT_FLOAT) return {};
    const auto flat = value.flat<float>();
    return {flat.data(), flat.data() + flat.size()};
  }

  const std::string prefix_;
  tensorflow::BundleWriter writer_;
  FreezeOptions options_;
};

TEST_F(FreezeSmall, KeepsOnlyWhatTheOutputsNeed) {
  Save("v", Floats({1, 2}));
  const auto frozen =
      FreezeText(Variable("v", "VariableV2") + Identity("y", "v") +
                 Variable("other", "VariableV2") + Identity("z", "other"));
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_EQ(frozen->graph.node_size(), 2);
  EXPECT_EQ(frozen->variables, 1);
  EXPECT_EQ(frozen->variable_bytes, 8);
}

TEST_F(FreezeSmall, FindsPartsOfAVariableByTheirShapes) {
  const TensorShape whole({5});
  ASSERT_TRUE(writer_
                  .AddSlice("v", whole, TensorSlice::ParseOrDie("0,3"),
                            Floats({1, 2, 3}))
                  .ok());
  ASSERT_TRUE(
      writer_
          .AddSlice("v", whole, TensorSlice::ParseOrDie("3,2"), Floats({4, 5}))
          .ok());
  EXPECT_THAT(FloatsOf(Variable("v/part_0", "VarHandleOp", "dim { size: 3 }") +
                       Variable("v/part_1", "VarHandleOp", "dim { size: 2 }") +
                       Read("y", "v/part_1")),
              ElementsAre(4, 5));
}

TEST_F(FreezeSmall, RestoresAsTheGraphSays) {
  Save("v/ExponentialMovingAverage", Floats({7, 8}));
  Save("v", Floats({1, 2}));
  EXPECT_THAT(
      FloatsOf(
          Variable("v", "VariableV2") + Identity("y", "v") +
          Strings("names", "v/ExponentialMovingAverage") +
          Strings("slices", "") +
          Node("restore", "RestoreV2", {"names", "names", "slices"},
               "attr { key: 'dtypes' value { list { type: DT_FLOAT } } }") +
          Node("assign", "Assign", {"v", "restore"},
               TypeAttribute("T", "DT_FLOAT")) +
          Node("save/restore_all", "NoOp", {"^assign"})),
      ElementsAre(7, 8));
}

// The graph and the checkpoint of a Saver from before TensorFlow 1.0.
TEST_F(FreezeSmall, RestoresTheFirstFormatAsTheGraphSays) {
  options_.files.checkpoint = prefix_ + ".ckpt";
  tensorflow::checkpoint::TensorSliceWriter writer(
      options_.files.checkpoint,
      tensorflow::checkpoint::CreateTableTensorSliceBuilder);
  const float values[] = {1, 2, 3, 4, 5};
  ASSERT_TRUE(
      writer.Add("whole", TensorShape({2}), TensorSlice(1), values).ok());
  for (const char* slice : {"0,3", "3,2"}) {
    const TensorSlice part = TensorSlice::ParseOrDie(slice);
    ASSERT_TRUE(
        writer.Add("parts", TensorShape({5}), part, values + part.start(0))
            .ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
  const std::string type = TypeAttribute("T", "DT_FLOAT");
  const std::string restored = TypeAttribute("dt", "DT_FLOAT");
  EXPECT_THAT(
      FloatsOf(Variable("a", "Variable") + Variable("b", "Variable") +
               Node("y", "Add", {"a", "b"}, type) + Strings("file", "") +
               Strings("a_name", "whole") + Strings("b_name", "parts") +
               Strings("b_slice", "5 2,2") +
               Node("a_value", "Restore", {"file", "a_name"}, restored) +
               Node("b_value", "RestoreSlice", {"file", "b_name", "b_slice"},
                    restored) +
               Node("a_assign", "Assign", {"a", "a_value"}, type) +
               Node("b_assign", "Assign", {"b", "b_value"}, type) +
               Node("save/restore_all", "NoOp", {"^a_assign", "^b_assign"})),
      ElementsAre(4, 6));
}

TEST_F(FreezeSmall, AnswersWhetherVariablesAreInitialized) {
  Save("v", Floats({1, 2}));
  Save("w", Floats({1, 2}));
  const Tensor value =
      ValueOf(Variable("v", "VariableV2") + Variable("w", "VarHandleOp") +
              Node("a", "IsVariableInitialized", {"v"},
                   TypeAttribute("dtype", "DT_FLOAT")) +
              Node("b", "VarIsInitializedOp", {"w"}) +
              Node("y", "LogicalAnd", {"a", "b"}));
  ASSERT_EQ(value.dtype(), tensorflow::DT_BOOL);
  EXPECT_TRUE(value.scalar<bool>()());
}

TEST_F(FreezeSmall, GathersFromBatchesAndAsksForShapes) {
  Tensor table(tensorflow::DT_FLOAT, TensorShape({2, 3}));
  for (int i = 0; i < 6; ++i) table.flat<float>()(i) = i;
  Save("v", table);
  EXPECT_THAT(
      FloatsOf(
          Variable("v", "VarHandleOp", "dim { size: 2 } dim { size: 3 }") +
          Node("ids", "Const", {},
               TypeAttribute("dtype", "DT_INT32") +
                   "attr { key: 'value' value { tensor { dtype: DT_INT32 "
                   "tensor_shape { dim { size: 2 } dim { size: 1 } } int_val: "
                   "[2, 0] } } }") +
          Node("rows", "ResourceGather", {"v", "ids"},
               TypeAttribute("dtype", "DT_FLOAT") +
                   TypeAttribute("Tindices", "DT_INT32") +
                   "attr { key: 'batch_dims' value { i: 1 } }") +
          Node("shape", "VariableShape", {"v"}) +
          Node("cast", "Cast", {"shape"},
               TypeAttribute("SrcT", "DT_INT32") +
                   TypeAttribute("DstT", "DT_FLOAT")) +
          Node("y", "Add", {"rows", "cast"}, TypeAttribute("T", "DT_FLOAT"))),
      // Rows [2] and [3] plus the shape [2, 3].
      ElementsAre(4, 5, 5, 6));
}

TEST_F(FreezeSmall, DropsTheWaitForAssignments) {
  Save("v", Floats({1, 2}));
  const auto frozen = FreezeText(
      Variable("v", "VarHandleOp") + Read("r", "v") +
      Node("assign", "AssignVariableOp", {"v", "r"},
           TypeAttribute("dtype", "DT_FLOAT")) +
      Node("group", "NoOp", {"^assign", "^r"}) +
      Node("y", "Identity", {"r", "^group"}, TypeAttribute("T", "DT_FLOAT")));
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_THAT(NodeNamed(frozen->graph, "y").input(), ElementsAre("r"));
  EXPECT_THAT(frozen->notes, ElementsAre(HasSubstr("left out: assign")));
}

TEST_F(FreezeSmall, LeavesVariablesThatAreToStay) {
  Save("v", Floats({1, 2}));
  options_.kept_variables = {"w"};
  const auto frozen =
      FreezeText(Variable("v", "VarHandleOp") + Variable("w", "VarHandleOp") +
                 Read("a", "v") + Read("b", "w") +
                 Node("y", "Add", {"a", "b"}, TypeAttribute("T", "DT_FLOAT")));
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_EQ(NodeNamed(frozen->graph, "v").op(), "Const");
  EXPECT_EQ(NodeNamed(frozen->graph, "w").op(), "VarHandleOp");
  EXPECT_THAT(frozen->notes, ElementsAre(HasSubstr("stays a variable")));
}

TEST_F(FreezeSmall, FreezesOnlyTheVariablesAskedFor) {
  Save("v", Floats({1, 2}));
  options_.only_variables = {"v"};
  const auto frozen =
      FreezeText(Variable("v", "VariableV2") + Variable("w", "VariableV2") +
                 Node("y", "Add", {"v", "w"}, TypeAttribute("T", "DT_FLOAT")));
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_EQ(frozen->variables, 1);
  EXPECT_EQ(NodeNamed(frozen->graph, "w").op(), "VariableV2");
}

TEST_F(FreezeSmall, KeepsDevicesOnlyWhenAsked) {
  Save("v", Floats({1, 2}));
  const std::string text =
      Variable("v", "VariableV2") +
      "node { name: 'y' op: 'Identity' input: 'v' device: '/cpu:0' "
      "attr { key: 'T' value { type: DT_FLOAT } } }";
  options_.clear_devices = false;
  const auto kept = FreezeText(text);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(NodeNamed(kept->graph, "y").device(), "/cpu:0");
  options_.clear_devices = true;
  const auto cleared = Freeze(options_);
  ASSERT_TRUE(cleared.ok()) << cleared.status();
  EXPECT_EQ(NodeNamed(cleared->graph, "y").device(), "");
}

// Errors.

TEST_F(FreezeSmall, SuggestsTheOutputThatWasMeant) {
  options_.outputs = {"logit"};
  EXPECT_THAT(ErrorOf(Node("logits", "NoOp", {})),
              AllOf(HasSubstr("no output node \"logit\""),
                    HasSubstr("did you mean \"logits\"?")));
}

TEST_F(FreezeSmall, AsksForOutputsThatNothingNames) {
  options_.outputs = {};
  EXPECT_THAT(ErrorOf(Node("y", "NoOp", {})), HasSubstr("--output_node_names"));
}

TEST_F(FreezeSmall, NamesAVariableWithoutValue) {
  Save("dense/kernel", Floats({1, 2}));
  EXPECT_THAT(ErrorOf(Variable("dense/kernl", "VarHandleOp") +
                      Read("y", "dense/kernl")),
              AllOf(HasSubstr("variable \"dense/kernl\" has no value"),
                    HasSubstr("did you mean \"dense/kernel\"?")));
}

TEST_F(FreezeSmall, RefusesAnotherShape) {
  Save("v", Floats({1, 2, 3}));
  EXPECT_THAT(ErrorOf(Variable("v", "VarHandleOp") + Read("y", "v")),
              AllOf(HasSubstr("\"v\" has shape [2] in the graph"),
                    HasSubstr("has shape [3]")));
}

TEST_F(FreezeSmall, RefusesAnotherType) {
  Save("v", Floats({1, 2}));
  EXPECT_THAT(
      ErrorOf(Variable("v", "VarHandleOp", "dim { size: 2 }", "DT_INT32") +
              Read("y", "v")),
      HasSubstr("of type int32 in the graph"));
}

TEST_F(FreezeSmall, RefusesACheckpointWithoutData) {
  Save("v", Floats({1, 2}));
  ASSERT_TRUE(writer_.Finish().ok());
  ASSERT_EQ(std::remove((prefix_ + ".data-00000-of-00001").c_str()), 0);
  options_.files.graph = prefix_ + ".pb";
  options_.files.checkpoint = prefix_;
  ASSERT_TRUE(WriteGraph(GraphFromText(Variable("v", "VariableV2") +
                                       Identity("y", "v")),
                         options_.files.graph, GraphFormat::kBinary)
                  .ok());
  EXPECT_THAT(std::string(Freeze(options_).status().message()),
              HasSubstr("cannot read \"v\" from the checkpoint"));
}

TEST_F(FreezeSmall, RefusesToGrowBeyondTwoGigabytesBeforeReading) {
  // The index has the shape of the whole; only one element is on the disk.
  const TensorShape whole({int64_t{600} << 20});
  ASSERT_TRUE(
      writer_.AddSlice("v", whole, TensorSlice::ParseOrDie("0,1"), Floats({1}))
          .ok());
  EXPECT_THAT(
      ErrorOf(Variable("v", "VariableV2",
                       absl::StrCat("dim { size: ", int64_t{600} << 20, " }")) +
              Identity("y", "v")),
      HasSubstr("at most 2 GB"));
}

TEST_F(FreezeSmall, RefusesOutputsThatNeedAnAssignment) {
  Save("v", Floats({1, 2}));
  EXPECT_THAT(ErrorOf(Variable("v", "VariableV2") +
                      Node("y", "AssignAdd", {"v", "v"},
                           TypeAttribute("T", "DT_FLOAT"))),
              HasSubstr("AssignAdd node \"y\", which changes the variable"));
}

TEST_F(FreezeSmall, RefusesVariablesInPlacesItDoesNotKnow) {
  Save("v", Floats({1, 2}));
  EXPECT_THAT(
      ErrorOf(Variable("v", "VarHandleOp") +
              Node("pack", "Pack", {"v", "v"},
                   TypeAttribute("T", "DT_RESOURCE") +
                       "attr { key: 'N' value { i: 2 } }") +
              Node("y", "Unpack", {"pack"},
                   TypeAttribute("T", "DT_RESOURCE") +
                       "attr { key: 'num' value { i: 2 } }")),
      AllOf(HasSubstr("variable \"v\""), HasSubstr("Pack node \"pack\"")));
}

// Variables in a function that is called conditionally.
std::string Conditional(const std::string& body_node,
                        const std::string& result) {
  return absl::StrCat(
      Variable("v", "VarHandleOp"),
      Node("yes", "Const", {},
           TypeAttribute("dtype", "DT_BOOL") +
               "attr { key: 'value' value { tensor { dtype: DT_BOOL "
               "tensor_shape { } bool_val: true } } }"),
      Node("y", "If", {"yes", "v"},
           TypeAttribute("Tcond", "DT_BOOL") +
               "attr { key: 'Tin' value { list { type: DT_RESOURCE } } } "
               "attr { key: 'Tout' value { list { type: DT_FLOAT } } } "
               "attr { key: 'then_branch' value { func { name: 'f' } } } "
               "attr { key: 'else_branch' value { func { name: 'f' } } }"),
      "library { function { signature { name: 'f' input_arg { name: 'a' type: "
      "DT_RESOURCE } output_arg { name: 'r' type: DT_FLOAT } } node_def { ",
      body_node, " } ret { key: 'r' value: '", result, "' } } }");
}

TEST_F(FreezeSmall, FreezesVariablesInsideBranches) {
  Save("v", Floats({1, 2}));
  EXPECT_THAT(FloatsOf(Conditional("name: 'read' op: 'ReadVariableOp' input: "
                                   "'a' attr { key: 'dtype' value { type: "
                                   "DT_FLOAT } }",
                                   "read:value:0")),
              ElementsAre(1, 2));
}

TEST_F(FreezeSmall, NamesTheOpTheVariableAndTheFunctionItCannotFreeze) {
  Save("v", Floats({1, 2}));
  EXPECT_THAT(ErrorOf(Conditional("name: 'odd' op: 'PrintV2' input: 'a'",
                                  "odd:output:0")),
              AllOf(HasSubstr("PrintV2 node \"odd\""),
                    HasSubstr("function \"f\""), HasSubstr("variable \"v\"")));
}

TEST_F(FreezeSmall, RefusesCycles) {
  EXPECT_THAT(ErrorOf(Identity("a", "y") + Identity("y", "a")),
              HasSubstr("depends on its own output"));
}

TEST_F(FreezeSmall, RefusesATableThatNothingFills) {
  EXPECT_THAT(ErrorOf(Node("table", "HashTableV2", {},
                           TypeAttribute("key_dtype", "DT_STRING") +
                               TypeAttribute("value_dtype", "DT_INT64")) +
                      Node("y", "LookupTableSizeV2", {"table"})),
              HasSubstr("lookup table \"table\""));
}

// Every type that a variable can have.
class FreezeType : public FreezeSmall,
                   public testing::WithParamInterface<DataType> {};

TEST_P(FreezeType, KeepsTheBits) {
  Tensor value(GetParam(), TensorShape({2}));
  if (GetParam() == tensorflow::DT_STRING) {
    value.flat<tensorflow::tstring>()(0) = "a\0b";
    value.flat<tensorflow::tstring>()(1) = std::string(100, 'x');
  } else {
    char* bytes = static_cast<char*>(value.data());
    for (size_t i = 0; i < value.TotalBytes(); ++i) {
      bytes[i] = GetParam() == tensorflow::DT_BOOL ? i % 2 : 3 * i + 1;
    }
  }
  Save("y", value);
  const auto frozen = FreezeText(Variable(
      "y", "VariableV2", "dim { size: 2 }",
      absl::StrCat("DT_", tensorflow::DataType_Name(GetParam()).substr(3))));
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  Tensor constant;
  ASSERT_TRUE(constant.FromProto(
      NodeNamed(frozen->graph, "y").attr().at("value").tensor()));
  EXPECT_EQ(constant.dtype(), GetParam());
  if (GetParam() == tensorflow::DT_STRING) {
    EXPECT_EQ(constant.flat<tensorflow::tstring>()(1),
              value.flat<tensorflow::tstring>()(1));
  } else {
    EXPECT_TRUE(constant.tensor_data() == value.tensor_data());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, FreezeType,
    testing::Values(tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
                    tensorflow::DT_HALF, tensorflow::DT_BFLOAT16,
                    tensorflow::DT_INT8, tensorflow::DT_UINT8,
                    tensorflow::DT_INT32, tensorflow::DT_INT64,
                    tensorflow::DT_QINT8, tensorflow::DT_QUINT8,
                    tensorflow::DT_QINT32, tensorflow::DT_BOOL,
                    tensorflow::DT_STRING, tensorflow::DT_COMPLEX64));

}  // namespace
}  // namespace requant::freeze_small_test
