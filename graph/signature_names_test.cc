#include "graph/signature_names.h"

#include "google/protobuf/text_format.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"

namespace requant::signature_names_test {
namespace {

using tensorflow::SignatureDef;

constexpr char kGraph[] = R"(
  serving_default_age = Placeholder dtype=float shape=<?,1>
  serving_default_ids = Placeholder dtype=int64
  StatefulPartitionedCall = IdentityN(serving_default_age, serving_default_ids)
      T=[float,int64]
)";

SignatureDef Signature() {
  SignatureDef signature;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(inputs { key: "age" value { name: "serving_default_age:0" } }
         inputs { key: "ids" value { name: "serving_default_ids:0" } }
         inputs { key: "gone" value { name: "serving_default_gone:0" } }
         outputs { key: "score" value { name: "StatefulPartitionedCall:0" } }
         outputs { key: "a:b" value { name: "StatefulPartitionedCall:1" } }
         outputs { key: "same" value { name: "StatefulPartitionedCall:1" } })",
      &signature));
  return signature;
}

TEST(SignatureNames, ComeBackWithTensorsTypesAndShapes) {
  GraphDef graph = GraphFromText(kGraph);
  KeepSignatureNames(Signature(), &graph);
  const SignatureDef kept = KeptSignature(graph);
  ASSERT_EQ(kept.inputs().size(), 2u);
  const auto& age = kept.inputs().at("age");
  EXPECT_EQ(age.name(), "serving_default_age:0");
  EXPECT_EQ(age.dtype(), tensorflow::DT_FLOAT);
  ASSERT_EQ(age.tensor_shape().dim_size(), 2);
  EXPECT_EQ(age.tensor_shape().dim(0).size(), -1);
  EXPECT_EQ(age.tensor_shape().dim(1).size(), 1);
  EXPECT_TRUE(kept.inputs().at("ids").tensor_shape().unknown_rank());
  ASSERT_EQ(kept.outputs().size(), 3u);
  EXPECT_EQ(kept.outputs().at("score").name(), "StatefulPartitionedCall:0");
  EXPECT_EQ(kept.outputs().at("score").dtype(), tensorflow::DT_FLOAT);
  EXPECT_EQ(kept.outputs().at("a:b").name(), "StatefulPartitionedCall:1");
  EXPECT_EQ(kept.outputs().at("a:b").dtype(), tensorflow::DT_INT64);
  EXPECT_EQ(kept.outputs().at("same").name(), "StatefulPartitionedCall:1");
}

TEST(SignatureNames, GiveTheSameBytesTwice) {
  GraphDef graph = GraphFromText(kGraph);
  KeepSignatureNames(Signature(), &graph);
  const std::string once = *SerializeGraph(graph);
  KeepSignatureNames(KeptSignature(graph), &graph);
  EXPECT_TRUE(*SerializeGraph(graph) == once);
}

TEST(SignatureNames, LeaveAGraphWithoutThemAlone) {
  const GraphDef graph = GraphFromText(kGraph);
  EXPECT_TRUE(KeptSignature(graph).inputs().empty());
  EXPECT_TRUE(KeptSignature(graph).outputs().empty());
  GraphDef same = graph;
  KeepSignatureNames(KeptSignature(graph), &same);
  EXPECT_TRUE(SameMessage(graph, same));
}

TEST(SignatureNames, PassOverWhatNobodyWrote) {
  const SignatureDef kept = KeptSignature(GraphFromText(R"(
    x = Placeholder dtype=float
        _requant_inputs=['',':','0:','x:a','-1:a','99999999999:a','0:x']
    y = Identity(x) T=float _requant_inputs=['0:y'] _requant_outputs=3
    z = IdentityN(x) T=[float] _requant_outputs=['7:z']
  )"));
  EXPECT_EQ(kept.inputs().size(), 1u);
  EXPECT_EQ(kept.inputs().count("x"), 1u);
  EXPECT_EQ(kept.outputs().size(), 1u);
  EXPECT_EQ(kept.outputs().at("z").dtype(), tensorflow::DT_INVALID);
}

TEST(SignatureNames, AreNeededWhereTheOutputsAreFunctionCalls) {
  EXPECT_TRUE(NeedsSignatureNames(Signature()));
  SignatureDef other;
  EXPECT_FALSE(NeedsSignatureNames(other));
  (*other.mutable_outputs())["p"].set_name("head/probabilities:0");
  EXPECT_FALSE(NeedsSignatureNames(other));
}

}  // namespace
}  // namespace requant::signature_names_test
