#include "transforms/qdq/qdq_sites.h"

#include "graph/testing/testing.h"

namespace requant::qdq_sites_test {
namespace {

const AttributeText kDtype = {"dtype", "type: DT_FLOAT"};

QdqSites Find(const std::string& text, const QdqSiteOptions& options = {}) {
  auto found = FindQdqSites(GraphFromText(text), options);
  EXPECT_OK(found);
  return found.ok() ? *found : QdqSites();
}

// Returns "function|node[input] key:output", and "(w)" for a weight.
std::vector<std::string> Show(const QdqSites& found) {
  std::vector<std::string> shown;
  for (const QdqSite& site : found.sites) {
    shown.push_back(absl::StrCat(
        site.function, site.function.empty() ? "" : "|", site.node, "[",
        site.input, "] ", site.range.first, ":", site.range.second,
        site.is_weight ? " (w)" : "", site.reached ? "" : " (unreached)"));
  }
  return shown;
}

std::vector<std::string> Sites(const std::string& text,
                               const QdqSiteOptions& options = {}) {
  return Show(Find(text, options));
}

std::string MatMul(const std::string& name, const std::string& a,
                   const std::string& b) {
  return Node(name, "MatMul", {a, b}, {kFloat});
}

std::string ReadVariable(const std::string& name, const std::string& handle) {
  return Node(name, "ReadVariableOp", {handle}, {kDtype});
}

QdqSiteOptions Only(QdqInputs inputs) {
  QdqSiteOptions options;
  options.inputs = inputs;
  return options;
}

TEST(QdqSites, AreTheInputsOfMatMulsInTheGraph) {
  const std::string text = absl::StrCat(
      Placeholder("x"), FloatConst("w", {2, 2}, {1, 2, 3, 4}),
      Node("split", "Split", {"axis", "x"}, {kFloat, {"num_split", "i: 2"}}),
      MatMul("m", "x:0", "w"), MatMul("n", "split:1", "m"));
  EXPECT_THAT(Sites(text), ElementsAre("m[0] x:0", "m[1] w:0 (w)",
                                       "n[0] split:1", "n[1] m:0"));
  EXPECT_THAT(Sites(text, Only(QdqInputs::kActivations)),
              ElementsAre("m[0] x:0", "n[0] split:1", "n[1] m:0"));
  EXPECT_THAT(Sites(text, Only(QdqInputs::kWeights)),
              ElementsAre("m[1] w:0 (w)"));
}

TEST(QdqSites, OfAFunctionAreKeyedByFunctionAndFlatOutput) {
  const std::string text = absl::StrCat(
      Placeholder("x"), Call("call", "f", {"x"}),
      Library({Function(
          "f", {"a"}, {{"y", "m:product:0"}},
          absl::StrCat(
              IntConst("axis", {}, {1}),
              Node("unique", "TopKV2", {"a", "axis:output:0"}, {kFloat}),
              Node("split", "Split", {"axis:output:0", "a"},
                   {kFloat, {"num_split", "i: 3"}}),
              MatMul("m", "a", "split:output:2"),
              MatMul("n", "unique:values:0", "m:product:0")))}));
  EXPECT_THAT(Sites(text), ElementsAre("f|m[0] f::a:0", "f|m[1] f::split:2",
                                       "f|n[0] f::unique:0", "f|n[1] f::m:0"));
}

TEST(QdqSites, KnowWeightsBehindNodesThatKeepTheValues) {
  const std::string text = absl::StrCat(
      Placeholder("x"), Node("v", "VarHandleOp", {}, {kDtype}),
      ReadVariable("read", "v"), Node("i", "Identity", {"read"}, {kFloat}),
      Node("reshape", "Reshape", {"i", "shape"}, {kFloat}),
      Node("t", "Transpose", {"reshape", "perm"}, {kFloat}),
      Node("relu", "Relu", {"read"}, {kFloat}), MatMul("m", "x", "t"),
      MatMul("n", "x", "relu"));
  EXPECT_THAT(Sites(text), ElementsAre("m[0] x:0", "m[1] t:0 (w)", "n[0] x:0",
                                       "n[1] relu:0"));
}

TEST(QdqSites, KnowVariablesThatAFunctionIsHanded) {
  const std::string text = absl::StrCat(
      Placeholder("x"), Node("v", "VarHandleOp", {}, {kDtype}),
      Call("call", "f", {"x", "v"}, "DT_FLOAT, DT_RESOURCE"),
      Library({Function(
          "f", {"a", "handle:resource"}, {{"y", "m:product:0"}},
          ReadVariable("read", "handle") + MatMul("m", "a", "read:value:0"))}));
  EXPECT_THAT(Sites(text),
              ElementsAre("f|m[0] f::a:0", "f|m[1] f::read:0 (w)"));
}

// The value of a weight goes through two functions; the second one is also
// called with an activation in the other place.
TEST(QdqSites, KnowAnArgumentThatIsAWeightInAllCalls) {
  const std::string multiply = Function(
      "multiply", {"a", "b"}, {{"y", "m:product:0"}}, MatMul("m", "a", "b"));
  const std::string outer =
      Function("outer", {"a", "b"}, {{"y", "call:output:0"}},
               Call("call", "multiply", {"a", "b"}));
  const std::string graph = Placeholder("x") + FloatConst("w", {1, 1}, {1}) +
                            Call("one", "outer", {"x", "w"}) +
                            Call("two", "multiply", {"x", "w"});
  EXPECT_THAT(Sites(graph + Library({multiply, outer})),
              ElementsAre("multiply|m[0] multiply::a:0",
                          "multiply|m[1] multiply::b:0 (w)"));
  EXPECT_THAT(Sites(graph + Call("three", "outer", {"w", "x"}) +
                    Library({multiply, outer})),
              ElementsAre("multiply|m[0] multiply::a:0",
                          "multiply|m[1] multiply::b:0"));
}

std::string Loop(const std::string& second_result) {
  return absl::StrCat(
      Placeholder("x"), FloatConst("w", {1, 1}, {1}),
      Node("loop", "While", {"x", "w"},
           {{"T", "list { type: [DT_FLOAT, DT_FLOAT] }"},
            {"body", "func { name: \"body\" }"},
            {"cond", "func { name: \"cond\" }"}}),
      Library({Function("body", {"a", "b"},
                        {{"y", "m:product:0"}, {"z", second_result}},
                        MatMul("m", "a", "b")),
               Function("cond", {"a", "b"}, {{"y", "n:product:0"}},
                        MatMul("n", "a", "b"))}));
}

TEST(QdqSites, KnowWeightsThatALoopHandsOn) {
  EXPECT_THAT(Sites(Loop("b")),
              ElementsAre("body|m[0] body::a:0", "body|m[1] body::b:0 (w)",
                          "cond|n[0] cond::a:0", "cond|n[1] cond::b:0 (w)"));
  EXPECT_THAT(Sites(Loop("m:product:0")),
              ElementsAre("body|m[0] body::a:0", "body|m[1] body::b:0",
                          "cond|n[0] cond::a:0", "cond|n[1] cond::b:0"));
}

// If hands its inputs on from the second one.
TEST(QdqSites, KnowWeightsThatABranchIsHanded) {
  const std::string branch =
      Function("f", {"a", "b"}, {{"y", "m:product:0"}}, MatMul("m", "a", "b"));
  EXPECT_THAT(
      Sites(absl::StrCat(Placeholder("x"), FloatConst("w", {1, 1}, {1}),
                         Node("if", "If", {"x", "x", "w"},
                              {{"then_branch", "func { name: \"f\" }"},
                               {"else_branch", "func { name: \"f\" }"}}),
                         Library({branch}))),
      ElementsAre("f|m[0] f::a:0", "f|m[1] f::b:0 (w)"));
}

TEST(QdqSites, SayWhichFunctionsTheGraphDoesNotReach) {
  const std::string function =
      Function("f", {"a"}, {{"y", "m:product:0"}}, MatMul("m", "a", "a"));
  EXPECT_THAT(
      Sites(Library({function})),
      ElementsAre("f|m[0] f::a:0 (unreached)", "f|m[1] f::a:0 (unreached)"));
}

TEST(QdqSites, AreOfFloatInputsOnly) {
  EXPECT_THAT(
      Sites(Placeholder("x") +
            Node("m", "MatMul", {"x", "x"}, {{"T", "type: DT_DOUBLE"}}) +
            Node("n", "BatchMatMulV3", {"x", "y"},
                 {{"Ta", "type: DT_FLOAT"},
                  {"Tb", "type: DT_INT8"},
                  {"Tout", "type: DT_FLOAT"}}) +
            Placeholder("y")),
      ElementsAre("n[0] x:0"));
}

TEST(QdqSites, OfOtherOpsAreWhatTheyMultiply) {
  QdqSiteOptions options;
  options.ops = {"Einsum", "Conv2DBackpropInput"};
  const std::string text =
      Placeholder("x") + MatMul("m", "x", "x") +
      Node("e", "Einsum", {"x", "x", "m"}, {kFloat, {"N", "i: 3"}}) +
      IntConst("sizes", {4}, {1, 1, 1, 1}) +
      Node("c", "Conv2DBackpropInput", {"sizes", "x", "m", "^e"}, {kFloat});
  EXPECT_THAT(
      Sites(text, options),
      ElementsAre("e[0] x:0", "e[1] x:0", "e[2] m:0", "c[1] x:0", "c[2] m:0"));
}

TEST(QdqSites, RefuseAnOpThatMultipliesNothing) {
  QdqSiteOptions options;
  options.ops = {"MatMull"};
  const auto found = FindQdqSites({}, options);
  EXPECT_THAT(
      found,
      FailsWith(HasSubstr(
          "\"MatMull\" cannot be quantized (did you mean \"MatMul\"?)")));
}

TEST(QdqSites, AreNotWhereADequantizeStands) {
  const QdqSites found =
      Find(Placeholder("x") + Node("d", "Dequantize", {"q", "q:1", "q:2"}) +
           MatMul("m", "d", "x"));
  EXPECT_THAT(Show(found), ElementsAre("m[1] x:0"));
  EXPECT_EQ(found.already_quantized, 1);
}

TEST(QdqSites, LeaveOutWhatCannotBeUnderstood) {
  const QdqSites found = Find(absl::StrCat(
      Placeholder("x"), MatMul("dangling", "x", "nothing"),
      Node("few", "MatMul", {"x"}, {kFloat}),
      Node("typeless", "MatMul", {"x", "x"}), Node("a", "Identity", {"b"}),
      Node("b", "Identity", {"a"}), MatMul("cycle", "a", "x"),
      Library({Function("f", {"p"}, {{"y", "m:product:0"}},
                        Node("custom", "NobodyKnows", {"p"}) +
                            MatMul("m", "p", "custom:y:0"))})));
  EXPECT_THAT(Show(found),
              ElementsAre("dangling[0] x:0", "cycle[0] a:0", "cycle[1] x:0",
                          "f|m[0] f::p:0 (unreached)"));
  ASSERT_EQ(found.skipped.size(), 4);
  EXPECT_EQ(found.skipped[0].node, "dangling");
  EXPECT_THAT(found.skipped[0].why, HasSubstr("\"nothing\""));
  EXPECT_EQ(found.skipped[1].node, "few");
  EXPECT_EQ(found.skipped[2].node, "typeless");
  EXPECT_EQ(found.skipped[3].function, "f");
}

TEST(ParseQdqInputs, ListsWhatThereIs) {
  EXPECT_OK(ParseQdqInputs("both"));
  EXPECT_THAT(ParseQdqInputs("all"),
              FailsWith(HasSubstr("activations, weights or both")));
}

}  // namespace
}  // namespace requant::qdq_sites_test
