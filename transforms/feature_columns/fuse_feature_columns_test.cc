#include <cstdint>

#include "absl/strings/substitute.h"
#include "graph/graph_io.h"
#include "transforms/testing/testing.h"

namespace requant::fuse_feature_columns_test {
namespace {

// Returns the nodes that tf.estimator makes for the column `name`: they hash
// the strings of `dense` and look up their rows in a table.
std::string Lookup(const std::string& name, const std::string& dense,
                   int buckets = 5) {
  return absl::Substitute(R"(
    $0/missing = string{''}
    $0/present = NotEqual($1, $0/missing) T=string
    $0/indices = Where($0/present) T=bool
    $0/values = GatherNd($1, $0/indices) Tparams=string Tindices=int64
    $0/shape = Shape($1) T=string out_type=int64
    $0/hash = StringToHashBucketFast($0/values) num_buckets=$2
    $0/0 = int32<1>{0}
    $0/1 = int32<1>{1}
    $0/first = StridedSlice($0/shape, $0/0, $0/1, $0/1) T=int64 Index=int32
        shrink_axis_mask=1
    $0/rest = int64{-1}
    $0/new_shape = Pack($0/first, $0/rest) T=int64 N=2
    $0/reshape = SparseReshape($0/indices, $0/shape, $0/new_shape)
    $0/table = float<5,2>{1,2,3,4,5,6,7,8,9,10}
    $0/least = int64{0}
    $0/is_id = GreaterEqual($0/hash, $0/least) T=int64
    $0/where_id = Where($0/is_id) T=bool
    $0/flat = int32<1>{-1}
    $0/kept = Reshape($0/where_id, $0/flat) T=int64
    $0/axis = int32{0}
    $0/kept_indices = GatherV2($0/reshape, $0/kept, $0/axis)
        Tparams=int64 Tindices=int64 Taxis=int32
    $0/kept_ids = GatherV2($0/hash, $0/kept, $0/axis)
        Tparams=int64 Tindices=int64 Taxis=int32
    $0/fill = SparseFillEmptyRows($0/kept_indices, $0/kept_ids, $0/reshape:1,
        $0/least) T=int64
    $0/00 = int32<2>{0,0}
    $0/01 = int32<2>{0,1}
    $0/11 = int32<2>{1,1}
    $0/segments = StridedSlice($0/fill, $0/00, $0/01, $0/11) T=int64
        Index=int32 begin_mask=1 end_mask=1 shrink_axis_mask=2
    $0/unique = Unique($0/fill:1) T=int64
    $0/looked_up = GatherV2($0/table, $0/unique, $0/axis)
        Tparams=float Tindices=int64 Taxis=int32
    $0/rows = SparseSegmentMean($0/looked_up, $0/unique:1, $0/segments) T=float
        Tsegmentids=int64
    $0/column = int32<2>{-1,1}
    $0/empty = Reshape($0/fill:2, $0/column) T=bool
    $0/rows_shape = Shape($0/rows) T=float
    $0/from = int32<1>{1}
    $0/to = int32<1>{2}
    $0/width = StridedSlice($0/rows_shape, $0/from, $0/to, $0/from) T=int32
        Index=int32 shrink_axis_mask=1
    $0/one = int32{1}
    $0/multiples = Pack($0/one, $0/width) T=int32 N=2
    $0/is_empty = Tile($0/empty, $0/multiples) T=bool
    $0/zeros = ZerosLike($0/rows) T=float
    $0 = Select($0/is_empty, $0/zeros, $0/rows) T=float
  )",
                          name, dense, buckets);
}

// Returns a graph with one column, "y", of the strings of "a", which get their
// second dimension from `expand`.
GraphDef OneColumn(const std::string& shape, int buckets = 5,
                   bool expand = true) {
  return GraphFromText(absl::StrCat(
      "a = Placeholder dtype=string shape=<", shape, ">\n",
      expand ? "last = int32{-1}; dense = ExpandDims(a, last) T=string\n" : "",
      Lookup("y", expand ? "dense" : "a", buckets)));
}

// Returns two strings and a number, joined in the order b, number, a.
GraphDef DeepGraph() {
  return GraphFromText(absl::StrCat(Lookup("a_embedding", "dense_a"),
                                    Lookup("b_embedding", "dense_b"), R"(
    a = Placeholder dtype=string shape=<?>
    b = Placeholder dtype=string shape=<?>
    x = Placeholder dtype=float shape=<?>
    last = int32{-1}
    dense_a = ExpandDims(a, last) T=string
    dense_b = ExpandDims(b, last) T=string
    dense = ExpandDims(x, last) T=float
    minimum = float{1}
    sub = Sub(dense, minimum) T=float
    range = float{4}
    div = RealDiv(sub, range) T=float
    column = int32<2>{-1,1}
    number = Reshape(div, column) T=float
    deep = ConcatV2(b_embedding, number, a_embedding, last) T=float Tidx=int32
        N=3
  )"));
}

TransformRun Fuse(const GraphDef& graph,
                  const std::vector<std::string>& outputs,
                  const std::string& parameters = "") {
  return MustTransform("fuse_feature_columns" + parameters, graph, {}, outputs);
}

TEST(FuseFeatureColumns, StacksTablesAndTellsOfTheColumnsInTheirOrder) {
  const auto run = Fuse(DeepGraph(), {"deep"});
  EXPECT_THAT(NodesOf(run.graph, "GatherNd"), SizeIs(1));
  EXPECT_THAT(NodesOf(run.graph, "Placeholder"),
              UnorderedElementsAre("new_categorical_placeholder",
                                   "new_numeric_placeholder"));
  EXPECT_THAT(run.notes, ElementsAre(AllOf(HasSubstr("column 0: \"b\""),
                                           HasSubstr("into 5 buckets")),
                                     HasSubstr("column 1: \"a\""),
                                     HasSubstr("column 0: \"x\", (x - 1) / 4"),
                                     HasSubstr("stacks 2 tables of [5,2]"),
                                     HasSubstr("it has no pair for \""),
                                     HasSubstr("normalised")));
  EXPECT_THAT(run.warnings, IsEmpty());
}

TEST(FuseFeatureColumns, HashesAColumnOnceForAllItsTables) {
  GraphDef graph = DeepGraph();
  AddNodes(Lookup("wide_a", "dense_a"), &graph);
  EXPECT_THAT(NodesOf(Fuse(graph, {"deep", "wide_a"}, "(fuse=false)").graph,
                      "StringToHashBucketFast"),
              SizeIs(2));
}

TEST(FuseFeatureColumns, FusesALookupThatNothingJoins) {
  GraphDef graph = OneColumn("?");
  AddNodes("z = Neg(y) T=float", &graph);
  EXPECT_THAT(Fuse(graph, {"z"}).graph, HasNodes(R"(
    z = Neg(y/fused_column/rows)
    y/fused_column/gather = GatherNd(y/fused_column/tables,
        new_categorical_placeholder)
  )"));
}

TEST(FuseFeatureColumns, AddsWhatItDoesNotKnowToTheFusedSum) {
  GraphDef graph = OneColumn("?");
  AddNodes(R"(
    other = Placeholder dtype=float shape=<?,2>
    sum = AddN(other, y) T=float N=2
  )",
           &graph);
  const auto run = Fuse(graph, {"sum"});
  EXPECT_THAT(run.graph, HasNodes(R"(
    sum = AddN(other, sum/fused_columns/sum) N=2
    sum/fused_columns/sum = Sum(sum/fused_columns/rows, sum/fused_columns/axis)
  )"));
  EXPECT_THAT(run.warnings, Contains(HasSubstr("leaves \"other\"")));
}

TEST(FuseFeatureColumns, RefusesAnIdBeyondTheTable) {
  const auto run = Fuse(DeepGraph(), {"deep"});
  const auto result = RunGraph(
      run.graph,
      {{"new_categorical_placeholder", TensorOf<int64_t>({2, 2}, {0, 5, 1, 0})},
       {"new_numeric_placeholder", TensorOf<float>({1, 1}, {0})}},
      {"deep"});
  EXPECT_FALSE(result.ok());
}

TEST(FuseFeatureColumns, TakesPlaceholdersWithASecondDimensionOfOne) {
  const GraphDef graph = OneColumn("?,1", 5, /*expand=*/false);
  const auto run = Fuse(graph, {"y"}, "(fuse=false)");
  EXPECT_THAT(NodesOf(run.graph, "SparseFillEmptyRows"), IsEmpty());
  const auto rows = [](const GraphDef& of) {
    const auto words = TensorOf<tensorflow::tstring>({2, 1}, {"cat", ""});
    return ValuesOf(MustRunGraph(of, {{"a", words}}, {"y"})[0]);
  };
  EXPECT_EQ(rows(run.graph), rows(graph));
}

TEST(FuseFeatureColumns, LeavesALookupThatDiffers) {
  GraphDef ones = OneColumn("?");
  MutableNode(&ones, "y/zeros")->set_op("OnesLike");
  for (const auto& [graph, why] : std::vector<std::pair<GraphDef, std::string>>{
           {OneColumn("?,3", 5, /*expand=*/false),
            "\"a\" may have several values per record"},
           {OneColumn("?", 6), "6 buckets, its table 5"},
           {ones, "OnesLike"}}) {
    const auto run = Fuse(graph, {"y"});
    EXPECT_TRUE(SameMessage(run.graph, graph));
    EXPECT_THAT(run.warnings, ElementsAre(AllOf(HasSubstr("leaves \"y\": "),
                                                HasSubstr(why))));
    EXPECT_THAT(run.notes, ElementsAre("no feature column found"));
  }
}

TEST(FuseFeatureColumns, WarnsOfAPlaceholderThatIsReadElsewhere) {
  GraphDef graph = DeepGraph();
  AddNodes("echo = Identity(a) T=string", &graph);
  const auto run = Fuse(graph, {"deep", "echo"});
  EXPECT_TRUE(HasNode(run.graph, "a"));
  EXPECT_THAT(run.warnings,
              ElementsAre(AllOf(HasSubstr("\"a\" is still needed"),
                                HasSubstr("\"echo\""))));
}

TEST(FuseFeatureColumns, KeepsALookupThatIsAnOutput) {
  for (const char* parameters : {"", "(fuse=false)"}) {
    const auto run = Fuse(DeepGraph(), {"deep", "a_embedding"}, parameters);
    EXPECT_TRUE(HasNode(run.graph, "a_embedding")) << parameters;
  }
}

TEST(FuseFeatureColumns, ChangesNothingTheSecondTime) {
  for (const char* parameters : {"", "(fuse=false)"}) {
    const auto once = Fuse(DeepGraph(), {"deep"}, parameters);
    const auto twice = Fuse(once.graph, {"deep"}, parameters);
    EXPECT_TRUE(SameMessage(twice.graph, once.graph)) << parameters;
  }
}

TEST(FuseFeatureColumns, LeavesAGraphWithoutColumnsAsItIs) {
  const GraphDef graph = GraphFromText(
      "x = Placeholder dtype=float shape=<?,4>; y = Relu(x) T=float");
  const auto run = Fuse(graph, {"y"}, "(prefix=import/)");
  EXPECT_TRUE(SameMessage(run.graph, graph));
  EXPECT_THAT(run.notes, ElementsAre("no feature column found"));
}

TEST(FuseFeatureColumns, PrefixesAllButTheNewPlaceholders) {
  const auto run = Fuse(DeepGraph(), {"deep"}, "(prefix=import/)");
  for (const NodeDef& node : run.graph.node()) {
    const bool is_new = node.name() == "new_categorical_placeholder" ||
                        node.name() == "new_numeric_placeholder";
    EXPECT_EQ(node.name().find("import/") == 0, !is_new) << node.name();
  }
}

TEST(FuseFeatureColumns, SurvivesACycleOfIdentities) {
  Fuse(GraphFromText(R"(
         p = Identity(q) T=float
         q = Identity(p) T=float
         axis = int32{-1}
         y = ConcatV2(p, q, axis) T=float Tidx=int32 N=2
       )"),
       {"y"});
}

}  // namespace
}  // namespace requant::fuse_feature_columns_test
