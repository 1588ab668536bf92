#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "absl/types/span.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "graph/testing/testing.h"
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

// Rows of tables next to numbers, the first of which are large and have large
// weights; a layer with Relu; one with Relu6, without bias and with transposed
// weights; float logits.
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

const std::vector<std::string> kObserved = {"concat", "embedded", "numbers",
                                            "r0",     "r1",       "logits"};

// Returns what "requant calibrate" finds of the graph.
RangeTable Calibrate(const GraphDef& graph, bool with_moments = true) {
  RangeTable table;
  const Feeds feeds = Records(2000, 7);
  for (const std::string& name : kObserved) {
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

std::string WriteTable(const RangeTable& table, const std::string& name) {
  return WriteTestFile(name, SerializeRangeTable(table).value());
}

TransformRun TryToQuantize(const GraphDef& graph, const RangeTable& table,
                           const std::string& parameters = "") {
  const std::string path = WriteTable(table, "tower.ranges");
  return RunTransform(absl::StrCat("quantize_static(ranges_file=\"", path, "\"",
                                   parameters, ")"),
                      graph, {}, {"logits"});
}

TransformRun Quantize(const GraphDef& graph, const RangeTable& table,
                      const std::string& parameters = "") {
  TransformRun run = TryToQuantize(graph, table, parameters);
  EXPECT_OK(run.status);
  return run;
}

// Returns the root mean squared difference, as a share of the deviation.
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

double ErrorOf(const GraphDef& graph, const GraphDef& quantized) {
  const Feeds feeds = Records(3000, 99);
  return RelativeError(RunOn(graph, feeds), RunOn(quantized, feeds));
}

TEST(QuantizeStatic, GivesNearlyTheLogitsOfTheFloatGraph) {
  const GraphDef graph = TowerGraph();
  const TransformRun run = Quantize(graph, Calibrate(graph));
  EXPECT_EQ(NodesOf(run.graph, kFusedRelu).size(), 2);
  EXPECT_EQ(NodesOf(run.graph, kFusedFloat).size(), 1);
  EXPECT_TRUE(NodesOf(run.graph, "MatMul").empty());
  EXPECT_LT(ErrorOf(graph, run.graph), 0.03);
}

TEST(QuantizeStatic, IsRightForEveryTargetThatThisMachineCanRun) {
  const GraphDef graph = TowerGraph();
  const RangeTable table = Calibrate(graph);
  for (const char* target : {"any", "avx2", "avx512"}) {
    const TransformRun run =
        Quantize(graph, table, absl::StrCat(", target=", target));
    EXPECT_LT(ErrorOf(graph, run.graph), 0.03) << target;
  }
}

TEST(QuantizeStatic, RepeatsColumnsWithLargeWeights) {
  const GraphDef graph = TowerGraph();
  const RangeTable table = Calibrate(graph);
  const TransformRun split = Quantize(graph, table);
  const TransformRun plain = Quantize(graph, table, ", split_columns=false");
  const auto columns = [](const TransformRun& run) {
    return ConstValue(NodeNamed(run.graph, "w0_qint8_const"))->dim_size(0);
  };
  EXPECT_GT(columns(split), kInputs0);
  EXPECT_EQ(columns(plain), kInputs0);
  EXPECT_LT(ErrorOf(graph, split.graph), 0.7 * ErrorOf(graph, plain.graph));
}

TEST(QuantizeStatic, RoundsWeightsByWhatTheCalibrationKnows) {
  const GraphDef graph = TowerGraph();
  const RangeTable table = Calibrate(graph);
  const TransformRun nearest = Quantize(graph, table, ", compensate=false");
  const TransformRun compensated = Quantize(graph, table);
  EXPECT_LT(ErrorOf(graph, compensated.graph), ErrorOf(graph, nearest.graph));
}

TEST(QuantizeStatic, RoundsToTheNearestWithoutMoments) {
  const GraphDef graph = TowerGraph();
  const TransformRun run =
      Quantize(graph, Calibrate(graph, /*with_moments=*/false));
  EXPECT_THAT(run.notes, Contains(HasSubstr("nearest")));
  EXPECT_LT(ErrorOf(graph, run.graph), 0.04);
}

TEST(QuantizeStatic, GivesEachBlockOfAConcatItsOwnRange) {
  const GraphDef graph = TowerGraph();
  const TransformRun run =
      Quantize(graph, Calibrate(graph), ", split_columns=false");
  const NodeDef& table = NodeNamed(run.graph, "m0_eightbit_quantize_embedded");
  const NodeDef& numbers = NodeNamed(run.graph, "m0_eightbit_quantize_numbers");
  EXPECT_LT(*ScalarConstValue(NodeNamed(run.graph, table.input(2))), 0.5);
  EXPECT_GT(*ScalarConstValue(NodeNamed(run.graph, numbers.input(2))), 2);
  EXPECT_EQ(
      NodeNamed(run.graph, "m0_eightbit_concat_concat").attr().at("T").type(),
      DT_QUINT8);
  EXPECT_FALSE(HasNode(run.graph, "concat"));
}

TEST(QuantizeStatic, CoversRowsOfATableThatCalibrationNeverSaw) {
  GraphDef graph = TowerGraph();
  Tensor tables = Random({kTables, kRows, kDimension}, 0.1, 1);
  const RangeTable table = Calibrate(graph);
  tables.flat<float>()(3) = 5;
  *MutableNode(&graph, "tables") = MakeConst("tables", tables);
  const TransformRun run = Quantize(graph, table, ", split_columns=false");
  const NodeDef& quantize =
      NodeNamed(run.graph, "m0_eightbit_quantize_embedded");
  EXPECT_EQ(*ScalarConstValue(NodeNamed(run.graph, quantize.input(2))), 5);
}

TEST(QuantizeStatic, LimitsRelu6) {
  GraphDef graph = TowerGraph();
  RangeTable table = Calibrate(graph);
  RangeEntry& entry = table.FindOrAdd("r1");
  const std::vector<float> large(100000, 9);
  entry.histogram->Add(large);
  const TransformRun run = Quantize(graph, table, ", method=percentile");
  const NodeDef& fused = NodeNamed(run.graph, "m1_eightbit_requantize");
  EXPECT_EQ(*ScalarConstValue(NodeNamed(run.graph, fused.input(kInputs + 1))),
            6);
}

TEST(QuantizeStatic, FindsTheRangesOfAnInputBehindAnIdentity) {
  GraphDef graph = TowerGraph();
  const RangeTable table = Calibrate(graph);
  MutableNode(&graph, "m0")->set_input(0, "same");
  AddNodes("same = Identity(concat) T=float", &graph);
  const TransformRun run = Quantize(graph, table);
  EXPECT_LT(ErrorOf(graph, run.graph), 0.03);
}

TEST(QuantizeStatic, StandsALayerThatIsNeverPositive) {
  const GraphDef graph = WithNodes(TowerGraph(), "b0 = float<32>{-100}");
  const TransformRun run = Quantize(graph, Calibrate(graph));
  const Feeds feeds = Records(100, 3);
  const Tensor expected = RunOn(graph, feeds), actual = RunOn(run.graph, feeds);
  for (int64_t i = 0; i < expected.NumElements(); ++i) {
    ASSERT_NEAR(actual.flat<float>()(i), expected.flat<float>()(i), 1e-4);
  }
}

TEST(QuantizeStatic, IsRightWhereTheFirstColumnIsTiny) {
  GraphDef graph = TowerGraph();
  RangeTable table = Calibrate(graph);
  RangeEntry& entry = table.FindOrAdd("numbers");
  entry.channel_mins[0] = entry.channel_maxs[0] = 1e-36f;
  const TransformRun run = Quantize(graph, table);
  for (const NodeDef& node : run.graph.node()) {
    const auto value = ScalarConstValue(node);
    if (value.ok()) {
      EXPECT_TRUE(std::isfinite(*value)) << node.name();
    }
  }
}

TEST(QuantizeStatic, RefusesTheTableOfATensorOfAnotherWidth) {
  const GraphDef graph = TowerGraph();
  RangeTable table = Calibrate(graph);
  RangeEntry& entry = table.FindOrAdd("concat");
  entry.channel_mins.pop_back();
  entry.channel_maxs.pop_back();
  entry.moments.reset();
  EXPECT_THAT(TryToQuantize(graph, table).status,
              FailsWith(HasSubstr("is it the range table of another model?")));
}

TEST(QuantizeStatic, LeavesNoTwoNeighboursThatOverflowWithoutVnni) {
  const GraphDef graph = TowerGraph();
  const TransformRun run = Quantize(graph, Calibrate(graph));
  for (const char* name : {"w0", "w1", "w2"}) {
    const Tensor codes =
        ConstValue(NodeNamed(run.graph, absl::StrCat(name, "_qint8_const")))
            .value();
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

TEST(QuantizeStatic, GivesFloatReadersOfALayerItsValues) {
  GraphDef graph = TowerGraph();
  AddNodes("also = Identity(r0) T=float", &graph);
  const RangeTable table = Calibrate(graph);
  const std::string path = WriteTable(table, "also.ranges");
  const TransformRun run =
      MustTransform(absl::StrCat("quantize_static(ranges_file=\"", path, "\")"),
                    graph, {}, {"logits", "also"});
  const Feeds feeds = Records(1000, 42);
  EXPECT_LT(RelativeError(RunOn(graph, feeds, "also"),
                          RunOn(run.graph, feeds, "also")),
            0.03);
}

TEST(QuantizeStatic, LeavesExcludedNodesInFloat) {
  const GraphDef graph = TowerGraph();
  const TransformRun run =
      Quantize(graph, Calibrate(graph), ", excluded_nodes=m2");
  EXPECT_EQ(NodeNamed(run.graph, "m2").op(), "MatMul");
  EXPECT_LT(ErrorOf(graph, run.graph), 0.03);
}

TEST(QuantizeStatic, SaysToCalibrateWhenTheTableHasNotTheTensor) {
  const GraphDef graph = TowerGraph();
  RangeTable table;
  table.FindOrAdd("another").AddRange(0, 1, {});
  EXPECT_THAT(TryToQuantize(graph, table).status,
              FailsWith(HasSubstr("calibrate this very graph")));
}

TEST(QuantizeStatic, GivesTheSameBytesEveryTime) {
  const GraphDef graph = TowerGraph();
  const RangeTable table = Calibrate(graph);
  EXPECT_EQ(Quantize(graph, table).graph.ShortDebugString(),
            Quantize(graph, table).graph.ShortDebugString());
}

TEST(QuantizeStatic, LeavesAGraphWithoutLayersAlone) {
  GraphDef graph;
  AddNodes("logits = Placeholder dtype=float", &graph);
  const TransformRun run = Quantize(graph, RangeTable());
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

// Returns twenty columns that may not be repeated, and those with these largest
// weights that may.
std::vector<PlannedColumn> ColumnsAnd(const std::vector<double>& weights) {
  std::vector<PlannedColumn> columns(20, Column(0.01, 0.2, false));
  for (double weight : weights) columns.push_back(Column(0.01, weight, true));
  return columns;
}

TEST(PlanColumns, RepeatsAColumnThatMakesTheWeightsOfTheOthersCoarse) {
  const ColumnPlan plan = PlanColumns(ColumnsAnd({0.6}), Options(16));
  // 0.6 / 4 is the first below three quarters of 0.2.
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
