#include "transforms/qdq/qdq_sites.h"

#include "absl/strings/substitute.h"
#include "graph/testing/testing.h"

namespace requant::qdq_sites_test {
namespace {

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

// An activation x and a weight w.
constexpr char kInputs[] = "x = Placeholder dtype=float; w = float<1,1>{1}\n";

// A function that multiplies its arguments.
constexpr char kMultiply[] = R"(
  function multiply(a, b) -> (y=m:product:0) {
    m = MatMul(a, b) T=float
  }
)";

TEST(QdqSites, AreTheInputsOfMatMulsInTheGraph) {
  const std::string text = absl::StrCat(kInputs, R"(
    split = Split(axis, x) T=float num_split=2
    m = MatMul(x:0, w) T=float
    n = MatMul(split:1, m) T=float
  )");
  EXPECT_THAT(Sites(text), ElementsAre("m[0] x:0", "m[1] w:0 (w)",
                                       "n[0] split:1", "n[1] m:0"));
  EXPECT_THAT(Sites(text, {{}, QdqInputs::kActivations}),
              ElementsAre("m[0] x:0", "n[0] split:1", "n[1] m:0"));
  EXPECT_THAT(Sites(text, {{}, QdqInputs::kWeights}),
              ElementsAre("m[1] w:0 (w)"));
}

TEST(QdqSites, OfAFunctionAreKeyedByFunctionAndFlatOutput) {
  EXPECT_THAT(Sites(R"(
                x = Placeholder dtype=float
                call = PartitionedCall(x) f=@f Tin=[float] Tout=[float]
                function f(a) -> (y=m:product:0) {
                  axis = int32{1}
                  unique = TopKV2(a, axis:output:0) T=float
                  split = Split(axis:output:0, a) T=float num_split=3
                  m = MatMul(a, split:output:2) T=float
                  n = MatMul(unique:values:0, m:product:0) T=float
                }
              )"),
              ElementsAre("f|m[0] f::a:0", "f|m[1] f::split:2",
                          "f|n[0] f::unique:0", "f|n[1] f::m:0"));
}

TEST(QdqSites, KnowWeightsBehindNodesThatKeepTheValues) {
  EXPECT_THAT(
      Sites(R"(
        x = Placeholder dtype=float
        v = VarHandleOp dtype=float
        read = ReadVariableOp(v) dtype=float
        i = Identity(read) T=float
        reshape = Reshape(i, shape) T=float
        t = Transpose(reshape, perm) T=float
        relu = Relu(read) T=float
        m = MatMul(x, t) T=float
        n = MatMul(x, relu) T=float
      )"),
      ElementsAre("m[0] x:0", "m[1] t:0 (w)", "n[0] x:0", "n[1] relu:0"));
}

TEST(QdqSites, KnowVariablesThatAFunctionIsHanded) {
  EXPECT_THAT(Sites(R"(
                x = Placeholder dtype=float
                v = VarHandleOp dtype=float
                call = PartitionedCall(x, v) f=@f Tin=[float,resource]
                    Tout=[float]
                function f(a, handle:resource) -> (y=m:product:0) {
                  read = ReadVariableOp(handle) dtype=float
                  m = MatMul(a, read:value:0) T=float
                }
              )"),
              ElementsAre("f|m[0] f::a:0", "f|m[1] f::read:0 (w)"));
}

// The value of a weight goes through two functions; the second one is also
// called with an activation in the other place.
TEST(QdqSites, KnowAnArgumentThatIsAWeightInAllCalls) {
  const std::string text = absl::StrCat(kInputs, kMultiply, R"(
    one = PartitionedCall(x, w) f=@outer Tin=[float,float] Tout=[float]
    two = PartitionedCall(x, w) f=@multiply Tin=[float,float] Tout=[float]
    function outer(a, b) -> (y=call:output:0) {
      call = PartitionedCall(a, b) f=@multiply Tin=[float,float] Tout=[float]
    }
  )");
  EXPECT_THAT(Sites(text), ElementsAre("multiply|m[0] multiply::a:0",
                                       "multiply|m[1] multiply::b:0 (w)"));
  EXPECT_THAT(
      Sites(text + "three = PartitionedCall(w, x) f=@outer Tin=[float,float] "
                   "Tout=[float]"),
      ElementsAre("multiply|m[0] multiply::a:0",
                  "multiply|m[1] multiply::b:0"));
}

TEST(QdqSites, KnowWeightsThatALoopHandsOn) {
  const auto sites = [](const std::string& second_result) {
    return Sites(kInputs + absl::Substitute(R"(
      loop = While(x, w) T=[float,float] body=@body cond=@cond
      function body(a, b) -> (y=m:product:0, z=$0) {
        m = MatMul(a, b) T=float
      }
      function cond(a, b) -> (y=n:product:0) {
        n = MatMul(a, b) T=float
      }
    )",
                                            second_result));
  };
  EXPECT_THAT(sites("b"),
              ElementsAre("body|m[0] body::a:0", "body|m[1] body::b:0 (w)",
                          "cond|n[0] cond::a:0", "cond|n[1] cond::b:0 (w)"));
  EXPECT_THAT(sites("m:product:0"),
              ElementsAre("body|m[0] body::a:0", "body|m[1] body::b:0",
                          "cond|n[0] cond::a:0", "cond|n[1] cond::b:0"));
}

// If hands its inputs on from the second one.
TEST(QdqSites, KnowWeightsThatABranchIsHanded) {
  EXPECT_THAT(Sites(absl::StrCat(kInputs, kMultiply,
                                 "if = If(x, x, w) then_branch=@multiply "
                                 "else_branch=@multiply")),
              ElementsAre("multiply|m[0] multiply::a:0",
                          "multiply|m[1] multiply::b:0 (w)"));
}

TEST(QdqSites, SayWhichFunctionsTheGraphDoesNotReach) {
  EXPECT_THAT(Sites(kMultiply),
              ElementsAre("multiply|m[0] multiply::a:0 (unreached)",
                          "multiply|m[1] multiply::b:0 (unreached)"));
}

TEST(QdqSites, AreOfFloatInputsOnly) {
  EXPECT_THAT(Sites(R"(
                x = Placeholder dtype=float
                m = MatMul(x, x) T=double
                n = BatchMatMulV3(x, y) Ta=float Tb=int8 Tout=float
                y = Placeholder dtype=float
              )"),
              ElementsAre("n[0] x:0"));
}

TEST(QdqSites, OfOtherOpsAreWhatTheyMultiply) {
  EXPECT_THAT(
      Sites(R"(
        x = Placeholder dtype=float
        m = MatMul(x, x) T=float
        e = Einsum(x, x, m) T=float N=3
        sizes = int32<4>{1,1,1,1}
        c = Conv2DBackpropInput(sizes, x, m, ^e) T=float
      )",
            {{"Einsum", "Conv2DBackpropInput"}}),
      ElementsAre("e[0] x:0", "e[1] x:0", "e[2] m:0", "c[1] x:0", "c[2] m:0"));
}

TEST(QdqSites, RefuseAnOpThatMultipliesNothing) {
  EXPECT_THAT(
      FindQdqSites({}, QdqSiteOptions{{"MatMull"}}),
      FailsWith(HasSubstr(
          "\"MatMull\" cannot be quantized (did you mean \"MatMul\"?)")));
}

TEST(QdqSites, AreNotWhereADequantizeStands) {
  const QdqSites found = Find(R"(
    x = Placeholder dtype=float
    d = Dequantize(q, q:1, q:2)
    m = MatMul(d, x) T=float
  )");
  EXPECT_THAT(Show(found), ElementsAre("m[1] x:0"));
  EXPECT_EQ(found.already_quantized, 1);
}

TEST(QdqSites, LeaveOutWhatCannotBeUnderstood) {
  const QdqSites found = Find(R"(
    x = Placeholder dtype=float
    dangling = MatMul(x, nothing) T=float
    few = MatMul(x) T=float
    typeless = MatMul(x, x)
    a = Identity(b)
    b = Identity(a)
    cycle = MatMul(a, x) T=float
    function f(p) -> (y=m:product:0) {
      custom = NobodyKnows(p)
      m = MatMul(p, custom:y:0) T=float
    }
  )");
  EXPECT_THAT(Show(found),
              ElementsAre("dangling[0] x:0", "cycle[0] a:0", "cycle[1] x:0",
                          "f|m[0] f::p:0 (unreached)"));
  EXPECT_THAT(
      found.skipped,
      ElementsAre(AllOf(HasSubstr("\"dangling\", its input \"nothing\""),
                        HasSubstr("is no known output")),
                  HasSubstr("\"few\""), HasSubstr("\"typeless\""),
                  HasSubstr("\"m\" of function \"f\"")));
}

TEST(ParseQdqInputs, ListsWhatThereIs) {
  EXPECT_OK(ParseQdqInputs("both"));
  EXPECT_THAT(ParseQdqInputs("all"),
              FailsWith(HasSubstr("activations, weights or both")));
}

}  // namespace
}  // namespace requant::qdq_sites_test
