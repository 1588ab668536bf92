#include <cstdint>

#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "transforms/testing/testing.h"

namespace requant::fuse_feature_columns_test {
namespace {

using tensorflow::TensorShape;

Tensor Strings(const std::vector<std::string>& values) {
  return TensorOf<tensorflow::tstring>(
      TensorShape({static_cast<int64_t>(values.size())}),
      {values.begin(), values.end()});
}

Tensor Pairs(const std::vector<int64_t>& values) {
  return TensorOf<int64_t>(
      TensorShape({static_cast<int64_t>(values.size() / 2), 2}), values);
}

// Row i is {10 i + first, 10 i + first + 1, ...}.
Tensor Table(int64_t rows, int64_t width, float first) {
  Tensor table(tensorflow::DT_FLOAT, TensorShape({rows, width}));
  for (int64_t i = 0; i < rows * width; ++i) {
    table.flat<float>()(i) = first + 10 * (i / width) + i % width;
  }
  return table;
}

// Writes the nodes that tf.estimator makes for feature columns.
class EstimatorGraph {
 public:
  // `names` stand for $0, $1, ...
  template <typename... Names>
  void Add(const std::string& lines, const Names&... names) {
    AddNodes(absl::Substitute(lines, names...), &graph);
  }

  // Adds the column `name`: the strings of `placeholder` hashed, and their rows
  // of `table`. With `expand`, strings get their second dimension here.
  void Lookup(const std::string& name, const std::string& placeholder,
              int64_t buckets, const Tensor& table, bool expand = true,
              const std::string& combiner = "SparseSegmentMean") {
    if (expand) {
      Add("$0/last = int32{-1}; $0/dense = ExpandDims($1, $0/last) T=string",
          name, placeholder);
    }
    Add(R"(
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
    )",
        name, expand ? name + "/dense" : placeholder, buckets);
    SafeLookup(name, table, combiner);
  }

  void SafeLookup(const std::string& name, const Tensor& table,
                  const std::string& combiner) {
    *graph.add_node() = MakeConst(name + "/table", table);
    Add(R"(
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
      $0/rows = $1($0/looked_up, $0/unique:1, $0/segments) T=float
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
        name, combiner);
  }

  // Adds the numbers of `placeholder`, (x - minimum) / range.
  void Numeric(const std::string& name, const std::string& placeholder,
               float minimum, float range) {
    Add(R"(
      $0/last = int32{-1}
      $0/minimum = float{$2}
      $0/range = float{$3}
      $0/column = int32<2>{-1,1}
      $0/dense = ExpandDims($1, $0/last) T=float
      $0/sub = Sub($0/dense, $0/minimum) T=float
      $0/div = RealDiv($0/sub, $0/range) T=float
      $0 = Reshape($0/div, $0/column) T=float
    )",
        name, placeholder, minimum, range);
  }

  void Concat(const std::string& name, const std::vector<std::string>& inputs) {
    Add(R"(
      $0/axis = int32{-1}
      $0 = ConcatV2($1, $0/axis) T=float Tidx=int32 N=$2
    )",
        name, absl::StrJoin(inputs, ", "), inputs.size());
  }

  void Sum(const std::string& name, const std::vector<std::string>& inputs) {
    Add("$0 = AddN($1) T=float N=$2", name, absl::StrJoin(inputs, ", "),
        inputs.size());
  }

  GraphDef graph;
};

// Returns the bucket that TensorFlow's own op gives.
int64_t Hash(const std::string& text, int64_t buckets) {
  const GraphDef graph = GraphFromText(
      absl::StrCat("text = Placeholder dtype=string shape=<1>\n"
                   "hash = StringToHashBucketFast(text) num_buckets=",
                   buckets));
  return ValuesOf<int64_t>(
      MustRunGraph(graph, {{"text", Strings({text})}}, {"hash"})[0])[0];
}

// Returns a graph with one column, "y", of the strings of "a".
GraphDef OneColumn(const std::string& shape, int64_t buckets = 5,
                   bool expand = true) {
  EstimatorGraph g;
  g.Add("a = Placeholder dtype=string shape=<$0>", shape);
  g.Lookup("y", "a", buckets, Table(5, 2, 100), expand);
  return g.graph;
}

TransformRun Fuse(const GraphDef& graph,
                  const std::vector<std::string>& outputs,
                  const std::string& parameters = "") {
  return MustTransform("fuse_feature_columns" + parameters, graph, {}, outputs);
}

using Feeds = std::vector<std::pair<std::string, Tensor>>;

std::vector<float> Output(const GraphDef& graph, const Feeds& feeds,
                          const std::string& output) {
  return ValuesOf(MustRunGraph(graph, feeds, {output})[0]);
}

// Returns two strings and a number, joined as names sort: b, number, a.
GraphDef DeepGraph(int64_t buckets_of_a = 5, int64_t buckets_of_b = 5) {
  EstimatorGraph g;
  g.Add(R"(
    a = Placeholder dtype=string shape=<?>
    b = Placeholder dtype=string shape=<?>
    x = Placeholder dtype=float shape=<?>
  )");
  g.Lookup("a_embedding", "a", buckets_of_a, Table(buckets_of_a, 2, 100));
  g.Lookup("b_embedding", "b", buckets_of_b, Table(buckets_of_b, 2, 200));
  g.Numeric("number", "x", 1, 4);
  g.Concat("deep", {"b_embedding", "number", "a_embedding"});
  return g.graph;
}

// Returns the same with a linear part, "wide", that adds up "wide_a" and
// others.
EstimatorGraph WideAndDeep() {
  EstimatorGraph g;
  g.graph = DeepGraph();
  g.Lookup("wide_a", "a", 5, Table(5, 1, 0.5), true, "SparseSegmentSum");
  return g;
}

Feeds RawFeeds() {
  return {{"a", Strings({"cat", "dog", "cow"})},
          {"b", Strings({"red", "green", " "})},
          {"x", TensorOf<float>({3}, {1, 5, 9})}};
}

Feeds FusedFeeds(int64_t buckets_of_a = 5, int64_t buckets_of_b = 5) {
  // b comes first, so it is column 0.
  std::vector<int64_t> pairs;
  const std::vector<std::string> a = {"cat", "dog", "cow"};
  const std::vector<std::string> b = {"red", "green", " "};
  for (int i = 0; i < 3; ++i) {
    for (int64_t value : {int64_t{0}, Hash(b[i], buckets_of_b), int64_t{1},
                          Hash(a[i], buckets_of_a)}) {
      pairs.push_back(value);
    }
  }
  return {{"new_categorical_placeholder", Pairs(pairs)},
          {"new_numeric_placeholder", TensorOf<float>({3, 1}, {0, 1, 2})}};
}

TEST(FuseFeatureColumns, StacksEmbeddingsInTheOrderOfTheConcat) {
  const GraphDef raw = DeepGraph();
  const auto run = Fuse(raw, {"deep"});
  EXPECT_EQ(Output(run.graph, FusedFeeds(), "deep"),
            Output(raw, RawFeeds(), "deep"));
  EXPECT_EQ(NodesOf(run.graph, "GatherNd").size(), 1);
  EXPECT_FALSE(HasNode(run.graph, "a"));
  EXPECT_FALSE(HasNode(run.graph, "x"));
  EXPECT_THAT(run.warnings, IsEmpty());
}

TEST(FuseFeatureColumns, TellsWhichPlaceholderEachColumnComesFrom) {
  const auto run = Fuse(DeepGraph(), {"deep"});
  EXPECT_THAT(run.notes,
              AllOf(Contains(AllOf(HasSubstr("column 0: \"b\""),
                                   HasSubstr("into 5 buckets"))),
                    Contains(HasSubstr("column 1: \"a\"")),
                    Contains(HasSubstr("column 0: \"x\", (x - 1) / 4")),
                    Contains(HasSubstr("stacks 2 tables of [5,2]")),
                    Contains(HasSubstr("no pair for \"\""))));
}

TEST(FuseFeatureColumns, KeepsTablesOfDifferentSizesApart) {
  const GraphDef raw = DeepGraph(5, 7);
  const auto run = Fuse(raw, {"deep"});
  EXPECT_EQ(Output(run.graph, FusedFeeds(5, 7), "deep"),
            Output(raw, RawFeeds(), "deep"));
  EXPECT_EQ(NodesOf(run.graph, "GatherNd").size(), 2);
}

TEST(FuseFeatureColumns, AddsUpLinearWeights) {
  EstimatorGraph g = WideAndDeep();
  g.Lookup("wide_b", "b", 5, Table(5, 1, 0.25), true, "SparseSegmentSum");
  g.Sum("wide", {"wide_a", "wide_b"});
  const auto run = Fuse(g.graph, {"wide", "deep"});
  // The deep part's order holds for both.
  EXPECT_EQ(Output(run.graph, FusedFeeds(), "wide"),
            Output(g.graph, RawFeeds(), "wide"));
  EXPECT_EQ(NodeNamed(run.graph, "wide").op(), "Sum");
}

TEST(FuseFeatureColumns, AddsWhatItDoesNotKnowToTheFusedSum) {
  EstimatorGraph g = WideAndDeep();
  g.Add("other = Placeholder dtype=float shape=<?,1>");
  g.Sum("wide", {"other", "wide_a"});
  const auto run = Fuse(g.graph, {"wide", "deep"});
  Feeds raw = RawFeeds();
  Feeds fused = FusedFeeds();
  raw.emplace_back("other", TensorOf<float>({3, 1}, {1, 2, 3}));
  fused.emplace_back("other", TensorOf<float>({3, 1}, {1, 2, 3}));
  EXPECT_EQ(Output(run.graph, fused, "wide"), Output(g.graph, raw, "wide"));
  EXPECT_THAT(run.warnings, Contains(HasSubstr("leaves \"other\"")));
}

TEST(FuseFeatureColumns, TakesANumericColumnWithItsWeight) {
  EstimatorGraph g = WideAndDeep();
  g.Numeric("wide_number", "x", 1, 4);
  g.Add("three = float<1,1>{3}; weighted = MatMul(wide_number, three) T=float");
  g.Sum("wide", {"wide_a", "weighted"});
  const auto run = Fuse(g.graph, {"wide", "deep"});
  EXPECT_EQ(Output(run.graph, FusedFeeds(), "wide"),
            Output(g.graph, RawFeeds(), "wide"));
  EXPECT_FALSE(HasNode(run.graph, "x"));
}

TEST(FuseFeatureColumns, FusesALookupThatNothingJoins) {
  GraphDef graph = OneColumn("?");
  AddNodes("z = Neg(y) T=float", &graph);
  EXPECT_EQ(
      Output(Fuse(graph, {"z"}).graph,
             {{"new_categorical_placeholder", Pairs({0, Hash("cat", 5)})}},
             "z"),
      Output(graph, {{"a", Strings({"cat"})}}, "z"));
}

TEST(FuseFeatureColumns, RefusesAnIdBeyondTheTable) {
  const auto run = Fuse(DeepGraph(), {"deep"});
  const auto result =
      RunGraph(run.graph,
               {{"new_categorical_placeholder", Pairs({0, 5, 1, 0})},
                {"new_numeric_placeholder", TensorOf<float>({1, 1}, {0})}},
               {"deep"});
  EXPECT_FALSE(result.ok());
}

TEST(FuseFeatureColumns, SimplifiesEachColumnExactly) {
  const GraphDef raw = DeepGraph(5, 7);
  const auto run = Fuse(raw, {"deep"}, "(fuse=false)");
  // The empty string is a missing value: zeros.
  const Feeds feeds = {{"a", Strings({"cat", "", "cow", ""})},
                       {"b", Strings({"", "green", " ", ""})},
                       {"x", TensorOf<float>({4}, {1, 5, 9, 2})}};
  EXPECT_EQ(Output(run.graph, feeds, "deep"), Output(raw, feeds, "deep"));
  EXPECT_EQ(NodesOf(run.graph, "SparseFillEmptyRows").size(), 0);
  EXPECT_EQ(NodesOf(run.graph, "GatherV2").size(), 2);
}

TEST(FuseFeatureColumns, HashesAColumnOnceForBothParts) {
  EstimatorGraph g = WideAndDeep();
  g.Sum("wide", {"wide_a"});
  const auto run = Fuse(g.graph, {"wide", "deep"}, "(fuse=false)");
  EXPECT_EQ(NodesOf(run.graph, "StringToHashBucketFast").size(), 2);
}

TEST(FuseFeatureColumns, TakesPlaceholdersWithASecondDimensionOfOne) {
  const GraphDef graph = OneColumn("?,1", 5, /*expand=*/false);
  const auto run = Fuse(graph, {"y"}, "(fuse=false)");
  Tensor values(tensorflow::DT_STRING, TensorShape({2, 1}));
  values.flat<tensorflow::tstring>()(0) = "cat";
  EXPECT_EQ(NodesOf(run.graph, "SparseFillEmptyRows").size(), 0);
  EXPECT_EQ(Output(run.graph, {{"a", values}}, "y"),
            Output(graph, {{"a", values}}, "y"));
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
  const GraphDef raw = DeepGraph();
  for (const char* transform :
       {"fuse_feature_columns", "fuse_feature_columns(fuse=false)"}) {
    const auto run = MustTransform(transform, raw, {}, {"deep", "a_embedding"});
    EXPECT_TRUE(HasNode(run.graph, "a_embedding")) << transform;
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
  EXPECT_EQ(Output(run.graph, FusedFeeds(), "import/deep"),
            Output(DeepGraph(), RawFeeds(), "deep"));
}

TEST(FuseFeatureColumns, SurvivesACycleOfIdentities) {
  EstimatorGraph g;
  g.Add("p = Identity(q) T=float; q = Identity(p) T=float");
  g.Concat("y", {"p", "q"});
  Fuse(g.graph, {"y"});
}

}  // namespace
}  // namespace requant::fuse_feature_columns_test
