#include "transforms/layers/calibration_tensors.h"

#include "absl/strings/substitute.h"
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
  return absl::Substitute(R"(
    $0/w = float<2,2>{1,2,3,4}
    $0/b = float<2>{1,2}
    $0/m = MatMul($1, $0/w) T=float
    $0/a = BiasAdd($0/m, $0/b) T=float
    $0/r = Relu($0/a) T=float
  )",
                          name, input);
}

constexpr char kInput[] = "x = Placeholder dtype=float shape=<?,2>\n";
constexpr char kConcat[] = R"(
  x = Placeholder dtype=float
  y = Placeholder dtype=float
  axis = int32{1}
  both = ConcatV2(x, y, axis) T=float N=2 Tidx=int32
)";

// The range of a quantization, computed by Min and Max of x.
constexpr char kDynamicRange[] = R"(
  x = Placeholder dtype=float shape=<?,2>
  dims = int32<1>{0}
  min = Min(x, dims) T=float
  max = Max(x, dims) T=float
  q = QuantizeV2(x, min, max) T=quint8
  range = RequantizationRange(acc, lo, hi) Tinput=qint32
)";

TEST(FindCalibrationTensors, TakesInputAndOutputOfEachLayerOnce) {
  EXPECT_THAT(
      Find(absl::StrCat(kInput, Layer("one", "x"), Layer("two", "one/r"))),
      ElementsAre("x:0", "one/r:0", "two/r:0"));
}

TEST(FindCalibrationTensors, KnowsWhichAreTheInputOfALayer) {
  GraphDef graph = GraphFromText(
      absl::StrCat(kConcat, Layer("one", "both"), Layer("two", "one/r")));
  ASSERT_OK_AND_ASSIGN(const auto index, GraphIndex::Create(&graph));
  std::vector<CalibrationTensor> tensors = FindCalibrationTensors(index, {});
  EXPECT_THAT(LayerInputs(tensors), ElementsAre("both:0", "one/r:0"));
  for (CalibrationTensor& tensor : tensors) tensor.layer_input = false;
  MarkLayerInputs(index, &tensors);
  EXPECT_THAT(LayerInputs(tensors), ElementsAre("both:0", "one/r:0"));
}

TEST(FindCalibrationTensors, ALayerEndsAtTheGraphsOutput) {
  EXPECT_THAT(Find(absl::StrCat(kInput, Layer("one", "x")), {"one/a"}),
              ElementsAre("x:0", "one/a:0"));
}

TEST(FindCalibrationTensors, TakesEachBlockOfAConcatenatedInput) {
  EXPECT_THAT(Find(absl::StrCat(kConcat, Layer("one", "both"))),
              ElementsAre("both:0", "x:0", "y:0", "one/r:0"));
}

TEST(FindCalibrationTensors, SeesBlocksBehindNodesThatKeepAllValues) {
  EXPECT_THAT(Find(absl::StrCat(kConcat, R"(
                s = int32<2>{-1,2}
                reshaped = Reshape(both, s) T=float
                same = Identity(reshaped) T=float
              )",
                                Layer("one", "same"))),
              ElementsAre("reshaped:0", "x:0", "y:0", "one/r:0"));
}

TEST(FindCalibrationTensors, TakesTheNodesThatComputeRangesWhereThereAreSome) {
  EXPECT_THAT(Find(absl::StrCat(kDynamicRange, Layer("float", "x"))),
              ElementsAre("min min:0", "max max:0", "range range:0"));
}

TEST(FindCalibrationTensors, LeavesTheModelsOwnMinAndMax) {
  EXPECT_THAT(Find(absl::StrCat(
                  kInput, "dims = int32<1>{0}; own = Min(x, dims) T=float")),
              IsEmpty());
}

TEST(FindCalibrationTensor, KnowsWhatANodeComputes) {
  GraphDef graph = GraphFromText(kDynamicRange);
  ASSERT_OK_AND_ASSIGN(const auto index, GraphIndex::Create(&graph));
  EXPECT_EQ(Show(*FindCalibrationTensor(index, "min")), "min min:0");
  EXPECT_EQ(Show(*FindCalibrationTensor(index, "range:1")), "range range:0");
  EXPECT_EQ(Show(*FindCalibrationTensor(index, "q:2")), "q:2");
}

TEST(FindCalibrationTensor, NamesANodeThatTheGraphLacks) {
  GraphDef graph = GraphFromText(kDynamicRange);
  ASSERT_OK_AND_ASSIGN(const auto index, GraphIndex::Create(&graph));
  const auto missing = FindCalibrationTensor(index, "rang:0");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing, FailsWith(HasSubstr("did you mean \"range\"?")));
  EXPECT_FALSE(FindCalibrationTensor(index, "^x").ok());
}

}  // namespace
}  // namespace requant::calibration_tensors_test
