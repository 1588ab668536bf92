#include "graph/saved_model/merge_signatures.h"

#include "absl/strings/str_replace.h"
#include "graph/testing/testing.h"

namespace requant::merge_signatures_test {
namespace {

using tensorflow::SignatureDef;

// Two towers with inputs and outputs of their own, and a third one.
constexpr char kGraph[] = R"(
  a_x = Placeholder dtype=float
  b_x = Placeholder dtype=float
  w = float<2,2>{1,2,3,4}
  v = float<2,2>{1,2,3,4}
  a_m = MatMul(a_x, w) T=float
  a_y = Relu(a_m) T=float
  b_m = MatMul(b_x, w) T=float
  b_y = Relu(b_m) T=float
)";

SignatureDef Signature(const std::string& input, const std::string& output) {
  SignatureDef signature;
  auto& x = (*signature.mutable_inputs())["x"];
  x.set_name(input + ":0");
  x.set_dtype(tensorflow::DT_FLOAT);
  auto& y = (*signature.mutable_outputs())["y"];
  y.set_name(output + ":0");
  y.set_dtype(tensorflow::DT_FLOAT);
  return signature;
}

class MergeSignaturesTest : public testing::Test {
 protected:
  // Returns the keys of the signatures that were merged.
  std::vector<std::string> Merge(const std::string& graph) {
    const auto merged = MergeSignatures(GraphFromText(graph), &signatures_);
    EXPECT_OK(merged);
    return *merged;
  }
  std::string OutputOf(const std::string& key) {
    return signatures_[key].outputs().at("y").name();
  }

  std::map<std::string, SignatureDef> signatures_ = {
      {"serve", Signature("a_x", "a_y")},
      {"serving_default", Signature("b_x", "b_y")}};
};

TEST_F(MergeSignaturesTest, GivesEqualOnesTheNodesOfTheDefault) {
  EXPECT_THAT(Merge(kGraph), ElementsAre("serve"));
  EXPECT_EQ(OutputOf("serve"), "b_y:0");
  EXPECT_EQ(signatures_["serve"].inputs().at("x").name(), "b_x:0");
  EXPECT_EQ(OutputOf("serving_default"), "b_y:0");
}

TEST_F(MergeSignaturesTest, GivesEqualOnesTheNodesOfTheFirstWithoutADefault) {
  signatures_["tower"] = signatures_["serving_default"];
  signatures_.erase("serving_default");
  EXPECT_THAT(Merge(kGraph), ElementsAre("tower"));
  EXPECT_EQ(OutputOf("tower"), "a_y:0");
}

TEST_F(MergeSignaturesTest, ComparesConstantsByValue) {
  const std::string graph = std::string(kGraph) + "c_m = MatMul(b_x, v)\n";
  EXPECT_THAT(Merge(absl::StrReplaceAll(
                  graph, {{"b_m = MatMul(b_x, w)", "b_m = MatMul(b_x, v)"}})),
              ElementsAre("serve"));
}

TEST_F(MergeSignaturesTest, KeepsWhatDiffersApart) {
  // Each case replaces a part of the second tower.
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{
           {"b_y = Relu(b_m)", "b_y = Relu6(b_m)"},
           {"b_m = MatMul(b_x, w) T=float",
            "b_m = MatMul(b_x, w) T=float transpose_b=true"},
           {"b_m = MatMul(b_x, w)", "b_m = MatMul(w, b_x)"},
           {"b_m = MatMul(b_x, w)", "b_m = MatMul(a_x, w)"},
           {"v = float<2,2>{1,2,3,4}\n", "v = float<2,2>{1,2,3,5}\n"},
           {"b_y = Relu(b_m)", "b_y = Relu(b_m, ^a_m)"}}) {
    std::string graph = absl::StrReplaceAll(kGraph, {{from, to}});
    if (from[0] == 'v') {
      graph = absl::StrReplaceAll(
          graph, {{"b_m = MatMul(b_x, w)", "b_m = MatMul(b_x, v)"}});
    }
    ASSERT_NE(graph, kGraph);
    EXPECT_THAT(Merge(graph), IsEmpty()) << to;
    EXPECT_EQ(OutputOf("serve"), "a_y:0");
  }
}

TEST_F(MergeSignaturesTest, KeepsRandomNumbersApart) {
  EXPECT_THAT(Merge(R"(
    a_x = Placeholder dtype=float
    b_x = Placeholder dtype=float
    n = int32<1>{3}
    a_r = RandomUniform(n) T=int32 dtype=float
    b_r = RandomUniform(n) T=int32 dtype=float
    a_y = Add(a_x, a_r) T=float
    b_y = Add(b_x, b_r) T=float
  )"),
              IsEmpty());
}

// A loop is an op with state, whatever its body does.
TEST_F(MergeSignaturesTest, LooksIntoLoops) {
  const std::string graph = R"(
    a_x = Placeholder dtype=float
    b_x = Placeholder dtype=float
    a_y = If(c, a_x) Tcond=bool Tin=[float] Tout=[float] then_branch=@one
      else_branch=@one
    b_y = If(c, b_x) Tcond=bool Tin=[float] Tout=[float] then_branch=@one
      else_branch=@one
    c = Const dtype=bool value=bool{true}
    function one(x) -> (y=BODY) {
      r = RandomStandardNormal(n) T=int32 dtype=float
      n = Const dtype=int32 value=int32<1>{1}
      z = Mul(x, x) T=float
      s = Add(x, r:output:0) T=float
    }
  )";
  EXPECT_THAT(Merge(absl::StrReplaceAll(graph, {{"BODY", "s:z:0"}})),
              IsEmpty());
  const std::string pure = absl::StrReplaceAll(
      graph,
      {{"BODY", "z:z:0"},
       {"RandomStandardNormal(n) T=int32 dtype=float", "Identity(x) T=float"}});
  EXPECT_THAT(Merge(pure), ElementsAre("serve"));
}

TEST_F(MergeSignaturesTest, KeepsOtherFormsApart) {
  signatures_["serve"].mutable_inputs()->at("x").set_dtype(
      tensorflow::DT_DOUBLE);
  EXPECT_THAT(Merge(kGraph), IsEmpty());
  signatures_["serve"] = Signature("a_x", "a_y");
  signatures_["serve"].set_method_name("regress");
  EXPECT_THAT(Merge(kGraph), IsEmpty());
}

// One signature gives the other's inputs other names, or enters further on.
TEST_F(MergeSignaturesTest, KeepsOtherInputsOfTheSameNodesApart) {
  const std::string graph = R"(
    p = Placeholder dtype=float
    q = Placeholder dtype=float
    y = Sub(p, q) T=float
    n = Neg(p) T=float
    z = Relu(n) T=float
  )";
  for (const auto& [key, first, second] :
       {std::tuple("serve", "p", "q"), {"serving_default", "q", "p"}}) {
    signatures_[key] = Signature(first, "y");
    auto& other = (*signatures_[key].mutable_inputs())["w"];
    other.set_name(absl::StrCat(second, ":0"));
    other.set_dtype(tensorflow::DT_FLOAT);
  }
  EXPECT_THAT(Merge(graph), IsEmpty());
  signatures_["serve"] = Signature("p", "z");
  signatures_["serving_default"] = Signature("n", "z");
  EXPECT_THAT(Merge(graph), IsEmpty());
}

TEST_F(MergeSignaturesTest, StandsSignaturesThatNameNoNode) {
  signatures_["serve"] = Signature("nothing", "nowhere");
  EXPECT_THAT(Merge(kGraph), IsEmpty());
}

}  // namespace
}  // namespace requant::merge_signatures_test
