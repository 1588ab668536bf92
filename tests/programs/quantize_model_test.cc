// Tests requant quantize as people run it: one command turns a float graph into
// an eight-bit one.

#include <cstdlib>
#include <tuple>

#include "absl/strings/match.h"
#include "tests/support/mixed_records.h"
#include "tests/support/program_runs.h"

namespace requant::quantize_model_test {
namespace {

constexpr char kQuantizeModel[] = "runtime/quantize_model";
constexpr char kGraph[] = "tests/data/mixed_layers/frozen.pb";
constexpr char kDataset[] = "tests/data/mixed_layers/dataset.textproto";

int QuantizedMatMuls(const GraphDef& graph) {
  return std::count_if(graph.node().begin(), graph.node().end(),
                       [](const NodeDef& node) {
                         return absl::StartsWith(node.op(), "QuantizedMatMul");
                       });
}

MATCHER_P(HasMatMuls, count, "") {
  return std::count_if(arg.node().begin(), arg.node().end(),
                       [](const NodeDef& node) {
                         return node.op() == "MatMul";
                       }) == count;
}

// Returns numbers between -1 and 1 for a Const.
std::string Numbers(int count) {
  std::string numbers;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&numbers, i > 0 ? "," : "", (i * 37 % 41 - 20) / 20.0);
  }
  return numbers;
}

class QuantizeModel : public testing::Test {
 protected:
  QuantizeModel() {
    EXPECT_OK(WriteMixedRecords(folder_.Path("train.npz"),
                                MixedSplit::kCalibration, 2000));
  }

  // Runs the program without records.
  ProgramRun Run(const Words& arguments, const std::string& graph = kGraph) {
    return RunProgram(
        kQuantizeModel,
        Joined({"--graph=" + graph, "--output=" + folder_.Path("q.pb")},
               arguments),
        {"TMPDIR=" + folder_.Path("")});
  }

  ProgramRun Quantize(const Words& more = {},
                      const std::string& graph = kGraph) {
    return Run(Joined({absl::StrCat("--dataset=", kDataset),
                       "--data=" + folder_.Path("train.npz")},
                      more),
               graph);
  }

  TestFolder folder_;
};

TEST_F(QuantizeModel, PrintsTheLayersTheSizesAndTheCommandThatVerifies) {
  ASSERT_THAT(Quantize(),
              Prints("calibrated on 1600 records\n",
                     "quantizes 7 of 8 MatMuls for the target \"any\"",
                     "head/logits/MatMul", "match/MatMul", " kB (-",
                     absl::StrCat("requant evaluate --graph=",
                                  folder_.Path("q.pb"), " --baseline=", kGraph,
                                  " --dataset=", kDataset, " --data=RECORDS\n"),
                     "on RECORDS that it was not calibrated on",
                     Not(HasSubstr("train.npz"))));
  EXPECT_EQ(QuantizedMatMuls(folder_.ReadGraphFile("q.pb")), 7);
}

// `requant run` itself says this at its end.
TEST_F(QuantizeModel, SaysHowToServeItUnlessItIsPartOfARun) {
  EXPECT_THAT(Quantize(), Prints("docs/quantization.md"));
  setenv("REQUANT_PROGRESS_FD", "2", 1);
  EXPECT_THAT(Quantize(), Prints(Not(HasSubstr("docs/quantization.md"))));
  unsetenv("REQUANT_PROGRESS_FD");
}

TEST_F(QuantizeModel, ComparesOnRecordsThatItWasNotCalibratedOn) {
  EXPECT_THAT(Quantize(), Prints("calibrated on 1600 records\n",
                                 absl::StrCat(" against ", kGraph,
                                              ", 400 records:\n  accuracy "),
                                 "\n  agreement 9"));
  EXPECT_THAT(Quantize({"--max_records=1500"}),
              Prints("calibrated on 1500 records\n", ", 500 records:\n"));
  for (const char* records : {"--max_records=2000", "--max_records=0"}) {
    EXPECT_THAT(Quantize({records}),
                Prints("calibrated on 2000 records\n",
                       "not compared with the float graph: there are no "
                       "records after those"));
  }
}

TEST_F(QuantizeModel, WarnsOfFewRecords) {
  constexpr char kFew[] = "tell little: give more records";
  EXPECT_THAT(Quantize({"--max_records=100"}), Warns(Not(HasSubstr(kFew))));
  EXPECT_THAT(Quantize({"--max_records=99"}),
              Warns("calibrating on 99 records and comparing on ", kFew));
  EXPECT_THAT(
      Quantize({"--max_records=1999"}),
      Warns("calibrating on 1999 records and comparing on 1 other, ", kFew));
  setenv("REQUANT_PROGRESS_FD", "2", 1);
  EXPECT_THAT(Quantize({"--max_records=99"}), Warns(Not(HasSubstr(kFew))));
  unsetenv("REQUANT_PROGRESS_FD");
}

TEST_F(QuantizeModel, DoesNotCompareWhereSumsMaySaturate) {
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  EXPECT_THAT(Quantize({"--target=vnni"}),
              Prints("not compared with the float graph: this CPU sums "));
  EXPECT_THAT(Quantize(), Prints("\n  agreement 9"));
  unsetenv("ONEDNN_MAX_CPU_ISA");
}

TEST_F(QuantizeModel, WarnsOfALossThatIsUnusual) {
  EXPECT_THAT(Quantize(), Prints(Not(HasSubstr("worse than usual"))));
  EXPECT_THAT(Quantize({"--method=percentile", "--value_percentile=51"}),
              Warns("worse than usual: requant evaluate --layer_records"));
}

TEST_F(QuantizeModel, WritesWhatCalibrateAndTransformWouldTogether) {
  ASSERT_THAT(Quantize({"--max_records=2000"}), Exits(0));
  ASSERT_THAT(RunProgram("runtime/calibrate_graph",
                         {absl::StrCat("--graph=", kGraph),
                          absl::StrCat("--dataset=", kDataset),
                          "--data=" + folder_.Path("train.npz"),
                          "--output=" + folder_.Path("model.ranges")}),
              Exits(0));
  ASSERT_THAT(
      RunProgram(kTransformGraph,
                 {absl::StrCat("--in_graph=", kGraph),
                  "--out_graph=" + folder_.Path("steps.pb"),
                  "--outputs=head/probabilities",
                  absl::StrCat("--transforms=quantize_static(ranges_file=\"",
                               folder_.Path("model.ranges"),
                               "\") strip_unused_nodes quantize_embeddings "
                               "strip_unused_nodes")}),
      Exits(0));
  EXPECT_TRUE(folder_.Read("q.pb") == folder_.Read("steps.pb"));
}

TEST_F(QuantizeModel, KeepsTheRangesForTheNextTime) {
  ASSERT_THAT(Quantize({"--ranges_output=" + folder_.Path("kept.ranges")}),
              Exits(0));
  const std::string first = folder_.Read("q.pb");
  ASSERT_THAT(Run({"--ranges=" + folder_.Path("kept.ranges"),
                   "--outputs=head/probabilities"}),
              Prints(AllOf(Not(HasSubstr("calibrated on")),
                           Not(HasSubstr(" against ")))));
  EXPECT_TRUE(folder_.Read("q.pb") == first);
}

TEST_F(QuantizeModel, KeepsExcludedNodesAndFurtherOutputsInFloat) {
  ASSERT_THAT(Quantize({"--excluded_nodes=head/mix/MatMul,head/logits/MatMul",
                        "--outputs=head/hidden/Relu"}),
              Exits(0));
  const auto graph = folder_.ReadGraphFile("q.pb");
  EXPECT_EQ(NodeNamed(graph, "head/mix/MatMul").op(), "MatMul");
  EXPECT_EQ(NodeNamed(graph, "head/logits/MatMul").op(), "MatMul");
  EXPECT_TRUE(HasNode(graph, "head/hidden/Relu"));
}

TEST_F(QuantizeModel, TakesThisMachinesTarget) {
  ASSERT_THAT(Quantize({"--target=host"}),
              Prints(testing::ContainsRegex("for the target \"(vnni|avx2)\"")));
}

TEST_F(QuantizeModel, LeavesOutDefaultValuesForAnOlderTensorFlow) {
  ASSERT_THAT(Quantize({"--target_tensorflow=2.15"}), Exits(0));
  const auto graph = folder_.ReadGraphFile("q.pb");
  EXPECT_EQ(QuantizedMatMuls(graph), 7);
  for (const auto& node : graph.node()) {
    if (node.op() != "MatMul") continue;
    EXPECT_EQ(node.attr().count("transpose_a"), 0u) << node.name();
    EXPECT_EQ(node.attr().count("T"), 1u) << node.name();
  }
}

TEST_F(QuantizeModel, RefusesWrongUsage) {
  for (const auto& [flags, message] :
       std::vector<std::pair<Words, std::string>>{
           {{}, "--dataset is missing"},
           {{"--ranges=r"}, "--ranges needs --dataset"},
           {{"--ranges=r", "--ranges_output=s"}, "exclude each other"},
           {{"--target=i386"}, "no target \"i386\""},
           {{"--method=best"}, "best"},
           {{"--batch_size=0"}, "--batch_size"},
           {{"--target_tensorflow=1.15"}, "was not tried; these were: 2.15"},
           {{"--target_tensorflow=2.15", "--ops=portable"},
            "--ops=portable needs TensorFlow 2.17 or later"},
           {{"stray"}, "unexpected argument \"stray\""}}) {
    EXPECT_THAT(Run(flags), Misused(message));
  }
}

TEST_F(QuantizeModel, SaysHowMuchOfTheWorkRunsInInt8) {
  // The layers of a record take 17,142, the product of two activations 46.
  EXPECT_THAT(Quantize(),
              Prints("\n99 % of the multiply-adds run in int8: 7 of 8 matrix "
                     "products; float: 1 of two activations, as in attention "
                     "(less than 1 %); convolutions: none\n"));
}

TEST_F(QuantizeModel, TellsOfBadRecordsOnceAndComparesNumbers) {
  const std::string graph = folder_.WriteText(
      "line.pbtxt",
      GraphFromText(absl::StrCat("x = Placeholder dtype=float shape=<?,4>\n",
                                 "w = float<4,1>{", Numbers(4), "}\n",
                                 "predict = MatMul(x, w) T=float")));
  // The first of each five records is bad.
  std::string rows = "x\n";
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&rows, i % 5 == 0 ? "oops" : "", i, " 1 2 3\n");
  }
  folder_.Write("data.csv", rows);
  const ProgramRun run =
      Run({"--dataset=" + folder_.Write("data.textproto",
                                        CsvDeclaration(4, /*label=*/false)),
           "--data=" + folder_.Path("data.csv"), "--max_bad_records=20"},
          graph);
  EXPECT_THAT(run, Prints("100 % of the multiply-adds run in int8",
                          "predictions read as VALUE (a guess", "  output: "));
  EXPECT_THAT(run,
              Warns("data.csv:2: ", "data.csv:47: ",
                    "16 bad records were left out while calibrating, of which",
                    Not(HasSubstr("while comparing"))));
  EXPECT_EQ(std::string_view(run.error).find("data.csv:2: "),
            std::string_view(run.error).rfind("data.csv:2: "));
}

TEST_F(QuantizeModel, WritesTheFloatGraphWhereNothingPays) {
  const std::string graph = folder_.WriteText("nothing.pbtxt", GraphFromText(R"(
    signal = Placeholder dtype=float shape=<?,21>
    context = Placeholder dtype=float shape=<?,10>
    image = Reshape(signal, size) T=float Tshape=int32
    size = int32<4>{-1,3,7,1}
    filter = float<1,1,1,2>{1,2}
    layer = Conv2D(image, filter) T=float strides=[1,1,1,1] padding='SAME'
    head/probabilities = Neg(layer) T=float
  )"));
  ASSERT_THAT(
      Quantize({"--max_records=0"}, graph),
      Prints("no matrix products; convolutions: 1, all in "
             "float\n",
             "nothing pays here: no MatMul has constant float weights; other "
             "layers stay float: 1 Conv2D; ",
             "is the float graph as it was\n", Not(HasSubstr("evaluate"))));
  EXPECT_EQ(LinesOf(folder_.ReadGraphFile("q.pb")),
            LinesOf(folder_.ReadGraphFile("nothing.pbtxt")));
  ASSERT_THAT(Quantize({"--excluded_ops=MatMul",
                        "--ranges_output=" + folder_.Path("none.ranges")}),
              Prints("nothing pays here: ", "it is excluded"));
  EXPECT_THAT(folder_.ReadGraphFile("q.pb"), HasMatMuls(8));
}

// Returns dense layers on sequences as Keras makes them, with an attention and
// weights that are computed from constants.
GraphDef SequenceGraph() {
  return GraphFromText(absl::StrCat(R"(
    signal = Placeholder dtype=float shape=<?,21>
    context = Placeholder dtype=float shape=<?,10>
    size = int32<3>{-1,7,3}
    tokens = Reshape(signal, size) T=float Tshape=int32
    kernel = float<2,3,4>{)",
                                    Numbers(24), R"(}
    heads = Einsum(tokens, kernel) T=float N=2 equation='abc,dce->abde'
    bias = float<2,4>{1,-1,2,-2,1,-1,2,-2}
    query = AddV2(heads, bias) T=float
    scores = Einsum(query, query) T=float N=2 equation='aecd,abcd->acbe'
    mixed = Einsum(scores, query) T=float N=2 equation='acbe,aecd->abcd'
    out = float<2,4,6>{)",
                                    Numbers(48), R"(}
    joined = Einsum(mixed, out) T=float N=2 equation='abcd,cde->abe'
    wide = float<9,6>{)",
                                    Numbers(54), R"(}
    order = int32<2>{1,0}
    turned = Transpose(wide, order) T=float Tperm=int32
    hidden = BatchMatMulV2(joined, turned) T=float
    offset = float<9>{1,2,3,4,5,6,7,8,9}
    sum = AddV2(hidden, offset) T=float
    active = Relu(sum) T=float
    narrow = float<9,5>{)",
                                    Numbers(45), R"(}
    classes = BatchMatMulV2(active, narrow) T=float
    axis = int32<1>{1}
    pooled = Mean(classes, axis) T=float Tidx=int32
    side = float<10,5>{)",
                                    Numbers(50), R"(}
    extra = MatMul(context, side) T=float
    total = AddV2(pooled, extra) T=float
    head/probabilities = Softmax(total) T=float
  )"));
}

TEST_F(QuantizeModel, TakesDenseLayersOnSequencesAndProjections) {
  const std::string graph = folder_.WriteText("tokens.pbtxt", SequenceGraph());
  ASSERT_THAT(
      Quantize({"--ranges_output=" + folder_.Path("kept.ranges")}, graph),
      Prints("heads/matmul", "joined/matmul", "hidden/matmul", "classes/matmul",
             // The layers take 168, 336, 378, 315 and 50; the others 392 each.
             "61 % of the multiply-adds run in int8: 5 of 7 matrix products; "
             "float: 2 of two activations, as in attention (39 %)"));
  const GraphDef quantized = folder_.ReadGraphFile("q.pb");
  EXPECT_EQ(QuantizedMatMuls(quantized), 5);
  EXPECT_THAT(NodesOf(quantized, "MatMul"), IsEmpty());
  EXPECT_THAT(NodesOf(quantized, "BatchMatMulV2"), IsEmpty());
  // The layer with Relu hands its codes on.
  EXPECT_THAT(NodesOf(quantized, "Dequantize"), IsEmpty());
  const ProgramRun evaluation =
      MustRun("runtime/evaluate_graph",
              {"--graph=" + folder_.Path("q.pb"), "--baseline=" + graph,
               absl::StrCat("--dataset=", kDataset),
               "--data=" + folder_.Path("train.npz")});
  EXPECT_GT(NumberIn(evaluation.out, "agreement ([\\d.]+)"), 95);
  const std::string first = folder_.Read("q.pb");
  ASSERT_THAT(Run({"--ranges=" + folder_.Path("kept.ranges"),
                   "--outputs=head/probabilities"},
                  graph),
              Prints("5 of 7 matrix products run in int8"));
  EXPECT_TRUE(folder_.Read("q.pb") == first);
}

TEST_F(QuantizeModel, LeavesTheFormOfProductsThatStayFloat) {
  const std::string graph = folder_.WriteText("tokens.pbtxt", SequenceGraph());
  ASSERT_THAT(Quantize({"--excluded_nodes=heads,classes"}, graph),
              Prints("3 of 7 matrix products", "2 excluded"));
  GraphDef quantized = folder_.ReadGraphFile("q.pb");
  EXPECT_EQ(NodeNamed(quantized, "heads").op(), "Einsum");
  EXPECT_EQ(NodeNamed(quantized, "classes").op(), "BatchMatMulV2");
  EXPECT_EQ(QuantizedMatMuls(quantized), 3);
}

TEST_F(QuantizeModel, TakesBackWhatTheRangesDoNotHave) {
  const std::string graph = folder_.WriteText("tokens.pbtxt", SequenceGraph());
  // This sees the graph as it is, without "heads/rows" and the like.
  ASSERT_THAT(
      RunProgram("runtime/calibrate_graph",
                 {"--graph=" + graph, absl::StrCat("--dataset=", kDataset),
                  "--data=" + folder_.Path("train.npz"),
                  "--output=" + folder_.Path("plain.ranges")}),
      Exits(0));
  ASSERT_THAT(Run({"--ranges=" + folder_.Path("plain.ranges"),
                   "--outputs=head/probabilities"},
                  graph),
              Prints("quantizes 1 of 1 MatMuls",
                     "1 of 7 matrix products run in int8; float: 4 because the "
                     "ranges do not have it, 2 of two activations"));
  const GraphDef quantized = folder_.ReadGraphFile("q.pb");
  for (const std::string name : {"heads", "joined", "hidden", "classes"}) {
    EXPECT_EQ(NodeNamed(quantized, name).op(),
              NodeNamed(SequenceGraph(), name).op());
  }
}

TEST_F(QuantizeModel, WritesNothingWhenItFails) {
  const std::string variables =
      folder_.WriteText("variables.pbtxt", GraphFromText(R"(
    signal = Placeholder dtype=float shape=<?,21>
    context = Placeholder dtype=float shape=<?,10>
    w = VarHandleOp dtype=float shape=<21,5> shared_name='w' container=''
    read = ReadVariableOp(w) dtype=float
    head/probabilities = MatMul(signal, read) T=float
  )"));
  const std::vector<std::string> before = folder_.Names();
  for (const auto& [flag, graph, message] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"--excluded_nodes=head/mix/MatMull", kGraph, "head/mix/MatMul"},
           {"--outputs=head/probability", kGraph, "head/probability"},
           {"--max_records=0", variables,
            "nothing to quantize: no MatMul has constant float weights; "
            "weights that are in variables become constants by requant "
            "freeze"},
           {"--max_records=0", folder_.Path("absent.pb"), "absent.pb"},
           {"--ranges=" + folder_.Path("train.npz"), kGraph, "train.npz"},
           {"--ranges_output=" + folder_.Path("no/r"), kGraph, "no"},
           {"--ranges_output=" + folder_.Path("q.pb"), kGraph, "q.pb"}}) {
    EXPECT_THAT(Quantize({flag}, graph), Fails("quantize_model: ", message));
    EXPECT_EQ(folder_.Names(), before) << flag;
  }
}

}  // namespace
}  // namespace requant::quantize_model_test
