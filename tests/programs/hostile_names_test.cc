// Tests names from other people's files in every program: none controls the
// terminal, forges a line or fills the screen.

#include <filesystem>
#include <limits>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/json.h"
#include "base/text/printable.h"
#include "ranges/range_table.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/support/program_runs.h"
#include "workflows/report/run_folder.h"

namespace requant::hostile_names_test {
namespace {

namespace fs = std::filesystem;

// No line may start with this; most cases show it in the middle of one.
constexpr char kMark[] = "FORGED";
constexpr size_t kAScreenOrTwo = 32 << 10;

struct Name {
  const char* test;
  std::string text;
};

// Colours, titles, a cleared screen, the second block of control characters,
// reversed text; bytes that are not UTF-8; a name that TensorFlow allows and
// nobody can read.
const Name kNames[] = {
    {"Control",
     "a\x1b]0;t\x07\x1b[2Jb\rc\u009b31m\x7f\u202e\u2028\nFORGED: all is well"},
    {"Broken",
     "a\xff\x9b"
     "31m\xe5\n\nFORGED: all is well"},
    {"Long", std::string(1 << 20, 'n') + "/FORGED"},
};

// Fails for characters that a terminal would obey.
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
  // Runs command lines with `values` inserted and words separated by blanks;
  // $OUT is an output path. Expects the mark unless a line begins with "? ".
  void CheckAll(std::vector<std::pair<std::string, std::string>> values,
                const std::vector<std::string>& lines) const {
    values.emplace_back("$OUT", folder_.Path("out.pb"));
    for (std::string_view line : lines) {
      const bool shows = !absl::ConsumePrefix(&line, "? ");
      Words words = absl::StrSplit(line, ' ');
      for (std::string& word : words) {
        word = absl::StrReplaceAll(word, values);
      }
      Check(words, shows);
    }
  }

  std::string name() const { return GetParam().text; }
  bool is_long() const { return name().size() > 1000; }
  // Marks tests of messages that TensorFlow reads: a name that is not UTF-8
  // makes them unreadable and is not shown.
  void InMessages() { readable_ = ValidUtf8(name()) == name(); }
  // Returns the name escaped for text formats.
  std::string escaped() const { return absl::CHexEscape(name()); }

  std::string Text(const std::string& file, const std::string& text) const {
    return folder_.Write(
        file, absl::StrReplaceAll(
                  text, {{"$N", escaped()},
                         {"$RAW", name()},
                         {"$LINE", name().substr(0, name().find('\n'))}}));
  }
  // Writes a graph, even with names that TensorFlow's own writer refuses.
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
  TestFolder folder_;

 private:
  bool readable_ = true;

  void Check(const Words& words, bool shows) const {
    const ProgramRun run =
        RunProgram(words[0], Words(words.begin() + 1, words.end()),
                   {"TMPDIR=" + folder_.Path("")});
    SCOPED_TRACE(absl::StrCat(absl::CHexEscape(absl::StrJoin(words, " ")), "\n",
                              absl::CHexEscape(run.out.substr(0, 2000)), "\n",
                              absl::CHexEscape(run.error.substr(0, 2000))));
    EXPECT_LT(run.exit_code, 126);
    CheckText(run.out);
    CheckText(run.error);
    EXPECT_LT(run.error.size(), kAScreenOrTwo);
    // Output for programs may be long.
    if (absl::StartsWith(words.back(), "--format=")) return;
    EXPECT_LT(run.out.size(), kAScreenOrTwo);
    if (!shows || !readable_) return;
    EXPECT_THAT(run.out + run.error, HasSubstr(kMark));
  }

  // Puts the hostile name in place of "N" in "N", "N_w" and so on.
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
  for (const std::string& graph : {layer, missing, unknown}) {
    CheckAll(
        {{"$G", graph}, {"$T", "quantize_eightbit insert_logging(op=MatMul)"}},
        {"transforms/summarize_graph --in_graph=$G --print_structure",
         "transforms/summarize_graph --in_graph=$G --format=json",
         absl::StrCat(graph == layer ? "? " : "",
                      "transforms/transform_graph --in_graph=$G "
                      "--out_graph=$OUT --inputs=x --outputs=y "
                      "--transforms=$T"),
         "transforms/quantize_graph --input=$G --output=$OUT "
         "--output_node_names=y"});
  }
  CheckAll({{"$LAYER", layer}, {"$MISSING", missing}},
           {"graph/diff_graphs $LAYER $MISSING",
            "graph/diff_graphs $LAYER $MISSING --format=json",
            "? transforms/featurecolumn_graph_optimization "
            "--input-graph=$LAYER --output-graph=$OUT --output-nodes=gone"});
}

TEST_P(HostileNamesTest, OfTextGraphs) {
  for (const char* text :
       {"node { name: 'a' $RAW: 1 }", "versions { producer: '$LINE' }",
        "node { name: 'a' op: $RAW }",
        "node { name: '$N' op: 'Placeholder' op: 'B' nam: '$N' }"}) {
    CheckAll({{"$G", Text("graph.pbtxt", text)}},
             {"? transforms/summarize_graph --in_graph=$G",
              "? graph/pb_to_pbtxt $G $OUTtxt",
              "? transforms/transform_graph --in_graph=$G --out_graph=$OUT "
              "--transforms=fold_constants"});
  }
}

TEST_P(HostileNamesTest, OfSavedModels) {
  InMessages();
  CheckAll(
      {{"$M", SavedModel()}},
      {"transforms/summarize_graph --in_graph=$M",
       "transforms/summarize_graph --in_graph=$M --saved_model_tags=other",
       "graph/dump_graph --input_model=$M --output=$OUT --tags=other",
       "graph/freeze_graph --input_saved_model_dir=$M --output_graph=$OUT "
       "--saved_model_tags=other",
       "? graph/freeze_graph --input_saved_model_dir=$M --output_graph=$OUT "
       "--saved_model_tags= --output_node_names=y",
       "runtime/convert_model --saved_model=$M --out=$OUT.d --tags=other "
       "--insert_qdq",
       "? runtime/convert_model --saved_model=$M --out=$OUT.d --insert_qdq",
       "? runtime/benchmark_graph --saved_model=$M --signature=other"});
}

TEST_P(HostileNamesTest, OfTensorsAndFeaturesAtRunTime) {
  InMessages();
  const std::string graph = Layer();
  CheckAll({{"$G", graph}, {"$D", Dataset("x")}},
           {"? runtime/evaluate_graph --graph=$G --dataset=$D",
            "? runtime/benchmark_graph --graph=$G --dataset=$D --rounds=2 "
            "--seconds=0.01 --profile",
            "runtime/calibrate_graph --graph=$G --dataset=$D --output=$OUT.r",
            "runtime/quantize_model --graph=$G --dataset=$D --output=$OUT"});
  CheckAll({{"$G", graph}, {"$D", Dataset("$N")}},
           {"runtime/evaluate_graph --graph=$G --dataset=$D",
            "runtime/evaluate_graph --graph=$G --dataset=$D --log_file=-",
            "runtime/benchmark_graph --graph=$G --dataset=$D",
            "runtime/calibrate_graph --graph=$G --dataset=$D --output=$OUT"});
  CheckAll({{"$G", graph}, {"$D", Text("data.textproto", "csv { $RAW: 1 }")}},
           {"? runtime/evaluate_graph --graph=$G --dataset=$D"});
}

TEST_P(HostileNamesTest, OfLogsAndRanges) {
  InMessages();
  const std::string table = Ranges();
  CheckAll(
      {{"$LOG",
        Text("run.log",
             "x ;$RAW__print__;__min:[1]\n;a$RAW__print__;__max:[q]\n")},
       {"$TABLE", table},
       {"$LAYER", Layer()},
       {"$JSON",
        Text("ranges.json", R"({"column": [{"$RAW": 1, "name": "$N"}]})")},
       {"$FREEZE", absl::StrCat("freeze_requantization_ranges(ranges_file=\"",
                                table, "\")")}},
      {"? logs_parser/parse_min_max_log $LOG",
       "logs_parser/parse_min_max_log $TABLE",
       "logs_parser/parse_min_max_log $TABLE --format=csv",
       "logs_parser/parse_min_max_log $TABLE --format=json",
       "runtime/calibrate_graph --print=$TABLE",
       "? runtime/quantize_model --graph=$LAYER --ranges=$TABLE --outputs=y "
       "--output=$OUT",
       "transforms/transform_graph --in_graph=$LAYER --out_graph=$OUT "
       "--outputs=y --transforms=$FREEZE",
       "? runtime/datasets/dataset synthesize --format=preprocessed "
       "--ranges=$JSON --rows=1 --out=$OUT.tfrecords"});
}

TEST_P(HostileNamesTest, OfWorkflowsAndManifests) {
  // The file may have up to a megabyte.
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
  CheckAll(
      {{"$PARTS", parts},
       {"$BROKEN", broken},
       {"$MANIFEST", manifest},
       {"$OTHER", other}},
      {"workflows/requant plan $PARTS",
       "workflows/requant run $PARTS --work_dir=$OUT.work",
       "? workflows/requant plan $BROKEN", "workflows/requant verify $MANIFEST",
       "? workflows/requant verify $OTHER"});
}

TEST_P(HostileNamesTest, OfFilesAndFlags) {
  if (is_long()) GTEST_SKIP() << "No command line takes such a name.";
  fs::create_directories(folder_.Path(name()));
  const std::string here = folder_.Path(name()) + "/g.pb";
  fs::copy_file(Layer(), here);
  CheckAll(
      {{"$HERE", here}, {"$NAME", name()}},
      {"transforms/summarize_graph --in_graph=$HERE",
       "transforms/transform_graph --in_graph=$NAME --out_graph=$OUT "
       "--transforms=fold_constants",
       "transforms/transform_graph --describe=$NAME",
       "transforms/quantize_graph --input=$NAME --output=$OUT "
       "--output_node_names=y",
       "transforms/quantize_graph $NAME",
       "graph/diff_graphs $NAME $HERE",
       "graph/pb_to_pbtxt $HERE",
       "graph/dump_graph --input_model=$NAME --output=$OUT",
       "graph/freeze_graph --input_graph=$NAME --output_graph=$OUT "
       "--output_node_names=y",
       "logs_parser/parse_min_max_log $NAME",
       "runtime/calibrate_graph --print=$NAME",
       "runtime/evaluate_graph --graph=$NAME --dataset=$NAME",
       "runtime/benchmark_graph --graph=$NAME --dataset=$NAME",
       "runtime/quantize_model --graph=$NAME --dataset=$NAME --output=$OUT",
       "runtime/convert_model --saved_model=$NAME",
       "runtime/datasets/dataset $NAME",
       "runtime/datasets/dataset preprocess --ranges=$NAME $NAME",
       "workflows/requant $NAME",
       "workflows/requant plan $NAME",
       "workflows/requant run --set $NAME=1",
       "workflows/requant verify $NAME",
       "workflows/requant cache $NAME",
       "workflows/requant cache list $NAME",
       "workflows/launch_benchmark --$NAME",
       "launch/launch_quantization -p $NAME",
       "shell/python prepare_model.py $NAME"});
}

INSTANTIATE_TEST_SUITE_P(, HostileNamesTest, testing::ValuesIn(kNames),
                         [](const testing::TestParamInfo<Name>& info) {
                           return info.param.test;
                         });

}  // namespace
}  // namespace requant::hostile_names_test
