// Names out of other people's files, in every program: none commands the
// terminal, forges a line or fills the screen.

#include <filesystem>
#include <limits>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/json.h"
#include "base/text/printable.h"
#include "graph/graph_io.h"
#include "ranges/range_table.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/support/program_runs.h"
#include "workflows/report/manifest.h"

namespace requant::hostile_names_test {
namespace {

namespace fs = std::filesystem;

// No line starts with this, and most cases show it in the middle of one.
constexpr char kMark[] = "FORGED";
constexpr size_t kAScreenOrTwo = 32 << 10;

struct Name {
  const char* test;
  std::string text;
};

// Colours, titles, an erased screen, the second block of control characters, a
// turned direction; bytes that are not UTF-8; a name that TensorFlow allows and
// nobody can read.
const Name kNames[] = {
    {"Control",
     "a\x1b]0;t\x07\x1b[2Jb\rc\u009b31m\x7f\u202e\u2028\nFORGED: all is well"},
    {"Broken",
     "a\xff\x9b"
     "31m\xe5\n\nFORGED: all is well"},
    {"Long", std::string(1 << 20, 'n') + "/FORGED"},
};

struct Command {
  std::string program;
  Words arguments;
  // Whether the mark is seen.
  bool shows = true;
};

bool IsForPrograms(const Command& command) {
  for (const std::string& argument : command.arguments) {
    if (argument == "--format=json" || argument == "--format=csv") return true;
  }
  return false;
}

// Fails for what a terminal would obey.
void CheckText(std::string_view text) {
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_FALSE(absl::StartsWith(line, kMark)) << "a forged line";
  }
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const bool ours = text[0] == '\n' || text[0] == '\t';
    ASSERT_TRUE(ours ||
                (character.code != kStray && !IsControl(character.code)))
        << "byte " << static_cast<int>(text[0]) << " before "
        << absl::CHexEscape(text.substr(0, 80));
    text.remove_prefix(character.bytes);
  }
}

class HostileNamesTest : public testing::TestWithParam<Name> {
 protected:
  void Check(const Command& command) const {
    const ProgramRun run = RunProgram(command.program, command.arguments,
                                      {"TMPDIR=" + folder_.Path("")});
    const std::string line = absl::CHexEscape(absl::StrCat(
        command.program, " ", absl::StrJoin(command.arguments, " ")));
    SCOPED_TRACE(absl::StrCat(line, "\n",
                              absl::CHexEscape(run.out.substr(0, 2000)), "\n",
                              absl::CHexEscape(run.error.substr(0, 2000))));
    EXPECT_LT(run.exit_code, 126);
    CheckText(run.out);
    CheckText(run.error);
    EXPECT_LT(run.error.size(), kAScreenOrTwo);
    if (IsForPrograms(command)) return;
    EXPECT_LT(run.out.size(), kAScreenOrTwo);
    if (!command.shows || !readable_) return;
    EXPECT_THAT(run.out + run.error, HasSubstr(kMark));
  }
  void CheckAll(const std::vector<Command>& commands) const {
    for (const Command& command : commands) Check(command);
  }

  std::string name() const { return GetParam().text; }
  bool is_long() const { return name().size() > 1000; }
  // For tests of messages that TensorFlow reads: a name that is not UTF-8 makes
  // them unreadable, and is not shown.
  void InMessages() { readable_ = ValidUtf8(name()) == name(); }
  // For text formats.
  std::string escaped() const { return absl::CHexEscape(name()); }

  std::string Text(const std::string& file, const std::string& text) const {
    return folder_.Write(
        file, absl::StrReplaceAll(
                  text, {{"$N", escaped()},
                         {"$RAW", name()},
                         {"$LINE", name().substr(0, name().find('\n'))}}));
  }
  // Also of names that TensorFlow's own writer refuses.
  std::string Graph(const std::string& file, const std::string& text) const {
    GraphDef graph = GraphFromText(text);
    Rename(&graph);
    return folder_.Write(file, graph.SerializePartialAsString());
  }
  std::string Layer() const {
    return Graph("layer.pb",
                 absl::StrCat(Placeholder("x", {-1, 1}),
                              FloatConst("N_w", {1, 2}, {1, 2}),
                              Node("N", "MatMul", {"x", "N_w"}, {kFloat}),
                              Node("y", "Softmax", {"N"}, {kFloat})));
  }
  std::string Dataset(const std::string& feature) const {
    folder_.Write("data.csv", "x,label\n1,0\n2,1\n");
    return Text(
        "data.textproto",
        absl::StrCat("csv { files: 'data.csv' } input { feature: '", feature,
                     "' placeholder: 'x' dtype: 'float' shape: 1 } "
                     "prediction { tensor: 'y' }"));
  }
  std::string SavedModel() const {
    tensorflow::SavedModel model;
    tensorflow::MetaGraphDef& meta = *model.add_meta_graphs();
    meta.mutable_meta_info_def()->add_tags("serve");
    meta.mutable_meta_info_def()->add_tags(name());
    *meta.mutable_graph_def() = GraphFromText(absl::StrCat(
        Placeholder("x", {-1, 1}),
        Node("N", "VarHandleOp", {}, {{"dtype", "type: DT_FLOAT"}}),
        Node("N_read", "ReadVariableOp", {"N"}, {{"dtype", "type: DT_FLOAT"}}),
        Node("y", "MatMul", {"x", "N_read"}, {kFloat})));
    Rename(meta.mutable_graph_def());
    tensorflow::SignatureDef& signature =
        (*meta.mutable_signature_def())[name()];
    signature.set_method_name(name());
    (*signature.mutable_inputs())[name()].set_name(name() + ":0");
    (*signature.mutable_outputs())["y"].set_name("y:0");
    (*meta.mutable_signature_def())["serving_default"] = signature;
    fs::create_directories(folder_.Path("saved/variables"));
    folder_.Write("saved/saved_model.pb", model.SerializePartialAsString());
    return folder_.Path("saved");
  }
  std::string Ranges() const {
    RangeTable table;
    for (int i = 0; i < 20; ++i) {
      table.FindOrAdd(name()).AddRange(-i, i, {"log", i});
    }
    table.FindOrAdd(name()).AddMin(std::numeric_limits<float>::infinity(),
                                   {name(), 1});
    EXPECT_OK(WriteRangeTable(table, folder_.Path("table.ranges")));
    return folder_.Path("table.ranges");
  }
  std::string Out(const std::string& file = "out.pb") const {
    return folder_.Path(file);
  }

  TestFolder folder_;

 private:
  bool readable_ = true;

  // Puts the hostile name in place of "N", "N_w" and so on.
  void Rename(GraphDef* graph) const {
    const auto rename = [this](std::string* text) {
      if (absl::StartsWith(*text, "N")) *text = name() + text->substr(1);
    };
    for (NodeDef& node : *graph->mutable_node()) {
      rename(node.mutable_name());
      rename(node.mutable_op());
      rename(node.mutable_device());
      for (std::string& input : *node.mutable_input()) rename(&input);
    }
  }
};

TEST_P(HostileNamesTest, OfNodesAndOps) {
  InMessages();
  const std::string layer = Layer();
  const std::string missing =
      Graph("missing.pb", Node("y", "Identity", {"N"}, {kFloat}));
  const std::string unknown = Graph(
      "unknown.pb", absl::StrCat(Placeholder("x"), Node("N_x", "N", {"x"})));
  std::vector<Command> commands;
  for (const std::string& graph : {layer, missing, unknown}) {
    commands.push_back({"transforms/summarize_graph",
                        {"--in_graph=" + graph, "--print_structure"}});
    commands.push_back({"transforms/summarize_graph",
                        {"--in_graph=" + graph, "--format=json"}});
    commands.push_back(
        {"transforms/transform_graph",
         {"--in_graph=" + graph, "--out_graph=" + Out(), "--inputs=x",
          "--outputs=y",
          "--transforms=quantize_eightbit insert_logging(op=MatMul)"},
         graph != layer});
    commands.push_back(
        {"transforms/quantize_graph",
         {"--input=" + graph, "--output=" + Out(), "--output_node_names=y"}});
  }
  commands.push_back({"graph/diff_graphs", {layer, missing}});
  commands.push_back({"graph/diff_graphs", {layer, missing, "--format=json"}});
  commands.push_back({"transforms/featurecolumn_graph_optimization",
                      {"--input-graph=" + layer, "--output-graph=" + Out(),
                       "--output-nodes=gone"},
                      false});
  CheckAll(commands);
}

TEST_P(HostileNamesTest, OfTextGraphs) {
  for (const char* text :
       {"node { name: 'a' $RAW: 1 }", "versions { producer: '$LINE' }",
        "node { name: 'a' op: $RAW }",
        "node { name: '$N' op: 'Placeholder' op: 'B' nam: '$N' }"}) {
    const std::string graph = Text("graph.pbtxt", text);
    CheckAll({{"transforms/summarize_graph", {"--in_graph=" + graph}, false},
              {"graph/pb_to_pbtxt", {graph, Out("out.pbtxt")}, false},
              {"transforms/transform_graph",
               {"--in_graph=" + graph, "--out_graph=" + Out(),
                "--transforms=fold_constants"},
               false}});
  }
}

TEST_P(HostileNamesTest, OfSavedModels) {
  InMessages();
  const std::string saved = SavedModel();
  CheckAll(
      {{"transforms/summarize_graph", {"--in_graph=" + saved}},
       {"transforms/summarize_graph",
        {"--in_graph=" + saved, "--saved_model_tags=other"}},
       {"graph/dump_graph",
        {"--input_model=" + saved, "--output=" + Out(), "--tags=other"}},
       {"graph/freeze_graph",
        {"--input_saved_model_dir=" + saved, "--output_graph=" + Out(),
         "--saved_model_tags=other"}},
       {"graph/freeze_graph",
        {"--input_saved_model_dir=" + saved, "--output_graph=" + Out(),
         "--saved_model_tags=", "--output_node_names=y"},
        false},
       {"runtime/convert_model",
        {"--saved_model=" + saved, "--out=" + Out("converted"), "--tags=other",
         "--insert_qdq"}},
       {"runtime/convert_model",
        {"--saved_model=" + saved, "--out=" + Out("converted"), "--insert_qdq"},
        false},
       {"runtime/benchmark_graph",
        {"--saved_model=" + saved, "--signature=other"},
        false}});
}

TEST_P(HostileNamesTest, OfTensorsAndFeaturesAtRunTime) {
  InMessages();
  const std::string graph = "--graph=" + Layer();
  const std::string good = "--dataset=" + Dataset("x");
  CheckAll({{"runtime/evaluate_graph", {graph, good}, false},
            {"runtime/benchmark_graph",
             {graph, good, "--rounds=2", "--seconds=0.01", "--profile"},
             false},
            {"runtime/calibrate_graph",
             {graph, good, "--output=" + Out("x.ranges")}},
            {"runtime/quantize_model", {graph, good, "--output=" + Out()}}});
  const std::string bad = "--dataset=" + Dataset("$N");
  CheckAll({{"runtime/evaluate_graph", {graph, bad}},
            {"runtime/evaluate_graph", {graph, bad, "--log_file=-"}},
            {"runtime/benchmark_graph", {graph, bad}},
            {"runtime/calibrate_graph", {graph, bad, "--output=" + Out()}}});
  const std::string broken =
      "--dataset=" + Text("data.textproto", "csv { $RAW: 1 }");
  Check({"runtime/evaluate_graph", {graph, broken}, false});
}

TEST_P(HostileNamesTest, OfLogsAndRanges) {
  InMessages();
  const std::string log = Text(
      "run.log", "x ;$RAW__print__;__min:[1]\n;a$RAW__print__;__max:[q]\n");
  const std::string table = Ranges();
  const std::string layer = Layer();
  const std::string json =
      Text("ranges.json", R"({"column": [{"$RAW": 1, "name": "$N"}]})");
  CheckAll({{"logs_parser/parse_min_max_log", {log}, false},
            {"logs_parser/parse_min_max_log", {table}},
            {"logs_parser/parse_min_max_log", {table, "--format=csv"}},
            {"logs_parser/parse_min_max_log", {table, "--format=json"}},
            {"runtime/calibrate_graph", {"--print=" + table}},
            {"runtime/quantize_model",
             {"--graph=" + layer, "--ranges=" + table, "--outputs=y",
              "--output=" + Out()},
             false},
            {"transforms/transform_graph",
             {"--in_graph=" + layer, "--out_graph=" + Out(), "--outputs=y",
              absl::StrCat("--transforms=freeze_requantization_ranges("
                           "ranges_file=\"",
                           table, "\")")}},
            {"runtime/datasets/dataset",
             {"synthesize", "--format=preprocessed", "--ranges=" + json,
              "--rows=1", "--out=" + Out("x.tfrecords")},
             false}});
}

TEST_P(HostileNamesTest, OfWorkflowsAndManifests) {
  // The file may have a megabyte.
  const std::string part = absl::CHexEscape(
      name().substr(name().size() > 100000 ? name().size() - 100000 : 0));
  const std::string parts = folder_.Write(
      "parts.textproto",
      absl::StrReplaceAll(
          "summary: '$' variable { name: '$' default_value: '$' } stage { "
          "name: '$' freeze { saved_model { file: '$' } output: '$' } }",
          {{"$", part}}));
  const std::string broken = Text("broken.textproto", "stage { $RAW: 1 }");
  const std::string file =
      absl::StrCat(JsonString(name()), R"(, "bytes": "1", "sha256": ")",
                   std::string(64, '0'), R"("}])");
  const std::string manifest = folder_.Write(
      "manifest.json",
      WithOwnDigest(absl::StrCat(
          R"({"format": "requant manifest 1", "outputs": [{"path": )", file,
          R"(, "inputs": [{"path": "/x", "given": )", file, "}")));
  const std::string other = Text("other.json", R"({"format": "$RAW"})");
  CheckAll({{"workflows/requant", {"plan", parts}},
            {"workflows/requant", {"run", parts, "--work_dir=" + Out("work")}},
            {"workflows/requant", {"plan", broken}, false},
            {"workflows/requant", {"verify", manifest}},
            {"workflows/requant", {"verify", other}, false}});
}

TEST_P(HostileNamesTest, OfFilesAndFlags) {
  if (is_long()) GTEST_SKIP() << "No command line takes such a name.";
  const std::string gone = name();
  fs::create_directories(folder_.Path(name()));
  const std::string layer = Layer();
  const std::string here = folder_.Path(name()) + "/g.pb";
  fs::copy_file(layer, here);
  CheckAll({
      {"transforms/summarize_graph", {"--in_graph=" + here}},
      {"transforms/transform_graph",
       {"--in_graph=" + gone, "--out_graph=" + Out(),
        "--transforms=fold_constants"}},
      {"transforms/transform_graph", {"--describe=" + name()}},
      {"transforms/quantize_graph",
       {"--input=" + gone, "--output=" + Out(), "--output_node_names=y"}},
      {"transforms/quantize_graph", {name()}},
      {"graph/diff_graphs", {gone, here}},
      {"graph/pb_to_pbtxt", {here}},
      {"graph/dump_graph", {"--input_model=" + gone, "--output=" + Out()}},
      {"graph/freeze_graph",
       {"--input_graph=" + gone, "--output_graph=" + Out(),
        "--output_node_names=y"}},
      {"logs_parser/parse_min_max_log", {gone}},
      {"runtime/calibrate_graph", {"--print=" + gone}},
      {"runtime/evaluate_graph", {"--graph=" + gone, "--dataset=" + gone}},
      {"runtime/benchmark_graph", {"--graph=" + gone, "--dataset=" + gone}},
      {"runtime/quantize_model",
       {"--graph=" + gone, "--dataset=" + gone, "--output=" + Out()}},
      {"runtime/convert_model", {"--saved_model=" + gone}},
      {"runtime/datasets/dataset", {name()}},
      {"runtime/datasets/dataset", {"preprocess", "--ranges=" + gone, gone}},
      {"workflows/requant", {name()}},
      {"workflows/requant", {"plan", name()}},
      {"workflows/requant", {"run", "--set", name() + "=1"}},
      {"workflows/requant", {"verify", gone}},
      {"workflows/requant", {"cache", name()}},
      {"workflows/requant", {"cache", "list", gone}},
      {"workflows/launch_benchmark", {"--" + name()}},
      {"launch/launch_quantization", {"-p", gone}},
      {"shell/python", {"prepare_model.py", name()}},
  });
}

INSTANTIATE_TEST_SUITE_P(, HostileNamesTest, testing::ValuesIn(kNames),
                         [](const testing::TestParamInfo<Name>& info) {
                           return info.param.test;
                         });

}  // namespace
}  // namespace requant::hostile_names_test
