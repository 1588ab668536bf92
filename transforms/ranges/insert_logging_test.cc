#include <random>

#include "transforms/testing/testing.h"

namespace requant::insert_logging_test {
namespace {

constexpr char kQuantizedLayer[] = R"(
  acc = Placeholder dtype=qint32
  acc_min = Placeholder dtype=float
  acc_max = Placeholder dtype=float
  range = RequantizationRange(acc, acc_min, acc_max) Tinput=qint32
  requantize = Requantize(acc, acc_min, acc_max, range, range:1) Tinput=qint32
      out_type=quint8
)";

TEST(InsertLogging, PrintsEveryOutputInUseBehindTheNode) {
  const auto run = MustTransform(
      "insert_logging(op=RequantizationRange, show_name=true, "
      "message=\"__requant_min_max:\")",
      GraphFromText(kQuantizedLayer));
  EXPECT_THAT(run.notes, ElementsAre("logs 1 node"));
  EXPECT_EQ(run.graph.node(4).name(), "range__print__");
  EXPECT_EQ(run.graph.node(4).attr().at("message").s(),
            ";range__print__;__requant_min_max:");
  EXPECT_THAT(run.graph, HasNodes(R"(
    range__print__ = Print(range:0, range:0, range:1) first_n=-1 summarize=1024
        U=[float,float]
    requantize = Requantize(acc, acc_min, acc_max, range__print__:0, range:1)
  )"));
}

TEST(InsertLogging, FindingNothingCopiesTheGraphAndListsTheOpsThereAre) {
  const GraphDef graph = GraphFromText(kQuantizedLayer);
  const auto run = MustTransform("insert_logging(op=Max, prefix=x)", graph);
  EXPECT_EQ(run.graph.DebugString(), graph.DebugString());
  EXPECT_THAT(
      run.warnings,
      ElementsAre(HasSubstr(
          "no node with op=Max, prefix=x whose output another node reads; the "
          "graph has 3 Placeholder, 1 RequantizationRange, 1 Requantize")));
}

TEST(InsertLogging, RefusesAGraphThatIsAlreadyLogged) {
  const auto once = RunTransform("insert_logging(op=RequantizationRange)",
                                 GraphFromText(kQuantizedLayer));
  const auto twice =
      RunTransform("insert_logging(op=RequantizationRange)", once.graph);
  EXPECT_THAT(twice.status,
              FailsWith(HasSubstr("already has a node \"range__print__\"")));
}

TEST(InsertLogging, NamesANodeWhoseOpIsUnknown) {
  const auto run = RunTransform("insert_logging",
                                GraphFromText("a = NoSuchOp; b = Identity(a)"));
  EXPECT_THAT(run.status,
              FailsWith(HasSubstr("\"a\" has the op \"NoSuchOp\"")));
}

// If only some outputs are in use, the stock transform writes a Print that
// TensorFlow refuses to load; Requant's must load.
TEST(InsertLogging, LogsOnlyTheOutputsInUse) {
  GraphDef graph = GraphFromText(R"(
    x = float<2>{1,5}
    moments = Unpack(x) T=float num=2
    y = Neg(moments:1) T=float
  )");
  const auto run = MustTransform("insert_logging(op=Unpack)", graph);
  EXPECT_THAT(NodeNamed(run.graph, "moments__print__").input(),
              ElementsAre("moments:1", "moments:1"));
  const auto outputs = MustRunGraph(run.graph, {}, {"y"});
  EXPECT_EQ(outputs[0].scalar<float>()(), -5);
}

// Returns a random chain of two-input ops, each reading all outputs of the
// nodes it reads, sometimes with control inputs.
GraphDef RandomGraph(int seed) {
  std::mt19937 random(seed);
  GraphDef graph = GraphFromText("x = Placeholder dtype=float");
  const std::vector<std::string> ops = {"Neg",  "Add", "Relu",    "Mul",
                                        "Sub",  "Abs", "Maximum", "Identity",
                                        "Sqrt", "Exp"};
  for (int i = 0; i < 30; ++i) {
    NodeDef* node = graph.add_node();
    const std::string& op = ops[random() % ops.size()];
    const bool binary =
        op == "Add" || op == "Mul" || op == "Sub" || op == "Maximum";
    auto earlier = [&] { return graph.node(random() % (i + 1)).name(); };
    node->set_op(op);
    node->add_input(earlier());
    if (binary) node->add_input(earlier());
    if (random() % 5 == 0) node->add_input("^" + node->input(0));
    node->set_name(absl::StrCat("scope", i % 3, "/", op, i));
    (*node->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
  }
  return graph;
}

TEST(InsertLogging, GivesTheSameNodesAsTheStockTransform) {
  std::vector<GraphDef> graphs = {GraphFromText(kQuantizedLayer)};
  for (int seed = 0; seed < 12; ++seed) graphs.push_back(RandomGraph(seed));
  for (const GraphDef& graph : graphs) {
    for (const char* call :
         {"insert_logging", "insert_logging(op=Add, op=Mul, show_name=true)",
          "insert_logging(prefix=scope1, show_op=true, message=\"m:\")",
          "insert_logging(op=Identity, op=Neg, prefix=scope0, prefix=scope2, "
          "first_n=2, summarize=7)",
          "insert_logging(op=RequantizationRange, show_name=true, "
          "message=\"__requant_min_max:\")"}) {
      EXPECT_EQ(MustTransform(call, graph).graph.DebugString(),
                MustTransform(absl::StrCat("stock:", call), graph)
                    .graph.DebugString())
          << call;
    }
  }
}

}  // namespace
}  // namespace requant::insert_logging_test
