#include "transforms/registry.h"

#include <set>

#include "transforms/pipeline_parser.h"
#include "transforms/stock_specs.h"
#include "transforms/testing/testing.h"

namespace requant::registry_test {
namespace {

TransformRegistry& Registry() { return **TransformRegistry::Get(); }

std::string FindError(const std::string& name) {
  return std::string(Registry().Find(name).status().message());
}

std::string RunError(const std::string& transform) {
  return std::string(RunTransform(transform, {}).status.message());
}

TEST(Registry, HasTensorFlowsTransformsAndOurs) {
  int stock = 0;
  for (const auto* transform : Registry().All()) {
    stock += transform->origin == "TensorFlow";
  }
  EXPECT_EQ(stock, 29);
  EXPECT_EQ(Registry().Find("freeze_min").value()->origin, "Requant");
}

TEST(Registry, EveryStockTransformIsDescribed) {
  std::set<std::string> described;
  for (const TransformSpec& spec : StockSpecs()) {
    EXPECT_TRUE(described.insert(spec.name).second) << spec.name;
    EXPECT_TRUE(Registry().Find("stock:" + spec.name).ok()) << spec.name;
  }
  EXPECT_EQ(described.size(), 29);
}

TEST(Registry, OursShadowTheirsWhichStayReachable) {
  for (const char* name : {"insert_logging", "freeze_requantization_ranges"}) {
    EXPECT_EQ(Registry().Find(name).value()->origin, "Requant");
    EXPECT_EQ(Registry().Find(std::string("stock:") + name).value()->origin,
              "TensorFlow");
  }
  EXPECT_EQ(Registry().Find("stock:fold_constants").value(),
            Registry().Find("fold_constants").value());
  EXPECT_FALSE(Registry().Find("stock:freeze_min").ok());
}

TEST(Registry, AnUnknownNameSuggestsTheNearestAndListsAll) {
  EXPECT_THAT(FindError("fold_constant"),
              AllOf(HasSubstr("did you mean \"fold_constants\"?"),
                    HasSubstr("strip_unused_nodes")));
}

TEST(Parameters, AnUnknownOneSuggestsTheNearestAndListsTheAllowed) {
  EXPECT_THAT(RunError("freeze_min(min_percentil=3)"),
              AllOf(HasSubstr("no parameter \"min_percentil\""),
                    HasSubstr("did you mean \"min_percentile\"?"),
                    HasSubstr("compat (bool, default false)")));
  EXPECT_THAT(RunError("remove_device(x=1)"), HasSubstr("takes no parameters"));
}

TEST(Parameters, AWrongTypeIsRefused) {
  EXPECT_THAT(
      RunError("freeze_min(min_percentile=low)"),
      HasSubstr("min_percentile of freeze_min takes a float, not \"low\""));
  EXPECT_THAT(RunError("freeze_min(min_percentile=nan)"),
              HasSubstr("takes a float"));
  EXPECT_THAT(RunError("insert_logging(first_n=1.5)"),
              HasSubstr("takes an int"));
  EXPECT_THAT(RunError("insert_logging(show_op=perhaps)"),
              HasSubstr("takes a bool"));
}

TEST(Parameters, ANumberBelowTheMinimumIsRefused) {
  EXPECT_THAT(RunError("round_weights(num_steps=0)"),
              HasSubstr("num_steps of round_weights is at least 2, not 0"));
}

TEST(Parameters, AMissingRequiredOneIsNamed) {
  EXPECT_THAT(RunError("rename_op(old_op_name=A)"),
              HasSubstr("rename_op needs the parameter new_op_name"));
}

TEST(Parameters, OnlyRepeatableOnesMayBeRepeated) {
  EXPECT_THAT(RunError("insert_logging(message=a, message=b)"),
              HasSubstr("message of insert_logging is given 2 times"));
}

TEST(Parameters, IgnoreErrorsIsAllowedEverywhere) {
  EXPECT_TRUE(
      RunTransform("remove_device(ignore_errors=true)", {}).status.ok());
}

// "x:0" is the tensor "x": its node keeps its name.
TEST(StockTransforms, KnowInputsAndOutputsByTheirNodes) {
  const auto graph =
      GraphFromText("x = Placeholder; twin = Relu(x); y = Relu(x)");
  for (const char* transform : {"obfuscate_names", "merge_duplicate_nodes"}) {
    const auto plain = MustTransform(transform, graph, {"x"}, {"y"});
    EXPECT_TRUE(HasNode(plain.graph, "y"));
    EXPECT_EQ(
        RunTransform(transform, graph, {"x:0"}, {"y:0"}).graph.DebugString(),
        plain.graph.DebugString())
        << transform;
  }
}

TEST(StockTransforms, KeepFunctionLibraryAndVersions) {
  const auto graph = GraphFromText(R"(
    a = NoOp device:'/gpu:0'
    function f() -> () {
    }
    versions { producer: 1205 }
  )");
  const auto run = MustTransform("remove_device", graph);
  EXPECT_EQ(run.graph.node(0).device(), "");
  EXPECT_EQ(run.graph.library().function(0).signature().name(), "f");
  EXPECT_EQ(run.graph.versions().producer(), 1205);
}

std::string ParseError(std::string_view text) {
  return std::string(ParsePipeline(text).status().message());
}

TEST(ParsePipeline, TakesTheRecipesStrings) {
  ASSERT_OK_AND_ASSIGN(
      const auto calls,
      ParsePipeline(
          "strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) "
          "remove_attribute(attribute_name=_class)"));
  ASSERT_EQ(calls.size(), 3);
  EXPECT_EQ(calls[0].name, "strip_unused_nodes");
  EXPECT_THAT(calls[1].parameters.at("op"),
              ElementsAre("Identity", "CheckNumerics"));
  EXPECT_THAT(calls[2].parameters.at("attribute_name"), ElementsAre("_class"));
}

TEST(ParsePipeline, KeepsQuotedValuesWhole) {
  ASSERT_OK_AND_ASSIGN(
      const auto calls,
      ParsePipeline(
          R"(insert_logging(op=Min, message="a, b) \"c\" ", shape="1,2" x=y))"));
  const auto& parameters = calls[0].parameters;
  EXPECT_THAT(parameters.at("message"), ElementsAre("a, b) \"c\" "));
  EXPECT_THAT(parameters.at("shape"), ElementsAre("1,2"));
  EXPECT_THAT(parameters.at("x"), ElementsAre("y"));
}

TEST(ParsePipeline, ABackslashBeforeAnythingButAQuoteStaysInAValue) {
  ASSERT_OK_AND_ASSIGN(const auto calls, ParsePipeline(R"(a(b="\\x\y\"z"))"));
  EXPECT_THAT(calls[0].parameters.at("b"), ElementsAre(R"(\x\y"z)"));
}

TEST(ParsePipeline, SkipsBackslashedLineBreaks) {
  ASSERT_OK_AND_ASSIGN(
      const auto calls,
      ParsePipeline("\\\n  a \\\n  b(\\\n  c = d, \\\n )\\\n"));
  ASSERT_EQ(calls.size(), 2);
  EXPECT_THAT(calls[1].parameters.at("c"), ElementsAre("d"));
}

TEST(ParsePipeline, TakesStockNames) {
  EXPECT_EQ((*ParsePipeline("stock:insert_logging"))[0].name,
            "stock:insert_logging");
}

TEST(ParsePipeline, PointsAtTheMistake) {
  EXPECT_THAT(ParseError("a(b"), HasSubstr("at character 4: expected \"=\""));
  EXPECT_THAT(ParseError("a(b=c"),
              HasSubstr("\")\" to end the parameters of a"));
  EXPECT_THAT(ParseError("a(b=\"c)"), HasSubstr("a closing quote"));
  EXPECT_THAT(ParseError("a(b=)"), HasSubstr("a value for b, found \")\""));
  EXPECT_THAT(ParseError("a, b"), HasSubstr("the name of a transform"));
  EXPECT_THAT(ParseError("a(=b)"), HasSubstr("a parameter of a"));
}

TEST(ParsePipeline, AnEmptyTextHasNoTransforms) {
  EXPECT_TRUE(ParsePipeline(" \n ")->empty());
}

TEST(ParseNameList, TakesWhatPeoplePaste) {
  EXPECT_THAT(ParseNameList("Placeholder,Placeholder_1, \\\n  Placeholder_2,  "
                            "\\\n   Placeholder_3"),
              ElementsAre("Placeholder", "Placeholder_1", "Placeholder_2",
                          "Placeholder_3"));
  EXPECT_THAT(ParseNameList(""), ElementsAre());
}

}  // namespace
}  // namespace requant::registry_test
