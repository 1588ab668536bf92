#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "transforms/testing/testing.h"

namespace requant::fuse_feature_columns_test {
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
using testing::IsEmpty;

constexpr DataType kFloat = tensorflow::DT_FLOAT;
constexpr DataType kInt32 = tensorflow::DT_INT32;
constexpr DataType kInt64 = tensorflow::DT_INT64;
constexpr DataType kString = tensorflow::DT_STRING;
constexpr DataType kBool = tensorflow::DT_BOOL;

Tensor Floats(const std::vector<int64_t>& shape,
              const std::vector<float>& values) {
  Tensor tensor(kFloat, TensorShape(shape));
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return tensor;
}

Tensor Strings(const std::vector<std::string>& values) {
  Tensor tensor(kString, TensorShape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(),
            tensor.flat<tensorflow::tstring>().data());
  return tensor;
}

Tensor Pairs(const std::vector<int64_t>& values) {
  Tensor tensor(kInt64,
                TensorShape({static_cast<int64_t>(values.size() / 2), 2}));
  std::copy(values.begin(), values.end(), tensor.flat<int64_t>().data());
  return tensor;
}

// Row i is {10 i + first, 10 i + first + 1, ...}.
Tensor Table(int64_t rows, int64_t width, float first) {
  Tensor table(kFloat, TensorShape({rows, width}));
  for (int64_t i = 0; i < rows * width; ++i) {
    table.flat<float>()(i) = first + 10 * (i / width) + i % width;
  }
  return table;
}

// Writes the nodes that tf.estimator makes for feature columns.
class EstimatorGraph {
 public:
  NodeDef* Add(const std::string& name, const std::string& op,
               const std::vector<std::string>& inputs,
               const std::map<std::string, DataType>& types = {},
               const std::map<std::string, int64_t>& integers = {}) {
    NodeDef* node = graph.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    for (const auto& [key, type] : types) {
      (*node->mutable_attr())[key].set_type(type);
    }
    for (const auto& [key, value] : integers) {
      (*node->mutable_attr())[key].set_i(value);
    }
    return node;
  }

  // A new constant; its name.
  std::string Value(const Tensor& value) {
    const std::string name = absl::StrCat("value_", graph.node_size());
    *graph.add_node() = MakeConst(name, value);
    return name;
  }
  std::string Scalar(int32_t value) { return Value(Tensor(value)); }
  std::string Vector(const std::vector<int32_t>& values) {
    Tensor tensor(kInt32, TensorShape({static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
    return Value(tensor);
  }

  void Placeholder(const std::string& name, DataType type,
                   const std::vector<int64_t>& shape) {
    NodeDef* node = Add(name, "Placeholder", {}, {{"dtype", type}});
    auto* sizes = (*node->mutable_attr())["shape"].mutable_shape();
    for (int64_t size : shape) sizes->add_dim()->set_size(size);
  }

  // The column `name`: the strings of `placeholder` hashed, and the rows of
  // `table` for them. With `expand`, strings get their second dimension here.
  void Lookup(const std::string& name, const std::string& placeholder,
              int64_t buckets, const Tensor& table, bool expand = true,
              const std::string& combiner = "SparseSegmentMean") {
    const auto n = [&](const std::string& part) { return name + "/" + part; };
    std::string dense = placeholder;
    if (expand) {
      Add(n("dense"), "ExpandDims", {placeholder, Scalar(-1)},
          {{"T", kString}});
      dense = n("dense");
    }
    const std::string missing = Value(Tensor(tensorflow::tstring("")));
    Add(n("present"), "NotEqual", {dense, missing}, {{"T", kString}});
    Add(n("indices"), "Where", {n("present")}, {{"T", kBool}});
    Add(n("values"), "GatherNd", {dense, n("indices")},
        {{"Tparams", kString}, {"Tindices", kInt64}});
    Add(n("shape"), "Shape", {dense}, {{"T", kString}, {"out_type", kInt64}});
    Add(n("hash"), "StringToHashBucketFast", {n("values")}, {},
        {{"num_buckets", buckets}});
    Add(n("first"), "StridedSlice",
        {n("shape"), Vector({0}), Vector({1}), Vector({1})},
        {{"T", kInt64}, {"Index", kInt32}}, {{"shrink_axis_mask", 1}});
    Add(n("new_shape"), "Pack", {n("first"), Value(Tensor(int64_t{-1}))},
        {{"T", kInt64}}, {{"N", 2}});
    Add(n("reshape"), "SparseReshape",
        {n("indices"), n("shape"), n("new_shape")});
    SafeLookup(name, n("hash"), table, combiner);
  }

  void SafeLookup(const std::string& name, const std::string& ids,
                  const Tensor& table, const std::string& combiner) {
    const auto n = [&](const std::string& part) { return name + "/" + part; };
    const std::map<std::string, DataType> gather = {
        {"Tparams", kInt64}, {"Tindices", kInt64}, {"Taxis", kInt32}};
    Add(n("is_id"), "GreaterEqual", {ids, Value(Tensor(int64_t{0}))},
        {{"T", kInt64}});
    Add(n("where_id"), "Where", {n("is_id")}, {{"T", kBool}});
    Add(n("kept"), "Reshape", {n("where_id"), Vector({-1})}, {{"T", kInt64}});
    Add(n("kept_indices"), "GatherV2", {n("reshape"), n("kept"), Scalar(0)},
        gather);
    Add(n("kept_ids"), "GatherV2", {ids, n("kept"), Scalar(0)}, gather);
    Add(n("fill"), "SparseFillEmptyRows",
        {n("kept_indices"), n("kept_ids"), n("reshape") + ":1",
         Value(Tensor(int64_t{0}))},
        {{"T", kInt64}});
    Add(n("segments"), "StridedSlice",
        {n("fill"), Vector({0, 0}), Vector({0, 1}), Vector({1, 1})},
        {{"T", kInt64}, {"Index", kInt32}},
        {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
    Add(n("unique"), "Unique", {n("fill") + ":1"}, {{"T", kInt64}});
    Add(n("looked_up"), "GatherV2", {Value(table), n("unique"), Scalar(0)},
        {{"Tparams", kFloat}, {"Tindices", kInt64}, {"Taxis", kInt32}});
    Add(n("rows"), combiner,
        {n("looked_up"), n("unique") + ":1", n("segments")},
        {{"T", kFloat}, {"Tsegmentids", kInt64}});
    Add(n("empty"), "Reshape", {n("fill") + ":2", Vector({-1, 1})},
        {{"T", kBool}});
    Add(n("rows_shape"), "Shape", {n("rows")}, {{"T", kFloat}});
    Add(n("width"), "StridedSlice",
        {n("rows_shape"), Vector({1}), Vector({2}), Vector({1})},
        {{"T", kInt32}, {"Index", kInt32}}, {{"shrink_axis_mask", 1}});
    Add(n("multiples"), "Pack", {Scalar(1), n("width")}, {{"T", kInt32}},
        {{"N", 2}});
    Add(n("is_empty"), "Tile", {n("empty"), n("multiples")}, {{"T", kBool}});
    Add(n("zeros"), "ZerosLike", {n("rows")}, {{"T", kFloat}});
    Add(name, "Select", {n("is_empty"), n("zeros"), n("rows")},
        {{"T", kFloat}});
  }

  // The numbers of `placeholder`, (x - minimum) / range.
  void Numeric(const std::string& name, const std::string& placeholder,
               float minimum, float range) {
    Add(name + "/dense", "ExpandDims", {placeholder, Scalar(-1)},
        {{"T", kFloat}});
    Add(name + "/sub", "Sub", {name + "/dense", Value(Tensor(minimum))},
        {{"T", kFloat}});
    Add(name + "/div", "RealDiv", {name + "/sub", Value(Tensor(range))},
        {{"T", kFloat}});
    Add(name, "Reshape", {name + "/div", Vector({-1, 1})}, {{"T", kFloat}});
  }

  void Concat(const std::string& name, std::vector<std::string> inputs) {
    const int64_t count = inputs.size();
    inputs.push_back(Scalar(-1));
    Add(name, "ConcatV2", inputs, {{"T", kFloat}, {"Tidx", kInt32}},
        {{"N", count}});
  }

  void Sum(const std::string& name, const std::vector<std::string>& inputs) {
    Add(name, "AddN", inputs, {{"T", kFloat}},
        {{"N", static_cast<int64_t>(inputs.size())}});
  }

  GraphDef graph;
};

// The bucket that TensorFlow's own op gives.
int64_t Hash(const std::string& text, int64_t buckets) {
  EstimatorGraph g;
  g.Placeholder("text", kString, {1});
  g.Add("hash", "StringToHashBucketFast", {"text"}, {},
        {{"num_buckets", buckets}});
  const auto result = RunGraph(g.graph, {{"text", Strings({text})}}, {"hash"});
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    return 0;
  }
  return (*result)[0].flat<int64_t>()(0);
}

using Feeds = std::vector<std::pair<std::string, Tensor>>;

std::vector<float> Output(const GraphDef& graph, const Feeds& feeds,
                          const std::string& output) {
  const auto result = RunGraph(graph, feeds, {output});
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    return {};
  }
  const auto flat = (*result)[0].flat<float>();
  return {flat.data(), flat.data() + flat.size()};
}

int CountOps(const GraphDef& graph, const std::string& op) {
  return std::count_if(graph.node().begin(), graph.node().end(),
                       [&](const NodeDef& node) { return node.op() == op; });
}

// Two strings and a number, joined as names sort: b, number, a.
GraphDef DeepGraph(int64_t buckets_of_a = 5, int64_t buckets_of_b = 5) {
  EstimatorGraph g;
  g.Placeholder("a", kString, {-1});
  g.Placeholder("b", kString, {-1});
  g.Placeholder("x", kFloat, {-1});
  g.Lookup("a_embedding", "a", buckets_of_a, Table(buckets_of_a, 2, 100));
  g.Lookup("b_embedding", "b", buckets_of_b, Table(buckets_of_b, 2, 200));
  g.Numeric("number", "x", 1, 4);
  g.Concat("deep", {"b_embedding", "number", "a_embedding"});
  return g.graph;
}

Feeds RawFeeds() {
  return {{"a", Strings({"cat", "dog", "cow"})},
          {"b", Strings({"red", "green", " "})},
          {"x", Floats({3}, {1, 5, 9})}};
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
          {"new_numeric_placeholder", Floats({3, 1}, {0, 1, 2})}};
}

TEST(FuseFeatureColumns, StacksEmbeddingsInTheOrderOfTheConcat) {
  const GraphDef raw = DeepGraph();
  const TransformRun run =
      RunTransform("fuse_feature_columns", raw, {}, {"deep"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(Output(run.graph, FusedFeeds(), "deep"),
            Output(raw, RawFeeds(), "deep"));
  EXPECT_EQ(CountOps(run.graph, "GatherNd"), 1);
  EXPECT_FALSE(HasNode(run.graph, "a"));
  EXPECT_FALSE(HasNode(run.graph, "x"));
  EXPECT_THAT(run.warnings, IsEmpty());
}

TEST(FuseFeatureColumns, TellsWhichPlaceholderEachColumnComesFrom) {
  const TransformRun run =
      RunTransform("fuse_feature_columns", DeepGraph(), {}, {"deep"});
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
  const TransformRun run =
      RunTransform("fuse_feature_columns", raw, {}, {"deep"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(Output(run.graph, FusedFeeds(5, 7), "deep"),
            Output(raw, RawFeeds(), "deep"));
  EXPECT_EQ(CountOps(run.graph, "GatherNd"), 2);
}

TEST(FuseFeatureColumns, AddsUpLinearWeights) {
  EstimatorGraph g;
  g.graph = DeepGraph();
  g.Lookup("wide_a", "a", 5, Table(5, 1, 0.5), true, "SparseSegmentSum");
  g.Lookup("wide_b", "b", 5, Table(5, 1, 0.25), true, "SparseSegmentSum");
  g.Sum("wide", {"wide_a", "wide_b"});
  const TransformRun run =
      RunTransform("fuse_feature_columns", g.graph, {}, {"wide", "deep"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  // The deep part's order holds for both.
  EXPECT_EQ(Output(run.graph, FusedFeeds(), "wide"),
            Output(g.graph, RawFeeds(), "wide"));
  EXPECT_EQ(NodeNamed(run.graph, "wide").op(), "Sum");
}

TEST(FuseFeatureColumns, AddsWhatItDoesNotKnowToTheFusedSum) {
  EstimatorGraph g;
  g.graph = DeepGraph();
  g.Lookup("wide_a", "a", 5, Table(5, 1, 0.5), true, "SparseSegmentSum");
  g.Placeholder("other", kFloat, {-1, 1});
  g.Sum("wide", {"other", "wide_a"});
  const TransformRun run =
      RunTransform("fuse_feature_columns", g.graph, {}, {"wide", "deep"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  Feeds raw = RawFeeds();
  Feeds fused = FusedFeeds();
  raw.emplace_back("other", Floats({3, 1}, {1, 2, 3}));
  fused.emplace_back("other", Floats({3, 1}, {1, 2, 3}));
  EXPECT_EQ(Output(run.graph, fused, "wide"), Output(g.graph, raw, "wide"));
  EXPECT_THAT(run.warnings, Contains(HasSubstr("leaves \"other\"")));
}

TEST(FuseFeatureColumns, TakesANumericColumnWithItsWeight) {
  EstimatorGraph g;
  g.graph = DeepGraph();
  g.Numeric("wide_number", "x", 1, 4);
  g.Add("weighted", "MatMul", {"wide_number", g.Value(Floats({1, 1}, {3}))},
        {{"T", kFloat}});
  g.Lookup("wide_a", "a", 5, Table(5, 1, 0.5), true, "SparseSegmentSum");
  g.Sum("wide", {"wide_a", "weighted"});
  const TransformRun run =
      RunTransform("fuse_feature_columns", g.graph, {}, {"wide", "deep"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(Output(run.graph, FusedFeeds(), "wide"),
            Output(g.graph, RawFeeds(), "wide"));
  EXPECT_FALSE(HasNode(run.graph, "x"));
}

TEST(FuseFeatureColumns, FusesALookupThatNothingJoins) {
  EstimatorGraph g;
  g.Placeholder("a", kString, {-1});
  g.Lookup("a_embedding", "a", 5, Table(5, 2, 100));
  g.Add("y", "Neg", {"a_embedding"}, {{"T", kFloat}});
  const TransformRun run =
      RunTransform("fuse_feature_columns", g.graph, {}, {"y"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(
      Output(run.graph,
             {{"new_categorical_placeholder", Pairs({0, Hash("cat", 5)})}},
             "y"),
      Output(g.graph, {{"a", Strings({"cat"})}}, "y"));
}

TEST(FuseFeatureColumns, RefusesAnIdBeyondTheTable) {
  const TransformRun run =
      RunTransform("fuse_feature_columns", DeepGraph(), {}, {"deep"});
  const auto result =
      RunGraph(run.graph,
               {{"new_categorical_placeholder", Pairs({0, 5, 1, 0})},
                {"new_numeric_placeholder", Floats({1, 1}, {0})}},
               {"deep"});
  EXPECT_FALSE(result.ok());
}

TEST(FuseFeatureColumns, SimplifiesEachColumnExactly) {
  const GraphDef raw = DeepGraph(5, 7);
  const TransformRun run =
      RunTransform("fuse_feature_columns(fuse=false)", raw, {}, {"deep"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  // The empty string is a missing value: zeros.
  const Feeds feeds = {{"a", Strings({"cat", "", "cow", ""})},
                       {"b", Strings({"", "green", " ", ""})},
                       {"x", Floats({4}, {1, 5, 9, 2})}};
  EXPECT_EQ(Output(run.graph, feeds, "deep"), Output(raw, feeds, "deep"));
  EXPECT_EQ(CountOps(run.graph, "SparseFillEmptyRows"), 0);
  EXPECT_EQ(CountOps(run.graph, "GatherV2"), 2);
}

TEST(FuseFeatureColumns, HashesAColumnOnceForBothParts) {
  EstimatorGraph g;
  g.graph = DeepGraph();
  g.Lookup("wide_a", "a", 5, Table(5, 1, 0.5), true, "SparseSegmentSum");
  g.Sum("wide", {"wide_a"});
  const TransformRun run = RunTransform("fuse_feature_columns(fuse=false)",
                                        g.graph, {}, {"wide", "deep"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(CountOps(run.graph, "StringToHashBucketFast"), 2);
}

TEST(FuseFeatureColumns, TakesPlaceholdersWithASecondDimensionOfOne) {
  EstimatorGraph g;
  g.Placeholder("a", kString, {-1, 1});
  g.Lookup("y", "a", 5, Table(5, 2, 100), /*expand=*/false);
  const TransformRun run =
      RunTransform("fuse_feature_columns(fuse=false)", g.graph, {}, {"y"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  Tensor values(kString, TensorShape({2, 1}));
  values.flat<tensorflow::tstring>()(0) = "cat";
  EXPECT_EQ(CountOps(run.graph, "SparseFillEmptyRows"), 0);
  EXPECT_EQ(Output(run.graph, {{"a", values}}, "y"),
            Output(g.graph, {{"a", values}}, "y"));
}

TEST(FuseFeatureColumns, LeavesAColumnWithSeveralValuesPerRecord) {
  EstimatorGraph g;
  g.Placeholder("a", kString, {-1, 3});
  g.Lookup("y", "a", 5, Table(5, 2, 100), /*expand=*/false);
  const TransformRun run =
      RunTransform("fuse_feature_columns", g.graph, {}, {"y"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_TRUE(SameMessage(run.graph, g.graph));
  EXPECT_THAT(run.warnings,
              ElementsAre("leaves \"y\": \"a\" may have several values per "
                          "record"));
  EXPECT_THAT(run.notes, ElementsAre("no feature column found"));
}

TEST(FuseFeatureColumns, LeavesALookupThatDiffersInOneNode) {
  EstimatorGraph g;
  g.Placeholder("a", kString, {-1});
  g.Lookup("y", "a", 5, Table(5, 2, 100));
  for (NodeDef& node : *g.graph.mutable_node()) {
    if (node.name() == "y/zeros") node.set_op("OnesLike");
  }
  const TransformRun run =
      RunTransform("fuse_feature_columns", g.graph, {}, {"y"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_TRUE(SameMessage(run.graph, g.graph));
  EXPECT_THAT(run.warnings, ElementsAre(AllOf(HasSubstr("leaves \"y\""),
                                              HasSubstr("OnesLike"))));
}

TEST(FuseFeatureColumns, LeavesATableSmallerThanTheHash) {
  EstimatorGraph g;
  g.Placeholder("a", kString, {-1});
  g.Lookup("y", "a", 6, Table(5, 2, 100));
  const TransformRun run =
      RunTransform("fuse_feature_columns", g.graph, {}, {"y"});
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("6 buckets, its table 5")));
}

TEST(FuseFeatureColumns, WarnsOfAPlaceholderThatIsReadElsewhere) {
  EstimatorGraph g;
  g.graph = DeepGraph();
  g.Add("echo", "Identity", {"a"}, {{"T", kString}});
  const TransformRun run =
      RunTransform("fuse_feature_columns", g.graph, {}, {"deep", "echo"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_TRUE(HasNode(run.graph, "a"));
  EXPECT_THAT(run.warnings,
              ElementsAre(AllOf(HasSubstr("\"a\" is still needed"),
                                HasSubstr("\"echo\""))));
}

TEST(FuseFeatureColumns, KeepsALookupThatIsAnOutput) {
  const GraphDef raw = DeepGraph();
  for (const char* transform :
       {"fuse_feature_columns", "fuse_feature_columns(fuse=false)"}) {
    const TransformRun run =
        RunTransform(transform, raw, {}, {"deep", "a_embedding"});
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_TRUE(HasNode(run.graph, "a_embedding")) << transform;
  }
}

TEST(FuseFeatureColumns, ChangesNothingTheSecondTime) {
  for (const char* transform :
       {"fuse_feature_columns", "fuse_feature_columns(fuse=false)"}) {
    const TransformRun once =
        RunTransform(transform, DeepGraph(), {}, {"deep"});
    const TransformRun twice =
        RunTransform(transform, once.graph, {}, {"deep"});
    ASSERT_TRUE(twice.status.ok()) << twice.status;
    EXPECT_TRUE(SameMessage(twice.graph, once.graph)) << transform;
  }
}

TEST(FuseFeatureColumns, LeavesAGraphWithoutColumnsAsItIs) {
  EstimatorGraph g;
  g.Placeholder("x", kFloat, {-1, 4});
  g.Add("y", "Relu", {"x"}, {{"T", kFloat}});
  const TransformRun run =
      RunTransform("fuse_feature_columns(prefix=import/)", g.graph, {}, {"y"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_TRUE(SameMessage(run.graph, g.graph));
  EXPECT_THAT(run.notes, ElementsAre("no feature column found"));
}

TEST(FuseFeatureColumns, PrefixesAllButTheNewPlaceholders) {
  const TransformRun run = RunTransform("fuse_feature_columns(prefix=import/)",
                                        DeepGraph(), {}, {"deep"});
  ASSERT_TRUE(run.status.ok()) << run.status;
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
  g.Add("p", "Identity", {"q"}, {{"T", kFloat}});
  g.Add("q", "Identity", {"p"}, {{"T", kFloat}});
  g.Concat("y", {"p", "q"});
  EXPECT_TRUE(
      RunTransform("fuse_feature_columns", g.graph, {}, {"y"}).status.ok());
}

}  // namespace
}  // namespace requant::fuse_feature_columns_test
