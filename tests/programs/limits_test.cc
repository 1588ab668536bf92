// Limits that the system sets (ulimit): each is one sentence that names it, and
// nothing is left half-written.

#include <filesystem>

#include "absl/strings/match.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/support/program_runs.h"

namespace requant::limits_test {
namespace {

class LimitsTest : public testing::Test {
 protected:
  LimitsTest() {
    // A graph and a SavedModel of 64 kB and more.
    const GraphDef graph = GraphFromText(
        absl::StrCat(Placeholder("x", {-1, 2}),
                     FloatConst("w", {2, 8192}, std::vector<float>(16384, 0.7)),
                     Node("m", "MatMul", {"x", "w"}, {kFloat}),
                     Node("y", "Relu", {"m"}, {kFloat})));
    graph_ = folder_.Write("g.pb", graph.SerializeAsString());
    tensorflow::SavedModel model;
    tensorflow::MetaGraphDef& meta = *model.add_meta_graphs();
    meta.mutable_meta_info_def()->add_tags("serve");
    *meta.mutable_graph_def() = graph;
    std::filesystem::create_directories(folder_.Path("saved"));
    folder_.Write("saved/saved_model.pb", model.SerializeAsString());
    folder_.Write("data.csv", "x\n1\n2\n");
    dataset_ = folder_.Write("data.textproto",
                             "csv { files: 'data.csv' } input { feature: 'x' "
                             "placeholder: 'x' dtype: 'float' shape: 1 } "
                             "prediction { tensor: 'y' kind: SCORES }");
  }

  // Runs it under `limit`, as ulimit takes it.
  ProgramRun Run(const std::string& limit, Words line) const {
    line.insert(line.begin(),
                {"-c", absl::StrCat("ulimit ", limit, "; exec \"$0\" \"$@\"")});
    return RunProgram("/bin/sh", line, {"TMPDIR=" + folder_.Path("")});
  }

  std::string Out() const { return folder_.Path("out"); }

  TestFolder folder_;
  std::string graph_;
  std::string dataset_;
};

TEST_F(LimitsTest, OnTheSizeOfFilesIsNamedAndLeavesNothing) {
  const Words before = folder_.Names();
  const std::string saved = folder_.Path("saved");
  for (const Words& line : std::vector<Words>{
           {"transforms/transform_graph", "--in_graph=" + graph_,
            "--out_graph=" + Out(), "--transforms=strip_unused_nodes",
            "--inputs=x", "--outputs=y"},
           {"transforms/quantize_graph", "--input=" + graph_,
            "--output=" + Out(), "--output_node_names=y"},
           {"graph/pb_to_pbtxt", graph_, Out()},
           {"graph/dump_graph", "--input_model=" + saved, "--output=" + Out()},
           {"graph/freeze_graph", "--input_saved_model_dir=" + saved,
            "--output_node_names=y", "--output_graph=" + Out()},
           {"runtime/convert_model", "--saved_model=" + saved,
            "--out=" + Out()},
           {"runtime/datasets/dataset", "synthesize", "--rows=1000",
            "--format=tfrecord", "--out=" + Out()},
       }) {
    EXPECT_THAT(Run("-f 8", line),
                Fails("File too large", "ulimit -f", MatchesRegex("[^\n]*\n")))
        << line[0];
    EXPECT_EQ(folder_.Names(), before) << line[0];
  }
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
  const Words data = {"--graph=" + graph_, "--dataset=" + dataset_};
  for (const Words& line : std::vector<Words>{
           {"transforms/transform_graph", "--in_graph=" + graph_,
            "--out_graph=" + Out(), "--transforms=strip_unused_nodes",
            "--inputs=x", "--outputs=y"},
           {"graph/freeze_graph", "--input_graph=" + graph_,
            "--output_node_names=y", "--output_graph=" + Out()},
           {"runtime/evaluate_graph", data[0], data[1]},
           {"runtime/benchmark_graph", data[0], data[1]},
           {"runtime/calibrate_graph", data[0], data[1], "--output=" + Out()},
           {"workflows/requant", "run", "wide_deep_fast",
            "--work_dir=" + folder_.Path("work"), "--out=" + Out()},
       }) {
    EXPECT_THAT(Run("-n 7", line), Fails("Too many open files", "ulimit -n",
                                         Not(HasSubstr("exit code 0"))))
        << line[0];
  }
}

}  // namespace
}  // namespace requant::limits_test
