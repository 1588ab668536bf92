#include "transforms/eightbit/expose_matmuls.h"

#include <cstdint>
#include <random>

#include "absl/strings/str_replace.h"
#include "graph/const_node.h"
#include "transforms/layers/plain_product.h"
#include "transforms/testing/testing.h"

namespace requant::expose_matmuls_test {
namespace {

using tensorflow::DT_FLOAT;
using testing::FloatNear;
using testing::Pointwise;

Tensor Random(std::vector<int64_t> shape, int seed) {
  Tensor tensor(DT_FLOAT, tensorflow::TensorShape(shape));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  auto flat = tensor.flat<float>();
  for (int64_t i = 0; i < flat.size(); ++i) flat(i) = value(random);
  return tensor;
}

// Returns a graph of `lines` with a Placeholder "x" and a constant "w".
GraphDef GraphWithWeights(const std::vector<int64_t>& weights,
                          const std::string& lines) {
  GraphDef graph;
  AddNodes("x = Placeholder dtype=float", &graph);
  *graph.add_node() = MakeConst("w", Random(weights, 1));
  AddNodes(lines, &graph);
  return graph;
}

GraphDef Exposed(const GraphDef& graph, const std::string& output = "y",
                 const std::string& parameters = "") {
  return MustTransform("expose_matmuls" + parameters, graph, {"x"}, {output})
      .graph;
}

// Expects both graphs to compute the same from an `x` of each of the shapes.
void ExpectSame(const GraphDef& a, const GraphDef& b,
                const std::vector<std::vector<int64_t>>& shapes,
                const std::string& output = "y") {
  for (const std::vector<int64_t>& shape : shapes) {
    const Tensor x = Random(shape, 2);
    const Tensor expected = MustRunGraph(a, {{"x", x}}, {output})[0];
    const Tensor actual = MustRunGraph(b, {{"x", x}}, {output})[0];
    EXPECT_EQ(actual.shape(), expected.shape());
    EXPECT_THAT(ValuesOf(actual),
                Pointwise(FloatNear(1e-4), ValuesOf(expected)));
  }
}

struct ProductCase {
  std::string product;
  std::vector<int64_t> weights;
  std::vector<std::vector<int64_t>> shapes;
};

TEST(ExposeMatMuls, TurnsPlainProductsOfAnyBatchAndLengthIntoMatMuls) {
  for (const ProductCase& test : std::vector<ProductCase>{
           {"BatchMatMulV2(x, w) T=float", {3, 4}, {{2, 5, 3}, {1, 3}}},
           {"BatchMatMulV2(x, w) T=float adj_y=true", {4, 3}, {{2, 6, 5, 3}}},
           {"BatchMatMulV3(x, w) Ta=float Tb=float Tout=float",
            {3, 4},
            {{2, 5, 3}}},
           {"BatchMatMul(x, w) T=float", {3, 4}, {{5, 3}}},
           {"Einsum(x, w) T=float N=2 equation='abc,cd->abd'",
            {3, 4},
            {{2, 5, 3}, {0, 5, 3}}},
           {"Einsum(x, w) T=float N=2 equation='abc,dc->abd'",
            {4, 3},
            {{2, 5, 3}}},
           {"Einsum(x, w) T=float N=2 equation='abc,cde->abde'",
            {3, 2, 4},
            {{2, 5, 3}, {7, 1, 3}}},
           {"Einsum(x, w) T=float N=2 equation='abcd,cde->abe'",
            {3, 2, 4},
            {{2, 5, 3, 2}}},
           {"Einsum(x, w) T=float N=2 equation='acbe,ecd->abd'",
            {3, 2, 4},
            {{5, 2, 6, 3}}},
           {"Einsum(x, w) T=float N=2 equation='abc,edc->abde'",
            {2, 4, 3},
            {{2, 5, 3}}},
           {"Einsum(w, x) T=float N=2 equation='cd,abc->abd'",
            {3, 4},
            {{2, 5, 3}}},
           {"Einsum(x, w) T=float N=2 equation='...x,xy->...y'",
            {3, 4},
            {{2, 5, 3}, {3}, {2, 2, 2, 3}}},
           {"Einsum(x, w) T=float N=2 equation='ab,bc->ac'", {3, 4}, {{2, 3}}},
           {"Einsum(x, w) T=float N=2 equation='ba,bc->ac'", {3, 4}, {{3, 2}}},
           {"Einsum(x, w) T=float N=2 equation='ab,bcd->acd'",
            {3, 2, 4},
            {{5, 3}}},
           {"Einsum(x, w) T=float N=2 equation='abc,c->ab'", {3}, {{2, 5, 3}}},
       }) {
    SCOPED_TRACE(test.product);
    const GraphDef graph =
        GraphWithWeights(test.weights, "y = " + test.product);
    const GraphDef exposed = Exposed(graph);
    EXPECT_THAT(NodesOf(exposed, "MatMul"), SizeIs(1));
    EXPECT_THAT(NodesOf(exposed, "Einsum"), IsEmpty());
    EXPECT_THAT(NodesOf(exposed, "BatchMatMulV2"), IsEmpty());
    ExpectSame(graph, exposed, test.shapes);
  }
}

TEST(ExposeMatMuls, LeavesProductsThatAreNotPlainAsTheyAre) {
  const std::string einsum = "Einsum(x, w) T=float N=2 equation=";
  for (const auto& [product, weights] :
       std::vector<std::pair<std::string, std::vector<int64_t>>>{
           {"BatchMatMulV2(x, w) T=float adj_x=true", {3, 4}},
           {"BatchMatMulV2(x, w) T=float", {2, 3, 4}},
           {"BatchMatMulV2(w, x) T=float", {3, 4}},
           {"BatchMatMulV2(x, x) T=float", {3, 4}},
           {"BatchMatMulV2(w, w) T=float", {4, 4}},
           {einsum + "'abc,acd->abd'", {2, 3, 4}},
           {einsum + "'abc,cd->dab'", {3, 4}},
           {einsum + "'abc,cd->abcd'", {3, 4}},
           {einsum + "'abc,d->abcd'", {4}},
           {einsum + "'abc,cd->ab'", {3, 4}},
           {einsum + "'abc,cd->ad'", {3, 4}},
           {einsum + "'c,cd->d'", {3, 4}},
           {einsum + "'c...,cd->...d'", {3, 4}},
           {einsum + "'aac,cd->ad'", {3, 4}},
           {einsum + "'abc,cde->abd'", {3, 4}},
           {einsum + "'abc'", {3, 4}},
           {"Einsum(x) T=float N=1 equation='ab->ba'", {3, 4}},
           {"Einsum(x, w, x) T=float N=3 equation='ab,bc,ab->ac'", {3, 4}},
           {"BatchMatMulV2(x, w) T=double", {3, 4}},
           {"BatchMatMulV2(x, w) T=float", {0, 4}},
       }) {
    const GraphDef graph = GraphWithWeights(weights, "y = " + product);
    EXPECT_EQ(LinesOf(Exposed(graph)), LinesOf(graph)) << product;
  }
}

TEST(ExposeMatMuls, SaysWhyAProductIsNotPlain) {
  for (const auto& [product, reason] :
       std::vector<std::pair<std::string, std::string>>{
           {"BatchMatMulV2(x, x) T=float", "it multiplies two activations"},
           {"BatchMatMulV2(w, x) T=float", "its constant is the first factor"},
           {"BatchMatMulV2(x, w) T=float",
            "its weights have the shape [2,3,4]"},
           {"BatchMatMulV2(x, w) T=half", "it is not float32"},
           {"BatchMatMulV2(x) T=float", "it does not have two inputs"},
           {"BatchMatMulV2(x, w) T=float adj_x=true",
            "it transposes its first input"},
           {"Einsum(x, w) T=float equation='abc,acd->abd'",
            "it is no plain product with a matrix"},
           {"_FusedMatMul(x, w, x, x) T=float fused_ops=['BiasAdd','Add']",
            "what is fused with it has no kernel of its own"}}) {
    GraphDef graph = GraphWithWeights({2, 3, 4}, "y = " + product);
    const GraphIndex index = GraphIndex::Create(&graph).value();
    PlainProduct read;
    EXPECT_EQ(ReadPlainProduct(index, index.Find("y"), &read), reason);
  }
}

TEST(ExposeMatMuls, SplitsFusedMatMuls) {
  for (const std::string fused :
       {"'BiasAdd'", "'BiasAdd','Relu'", "'BiasAdd','Tanh'"}) {
    const GraphDef graph = GraphWithWeights(
        {4, 3}, absl::StrCat("b = float<4>{1,-1,2,0.5}\n"
                             "y = _FusedMatMul(x, w, b) T=float num_args=1 "
                             "transpose_b=true fused_ops=[",
                             fused, "]"));
    const GraphDef exposed = Exposed(graph);
    EXPECT_THAT(NodesOf(exposed, "MatMul"), ElementsAre("y/matmul"));
    EXPECT_THAT(NodesOf(exposed, "_FusedMatMul"), IsEmpty());
    ExpectSame(graph, exposed, {{5, 3}});
  }
}

// Returns the layers that are found in the exposed graph, as
// "matmul+bias+relu".
std::vector<std::string> LayersOf(GraphDef graph, const std::string& output) {
  const GraphIndex index = GraphIndex::Create(&graph).value();
  FloatLayerOptions options;
  options.outputs = {output};
  std::vector<std::string> layers;
  for (const FloatLayer& layer : FindFloatLayers(index, options).layers) {
    layers.push_back(
        absl::StrCat(layer.matmul->name(),
                     layer.bias_add ? "+" + layer.bias_add->name() : "",
                     layer.activation ? "+" + layer.activation->name() : ""));
  }
  return layers;
}

TEST(ExposeMatMuls, MovesBiasAndActivationBeforeTheReshape) {
  for (const std::string bias :
       {"sum = BiasAdd(p, b) T=float", "sum = AddV2(b, p) T=float"}) {
    const GraphDef graph = GraphWithWeights(
        {3, 4}, absl::StrCat("p = BatchMatMulV2(x, w) T=float\n"
                             "b = float<4>{1,-1,2,0.5}\n",
                             bias, "\ny = Relu(sum) T=float"));
    const GraphDef exposed = Exposed(graph);
    EXPECT_THAT(LayersOf(exposed, "y"),
                ElementsAre("p/matmul+sum/rows+y/rows"));
    EXPECT_EQ(NodeNamed(exposed, "y").op(), "Reshape");
    EXPECT_FALSE(HasNode(exposed, "sum"));
    ExpectSame(graph, exposed, {{2, 5, 3}, {7, 1, 3}});
  }
}

TEST(ExposeMatMuls, MovesABiasOfSeveralDimensions) {
  const GraphDef graph = GraphWithWeights({3, 2, 4}, R"(
    p = Einsum(x, w) T=float N=2 equation='abc,cde->abde'
    b = float<2,4>{1,2,3,4,5,6,7,8}
    y = AddV2(p, b) T=float
  )");
  const GraphDef exposed = Exposed(graph);
  EXPECT_THAT(LayersOf(exposed, "y"), ElementsAre("p/matmul+y/rows"));
  ExpectSame(graph, exposed, {{2, 5, 3}});
}

// Returns a dense layer as tf.tensordot makes it.
std::string Tensordot(const std::string& name, const std::string& input,
                      const std::string& weights, int inputs, int outputs) {
  return absl::StrReplaceAll(
      R"(
    $N/shape = Shape($X) T=float out_type=int32
    $N/free = int32<2>{0,1}
    $N/axes = int32<1>{2}
    $N/zero = int32{0}
    $N/dims = GatherV2($N/shape, $N/free, $N/zero) Tparams=int32 Tindices=int32
        Taxis=int32
    $N/order = ConcatV2($N/free, $N/axes, $N/zero) T=int32 Tidx=int32 N=2
    $N/turned = Transpose($X, $N/order) T=float Tperm=int32
    $N/matrix = int32<2>{-1,$I}
    $N/rows = Reshape($N/turned, $N/matrix) T=float Tshape=int32
    $N/matmul = MatMul($N/rows, $W) T=float
    $N/made = int32<1>{$O}
    $N/result = ConcatV2($N/dims, $N/made, $N/zero) T=int32 Tidx=int32 N=2
    $N = Reshape($N/matmul, $N/result) T=float Tshape=int32
  )",
      {{"$N", name},
       {"$X", input},
       {"$W", weights},
       {"$I", absl::StrCat(inputs)},
       {"$O", absl::StrCat(outputs)}});
}

TEST(ExposeMatMuls, JoinsDenseLayersOnSequences) {
  GraphDef graph = GraphWithWeights(
      {3, 4}, absl::StrCat(Tensordot("first", "x", "w", 3, 4), R"(
    b = float<4>{1,-1,2,0.5}
    biased = AddV2(first, b) T=float
    active = Relu(biased) T=float
    v = float<4,2>{1,-1,0.5,2,-2,1,0.25,3}
    c = float<2>{3,-3}
  )",
                           Tensordot("second", "active", "v", 4, 2),
                           "y = AddV2(second, c) T=float"));
  const GraphDef exposed = Exposed(graph);
  EXPECT_THAT(LayersOf(exposed, "y"),
              ElementsAre("first/matmul+biased/rows+active/rows",
                          "second/matmul+y/rows"));
  EXPECT_EQ(NodeNamed(exposed, "second/matmul").input(0), "active/rows");
  EXPECT_FALSE(HasNode(exposed, "second/turned"));
  ExpectSame(graph, exposed, {{2, 5, 3}, {1, 1, 3}});
}

TEST(ExposeMatMuls, LeavesABiasThatMayChangeTheShape) {
  // The last dimension may be 1, so that the sum has more numbers.
  const GraphDef graph = GraphWithWeights({3, 4}, R"(
    p = MatMul(x, w) T=float
    shape = Placeholder dtype=int32
    r = Reshape(p, shape) T=float Tshape=int32
    b = float<4>{1,-1,2,0.5}
    y = AddV2(r, b) T=float
  )");
  EXPECT_EQ(LinesOf(Exposed(graph)), LinesOf(graph));
}

TEST(ExposeMatMuls, SharesTheMatrixOfTheActivation) {
  const GraphDef graph = GraphWithWeights({3, 2, 4}, R"(
    v = float<3,4>{1,2,3,4,5,6,7,8,9,10,11,12}
    query = Einsum(x, w) T=float N=2 equation='abc,cde->abde'
    key = Einsum(x, w) T=float N=2 equation='abc,cde->abde'
    value = Einsum(x, v) T=float N=2 equation='abc,cd->abd'
    s = Sum(query, axes) T=float Tidx=int32
    t = Sum(key, axes) T=float Tidx=int32
    u = Sum(value, more) T=float Tidx=int32
    axes = int32<2>{2,3}
    more = int32<1>{2}
    st = AddV2(s, t) T=float
    y = AddV2(st, u) T=float
  )");
  const GraphDef exposed = Exposed(graph);
  for (const std::string name : {"query", "key", "value"}) {
    EXPECT_EQ(NodeNamed(exposed, name + "/matmul").input(0), "query/rows");
  }
  EXPECT_EQ(NodeNamed(exposed, "key/matmul").input(1), "w/matrix");
  EXPECT_FALSE(HasNode(exposed, "w"));
  ExpectSame(graph, exposed, {{2, 5, 3}});
}

TEST(ExposeMatMuls, LeavesWhatIsExcludedAndWhatOthersRead) {
  const GraphDef graph = GraphWithWeights({3, 4}, R"(
    p = BatchMatMulV2(x, w) T=float
    b = float<4>{1,-1,2,0.5}
    sum = BiasAdd(p, b) T=float
    y = Relu(sum) T=float
  )");
  EXPECT_EQ(LinesOf(Exposed(graph, "y", "(excluded_nodes=p)")), LinesOf(graph));
  EXPECT_EQ(LinesOf(Exposed(graph, "y", "(excluded_ops=BatchMatMulV2)")),
            LinesOf(graph));
  const GraphDef without = Exposed(graph, "y", "(excluded_nodes=sum)");
  EXPECT_THAT(LayersOf(without, "y"), ElementsAre("p/matmul"));
  EXPECT_EQ(NodeNamed(without, "sum").op(), "BiasAdd");
  // An output ends the layer and keeps its name.
  const GraphDef other = Exposed(graph, "sum");
  EXPECT_THAT(LayersOf(other, "sum"), ElementsAre("p/matmul+sum/rows"));
  EXPECT_EQ(NodeNamed(other, "y").input(0), "sum");
  ExpectSame(graph, other, {{2, 5, 3}});
}

TEST(ExposeMatMuls, KeepsControlInputs) {
  const GraphDef graph = GraphWithWeights({3, 4}, R"(
    go = NoOp
    y = BatchMatMulV2(x, w, ^go) T=float
  )");
  EXPECT_THAT(NodeNamed(Exposed(graph), "y/matmul").input(),
              ElementsAre("y/rows", "w", "^go"));
}

}  // namespace
}  // namespace requant::expose_matmuls_test
