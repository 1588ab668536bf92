// transform_graph as people run it.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"

namespace requant::transform_graph_test {
namespace {

// x -> y = x · w, with an Identity on the way and a node that nobody needs.
std::string SmallText() {
  return absl::StrCat(
      Placeholder("x", {-1, 2}), FloatConst("w", {2, 2}, {1, 2, 3, 4}),
      Node("identity", "Identity", {"w"}, {kFloat}),
      Node("y", "MatMul", {"x", "identity"}, {kFloat}),
      Node("unused", "Relu", {"y"}, {kFloat}), "versions { producer: 1205 }");
}

GraphDef Small() { return GraphFromText(SmallText()); }

class TransformGraph : public testing::Test, public TransformGraphRunner {
 protected:
  // A failure: the exit code, one line on stderr, nothing written.
  void ExpectFailure(const ProgramRun& run, int exit_code,
                     const std::string& message) {
    EXPECT_THAT(run, Exits(exit_code));
    EXPECT_THAT(run.out, Not(HasSubstr("->")));
    EXPECT_THAT(run.error, MatchesRegex("transform_graph: [^\n]*\n"));
    EXPECT_THAT(run.error, HasSubstr(message));
    EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
  }
};

TEST_F(TransformGraph, RunsTransformsInOrderAndSumsUp) {
  const auto run = Transform("strip_unused_nodes remove_nodes(op=Identity)",
                             Small(), {"--inputs=x", "--outputs=y"});
  EXPECT_THAT(run, Exits(0, ""));
  EXPECT_THAT(run.out, MatchesRegex("5 -> 3 nodes \\(-40 %\\), [0-9]+ -> "
                                    "[0-9]+ B \\(-[0-9]+ %\\)\n"));
  EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt", "out.pb"));
  const GraphDef graph = folder.ReadGraphFile("out.pb");
  EXPECT_THAT(NodesOf(graph), UnorderedElementsAre("x", "w", "y"));
  EXPECT_EQ(NodeNamed(graph, "y").input(1), "w");
  EXPECT_EQ(graph.versions().producer(), 1205);
}

// Step 3 of the published recipe, its --inputs as pasted between quotes.
TEST_F(TransformGraph, TakesTheRecipesCommandLine) {
  std::string text = FloatConst("default", {1}, {0});
  std::vector<std::string> inputs;
  for (int i = 0; i < 39; ++i) {
    inputs.push_back(i == 0 ? "Placeholder" : absl::StrCat("Placeholder_", i));
    text += Node(
        inputs.back(), "PlaceholderWithDefault", {"default"},
        {{"dtype", "type: DT_FLOAT"}, {"shape", "shape { dim { size: 1 } }"}});
  }
  absl::StrAppend(&text, Node("sum", "AddN", inputs, {{"N", "i: 39"}, kFloat}),
                  Node("identity", "Identity", {"sum"},
                       {kFloat, {"_class", "list { s: \"loc:@sum\" }"}}),
                  Node("check", "CheckNumerics", {"identity"},
                       {kFloat, {"message", "s: \"nan\""}}),
                  Node("head/predictions/probabilities", "Sigmoid", {"check"},
                       {kFloat, {"_class", "list { s: \"loc:@sum\" }"}}),
                  Node("train", "NoOp", {"^sum"}));
  EXPECT_THAT(
      Transform(
          "strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) "
          "remove_attribute(attribute_name=_class)",
          GraphFromText(text),
          {R"(--inputs=Placeholder,Placeholder_1,Placeholder_2,Placeholder_3,Placeholder_4, \
        Placeholder_5,Placeholder_6,Placeholder_7,Placeholder_8,Placeholder_9,Placeholder_10, \
        Placeholder_11,Placeholder_12,Placeholder_13,Placeholder_14,Placeholder_15,Placeholder_16, \
        Placeholder_17,Placeholder_18,Placeholder_19,Placeholder_20,Placeholder_21,Placeholder_22, \
        Placeholder_23,Placeholder_24,Placeholder_25,Placeholder_26,Placeholder_27,Placeholder_28,  \
        Placeholder_29,Placeholder_30,Placeholder_31,Placeholder_32,Placeholder_33,Placeholder_34,   \
        Placeholder_35,Placeholder_36,Placeholder_37,Placeholder_38)",
           "--outputs=head/predictions/probabilities"}),
      Exits(0, ""));
  const GraphDef graph = folder.ReadGraphFile("out.pb");
  EXPECT_EQ(graph.node_size(), 41);
  for (const std::string& input : inputs) {
    EXPECT_EQ(NodeNamed(graph, input).op(), "Placeholder") << input;
  }
  const NodeDef& output = NodeNamed(graph, "head/predictions/probabilities");
  EXPECT_THAT(output.input(), ElementsAre("sum"));
  EXPECT_EQ(output.attr().count("_class"), 0);
}

TEST_F(TransformGraph, TakesFlagsApartFromTheirValues) {
  const std::string in = folder.WriteText("g.pbtxt", Small());
  EXPECT_THAT(
      RunProgram(kTransformGraph,
                 {"--in_graph", in, "--out_graph", folder.Path("out.pb"),
                  "--transforms", "remove_device", "--noverify"}),
      Exits(0));
}

TEST_F(TransformGraph, PassesQuotedAndRepeatedParametersOn) {
  const auto run = Transform(
      R"(insert_logging(op=MatMul, op=Identity, message="a, (b) \"c\""))",
      Small());
  EXPECT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, HasSubstr("insert_logging: logs 2 nodes\n"));
  EXPECT_THAT(NodeNamed(folder.ReadGraphFile("out.pb"), "y__print__")
                  .attr()
                  .at("message")
                  .s(),
              HasSubstr("a, (b) \"c\""));
}

TEST_F(TransformGraph, WithIgnoreErrorsAFailureBecomesAWarning) {
  EXPECT_THAT(
      Transform("freeze_min(min_max_log_file=absent, ignore_errors=true) "
                "rename_node(old_node_name=unused, new_node_name=used)",
                Small()),
      Exits(0, MatchesRegex("transform_graph: warning: freeze_min: ignoring an "
                            "error: [^\n]*\n")));
  EXPECT_THAT(NodesOf(folder.ReadGraphFile("out.pb")),
              ElementsAre("x", "w", "identity", "y", "used"));
}

TEST_F(TransformGraph, WritesTextWhenAskedTo) {
  EXPECT_THAT(Transform("remove_device", Small(), {"--output_as_text"}),
              Exits(0));
  EXPECT_THAT(folder.Read("out.pb"), StartsWith("node {\n  name: \"x\"\n"));
  EXPECT_EQ(folder.ReadGraphFile("out.pb").node_size(), 5);
}

TEST_F(TransformGraph, TellsBinaryFromTextByContent) {
  ASSERT_OK(
      WriteGraph(Small(), folder.Path("binary.pbtxt"), GraphFormat::kBinary));
  folder.WriteText("text.pb", Small());
  for (const char* name : {"binary.pbtxt", "text.pb"}) {
    EXPECT_THAT(
        RunProgram(
            kTransformGraph,
            {"--in_graph=" + folder.Path(name), "--transforms=remove_device",
             absl::StrCat("--out_graph=", folder.Path("out_"), name)}),
        Exits(0));
  }
  EXPECT_EQ(folder.Read("out_binary.pbtxt"), folder.Read("out_text.pb"));
}

TEST_F(TransformGraph, ReadsASavedModelByItsTags) {
  std::filesystem::create_directory(folder.Path("model"));
  folder.Write(
      "model/saved_model.pbtxt",
      absl::StrCat(
          "saved_model_schema_version: 1 "
          "meta_graphs { meta_info_def { tags: \"serve\" } graph_def {",
          SmallText(),
          "} } meta_graphs { meta_info_def { tags: \"train\" } "
          "graph_def {",
          Placeholder("t"), "} }"));
  const std::vector<std::string> arguments = {
      "--in_graph=" + folder.Path("model"),
      "--out_graph=" + folder.Path("out.pb"), "--transforms=remove_device"};
  EXPECT_THAT(RunProgram(kTransformGraph, arguments), Exits(0));
  EXPECT_EQ(folder.ReadGraphFile("out.pb").node_size(), 5);
  std::vector<std::string> tagged = arguments;
  tagged.push_back("--saved_model_tags=train");
  EXPECT_THAT(RunProgram(kTransformGraph, tagged), Exits(0));
  EXPECT_THAT(NodesOf(folder.ReadGraphFile("out.pb")), ElementsAre("t"));
}

TEST_F(TransformGraph, TheInputMayBeTheOutput) {
  const std::string path = folder.WriteText("g.pbtxt", Small());
  EXPECT_THAT(RunProgram(kTransformGraph,
                         {"--in_graph=" + path, "--out_graph=" + path,
                          "--outputs=y", "--transforms=strip_unused_nodes"}),
              Exits(0));
  EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
  EXPECT_EQ(folder.ReadGraphFile("g.pbtxt").node_size(), 4);
}

TEST_F(TransformGraph, GivesTheSameBytesTwice) {
  const std::string transforms =
      "add_default_attributes fold_constants quantize_weights(minimum_size=1) "
      "merge_duplicate_nodes obfuscate_names sort_by_execution_order";
  const std::vector<std::string> names = {"--inputs=x", "--outputs=y"};
  ASSERT_THAT(Transform(transforms, Small(), names), Exits(0));
  const std::string first = folder.Read("out.pb");
  ASSERT_THAT(Transform(transforms, Small(), names), Exits(0));
  EXPECT_EQ(folder.Read("out.pb"), first);
}

TEST_F(TransformGraph, QuietPrintsNothing) {
  const auto run = Transform("insert_logging(op=MatMul)", Small(), {"--quiet"});
  EXPECT_THAT(run, Exits(0));
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.error, "");
}

TEST_F(TransformGraph, AGraphToStandardOutputHasNoOtherLinesInIt) {
  const auto run = Transform("insert_logging(op=MatMul)", Small(),
                             {"--out_graph=/dev/stdout", "--output_as_text"});
  EXPECT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, StartsWith("node {"));
  EXPECT_THAT(run.out, Not(HasSubstr(" nodes ")));
}

TEST_F(TransformGraph, TellsWhichTransformChangesNothing) {
  const auto run =
      Transform("remove_nodes(op=Identity) remove_nodes(op=Identity)", Small());
  EXPECT_THAT(run.out, StartsWith("remove_nodes: changes nothing\n5 -> 4 "));
}

TEST_F(TransformGraph, DumpsTheGraphAfterEveryTransform) {
  EXPECT_THAT(
      Transform("remove_nodes(op=Identity) stock:rename_node(old_node_name=y, "
                "new_node_name=z)",
                Small(), {"--dump_dir=" + folder.Path("dump")}),
      Exits(0));
  EXPECT_THAT(NodesOf(folder.ReadGraphFile("dump/01_remove_nodes.pb")),
              ElementsAre("x", "w", "y", "unused"));
  EXPECT_EQ(folder.Read("dump/02_rename_node.pb"), folder.Read("out.pb"));
}

TEST_F(TransformGraph, DumpsTheGraphThatWasBroken) {
  EXPECT_THAT(Transform("remove_attribute(attribute_name=T)", Small(),
                        {"--dump_dir=" + folder.Path("dump")}),
              Exits(1));
  const GraphDef dumped = folder.ReadGraphFile("dump/01_remove_attribute.pb");
  EXPECT_TRUE(NodeNamed(dumped, "y").attr().empty());
  EXPECT_THAT(folder.Names(), ElementsAre("dump", "g.pbtxt"));
}

TEST_F(TransformGraph, StopsAfterSoManyTransforms) {
  const std::string transforms =
      "remove_nodes(op=Identity) rename_node(old_node_name=y, new_node_name=z)";
  EXPECT_THAT(Transform(transforms, Small(), {"--stop_after=1"}), Exits(0));
  EXPECT_THAT(NodesOf(folder.ReadGraphFile("out.pb")),
              ElementsAre("x", "w", "y", "unused"));
  EXPECT_THAT(Transform(transforms, Small(), {"--stop_after=0"}), Exits(0));
  EXPECT_EQ(folder.ReadGraphFile("out.pb").node_size(), 5);
}

TEST_F(TransformGraph, NamesTheTransformThatBreaksTheGraph) {
  ExpectFailure(
      Transform("remove_device remove_attribute(attribute_name=T)", Small()), 1,
      "the transform \"remove_attribute\" broke the graph: node "
      "\"identity\" (Identity) lacks the attribute \"T\"");
}

// A TensorFlow with that op may run the graph; later transforms go on with it.
TEST_F(TransformGraph, WarnsOfAnUnknownOpThatWasAskedFor) {
  EXPECT_THAT(
      Transform(
          "rename_op(old_op_name=MatMul, new_op_name=MatMull) obfuscate_names",
          Small(), {"--inputs=x", "--outputs=y"}),
      Exits(0,
            "transform_graph: warning: rename_op: node \"y\" (MatMull) has an "
            "unknown op (did you mean \"MatMul\"?)\n"));
  EXPECT_EQ(NodeNamed(folder.ReadGraphFile("out.pb"), "y").op(), "MatMull");
}

TEST_F(TransformGraph, NoverifyLetsABrokenGraphPass) {
  EXPECT_THAT(
      Transform("remove_attribute(attribute_name=T)", Small(), {"--noverify"}),
      Exits(0));
  EXPECT_TRUE(NodeNamed(folder.ReadGraphFile("out.pb"), "y").attr().empty());
}

TEST_F(TransformGraph, RefusesAGraphThatIsBrokenFromTheStart) {
  const GraphDef graph = GraphFromText(
      absl::StrCat(Placeholder("x"), Node("y", "Relu", {"z"}, {kFloat})));
  ExpectFailure(Transform("remove_device", graph), 1,
                "the input graph is broken: node \"y\" (Relu) reads \"z\"");
}

// A graph that lacked an input before is not written unless it is mended.
TEST_F(TransformGraph, RefusesToWriteAGraphThatLacksAnInput) {
  const GraphDef incomplete = GraphFromText(absl::StrCat(
      Placeholder("x"), Node("m", "MatMul", {"x"}, {kFloat}),
      Node("y", "Relu", {"m"}, {kFloat}), Node("z", "Relu", {"x"}, {kFloat})));
  const GraphDef function = GraphFromText(
      absl::StrCat(Placeholder("x"), Call("y", "f", {"x"}),
                   Library({Function("f", {"a"}, {{"r", "n:activations:0"}},
                                     Node("n", "Relu", {"gone"}, {kFloat}))})));
  for (const auto& [graph, message] :
       std::vector<std::pair<GraphDef, std::string>>{
           {incomplete, "node \"m\" (MatMul) takes 2 inputs but has 1"},
           {function, "reads \"gone\", which names no node or argument"}}) {
    ExpectFailure(Transform("remove_device", graph), 1, message);
  }
  const GraphDef fragment = GraphFromText(
      absl::StrCat(Placeholder("x"), Node("r", "Relu", {}, {kFloat})));
  ExpectFailure(Transform("remove_device", fragment, {"--outputs=r"}), 1,
                "node \"r\" (Relu) takes 1 input but has 0");
  EXPECT_THAT(Transform("remove_device", incomplete, {"--noverify"}), Exits(0));
  EXPECT_THAT(Transform("strip_unused_nodes", incomplete, {"--outputs=z"}),
              Exits(0));
  EXPECT_THAT(Transform("remove_device", fragment), Exits(0));
}

// What TensorFlow would not run in the first place is no transform's fault,
// whatever the transform makes of the node that it is wrong with.
TEST_F(TransformGraph, DoesNotBlameATransformForWhatWasThere) {
  const struct {
    const char* transforms;
    std::string graph;
    const char* left_out;
  } kCases[] = {
      {"obfuscate_names remove_device",
       Placeholder("x") + Node("a", "FrobnicateV2", {"x"}, {kFloat}) +
           Node("y", "Relu", {"a"}, {kFloat}),
       "a"},
      // One of several nodes with an unknown op goes.
      {"strip_unused_nodes",
       Placeholder("x") + Node("y", "FrobnicateV2", {"x"}) +
           Node("a", "FrobnicateV2", {"y"}),
       "a"},
      // Missing attributes of another op, and of a function's body.
      {"backport_concatv2 rename_node(old_node_name=a, new_node_name=b)",
       Placeholder("x") + IntConst("a", {}, {0}) +
           Node("y", "ConcatV2", {"x", "x", "a"}),
       "a"},
      {"inline_partitionedcall",
       Placeholder("x") +
           Node("a", "PartitionedCall", {"x"},
                {{"f", "func { name: 'f' }"},
                 {"Tin", "list { type: DT_FLOAT }"},
                 {"Tout", "list { type: DT_FLOAT }"}}) +
           Node("y", "Relu", {"a"}, {kFloat}) +
           Library({Function("f", {"c"}, {{"d", "r:activations:0"}},
                             Node("r", "Relu", {"c"}))}),
       "a"},
      // Shapes are not looked at as long as there is an unknown op.
      {"strip_unused_nodes",
       FloatConst("x", {2, 3}, {0}) +
           Node("y", "MatMul", {"x", "x"}, {kFloat}) +
           Node("a", "FrobnicateV2", {"y"}),
       "a"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.transforms);
    EXPECT_THAT(Transform(test.transforms, GraphFromText(test.graph),
                          {"--inputs=x", "--outputs=y"}),
                Exits(0, MatchesRegex("transform_graph: warning: TensorFlow "
                                      "cannot run the input graph: [^\n]*\n")));
    EXPECT_FALSE(HasNode(folder.ReadGraphFile("out.pb"), test.left_out));
  }
}

TEST_F(TransformGraph, NamesTheTransformThatAddsAnotherKindOfProblem) {
  const GraphDef graph = GraphFromText(
      SmallText() + Node("custom", "FrobnicateV2", {"y"}, {kFloat}));
  EXPECT_THAT(Transform("remove_attribute(attribute_name=T)", graph),
              Exits(1, HasSubstr("the transform \"remove_attribute\" broke "
                                 "the graph: node \"identity\" (Identity) "
                                 "lacks the attribute \"T\"")));
}

TEST_F(TransformGraph, RefusesToStripWithoutOutputs) {
  ExpectFailure(Transform("strip_unused_nodes", Small()), 1,
                "strip_unused_nodes needs the names of the graph's outputs");
  ExpectFailure(Transform("strip_unused_nodes", Small(), {"--outputs=yy"}), 1,
                "--outputs names \"yy\" (did you mean \"y\"?), which is not "
                "in the graph");
}

TEST_F(TransformGraph, WarnsOfAnInputThatIsNotInTheGraph) {
  const auto run = Transform("strip_unused_nodes", Small(),
                             {"--inputs=identiti", "--outputs=y:0"});
  EXPECT_THAT(run, Exits(0));
  EXPECT_EQ(
      run.error,
      "transform_graph: warning: --inputs names \"identiti\" (did you mean "
      "\"identity\"?), which is not in the graph\n");
}

TEST_F(TransformGraph, TakesAnOutputThatATransformGivesItsName) {
  EXPECT_THAT(
      Transform(
          "rename_node(old_node_name=y, new_node_name=z) strip_unused_nodes",
          Small(), {"--inputs=x", "--outputs=z"}),
      Exits(0, ""));
}

TEST_F(TransformGraph, UnknownNamesAreUsageErrorsThatSuggestOthers) {
  ExpectFailure(Transform("remove_devices", Small()), 2,
                "there is no transform \"remove_devices\" (did you mean "
                "\"remove_device\"?); there are: add_default_attributes, ");
  ExpectFailure(Transform("remove_nodes(opp=Identity)", Small()), 2,
                "remove_nodes has no parameter \"opp\"");
  ExpectFailure(Transform("remove_nodes", Small()), 2,
                "remove_nodes needs the parameter op");
  ExpectFailure(Transform("round_weights(num_steps=many)", Small()), 2,
                "takes an int, not \"many\"");
  ExpectFailure(Transform("remove_device", Small(), {"--out_graf=x"}), 2,
                "unknown flag --out_graf (did you mean \"out_graph\"?)");
}

TEST_F(TransformGraph, MistakesAreFoundBeforeTheGraphIsRead) {
  EXPECT_THAT(
      RunProgram(kTransformGraph, {"--in_graph=" + folder.Path("missing.pb"),
                                   "--out_graph=" + folder.Path("out.pb"),
                                   "--transforms=remove_device frobnicate"}),
      Exits(2, HasSubstr("there is no transform \"frobnicate\"")));
}

TEST_F(TransformGraph, MissingFlagsAreUsageErrors) {
  EXPECT_EQ(RunProgram(kTransformGraph, {}).error,
            "transform_graph: --in_graph is missing; see transform_graph "
            "--help\n");
  ExpectFailure(Transform("", Small()), 2, "--transforms is missing");
  ExpectFailure(Transform(" \\\n ", Small()), 2,
                "--transforms names no transform");
  ExpectFailure(Transform("remove_nodes(op=", Small()), 2,
                "at character 17: expected a value for op, found the end");
  ExpectFailure(Transform("remove_device", Small(), {"--stop_after=two"}), 2,
                "flag --stop_after takes a value of type int32, not \"two\"");
  ExpectFailure(Transform("remove_device", Small(), {"stray"}), 2,
                "unexpected argument \"stray\"");
}

TEST_F(TransformGraph, UnreadableInputIsOneSentence) {
  const std::string half = Small().SerializeAsString().substr(0, 60);
  folder.Write("g.pbtxt", "");
  for (const auto& [content, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"", "g.pbtxt is empty"},
           {half, "is not a TensorFlow graph"},
           {std::string("\xff\x00\x80", 3), "is not a TensorFlow graph"},
           {"node { nam: \"x\" }", "g.pbtxt:1:"},
       }) {
    const auto run = RunProgram(
        kTransformGraph,
        {"--in_graph=" + folder.Write("g.pbtxt", content),
         "--out_graph=" + folder.Path("out.pb"), "--transforms=remove_device"});
    ExpectFailure(run, 1, message);
  }
}

TEST_F(TransformGraph, AMissingInputIsOneSentence) {
  EXPECT_THAT(
      RunProgram(kTransformGraph,
                 {"--in_graph=/no/graph.pb", "--out_graph=out.pb",
                  "--transforms=remove_device"}),
      Exits(1,
            "transform_graph: cannot read /no/graph.pb: No such file or "
            "directory\n"));
}

TEST_F(TransformGraph, AnUnwritableOutputIsOneSentence) {
  const std::string in = folder.WriteText("g.pbtxt", Small());
  for (const std::string& out :
       {folder.Path("no/out.pb"), std::string("/proc/out.pb")}) {
    const auto run =
        RunProgram(kTransformGraph, {"--in_graph=" + in, "--out_graph=" + out,
                                     "--transforms=remove_device"});
    ExpectFailure(run, 1, "cannot write " + out);
  }
  ExpectFailure(Transform("remove_device", Small(), {"--dump_dir=/proc/dump"}),
                1, "cannot create the folder --dump_dir=/proc/dump");
}

TEST_F(TransformGraph, AFullDiskLeavesNothingBehind) {
  const auto run = RunProgram(
      kTransformGraph, {"--in_graph=" + folder.WriteText("g.pbtxt", Small()),
                        "--out_graph=/dev/full", "--transforms=remove_device"});
  ExpectFailure(run, 1, "cannot write /dev/full: No space left on device");
}

TEST_F(TransformGraph, AFailureLeavesTheOldOutputAlone) {
  folder.Write("out.pb", "old");
  EXPECT_THAT(Transform("remove_attribute(attribute_name=T)", Small()),
              Exits(1));
  EXPECT_EQ(folder.Read("out.pb"), "old");
  EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt", "out.pb"));
}

TEST_F(TransformGraph, AReadOnlyOutputIsReplacedAsOneFile) {
  folder.Write("out.pb", "old");
  ASSERT_EQ(chmod(folder.Path("out.pb").c_str(), 0444), 0);
  EXPECT_THAT(Transform("remove_device", Small()), Exits(0));
  EXPECT_EQ(folder.ReadGraphFile("out.pb").node_size(), 5);
}

TEST_F(TransformGraph, GivesUpAtTheTimeLimit) {
  ExpectFailure(Transform("remove_device", Small(), {"--timeout=0.001"}), 1,
                "was stopped after 0.001 s");
}

TEST_F(TransformGraph, HelpShowsTheFlagsOnly) {
  const auto run = RunProgram(kTransformGraph, {"--help"});
  EXPECT_THAT(run, Exits(0, ""));
  EXPECT_THAT(run.out, StartsWith("transform_graph: Runs transforms on a "
                                  "TensorFlow graph.\n\nUsage:\n"));
  for (const char* flag :
       {"in_graph", "out_graph", "inputs", "outputs", "transforms",
        "output_as_text", "plugins", "allow_override", "list_transforms",
        "describe", "dump_dir", "stop_after", "verify", "quiet", "timeout"}) {
    EXPECT_THAT(run.out, HasSubstr(absl::StrCat("\n  --", flag)));
  }
  EXPECT_THAT(run.out, HasSubstr("--noverify turns it off"));
  EXPECT_THAT(run.out, Not(HasSubstr("flagfile")));
  EXPECT_THAT(run.out, HasSubstr("Exit codes: 0 done, 1 failed"));
}

TEST_F(TransformGraph, ListsEveryTransformOnALine) {
  const auto run = RunProgram(kTransformGraph, {"--list_transforms"});
  EXPECT_THAT(run, Exits(0, ""));
  const std::vector<std::string> lines =
      absl::StrSplit(run.out, '\n', absl::SkipEmpty());
  // TensorFlow's 29, and ours; two of theirs under "stock:".
  EXPECT_EQ(lines.size(), 39);
  for (const std::string& line : lines) {
    EXPECT_THAT(line, MatchesRegex("[a-z0-9_:]+ +[A-Z].*\\."));
  }
}

TEST_F(TransformGraph, DescribesATransform) {
  const auto run = RunProgram(kTransformGraph, {"--describe=remove_nodes"});
  EXPECT_THAT(run, Exits(0));
  EXPECT_THAT(run.out,
              AllOf(StartsWith("remove_nodes (TensorFlow): Removes nodes"),
                    HasSubstr("\n  op (string, required, may be repeated)\n"),
                    HasSubstr("\n  max_inputs (int, default 1)\n"),
                    HasSubstr("\n  ignore_errors (bool, default false)\n"),
                    HasSubstr("\nPrerequisites: none\n")));
  for (std::string_view line : absl::StrSplit(run.out, '\n')) {
    EXPECT_LE(line.size(), 80) << line;
  }
}

TEST_F(TransformGraph, DescribeSuggestsTheNearestName) {
  EXPECT_THAT(RunProgram(kTransformGraph, {"--describe=remove_node"}),
              Exits(2, HasSubstr("did you mean \"remove_nodes\"?")));
}

TEST_F(TransformGraph, AReaderWhoLeavesEarlyIsNoError) {
  const auto run = RunProgram(
      "/bin/bash",
      {"-c", absl::StrCat("{ ", kTransformGraph,
                          " --list_transforms; echo $? >&2; } | true")});
  EXPECT_EQ(run.error, "141\n");
}

TEST_F(TransformGraph, LostOutputIsAnError) {
  const auto run = RunProgram(
      "/bin/sh",
      {"-c", absl::StrCat(kTransformGraph, " --list_transforms > /dev/full")});
  EXPECT_THAT(run, Exits(1));
  EXPECT_EQ(
      run.error,
      "transform_graph: cannot write the result: No space left on device\n");
}

TEST_F(TransformGraph, TensorFlowsNoticesDoNotReachTheUser) {
  EXPECT_THAT(RunProgram(kTransformGraph,
                         {"--in_graph=" + folder.WriteText("g.pbtxt", Small()),
                          "--outputs=y", "--out_graph=" + folder.Path("out.pb"),
                          "--transforms=fold_constants"},
                         {"TF_ENABLE_ONEDNN_OPTS=1", "TF_CPP_MIN_LOG_LEVEL=0"}),
              Exits(0, ""));
}

// Steps 7 to 10 of the recipe on a small model, without --inputs, and without
// --outputs but for the last step.
TEST_F(TransformGraph, TheRecipesQuantizationStepsRun) {
  const std::string log =
      std::filesystem::absolute("tests/data/calibration_log.txt");
  std::string graph =
      std::filesystem::absolute("tests/data/dynamic_classifier.pbtxt");
  int step = 0;
  const auto apply = [&](const std::string& transforms,
                         const std::vector<std::string>& more = {}) {
    const std::string next = folder.Path(absl::StrCat(++step, ".pb"));
    std::vector<std::string> arguments = {
        "--in_graph=" + graph, "--out_graph=" + next,
        "--transforms=" + absl::StrReplaceAll(transforms, {{"LOG", log}})};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = RunProgram(kTransformGraph, arguments);
    EXPECT_EQ(run.exit_code, 0) << transforms;
    EXPECT_EQ(run.error, "") << transforms;
    return next;
  };
  apply(
      "insert_logging(op=RequantizationRange, show_name=true, "
      "message=\"__requant_min_max:\")");
  graph = apply("freeze_requantization_ranges(min_max_log_file=\"LOG\")");
  apply("insert_logging(op=Min, show_name=true, message=\"__min:\")");
  graph = apply("freeze_min(min_max_log_file=\"LOG\")");
  graph = apply("freeze_max(min_max_log_file=\"LOG\")");
  const GraphDef input = folder.ReadGraphFile("1.pb");
  EXPECT_TRUE(HasNode(input, "hidden/MatMul_eightbit_requant_range__print__"));
  graph = apply("fuse_quantized_matmul_and_requantize strip_unused_nodes",
                {"--outputs=predict"});
  std::vector<std::string> ops;
  const GraphDef result = folder.ReadGraphFile("6.pb");
  for (const NodeDef& node : result.node()) {
    if (absl::StartsWith(node.op(), "Quantized")) ops.push_back(node.op());
  }
  EXPECT_THAT(
      ops, UnorderedElementsAre("QuantizedMatMulWithBiasAndReluAndRequantize",
                                "QuantizedMatMulWithBiasAndDequantize"));
}

}  // namespace
}  // namespace requant::transform_graph_test
