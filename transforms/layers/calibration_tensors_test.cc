#include "transforms/layers/calibration_tensors.h"

#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::calibration_tensors_test {
namespace {

std::string Show(const CalibrationTensor& tensor) {
  const char* kinds[] = {"", "min ", "max ", "range "};
  return absl::StrCat(kinds[static_cast<int>(tensor.kind)], tensor.node, ":",
                      tensor.output);
}

std::vector<std::string> Find(const std::string& text,
                              const std::vector<std::string>& outputs = {}) {
  GraphDef graph = GraphFromText(text);
  const auto index = GraphIndex::Create(&graph);
  EXPECT_OK(index);
  std::vector<std::string> found;
  for (const auto& tensor : FindCalibrationTensors(*index, outputs)) {
    found.push_back(Show(tensor));
  }
  return found;
}

std::vector<std::string> LayerInputs(
    const std::vector<CalibrationTensor>& tensors) {
  std::vector<std::string> inputs;
  for (const CalibrationTensor& tensor : tensors) {
    if (tensor.layer_input) inputs.push_back(Show(tensor));
  }
  return inputs;
}

std::string Layer(const std::string& name, const std::string& input) {
  return absl::StrCat(
      FloatConst(name + "/w", {2, 2}, {1, 2, 3, 4}),
      FloatConst(name + "/b", {2}, {1, 2}),
      Node(name + "/m", "MatMul", {input, name + "/w"}, {kFloat}),
      Node(name + "/a", "BiasAdd", {name + "/m", name + "/b"}, {kFloat}),
      Node(name + "/r", "Relu", {name + "/a"}, {kFloat}));
}

std::string Concat(const std::string& name,
                   const std::vector<std::string>& inputs) {
  return absl::StrCat(
      IntConst("axis", {}, {1}),
      Node(name, "ConcatV2", inputs,
           {kFloat, {"N", "i: 2"}, {"Tidx", "type: DT_INT32"}}));
}

// A range over Min and Max of x for a quantization.
std::string DynamicRange() {
  return absl::StrCat(
      Placeholder("x", {-1, 2}), IntConst("dims", {1}, {0}),
      Node("min", "Min", {"x", "dims"}, {kFloat}),
      Node("max", "Max", {"x", "dims"}, {kFloat}),
      Node("q", "QuantizeV2", {"x", "min", "max"}, {{"T", "type: DT_QUINT8"}}),
      Node("range", "RequantizationRange", {"acc", "lo", "hi"},
           {{"Tinput", "type: DT_QINT32"}}));
}

TEST(FindCalibrationTensors, TakesInputAndOutputOfEachLayerOnce) {
  EXPECT_THAT(Find(absl::StrCat(Placeholder("x", {-1, 2}), Layer("one", "x"),
                                Layer("two", "one/r"))),
              ElementsAre("x:0", "one/r:0", "two/r:0"));
}

TEST(FindCalibrationTensors, KnowsWhichAreTheInputOfALayer) {
  GraphDef graph = GraphFromText(absl::StrCat(
      Placeholder("x"), Placeholder("y"), Concat("both", {"x", "y", "axis"}),
      Layer("one", "both"), Layer("two", "one/r")));
  ASSERT_OK_AND_ASSIGN(const auto index, GraphIndex::Create(&graph));
  std::vector<CalibrationTensor> tensors = FindCalibrationTensors(index, {});
  EXPECT_THAT(LayerInputs(tensors), ElementsAre("both:0", "one/r:0"));
  for (CalibrationTensor& tensor : tensors) tensor.layer_input = false;
  MarkLayerInputs(index, &tensors);
  EXPECT_THAT(LayerInputs(tensors), ElementsAre("both:0", "one/r:0"));
}

TEST(FindCalibrationTensors, ALayerEndsAtTheGraphsOutput) {
  EXPECT_THAT(Find(absl::StrCat(Placeholder("x", {-1, 2}), Layer("one", "x")),
                   {"one/a"}),
              ElementsAre("x:0", "one/a:0"));
}

TEST(FindCalibrationTensors, TakesEachBlockOfAConcatenatedInput) {
  EXPECT_THAT(Find(absl::StrCat(Placeholder("x"), Placeholder("y"),
                                Concat("both", {"x", "y", "axis"}),
                                Layer("one", "both"))),
              ElementsAre("both:0", "x:0", "y:0", "one/r:0"));
}

TEST(FindCalibrationTensors, SeesBlocksBehindNodesThatKeepAllValues) {
  EXPECT_THAT(
      Find(absl::StrCat(Placeholder("x"), Placeholder("y"),
                        Concat("both", {"x", "y", "axis"}),
                        IntConst("s", {2}, {-1, 2}),
                        Node("reshaped", "Reshape", {"both", "s"}, {kFloat}),
                        Node("same", "Identity", {"reshaped"}, {kFloat}),
                        Layer("one", "same"))),
      ElementsAre("reshaped:0", "x:0", "y:0", "one/r:0"));
}

TEST(FindCalibrationTensors, TakesTheNodesThatComputeRangesWhereThereAreSome) {
  EXPECT_THAT(Find(absl::StrCat(DynamicRange(), Layer("float", "x"))),
              ElementsAre("min min:0", "max max:0", "range range:0"));
}

TEST(FindCalibrationTensors, LeavesTheModelsOwnMinAndMax) {
  EXPECT_THAT(Find(absl::StrCat(Placeholder("x"), IntConst("dims", {1}, {0}),
                                Node("own", "Min", {"x", "dims"}, {kFloat}))),
              IsEmpty());
}

TEST(FindCalibrationTensor, KnowsWhatANodeComputes) {
  GraphDef graph = GraphFromText(DynamicRange());
  ASSERT_OK_AND_ASSIGN(const auto index, GraphIndex::Create(&graph));
  EXPECT_EQ(Show(*FindCalibrationTensor(index, "min")), "min min:0");
  EXPECT_EQ(Show(*FindCalibrationTensor(index, "range:1")), "range range:0");
  EXPECT_EQ(Show(*FindCalibrationTensor(index, "q:2")), "q:2");
}

TEST(FindCalibrationTensor, NamesANodeThatTheGraphLacks) {
  GraphDef graph = GraphFromText(DynamicRange());
  ASSERT_OK_AND_ASSIGN(const auto index, GraphIndex::Create(&graph));
  const auto missing = FindCalibrationTensor(index, "rang:0");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing, FailsWith(HasSubstr("did you mean \"range\"?")));
  EXPECT_FALSE(FindCalibrationTensor(index, "^x").ok());
}

}  // namespace
}  // namespace requant::calibration_tensors_test
