#include "graph/diff.h"

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"

namespace requant::diff_test {
namespace {

using testing::FieldsAre;

GraphDef Graph() {
  return GraphFromText(R"(
    a = float{1}
    b = Relu(a) T=float
    c = NoOp(^b) device:'/cpu:0'
    function f() -> () {}
    function g() -> () {}
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
  EXPECT_THAT(diff.added, ElementsAre(FieldsAre("d", "Relu")));
  EXPECT_THAT(diff.removed, ElementsAre(FieldsAre("b", "Relu")));
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
  EXPECT_THAT(
      diff.changed,
      ElementsAre(
          FieldsAre("a", "Const", "Const", false, false, false,
                    ElementsAre("_new", "dtype", "value")),
          FieldsAre("b", "Relu", "Relu6", false, false, false, IsEmpty()),
          FieldsAre("c", "NoOp", "NoOp", true, true, false, IsEmpty())));
}

TEST(DiffGraphs, CountsNodesAndBytesOfEachOp) {
  GraphDef other = Graph();
  other.mutable_node(1)->set_op("Const");
  const GraphDiff diff = DiffGraphs(Graph(), other);
  const int64_t constant = other.node(0).ByteSizeLong();
  EXPECT_THAT(
      diff.ops,
      ElementsAre(
          FieldsAre("Const", FieldsAre(1, constant),
                    FieldsAre(2, constant + other.node(1).ByteSizeLong())),
          FieldsAre("NoOp", testing::_, FieldsAre(1, testing::Gt(0))),
          FieldsAre("Relu", FieldsAre(1, testing::Gt(0)), FieldsAre(0, 0))));
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
  AddNodes("x1 = NoOp; x2 = NoOp; x3 = NoOp", &other);
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
  const auto& added = parsed.fields().at("added").list_value().values(0);
  EXPECT_EQ(added.struct_value().fields().at("name").string_value(),
            "q\"\\\n\xef\xbf\xbd\xc3\xa9");
}

// The program.
class DiffGraphsProgram : public testing::Test {
 protected:
  ProgramRun Run(const std::vector<std::string>& arguments) {
    return RunProgram("graph/diff_graphs", arguments);
  }
  std::string Written(const std::string& name, const std::string& text) {
    const std::string path = folder_.Path(name);
    EXPECT_OK(WriteGraph(GraphFromText(text), path, GraphFormat::kBinary));
    return path;
  }

  TestFolder folder_;
  const std::string a_ = Written("a.pb", "a = NoOp");
};

TEST_F(DiffGraphsProgram, ExitsWithZeroForEqualGraphsOfAnyFormat) {
  const ProgramRun run =
      Run({a_, folder_.WriteText("a.pbtxt", GraphFromText("a = NoOp"))});
  EXPECT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, StartsWith("the graphs are equal"));
}

TEST_F(DiffGraphsProgram, ExitsWithOneForDifferentGraphs) {
  const std::string b = Written("b.pb", "b = NoOp");
  const ProgramRun text = Run({a_, b});
  EXPECT_THAT(text, Exits(1));
  EXPECT_THAT(text.out, HasSubstr("nodes added: 1\n  b (NoOp)"));
  const ProgramRun json = Run({"--format=json", a_, b});
  EXPECT_THAT(json, Exits(1));
  EXPECT_THAT(json.out, HasSubstr("\"equal\": false"));
}

TEST_F(DiffGraphsProgram, ExitsWithTwoOnTrouble) {
  EXPECT_THAT(Run({a_, "no/such/file.pb"}),
              Exits(2, HasSubstr("no/such/file.pb")));
  EXPECT_THAT(Run({a_}), Exits(2));
  EXPECT_THAT(Run({a_, a_, "--format=xml"}), Exits(2));
}

}  // namespace
}  // namespace requant::diff_test
