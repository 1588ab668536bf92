#include "transforms/registry.h"

#include <set>

#include "absl/strings/str_join.h"
#include "transforms/pipeline_parser.h"
#include "transforms/testing/testing.h"

namespace requant::registry_test {
namespace {

TransformRegistry& Registry() { return **TransformRegistry::Get(); }

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
  EXPECT_THAT(Registry().Find("fold_constant"),
              FailsWith(AllOf(HasSubstr("did you mean \"fold_constants\"?"),
                              HasSubstr("strip_unused_nodes"))));
}

TEST(Parameters, AreCheckedAgainstTheSpec) {
  for (const auto& [call, why] :
       Cases{{"freeze_min(min_percentil=3)",
              "no parameter \"min_percentil\" (did you mean "
              "\"min_percentile\"?); freeze_min takes min_max_log_file"},
             {"freeze_min(min_percentil=3)", "compat (bool, default false)"},
             {"remove_device(x=1)", "takes no parameters"},
             {"freeze_min(min_percentile=low)",
              "min_percentile of freeze_min takes a float, not \"low\""},
             {"freeze_min(min_percentile=nan)", "takes a float"},
             {"insert_logging(first_n=1.5)", "takes an int"},
             {"insert_logging(show_op=perhaps)", "takes a bool"},
             {"round_weights(num_steps=0)",
              "num_steps of round_weights is at least 2, not 0"},
             {"rename_op(old_op_name=A)",
              "rename_op needs the parameter new_op_name"},
             {"insert_logging(message=a, message=b)",
              "message of insert_logging is given 2 times"}}) {
    EXPECT_THAT(TransformError(call, {}), HasSubstr(why));
  }
}

TEST(Parameters, IgnoreErrorsIsAllowedEverywhere) {
  MustTransform("remove_device(ignore_errors=true)", {});
}

// "x:0" is the tensor "x", so its node keeps its name.
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

// Returns the calls with their parameters, as "a b(c=[d][e])".
std::string Parsed(std::string_view text) {
  const auto calls = ParsePipeline(text);
  EXPECT_OK(calls);
  std::vector<std::string> shown;
  for (const TransformCall& call :
       calls.value_or(std::vector<TransformCall>())) {
    shown.push_back(call.name);
    for (const auto& [name, values] : call.parameters) {
      absl::StrAppend(&shown.back(), "(", name, "=[",
                      absl::StrJoin(values, "]["), "])");
    }
  }
  return absl::StrJoin(shown, " ");
}

TEST(ParsePipeline, TakesNamesAndParameters) {
  for (const auto& [text, calls] :
       Cases{// As in the recipe.
             {"strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) "
              "remove_attribute(attribute_name=_class)",
              "strip_unused_nodes remove_nodes(op=[Identity][CheckNumerics]) "
              "remove_attribute(attribute_name=[_class])"},
             // Quoted values stay whole, except for backslashes before quotes
             // and backslashes.
             {R"(a(op=Min, message="a, b) \"c\" ", shape="1,2" x=y))",
              R"(a(message=[a, b) "c" ])(op=[Min])(shape=[1,2])(x=[y]))"},
             {R"(a(b="\\x\y\"z"))", R"(a(b=[\x\y"z]))"},
             {"\\\n  a \\\n  b(\\\n  c = d, \\\n )\\\n", "a b(c=[d])"},
             {"stock:insert_logging", "stock:insert_logging"},
             {" \n ", ""}}) {
    EXPECT_EQ(Parsed(text), calls);
  }
}

TEST(ParsePipeline, PointsAtTheMistake) {
  for (const auto& [text, why] :
       Cases{{"a(b", "at character 4: expected \"=\""},
             {"a(b=c", "\")\" to end the parameters of a"},
             {"a(b=\"c)", "a closing quote"},
             {"a(b=)", "a value for b, found \")\""},
             {"a, b", "the name of a transform"},
             {"a(=b)", "a parameter of a"}}) {
    EXPECT_THAT(ParsePipeline(text), FailsWith(HasSubstr(why)));
  }
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
