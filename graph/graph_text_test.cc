
#include "graph/testing/testing.h"

namespace requant::graph_text_test {
namespace {

// Expects the same graph as that of a text GraphDef.
void ExpectSame(const std::string& lines, const std::string& text) {
  EXPECT_EQ(GraphFromText(lines).DebugString(),
            GraphFromText(text).DebugString());
}

TEST(GraphText, WritesNodesWithEveryKindOfAttribute) {
  ExpectSame("a = NoOp; b = Pack(a:1, ^a) device:'/cpu:0' N=2 f=-1.5 b=true",
             R"(node { name: "a" op: "NoOp" }
                node { name: "b" op: "Pack" input: "a:1" input: "^a"
                       device: "/cpu:0" attr { key: "N" value { i: 2 } }
                       attr { key: "f" value { f: -1.5 } }
                       attr { key: "b" value { b: true } } })");
  ExpectSame("c = C s='x y' T=float shape=<2,?> l=[int32,qint8] g=@h(T=half)",
             R"(node { name: "c" op: "C" attr { key: "s" value { s: "x y" } }
                       attr { key: "T" value { type: DT_FLOAT } }
                       attr { key: "shape" value { shape {
                         dim { size: 2 } dim { size: -1 } } } }
                       attr { key: "l" value { list {
                         type: DT_INT32 type: DT_QINT8 } } }
                       attr { key: "g" value { func { name: "h"
                         attr { key: "T" value { type: DT_HALF } } } } } })");
}

TEST(GraphText, WritesConstants) {
  ExpectSame("w = int64<2>{3,4}; b = qint8<1>'\\007'",
             R"(node { name: "w" op: "Const"
                       attr { key: "dtype" value { type: DT_INT64 } }
                       attr { key: "value" value { tensor { dtype: DT_INT64
                         tensor_shape { dim { size: 2 } }
                         int64_val: [ 3, 4 ] } } } }
                node { name: "b" op: "Const"
                       attr { key: "dtype" value { type: DT_QINT8 } }
                       attr { key: "value" value { tensor { dtype: DT_QINT8
                         tensor_shape { dim { size: 1 } }
                         tensor_content: "\007" } } } })");
}

TEST(GraphText, WritesFunctions) {
  ExpectSame("function f(a, i:int32) -> (y=s:z:0) {\n s = Neg(a) T=$T\n}",
             R"(library { function { signature { name: "f"
                  input_arg { name: "a" type: DT_FLOAT }
                  input_arg { name: "i" type: DT_INT32 }
                  output_arg { name: "y" type: DT_FLOAT } }
                  node_def { name: "s" op: "Neg" input: "a"
                             attr { key: "T" value { placeholder: "T" } } }
                  ret { key: "y" value: "s:z:0" } } })");
}

}  // namespace
}  // namespace requant::graph_text_test
