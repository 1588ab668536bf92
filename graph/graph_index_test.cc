#include "graph/graph_index.h"

#include "graph/testing/testing.h"

namespace requant::graph_index_test {
namespace {

std::vector<std::string> Described(const std::vector<Use>& uses) {
  std::vector<std::string> text;
  for (const Use& use : uses) {
    text.push_back(
        absl::StrCat(use.node->name(), "#", use.input, " port ", use.port));
  }
  return text;
}

TEST(ParseTensorName, KnowsPortsAndControlInputs) {
  EXPECT_EQ(ParseTensorName("a/b").node, "a/b");
  EXPECT_EQ(ParseTensorName("a/b:12").port, 12);
  EXPECT_EQ(ParseTensorName("^a").port, kControlPort);
  EXPECT_EQ(ParseTensorName("a:x").node, "a:x");
  EXPECT_EQ(ParseTensorName("a:99999999999999999999").port, 0);
  EXPECT_EQ(FormatTensorName("a", 0), "a");
  EXPECT_EQ(FormatTensorName("a", 2), "a:2");
  EXPECT_EQ(FormatTensorName("a", kControlPort), "^a");
}

class GraphIndexOfADiamond : public testing::Test {
 protected:
  GraphDef graph_ = GraphFromText(
      "a = Const; s = Split(a); b = Add(s:1, s, ^a); c = Neg(s:1)");
  GraphIndex index_ = GraphIndex::Create(&graph_).value();
};

TEST_F(GraphIndexOfADiamond, ListsUsesOnEveryPort) {
  EXPECT_THAT(Described(index_.Uses("s")),
              UnorderedElementsAre("b#0 port 1", "b#1 port 0", "c#0 port 1"));
  EXPECT_THAT(Described(index_.Uses("a")),
              UnorderedElementsAre("s#0 port 0", "b#2 port -1"));
  EXPECT_EQ(index_.Producer(*index_.Find("c"), 0)->name(), "s");
  EXPECT_EQ(index_.Producer(*index_.Find("c"), 1), nullptr);
}

TEST_F(GraphIndexOfADiamond, RedirectsOnlyTheNamedPort) {
  index_.RedirectUses({"s", 1}, {"a", 0}, index_.Find("c"));
  EXPECT_THAT(index_.Find("b")->input(), ElementsAre("a", "s", "^a"));
  EXPECT_THAT(index_.Find("c")->input(), ElementsAre("s:1"));
  EXPECT_THAT(Described(index_.Uses("s")),
              UnorderedElementsAre("b#1 port 0", "c#0 port 1"));
}

TEST_F(GraphIndexOfADiamond, RefusesToRemoveWhatIsStillRead) {
  EXPECT_THAT(index_.Remove("s"),
              FailsWith(HasSubstr("\"s\" is still read by")));
  EXPECT_EQ(index_.Remove("x").code(), absl::StatusCode::kNotFound);
}

TEST_F(GraphIndexOfADiamond, RemovalKeepsTheOrderOfTheOthers) {
  ASSERT_OK(index_.Remove("b"));
  EXPECT_EQ(index_.Find("b"), nullptr);
  EXPECT_THAT(Described(index_.Uses("a")), ElementsAre("s#0 port 0"));
  index_.Commit();
  EXPECT_THAT(NodesOf(graph_), ElementsAre("a", "s", "c"));
}

TEST_F(GraphIndexOfADiamond, AddedNodesAreIndexedAndNamesStayUnique) {
  NodeDef node;
  node.set_name(index_.FreeName("a"));
  node.add_input("c");
  ASSERT_OK(index_.Add(node));
  EXPECT_EQ(index_.Find("a_1")->input(0), "c");
  EXPECT_THAT(Described(index_.Uses("c")), ElementsAre("a_1#0 port 0"));
  EXPECT_EQ(index_.Add(node).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(GraphIndexOfADiamond, SetInputsReplacesAllUses) {
  index_.SetInputs(index_.Find("b"), {"c", "c", "c", "s:2"});
  EXPECT_THAT(Described(index_.Uses("c")),
              UnorderedElementsAre("b#0 port 0", "b#1 port 0", "b#2 port 0"));
  EXPECT_THAT(Described(index_.Uses("s")),
              UnorderedElementsAre("b#3 port 2", "c#0 port 1"));
}

TEST(GraphIndex, RefusesRepeatedAndEmptyNames) {
  GraphDef graph = GraphFromText("a = A; a = A");
  EXPECT_THAT(GraphIndex::Create(&graph),
              FailsWith(HasSubstr("two nodes are named \"a\"")));
  graph.mutable_node(1)->clear_name();
  EXPECT_THAT(GraphIndex::Create(&graph),
              FailsWith(HasSubstr("node number 1")));
}

TEST(GraphIndex, KeepsInputsThatNameNoNode) {
  GraphDef graph = GraphFromText("a = A(gone:1)");
  auto index = GraphIndex::Create(&graph).value();
  EXPECT_EQ(index.Producer(*index.Find("a"), 0), nullptr);
  index.SetInput(index.Find("a"), 0, "gone");
  EXPECT_EQ(graph.node(0).input(0), "gone");
}

}  // namespace
}  // namespace requant::graph_index_test
