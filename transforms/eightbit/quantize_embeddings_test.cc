#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/fuzz_rounds.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/testing/testing.h"

namespace requant::quantize_embeddings_test {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTransform[] = "quantize_embeddings";
constexpr int kRows = 50;
constexpr int kWidth = 8;
constexpr int kBatch = 30;

struct Quantization {
  DataType type = tensorflow::DT_QUINT8;
  std::string mode = "MIN_FIRST";
  float min = -0.3f;
  float max = 0.9f;
};

// Builds graphs around the inputs "ids" (int32 row numbers) and "x" (floats,
// [batch, kWidth]).
class Builder {
 public:
  Builder() {
    Node("ids", "Placeholder", {}, {{"dtype", tensorflow::DT_INT32}});
    Node("x", "Placeholder", {}, {{"dtype", tensorflow::DT_FLOAT}});
    Integer("axis", 1);
    Integer("axis0", 0);
  }

  NodeDef* Node(const std::string& name, const std::string& op,
                const std::vector<std::string>& inputs,
                const std::vector<std::pair<std::string, DataType>>& types) {
    NodeDef* node = graph.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    for (const auto& [attribute, type] : types) {
      (*node->mutable_attr())[attribute].set_type(type);
    }
    return node;
  }
  void Integer(const std::string& name, int32_t value) {
    *graph.add_node() = MakeConst(name, Tensor(value));
  }
  void Integers(const std::string& name, const std::vector<int32_t>& values) {
    Tensor tensor(tensorflow::DT_INT32,
                  TensorShape({static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
    *graph.add_node() = MakeConst(name, tensor);
  }
  void Table(const std::string& name, const TensorShape& shape) {
    *graph.add_node() = MakeConst(name, Floats(shape));
  }
  // A table and a gather of its rows.
  void Lookup(const std::string& name) {
    Table(name + "/table", {kRows, kWidth});
    Gather(name, name + "/table");
  }
  NodeDef* Gather(const std::string& name, const std::string& table) {
    return Node(name, "GatherV2", {table, "ids", "axis0"},
                {{"Tparams", tensorflow::DT_FLOAT},
                 {"Tindices", tensorflow::DT_INT32},
                 {"Taxis", tensorflow::DT_INT32}});
  }
  void Concat(const std::string& name, std::vector<std::string> inputs) {
    const int count = static_cast<int>(inputs.size());
    inputs.push_back("axis");
    NodeDef* node =
        Node(name, "ConcatV2", inputs,
             {{"T", tensorflow::DT_FLOAT}, {"Tidx", tensorflow::DT_INT32}});
    (*node->mutable_attr())["N"].set_i(count);
  }
  void Arrange(const std::string& name, const std::string& op,
               const std::vector<std::string>& inputs) {
    NodeDef* node = Node(name, op, inputs, {{"T", tensorflow::DT_FLOAT}});
    if (op == "Reshape") {
      (*node->mutable_attr())["Tshape"].set_type(tensorflow::DT_INT32);
    } else if (op == "ExpandDims") {
      (*node->mutable_attr())["Tdim"].set_type(tensorflow::DT_INT32);
    } else if (op == "Slice") {
      (*node->mutable_attr())["Index"].set_type(tensorflow::DT_INT32);
    }
  }
  // QuantizeV2 `name` whose outputs "codes", "low" and "high" show.
  NodeDef* Quantize(const std::string& name, const std::string& input,
                    const Quantization& how = {},
                    const std::string& prefix = "") {
    *graph.add_node() = MakeScalarConst(name + "/from", how.min);
    *graph.add_node() = MakeScalarConst(name + "/to", how.max);
    Node(prefix + "codes", "Identity", {name}, {{"T", how.type}});
    Node(prefix + "low", "Identity", {name + ":1"},
         {{"T", tensorflow::DT_FLOAT}});
    Node(prefix + "high", "Identity", {name + ":2"},
         {{"T", tensorflow::DT_FLOAT}});
    NodeDef* node =
        Node(name, "QuantizeV2", {input, name + "/from", name + "/to"},
             {{"T", how.type}});
    (*node->mutable_attr())["mode"].set_s(how.mode);
    (*node->mutable_attr())["round_mode"].set_s(
        how.mode == "SCALED" ? "HALF_TO_EVEN" : "HALF_AWAY_FROM_ZERO");
    return node;
  }
  Tensor Floats(const TensorShape& shape) {
    Tensor tensor(tensorflow::DT_FLOAT, shape);
    std::uniform_real_distribution<float> value(-0.5f, 1.2f);
    auto flat = tensor.flat<float>();
    for (int64_t i = 0; i < flat.size(); ++i) {
      // Every third is half way between two codes of the range [-0.3, 0.9].
      flat(i) = i % 3 > 0 ? value(random_)
                          : -0.3f + (static_cast<float>(i % 255) + 0.5f) *
                                        (1.2f / 255);
    }
    return tensor;
  }

  GraphDef graph;

 private:
  std::mt19937 random_{20261116};
};

// lookup and x -> concat -> quantize.
Builder ConcatGraph(const Quantization& how = {}) {
  Builder builder;
  builder.Lookup("lookup");
  builder.Concat("concat", {"lookup", "x"});
  builder.Quantize("quantize", "concat", how);
  return builder;
}

DataType TypeOf(const GraphDef& graph, const std::string& node,
                const std::string& attribute) {
  const auto& attributes = NodeNamed(graph, node).attr();
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? tensorflow::DT_INVALID
                                   : found->second.type();
}

std::vector<std::string> InputsOf(const GraphDef& graph,
                                  const std::string& node) {
  const auto& inputs = NodeNamed(graph, node).input();
  return {inputs.begin(), inputs.end()};
}

GraphDef Transformed(const GraphDef& graph,
                     const std::vector<std::string>& outputs = {}) {
  TransformRun run = RunTransform(kTransform, graph, {"ids", "x"}, outputs);
  EXPECT_TRUE(run.status.ok()) << run.status;
  return run.graph;
}

std::string Bytes(const GraphDef& graph) {
  const auto bytes = SerializeGraph(graph);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

NodeDef* Mutable(GraphDef* graph, const std::string& name) {
  for (NodeDef& node : *graph->mutable_node()) {
    if (node.name() == name) return &node;
  }
  ADD_FAILURE() << name;
  return nullptr;
}

std::vector<Tensor> Run(const GraphDef& graph,
                        const std::vector<std::string>& fetches) {
  std::mt19937 random(7);
  Tensor ids(tensorflow::DT_INT32, {kBatch});
  std::uniform_int_distribution<int> row(0, kRows - 1);
  for (int i = 0; i < kBatch; ++i) ids.flat<int32_t>()(i) = row(random);
  const Tensor x = Builder().Floats({kBatch, kWidth});
  std::vector<std::pair<std::string, Tensor>> feeds = {{"ids", ids}, {"x", x}};
  const auto run = RunGraph(graph, feeds, fetches);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *run : std::vector<Tensor>();
}

// Whether the two graphs give the same bits.
void ExpectSameBits(const GraphDef& before, const GraphDef& after,
                    const std::vector<std::string>& fetches = {"codes", "low",
                                                               "high"}) {
  const std::vector<Tensor> expected = Run(before, fetches);
  const std::vector<Tensor> got = Run(after, fetches);
  ASSERT_EQ(expected.size(), got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].dtype(), expected[i].dtype()) << fetches[i];
    ASSERT_EQ(got[i].shape(), expected[i].shape()) << fetches[i];
    EXPECT_EQ(got[i].tensor_data(), expected[i].tensor_data()) << fetches[i];
  }
}

// The transform changes nothing and says `why`.
void ExpectLeft(const GraphDef& graph, const std::string& why,
                const std::vector<std::string>& outputs = {}) {
  const TransformRun run =
      RunTransform(kTransform, graph, {"ids", "x"}, outputs);
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(Bytes(run.graph), Bytes(graph));
  EXPECT_THAT(run.notes, Contains(HasSubstr(why)));
}

TEST(QuantizeEmbeddings, MovesQuantizationThroughAConcatIntoTheTable) {
  const GraphDef graph = Transformed(ConcatGraph().graph);
  EXPECT_THAT(InputsOf(graph, "codes"), ElementsAre("concat"));
  EXPECT_THAT(InputsOf(graph, "concat"),
              ElementsAre("lookup", "quantize/x", "axis"));
  EXPECT_THAT(InputsOf(graph, "lookup"),
              ElementsAre("lookup/table/quantized", "ids", "axis0"));
  EXPECT_EQ(TypeOf(graph, "concat", "T"), tensorflow::DT_QUINT8);
  EXPECT_EQ(TypeOf(graph, "lookup", "Tparams"), tensorflow::DT_QUINT8);
  EXPECT_EQ(TypeOf(graph, "lookup/table/quantized", "dtype"),
            tensorflow::DT_QUINT8);
  EXPECT_EQ(NodeNamed(graph, "concat").attr().at("N").i(), 2);
  EXPECT_FALSE(HasNode(graph, "lookup/table"));
  EXPECT_FALSE(HasNode(graph, "quantize"));
}

TEST(QuantizeEmbeddings, GivesTheSameBitsForEveryTypeAndMode) {
  for (const DataType type : {tensorflow::DT_QUINT8, tensorflow::DT_QINT8}) {
    for (const char* mode : {"MIN_FIRST", "SCALED"}) {
      SCOPED_TRACE(tensorflow::DataTypeString(type) + " " + mode);
      const GraphDef graph = ConcatGraph({type, mode}).graph;
      const GraphDef moved = Transformed(graph);
      EXPECT_EQ(TypeOf(moved, "lookup", "Tparams"), type);
      ExpectSameBits(graph, moved);
    }
  }
}

// The range that is told is not the one that the kernel takes.
TEST(QuantizeEmbeddings, RangeOutputsBecomeWhatTheKernelGives) {
  for (const auto& [min, max] : std::vector<std::pair<float, float>>{
           {0.25f, 0.75f}, {-0.8f, -0.2f}, {1e-4f, 2e-4f}, {-1e-3f, 1e-3f}}) {
    for (const char* mode : {"MIN_FIRST", "SCALED"}) {
      for (const DataType type :
           {tensorflow::DT_QUINT8, tensorflow::DT_QINT8}) {
        const GraphDef graph = ConcatGraph({type, mode, min, max}).graph;
        const GraphDef moved = Transformed(graph);
        EXPECT_EQ(NodeNamed(moved, "quantize/min").op(), "Const");
        EXPECT_THAT(InputsOf(moved, "high"), ElementsAre("quantize/max"));
        ExpectSameBits(graph, moved);
      }
    }
  }
}

TEST(QuantizeEmbeddings, PassesEveryArrangingOp) {
  Builder builder;
  builder.Table("table3", {kRows, 2, 4});
  builder.Arrange("table3/read", "Identity", {"table3"});
  builder.Gather("rows", "table3/read");
  builder.Integers("flat", {-1, kWidth});
  builder.Arrange("reshape", "Reshape", {"rows", "flat"});
  builder.Arrange("expand", "ExpandDims", {"reshape", "axis"});
  builder.Integers("begin", {0, 0, 2});
  builder.Integers("size", {-1, 1, 5});
  builder.Arrange("slice", "Slice", {"expand", "begin", "size"});
  builder.Arrange("squeeze", "Squeeze", {"slice"});
  (*Mutable(&builder.graph, "squeeze")->mutable_attr())["squeeze_dims"]
      .mutable_list()
      ->add_i(1);
  builder.Arrange("same", "Identity", {"squeeze"});
  builder.Quantize("quantize", "same");
  const GraphDef moved = Transformed(builder.graph);
  for (const char* node : {"reshape", "expand", "slice", "squeeze", "same"}) {
    EXPECT_EQ(TypeOf(moved, node, "T"), tensorflow::DT_QUINT8) << node;
  }
  EXPECT_FALSE(HasNode(moved, "table3/read"));
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, PassesOldGathersAndConcats) {
  Builder builder;
  builder.Table("table", {kRows, kWidth});
  builder.Node(
      "gather", "Gather", {"table", "ids"},
      {{"Tparams", tensorflow::DT_FLOAT}, {"Tindices", tensorflow::DT_INT32}});
  NodeDef* concat = builder.Node("concat", "Concat", {"axis", "x", "gather"},
                                 {{"T", tensorflow::DT_FLOAT}});
  (*concat->mutable_attr())["N"].set_i(2);
  builder.Quantize("quantize", "concat");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(InputsOf(moved, "concat"),
              ElementsAre("axis", "quantize/x", "gather"));
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, PassesGatherNdAndPack) {
  Builder builder;
  builder.Table("table", {kRows, kWidth});
  builder.Node("row", "ExpandDims", {"ids", "axis"},
               {{"T", tensorflow::DT_INT32}, {"Tdim", tensorflow::DT_INT32}});
  builder.Node(
      "gather", "GatherNd", {"table", "row"},
      {{"Tparams", tensorflow::DT_FLOAT}, {"Tindices", tensorflow::DT_INT32}});
  builder.Lookup("lookup");
  NodeDef* pack = builder.Node("pack", "Pack", {"gather", "lookup"},
                               {{"T", tensorflow::DT_FLOAT}});
  (*pack->mutable_attr())["N"].set_i(2);
  builder.Quantize("quantize", "pack");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_EQ(TypeOf(moved, "gather", "Tparams"), tensorflow::DT_QUINT8);
  EXPECT_EQ(TypeOf(moved, "pack", "T"), tensorflow::DT_QUINT8);
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, QuantizesAConstantBlockAhead) {
  Builder builder;
  builder.Lookup("lookup");
  builder.Table("block", {kBatch, 3});
  builder.Concat("concat", {"block", "lookup"});
  builder.Quantize("quantize", "concat");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(InputsOf(moved, "concat"),
              ElementsAre("block/quantized", "lookup", "axis"));
  EXPECT_FALSE(HasNode(moved, "quantize/from"));
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, QuantizesNeighbouringFloatsTogether) {
  Builder builder;
  builder.Lookup("lookup");
  builder.Node("y", "Neg", {"x"}, {{"T", tensorflow::DT_FLOAT}});
  builder.Concat("concat", {"x", "lookup", "x", "y", "x"});
  builder.Quantize("quantize", "concat");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(InputsOf(moved, "concat"),
              ElementsAre("quantize/x", "lookup", "quantize/x_1", "axis"));
  EXPECT_THAT(InputsOf(moved, "concat/floats"),
              ElementsAre("x", "y", "x", "axis"));
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, QuantizesATableOnceForAllItsGathers) {
  Builder builder;
  builder.Table("table", {kRows, kWidth});
  builder.Gather("a", "table");
  builder.Gather("b", "table");
  builder.Concat("concat", {"a", "b"});
  builder.Quantize("quantize", "concat");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_EQ(InputsOf(moved, "a")[0], "table/quantized");
  EXPECT_EQ(InputsOf(moved, "b")[0], "table/quantized");
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, QuantizesATableOnceForEachRange) {
  Builder builder;
  builder.Table("table", {kRows, kWidth});
  builder.Gather("a", "table");
  builder.Gather("b", "table");
  builder.Quantize("quantize_a", "a", {}, "a_");
  Quantization other;
  other.max = 2;
  builder.Quantize("quantize_b", "b", other, "b_");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_EQ(InputsOf(moved, "a")[0], "table/quantized");
  EXPECT_EQ(InputsOf(moved, "b")[0], "table/quantized_1");
  EXPECT_FALSE(HasNode(moved, "table"));
  ExpectSameBits(builder.graph, moved,
                 {"a_codes", "a_high", "b_codes", "b_high"});
}

TEST(QuantizeEmbeddings, MovesEqualQuantizationsOfATensorTogether) {
  Builder builder;
  builder.Lookup("lookup");
  builder.Quantize("quantize", "lookup");
  builder.Quantize("again", "lookup", {}, "again_");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(InputsOf(moved, "codes"), ElementsAre("lookup"));
  EXPECT_THAT(InputsOf(moved, "again_codes"), ElementsAre("lookup"));
  ExpectSameBits(builder.graph, moved, {"codes", "again_codes", "again_low"});
}

// Random matrices of kBatch rows, made of everything that can stand before a
// QuantizeV2; some nodes have a reader more.
class RandomMatrix {
 public:
  RandomMatrix(Builder* builder, int seed) : builder_(*builder), random_(seed) {
    builder_.Integers("rows", {kBatch, -1});
    builder_.Table("shared_table", {kRows, kWidth});
  }

  std::string Make(int depth) {
    std::string name = absl::StrCat("n", count_++);
    const int choice = depth == 0 ? Upto(4) : 5 + Upto(3);
    switch (choice) {
      case 0:
        return "x";
      case 1:
        builder_.Table(name, {kBatch, 1 + Upto(5)});
        break;
      case 2:
        builder_.Node(name, "Neg", {"x"}, {{"T", tensorflow::DT_FLOAT}});
        break;
      case 3:
        builder_.Gather(name, "shared_table");
        break;
      case 4:
      case 5:
        builder_.Lookup(name);
        break;
      case 6:
        builder_.Arrange(name, "Identity", {Make(depth - 1)});
        break;
      case 7:
        builder_.Arrange(name, "Reshape", {Make(depth - 1), "rows"});
        break;
      default: {
        std::vector<std::string> inputs;
        for (int i = Upto(3); i >= 0; --i) inputs.push_back(Make(depth - 1));
        inputs.push_back(Make(depth - 1));
        builder_.Concat(name, inputs);
      }
    }
    if (Upto(15) == 0) {
      builder_.Node(name + "/reader", "Neg", {name},
                    {{"T", tensorflow::DT_FLOAT}});
      readers.push_back(name + "/reader");
    }
    return name;
  }

  std::vector<std::string> readers;

 private:
  // From 0 to `last`.
  int Upto(int last) {
    return std::uniform_int_distribution<int>(0, last)(random_);
  }

  Builder& builder_;
  std::mt19937 random_;
  int count_ = 0;
};

TEST(QuantizeEmbeddings, GivesTheSameBitsInRandomGraphs) {
  int moved_graphs = 0;
  const int rounds = FuzzRounds(40);
  for (int seed = 0; seed < rounds; ++seed) {
    SCOPED_TRACE(seed);
    Builder builder;
    RandomMatrix matrix(&builder, seed);
    builder.Quantize("quantize", matrix.Make(3));
    std::vector<std::string> fetches = matrix.readers;
    fetches.insert(fetches.end(), {"codes", "low", "high"});
    const GraphDef moved = Transformed(builder.graph, fetches);
    moved_graphs += !HasNode(moved, "quantize");
    ExpectSameBits(builder.graph, moved, fetches);
  }
  EXPECT_GT(moved_graphs, rounds / 4);
}

TEST(QuantizeEmbeddings, SaysWhatItMoved) {
  const TransformRun run = RunTransform(kTransform, ConcatGraph().graph);
  EXPECT_THAT(
      run.notes,
      ElementsAre(AllOf(HasSubstr("moves \"quantize\" into 1 table (1600 bytes "
                                  "become 400): \"lookup/table\""),
                        HasSubstr("still quantized in every run: \"x\""))));
}

TEST(QuantizeEmbeddings, ChangesNothingTheSecondTime) {
  const GraphDef once = Transformed(ConcatGraph().graph);
  EXPECT_EQ(Bytes(Transformed(once)), Bytes(once));
}

TEST(QuantizeEmbeddings, KeepsControlEdgesAndDropsColocationsThatAreLost) {
  Builder builder = ConcatGraph();
  builder.Node("after", "NoOp", {"^quantize"}, {});
  (*Mutable(&builder.graph, "lookup")->mutable_attr())["_class"]
      .mutable_list()
      ->add_s("loc:@lookup/table");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(InputsOf(moved, "after"), ElementsAre("^concat"));
  EXPECT_EQ(NodeNamed(moved, "lookup").attr().count("_class"), 0);
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, LeavesWhatNoTableReaches) {
  Builder builder;
  builder.Quantize("quantize", "x");
  ExpectLeft(builder.graph,
             "leaves \"quantize\": no rows gathered from a constant reach it");
}

TEST(QuantizeEmbeddings, LeavesADynamicRange) {
  Builder builder = ConcatGraph();
  builder.Node("smallest", "Min", {"x", "axis"},
               {{"T", tensorflow::DT_FLOAT}, {"Tidx", tensorflow::DT_INT32}});
  Mutable(&builder.graph, "quantize")->set_input(1, "smallest");
  ExpectLeft(builder.graph, "its range is not constant");
}

TEST(QuantizeEmbeddings, LeavesCodesItCannotCompute) {
  Builder builder = ConcatGraph();
  (*Mutable(&builder.graph, "quantize")->mutable_attr())["narrow_range"].set_b(
      true);
  ExpectLeft(builder.graph, "narrow range");
  builder = ConcatGraph({tensorflow::DT_QUINT8, "SCALED"});
  Mutable(&builder.graph, "quantize")->mutable_attr()->erase("round_mode");
  ExpectLeft(builder.graph, "SCALED with HALF_AWAY_FROM_ZERO");
  builder = ConcatGraph({tensorflow::DT_QUINT8, "MIN_COMBINED"});
  ExpectLeft(builder.graph, "mode MIN_COMBINED");
}

TEST(QuantizeEmbeddings, LeavesFloatsThatSomethingElseReads) {
  Builder builder = ConcatGraph();
  builder.Node("reader", "Neg", {"concat"}, {{"T", tensorflow::DT_FLOAT}});
  ExpectLeft(builder.graph, "\"concat\" is also read by \"reader\"");
}

TEST(QuantizeEmbeddings, LeavesRowsThatAreQuantizedInTwoWays) {
  Builder builder;
  builder.Lookup("lookup");
  builder.Quantize("quantize", "lookup");
  Quantization other;
  other.max = 2;
  builder.Quantize("other", "lookup", other, "other_");
  ExpectLeft(builder.graph,
             "leaves \"other\": \"lookup\" is also read by \"quantize\"");
}

TEST(QuantizeEmbeddings, LeavesOutputsOfTheGraph) {
  const GraphDef graph = ConcatGraph().graph;
  ExpectLeft(graph, "\"concat\" is an input or output", {"codes", "concat"});
  ExpectLeft(graph, "it is an input or output", {"quantize"});
}

TEST(QuantizeEmbeddings, LeavesATableThatIsAlsoReadInFloat) {
  Builder builder = ConcatGraph();
  builder.Gather("float_rows", "lookup/table");
  ExpectLeft(builder.graph,
             "table \"lookup/table\" also serves \"float_rows\" in float");
}

TEST(QuantizeEmbeddings, MovesTheOtherTableWhenOneIsShared) {
  Builder builder;
  builder.Lookup("a");
  builder.Lookup("b");
  builder.Gather("float_rows", "b/table");
  builder.Concat("concat", {"a", "b"});
  builder.Quantize("quantize", "concat");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(InputsOf(moved, "concat"),
              ElementsAre("a", "quantize/b", "axis"));
  EXPECT_EQ(TypeOf(moved, "b", "Tparams"), tensorflow::DT_FLOAT);
  ExpectSameBits(builder.graph, moved, {"codes", "float_rows"});
}

// For an index out of bounds it gives the float 0, whose code is not 0.
TEST(QuantizeEmbeddings, LeavesGathersThatForgiveBadIndices) {
  Builder builder = ConcatGraph();
  (*Mutable(&builder.graph, "lookup")->mutable_attr())["bad_indices_policy"]
      .set_s("IGNORE");
  ExpectLeft(builder.graph, "gives 0 for indices out of bounds");
}

TEST(QuantizeEmbeddings, LeavesTablesWithoutFiniteValues) {
  Builder builder = ConcatGraph();
  Tensor table = builder.Floats({kRows, kWidth});
  table.flat<float>()(3) = std::numeric_limits<float>::quiet_NaN();
  *Mutable(&builder.graph, "lookup/table") = MakeConst("lookup/table", table);
  ExpectLeft(builder.graph, "\"lookup/table\" is damaged or has values");
}

// TensorFlow would fold the block and quantize it by the other kernel.
TEST(QuantizeEmbeddings, LeavesABlockThatWouldBeFolded) {
  Builder builder;
  builder.Lookup("lookup");
  builder.Table("block", {kBatch, 3});
  builder.Node("minus", "Neg", {"block"}, {{"T", tensorflow::DT_FLOAT}});
  builder.Concat("concat", {"minus", "lookup"});
  builder.Quantize("quantize", "concat");
  ExpectLeft(builder.graph, "run fold_constants first");
}

// QuantizeV2 does not clip scalars, which the inputs of a Pack can be.
TEST(QuantizeEmbeddings, LeavesAPackWithFloats) {
  Builder builder;
  builder.Lookup("lookup");
  NodeDef* pack = builder.Node("pack", "Pack", {"x", "lookup"},
                               {{"T", tensorflow::DT_FLOAT}});
  (*pack->mutable_attr())["N"].set_i(2);
  builder.Quantize("quantize", "pack");
  ExpectLeft(builder.graph, "leaves \"quantize\"");
}

}  // namespace
}  // namespace requant::quantize_embeddings_test
