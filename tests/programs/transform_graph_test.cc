// Tests transform_graph as people run it.

#include <sys/stat.h>

#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "tests/support/program_runs.h"

namespace requant::transform_graph_test {
namespace {

// Returns x -> y = x · w, with an Identity between and an unneeded node.
std::string SmallText() {
  return GraphText(R"(
    x = Placeholder dtype=float shape=<?,2>
    w = float<2,2>{1,2,3,4}
    identity = Identity(w) T=float
    y = MatMul(x, identity) T=float
    unused = Relu(y) T=float
    versions { producer: 1205 }
  )");
}

GraphDef Small() { return GraphFromText(SmallText()); }

class TransformGraph : public testing::Test, public TransformGraphRunner {
 protected:
  // Expects a failure with this exit code, one line on stderr and no output.
  void ExpectFailure(const ProgramRun& run, int exit_code,
                     const std::string& message) {
    EXPECT_THAT(
        run, Exits(exit_code,
                   Having(MatchesRegex("transform_graph: [^\n]*\n"), message)));
    EXPECT_THAT(run.out, Not(HasSubstr("->")));
    EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
  }

  // Transforms the small graph.
  ProgramRun Run(const std::string& transforms, const Words& more = {}) {
    return Transform(transforms, Small(), more);
  }
  GraphDef Out() { return folder.ReadGraphFile("out.pb"); }
};

TEST_F(TransformGraph, RunsTransformsInOrderAndSumsUp) {
  EXPECT_THAT(Run("strip_unused_nodes remove_nodes(op=Identity)",
                  {"--inputs=x", "--outputs=y"}),
              AllOf(Prints(MatchesRegex("5 -> 3 nodes \\(-40 %\\), [0-9]+ -> "
                                        "[0-9]+ B \\(-[0-9]+ %\\)\n")),
                    Exits(0, "")));
  EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt", "out.pb"));
  const GraphDef graph = Out();
  EXPECT_THAT(NodesOf(graph), UnorderedElementsAre("x", "w", "y"));
  EXPECT_EQ(NodeNamed(graph, "y").input(1), "w");
  EXPECT_EQ(graph.versions().producer(), 1205);
}

TEST_F(TransformGraph, WithIgnoreErrorsAFailureBecomesAWarning) {
  EXPECT_THAT(
      Run("freeze_min(min_max_log_file=absent, ignore_errors=true) "
          "rename_node(old_node_name=unused, new_node_name=used)"),
      Warns(MatchesRegex("transform_graph: warning: freeze_min: ignoring an "
                         "error: [^\n]*\n")));
  EXPECT_THAT(NodesOf(Out()), ElementsAre("x", "w", "identity", "y", "used"));
}

TEST_F(TransformGraph, WritesTextWhenAskedTo) {
  EXPECT_THAT(Run("remove_device", {"--output_as_text"}), Exits(0));
  EXPECT_THAT(folder.Read("out.pb"), StartsWith("node {\n  name: \"x\"\n"));
  EXPECT_EQ(Out().node_size(), 5);
}

TEST_F(TransformGraph, ReadsASavedModelByItsTags) {
  folder.Write(
      "model/saved_model.pbtxt",
      absl::StrCat(
          "saved_model_schema_version: 1 "
          "meta_graphs { meta_info_def { tags: \"serve\" } graph_def {",
          SmallText(),
          "} } meta_graphs { meta_info_def { tags: \"train\" } "
          "graph_def {",
          Placeholder("t"), "} }"));
  EXPECT_THAT(Run("remove_device", {"--in_graph=" + folder.Path("model"),
                                    "--saved_model_tags=train"}),
              Exits(0));
  EXPECT_THAT(NodesOf(Out()), ElementsAre("t"));
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
  ASSERT_THAT(Run(transforms, names), Exits(0));
  const std::string first = folder.Read("out.pb");
  ASSERT_THAT(Run(transforms, names), Exits(0));
  EXPECT_EQ(folder.Read("out.pb"), first);
}

TEST_F(TransformGraph, QuietPrintsNothing) {
  EXPECT_THAT(Run("insert_logging(op=MatMul)", {"--quiet"}),
              AllOf(Prints(testing::Eq("")), Exits(0, "")));
}

TEST_F(TransformGraph, AGraphToStandardOutputHasNoOtherLinesInIt) {
  EXPECT_THAT(Run("insert_logging(op=MatMul)",
                  {"--out_graph=/dev/stdout", "--output_as_text"}),
              Prints(StartsWith("node {"), Not(HasSubstr(" nodes "))));
}

TEST_F(TransformGraph, TellsWhichTransformChangesNothing) {
  EXPECT_THAT(Run("remove_nodes(op=Identity) remove_nodes(op=Identity)").out,
              StartsWith("remove_nodes: changes nothing\n5 -> 4 "));
}

TEST_F(TransformGraph, DumpsTheGraphAfterEveryTransform) {
  EXPECT_THAT(
      Run("remove_nodes(op=Identity) stock:rename_node(old_node_name=y, "
          "new_node_name=z)",
          {"--dump_dir=" + folder.Path("dump")}),
      Exits(0));
  EXPECT_THAT(NodesOf(folder.ReadGraphFile("dump/01_remove_nodes.pb")),
              ElementsAre("x", "w", "y", "unused"));
  EXPECT_EQ(folder.Read("dump/02_rename_node.pb"), folder.Read("out.pb"));
}

TEST_F(TransformGraph, DumpsTheGraphThatWasBroken) {
  EXPECT_THAT(Run("remove_attribute(attribute_name=T)",
                  {"--dump_dir=" + folder.Path("dump")}),
              Exits(1));
  const GraphDef dumped = folder.ReadGraphFile("dump/01_remove_attribute.pb");
  EXPECT_TRUE(NodeNamed(dumped, "y").attr().empty());
  EXPECT_THAT(folder.Names(), ElementsAre("dump", "g.pbtxt"));
}

TEST_F(TransformGraph, StopsAfterSoManyTransforms) {
  const std::string transforms =
      "remove_nodes(op=Identity) rename_node(old_node_name=y, new_node_name=z)";
  EXPECT_THAT(Run(transforms, {"--stop_after=1"}), Exits(0));
  EXPECT_THAT(NodesOf(Out()), ElementsAre("x", "w", "y", "unused"));
  EXPECT_THAT(Run(transforms, {"--stop_after=0"}), Exits(0));
  EXPECT_EQ(Out().node_size(), 5);
}

TEST_F(TransformGraph, NamesTheTransformThatBreaksTheGraph) {
  ExpectFailure(Run("remove_device remove_attribute(attribute_name=T)"), 1,
                "the transform \"remove_attribute\" broke the graph: node "
                "\"identity\" (Identity) lacks the attribute \"T\"");
}

// A TensorFlow with that op may run the graph; later transforms still run.
TEST_F(TransformGraph, WarnsOfAnUnknownOpThatWasAskedFor) {
  EXPECT_THAT(
      Run("rename_op(old_op_name=MatMul, new_op_name=MatMull) obfuscate_names",
          {"--inputs=x", "--outputs=y"}),
      Exits(0,
            "transform_graph: warning: rename_op: node \"y\" (MatMull) has an "
            "unknown op (did you mean \"MatMul\"?)\n"));
  EXPECT_EQ(NodeNamed(Out(), "y").op(), "MatMull");
}

TEST_F(TransformGraph, NoverifyLetsABrokenGraphPass) {
  EXPECT_THAT(Run("remove_attribute(attribute_name=T)", {"--noverify"}),
              Exits(0));
  EXPECT_TRUE(NodeNamed(Out(), "y").attr().empty());
}

TEST_F(TransformGraph, RefusesAGraphThatIsBrokenFromTheStart) {
  const GraphDef graph = GraphFromText(
      absl::StrCat(Placeholder("x"), Node("y", "Relu", {"z"}, {kFloat})));
  ExpectFailure(Transform("remove_device", graph), 1,
                "the input graph is broken: node \"y\" (Relu) reads \"z\"");
}

// A graph that lacked an input before is written only if this was repaired.
TEST_F(TransformGraph, RefusesToWriteAGraphThatLacksAnInput) {
  const GraphDef incomplete = GraphFromText(R"(
    x = Placeholder dtype=float
    m = MatMul(x) T=float
    y = Relu(m) T=float
    z = Relu(x) T=float
  )");
  const GraphDef function = GraphFromText(R"(
    x = Placeholder dtype=float
    y = StatefulPartitionedCall(x) f=@f Tin=[float] Tout=[float]
    function f(a) -> (r=n:activations:0) {
      n = Relu(gone) T=float
    }
  )");
  ExpectFailure(Transform("remove_device", incomplete), 1,
                "node \"m\" (MatMul) takes 2 inputs but has 1");
  ExpectFailure(Transform("remove_device", function), 1,
                "reads \"gone\", which names no node or argument");
  const GraphDef fragment = GraphFromText(
      absl::StrCat(Placeholder("x"), Node("r", "Relu", {}, {kFloat})));
  ExpectFailure(Transform("remove_device", fragment, {"--outputs=r"}), 1,
                "node \"r\" (Relu) takes 1 input but has 0");
  EXPECT_THAT(Transform("remove_device", incomplete, {"--noverify"}), Exits(0));
  EXPECT_THAT(Transform("strip_unused_nodes", incomplete, {"--outputs=z"}),
              Exits(0));
  EXPECT_THAT(Transform("remove_device", fragment), Exits(0));
}

// A problem that the input graph had is no transform's fault, however the
// transform changes the affected node.
TEST_F(TransformGraph, DoesNotBlameATransformForWhatWasThere) {
  const struct {
    const char *transforms, *graph;
  } kCases[] = {
      {"obfuscate_names remove_device", R"(
         x = Placeholder dtype=float
         a = FrobnicateV2(x) T=float
         y = Relu(a) T=float)"},
      // One of several nodes with an unknown op is removed.
      {"strip_unused_nodes", R"(
         x = Placeholder dtype=float
         y = FrobnicateV2(x)
         a = FrobnicateV2(y))"},
      // Attributes are missing in another op and in a function's body.
      {"backport_concatv2 rename_node(old_node_name=a, new_node_name=b)", R"(
         x = Placeholder dtype=float
         a = int32{0}
         y = ConcatV2(x, x, a))"},
      {"inline_partitionedcall", R"(
         x = Placeholder dtype=float
         a = PartitionedCall(x) f=@f Tin=[float] Tout=[float]
         y = Relu(a) T=float
         function f(c) -> (d=r:activations:0) {
           r = Relu(c)
         })"},
      // Shapes are not checked as long as there is an unknown op.
      {"strip_unused_nodes", R"(
         x = float<2,3>{0}
         y = MatMul(x, x) T=float
         a = FrobnicateV2(y))"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.transforms);
    EXPECT_THAT(Transform(test.transforms, GraphFromText(test.graph),
                          {"--inputs=x", "--outputs=y"}),
                Warns(MatchesRegex("transform_graph: warning: TensorFlow "
                                   "cannot run the input graph: [^\n]*\n")));
    EXPECT_FALSE(HasNode(Out(), "a"));
  }
}

TEST_F(TransformGraph, NamesTheTransformThatAddsAnotherKindOfProblem) {
  const GraphDef graph = GraphFromText(
      SmallText() + Node("custom", "FrobnicateV2", {"y"}, {kFloat}));
  EXPECT_THAT(Transform("remove_attribute(attribute_name=T)", graph),
              Fails("the transform \"remove_attribute\" broke "
                    "the graph: node \"identity\" (Identity) "
                    "lacks the attribute \"T\""));
}

TEST_F(TransformGraph, RefusesToStripWithoutOutputs) {
  ExpectFailure(Run("strip_unused_nodes"), 1,
                "strip_unused_nodes needs the names of the graph's outputs");
  ExpectFailure(Run("strip_unused_nodes", {"--outputs=yy"}), 1,
                "--outputs names \"yy\" (did you mean \"y\"?), which is not "
                "in the graph");
}

TEST_F(TransformGraph, WarnsOfAnInputThatIsNotInTheGraph) {
  EXPECT_THAT(
      Run("strip_unused_nodes", {"--inputs=identiti", "--outputs=y:0"}),
      Exits(
          0,
          "transform_graph: warning: --inputs names \"identiti\" (did you mean "
          "\"identity\"?), which is not in the graph\n"));
}

TEST_F(TransformGraph, TakesAnOutputThatATransformGivesItsName) {
  EXPECT_THAT(
      Run("rename_node(old_node_name=y, new_node_name=z) strip_unused_nodes",
          {"--inputs=x", "--outputs=z"}),
      Exits(0, ""));
}

TEST_F(TransformGraph, MistakesAreFoundBeforeTheGraphIsRead) {
  EXPECT_THAT(Run("remove_device frobnicate", {"--in_graph=missing.pb"}),
              Misused("there is no transform \"frobnicate\""));
}

TEST_F(TransformGraph, MistakesAreUsageErrors) {
  EXPECT_EQ(RunProgram(kTransformGraph, {}).error,
            "transform_graph: --in_graph is missing; see transform_graph "
            "--help\n");
  const struct {
    const char *transforms, *flag, *message;
  } kCases[] = {
      {"remove_devices", "--verify",
       "there is no transform \"remove_devices\" (did you mean "
       "\"remove_device\"?); there are: add_default_attributes, "},
      {"", "--describe=remove_node", "did you mean \"remove_nodes\"?"},
      {"remove_device", "--out_graf=x",
       "unknown flag --out_graf (did you mean \"out_graph\"?)"},
      {"", "--verify", "--transforms is missing"},
      {" \\\n ", "--verify", "--transforms names no transform"},
      {"remove_nodes(op=", "--verify",
       "at character 17: expected a value for op, found the end"},
      {"remove_device", "stray", "unexpected argument \"stray\""},
  };
  for (const auto& test : kCases) {
    ExpectFailure(Run(test.transforms, {test.flag}), 2, test.message);
  }
}

// graph_io_test.cc tests everything that can be wrong with a file.
TEST_F(TransformGraph, UnreadableInputIsOneSentence) {
  const std::string in = folder.Write("g.pbtxt", "node { nam: \"x\" }");
  const auto read = [&](const std::string& path) {
    return RunProgram(kTransformGraph, {"--in_graph=" + path,
                                        "--out_graph=" + folder.Path("out.pb"),
                                        "--transforms=remove_device"});
  };
  ExpectFailure(read(in), 1, "g.pbtxt:1:");
  ExpectFailure(read("/no/graph.pb"), 1,
                "transform_graph: cannot read /no/graph.pb: No such file or "
                "directory\n");
}

TEST_F(TransformGraph, AnUnwritableOutputIsOneSentence) {
  for (const std::string& out :
       {folder.Path("no/out.pb"), std::string("/proc/out.pb"),
        std::string("/dev/full")}) {
    ExpectFailure(Run("remove_device", {"--out_graph=" + out}), 1,
                  "cannot write " + out);
  }
  ExpectFailure(Run("remove_device", {"--dump_dir=/proc/dump"}), 1,
                "cannot create the folder --dump_dir=/proc/dump");
}

TEST_F(TransformGraph, AReadOnlyOutputIsReplacedAsOneFile) {
  folder.Write("out.pb", "old");
  ASSERT_EQ(chmod(folder.Path("out.pb").c_str(), 0444), 0);
  EXPECT_THAT(Run("remove_device"), Exits(0));
  EXPECT_EQ(Out().node_size(), 5);
}

TEST_F(TransformGraph, HelpShowsTheFlagsOnly) {
  const auto run = RunProgram(kTransformGraph, {"--help"});
  EXPECT_THAT(run,
              Prints(StartsWith("transform_graph: Runs transforms on a "
                                "TensorFlow graph.\n\nUsage:\n"),
                     "--noverify turns it off", "Exit codes: 0 done, 1 failed",
                     Not(HasSubstr("flagfile"))));
  for (const char* flag :
       {"in_graph", "out_graph", "inputs", "outputs", "transforms",
        "output_as_text", "plugins", "allow_override", "list_transforms",
        "describe", "dump_dir", "stop_after", "verify", "quiet", "timeout"}) {
    EXPECT_THAT(run.out, HasSubstr(absl::StrCat("\n  --", flag)));
  }
}

TEST_F(TransformGraph, ListsEveryTransformOnALine) {
  const auto run = RunProgram(kTransformGraph, {"--list_transforms"});
  EXPECT_THAT(run, Exits(0, ""));
  const std::vector<std::string> lines =
      absl::StrSplit(run.out, '\n', absl::SkipEmpty());
  // TensorFlow has 29, two of which are under "stock:"; the rest are Requant's.
  EXPECT_EQ(lines.size(), 40);
  for (const std::string& line : lines) {
    EXPECT_THAT(line, MatchesRegex("[a-z0-9_:]+ +[A-Z].*\\."));
  }
}

TEST_F(TransformGraph, DescribesATransform) {
  const auto run = RunProgram(kTransformGraph, {"--describe=remove_nodes"});
  EXPECT_THAT(run,
              Prints(StartsWith("remove_nodes (TensorFlow): Removes nodes"),
                     "\n  op (string, required, may be repeated)\n",
                     "\n  max_inputs (int, default 1)\n",
                     "\n  ignore_errors (bool, default false)\n",
                     "\nPrerequisites: none\n"));
  for (std::string_view line : absl::StrSplit(run.out, '\n')) {
    EXPECT_LE(line.size(), 80) << line;
  }
}

TEST_F(TransformGraph, ItsReferenceIsWhatItPrints) {
  const auto run = RunProgram(kTransformGraph, {"--transforms_markdown"});
  ASSERT_THAT(run, Exits(0));
  ASSERT_OK_AND_ASSIGN(const auto page, ReadFile("docs/transforms.md"));
  EXPECT_TRUE(page == run.out)
      << "docs/transforms.md is out of date; refresh it with\n"
         "  bazel-bin/transforms/transform_graph --transforms_markdown "
         "> docs/transforms.md";
}

TEST_F(TransformGraph, AReaderWhoLeavesEarlyIsNoError) {
  EXPECT_EQ(RunProgram("/bin/bash",
                       {"-c", absl::StrCat(
                                  "{ ", kTransformGraph,
                                  " --list_transforms; echo $? >&2; } | true")})
                .error,
            "141\n");
}

TEST_F(TransformGraph, TensorFlowsNoticesDoNotReachTheUser) {
  EXPECT_THAT(RunProgram(kTransformGraph,
                         {"--in_graph=" + folder.WriteText("g.pbtxt", Small()),
                          "--outputs=y", "--out_graph=" + folder.Path("out.pb"),
                          "--transforms=fold_constants"},
                         {"TF_ENABLE_ONEDNN_OPTS=1", "TF_CPP_MIN_LOG_LEVEL=0"}),
              Exits(0, ""));
}

}  // namespace
}  // namespace requant::transform_graph_test
