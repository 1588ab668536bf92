// Runs graphs after insert_qdq: their results differ from the float graph's
// only by the rounding of the pairs.

#include <cmath>
#include <random>

#include "absl/strings/substitute.h"
#include "ranges/range_table.h"
#include "transforms/testing/testing.h"

namespace requant::insert_qdq_run_test {
namespace {

using testing::Le;

constexpr int kRows = 16;
constexpr int kInner = 24;
constexpr int kColumns = 8;

// Returns values between -magnitude and magnitude; the first is `magnitude`.
std::vector<float> Random(int count, float magnitude, int seed) {
  std::mt19937 random(seed);
  std::vector<float> values = {magnitude};
  while (static_cast<int>(values.size()) < count) {
    values.push_back((random() / 0x1p31f - 1) * magnitude);
  }
  return values;
}

std::vector<float> UnitMatrix(int size) {
  std::vector<float> values(size * size);
  for (int i = 0; i < size; ++i) values[i * size + i] = 1;
  return values;
}

// Computes x · w, where w is a variable passed to a function, as are the
// weights of a SavedModel. The function first reshapes x, as Tensordot does.
struct Projection {
  int rows = kRows;
  int inner = kInner;
  int columns = kColumns;
  std::vector<float> x;
  std::vector<float> w;

  GraphDef Graph() const {
    return GraphFromText(FloatConst("initial", {inner, columns}, w) +
                         absl::Substitute(R"(
      x = Placeholder dtype=float shape=<$0,$1>
      v = VarHandleOp dtype=float shape=<$1,$2> shared_name='v'
      assign = AssignVariableOp(v, initial) dtype=float
      y = StatefulPartitionedCall(x, v, ^assign) f=@project
          Tin=[float,resource] Tout=[float]
      function project(x, v:resource) -> (y=dot:product:0) {
        shape = int32<2>{$0,$1}
        reshape = Reshape(x, shape:output:0) T=float
        read = ReadVariableOp(v) dtype=float
        dot = MatMul(reshape:output:0, read:value:0) T=float
      }
    )",
                                          rows, inner, columns));
  }

  // Writes the ranges that a calibration would find and returns the file.
  std::string RangesFile() const {
    RangeTable table;
    const auto add = [&](const char* node, const std::vector<float>& values) {
      const auto [min, max] = std::minmax_element(values.begin(), values.end());
      table.FindOrAdd(node).AddRange(*min, *max, {"test", 1});
    };
    add("project::reshape", x);
    add("project::read", w);
    const std::string path = testing::TempDir() + "ranges.pb";
    EXPECT_OK(WriteRangeTable(table, path));
    return path;
  }

  std::vector<float> Run(const GraphDef& graph) const {
    const Tensor fed = TensorOf<float>({rows, inner}, x);
    return ValuesOf(MustRunGraph(graph, {{"x", fed}}, {"y"})[0]);
  }

  std::vector<float> RunQuantized() const {
    const TransformRun run =
        MustTransform(absl::StrCat("insert_qdq(method=minmax, ranges_file=\"",
                                   RangesFile(), "\")"),
                      Graph());
    return Run(run.graph);
  }
};

// Returns |a - b| / step.
std::vector<float> StepsBetween(const std::vector<float>& a,
                                const std::vector<float>& b, float step) {
  EXPECT_EQ(a.size(), b.size());
  std::vector<float> steps;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    steps.push_back(std::fabs(a[i] - b[i]) / step);
  }
  return steps;
}

// Includes small ranges, which QuantizeV2 would widen if allowed.
class OfMagnitude : public testing::TestWithParam<float> {};

INSTANTIATE_TEST_SUITE_P(InsertQdq, OfMagnitude,
                         testing::Values(1e-20f, 1e-3f, 1.0f, 37.5f, 1e20f));

// One is a level, so that a unit matrix is not changed by rounding.
TEST_P(OfMagnitude, RoundsActivationsToHalfAStep) {
  Projection projection;
  projection.columns = kInner;
  projection.x = Random(kRows * kInner, GetParam(), 1);
  projection.w = UnitMatrix(kInner);
  EXPECT_THAT(
      StepsBetween(projection.RunQuantized(), projection.x, GetParam() / 127),
      Each(Le(.5005)));
}

TEST_P(OfMagnitude, RoundsWeightsToHalfAStep) {
  Projection projection;
  projection.rows = kInner;
  projection.x = UnitMatrix(kInner);
  projection.w = Random(kInner * kColumns, GetParam(), 2);
  EXPECT_THAT(
      StepsBetween(projection.RunQuantized(), projection.w, GetParam() / 127),
      Each(Le(.5005)));
}

TEST(InsertQdqRun, GivesSumsOfRoundedProducts) {
  Projection projection;
  projection.x = Random(kRows * kInner, 3, 3);
  projection.w = Random(kInner * kColumns, .5, 4);
  const std::vector<float> exact = projection.Run(projection.Graph());
  const std::vector<float> rounded = projection.RunQuantized();
  // Each of kInner products is of two values, each off by half a step at most.
  const float most = kInner * (3.0f / 254 * .5f + .5f / 254 * 3.1f);
  EXPECT_THAT(StepsBetween(rounded, exact, 1), Each(Le(most)));
  EXPECT_NE(rounded, exact);
}

TEST(InsertQdqRun, ClipsWhatIsOutsideAFixedRange) {
  Projection projection;
  projection.columns = kInner;
  projection.x = Random(kRows * kInner, 4, 6);
  projection.w = UnitMatrix(kInner);
  const TransformRun run = MustTransform("insert_qdq", projection.Graph());
  std::vector<float> clipped = projection.x;
  for (float& value : clipped) value = std::clamp(value, -1.0f, 1.0f);
  EXPECT_THAT(StepsBetween(projection.Run(run.graph), clipped, 1.0f / 127),
              Each(Le(.5005)));
}

// x = x · w runs three times in a loop of Enter and Exit nodes, where w is a
// loop invariant, and the constants of a pair have to be in the loop too.
TEST(InsertQdqRun, WorksInALoopOfNodes) {
  const GraphDef graph = GraphFromText(R"(
    x = Placeholder dtype=float shape=<2,2>
    w = float<2,2>{0,1,1,0}
    zero = int32{0}
    i/enter = Enter(zero) T=int32 frame_name='loop'
    x/enter = Enter(x) T=float frame_name='loop'
    w/enter = Enter(w) T=float frame_name='loop' is_constant=true
    i/merge = Merge(i/enter, i/next) T=int32 N=2
    x/merge = Merge(x/enter, x/next) T=float N=2
    rounds = Const(^i/merge) dtype=int32 value=int32{3}
    less = Less(i/merge, rounds) T=int32
    go_on = LoopCond(less)
    i/switch = Switch(i/merge, go_on) T=int32
    x/switch = Switch(x/merge, go_on) T=float
    one = Const(^i/switch) dtype=int32 value=int32{1}
    i/add = AddV2(i/switch:1, one) T=int32
    i/next = NextIteration(i/add) T=int32
    dot = MatMul(x/switch:1, w/enter) T=float
    x/next = NextIteration(dot) T=float
    y = Exit(x/switch) T=float
  )");
  const TransformRun run = MustTransform("insert_qdq", graph);
  const Tensor x = TensorOf<float>({2, 2}, {1, .3f, 5, 0});
  // w exchanges columns three times.
  EXPECT_THAT(ValuesOf(MustRunGraph(run.graph, {{"x", x}}, {"y"})[0]),
              ElementsAre(testing::FloatNear(.3f, .5 / 127), 1, 0, 1));
}

// The graph is a While of functions that runs while an element is above .2.
TEST(InsertQdqRun, WorksInALoopOfFunctions) {
  const GraphDef graph = GraphFromText(R"(
    x = Placeholder dtype=float shape=<2,2>
    w = float<2,2>{0,.5,.5,0}
    y = While(x, w) T=[float,float] body=@body cond=@cond
    function body(a, b) -> (y=m:product:0, z=b) {
      m = MatMul(a, b) T=float
    }
    function cond(a, b) -> (y=max:output:0) {
      axes = int32<2>{0,1}
      limit = float{.2}
      over = Sub(a, limit:output:0) T=float
      relu = Relu(over:z:0) T=float
      max = Max(relu:activations:0, axes:output:0) T=float
    }
  )");
  const TransformRun run = MustTransform("insert_qdq", graph);
  const Tensor x = TensorOf<float>({2, 2}, {1, .5f, -.25f, 0});
  // There are three halvings and three exchanges of columns.
  EXPECT_THAT(ValuesOf(MustRunGraph(run.graph, {{"x", x}}, {"y"})[0]),
              testing::Pointwise(testing::FloatNear(.01),
                                 {.5f / 8, 1.f / 8, 0.f, -.25f / 8}));
}

}  // namespace
}  // namespace requant::insert_qdq_run_test
