// Each of TensorFlow's stock transforms through transform_graph, on a graph
// where it has something to do. Where the result must stay the same, both
// graphs are run.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>

#include "absl/strings/substitute.h"
#include "graph/graph_io.h"
#include "tests/support/program_runs.h"

namespace requant::stock_transforms_test {
namespace {

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
  return ValuesOf(RandomTensor({count}));
}

class StockTransform : public testing::Test, public TransformGraphRunner {
 protected:
  // Runs transform_graph, with --verify and the input "x" and output "y".
  GraphDef Apply(const std::string& transforms, const GraphDef& graph) {
    const auto run =
        Transform(transforms, graph, {"--inputs=x", "--outputs=y"});
    EXPECT_THAT(run, Prints(Not(HasSubstr("changes nothing"))));
    return run.exit_code == 0 ? folder.ReadGraphFile("out.pb") : GraphDef();
  }

  // Fetches y with x = random values of this shape, or without x.
  static Tensor Y(const GraphDef& graph, const std::vector<int>& x_shape) {
    std::vector<std::pair<std::string, Tensor>> feeds;
    if (!x_shape.empty()) feeds.emplace_back("x", RandomTensor(x_shape));
    return MustRunGraph(graph, feeds, {"y"})[0];
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

// Returns x [?,4] · weights [4,3] by way of `between` -> y.
GraphDef MatMulGraph(const std::string& more = "") {
  return GraphFromText(absl::StrCat(
      Placeholder("x", {-1, 4}), FloatConst("w", {4, 3}, RandomValues(12)),
      Node("identity", "Identity", {"w"}, {kFloat}),
      Node("y", "MatMul", {"x", "identity"}, {kFloat}), more));
}

const std::vector<int> kMatMulInput = {5, 4};

std::string Conv(const std::string& name, const std::string& input,
                 const std::string& weights, const std::string& padding) {
  return absl::Substitute(
      "$0 = Conv2D($1, $2) T=float padding='$3' strides=[1,1,1,1]\n", name,
      input, weights, padding);
}

// Returns x [?,8,8,2], through `before` -> "padded", then a 3x3 convolution ->
// y.
GraphDef ConvGraph(const std::string& before) {
  return GraphFromText(
      absl::StrCat(Placeholder("x", {-1, 8, 8, 2}),
                   FloatConst("w", {3, 3, 2, 2}, RandomValues(36)), before,
                   Conv("y", "padded", "w", "VALID")));
}

const std::vector<int> kConvInput = {2, 8, 8, 2};
const std::vector<int> kOneConvInput = {1, 8, 8, 2};

std::string MirrorPad(const std::string& input) {
  return absl::Substitute(R"(
    pads = int32<4,2>{0,0,1,1,1,1,0,0}
    padded = MirrorPad($0, pads) T=float Tpaddings=int32 mode='REFLECT'
  )",
                          input);
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
  const GraphDef graph = GraphFromText(R"(
    x = Placeholder dtype=float shape=<?,4>
    axis = int32{1}
    y = ConcatV2(x, x, axis) T=float N=2 Tidx=int32
  )");
  const GraphDef after =
      ApplyKeepingY("backport_concatv2", graph, kMatMulInput, 0);
  EXPECT_EQ(NodeNamed(after, "y").op(), "Concat");
  EXPECT_THAT(NodeNamed(after, "y").input(), ElementsAre("axis", "x", "x"));
}

TEST_F(StockTransform, BackportTensorArrayV3) {
  const GraphDef graph = GraphFromText(R"(
    x = Placeholder dtype=float shape=<4>
    size = int32{1}
    index = int32{0}
    array = TensorArrayV3(size) dtype=float
    write = TensorArrayWriteV3(array, index, x, array:1) T=float
    y = TensorArrayReadV3(array, index, write) dtype=float
    versions { producer: 20 }
  )");
  const GraphDef after =
      ApplyKeepingY("backport_tensor_array_v3", graph, {4}, 0);
  EXPECT_EQ(NodeNamed(after, "array").op(), "TensorArrayV2");
  EXPECT_EQ(NodeNamed(after, "y").op(), "TensorArrayReadV2");
}

TEST_F(StockTransform, FlattenAtrousConv) {
  // The pads make the output as large as the input.
  const GraphDef graph = GraphFromText(
      absl::StrCat(FloatConst("w", {3, 3, 2, 2}, RandomValues(36)),
                   Conv("conv", "space", "w", "VALID"), R"(
    x = Placeholder dtype=float shape=<?,8,8,2>
    block = int32<2>{2,2}
    zeros = int32<2,2>{0,0,0,0}
    pads = int32<2,2>{2,2,2,2}
    space = SpaceToBatchND(x, block, pads) T=float Tblock_shape=int32
        Tpaddings=int32
    y = BatchToSpaceND(conv, block, zeros) T=float Tblock_shape=int32
        Tcrops=int32
  )"));
  const GraphDef after = ApplyKeepingY(
      "add_default_attributes flatten_atrous_conv", graph, kConvInput);
  EXPECT_EQ(NodesOf(after, "SpaceToBatchND").size(), 0);
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
  EXPECT_EQ(Transform("fold_batch_norms", graph).error,
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
  EXPECT_EQ(NodesOf(after, "Const").size(), 1);
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
  EXPECT_EQ(NodesOf(after, "FusedBatchNorm").size(), 0);
  EXPECT_EQ(NodeNamed(after, "y").op(), "BiasAdd");
}

TEST_F(StockTransform, FreezeRequantizationRanges) {
  ASSERT_OK_AND_ASSIGN(const auto graph,
                       ReadGraph("tests/data/dynamic_classifier.pbtxt"));
  const GraphDef after = Apply(
      absl::StrCat(
          "stock:freeze_requantization_ranges(min_max_log_file=\"",
          std::filesystem::absolute("tests/data/calibration_log.txt").string(),
          "\")"),
      graph);
  EXPECT_EQ(NodesOf(after, "RequantizationRange").size(), 0);
  EXPECT_TRUE(
      HasNode(after, "hidden/MatMul_eightbit_requant_range/frozen_min"));
}

TEST_F(StockTransform, FusePadAndConv) {
  const GraphDef after = ApplyKeepingY(
      "fuse_pad_and_conv", ConvGraph(MirrorPad("x")), kOneConvInput);
  EXPECT_EQ(NodeNamed(after, "y").op(), "FusedPadConv2D");
  EXPECT_EQ(NodesOf(after, "MirrorPad").size(), 0);
}

TEST_F(StockTransform, FuseResizeAndConv) {
  const GraphDef after =
      ApplyKeepingY("add_default_attributes fuse_resize_and_conv",
                    ConvGraph(ResizeBilinear("padded")), kOneConvInput);
  EXPECT_EQ(NodeNamed(after, "y").op(), "FusedResizeAndPadConv2D");
  EXPECT_EQ(NodesOf(after, "ResizeBilinear").size(), 0);
}

TEST_F(StockTransform, FuseResizePadAndConv) {
  const GraphDef after = ApplyKeepingY(
      "add_default_attributes fuse_resize_pad_and_conv",
      ConvGraph(absl::StrCat(ResizeBilinear("resized"), MirrorPad("resized"))),
      kOneConvInput);
  EXPECT_EQ(NodeNamed(after, "y").op(), "FusedResizeAndPadConv2D");
  EXPECT_EQ(NodesOf(after, "MirrorPad").size(), 0);
}

// If this fails, TensorFlow's kernel has been mended: drop the warning from
// stock_specs.cc.
TEST_F(StockTransform, FusedConvolutionsAreWrongForBatchesAndSaySo) {
  const GraphDef graph = ConvGraph(MirrorPad("x"));
  EXPECT_THAT(
      Transform("fuse_pad_and_conv", graph),
      Exits(0,
            "transform_graph: warning: fuse_pad_and_conv: the fused op's "
            "kernel computes only the first record of a batch right; feed the "
            "graph one record at a time\n"));
  const Tensor expected = Y(graph, kConvInput);
  const Tensor actual = Y(folder.ReadGraphFile("out.pb"), kConvInput);
  const int64_t record = expected.NumElements() / 2;
  EXPECT_NEAR(actual.flat<float>()(0), expected.flat<float>()(0), 1e-5f);
  EXPECT_GT(
      std::abs(actual.flat<float>()(record) - expected.flat<float>()(record)),
      1e-3f);
}

// Returns x -> `op` that calls a function -> "call" -> y.
GraphDef CallGraph(const std::string& op) {
  return GraphFromText(absl::Substitute(R"(
    x = Placeholder dtype=float shape=<?,4>
    call = $0(x) Tin=[float] Tout=[float] f=@square_of_relu
    y = Identity(call) T=float
    function square_of_relu(a) -> (b=square:y:0) {
      relu = Relu(a) T=float
      square = Square(relu:activations:0) T=float
    }
    versions { producer: 1205 }
  )",
                                        op));
}

TEST_F(StockTransform, InlinePartitionedCall) {
  const GraphDef after = ApplyKeepingY(
      "inline_partitionedcall", CallGraph("PartitionedCall"), kMatMulInput, 0);
  EXPECT_EQ(NodesOf(after, "PartitionedCall").size(), 0);
  EXPECT_EQ(NodesOf(after, "Square").size(), 1);
  EXPECT_EQ(after.library().function_size(), 1);
}

TEST_F(StockTransform, InlinePartitionedCallLeavesStatefulCalls) {
  EXPECT_THAT(
      Transform("inline_partitionedcall", CallGraph("StatefulPartitionedCall")),
      Prints("inline_partitionedcall: changes nothing\n"));
}

TEST_F(StockTransform, InlinePartitionedCallTakesAnOutputAwayAndSaysSo) {
  EXPECT_EQ(Transform("inline_partitionedcall", CallGraph("PartitionedCall"),
                      {"--outputs=call"})
                .error,
            "transform_graph: warning: inline_partitionedcall: the output "
            "\"call\" is no longer in the graph\n");
}

TEST_F(StockTransform, InsertLogging) {
  const GraphDef after =
      ApplyKeepingY("stock:insert_logging(op=Identity, show_name=true)",
                    MatMulGraph(), kMatMulInput, 0);
  EXPECT_EQ(NodesOf(after, "Print").size(), 1);
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
  EXPECT_EQ(NodesOf(after, "Const").size(), 2);
  EXPECT_EQ(NodesOf(after, "Add").size(), 2);
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
  EXPECT_EQ(NodesOf(after, "MatMul").size(), 0);
  EXPECT_EQ(NodesOf(after, "QuantizedMatMul").size(), 1);
}

TEST_F(StockTransform, QuantizeNodesLeavesTheOpsItIsTold) {
  const GraphDef after =
      Apply("quantize_nodes(ignore_op=MatMul, ignore_op=Relu6)",
            GraphFromText(FloatConst("w", {4, 3}, RandomValues(12)) + R"(
    x = Placeholder dtype=float shape=<?,4>
    product = MatMul(x, w) T=float transpose_a=false transpose_b=false
    relu = Relu(product) T=float
    y = Relu6(relu) T=float
  )"));
  EXPECT_EQ(NodesOf(after, "MatMul").size(), 1);
  EXPECT_EQ(NodesOf(after, "QuantizedRelu").size(), 1);
  EXPECT_EQ(NodesOf(after, "Relu6").size(), 1);
}

TEST_F(StockTransform, QuantizeWeights) {
  const GraphDef after = ApplyKeepingY("quantize_weights(minimum_size=12)",
                                       MatMulGraph(), kMatMulInput, 0.1f);
  EXPECT_EQ(NodesOf(after, "Dequantize").size(), 1);
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
  const GraphDef graph = GraphFromText(FloatConst("table", {64, 1}, table) + R"(
    table/read = Identity(table) T=float
    indices = int64<3>{40,7,3}
    y = Gather(table/read, indices) Tparams=float Tindices=int64
  )");
  ASSERT_THAT(Transform("sparsify_gather(group_init_node=init)", graph,
                        {"--outputs=y"}),
              Exits(0));
  const GraphDef after = folder.ReadGraphFile("out.pb");
  EXPECT_EQ(NodesOf(after, "Gather").size(), 0);
  EXPECT_EQ(NodesOf(after, "LookupTableFind").size(), 1);
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
  EXPECT_THAT(Transform("strip_unused_nodes(type=float, shape=\"4,3\")",
                        MatMulGraph(), {"--inputs=x,identity", "--outputs=y"}),
              Exits(0));
  const GraphDef after = folder.ReadGraphFile("out.pb");
  EXPECT_EQ(NodeNamed(after, "identity").op(), "Placeholder");
  EXPECT_FALSE(HasNode(after, "w"));
}

}  // namespace
}  // namespace requant::stock_transforms_test
