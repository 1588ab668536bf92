// Tests limits that the system sets (ulimit): each causes one sentence that
// names it, and nothing is left half-written.

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/support/program_runs.h"

namespace requant::limits_test {
namespace {

class LimitsTest : public testing::Test {
 protected:
  LimitsTest() {
    // Writes a graph and a SavedModel of at least 64 kB.
    const GraphDef graph = GraphFromText(
        FloatConst("w", {2, 8192}, std::vector<float>(16384, 0.7)) + R"(
      x = Placeholder dtype=float shape=<?,2>
      m = MatMul(x, w) T=float
      predict = Relu(m) T=float
    )");
    graph_ = folder_.Write("g.pb", graph.SerializeAsString());
    tensorflow::SavedModel model;
    tensorflow::MetaGraphDef& meta = *model.add_meta_graphs();
    meta.mutable_meta_info_def()->add_tags("serve");
    *meta.mutable_graph_def() = graph;
    folder_.Write("saved/saved_model.pb", model.SerializeAsString());
    folder_.Write("data.csv", "x\n1\n2\n");
    dataset_ =
        folder_.Write("data.textproto", CsvDeclaration(1, /*label=*/false));
  }

  // Runs each of `lines` under `limit`, in the form that ulimit takes. Words
  // are separated by blanks; $OUT is a path to write to.
  void ExpectUnderLimit(const std::string& limit, const Words& lines,
                        const testing::Matcher<const ProgramRun&>& matcher) {
    for (const std::string& line : lines) {
      Words words = absl::StrSplit(
          absl::StrReplaceAll(line, {{"$GRAPH", graph_},
                                     {"$SAVED", folder_.Path("saved")},
                                     {"$DATASET", dataset_},
                                     {"$OUT", Out()}}),
          ' ');
      words.insert(words.begin(), {"-c", absl::StrCat("ulimit ", limit,
                                                      "; exec \"$0\" \"$@\"")});
      EXPECT_THAT(RunProgram("/bin/sh", words, {"TMPDIR=" + folder_.Path("")}),
                  matcher)
          << line;
    }
  }

  std::string Out() const { return folder_.Path("out"); }

  TestFolder folder_;
  std::string graph_;
  std::string dataset_;
};

TEST_F(LimitsTest, OnTheSizeOfFilesIsNamedAndLeavesNothing) {
  const Words before = folder_.Names();
  ExpectUnderLimit(
      "-f 8",
      {"transforms/transform_graph --in_graph=$GRAPH --out_graph=$OUT "
       "--transforms=strip_unused_nodes --inputs=x --outputs=predict",
       "transforms/quantize_graph --input=$GRAPH --output=$OUT "
       "--output_node_names=predict",
       "graph/pb_to_pbtxt $GRAPH $OUT",
       "graph/dump_graph --input_model=$SAVED --output=$OUT",
       "graph/freeze_graph --input_saved_model_dir=$SAVED "
       "--output_node_names=predict --output_graph=$OUT",
       "runtime/convert_model --saved_model=$SAVED --out=$OUT",
       "runtime/datasets/dataset synthesize --rows=1000 --format=tfrecord "
       "--out=$OUT"},
      Fails("File too large", "ulimit -f", MatchesRegex("[^\n]*\n")));
  EXPECT_EQ(folder_.Names(), before);
}

TEST_F(LimitsTest, OnTheSizeOfWhatIsPrintedIsNamed) {
  EXPECT_THAT(
      RunProgram("/bin/sh",
                 {"-c", "ulimit -f 8; exec \"$0\" \"$@\" > \"$OUT\"",
                  "transforms/transform_graph", "--transforms_markdown"},
                 {"OUT=" + Out()}),
      Fails("cannot write the result", "ulimit -f"));
}

TEST_F(LimitsTest, OnOpenFilesIsNamed) {
  ExpectUnderLimit(
      "-n 7",
      {"transforms/transform_graph --in_graph=$GRAPH --out_graph=$OUT "
       "--transforms=strip_unused_nodes --inputs=x --outputs=predict",
       "graph/freeze_graph --input_graph=$GRAPH --output_node_names=predict "
       "--output_graph=$OUT",
       "runtime/evaluate_graph --graph=$GRAPH --dataset=$DATASET",
       "runtime/benchmark_graph --graph=$GRAPH --dataset=$DATASET",
       "runtime/calibrate_graph --graph=$GRAPH --dataset=$DATASET "
       "--output=$OUT",
       "workflows/requant run wide_deep_fast --work_dir=$OUT.work --out=$OUT"},
      Fails("Too many open files", "ulimit -n", Not(HasSubstr("exit code 0"))));
}

}  // namespace
}  // namespace requant::limits_test
