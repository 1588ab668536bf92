// Tests transforms from good and bad shared libraries.

#include <filesystem>

#include "absl/strings/str_replace.h"
#include "graph/graph_io.h"
#include "tests/support/program_runs.h"

namespace requant::plugins_test {
namespace {

constexpr char kBareTransformGraph[] = "transforms/transform_graph_bare";
constexpr char kExample[] = "transforms/example_plugin.so";
constexpr char kQuantization[] = "transforms/quantization_transforms.so";

GraphDef Small() {
  return GraphFromText(
      absl::StrCat(Placeholder("x"), Node("y", "Relu", {"x"}, {kFloat})));
}

class Plugins : public testing::Test, public TransformGraphRunner {
 protected:
  // Expects a refusal in one sentence and no output.
  void ExpectRefused(const std::string& plugin, const std::string& message,
                     const std::string& transforms = "remove_device") {
    EXPECT_THAT(Transform(transforms, Small(), {"--plugins=" + plugin}),
                Fails(MatchesRegex("transform_graph: [^\n]*\n"),
                      absl::StrReplaceAll(message, {{"PLUGIN", plugin}})));
    EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
  }
};

TEST_F(Plugins, TheExampleRuns) {
  EXPECT_THAT(Transform("prefix_names(prefix=\"tower/\")", Small(),
                        {absl::StrCat("--plugins=", kExample), "--inputs=x"}),
              AllOf(Prints("prefix_names: puts \"tower/\" before 1 name\n"),
                    Exits(0, "")));
  const GraphDef graph = folder.ReadGraphFile("out.pb");
  EXPECT_THAT(NodeNamed(graph, "tower/y").input(), ElementsAre("x"));
}

TEST_F(Plugins, ParametersAreCheckedAsThoseOfOthers) {
  EXPECT_THAT(Transform("prefix_names(prefx=a)", Small(),
                        {absl::StrCat("--plugins=", kExample)}),
              Misused("did you mean \"prefix\"?"));
}

TEST_F(Plugins, AreListedAndDescribed) {
  const std::string plugins = absl::StrCat("--plugins=", kExample);
  EXPECT_THAT(RunProgram(kTransformGraph, {plugins, "--list_transforms"}).out,
              HasSubstr("\nprefix_names  "));
  EXPECT_THAT(
      RunProgram(kTransformGraph, {plugins, "--describe=prefix_names"}).out,
      HasSubstr(absl::StrCat("prefix_names (", kExample, "): ")));
}

TEST_F(Plugins, SeveralAtOnce) {
  EXPECT_THAT(Transform("prefix_names(prefix=a) throw_int", Small(),
                        {absl::StrCat("--plugins=", kExample,
                                      ",tests/plugins/odd_plugin.so"),
                         "--stop_after=1"}),
              Exits(0));
  EXPECT_TRUE(HasNode(folder.ReadGraphFile("out.pb"), "ay"));
}

TEST_F(Plugins, ANameWithoutASlashIsAFileHere) {
  std::filesystem::copy_file(kExample, folder.Path("example.so"));
  folder.WriteText("g.pbtxt", Small());
  EXPECT_THAT(
      RunIn(folder, kTransformGraph,
            {"--in_graph=g.pbtxt", "--out_graph=out.pb", "--plugins=example.so",
             "--transforms=prefix_names(prefix=a)"}),
      Exits(0));
  EXPECT_TRUE(HasNode(folder.ReadGraphFile("out.pb"), "ay"));
}

TEST_F(Plugins, WhatIsNoneOrABadOneIsRefused) {
  for (const auto& [plugin, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"/no/plugin.so",
            "the plugin PLUGIN does not exist or is not readable"},
           {std::filesystem::absolute("tests/data/calibration_log.txt"),
            "the plugin PLUGIN cannot be loaded: "},
           {"tests/plugins/not_a_plugin.so",
            "PLUGIN is not a Requant plugin: it has no symbol "
            "requant_plugin_description; build it against "
            "transforms/transform.h"},
           {"tests/plugins/other_abi_plugin.so",
            "the plugin PLUGIN was built for plugin interface 999, this "
            "program has 1; build it again"},
           // Each plugin is checked by its own description.
           {absl::StrCat(kExample, ",tests/plugins/other_abi_plugin.so"),
            "the plugin tests/plugins/other_abi_plugin.so was built for "
            "plugin interface 999"},
           {"tests/plugins/empty_plugin.so",
            "the plugin PLUGIN registers no transform"},
           {"tests/plugins/odd_name_plugin.so",
            "the plugin PLUGIN registers the name \"do nothing\", which "
            "cannot be called"},
           {"tests/plugins/throwing_at_load_plugin.so",
            "loading the plugin PLUGIN was ended by SIGABRT"}}) {
    ExpectRefused(plugin, message);
  }
}

TEST_F(Plugins, AnExceptionIsAFailureOfTheTransform) {
  ExpectRefused("tests/plugins/odd_plugin.so",
                "throw_exception: the plugin PLUGIN threw \"no such luck\"",
                "throw_exception");
  ExpectRefused("tests/plugins/odd_plugin.so",
                "throw_int: the plugin PLUGIN threw an exception", "throw_int");
}

TEST_F(Plugins, ATakenNameIsRefused) {
  ExpectRefused("tests/plugins/taken_name_plugin.so",
                "the plugin PLUGIN registers \"remove_device\", which "
                "TensorFlow already has; rename it or pass --allow_override");
  ExpectRefused(absl::StrCat(kExample, ",", kExample),
                absl::StrCat("registers \"prefix_names\", which ", kExample,
                             " already has"));
}

TEST_F(Plugins, WithAllowOverrideATakenNameIsReplacedAndPrinted) {
  const Words flags = {"--plugins=tests/plugins/taken_name_plugin.so",
                       "--allow_override"};
  EXPECT_THAT(Transform("remove_device", Small(), flags),
              Exits(0,
                    "transform_graph: note: \"remove_device\" of TensorFlow is "
                    "replaced by tests/plugins/taken_name_plugin.so\n"));
  EXPECT_EQ(folder.ReadGraphFile("out.pb").node(0).device(), "/device:CPU:7");
  // TensorFlow's transform remains available.
  EXPECT_THAT(Transform("remove_device stock:remove_device", Small(), flags),
              Exits(0));
  EXPECT_EQ(folder.ReadGraphFile("out.pb").node(0).device(), "");
}

// Requant's transforms give the same bytes when linked into the program as they
// give from a plugin in a program that has none of them.
TEST_F(Plugins, TheQuantizationTransformsAreTheSameAsAPlugin) {
  const std::string log =
      std::filesystem::absolute("tests/data/calibration_log.txt");
  ASSERT_OK_AND_ASSIGN(const GraphDef graph,
                       ReadGraph("tests/data/dynamic_classifier.pbtxt"));
  const std::string freeze = absl::StrReplaceAll(
      "freeze_requantization_ranges(min_max_log_file=\"LOG\") "
      "freeze_min(min_max_log_file=\"LOG\") "
      "freeze_max(min_max_log_file=\"LOG\") ",
      {{"LOG", log}});
  for (const std::string& transforms :
       {std::string("insert_logging(op=Min, op=RequantizationRange)"), freeze,
        freeze + "fuse_quantized_matmul_and_requantize"}) {
    const auto linked = Transform(transforms, graph);
    EXPECT_THAT(linked, Exits(0));
    const std::string expected = folder.Read("out.pb");
    EXPECT_THAT(Transform(transforms, graph,
                          {absl::StrCat("--plugins=", kQuantization),
                           "--allow_override"},
                          kBareTransformGraph),
                Prints(testing::Eq(linked.out)));
    EXPECT_EQ(folder.Read("out.pb"), expected);
  }
}

TEST_F(Plugins, TheBareProgramHasNoneOfTheQuantizationTransforms) {
  for (const char* name :
       {"freeze_min", "freeze_max", "fuse_quantized_matmul_and_requantize"}) {
    EXPECT_THAT(Transform(name, Small(), {}, kBareTransformGraph), Exits(2));
  }
  EXPECT_THAT(
      RunProgram(kBareTransformGraph, {"--describe=insert_logging"}).out,
      StartsWith("insert_logging (TensorFlow)"));
}

}  // namespace
}  // namespace requant::plugins_test
