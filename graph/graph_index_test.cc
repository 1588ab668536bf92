#include "graph/graph_index.h"

#include "graph/testing/testing.h"

namespace requant::graph_index_test {
namespace {

GraphDef Diamond() {
  return GraphFromText(
      "a = Const; s = Split(a); b = Add(s:1, s, ^a); c = Neg(s:1)");
}

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

TEST(GraphIndex, ListsUsesOnEveryPort) {
  GraphDef graph = Diamond();
  auto index = GraphIndex::Create(&graph).value();
  EXPECT_THAT(Described(index.Uses("s")),
              UnorderedElementsAre("b#0 port 1", "b#1 port 0", "c#0 port 1"));
  EXPECT_THAT(Described(index.Uses("a")),
              UnorderedElementsAre("s#0 port 0", "b#2 port -1"));
  EXPECT_EQ(index.Producer(*index.Find("c"), 0)->name(), "s");
  EXPECT_EQ(index.Producer(*index.Find("c"), 1), nullptr);
}

TEST(GraphIndex, RedirectsOnlyTheNamedPort) {
  GraphDef graph = Diamond();
  auto index = GraphIndex::Create(&graph).value();
  index.RedirectUses({"s", 1}, {"a", 0}, index.Find("c"));
  EXPECT_THAT(index.Find("b")->input(), ElementsAre("a", "s", "^a"));
  EXPECT_THAT(index.Find("c")->input(), ElementsAre("s:1"));
  EXPECT_THAT(Described(index.Uses("s")),
              UnorderedElementsAre("b#1 port 0", "c#0 port 1"));
}

TEST(GraphIndex, RefusesToRemoveWhatIsStillRead) {
  GraphDef graph = Diamond();
  auto index = GraphIndex::Create(&graph).value();
  EXPECT_THAT(std::string(index.Remove("s").message()),
              HasSubstr("\"s\" is still read by"));
  EXPECT_EQ(index.Remove("x").code(), absl::StatusCode::kNotFound);
}

TEST(GraphIndex, RemovalKeepsTheOrderOfTheOthers) {
  GraphDef graph = Diamond();
  auto index = GraphIndex::Create(&graph).value();
  ASSERT_OK(index.Remove("b"));
  EXPECT_EQ(index.Find("b"), nullptr);
  EXPECT_THAT(Described(index.Uses("a")), ElementsAre("s#0 port 0"));
  index.Commit();
  ASSERT_EQ(graph.node_size(), 3);
  EXPECT_EQ(graph.node(0).name(), "a");
  EXPECT_EQ(graph.node(1).name(), "s");
  EXPECT_EQ(graph.node(2).name(), "c");
}

TEST(GraphIndex, AddedNodesAreIndexedAndNamesStayUnique) {
  GraphDef graph = Diamond();
  auto index = GraphIndex::Create(&graph).value();
  NodeDef node;
  node.set_name(index.FreeName("a"));
  node.add_input("c");
  ASSERT_OK(index.Add(node));
  EXPECT_EQ(index.Find("a_1")->input(0), "c");
  EXPECT_THAT(Described(index.Uses("c")), ElementsAre("a_1#0 port 0"));
  EXPECT_EQ(index.Add(node).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(GraphIndex, SetInputsReplacesAllUses) {
  GraphDef graph = Diamond();
  auto index = GraphIndex::Create(&graph).value();
  index.SetInputs(index.Find("b"), {"c", "c", "c", "s:2"});
  EXPECT_THAT(Described(index.Uses("c")),
              UnorderedElementsAre("b#0 port 0", "b#1 port 0", "b#2 port 0"));
  EXPECT_THAT(Described(index.Uses("s")),
              UnorderedElementsAre("b#3 port 2", "c#0 port 1"));
}

TEST(GraphIndex, RefusesRepeatedAndEmptyNames) {
  GraphDef graph = GraphFromText(R"(
    node { name: "a" }
    node { name: "a" }
  )");
  EXPECT_THAT(GraphIndex::Create(&graph),
              FailsWith(HasSubstr("two nodes are named \"a\"")));
  graph.mutable_node(1)->clear_name();
  EXPECT_THAT(GraphIndex::Create(&graph),
              FailsWith(HasSubstr("node number 1")));
}

TEST(GraphIndex, KeepsInputsThatNameNoNode) {
  GraphDef graph = GraphFromText(R"(node { name: "a" input: "gone:1" })");
  auto index = GraphIndex::Create(&graph).value();
  EXPECT_EQ(index.Producer(*index.Find("a"), 0), nullptr);
  index.SetInput(index.Find("a"), 0, "gone");
  EXPECT_EQ(graph.node(0).input(0), "gone");
}

}  // namespace
}  // namespace requant::graph_index_test
