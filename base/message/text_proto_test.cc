#include "base/message/text_proto.h"

#include "base/message/json_example.pb.h"
#include "base/testing/testing.h"

namespace requant::text_proto_test {
namespace {

std::vector<std::string> Problems(const std::string& text, bool passes) {
  std::vector<std::string> problems;
  TextProtoOptions options;
  options.passes_unknown_fields = passes;
  JsonExample message;
  ParseTextProto(
      text, options,
      [&](int line, int column, std::string_view problem) {
        const auto unknown =
            FindUnknownField(problem, *JsonExample::descriptor());
        problems.push_back(absl::StrCat(
            line, ":", column, ": ",
            unknown.has_value() ? unknown->sentence : std::string(problem)));
      },
      &message);
  return problems;
}

TEST(ParseTextProto, ReportsThePlacesOfMistakes) {
  const std::string text = "textt: 'a'\n numberr: 1\n {";
  EXPECT_THAT(Problems(text, false),
              ElementsAre("1:6: JsonExample has no field \"textt\""));
  EXPECT_THAT(Problems(text, true),
              ElementsAre(HasSubstr("JsonExample has no field \"textt\""),
                          HasSubstr("JsonExample has no field \"numberr\""),
                          HasSubstr("3:2: ")));
}

TEST(FileProblems, AreSortedByLineAndCountedOnce) {
  FileProblems problems("f");
  EXPECT_TRUE(problems.status().ok());
  problems.Add(7, "late\n");
  problems.Add(2, "early");
  problems.Add(2, "early");
  problems.Add(0, "whole");
  EXPECT_EQ(problems.status().message(),
            "f: whole\nf:2: early\nf:7: late\\x0a");
  for (int i = 10; i < 120; ++i) problems.Add(i, "more");
  EXPECT_TRUE(problems.full());
  EXPECT_THAT(std::string(problems.status().message()),
              HasSubstr("f: and 13 more mistakes"));
}

}  // namespace
}  // namespace requant::text_proto_test
