#include <random>

#include "ranges/range_table.h"
#include "transforms/layers/float_layer.h"
#include "transforms/testing/testing.h"

namespace requant::freeze_ranges_test {
namespace {

// Returns a graph that quantizes x over [Min(x), Max(x)] and dequantizes it.
GraphDef DynamicQuantization() {
  return GraphFromText(R"(
    x = Placeholder dtype=float
    dims = int32<1>{0}
    x_min = Min(x, dims) T=float
    x_max = Max(x, dims) T=float
    q = QuantizeV2(x, x_min, x_max) T=quint8 mode='MIN_FIRST'
    y = Dequantize(q, q:1, q:2) T=quint8 mode='MIN_FIRST'
  )");
}

// Returns a graph that requantizes over a range computed as it runs.
GraphDef DynamicRequantization() {
  return GraphFromText(R"(
    acc = Placeholder dtype=qint32
    lo = Placeholder dtype=float
    hi = Placeholder dtype=float
    r/range = RequantizationRange(acc, lo, hi) Tinput=qint32
    after = NoOp(^r/range)
    r/requantize = Requantize(acc, lo, hi, r/range, r/range:1) Tinput=qint32
        out_type=quint8
  )");
}

// Returns a log with one line per value.
std::string LogFile(const std::string& name, const std::string& node,
                    const std::string& message,
                    const std::vector<float>& values) {
  std::string text = "noise\n";
  for (float value : values) {
    absl::StrAppend(&text, "2026-11-16 I op.cc:1] ;", node, "__print__;",
                    message, "[", value, "]\n");
  }
  return WriteTestFile(name, text);
}

std::string RangeLogFile(const std::string& name,
                         const std::vector<std::pair<float, float>>& ranges) {
  std::string text;
  for (const auto& [min, max] : ranges) {
    absl::StrAppend(&text, ";r/range__print__;__requant_min_max:[", min, "][",
                    max, "]\n");
  }
  return WriteTestFile(name, text);
}

std::string Call(const std::string& transform, const std::string& file,
                 const std::string& more = "") {
  return absl::StrCat(transform, "(min_max_log_file=\"", file, "\"", more, ")");
}

std::string FreezeMin(const std::vector<float>& values,
                      const std::string& more = "") {
  return Call("freeze_min", LogFile("min", "x_min", "__min:", values), more);
}

std::string FreezeMax(const std::vector<float>& values,
                      const std::string& more = "") {
  return Call("freeze_max", LogFile("max", "x_max", "__max:", values), more);
}

std::vector<float> OneTo(int n) {
  std::vector<float> values;
  for (int i = 1; i <= n; ++i) values.push_back(i);
  return values;
}

std::string CallWithTable(const std::string& transform,
                          const RangeTable& ranges,
                          const std::string& more = "") {
  const std::string path =
      WriteTestFile("table", SerializeRangeTable(ranges).value());
  return absl::StrCat(transform, "(ranges_file=\"", path, "\"", more, ")");
}

TEST(FreezeMin, TakesTheLowerTailOfTheMinima) {
  std::vector<float> values;
  for (float v : OneTo(100)) values.push_back(-v);
  const auto run = MustTransform(FreezeMin(values), DynamicQuantization());
  // The value has the index round(100 · 0.05) = 5 in -100 … -1.
  EXPECT_THAT(run.graph, HasNodes(R"(
    x_min/frozen_min_only = float{-95}
    q = QuantizeV2(x, x_min/frozen_min_only, x_max)
  )"));
  EXPECT_FALSE(HasNode(run.graph, "x_min"));
  EXPECT_THAT(run.notes, ElementsAre(AllOf(HasSubstr("freezes 1 Min node"),
                                           HasSubstr("min_percentile 5"))));
  const auto compat =
      MustTransform(FreezeMin(values, ", compat=true"), DynamicQuantization());
  // The original took index round(100 · 0.95) = 95 of the ascending minima.
  EXPECT_EQ(ScalarNamed(compat.graph, "x_min/frozen_min_only"), -5);
}

TEST(FreezeMax, TakesTheUpperTailOfTheMaxima) {
  for (const char* compat : {"", ", compat=true"}) {
    const auto run =
        MustTransform(FreezeMax(OneTo(100), compat), DynamicQuantization());
    EXPECT_EQ(ScalarNamed(run.graph, "x_max/frozen_max_only"), 96);
  }
}

TEST(FreezeRequantizationRanges, ReplacesBothOutputsAndTheControlInput) {
  const auto run = MustTransform(
      Call("freeze_requantization_ranges", RangeLogFile("r", {{-1, 4}})),
      DynamicRequantization());
  EXPECT_THAT(run.graph, HasNodes(R"(
    r/range/frozen_min = float{-1}
    r/range/frozen_max = float{4}
    r/requantize = Requantize(acc, lo, hi, r/range/frozen_min,
        r/range/frozen_max)
    after = NoOp(^r/range/frozen_min)
  )"));
  EXPECT_FALSE(HasNode(run.graph, "r/range"));
}

// TensorFlow's own transform is the reference for the choice.
TEST(FreezeRequantizationRanges, ChoosesWhatTheStockTransformChooses) {
  std::mt19937 random(7);
  for (int count : {1, 2, 9, 10, 19, 20, 37, 200}) {
    std::vector<std::pair<float, float>> ranges;
    for (int i = 0; i < count; ++i) {
      ranges.push_back(
          {-1.0f - random() % 1000 / 10.0f, 1.0f + random() % 1000 / 10.0f});
    }
    const std::string file = RangeLogFile("r", ranges);
    for (const char* more : {"", ", min_percentile=0, max_percentile=0",
                             ", min_percentile=12.5, max_percentile=33"}) {
      const std::string call = Call("freeze_requantization_ranges", file, more);
      const auto ours = MustTransform(call, DynamicRequantization());
      const auto theirs =
          MustTransform("stock:" + call, DynamicRequantization());
      const auto compat =
          MustTransform(Call("freeze_requantization_ranges", file,
                             absl::StrCat(more, ", compat=true")),
                        DynamicRequantization());
      for (const char* name : {"r/range/frozen_min", "r/range/frozen_max"}) {
        EXPECT_EQ(ScalarNamed(ours.graph, name),
                  ScalarNamed(theirs.graph, name))
            << count << more;
        EXPECT_EQ(ScalarNamed(ours.graph, name),
                  ScalarNamed(compat.graph, name))
            << count << more;
      }
    }
  }
}

TEST(Freeze, GivesTheSameResultsWhenTheLoggedRangeIsFrozen) {
  const Tensor x = TensorOf<float>({5}, {-1, -0.5, 0, 0.5, 1});
  const GraphDef dynamic = DynamicQuantization();
  const GraphDef frozen =
      MustTransform(FreezeMax({1}),
                    MustTransform(FreezeMin({-1}), dynamic).graph)
          .graph;
  const Tensor before = MustRunGraph(dynamic, {{"x", x}}, {"y"})[0];
  const Tensor after = MustRunGraph(frozen, {{"x", x}}, {"y"})[0];
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(before.flat<float>()(i), after.flat<float>()(i), 1e-5);
  }
}

TEST(Freeze, ReadsSeveralLogsAndRangeTables) {
  const std::string a = LogFile("a", "x_max", "__max:", {1});
  const std::string b = LogFile("b", "x_max", "__max:", {2});
  RangeTable ranges;
  ranges.FindOrAdd("x_max").AddMax(3, {"here", 1});
  const auto run =
      MustTransform(CallWithTable("freeze_max", ranges,
                                  absl::StrCat(", min_max_log_file=\"", a,
                                               "\", min_max_log_file=\"", b,
                                               "\", max_percentile=0")),
                    DynamicQuantization());
  EXPECT_EQ(ScalarNamed(run.graph, "x_max/frozen_max_only"), 3);
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("at least 3 observations")));
}

// The nodes of other kinds may already be constants.
TEST(Freeze, ALogOrRangeTableOfSeveralKindsServesEveryTransform) {
  const std::string log =
      WriteTestFile("mixed",
                    ";x_min__print__;__min:[-1]\n;x_max__print__;__max:[2]\n"
                    ";r/range__print__;__requant_min_max:[0][1]\n");
  RangeTable ranges;
  ranges.FindOrAdd("x_min").AddMin(-1, {"here", 1});
  ranges.FindOrAdd("x_max").AddMax(2, {"here", 2});
  ranges.FindOrAdd("r/range").AddRange(0, 1, {"here", 3});
  for (const char* transform : {"freeze_min", "freeze_max"}) {
    MustTransform(Call(transform, log), DynamicQuantization());
    MustTransform(CallWithTable(transform, ranges), DynamicQuantization());
  }
}

TEST(Freeze, LeavesTheModelsOwnMinAlone) {
  const GraphDef graph =
      WithNodes(DynamicQuantization(), "model/min = Min(x, dims) T=float");
  const std::string log = WriteTestFile(
      "own", ";x_min__print__;__min:[-1]\n;model/min__print__;__min:[-2]\n");
  const auto run = MustTransform(Call("freeze_min", log), graph);
  EXPECT_TRUE(HasNode(run.graph, "model/min"));
  EXPECT_THAT(run.warnings, Contains(HasSubstr("\"model/min\" stays")));
  const auto compat =
      MustTransform(Call("freeze_min", log, ", compat=true"), graph);
  EXPECT_EQ(ScalarNamed(compat.graph, "model/min/frozen_min_only"), -2);
}

TEST(Freeze, RefusesParametersAndLogsThatDoNotFit) {
  const std::string max = LogFile("max", "x_max", "__max:", {1});
  const std::string other = WriteTestFile(
      "other", ";x_min__print__;__min:[-1]\n;other/min__print__;__min:[-1]\n");
  using Why = testing::Matcher<std::string>;
  const Why not_there =
      AllOf(HasSubstr("not in the graph"), HasSubstr("\"other/min\""));
  for (const auto& [call, why] : std::vector<std::pair<std::string, Why>>{
           {"freeze_min", HasSubstr("min_max_log_file=")},
           {Call("freeze_min", "/no/such/log"), HasSubstr("/no/such/log")},
           {Call("freeze_min", max),
            AllOf(HasSubstr(max), HasSubstr("__min:"))},
           {Call("freeze_min", other), not_there},
           {Call("freeze_min", LogFile("l", "q", "__min:", {-1})),
            HasSubstr("\"q\", which is a QuantizeV2 in this graph")},
           {Call("freeze_requantization_ranges",
                 RangeLogFile("ranges", {{0, 1}})),
            AllOf(HasSubstr("not in the graph"), HasSubstr("\"r/range\""))},
           {Call("freeze_min", "x", ", min_percentile=101"),
            HasSubstr("between 0 and 100")},
           {Call("freeze_min", "x", ", method=kl"),
            HasSubstr("minmax, percentile or mse")},
           {Call("freeze_min", "x", ", method=mse, compat=true"),
            HasSubstr("compat")},
           // This fails whatever the method.
           {Call("freeze_min", "x", ", value_percentile=101"),
            HasSubstr("above 50 and at most 100")},
           {Call("freeze_min", "x", ", value_percentile=0, method=mse"),
            HasSubstr("above 50 and at most 100")}}) {
    EXPECT_THAT(TransformError(call, DynamicQuantization()), why) << call;
  }
}

// Returns a second quantization of x, over [other_min(x), Max(x)].
GraphDef TwoQuantizations() {
  return WithNodes(DynamicQuantization(), R"(
    other_min = Min(x, dims) T=float
    q2 = QuantizeV2(x, other_min, x_max) T=quint8 mode='MIN_FIRST'
  )");
}

TEST(Freeze, NamesNodesOfTheGraphThatTheLogNeverMentions) {
  EXPECT_THAT(
      TransformError(FreezeMin({-1}), TwoQuantizations()),
      AllOf(HasSubstr("never mentions 1 Min"), HasSubstr("\"other_min\"")));
}

TEST(Freeze, WarnsOfALogThatEndsWithinABatch) {
  std::string log;
  for (int batch = 0; batch < 9; ++batch) {
    absl::StrAppend(&log, ";x_min__print__;__min:[-1]\n");
    absl::StrAppend(&log, ";other_min__print__;__min:[-2]\n");
  }
  const auto whole = MustTransform(
      Call("freeze_min", WriteTestFile("whole", log)), TwoQuantizations());
  EXPECT_THAT(whole.warnings, IsEmpty());

  absl::StrAppend(&log, ";x_min__print__;__min:[-1]\n");
  const auto cut = MustTransform(Call("freeze_min", WriteTestFile("cut", log)),
                                 TwoQuantizations());
  EXPECT_THAT(cut.warnings,
              ElementsAre(AllOf(HasSubstr("\"other_min\" has 9 observations"),
                                HasSubstr("\"x_min\" 10"),
                                HasSubstr("not every batch is there whole"))));
}

TEST(Freeze, RefusesValuesThatAreNotFinite) {
  for (const char* value : {"nan", "inf", "-inf"}) {
    const std::string log = WriteTestFile(
        "nan",
        absl::StrCat(";x_min__print__;__min:[-1]\n;x_min__print__;__min:[",
                     value, "]\n"));
    EXPECT_THAT(TransformError(Call("freeze_min", log), DynamicQuantization()),
                AllOf(HasSubstr("not finite"), HasSubstr("nan:2")));
  }
}

TEST(Freeze, RefusesRangesThatAreNone) {
  std::vector<std::pair<float, float>> ranges;
  for (int i = 0; i < 10; ++i) ranges.push_back({i * 10.0f, i * 10.0f + 1});
  const auto error = [](const std::string& log, const std::string& more = "") {
    return TransformError(Call("freeze_requantization_ranges", log, more),
                          DynamicRequantization());
  };
  EXPECT_THAT(error(RangeLogFile("inverted", {{0, 1}, {2, 1}})),
              AllOf(HasSubstr("above its maximum"), HasSubstr("inverted:2")));
  EXPECT_THAT(error(RangeLogFile("r", ranges),
                    ", min_percentile=90, max_percentile=90"),
              HasSubstr("which is empty"));
  EXPECT_THAT(error(RangeLogFile("empty", {})), HasSubstr("no range in "));
}

TEST(Freeze, RefusesAQuantizationWithItsEndsSwapped) {
  const auto min = MustTransform(FreezeMin({5}), DynamicQuantization());
  EXPECT_THAT(TransformError(FreezeMax({1}), min.graph),
              HasSubstr("\"q\" would quantize the empty range [5, 1]"));
}

TEST(Freeze, RefusesToFreezeAnOutput) {
  const auto run =
      RunTransform(FreezeMin({-1}), DynamicQuantization(), {}, {"x_min"});
  EXPECT_THAT(run.status,
              FailsWith(HasSubstr("\"x_min\" is one of --outputs")));
}

TEST(Freeze, WarnsOfARangeFromFewObservations) {
  EXPECT_THAT(RunTransform(FreezeMax(OneTo(7)), DynamicQuantization()).warnings,
              ElementsAre(HasSubstr("from 7 observations")));
  EXPECT_THAT(RunTransform(FreezeMax(OneTo(8)), DynamicQuantization()).warnings,
              IsEmpty());
}

TEST(Freeze, WarnsOfMalformedLines) {
  const std::string log = WriteTestFile(
      "bad", ";x_min__print__;__min:[-1]\n;x_min__print__;__min:[oops]\n");
  const auto run =
      MustTransform(Call("freeze_min", log), DynamicQuantization());
  EXPECT_THAT(run.warnings, Contains(HasSubstr("bad:2")));
}

// Returns the entry of a float tensor after calibration with two batches.
RangeEntry TensorEntry(float low, float high) {
  RangeEntry entry;
  entry.AddRange(low, high, {"tensor", 1});
  entry.AddRange(low, low, {"tensor", 1});
  entry.histogram.emplace();
  entry.histogram->Add({low, high, low, low});
  entry.records = 4;
  return entry;
}

// Returns a table with one float tensor.
RangeTable TableOf(const std::string& tensor, const RangeEntry& entry) {
  RangeTable ranges;
  ranges.FindOrAdd(tensor) = entry;
  return ranges;
}

// Names the float tensor whose ranges the nodes compute.
GraphDef WithRangeOf(GraphDef graph, const std::string& op,
                     const std::string& tensor) {
  for (auto& node : *graph.mutable_node()) {
    if (node.op() == op) {
      (*node.mutable_attr())[kRangeOfAttribute].set_s(tensor);
    }
  }
  return graph;
}

GraphDef RequantizationOf(const std::string& tensor) {
  return WithRangeOf(DynamicRequantization(), "RequantizationRange", tensor);
}

// Returns the range that a requantization of `tensor` gets from these entries.
std::pair<float, float> FrozenRange(const RangeTable& ranges,
                                    const std::string& tensor,
                                    const std::string& more = "") {
  const auto run =
      MustTransform(CallWithTable("freeze_requantization_ranges", ranges, more),
                    RequantizationOf(tensor));
  return {ScalarNamed(run.graph, "r/range/frozen_min"),
          ScalarNamed(run.graph, "r/range/frozen_max")};
}

TEST(Freeze, TakesTheRangeOfTheTensorThatTheNodeNames) {
  const RangeTable ranges = TableOf("float/concat", TensorEntry(-2, 3));
  const GraphDef graph =
      WithRangeOf(WithRangeOf(DynamicQuantization(), "Min", "float/concat:0"),
                  "Max", "float/concat:0");
  const auto min = MustTransform(CallWithTable("freeze_min", ranges), graph);
  EXPECT_EQ(ScalarNamed(min.graph, "x_min/frozen_min_only"), -2);
  const auto max = MustTransform(CallWithTable("freeze_max", ranges), graph);
  EXPECT_EQ(ScalarNamed(max.graph, "x_max/frozen_max_only"), 3);
}

TEST(Freeze, FindsTheEntryOfTheTensorThatTheNodeNames) {
  RangeTable ranges;
  ranges.FindOrAdd("split", 0) = TensorEntry(-1, 1);
  ranges.FindOrAdd("split", 1) = TensorEntry(-2, 2);
  ranges.FindOrAdd("relu") = TensorEntry(1, 3);
  // Neither entries that no node names nor those of other nodes are an error.
  ranges.FindOrAdd("acc") = TensorEntry(0, 4);
  ranges.FindOrAdd("elsewhere") = TensorEntry(0, 5);
  EXPECT_EQ(FrozenRange(ranges, "split:1"), std::pair(-2.0f, 2.0f));
  // A tensor's range includes zero.
  EXPECT_EQ(FrozenRange(ranges, "relu:0"), std::pair(0.0f, 3.0f));
  // A node's own entry takes precedence.
  ranges.FindOrAdd("r/range").AddRange(0, 7, {"log", 1});
  EXPECT_EQ(FrozenRange(ranges, "relu:0"), std::pair(0.0f, 7.0f));
}

TEST(Freeze, RefusesATableThatDoesNotFit) {
  RangeEntry not_finite = TensorEntry(0, 3);
  not_finite.not_finite.Add(2, "tensor relu:0 record 7");
  const auto error = [](const RangeTable& ranges, const GraphDef& graph) {
    return TransformError(CallWithTable("freeze_requantization_ranges", ranges),
                          graph);
  };
  EXPECT_THAT(
      error(TableOf("other", TensorEntry(0, 3)), RequantizationOf("relu:0")),
      AllOf(HasSubstr("fits no RequantizationRange"), HasSubstr("\"r/range\""),
            HasSubstr("\"relu:0\"")));
  // No node says which tensor its range belongs to.
  EXPECT_THAT(
      error(TableOf("relu", TensorEntry(0, 3)), DynamicRequantization()),
      HasSubstr("_requant_range_of"));
  EXPECT_THAT(
      error(TableOf("relu", not_finite), RequantizationOf("relu:0")),
      AllOf(HasSubstr("not finite"), HasSubstr("tensor relu:0 record 7")));
}

TEST(Freeze, ChoosesByPercentileOrErrorOfTheValues) {
  RangeEntry entry = TensorEntry(0, 100);
  entry.histogram->Add(std::vector<float>(10'000'000, 1.0f));
  const auto max = [&](const std::string& method) {
    return FrozenRange(TableOf("relu", entry), "relu:0", ", method=" + method)
        .second;
  };
  EXPECT_EQ(max("minmax"), 100);
  EXPECT_NEAR(max("percentile"), 1, 0.1);
  EXPECT_LT(max("mse"), 10);
  EXPECT_EQ(max("percentile, value_percentile=100"), 100);
}

TEST(Freeze, OtherMethodsThanMinMaxNeedValues) {
  for (const char* method : {"percentile", "mse"}) {
    EXPECT_THAT(
        TransformError(FreezeMin({-1}, absl::StrCat(", method=", method)),
                       DynamicQuantization()),
        AllOf(HasSubstr("\"x_min\""), HasSubstr("requant calibrate")));
  }
}

// A model without Relu has such a graph; its calibration has other ranges.
TEST(Freeze, AGraphWithoutSuchNodesStaysAsItIs) {
  const RangeTable ranges = TableOf("x", TensorEntry(-1, 3));
  for (const std::string& call :
       {CallWithTable("freeze_requantization_ranges", ranges),
        Call("freeze_requantization_ranges", RangeLogFile("empty", {})),
        Call("freeze_requantization_ranges",
             LogFile("max", "x_max", "__max:", {1}))}) {
    const auto run = MustTransform(call, DynamicQuantization());
    EXPECT_THAT(run.notes, ElementsAre(HasSubstr("nothing to freeze")));
    EXPECT_THAT(run.warnings, IsEmpty());
    EXPECT_EQ(run.graph.DebugString(), DynamicQuantization().DebugString());
  }
  for (const char* transform : {"freeze_min", "freeze_max"}) {
    const auto run = MustTransform(CallWithTable(transform, ranges),
                                   DynamicRequantization());
    EXPECT_THAT(run.notes, ElementsAre(HasSubstr("nothing to freeze")));
  }
}

TEST(Freeze, WarnsOfAGraphThatIsNotQuantized) {
  GraphDef graph;
  *graph.add_node() = DynamicQuantization().node(0);
  const auto run = MustTransform(
      CallWithTable("freeze_min", TableOf("x", TensorEntry(-1, 3))), graph);
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("quantize_eightbit")));
}

}  // namespace
}  // namespace requant::freeze_ranges_test
