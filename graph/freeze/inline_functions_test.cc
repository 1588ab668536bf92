#include "graph/freeze/inline_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant::inline_functions_test {
namespace {

using tensorflow::GraphDef;
using tensorflow::Tensor;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// f(a) = (a + a, a).
constexpr char kTwice[] = R"pb(
  library {
    function {
      signature {
        name: "f"
        input_arg { name: "a" type: DT_FLOAT }
        output_arg { name: "twice" type: DT_FLOAT }
        output_arg { name: "once" type: DT_FLOAT }
      }
      node_def {
        name: "sum"
        op: "Add"
        input: "a"
        input: "a"
        attr {
          key: "T"
          value { type: DT_FLOAT }
        }
      }
      ret { key: "twice" value: "sum:z:0" }
      ret { key: "once" value: "a" }
    }
  }
)pb";

constexpr char kInput[] = R"pb(
  node {
    name: "x"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
  }
)pb";

std::string Call(const std::string& name, const std::string& function,
                 const std::string& inputs, const std::string& types,
                 const std::string& results) {
  return absl::StrCat("node { name: '", name, "' op: 'PartitionedCall' ",
                      inputs, " attr { key: 'f' value { func { name: '",
                      function,
                      "' } } } attr { key: 'Tin' value { list { type: [", types,
                      "] } } } attr { key: 'Tout' value { list { type: [",
                      results, "] } } } }\n");
}

GraphDef Inlined(const std::string& text, const std::string& output,
                 int calls) {
  GraphDef graph = GraphFromText(text);
  InlineOptions options;
  options.outputs = {output};
  const auto count = InlineFunctions(options, &graph);
  EXPECT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count.value_or(-1), calls);
  EXPECT_TRUE(KeepNeeded({output}, &graph).ok());
  return graph;
}

float ValueOf(const GraphDef& graph, float x, const std::string& fetch) {
  const auto values = RunGraph(graph, {{"x", Tensor(x)}}, {fetch});
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? (*values)[0].scalar<float>()() : 0;
}

TEST(InlineFunctions, KeepsTheNameAndPortsOfAnOutput) {
  const GraphDef graph = Inlined(
      absl::StrCat(
          kInput, kTwice,
          Call("y", "f", "input: 'x'", "DT_FLOAT", "DT_FLOAT, DT_FLOAT")),
      "y", 1);
  EXPECT_EQ(NodeNamed(graph, "y").op(), "IdentityN");
  EXPECT_THAT(NodeNamed(graph, "y").input(), ElementsAre("y/sum", "x"));
  EXPECT_EQ(ValueOf(graph, 3, "y:0"), 6);
  EXPECT_EQ(ValueOf(graph, 3, "y:1"), 3);
}

TEST(InlineFunctions, LetsReadersReadTheBody) {
  const GraphDef graph = Inlined(
      absl::StrCat(
          kInput, kTwice,
          Call("a", "f", "input: 'x'", "DT_FLOAT", "DT_FLOAT, DT_FLOAT"),
          Call("b", "f", "input: 'a'", "DT_FLOAT", "DT_FLOAT, DT_FLOAT"),
          "node { name: 'y' op: 'Neg' input: 'b' attr { key: 'T' "
          "value { type: DT_FLOAT } } }"),
      "y", 2);
  EXPECT_EQ(graph.node_size(), 4);
  EXPECT_EQ(graph.library().function_size(), 0);
  EXPECT_EQ(ValueOf(graph, 3, "y"), -12);
}

TEST(InlineFunctions, TakesANodeWhoseOpIsAFunction) {
  const GraphDef graph = Inlined(
      absl::StrCat(kInput, kTwice, "node { name: 'y' op: 'f' input: 'x' }"),
      "y", 1);
  EXPECT_EQ(ValueOf(graph, 2, "y"), 4);
}

TEST(InlineFunctions, GivesFreeNamesToBodies) {
  const GraphDef graph = Inlined(
      absl::StrCat(
          kInput, kTwice,
          Call("y", "f", "input: 'y/sum'", "DT_FLOAT", "DT_FLOAT, DT_FLOAT"),
          "node { name: 'y/sum' op: 'Neg' input: 'x' attr { key: 'T' "
          "value { type: DT_FLOAT } } }"),
      "y", 1);
  EXPECT_EQ(ValueOf(graph, 1, "y"), -2);
}

// A call in the branch that is not taken must not give a value, even when its
// function is a constant.
TEST(InlineFunctions, StaysDeadInADeadBranch) {
  const std::string constant = R"pb(
    library {
      function {
        signature {
          name: "one"
          input_arg { name: "a" type: DT_FLOAT }
          output_arg { name: "r" type: DT_FLOAT }
        }
        node_def {
          name: "c"
          op: "Const"
          attr {
            key: "dtype"
            value { type: DT_FLOAT }
          }
          attr {
            key: "value"
            value {
              tensor {
                dtype: DT_FLOAT
                tensor_shape {}
                float_val: 1
              }
            }
          }
        }
        ret { key: "r" value: "c:output:0" }
      }
    }
    node {
      name: "no"
      op: "Const"
      attr {
        key: "dtype"
        value { type: DT_BOOL }
      }
      attr {
        key: "value"
        value {
          tensor {
            dtype: DT_BOOL
            tensor_shape {}
            bool_val: false
          }
        }
      }
    }
    node {
      name: "switch"
      op: "Switch"
      input: "x"
      input: "no"
      attr {
        key: "T"
        value { type: DT_FLOAT }
      }
    }
    node {
      name: "y"
      op: "Merge"
      input: "switch"
      input: "call"
      attr {
        key: "T"
        value { type: DT_FLOAT }
      }
      attr {
        key: "N"
        value { i: 2 }
      }
    }
  )pb";
  const GraphDef graph = Inlined(
      absl::StrCat(
          kInput, constant,
          Call("call", "one", "input: 'switch:1'", "DT_FLOAT", "DT_FLOAT")),
      "y", 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ValueOf(graph, 7, "y"), 7);
}

std::string Recursive(const std::string& name, const std::string& callee) {
  return absl::StrCat(
      "function { signature { name: '", name,
      "' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'r' type: "
      "DT_FLOAT } } node_def { name: 'c' op: 'PartitionedCall' input: 'a' attr "
      "{ key: 'f' value { func { name: '",
      callee,
      "' } } } attr { key: 'Tin' value { list { type: DT_FLOAT } } } attr { "
      "key: 'Tout' value { list { type: DT_FLOAT } } } } ret { key: 'r' value: "
      "'c:output:0' } }\n");
}

TEST(InlineFunctions, RefusesRecursion) {
  GraphDef graph = GraphFromText(absl::StrCat(
      kInput, "library {", Recursive("f", "g"), Recursive("g", "f"), "}",
      Call("y", "f", "input: 'x'", "DT_FLOAT", "DT_FLOAT")));
  InlineOptions options;
  options.outputs = {"y"};
  EXPECT_THAT(std::string(InlineFunctions(options, &graph).status().message()),
              AllOf(HasSubstr("calls itself"), HasSubstr("f → g → f")));
}

TEST(InlineFunctions, StopsAtTheLimitOfNodes) {
  GraphDef graph = GraphFromText(absl::StrCat(
      kInput, kTwice,
      Call("y", "f", "input: 'x'", "DT_FLOAT", "DT_FLOAT, DT_FLOAT")));
  InlineOptions options;
  options.outputs = {"y"};
  options.max_nodes = 3;
  EXPECT_THAT(std::string(InlineFunctions(options, &graph).status().message()),
              HasSubstr("more than 3 nodes"));
}

TEST(InlineFunctions, RefusesACallWithTooFewInputs) {
  GraphDef graph = GraphFromText(absl::StrCat(
      kInput, kTwice, Call("y", "f", "", "", "DT_FLOAT, DT_FLOAT")));
  InlineOptions options;
  options.outputs = {"y"};
  EXPECT_THAT(std::string(InlineFunctions(options, &graph).status().message()),
              HasSubstr("gives 0 inputs to the function \"f\", which takes 1"));
}

}  // namespace
}  // namespace requant::inline_functions_test
