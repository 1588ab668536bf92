#include "transforms/pipeline_parser.h"

#include "graph/testing/testing.h"

namespace requant::pipeline_parser_test {
namespace {

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
}  // namespace requant::pipeline_parser_test
