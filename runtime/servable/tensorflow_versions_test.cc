#include "runtime/servable/tensorflow_versions.h"

#include "base/testing/testing.h"
#include "google/protobuf/text_format.h"

namespace requant::tensorflow_versions_test {
namespace {

using tensorflow::GraphDef;

GraphDef Graph(const std::string& text) {
  GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

TEST(TensorFlowVersions, EachWasTriedWithEveryKindOfModel) {
  ASSERT_EQ(TriedVersions().version_size(), 7);
  for (const TensorFlowVersion& version : TriedVersions().version()) {
    int trials = 0;
    for (const Trial& trial : version.trial()) {
      EXPECT_GE(trial.models(), 6) << version.name();
      // The kernels of the older ops exist only while oneDNN is turned on.
      const bool has_ops =
          trial.made_with() == "portable"
              ? OpsForTensorFlow(version.name(), "portable").ok()
              : trial.onednn() != "0";
      EXPECT_EQ(trial.right(), has_ops ? trial.models() : 0)
          << version.name() << trial.DebugString();
      ++trials;
    }
    EXPECT_EQ(trials, 9) << version.name();
  }
}

TEST(TensorFlowVersions, ChoosesOpsThatTheVersionHas) {
  EXPECT_EQ(OpsForTensorFlow("2.15", "").value(), "legacy");
  EXPECT_EQ(OpsForTensorFlow("2.17", "").value(), "portable");
  EXPECT_EQ(OpsForTensorFlow("2.17", "legacy").value(), "legacy");
  EXPECT_THAT(OpsForTensorFlow("2.16", "portable"),
              FailsWith(HasSubstr("needs TensorFlow 2.17 or later")));
  for (const char* version : {"2.14", "2.15.1", "2", "", "2.22"}) {
    EXPECT_THAT(
        OpsForTensorFlow(version, ""),
        FailsWith(HasSubstr("2.15, 2.16, 2.17, 2.18, 2.19, 2.20, 2.21")))
        << version;
  }
}

TEST(TensorFlowVersions, FindsWhatAVersionLacks) {
  const GraphDef old = Graph(
      R"pb(node { name: "a" op: "QuantizedMatMulWithBiasAndDequantize" }
           versions { producer: 2474 min_consumer: 12 })pb");
  EXPECT_OK(CheckTensorFlow("2.15", old));
  EXPECT_TRUE(NeedsOneDnn(old));
  EXPECT_THAT(RequirementsText(old),
              AllOf(HasSubstr("TensorFlow 2.15 or later"),
                    HasSubstr("2.15.1, 2.16.2, 2.17.1"),
                    HasSubstr("TF_ENABLE_ONEDNN_OPTS=1")));
  const GraphDef portable = Graph(
      R"pb(library {
             function { node_def { name: "b" op: "_QuantizedMatMul" } }
           }
           node { name: "a" op: "_QuantizedMatMul" })pb");
  EXPECT_FALSE(NeedsOneDnn(portable));
  EXPECT_OK(CheckTensorFlow("2.17", portable));
  EXPECT_THAT(RequirementsText(portable),
              AllOf(HasSubstr("TensorFlow 2.17 or later"),
                    HasSubstr("in 2.17.1, 2.18.1"),
                    HasSubstr("Nothing needs to be set")));
  const GraphDef in_function = Graph(
      R"pb(library {
             function {
               node_def {
                 name: "b"
                 op: "MatMul"
                 attr {
                   key: "grad_a"
                   value { b: true }
                 }
               }
             }
           })pb");
  EXPECT_THAT(
      CheckTensorFlow("2.15", in_function),
      FailsWith(HasSubstr("MatMul.grad_a, which came with TensorFlow 2.16")));
  EXPECT_OK(CheckTensorFlow("2.16", in_function));
  const GraphDef newer =
      Graph("versions { producer: 2474 min_consumer: 1900 }");
  EXPECT_THAT(CheckTensorFlow("2.17", newer),
              FailsWith(HasSubstr("graph version 1900")));
  EXPECT_OK(CheckTensorFlow("2.18", newer));
}

}  // namespace
}  // namespace requant::tensorflow_versions_test
