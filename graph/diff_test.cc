#include "graph/diff.h"

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "graph/testing/testing.h"

namespace requant::diff_test {
namespace {

GraphDef Graph() {
  return GraphFromText(R"(
    a = float{1}
    b = Relu(a) T=float
    c = NoOp(^b) device:'/cpu:0'
    function f() -> () {
    }
    function g() -> () {
    }
    versions { producer: 27 }
  )");
}

TEST(DiffGraphs, IgnoresTheOrderOfNodesAndFunctions) {
  GraphDef other = Graph();
  other.mutable_node()->SwapElements(0, 2);
  other.mutable_library()->mutable_function()->SwapElements(0, 1);
  const GraphDiff diff = DiffGraphs(Graph(), other);
  EXPECT_TRUE(diff.equal());
  EXPECT_THAT(DiffAsText(diff, 0), HasSubstr("the graphs are equal: 3 nodes"));
}

TEST(DiffGraphs, ListsAddedAndRemovedNodes) {
  GraphDef other = Graph();
  other.mutable_node(1)->set_name("d");
  const GraphDiff diff = DiffGraphs(Graph(), other);
  ASSERT_EQ(diff.added.size(), 1);
  EXPECT_EQ(diff.added[0].name, "d");
  EXPECT_EQ(diff.added[0].op, "Relu");
  ASSERT_EQ(diff.removed.size(), 1);
  EXPECT_EQ(diff.removed[0].name, "b");
  EXPECT_THAT(diff.changed, IsEmpty());
}

TEST(DiffGraphs, SaysWhatChangedInANode) {
  GraphDef other = Graph();
  auto& constant = *other.mutable_node(0);
  (*constant.mutable_attr())["value"].mutable_tensor()->set_float_val(0, 2);
  (*constant.mutable_attr())["_new"].set_b(true);
  constant.mutable_attr()->erase("dtype");
  other.mutable_node(1)->set_op("Relu6");
  other.mutable_node(2)->set_device("");
  other.mutable_node(2)->set_input(0, "^a");
  const GraphDiff diff = DiffGraphs(Graph(), other);
  ASSERT_EQ(diff.changed.size(), 3);
  EXPECT_THAT(diff.changed[0].attributes,
              ElementsAre("_new", "dtype", "value"));
  EXPECT_FALSE(diff.changed[0].inputs);
  EXPECT_EQ(diff.changed[1].op_before, "Relu");
  EXPECT_EQ(diff.changed[1].op_after, "Relu6");
  EXPECT_THAT(diff.changed[1].attributes, IsEmpty());
  EXPECT_TRUE(diff.changed[2].inputs);
  EXPECT_TRUE(diff.changed[2].device);
}

TEST(DiffGraphs, CountsNodesAndBytesOfEachOp) {
  GraphDef other = Graph();
  other.mutable_node(1)->set_op("Const");
  const GraphDiff diff = DiffGraphs(Graph(), other);
  ASSERT_EQ(diff.ops.size(), 3);
  EXPECT_EQ(diff.ops[0].op, "Const");
  EXPECT_EQ(diff.ops[0].before.nodes, 1);
  EXPECT_EQ(diff.ops[0].after.nodes, 2);
  EXPECT_EQ(diff.ops[0].after.bytes,
            other.node(0).ByteSizeLong() + other.node(1).ByteSizeLong());
  EXPECT_EQ(diff.ops[2].op, "Relu");
  EXPECT_EQ(diff.ops[2].after.nodes, 0);
}

TEST(DiffGraphs, ComparesFunctionsVersionsAndGradients) {
  GraphDef other = Graph();
  auto* library = other.mutable_library();
  library->mutable_function(0)->add_node_def()->set_name("n");
  library->mutable_function(1)->mutable_signature()->set_name("h");
  library->add_gradient()->set_function_name("f");
  other.mutable_versions()->set_producer(28);
  const GraphDiff diff = DiffGraphs(Graph(), other);
  EXPECT_THAT(diff.functions_changed, ElementsAre("f"));
  EXPECT_THAT(diff.functions_removed, ElementsAre("g"));
  EXPECT_THAT(diff.functions_added, ElementsAre("h"));
  EXPECT_THAT(diff.other_parts, ElementsAre("gradients", "versions"));
}

TEST(DiffGraphs, PairsNodesOfTheSameNameInOrder) {
  GraphDef twice = Graph();
  *twice.add_node() = twice.node(1);
  const GraphDiff diff = DiffGraphs(Graph(), twice);
  EXPECT_EQ(diff.added.size(), 1);
  EXPECT_THAT(diff.changed, IsEmpty());
}

TEST(GraphSizeSummary, IsOneReadableLine) {
  EXPECT_EQ(GraphSizeSummary({1204, 9530000}, {873, 4970000}),
            "1,204 -> 873 nodes (-27 %), 9.53 -> 4.97 MB (-48 %)");
  EXPECT_EQ(GraphSizeSummary({5, 999}, {5, 999}), "5 nodes, 999 B");
  EXPECT_EQ(GraphSizeSummary({0, 0}, {1, 1500}),
            "0 -> 1 node, 0.00 -> 1.50 kB");
  EXPECT_EQ(GraphSizeSummary({1000000, 2000}, {999000, 4000}),
            "1,000,000 -> 999,000 nodes (-0.1 %), 2.00 -> 4.00 kB (+100 %)");
}

TEST(DiffAsText, ListsAtMostTheGivenNumberOfNames) {
  GraphDef other = Graph();
  for (const char* name : {"x1", "x2", "x3"}) {
    other.add_node()->set_name(name);
    other.mutable_node(other.node_size() - 1)->set_op("NoOp");
  }
  const GraphDiff diff = DiffGraphs(Graph(), other);
  EXPECT_THAT(
      DiffAsText(diff, 2),
      HasSubstr("nodes added: 3\n  x1 (NoOp)\n  x2 (NoOp)\n  ... and 1 more"));
  EXPECT_THAT(DiffAsText(diff, 0), HasSubstr("  x3 (NoOp)\n"));
  EXPECT_THAT(DiffAsText(diff, 0), Not(HasSubstr("more")));
}

TEST(DiffAsText, ShowsTheOpsThatDiffer) {
  GraphDef other = Graph();
  other.mutable_node(1)->set_op("Relu6");
  const std::string text = DiffAsText(DiffGraphs(Graph(), other), 0);
  EXPECT_THAT(text, HasSubstr("  op     nodes   size\n"
                              "  Relu6  0 -> 1  0 -> 22 B\n"
                              "  Relu   1 -> 0  21 -> 0 B (-100 %)\n"));
  EXPECT_THAT(text, HasSubstr("b (Relu6): op Relu -> Relu6\n"));
}

TEST(DiffAsJson, IsValidWhateverTheNames) {
  GraphDef other = Graph();
  other.mutable_node(0)->set_name("q\"\\\n\xff\xc3\xa9");
  const std::string json = DiffAsJson(DiffGraphs(Graph(), other));
  google::protobuf::Struct parsed;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok())
      << json;
  EXPECT_FALSE(parsed.fields().at("equal").bool_value());
  EXPECT_EQ(parsed.fields()
                .at("added")
                .list_value()
                .values(0)
                .struct_value()
                .fields()
                .at("name")
                .string_value(),
            "q\"\\\n\xef\xbf\xbd\xc3\xa9");
}

}  // namespace
}  // namespace requant::diff_test
