#include "graph/output_op.h"

#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"

namespace requant::output_op_test {
namespace {

TEST(OutputOp, LooksThroughCallsAndWhatHandsValuesOn) {
  GraphDef graph = GraphFromText(R"(
    x = Placeholder dtype=float
    call = StatefulPartitionedCall(x)
    unknown = PartitionedCall(x)
    same = IdentityN(x, call:1) T=[float,float]
    loop = Identity(loop) T=float
  )");
  for (auto& node : *graph.mutable_node()) {
    if (node.name() == "call") {
      (*node.mutable_attr())["f"].mutable_func()->set_name("outer");
    }
  }
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(function { signature { name: "outer" output_arg { name: "a" }
                                output_arg { name: "b" } }
                    ret { key: "a" value: "sigmoid:y:0" }
                    ret { key: "b" value: "twice:output:1" }
                    node_def { name: "sigmoid" op: "Sigmoid" }
                    node_def { name: "twice" op: "PartitionedCall"
                               attr { key: "f"
                                      value { func { name: "inner" } } } } }
         function { signature { name: "inner" output_arg { name: "c" }
                                output_arg { name: "d" } }
                    ret { key: "c" value: "sum:z:0" }
                    ret { key: "d" value: "sum:z:0" }
                    node_def { name: "sum" op: "AddV2" } })",
      graph.mutable_library()));
  EXPECT_EQ(OutputOp(graph, "call:0"), "Sigmoid");
  EXPECT_EQ(OutputOp(graph, "same:1"), "AddV2");
  EXPECT_EQ(OutputOp(graph, "same:0"), "Placeholder");
  for (const char* lost : {"unknown:0", "call:2", "loop:0", "none:0", ""}) {
    EXPECT_EQ(OutputOp(graph, lost), "") << lost;
  }
  tensorflow::SignatureDef signature;
  (*signature.mutable_outputs())["p"].set_name("call:0");
  (*signature.mutable_outputs())["price"].set_name("call:1");
  EXPECT_THAT(SumsAmongOutputs(graph, signature), ElementsAre("price"));
}

}  // namespace
}  // namespace requant::output_op_test
