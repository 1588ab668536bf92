#include <cstdint>
#include <random>

#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "base/testing/fuzz_rounds.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/testing/testing.h"

namespace requant::quantize_embeddings_test {
namespace {

using tensorflow::DataType;
using tensorflow::TensorShape;

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

// Builds graphs with the inputs "ids" (int32 row numbers) and "x" (floats,
// [batch, kWidth]).
class Builder {
 public:
  Builder() {
    Add(R"(
      ids = Placeholder dtype=int32
      x = Placeholder dtype=float
      axis = int32{1}
      axis0 = int32{0}
    )");
  }

  void Add(const std::string& lines) { AddNodes(lines, &graph); }
  void Table(const std::string& name, const TensorShape& shape) {
    *graph.add_node() = MakeConst(name, Floats(shape));
  }
  // Adds a table and a gather of its rows.
  void Lookup(const std::string& name) {
    Table(name + "/table", {kRows, kWidth});
    Gather(name, name + "/table");
  }
  void Gather(const std::string& name, const std::string& table) {
    Add(absl::StrCat(name, " = GatherV2(", table,
                     ", ids, axis0) Tparams=float Tindices=int32 Taxis=int32"));
  }
  void Concat(const std::string& name, const std::vector<std::string>& inputs) {
    Add(absl::StrCat(name, " = ConcatV2(", absl::StrJoin(inputs, ", "),
                     ", axis) T=float Tidx=int32 N=", inputs.size()));
  }
  // Adds the QuantizeV2 `name`, whose outputs "codes", "low" and "high" show.
  void Quantize(const std::string& name, const std::string& input,
                const Quantization& how = {}, const std::string& prefix = "") {
    *graph.add_node() = MakeScalarConst(name + "/from", how.min);
    *graph.add_node() = MakeScalarConst(name + "/to", how.max);
    Add(absl::Substitute(
        R"(
      $0codes = Identity($1) T=$3
      $0low = Identity($1:1) T=float
      $0high = Identity($1:2) T=float
      $1 = QuantizeV2($2, $1/from, $1/to) T=$3 mode='$4' round_mode='$5'
    )",
        prefix, name, input, tensorflow::DataTypeString(how.type), how.mode,
        how.mode == "SCALED" ? "HALF_TO_EVEN" : "HALF_AWAY_FROM_ZERO"));
  }
  Tensor Floats(const TensorShape& shape) {
    Tensor tensor(tensorflow::DT_FLOAT, shape);
    std::uniform_real_distribution<float> value(-0.5f, 1.2f);
    auto flat = tensor.flat<float>();
    for (int64_t i = 0; i < flat.size(); ++i) {
      // Every third is halfway between two codes of the range [-0.3, 0.9].
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

// Returns the graph of lookup and x -> concat -> quantize.
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

GraphDef Transformed(const GraphDef& graph,
                     const std::vector<std::string>& outputs = {}) {
  return MustTransform(kTransform, graph, {"ids", "x"}, outputs).graph;
}

std::vector<Tensor> Run(const GraphDef& graph,
                        const std::vector<std::string>& fetches) {
  std::mt19937 random(7);
  Tensor ids(tensorflow::DT_INT32, {kBatch});
  std::uniform_int_distribution<int> row(0, kRows - 1);
  for (int i = 0; i < kBatch; ++i) ids.flat<int32_t>()(i) = row(random);
  const Tensor x = Builder().Floats({kBatch, kWidth});
  return MustRunGraph(graph, {{"ids", ids}, {"x", x}}, fetches);
}

// Expects both graphs to give the same bits.
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

// Expects the transform to change nothing and to say `why`.
void ExpectLeft(const GraphDef& graph, const std::string& why,
                const std::vector<std::string>& outputs = {}) {
  const TransformRun run =
      MustTransform(kTransform, graph, {"ids", "x"}, outputs);
  EXPECT_TRUE(SameMessage(run.graph, graph)) << why;
  EXPECT_THAT(run.notes, Contains(HasSubstr(why)));
}

TEST(QuantizeEmbeddings, MovesQuantizationThroughAConcatIntoTheTable) {
  const GraphDef graph = Transformed(ConcatGraph().graph);
  EXPECT_THAT(graph, HasNodes(R"(
    codes = Identity(concat)
    concat = ConcatV2(lookup, quantize/x, axis) T=quint8 N=2
    lookup = GatherV2(lookup/table/quantized, ids, axis0) Tparams=quint8
  )"));
  EXPECT_EQ(TypeOf(graph, "lookup/table/quantized", "dtype"),
            tensorflow::DT_QUINT8);
  EXPECT_FALSE(HasNode(graph, "lookup/table"));
  EXPECT_FALSE(HasNode(graph, "quantize"));
}

// The requested range is not always the one that the kernel uses.
TEST(QuantizeEmbeddings, GivesTheSameBitsForEveryTypeModeAndRange) {
  for (const auto& [min, max] :
       std::vector<std::pair<float, float>>{{-0.3f, 0.9f},
                                            {0.25f, 0.75f},
                                            {-0.8f, -0.2f},
                                            {1e-4f, 2e-4f},
                                            {-1e-3f, 1e-3f}}) {
    for (const char* mode : {"MIN_FIRST", "SCALED"}) {
      for (const DataType type :
           {tensorflow::DT_QUINT8, tensorflow::DT_QINT8}) {
        const GraphDef graph = ConcatGraph({type, mode, min, max}).graph;
        const GraphDef moved = Transformed(graph);
        EXPECT_EQ(TypeOf(moved, "lookup", "Tparams"), type);
        EXPECT_EQ(NodeNamed(moved, "quantize/min").op(), "Const");
        EXPECT_THAT(NodeNamed(moved, "high").input(),
                    ElementsAre("quantize/max"));
        ExpectSameBits(graph, moved);
      }
    }
  }
}

TEST(QuantizeEmbeddings, PassesEveryArrangingOp) {
  for (const DataType type : {tensorflow::DT_QUINT8, tensorflow::DT_QINT8}) {
    Builder builder;
    builder.Table("table3", {kRows, 2, 4});
    builder.Add("table3/read = Identity(table3) T=float");
    builder.Gather("rows", "table3/read");
    builder.Add(R"(
      flat = int32<2>{-1,8}
      reshape = Reshape(rows, flat) T=float Tshape=int32
      expand = ExpandDims(reshape, axis) T=float Tdim=int32
      begin = int32<3>{0,0,2}
      size = int32<3>{-1,1,5}
      slice = Slice(expand, begin, size) T=float Index=int32
      squeeze = Squeeze(slice) T=float squeeze_dims=[1]
      same = Identity(squeeze) T=float
    )");
    builder.Quantize("quantize", "same", {type});
    const GraphDef moved = Transformed(builder.graph);
    for (const char* node : {"reshape", "expand", "slice", "squeeze", "same"}) {
      EXPECT_EQ(TypeOf(moved, node, "T"), type) << node;
    }
    EXPECT_FALSE(HasNode(moved, "table3/read"));
    ExpectSameBits(builder.graph, moved);
  }
}

TEST(QuantizeEmbeddings, PassesOldGathersAndConcats) {
  Builder builder;
  builder.Table("table", {kRows, kWidth});
  builder.Add(R"(
    gather = Gather(table, ids) Tparams=float Tindices=int32
    concat = Concat(axis, x, gather) T=float N=2
  )");
  builder.Quantize("quantize", "concat");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(NodeNamed(moved, "concat").input(),
              ElementsAre("axis", "quantize/x", "gather"));
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, PassesGatherNdAndPack) {
  for (const DataType type : {tensorflow::DT_QUINT8, tensorflow::DT_QINT8}) {
    Builder builder;
    builder.Table("table", {kRows, kWidth});
    builder.Lookup("lookup");
    builder.Add(R"(
      row = ExpandDims(ids, axis) T=int32 Tdim=int32
      gather = GatherNd(table, row) Tparams=float Tindices=int32
      pack = Pack(gather, lookup) T=float N=2
    )");
    builder.Quantize("quantize", "pack", {type});
    const GraphDef moved = Transformed(builder.graph);
    EXPECT_EQ(TypeOf(moved, "gather", "Tparams"), type);
    EXPECT_EQ(TypeOf(moved, "pack", "T"), type);
    ExpectSameBits(builder.graph, moved);
  }
}

TEST(QuantizeEmbeddings, QuantizesAConstantBlockAhead) {
  Builder builder;
  builder.Lookup("lookup");
  builder.Table("block", {kBatch, 3});
  builder.Concat("concat", {"block", "lookup"});
  builder.Quantize("quantize", "concat");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(NodeNamed(moved, "concat").input(),
              ElementsAre("block/quantized", "lookup", "axis"));
  EXPECT_FALSE(HasNode(moved, "quantize/from"));
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, QuantizesNeighbouringFloatsTogether) {
  Builder builder;
  builder.Lookup("lookup");
  builder.Add("y = Neg(x) T=float");
  builder.Concat("concat", {"x", "lookup", "x", "y", "x"});
  builder.Quantize("quantize", "concat");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(NodeNamed(moved, "concat").input(),
              ElementsAre("quantize/x", "lookup", "quantize/x_1", "axis"));
  EXPECT_THAT(NodeNamed(moved, "concat/floats").input(),
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
  EXPECT_EQ(NodeNamed(moved, "a").input(0), "table/quantized");
  EXPECT_EQ(NodeNamed(moved, "b").input(0), "table/quantized");
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
  EXPECT_EQ(NodeNamed(moved, "a").input(0), "table/quantized");
  EXPECT_EQ(NodeNamed(moved, "b").input(0), "table/quantized_1");
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
  EXPECT_THAT(NodeNamed(moved, "codes").input(), ElementsAre("lookup"));
  EXPECT_THAT(NodeNamed(moved, "again_codes").input(), ElementsAre("lookup"));
  ExpectSameBits(builder.graph, moved, {"codes", "again_codes", "again_low"});
}

// Makes random matrices of kBatch rows from everything that can precede a
// QuantizeV2. Some nodes have an additional reader.
class RandomMatrix {
 public:
  RandomMatrix(Builder* builder, int seed) : builder_(*builder), random_(seed) {
    builder_.Add(absl::StrCat("rows = int32<2>{", kBatch, ",-1}"));
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
        builder_.Add(name + " = Neg(x) T=float");
        break;
      case 3:
        builder_.Gather(name, "shared_table");
        break;
      case 4:
      case 5:
        builder_.Lookup(name);
        break;
      case 6:
        builder_.Add(
            absl::StrCat(name, " = Identity(", Make(depth - 1), ") T=float"));
        break;
      case 7:
        builder_.Add(absl::StrCat(name, " = Reshape(", Make(depth - 1),
                                  ", rows) T=float Tshape=int32"));
        break;
      default: {
        std::vector<std::string> inputs;
        for (int i = Upto(3); i >= 0; --i) inputs.push_back(Make(depth - 1));
        inputs.push_back(Make(depth - 1));
        builder_.Concat(name, inputs);
      }
    }
    if (Upto(15) == 0) {
      builder_.Add(absl::StrCat(name, "/reader = Neg(", name, ") T=float"));
      readers.push_back(name + "/reader");
    }
    return name;
  }

  std::vector<std::string> readers;

 private:
  // Returns a number from 0 to `last`.
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
  EXPECT_TRUE(SameMessage(Transformed(once), once));
}

TEST(QuantizeEmbeddings, KeepsControlEdgesAndDropsColocationsThatAreLost) {
  Builder builder = ConcatGraph();
  builder.Add("after = NoOp(^quantize)");
  (*MutableNode(&builder.graph, "lookup")->mutable_attr())["_class"]
      .mutable_list()
      ->add_s("loc:@lookup/table");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(NodeNamed(moved, "after").input(), ElementsAre("^concat"));
  EXPECT_EQ(NodeNamed(moved, "lookup").attr().count("_class"), 0);
  ExpectSameBits(builder.graph, moved);
}

TEST(QuantizeEmbeddings, LeavesWhatItCannotMove) {
  for (const auto& [lines, why] :
       Cases{{"quantize = QuantizeV2(x, quantize/from, quantize/to) T=quint8 "
              "mode='MIN_FIRST'",
              "leaves \"quantize\": no rows gathered from a constant reach it"},
             {"smallest = Min(x, axis) T=float Tidx=int32; quantize = "
              "QuantizeV2(concat, smallest, quantize/to) T=quint8 "
              "mode='MIN_FIRST'",
              "its range is not constant"},
             {"quantize = QuantizeV2(concat, quantize/from, quantize/to) "
              "T=quint8 mode='MIN_FIRST' narrow_range=true",
              "narrow range"},
             {"quantize = QuantizeV2(concat, quantize/from, quantize/to) "
              "T=quint8 mode='SCALED'",
              "SCALED with HALF_AWAY_FROM_ZERO"},
             {"quantize = QuantizeV2(concat, quantize/from, quantize/to) "
              "T=quint8 mode='MIN_COMBINED'",
              "mode MIN_COMBINED"},
             {"reader = Neg(concat) T=float",
              "\"concat\" is also read by \"reader\""},
             {"float_rows = GatherV2(lookup/table, ids, axis0) Tparams=float "
              "Tindices=int32 Taxis=int32",
              "table \"lookup/table\" also serves \"float_rows\" in float"},
             // For an index out of bounds it gives the float 0, whose code is
             // not 0.
             {"lookup = GatherV2(lookup/table, ids, axis0) Tparams=float "
              "Tindices=int32 Taxis=int32 bad_indices_policy='IGNORE'",
              "gives 0 for indices out of bounds"},
             {"lookup/table = float<50,8>{nan}",
              "\"lookup/table\" is damaged or has values"},
             // TensorFlow would fold the block and quantize it with the other
             // kernel.
             {"block = float<30,3>{1}; minus = Neg(block) T=float; concat = "
              "ConcatV2(minus, lookup, axis) T=float Tidx=int32 N=2",
              "run fold_constants first"},
             // QuantizeV2 does not clip scalars, which inputs of a Pack can be.
             {"concat = Pack(x, lookup) T=float N=2", "leaves \"quantize\""}}) {
    ExpectLeft(WithNodes(ConcatGraph().graph, lines), why);
  }
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

TEST(QuantizeEmbeddings, MovesTheOtherTableWhenOneIsShared) {
  Builder builder;
  builder.Lookup("a");
  builder.Lookup("b");
  builder.Gather("float_rows", "b/table");
  builder.Concat("concat", {"a", "b"});
  builder.Quantize("quantize", "concat");
  const GraphDef moved = Transformed(builder.graph);
  EXPECT_THAT(NodeNamed(moved, "concat").input(),
              ElementsAre("a", "quantize/b", "axis"));
  EXPECT_EQ(TypeOf(moved, "b", "Tparams"), tensorflow::DT_FLOAT);
  ExpectSameBits(builder.graph, moved, {"codes", "float_rows"});
}

}  // namespace
}  // namespace requant::quantize_embeddings_test
