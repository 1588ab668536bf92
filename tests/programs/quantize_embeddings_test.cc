// quantize_embeddings on the model of the published recipe, with kernels, sizes
// and records as users have them.

#include "graph/testing/program.h"

namespace requant::quantize_embeddings_test {
namespace {

constexpr char kModel[] = "workflows/wide_deep/";
constexpr char kOutput[] = "head/predictions/probabilities";

class QuantizedEmbeddings : public testing::Test {
 protected:
  std::string MustRun(const std::string& program,
                      const std::vector<std::string>& arguments) {
    const ProgramRun run = RunProgram(program, arguments);
    EXPECT_EQ(run.exit_code, 0) << program << ": " << run.error;
    return run.out;
  }

  std::string Transform(const std::string& in, const std::string& out,
                        const std::string& transforms) {
    return MustRun(
        kTransformGraph,
        {"--in_graph=" + folder_.Path(in), "--out_graph=" + folder_.Path(out),
         "--inputs=new_numeric_placeholder,new_categorical_placeholder",
         absl::StrCat("--outputs=import/", kOutput),
         "--transforms=" + transforms});
  }

  std::string Evaluate(const std::string& graph,
                       std::vector<std::string> more) {
    more.push_back("--graph=" + folder_.Path(graph));
    more.push_back(
        absl::StrCat("--dataset=", kModel, "preprocessed.textproto"));
    more.push_back("--data=" + folder_.Path("records"));
    return MustRun("runtime/evaluate_graph", more);
  }

  // Steps 2 to 10 of the recipe, into "int8.pb".
  void MakeInt8Graph() {
    MustRun("graph/freeze_graph",
            {absl::StrCat("--input_saved_model_dir=", kModel, "model"),
             "--output_graph=" + folder_.Path("frozen.pb"),
             absl::StrCat("--output_node_names=", kOutput)});
    MustRun("transforms/featurecolumn_graph_optimization",
            {"--input-graph", folder_.Path("frozen.pb"), "--output-graph",
             folder_.Path("float.pb"), "--output-nodes", kOutput,
             "--wide_and_deep_large_ds", "True"});
    MustRun("runtime/datasets/dataset",
            {"synthesize", "--split=eval", "--rows=3000",
             "--format=preprocessed", "--out=" + folder_.Path("records"),
             absl::StrCat("--ranges=", kModel, "ranges.json")});
    Transform("float.pb", "dynamic.pb", "quantize_eightbit");
    Transform("dynamic.pb", "logged.pb",
              "insert_logging(op=RequantizationRange, show_name=true, "
              "message=\"__requant_min_max:\") "
              "insert_logging(op=Min, show_name=true, message=\"__min:\") "
              "insert_logging(op=Max, show_name=true, message=\"__max:\")");
    const std::string log = folder_.Path("log.txt");
    Evaluate("logged.pb", {"--log_file=" + log});
    const std::string file = absl::StrCat("(min_max_log_file=\"", log, "\") ");
    Transform("dynamic.pb", "int8.pb",
              absl::StrCat("freeze_requantization_ranges", file, "freeze_min",
                           file, "freeze_max", file,
                           "fuse_quantized_matmul_and_requantize "
                           "strip_unused_nodes"));
  }

  TestFolder folder_;
};

TEST_F(QuantizedEmbeddings, PredictTheSameToTheLastBit) {
  MakeInt8Graph();
  Transform("int8.pb", "moved.pb", "quantize_embeddings");
  EXPECT_THAT(Evaluate("moved.pb", {"--baseline=" + folder_.Path("int8.pb")}),
              HasSubstr("mean |change| 0, largest 0 "));
  EXPECT_LT(folder_.Read("moved.pb").size(),
            0.27 * folder_.Read("float.pb").size());
}

}  // namespace
}  // namespace requant::quantize_embeddings_test
