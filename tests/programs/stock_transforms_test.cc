// Tests each of TensorFlow's stock transforms through transform_graph, on a
// graph that it changes. If the result must stay the same, both graphs are run.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>

#include "absl/strings/substitute.h"
#include "graph/graph_io.h"
#include "tests/support/program_runs.h"
#include "transforms/testing/testing.h"

namespace requant::stock_transforms_test {
namespace {

using Shape = std::vector<int>;

Tensor RandomTensor(const Shape& shape) {
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

// Returns a constant of random values.
std::string RandomConst(const std::string& name, const Shape& shape) {
  return FloatConst(name, shape, ValuesOf(RandomTensor(shape)));
}

// Returns random values of x for this many records.
Tensor RandomX(const GraphDef& graph, int records = 1) {
  Shape shape;
  for (const auto& dim :
       NodeNamed(graph, "x").attr().at("shape").shape().dim()) {
    shape.push_back(dim.size() < 0 ? records : dim.size());
  }
  return RandomTensor(shape);
}

Tensor Y(const GraphDef& graph, const Tensor& x) {
  return MustRunGraph(graph, {{"x", x}}, {"y"})[0];
}

float Difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  if (a.shape() != b.shape()) return INFINITY;
  float difference = 0;
  for (int64_t i = 0; i < a.NumElements(); ++i) {
    difference =
        std::max(difference, std::abs(a.flat<float>()(i) - b.flat<float>()(i)));
  }
  return difference;
}

// x [?,4] · w [4,3] -> y, with w read through an Identity.
const std::string kMatMul = RandomConst("w", {4, 3}) + R"(
  x = Placeholder dtype=float shape=<?,4>
  identity = Identity(w) T=float
  y = MatMul(x, identity) T=float
)";

// x [?,8,8,2] and the weights of a 3x3 convolution; then "padded" -> y.
const std::string kConvWeights = RandomConst("w", {3, 3, 2, 2}) + R"(
  x = Placeholder dtype=float shape=<?,8,8,2>
)";
const std::string kConv = kConvWeights + R"(
  y = Conv2D(padded, w) T=float padding='VALID' strides=[1,1,1,1]
)";

std::string MirrorPad(const std::string& input) {
  return absl::Substitute(R"(
    pads = int32<4,2>{0,0,1,1,1,1,0,0}
    padded = MirrorPad($0, pads) T=float Tpaddings=int32 mode='REFLECT'
  )",
                          input);
}

std::string ResizeBilinear(const std::string& name) {
  return absl::Substitute(
      "size = int32<2>{12,12}; $0 = ResizeBilinear(x, size) T=float\n", name);
}

// Returns x -> `op` that calls a function -> "call" -> y.
std::string CallGraph(const std::string& op) {
  return absl::Substitute(R"(
    x = Placeholder dtype=float shape=<?,4>
    call = $0(x) Tin=[float] Tout=[float] f=@square_of_relu
    y = Identity(call) T=float
    function square_of_relu(a) -> (b=square:y:0) {
      relu = Relu(a) T=float
      square = Square(relu:activations:0) T=float
    }
    versions { producer: 1205 }
  )",
                          op);
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

  // Expects transforms to change y by `tolerance` at most, and to give a graph
  // with these numbers of nodes by op ("" for all) and the nodes `has`.
  void ExpectSameY(const std::string& transforms, float tolerance,
                   const std::vector<std::pair<std::string, int>>& counts,
                   const std::string& has, const std::string& text) {
    SCOPED_TRACE(transforms);
    const GraphDef graph = GraphFromText(text);
    const GraphDef after = Apply(transforms, graph);
    for (const auto& [op, count] : counts) {
      EXPECT_THAT(NodesOf(after, op), SizeIs(count)) << op;
    }
    EXPECT_THAT(after, HasNodes(has));
    const Tensor x = RandomX(graph);
    EXPECT_LE(Difference(Y(after, x), Y(graph, x)), tolerance);
  }
};

TEST_F(StockTransform, AddsDefaultAttributes) {
  ExpectSameY("add_default_attributes", 0, {},
              "y = MatMul(x, identity) transpose_a=false", kMatMul);
}

TEST_F(StockTransform, Backports) {
  ExpectSameY("backport_concatv2", 0, {}, "y = Concat(axis, x, x)", R"(
    x = Placeholder dtype=float shape=<?,4>
    axis = int32{1}
    y = ConcatV2(x, x, axis) T=float N=2 Tidx=int32
  )");
  ExpectSameY("backport_tensor_array_v3", 0,
              {{"TensorArrayV2", 1}, {"TensorArrayReadV2", 1}}, "", R"(
    x = Placeholder dtype=float shape=<4>
    size = int32{1}
    index = int32{0}
    array = TensorArrayV3(size) dtype=float
    write = TensorArrayWriteV3(array, index, x, array:1) T=float
    y = TensorArrayReadV3(array, index, write) dtype=float
    versions { producer: 20 }
  )");
}

TEST_F(StockTransform, Folds) {
  ExpectSameY("fold_batch_norms", 1e-5f, {{"MatMul", 1}, {"Mul", 0}}, "",
              RandomConst("w", {4, 3}) + R"(
    x = Placeholder dtype=float shape=<?,4>
    factors = float<3>{2,-1,0.5}
    matmul = MatMul(x, w) T=float
    y = Mul(matmul, factors) T=float
  )");
  ExpectSameY("fold_constants", 1e-5f, {{"", 3}, {"Const", 1}}, "", R"(
    x = Placeholder dtype=float shape=<?,4>
    a = float<4>{0.3,-1.2,2.5,0.7}
    b = Mul(a, a) T=float
    c = Add(b, a) T=float
    y = Add(x, c) T=float
  )");
  ExpectSameY("fold_old_batch_norms", 1e-4f,
              {{"FusedBatchNorm", 0}, {"BiasAdd", 1}}, "", kConvWeights + R"(
    scale = float<2>{2,3}
    offset = float<2>{-1,1}
    mean = float<2>{0.25,0.5}
    variance = float<2>{4,0.5}
    conv = Conv2D(x, w) T=float padding='SAME' strides=[1,1,1,1]
    y = FusedBatchNorm(conv, scale, offset, mean, variance) T=float
        epsilon=0.001 is_training=false
  )");
  ExpectSameY("merge_duplicate_nodes", 0, {{"Const", 2}, {"Add", 2}}, "", R"(
    x = Placeholder dtype=float shape=<?,4>
    a = float<4>{1,2,3,4}
    b = float<4>{1,2,3,4}
    c = float<4>{1,2,3,5}
    xa = Add(x, a) T=float
    xb = Add(x, b) T=float
    xc = Add(x, c) T=float
    y = AddN(xa, xb, xc) N=3 T=float
  )");
}

TEST_F(StockTransform, FusesConvolutions) {
  // The padding makes the output as large as the input.
  ExpectSameY("add_default_attributes flatten_atrous_conv", 1e-5f,
              {{"SpaceToBatchND", 0}, {"Conv2D", 1}}, "", kConvWeights + R"(
    block = int32<2>{2,2}
    zeros = int32<2,2>{0,0,0,0}
    pads = int32<2,2>{2,2,2,2}
    space = SpaceToBatchND(x, block, pads) T=float Tblock_shape=int32
        Tpaddings=int32
    conv = Conv2D(space, w) T=float padding='VALID' strides=[1,1,1,1]
    y = BatchToSpaceND(conv, block, zeros) T=float Tblock_shape=int32
        Tcrops=int32
  )");
  ExpectSameY("fuse_pad_and_conv", 1e-5f,
              {{"FusedPadConv2D", 1}, {"MirrorPad", 0}}, "",
              kConv + MirrorPad("x"));
  ExpectSameY("add_default_attributes fuse_resize_and_conv", 1e-5f,
              {{"FusedResizeAndPadConv2D", 1}, {"ResizeBilinear", 0}}, "",
              kConv + ResizeBilinear("padded"));
  ExpectSameY("add_default_attributes fuse_resize_pad_and_conv", 1e-5f,
              {{"FusedResizeAndPadConv2D", 1}, {"MirrorPad", 0}}, "",
              kConv + ResizeBilinear("resized") + MirrorPad("resized"));
}

TEST_F(StockTransform, InlinesPartitionedCalls) {
  ExpectSameY("inline_partitionedcall", 0,
              {{"PartitionedCall", 0}, {"Square", 1}}, "",
              CallGraph("PartitionedCall"));
}

// An eight-bit product is near the float one: the step of the inputs, like that
// of the weights, is their range divided by 255.
TEST_F(StockTransform, Quantizes) {
  ExpectSameY(
      "remove_nodes(op=Identity) add_default_attributes "
      "quantize_weights(minimum_size=1) quantize_nodes",
      0.1f, {{"MatMul", 0}, {"QuantizedMatMul", 1}}, "", kMatMul);
  ExpectSameY("quantize_nodes(ignore_op=MatMul, ignore_op=Relu6)", 0.1f,
              {{"MatMul", 1}, {"QuantizedRelu", 1}, {"Relu6", 1}}, "",
              RandomConst("w", {4, 3}) + R"(
    x = Placeholder dtype=float shape=<?,4>
    product = MatMul(x, w) T=float transpose_a=false transpose_b=false
    relu = Relu(product) T=float
    y = Relu6(relu) T=float
  )");
  ExpectSameY("quantize_weights(minimum_size=12)", 0.1f, {{"Dequantize", 1}},
              "w_quantized_const = Const dtype=quint8", kMatMul);
  ExpectSameY("round_weights(num_steps=256)", 0.2f, {}, "",
              RandomConst("w", {8, 8}) + R"(
    x = Placeholder dtype=float shape=<?,8>
    y = MatMul(x, w) T=float
  )");
}

TEST_F(StockTransform, AddsAndRemovesNodes) {
  ExpectSameY("stock:insert_logging(op=Identity, show_name=true)", 0,
              {{"Print", 1}}, "", kMatMul);
  ExpectSameY("remove_nodes(op=Identity)", 0, {}, "y = MatMul(x, w)", kMatMul);
  ExpectSameY("strip_unused_nodes", 0, {{"", 4}}, "", kMatMul + R"(
    loss = Relu(y) T=float
    train = NoOp(^loss)
  )");
}

TEST_F(StockTransform, RemovesControlDependencies) {
  ExpectSameY("remove_control_dependencies", 0, {}, "y = Neg(x)", R"(
    x = Placeholder dtype=float shape=<?,4>
    w = float{1}
    y = Neg(x, ^w) T=float
  )");
}

TEST_F(StockTransform, RemovesAndRenamesAttributes) {
  const std::string graph = R"(
    x = Placeholder dtype=float shape=<?,4> _old=7
    y = Neg(x) T=float _old=7
  )";
  ExpectSameY("remove_attribute(attribute_name=_old, op_name=Neg)", 0, {},
              "x = Placeholder _old=7", graph);
  EXPECT_THAT(folder.ReadGraphFile("out.pb"),
              Not(HasNodes("y = Neg(x) _old=7")));
  ExpectSameY(
      "rename_attribute(old_attribute_name=_old, new_attribute_name=_new)", 0,
      {}, "y = Neg(x) _new=7", graph);
}

TEST_F(StockTransform, Renames) {
  ExpectSameY("obfuscate_names", 0, {{"Identity", 1}}, "x = Placeholder",
              kMatMul);
  EXPECT_FALSE(HasNode(folder.ReadGraphFile("out.pb"), "identity"));
  ExpectSameY("rename_node(old_node_name=w, new_node_name=weights)", 0, {},
              "identity = Identity(weights)", kMatMul);
  EXPECT_THAT(Apply("rename_op(old_op_name=Identity, new_op_name=Neg)",
                    GraphFromText(kMatMul)),
              HasNodes("identity = Neg(w)"));
}

TEST_F(StockTransform, SparsifiesAGather) {
  const GraphDef after =
      Apply("sparsify_gather(group_init_node=init)", GraphFromText(R"(
    table = float<64,1>{0,0,0,1.5,0}
    table/read = Identity(table) T=float
    indices = int64<3>{40,7,3}
    y = Gather(table/read, indices) Tparams=float Tindices=int64
  )"));
  EXPECT_THAT(NodesOf(after, "Gather"), IsEmpty());
  EXPECT_THAT(NodesOf(after, "LookupTableFind"), SizeIs(1));
  EXPECT_THAT(after, HasNodes("init = NoOp(^table/InitializeTable)"));
}

TEST_F(StockTransform, SetsAndRemovesDevices) {
  GraphDef graph = GraphFromText(kMatMul);
  MutableNode(&graph, "x")->set_device("/device:CPU:0");
  const GraphDef set =
      Apply("set_device(device=\"/cpu:0\", if_default=true)", graph);
  EXPECT_EQ(NodeNamed(set, "x").device(), "/device:CPU:0");
  EXPECT_EQ(NodeNamed(set, "y").device(), "/cpu:0");
  EXPECT_EQ(NodeNamed(Apply("remove_device", graph), "x").device(), "");
}

TEST_F(StockTransform, SortsByExecutionOrder) {
  GraphDef graph = GraphFromText(kMatMul);
  graph.mutable_node()->SwapElements(0, 3);
  EXPECT_EQ(Apply("sort_by_execution_order", graph).node(3).name(), "y");
}

// If this fails, TensorFlow's transform has been fixed: drop the warning from
// stock_specs.cc.
TEST_F(StockTransform, FoldBatchNormsIsWrongForTransposedWeightsAndSaysSo) {
  const GraphDef graph = GraphFromText(RandomConst("w", {4, 4}) + R"(
    x = Placeholder dtype=float shape=<?,4>
    factors = float<4>{2,-1,0.5,8}
    matmul = MatMul(x, w) T=float transpose_b=true
    y = Mul(matmul, factors) T=float
  )");
  EXPECT_EQ(Transform("fold_batch_norms", graph).error,
            "transform_graph: warning: fold_batch_norms: \"matmul\" is a "
            "MatMul with transpose_b; if a multiplication was folded into it, "
            "its results are wrong now\n");
  const Tensor x = RandomX(graph);
  EXPECT_GT(Difference(Y(graph, x), Y(folder.ReadGraphFile("out.pb"), x)),
            1e-3f);
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

// If this fails, TensorFlow's kernel has been fixed: drop the warning from
// stock_specs.cc.
TEST_F(StockTransform, FusedConvolutionsAreWrongForBatchesAndSaySo) {
  const GraphDef graph = GraphFromText(kConv + MirrorPad("x"));
  EXPECT_THAT(
      Transform("fuse_pad_and_conv", graph),
      Exits(0,
            "transform_graph: warning: fuse_pad_and_conv: the fused op's "
            "kernel computes only the first record of a batch right; feed the "
            "graph one record at a time\n"));
  const Tensor x = RandomX(graph, /*records=*/2);
  const Tensor expected = Y(graph, x);
  const Tensor actual = Y(folder.ReadGraphFile("out.pb"), x);
  const int64_t record = expected.NumElements() / 2;
  EXPECT_NEAR(actual.flat<float>()(0), expected.flat<float>()(0), 1e-5f);
  EXPECT_GT(
      std::abs(actual.flat<float>()(record) - expected.flat<float>()(record)),
      1e-3f);
}

TEST_F(StockTransform, InlinePartitionedCallLeavesStatefulCalls) {
  EXPECT_THAT(Transform("inline_partitionedcall",
                        GraphFromText(CallGraph("StatefulPartitionedCall"))),
              Prints("inline_partitionedcall: changes nothing\n"));
}

TEST_F(StockTransform, InlinePartitionedCallTakesAnOutputAwayAndSaysSo) {
  EXPECT_EQ(
      Transform("inline_partitionedcall",
                GraphFromText(CallGraph("PartitionedCall")), {"--outputs=call"})
          .error,
      "transform_graph: warning: inline_partitionedcall: the output "
      "\"call\" is no longer in the graph\n");
}

TEST_F(StockTransform, StripUnusedNodesMakesPlaceholdersOfInputs) {
  EXPECT_THAT(
      Transform("strip_unused_nodes(type=float, shape=\"4,3\")",
                GraphFromText(kMatMul), {"--inputs=x,identity", "--outputs=y"}),
      Exits(0));
  const GraphDef after = folder.ReadGraphFile("out.pb");
  EXPECT_EQ(NodeNamed(after, "identity").op(), "Placeholder");
  EXPECT_FALSE(HasNode(after, "w"));
}

}  // namespace
}  // namespace requant::stock_transforms_test
