// Each of TensorFlow's stock transforms through transform_graph, on a graph
// where it has something to do. Where the result must stay the same, both
// graphs are run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/graph_io.h"
#include "graph/testing/graph_text.h"
#include "graph/testing/program.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant::stock_transforms_test {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Tensor RandomTensor(const std::vector<int>& shape) {
  tensorflow::TensorShape tensor_shape;
  for (int size : shape) tensor_shape.AddDim(size);
  Tensor tensor(tensorflow::DT_FLOAT, tensor_shape);
  std::mt19937 random(7);
  std::normal_distribution<float> value;
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    tensor.flat<float>()(i) = value(random);
  }
  return tensor;
}

std::vector<float> RandomValues(int count) {
  const Tensor tensor = RandomTensor({count});
  const auto flat = tensor.flat<float>();
  return {flat.data(), flat.data() + count};
}

int CountOp(const GraphDef& graph, const std::string& op) {
  int count = 0;
  for (const NodeDef& node : graph.node()) count += node.op() == op;
  return count;
}

class StockTransform : public testing::Test, public TransformGraphRunner {
 protected:
  // Runs transform_graph, with --verify and the input "x" and output "y".
  GraphDef Apply(const std::string& transforms, const GraphDef& graph) {
    const auto run =
        Transform(transforms, graph, {"--inputs=x", "--outputs=y"});
    EXPECT_EQ(run.exit_code, 0) << run.error;
    EXPECT_THAT(run.out, Not(HasSubstr("changes nothing")));
    return run.exit_code == 0 ? folder.ReadGraphFile("out.pb") : GraphDef();
  }

  // Fetches y with x = random values of this shape, or without x.
  static Tensor Y(const GraphDef& graph, const std::vector<int>& x_shape) {
    std::vector<std::pair<std::string, Tensor>> feeds;
    if (!x_shape.empty()) feeds.emplace_back("x", RandomTensor(x_shape));
    const auto y = RunGraph(graph, feeds, {"y"});
    EXPECT_TRUE(y.ok()) << y.status();
    return y.ok() ? y->at(0) : Tensor();
  }

  // Applies transforms that promise an unchanged y, and checks that.
  GraphDef ApplyKeepingY(const std::string& transforms, const GraphDef& graph,
                         const std::vector<int>& x_shape,
                         float tolerance = 1e-5f) {
    const GraphDef after = Apply(transforms, graph);
    const Tensor expected = Y(graph, x_shape);
    const Tensor actual = Y(after, x_shape);
    EXPECT_EQ(actual.shape(), expected.shape());
    if (actual.shape() != expected.shape()) return after;
    float difference = 0;
    for (int64_t i = 0; i < expected.NumElements(); ++i) {
      difference = std::max(difference, std::abs(actual.flat<float>()(i) -
                                                 expected.flat<float>()(i)));
    }
    EXPECT_LE(difference, tolerance);
    return after;
  }
};

// x [?,4] · weights [4,3] by way of `between` -> y.
GraphDef MatMulGraph(const std::string& more = "") {
  return GraphFromText(absl::StrCat(
      Placeholder("x", {-1, 4}), FloatConst("w", {4, 3}, RandomValues(12)),
      Node("identity", "Identity", {"w"}, {kFloat}),
      Node("y", "MatMul", {"x", "identity"}, {kFloat}), more));
}

const std::vector<int> kMatMulInput = {5, 4};

constexpr char kUnitStrides[] = "list { i: [1, 1, 1, 1] }";

std::string Conv(const std::string& name, const std::string& input,
                 const std::string& weights, const std::string& padding) {
  return Node(name, "Conv2D", {input, weights},
              {kFloat,
               {"padding", absl::StrCat("s: \"", padding, "\"")},
               {"strides", kUnitStrides}});
}

// x [?,8,8,2], through `before` -> "padded", then a 3x3 convolution -> y.
GraphDef ConvGraph(const std::string& before) {
  return GraphFromText(
      absl::StrCat(Placeholder("x", {-1, 8, 8, 2}),
                   FloatConst("w", {3, 3, 2, 2}, RandomValues(36)), before,
                   Conv("y", "padded", "w", "VALID")));
}

const std::vector<int> kConvInput = {2, 8, 8, 2};
const std::vector<int> kOneConvInput = {1, 8, 8, 2};

std::string MirrorPad(const std::string& input) {
  return absl::StrCat(IntConst("pads", {4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}),
                      Node("padded", "MirrorPad", {input, "pads"},
                           {kFloat,
                            {"Tpaddings", "type: DT_INT32"},
                            {"mode", "s: \"REFLECT\""}}));
}

std::string ResizeBilinear(const std::string& name) {
  return absl::StrCat(IntConst("size", {2}, {12, 12}),
                      Node(name, "ResizeBilinear", {"x", "size"}, {kFloat}));
}

TEST_F(StockTransform, AddDefaultAttributes) {
  const GraphDef after =
      ApplyKeepingY("add_default_attributes", MatMulGraph(), kMatMulInput, 0);
  EXPECT_EQ(NodeNamed(after, "y").attr().count("transpose_a"), 1);
}

TEST_F(StockTransform, BackportConcatV2) {
  const GraphDef graph = GraphFromText(
      absl::StrCat(Placeholder("x", {-1, 4}), IntConst("axis", {}, {1}),
                   Node("y", "ConcatV2", {"x", "x", "axis"},
                        {kFloat, {"N", "i: 2"}, {"Tidx", "type: DT_INT32"}})));
  const GraphDef after =
      ApplyKeepingY("backport_concatv2", graph, kMatMulInput, 0);
  EXPECT_EQ(NodeNamed(after, "y").op(), "Concat");
  EXPECT_THAT(NodeNamed(after, "y").input(), ElementsAre("axis", "x", "x"));
}

TEST_F(StockTransform, BackportTensorArrayV3) {
  const AttributeText dtype = {"dtype", "type: DT_FLOAT"};
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x", {4}), IntConst("size", {}, {1}),
      IntConst("index", {}, {0}),
      Node("array", "TensorArrayV3", {"size"}, {dtype}),
      Node("write", "TensorArrayWriteV3", {"array", "index", "x", "array:1"},
           {kFloat}),
      Node("y", "TensorArrayReadV3", {"array", "index", "write"}, {dtype}),
      "versions { producer: 20 }"));
  const GraphDef after =
      ApplyKeepingY("backport_tensor_array_v3", graph, {4}, 0);
  EXPECT_EQ(NodeNamed(after, "array").op(), "TensorArrayV2");
  EXPECT_EQ(NodeNamed(after, "y").op(), "TensorArrayReadV2");
}

TEST_F(StockTransform, FlattenAtrousConv) {
  const std::vector<AttributeText> space_to_batch = {
      kFloat,
      {"Tblock_shape", "type: DT_INT32"},
      {"Tpaddings", "type: DT_INT32"}};
  const std::vector<AttributeText> batch_to_space = {
      kFloat, {"Tblock_shape", "type: DT_INT32"}, {"Tcrops", "type: DT_INT32"}};
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x", {-1, 8, 8, 2}),
      FloatConst("w", {3, 3, 2, 2}, RandomValues(36)),
      IntConst("block", {2}, {2, 2}), IntConst("zeros", {2, 2}, {0, 0, 0, 0}),
      // What makes the output as large as the input.
      IntConst("pads", {2, 2}, {2, 2, 2, 2}),
      Node("space", "SpaceToBatchND", {"x", "block", "pads"}, space_to_batch),
      Conv("conv", "space", "w", "VALID"),
      Node("y", "BatchToSpaceND", {"conv", "block", "zeros"}, batch_to_space)));
  const GraphDef after = ApplyKeepingY(
      "add_default_attributes flatten_atrous_conv", graph, kConvInput);
  EXPECT_EQ(CountOp(after, "SpaceToBatchND"), 0);
  EXPECT_EQ(NodeNamed(after, "y").op(), "Conv2D");
}

TEST_F(StockTransform, FoldBatchNorms) {
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x", {-1, 4}), FloatConst("w", {4, 3}, RandomValues(12)),
      FloatConst("factors", {3}, {2, -1, 0.5}),
      Node("matmul", "MatMul", {"x", "w"}, {kFloat}),
      Node("y", "Mul", {"matmul", "factors"}, {kFloat})));
  const GraphDef after = ApplyKeepingY("fold_batch_norms", graph, kMatMulInput);
  EXPECT_EQ(NodeNamed(after, "y").op(), "MatMul");
}

// If this fails, TensorFlow's transform has been mended: drop the warning from
// stock_specs.cc.
TEST_F(StockTransform, FoldBatchNormsIsWrongForTransposedWeightsAndSaysSo) {
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x", {-1, 4}), FloatConst("w", {4, 4}, RandomValues(16)),
      FloatConst("factors", {4}, {2, -1, 0.5, 8}),
      Node("matmul", "MatMul", {"x", "w"},
           {kFloat, {"transpose_b", "b: true"}}),
      Node("y", "Mul", {"matmul", "factors"}, {kFloat})));
  const auto run = Transform("fold_batch_norms", graph);
  EXPECT_EQ(run.error,
            "transform_graph: warning: fold_batch_norms: \"matmul\" is a "
            "MatMul with transpose_b; if a multiplication was folded into it, "
            "its results are wrong now\n");
  const Tensor before = Y(graph, kMatMulInput);
  const Tensor after = Y(folder.ReadGraphFile("out.pb"), kMatMulInput);
  EXPECT_GT(std::abs(after.flat<float>()(0) - before.flat<float>()(0)), 1e-3f);
}

TEST_F(StockTransform, FoldConstants) {
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x", {-1, 4}), FloatConst("a", {4}, RandomValues(4)),
      Node("b", "Mul", {"a", "a"}, {kFloat}),
      Node("c", "Add", {"b", "a"}, {kFloat}),
      Node("y", "Add", {"x", "c"}, {kFloat})));
  const GraphDef after = ApplyKeepingY("fold_constants", graph, kMatMulInput);
  EXPECT_EQ(after.node_size(), 3);
  EXPECT_EQ(CountOp(after, "Const"), 1);
}

TEST_F(StockTransform, FoldOldBatchNorms) {
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x", {-1, 8, 8, 2}),
      FloatConst("w", {3, 3, 2, 2}, RandomValues(36)),
      FloatConst("scale", {2}, {2, 3}), FloatConst("offset", {2}, {-1, 1}),
      FloatConst("mean", {2}, {0.25, 0.5}),
      FloatConst("variance", {2}, {4, 0.5}), Conv("conv", "x", "w", "SAME"),
      Node("y", "FusedBatchNorm",
           {"conv", "scale", "offset", "mean", "variance"},
           {kFloat, {"epsilon", "f: 0.001"}, {"is_training", "b: false"}})));
  const GraphDef after =
      ApplyKeepingY("fold_old_batch_norms", graph, kConvInput, 1e-4f);
  EXPECT_EQ(CountOp(after, "FusedBatchNorm"), 0);
  EXPECT_EQ(NodeNamed(after, "y").op(), "BiasAdd");
}

TEST_F(StockTransform, FreezeRequantizationRanges) {
  const auto graph = ReadGraph("tests/data/dynamic_classifier.pbtxt");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const GraphDef after = Apply(
      absl::StrCat(
          "stock:freeze_requantization_ranges(min_max_log_file=\"",
          std::filesystem::absolute("tests/data/calibration_log.txt").string(),
          "\")"),
      *graph);
  EXPECT_EQ(CountOp(after, "RequantizationRange"), 0);
  EXPECT_TRUE(
      HasNode(after, "hidden/MatMul_eightbit_requant_range/frozen_min"));
}

TEST_F(StockTransform, FusePadAndConv) {
  const GraphDef after = ApplyKeepingY(
      "fuse_pad_and_conv", ConvGraph(MirrorPad("x")), kOneConvInput);
  EXPECT_EQ(NodeNamed(after, "y").op(), "FusedPadConv2D");
  EXPECT_EQ(CountOp(after, "MirrorPad"), 0);
}

TEST_F(StockTransform, FuseResizeAndConv) {
  const GraphDef after =
      ApplyKeepingY("add_default_attributes fuse_resize_and_conv",
                    ConvGraph(ResizeBilinear("padded")), kOneConvInput);
  EXPECT_EQ(NodeNamed(after, "y").op(), "FusedResizeAndPadConv2D");
  EXPECT_EQ(CountOp(after, "ResizeBilinear"), 0);
}

TEST_F(StockTransform, FuseResizePadAndConv) {
  const GraphDef after = ApplyKeepingY(
      "add_default_attributes fuse_resize_pad_and_conv",
      ConvGraph(absl::StrCat(ResizeBilinear("resized"), MirrorPad("resized"))),
      kOneConvInput);
  EXPECT_EQ(NodeNamed(after, "y").op(), "FusedResizeAndPadConv2D");
  EXPECT_EQ(CountOp(after, "MirrorPad"), 0);
}

// If this fails, TensorFlow's kernel has been mended: drop the warning from
// stock_specs.cc.
TEST_F(StockTransform, FusedConvolutionsAreWrongForBatchesAndSaySo) {
  const GraphDef graph = ConvGraph(MirrorPad("x"));
  const auto run = Transform("fuse_pad_and_conv", graph);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.error,
            "transform_graph: warning: fuse_pad_and_conv: the fused op's "
            "kernel computes only the first record of a batch right; feed the "
            "graph one record at a time\n");
  const Tensor expected = Y(graph, kConvInput);
  const Tensor actual = Y(folder.ReadGraphFile("out.pb"), kConvInput);
  const int64_t record = expected.NumElements() / 2;
  EXPECT_NEAR(actual.flat<float>()(0), expected.flat<float>()(0), 1e-5f);
  EXPECT_GT(
      std::abs(actual.flat<float>()(record) - expected.flat<float>()(record)),
      1e-3f);
}

// x -> `op` that calls a function -> "call" -> y.
GraphDef CallGraph(const std::string& op) {
  return GraphFromText(
      absl::StrCat(Placeholder("x", {-1, 4}),
                   Node("call", op, {"x"},
                        {{"Tin", "list { type: DT_FLOAT }"},
                         {"Tout", "list { type: DT_FLOAT }"},
                         {"f", "func { name: \"square_of_relu\" }"}}),
                   Node("y", "Identity", {"call"}, {kFloat}),
                   R"(
    function square_of_relu(a) -> (b=square:y:0) {
      relu = Relu(a) T=float
      square = Square(relu:activations:0) T=float
    }
    versions { producer: 1205 }
  )"));
}

TEST_F(StockTransform, InlinePartitionedCall) {
  const GraphDef after = ApplyKeepingY(
      "inline_partitionedcall", CallGraph("PartitionedCall"), kMatMulInput, 0);
  EXPECT_EQ(CountOp(after, "PartitionedCall"), 0);
  EXPECT_EQ(CountOp(after, "Square"), 1);
  EXPECT_EQ(after.library().function_size(), 1);
}

TEST_F(StockTransform, InlinePartitionedCallLeavesStatefulCalls) {
  const auto run =
      Transform("inline_partitionedcall", CallGraph("StatefulPartitionedCall"));
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("inline_partitionedcall: changes nothing\n"));
}

TEST_F(StockTransform, InlinePartitionedCallTakesAnOutputAwayAndSaysSo) {
  const auto run = Transform("inline_partitionedcall",
                             CallGraph("PartitionedCall"), {"--outputs=call"});
  EXPECT_EQ(run.error,
            "transform_graph: warning: inline_partitionedcall: the output "
            "\"call\" is no longer in the graph\n");
}

TEST_F(StockTransform, InsertLogging) {
  const GraphDef after =
      ApplyKeepingY("stock:insert_logging(op=Identity, show_name=true)",
                    MatMulGraph(), kMatMulInput, 0);
  EXPECT_EQ(CountOp(after, "Print"), 1);
}

TEST_F(StockTransform, MergeDuplicateNodes) {
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x", {-1, 4}), FloatConst("a", {4}, {1, 2, 3, 4}),
      FloatConst("b", {4}, {1, 2, 3, 4}), FloatConst("c", {4}, {1, 2, 3, 5}),
      Node("xa", "Add", {"x", "a"}, {kFloat}),
      Node("xb", "Add", {"x", "b"}, {kFloat}),
      Node("xc", "Add", {"x", "c"}, {kFloat}),
      Node("y", "AddN", {"xa", "xb", "xc"}, {{"N", "i: 3"}, kFloat})));
  const GraphDef after =
      ApplyKeepingY("merge_duplicate_nodes", graph, kMatMulInput, 0);
  EXPECT_EQ(CountOp(after, "Const"), 2);
  EXPECT_EQ(CountOp(after, "Add"), 2);
}

TEST_F(StockTransform, ObfuscateNames) {
  const GraphDef after =
      ApplyKeepingY("obfuscate_names", MatMulGraph(), kMatMulInput, 0);
  EXPECT_FALSE(HasNode(after, "identity"));
  EXPECT_TRUE(HasNode(after, "x"));
}

// An eight-bit product is near the float one: one step of the inputs is their
// range over 255, of the weights likewise.
TEST_F(StockTransform, QuantizeNodes) {
  const GraphDef after = ApplyKeepingY(
      "remove_nodes(op=Identity) add_default_attributes "
      "quantize_weights(minimum_size=1) quantize_nodes",
      MatMulGraph(), kMatMulInput, 0.1f);
  EXPECT_EQ(CountOp(after, "MatMul"), 0);
  EXPECT_EQ(CountOp(after, "QuantizedMatMul"), 1);
}

TEST_F(StockTransform, QuantizeNodesLeavesTheOpsItIsTold) {
  const GraphDef after = Apply(
      "quantize_nodes(ignore_op=MatMul, ignore_op=Relu6)",
      GraphFromText(absl::StrCat(Placeholder("x", {-1, 4}),
                                 FloatConst("w", {4, 3}, RandomValues(12)),
                                 Node("product", "MatMul", {"x", "w"},
                                      {kFloat,
                                       {"transpose_a", "b: false"},
                                       {"transpose_b", "b: false"}}),
                                 Node("relu", "Relu", {"product"}, {kFloat}),
                                 Node("y", "Relu6", {"relu"}, {kFloat}))));
  EXPECT_EQ(CountOp(after, "MatMul"), 1);
  EXPECT_EQ(CountOp(after, "QuantizedRelu"), 1);
  EXPECT_EQ(CountOp(after, "Relu6"), 1);
}

TEST_F(StockTransform, QuantizeWeights) {
  const GraphDef after = ApplyKeepingY("quantize_weights(minimum_size=12)",
                                       MatMulGraph(), kMatMulInput, 0.1f);
  EXPECT_EQ(CountOp(after, "Dequantize"), 1);
  EXPECT_EQ(NodeNamed(after, "w_quantized_const").attr().at("dtype").type(),
            tensorflow::DT_QUINT8);
}

TEST_F(StockTransform, RoundWeights) {
  const GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x", {-1, 8}), FloatConst("w", {8, 8}, RandomValues(64)),
      Node("y", "MatMul", {"x", "w"}, {kFloat})));
  const GraphDef after =
      ApplyKeepingY("round_weights(num_steps=256)", graph, {5, 8}, 0.2f);
  EXPECT_NE(NodeNamed(after, "w").SerializeAsString(),
            NodeNamed(graph, "w").SerializeAsString());
}

TEST_F(StockTransform, RemoveAttribute) {
  GraphDef graph = MatMulGraph();
  for (NodeDef& node : *graph.mutable_node()) {
    (*node.mutable_attr())["_class"].mutable_list()->add_s("loc:@w");
  }
  const GraphDef after =
      ApplyKeepingY("remove_attribute(attribute_name=_class, op_name=MatMul)",
                    graph, kMatMulInput, 0);
  EXPECT_EQ(NodeNamed(after, "y").attr().count("_class"), 0);
  EXPECT_EQ(NodeNamed(after, "x").attr().count("_class"), 1);
}

TEST_F(StockTransform, RemoveControlDependencies) {
  GraphDef graph = MatMulGraph();
  graph.mutable_node(3)->add_input("^w");
  const GraphDef after =
      ApplyKeepingY("remove_control_dependencies", graph, kMatMulInput, 0);
  EXPECT_THAT(NodeNamed(after, "y").input(), ElementsAre("x", "identity"));
}

TEST_F(StockTransform, RemoveDevice) {
  GraphDef graph = MatMulGraph();
  graph.mutable_node(3)->set_device("/device:CPU:0");
  const GraphDef after = ApplyKeepingY("remove_device", graph, kMatMulInput, 0);
  EXPECT_EQ(NodeNamed(after, "y").device(), "");
}

TEST_F(StockTransform, RemoveNodes) {
  const GraphDef after = ApplyKeepingY("remove_nodes(op=Identity)",
                                       MatMulGraph(), kMatMulInput, 0);
  EXPECT_THAT(NodeNamed(after, "y").input(), ElementsAre("x", "w"));
}

TEST_F(StockTransform, RenameAttribute) {
  GraphDef graph = MatMulGraph();
  (*graph.mutable_node(3)->mutable_attr())["_old"].set_i(7);
  const GraphDef after = ApplyKeepingY(
      "rename_attribute(old_attribute_name=_old, new_attribute_name=_new)",
      graph, kMatMulInput, 0);
  EXPECT_EQ(NodeNamed(after, "y").attr().at("_new").i(), 7);
}

TEST_F(StockTransform, RenameNode) {
  const GraphDef after =
      ApplyKeepingY("rename_node(old_node_name=w, new_node_name=weights)",
                    MatMulGraph(), kMatMulInput, 0);
  EXPECT_THAT(NodeNamed(after, "identity").input(), ElementsAre("weights"));
}

TEST_F(StockTransform, RenameOp) {
  const GraphDef after =
      Apply("rename_op(old_op_name=Identity, new_op_name=Neg)", MatMulGraph());
  const Tensor before = Y(MatMulGraph(), kMatMulInput);
  const Tensor negated = Y(after, kMatMulInput);
  EXPECT_EQ(negated.flat<float>()(0), -before.flat<float>()(0));
}

TEST_F(StockTransform, SetDevice) {
  GraphDef graph = MatMulGraph();
  graph.mutable_node(0)->set_device("/device:CPU:0");
  const GraphDef after = ApplyKeepingY(
      "set_device(device=\"/cpu:0\", if_default=true)", graph, kMatMulInput, 0);
  EXPECT_EQ(NodeNamed(after, "x").device(), "/device:CPU:0");
  EXPECT_EQ(NodeNamed(after, "y").device(), "/cpu:0");
}

TEST_F(StockTransform, SortByExecutionOrder) {
  GraphDef graph = MatMulGraph();
  graph.mutable_node()->SwapElements(0, 3);
  const GraphDef after =
      ApplyKeepingY("sort_by_execution_order", graph, kMatMulInput, 0);
  EXPECT_EQ(after.node(3).name(), "y");
}

TEST_F(StockTransform, SparsifyGather) {
  std::vector<float> table(64, 0);
  table[3] = 1.5f;
  table[40] = -2;
  const GraphDef graph = GraphFromText(absl::StrCat(
      FloatConst("table", {64, 1}, table),
      Node("table/read", "Identity", {"table"}, {kFloat}),
      Node("indices", "Const", {},
           {{"dtype", "type: DT_INT64"},
            {"value",
             "tensor { dtype: DT_INT64 tensor_shape { dim { size: 3 } } "
             "int64_val: [40, 7, 3] }"}}),
      Node("y", "Gather", {"table/read", "indices"},
           {{"Tparams", "type: DT_FLOAT"}, {"Tindices", "type: DT_INT64"}})));
  const auto run = Transform("sparsify_gather(group_init_node=init)", graph,
                             {"--outputs=y"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const GraphDef after = folder.ReadGraphFile("out.pb");
  EXPECT_EQ(CountOp(after, "Gather"), 0);
  EXPECT_EQ(CountOp(after, "LookupTableFind"), 1);
  EXPECT_THAT(NodeNamed(after, "init").input(),
              ElementsAre("^table/InitializeTable"));
}

TEST_F(StockTransform, StripUnusedNodes) {
  const GraphDef after = ApplyKeepingY(
      "strip_unused_nodes",
      MatMulGraph(absl::StrCat(Node("loss", "Relu", {"y"}, {kFloat}),
                               Node("train", "NoOp", {"^loss"}))),
      kMatMulInput, 0);
  EXPECT_EQ(after.node_size(), 4);
}

TEST_F(StockTransform, StripUnusedNodesMakesPlaceholdersOfInputs) {
  const auto run =
      Transform("strip_unused_nodes(type=float, shape=\"4,3\")", MatMulGraph(),
                {"--inputs=x,identity", "--outputs=y"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  const GraphDef after = folder.ReadGraphFile("out.pb");
  EXPECT_EQ(NodeNamed(after, "identity").op(), "Placeholder");
  EXPECT_FALSE(HasNode(after, "w"));
}

}  // namespace
}  // namespace requant::stock_transforms_test
