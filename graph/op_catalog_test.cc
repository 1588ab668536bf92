#include "graph/op_catalog.h"

#include "graph/tensorflow_library.h"
#include "graph/testing/testing.h"

namespace requant::op_catalog_test {
namespace {

constexpr char kGraph[] = R"(
  x = Placeholder
  s = Switch(x, p)
  function f(a) -> () {
    signature { input_arg { name: "list" type_attr: "T" number_attr: "N" } }
    switch = Switch(a, a) T=float
    split = Split num_split=3 T=float
    one = Split num_split=1 T=float
    odd = NobodyKnows
  }
)";

class GraphBodyTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(LoadTensorFlow()); }

  // Returns "node name:output", "argument a", or "".
  static std::string Found(const GraphBody& body, const std::string& input) {
    const BodyTensor tensor = body.Find(input);
    if (tensor.kind == BodyTensor::kUnknown) return "";
    return absl::StrCat(
        tensor.kind == BodyTensor::kNode ? "node " : "argument ",
        body.NameOf(tensor), ":", tensor.output);
  }

  const GraphDef graph_ = GraphFromText(kGraph);
  OpCatalog catalog_{graph_.library()};
};

TEST_F(GraphBodyTest, FindsTensorsOfAGraphByPort) {
  const GraphBody body(graph_, &catalog_);
  EXPECT_EQ(body.name(), "");
  EXPECT_EQ(Found(body, "x"), "node x:0");
  EXPECT_EQ(Found(body, "s:1"), "node s:1");
  EXPECT_EQ(Found(body, "^s"), "");
  EXPECT_EQ(Found(body, "y"), "");
  EXPECT_EQ(Found(body, ""), "");
}

TEST_F(GraphBodyTest, FindsTensorsOfAFunctionByArgument) {
  const GraphBody body(graph_.library().function(0), &catalog_);
  EXPECT_EQ(body.name(), "f");
  EXPECT_EQ(Found(body, "a"), "argument a:0");
  EXPECT_EQ(Found(body, "a:0"), "argument a:0");
  EXPECT_EQ(Found(body, "switch:output_false:0"), "node switch:0");
  EXPECT_EQ(Found(body, "switch:output_true:0"), "node switch:1");
  EXPECT_EQ(Found(body, "switch:output_true"), "node switch:1");
  EXPECT_EQ(Found(body, "split:output:2"), "node split:2");
  EXPECT_EQ(Found(body, "one:output"), "node one:0");
}

// Covers invalid inputs and those that stand for several tensors.
TEST_F(GraphBodyTest, FindsNothingForOtherInputsOfAFunction) {
  const GraphBody body(graph_.library().function(0), &catalog_);
  for (const char* input :
       {"", ":", "^switch", "x", "a:1", "a:b", "list", "list:0", "switch",
        "switch:1", "switch:output_true:1", "switch:output_true:x",
        "switch:output_true:", "switch:output_true:-1", "split:output",
        "split:output:3", "split:output:99999999999999999999", "odd:y:0"}) {
    EXPECT_EQ(Found(body, input), "") << input;
  }
}

}  // namespace
}  // namespace requant::op_catalog_test
