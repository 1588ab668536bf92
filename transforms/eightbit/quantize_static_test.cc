#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "absl/types/span.h"
#include "graph/const_node.h"
#include "ranges/channel_moments.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/eightbit/static_inputs.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/testing/testing.h"

namespace requant::quantize_static_test {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_INT64;
using tensorflow::DT_QUINT8;
using testing::Le;

constexpr int kTables = 6;
constexpr int kRows = 40;
constexpr int kDimension = 8;
constexpr int kNumbers = 5;
constexpr int kInputs0 = kTables * kDimension + kNumbers;
constexpr int kHidden0 = 32;
constexpr int kHidden1 = 24;
constexpr int kClasses = 3;

Tensor Random(std::vector<int64_t> shape, double deviation, int seed) {
  Tensor tensor(DT_FLOAT, tensorflow::TensorShape(shape));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  auto flat = tensor.flat<float>();
  for (int64_t i = 0; i < flat.size(); ++i) flat(i) = normal(random);
  return tensor;
}

// Returns rows of tables next to numbers, the first of which are large and have
// large weights; a layer with Relu; one with Relu6, transposed weights and no
// bias; and float logits.
GraphDef TowerGraph() {
  GraphDef graph;
  const auto add = [&graph](const std::string& name, const Tensor& value) {
    *graph.add_node() = MakeConst(name, value);
  };
  AddNodes("ids = Placeholder dtype=int64", &graph);
  AddNodes("numbers = Placeholder dtype=float", &graph);
  add("tables", Random({kTables, kRows, kDimension}, 0.1, 1));
  AddNodes(R"(
    rows = GatherNd(tables, ids) Tparams=float Tindices=int64
    flat = int32<2>{-1,48}
    embedded = Reshape(rows, flat) T=float Tshape=int32
    axis = int32{-1}
    concat = ConcatV2(embedded, numbers, axis) T=float Tidx=int32 N=2
  )",
           &graph);
  Tensor weights = Random({kInputs0, kHidden0}, 0.15, 2);
  for (int k = kInputs0 - kNumbers; k < kInputs0; ++k) {
    for (int j = 0; j < kHidden0; ++j) weights.matrix<float>()(k, j) *= 4;
  }
  add("w0", weights);
  add("b0", Random({kHidden0}, 0.1, 3));
  add("w1", Random({kHidden1, kHidden0}, 0.3, 4));
  add("w2", Random({kHidden1, kClasses}, 0.3, 5));
  add("b2", Random({kClasses}, 0.1, 6));
  AddNodes(R"(
    m0 = MatMul(concat, w0) T=float
    a0 = BiasAdd(m0, b0) T=float
    r0 = Relu(a0) T=float
    m1 = MatMul(r0, w1) T=float transpose_b=true
    r1 = Relu6(m1) T=float
    m2 = MatMul(r1, w2) T=float
    logits = BiasAdd(m2, b2) T=float
  )",
           &graph);
  return graph;
}

using Feeds = std::vector<std::pair<std::string, Tensor>>;

Feeds Records(int count, int seed) {
  std::mt19937 random(seed);
  Tensor ids(DT_INT64, {count * kTables, 2});
  for (int i = 0; i < count * kTables; ++i) {
    ids.matrix<int64_t>()(i, 0) = i % kTables;
    ids.matrix<int64_t>()(i, 1) = random() % kRows;
  }
  Tensor numbers = Random({count, kNumbers}, 1, seed + 1);
  return {{"ids", ids}, {"numbers", numbers}};
}

Tensor RunOn(const GraphDef& graph, const Feeds& feeds,
             const std::string& fetch = "logits") {
  for (const auto& [name, tensor] : feeds) {
    if (name == fetch) return tensor;
  }
  return MustRunGraph(graph, feeds, {fetch})[0];
}

const std::vector<std::string> kObserved = {
    "concat", "embedded", "more", "numbers", "n0", "n1",
    "n2",     "n3",       "n4",   "r0",      "r1", "logits"};

// Returns the ranges that "requant calibrate" finds for the graph.
RangeTable Calibrate(const GraphDef& graph, bool with_moments = true) {
  RangeTable table;
  const Feeds feeds = Records(2000, 7);
  for (const std::string& name : kObserved) {
    if (!HasNode(graph, name)) continue;
    const Tensor tensor = RunOn(graph, feeds, name);
    const int64_t channels = tensor.dim_size(1);
    const absl::Span<const float> values(tensor.flat<float>().data(),
                                         tensor.NumElements());
    RangeEntry& entry = table.FindOrAdd(name);
    entry.records = tensor.dim_size(0);
    entry.AddRange(*std::min_element(values.begin(), values.end()),
                   *std::max_element(values.begin(), values.end()), {});
    entry.histogram.emplace();
    entry.histogram->Add(values);
    entry.channel_mins.assign(values.begin(), values.begin() + channels);
    entry.channel_maxs = entry.channel_mins;
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t k = i % channels;
      entry.channel_mins[k] = std::min(entry.channel_mins[k], values[i]);
      entry.channel_maxs[k] = std::max(entry.channel_maxs[k], values[i]);
    }
    if (with_moments) entry.moments = ChannelMoments::Of(values, channels);
  }
  return table;
}

// Returns the root mean squared difference as a share of the deviation.
double RelativeError(const Tensor& expected, const Tensor& actual) {
  double error = 0, sum = 0, squares = 0;
  const auto a = expected.flat<float>(), b = actual.flat<float>();
  EXPECT_EQ(a.size(), b.size());
  for (int64_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    error += (a(i) - b(i)) * (a(i) - b(i));
    sum += a(i);
    squares += a(i) * a(i);
  }
  return std::sqrt(error / (squares - sum * sum / a.size()));
}

class QuantizeStatic : public testing::Test {
 protected:
  TransformRun TryToQuantize(const std::string& parameters = "",
                             const std::vector<std::string>& outputs = {
                                 "logits"}) const {
    const std::string path =
        WriteTestFile("tower.ranges", SerializeRangeTable(table_).value());
    return RunTransform(absl::StrCat("quantize_static(ranges_file=\"", path,
                                     "\"", parameters, ")"),
                        graph_, {}, outputs);
  }

  GraphDef Quantize(const std::string& parameters = "") const {
    const TransformRun run = TryToQuantize(parameters);
    EXPECT_OK(run.status);
    return run.graph;
  }

  double ErrorOf(const GraphDef& quantized,
                 const std::string& output = "logits") const {
    const Feeds feeds = Records(3000, 99);
    return RelativeError(RunOn(graph_, feeds, output),
                         RunOn(quantized, feeds, output));
  }

  GraphDef graph_ = TowerGraph();
  RangeTable table_ = Calibrate(graph_);
};

TEST_F(QuantizeStatic, GivesNearlyTheLogitsOfTheFloatGraph) {
  const GraphDef quantized = Quantize();
  EXPECT_THAT(NodesOf(quantized, kFusedRelu), SizeIs(2));
  EXPECT_THAT(NodesOf(quantized, kFusedFloat), SizeIs(1));
  EXPECT_THAT(NodesOf(quantized, "MatMul"), IsEmpty());
  EXPECT_LT(ErrorOf(quantized), 0.03);
}

TEST_F(QuantizeStatic, IsRightForEveryTargetThatThisMachineCanRun) {
  for (const std::string target : {"any", "avx2", "avx512"}) {
    EXPECT_LT(ErrorOf(Quantize(", target=" + target)), 0.03) << target;
  }
}

TEST_F(QuantizeStatic, MakesAGraphThatNeedsNoOneDnn) {
  const GraphDef portable = Quantize(", ops=portable");
  EXPECT_THAT(NodesOf(portable, "_QuantizedMatMul"), SizeIs(3));
  for (const NodeDef& node : portable.node()) {
    EXPECT_THAT(node.op(), Not(testing::StartsWith("QuantizedMatMul")));
    if (node.op() != "QuantizeV2") continue;
    // Both kernels of QuantizeV2 give the same codes if zero is one of them.
    const double min = ScalarNamed(portable, node.input(1));
    const double max = ScalarNamed(portable, node.input(2));
    const double zero = -255 * min / (max - min);
    EXPECT_NEAR(zero, std::rint(zero), 1e-3) << node.name();
  }
  EXPECT_LT(ErrorOf(portable), 0.03);
  const Feeds feeds = Records(500, 99);
  EXPECT_LT(RelativeError(RunOn(Quantize(), feeds), RunOn(portable, feeds)),
            0.02);
}

TEST_F(QuantizeStatic, RefusesOpsThatItDoesNotKnow) {
  EXPECT_THAT(TryToQuantize(", ops=float").status,
              FailsWith(HasSubstr("ops is portable or legacy, not \"float\"")));
}

TEST_F(QuantizeStatic, RepeatsColumnsWithLargeWeights) {
  const GraphDef split = Quantize();
  const GraphDef plain = Quantize(", split_columns=false");
  EXPECT_GT(ConstNamed(split, "w0_qint8_const").dim_size(0), kInputs0);
  EXPECT_EQ(ConstNamed(plain, "w0_qint8_const").dim_size(0), kInputs0);
  EXPECT_LT(ErrorOf(split), 0.7 * ErrorOf(plain));
}

// In an estimator's graph each number is a tensor of its own, here also before
// and after the embeddings.
TEST_F(QuantizeStatic, KeepsCopiesOfNumbersInSeparateTensorsApart) {
  const double error = ErrorOf(Quantize());
  const Tensor weights = ConstNamed(graph_, "w0");
  graph_ = WithNodes(TowerGraph(), R"(
    axes = int32{1}
    columns = Unpack(numbers) T=float num=5 axis=1
    n0 = ExpandDims(columns, axes) T=float Tdim=int32
    n1 = ExpandDims(columns:1, axes) T=float Tdim=int32
    n2 = ExpandDims(columns:2, axes) T=float Tdim=int32
    n3 = ExpandDims(columns:3, axes) T=float Tdim=int32
    n4 = ExpandDims(columns:4, axes) T=float Tdim=int32
    concat = ConcatV2(n0, n1, embedded, n2, n3, n4, axis) T=float Tidx=int32 N=6
  )");
  Tensor moved(DT_FLOAT, weights.shape());
  for (int k = 0; k < kInputs0; ++k) {
    const int number = k - kTables * kDimension;
    const int to = number < 0 ? k + 2 : number < 2 ? number : k;
    for (int j = 0; j < kHidden0; ++j) {
      moved.matrix<float>()(to, j) = weights.matrix<float>()(k, j);
    }
  }
  *MutableNode(&graph_, "w0") = MakeConst("w0", moved);
  table_ = Calibrate(graph_);
  const GraphDef quantized = Quantize();
  EXPECT_LT(ErrorOf(quantized), 1.1 * error);
  const Tensor codes = ConstNamed(quantized, "w0_qint8_const");
  const auto matrix = codes.matrix<tensorflow::qint8>();
  ASSERT_GE(matrix.dimension(0), kInputs0 + kNumbers);
  for (int number = 0; number < kNumbers; ++number) {
    EXPECT_NEAR(matrix(number, 0).value, matrix(number + kNumbers, 0).value, 2);
  }
  // All of them are scaled and quantized at once.
  EXPECT_THAT(NodesOf(quantized, "QuantizeV2"), SizeIs(2));
}

// Finer steps for a table that is hardly narrower than the others cost more
// accuracy, in the weights, than they gain.
TEST_F(QuantizeStatic, GivesTablesThatAreNearlyAlikeOneRange) {
  const auto maxima = [&](double scale) {
    graph_ = WithNodes(TowerGraph(), R"(
      more_rows = GatherNd(more_tables, ids) Tparams=float Tindices=int64
      more = Reshape(more_rows, flat) T=float Tshape=int32
      concat = ConcatV2(embedded, more, numbers, axis) T=float Tidx=int32 N=3
    )");
    *graph_.add_node() = MakeConst(
        "more_tables", Random({kTables, kRows, kDimension}, 0.1 * scale, 8));
    *MutableNode(&graph_, "w0") = MakeConst(
        "w0", Random({kInputs0 + kTables * kDimension, kHidden0}, 0.15, 2));
    table_ = Calibrate(graph_);
    const GraphDef quantized = Quantize();
    EXPECT_LT(ErrorOf(quantized), 0.03) << scale;
    std::vector<float> maxima;
    for (const std::string block : {"embedded", "more"}) {
      maxima.push_back(ScalarNamed(
          quantized,
          NodeNamed(quantized, "m0_eightbit_quantize_" + block).input(2)));
    }
    return maxima;
  };
  const std::vector<float> alike = maxima(0.8), unlike = maxima(0.1);
  EXPECT_EQ(alike[0], alike[1]);
  EXPECT_LT(unlike[1], 0.2 * unlike[0]);
}

TEST_F(QuantizeStatic, RoundsWeightsByWhatTheCalibrationKnows) {
  EXPECT_LT(ErrorOf(Quantize()), ErrorOf(Quantize(", compensate=false")));
}

TEST_F(QuantizeStatic, RoundsToTheNearestWithoutMoments) {
  table_ = Calibrate(graph_, /*with_moments=*/false);
  const TransformRun run = TryToQuantize();
  EXPECT_THAT(run.notes, Contains(HasSubstr("nearest")));
  EXPECT_LT(ErrorOf(run.graph), 0.04);
}

TEST_F(QuantizeStatic, GivesEachBlockOfAConcatItsOwnRange) {
  const GraphDef quantized = Quantize(", split_columns=false");
  const auto max_of = [&](const std::string& block) {
    return ScalarNamed(
        quantized,
        NodeNamed(quantized, "m0_eightbit_quantize_" + block).input(2));
  };
  EXPECT_LT(max_of("embedded"), 0.5);
  EXPECT_GT(max_of("numbers"), 2);
  EXPECT_EQ(
      NodeNamed(quantized, "m0_eightbit_concat_concat").attr().at("T").type(),
      DT_QUINT8);
  EXPECT_FALSE(HasNode(quantized, "concat"));
}

TEST_F(QuantizeStatic, CoversRowsOfATableThatCalibrationNeverSaw) {
  Tensor tables = ConstNamed(graph_, "tables");
  tables.flat<float>()(3) = 5;
  *MutableNode(&graph_, "tables") = MakeConst("tables", tables);
  const GraphDef quantized = Quantize(", split_columns=false");
  EXPECT_EQ(ScalarNamed(
                quantized,
                NodeNamed(quantized, "m0_eightbit_quantize_embedded").input(2)),
            5);
}

TEST_F(QuantizeStatic, LimitsRelu6) {
  table_.FindOrAdd("r1").histogram->Add(std::vector<float>(100000, 9));
  const GraphDef quantized = Quantize(", method=percentile");
  EXPECT_EQ(
      ScalarNamed(
          quantized,
          NodeNamed(quantized, "m1_eightbit_requantize").input(kInputs + 1)),
      6);
}

TEST_F(QuantizeStatic, FindsTheRangesOfAnInputBehindAnIdentity) {
  MutableNode(&graph_, "m0")->set_input(0, "same");
  AddNodes("same = Identity(concat) T=float", &graph_);
  EXPECT_LT(ErrorOf(Quantize()), 0.03);
}

TEST_F(QuantizeStatic, StandsALayerThatIsNeverPositive) {
  graph_ = WithNodes(TowerGraph(), "b0 = float<32>{-100}");
  table_ = Calibrate(graph_);
  const Feeds feeds = Records(100, 3);
  EXPECT_THAT(ValuesOf(RunOn(Quantize(), feeds)),
              testing::Pointwise(testing::FloatNear(1e-4),
                                 ValuesOf(RunOn(graph_, feeds))));
}

TEST_F(QuantizeStatic, IsRightWhereTheFirstColumnIsTiny) {
  RangeEntry& entry = table_.FindOrAdd("numbers");
  entry.channel_mins[0] = entry.channel_maxs[0] = 1e-36f;
  const GraphDef quantized = Quantize();
  for (const NodeDef& node : quantized.node()) {
    EXPECT_TRUE(std::isfinite(ScalarConstValue(node).value_or(0)))
        << node.name();
  }
}

TEST_F(QuantizeStatic, RefusesTheTableOfATensorOfAnotherWidth) {
  RangeEntry& entry = table_.FindOrAdd("concat");
  entry.channel_mins.pop_back();
  entry.channel_maxs.pop_back();
  entry.moments.reset();
  EXPECT_THAT(TryToQuantize().status,
              FailsWith(HasSubstr("is it the range table of another model?")));
}

TEST_F(QuantizeStatic, LeavesNoTwoNeighboursThatOverflowWithoutVnni) {
  const GraphDef quantized = Quantize();
  for (const std::string name : {"w0", "w1", "w2"}) {
    const Tensor codes = ConstNamed(quantized, name + "_qint8_const");
    const auto matrix = codes.matrix<tensorflow::qint8>();
    std::vector<int> sums;
    for (int64_t k = 0; k + 1 < matrix.dimension(0); ++k) {
      for (int64_t j = 0; j < matrix.dimension(1); ++j) {
        sums.push_back(std::abs(matrix(k, j).value + matrix(k + 1, j).value));
      }
    }
    EXPECT_THAT(sums, Each(Le(128))) << name;
  }
}

TEST_F(QuantizeStatic, GivesFloatReadersOfALayerItsValues) {
  AddNodes("also = Identity(r0) T=float", &graph_);
  const TransformRun run = TryToQuantize("", {"logits", "also"});
  ASSERT_OK(run.status);
  EXPECT_LT(ErrorOf(run.graph, "also"), 0.03);
}

TEST_F(QuantizeStatic, SaysToCalibrateWhenTheTableHasNotTheTensor) {
  table_ = RangeTable();
  table_.FindOrAdd("another").AddRange(0, 1, {});
  EXPECT_THAT(TryToQuantize().status,
              FailsWith(HasSubstr("calibrate this very graph")));
}

TEST_F(QuantizeStatic, LeavesAGraphWithoutLayersAlone) {
  graph_ = GraphFromText("logits = Placeholder dtype=float");
  const TransformRun run = TryToQuantize();
  ASSERT_OK(run.status);
  EXPECT_EQ(run.graph.node_size(), 1);
  EXPECT_THAT(run.warnings, Contains(HasSubstr("nothing to quantize")));
}

PlannedColumn Column(double step, double largest_weight, bool may_repeat) {
  PlannedColumn column;
  column.step = step;
  column.deviation = 50 * step;
  column.largest_weight = largest_weight;
  column.squared_weights = 100 * largest_weight * largest_weight / 9;
  column.may_repeat = may_repeat;
  return column;
}

ColumnPlanOptions Options(int most_added) {
  ColumnPlanOptions options;
  options.outputs = 100;
  options.most_added = most_added;
  return options;
}

TEST(PlanColumns, RepeatsNothingWhereAllColumnsAreAlike) {
  const std::vector<PlannedColumn> columns(20, Column(0.01, 0.2, true));
  EXPECT_THAT(PlanColumns(columns, Options(16)).copies, Each(1));
}

// Returns twenty columns that may not be repeated, then some with these largest
// weights that may.
std::vector<PlannedColumn> ColumnsAnd(const std::vector<double>& weights) {
  std::vector<PlannedColumn> columns(20, Column(0.01, 0.2, false));
  for (double weight : weights) columns.push_back(Column(0.01, weight, true));
  return columns;
}

TEST(PlanColumns, RepeatsAColumnThatMakesTheWeightsOfTheOthersCoarse) {
  const ColumnPlan plan = PlanColumns(ColumnsAnd({0.6}), Options(16));
  // 0.6 / 4 is the first share below three quarters of 0.2.
  EXPECT_EQ(plan.copies.back(), 4);
  EXPECT_THAT(std::vector<int>(plan.copies.begin(), plan.copies.end() - 1),
              Each(1));
  EXPECT_LT(plan.expected_error,
            0.5 * PlanColumns(ColumnsAnd({0.6}), Options(0)).expected_error);
}

TEST(PlanColumns, NeverRepeatsWhatMayNotBeRepeated) {
  const std::vector<PlannedColumn> columns = {Column(0.01, 0.2, false),
                                              Column(0.01, 0.9, false),
                                              Column(0.01, 0.1, false)};
  EXPECT_THAT(PlanColumns(columns, Options(16)).copies, ElementsAre(1, 1, 1));
}

TEST(PlanColumns, AddsNoMoreThanAllowed) {
  EXPECT_EQ(PlanColumns(ColumnsAnd({0.6}), Options(2)).copies.back(), 2);
  EXPECT_EQ(PlanColumns(ColumnsAnd({0.6}), Options(0)).copies.back(), 1);
}

TEST(PlanColumns, RepeatsAllThatMayBeThisOftenAtLeastIfTheLimitAllowsIt) {
  ColumnPlanOptions options = Options(16);
  options.least_copies = 4;
  const ColumnPlan plan = PlanColumns(ColumnsAnd({0.6, 0.05}), options);
  EXPECT_EQ(plan.copies[20], 4);
  EXPECT_EQ(plan.copies[21], 4);
  options.most_added = 4;
  EXPECT_EQ(PlanColumns(ColumnsAnd({0.6, 0.05}), options).copies[21], 2);
}

TEST(PlanColumns, StandsColumnsWithoutWeightsOrSpread) {
  PlannedColumn idle = Column(1, 0, true);
  idle.deviation = 0;
  EXPECT_THAT(PlanColumns({idle, idle}, Options(16)).copies, ElementsAre(1, 1));
}

}  // namespace
}  // namespace requant::quantize_static_test
