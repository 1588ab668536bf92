#include "workflows/language/workflow_file.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "base/testing/fuzz_rounds.h"
#include "base/testing/golden_cases.h"
#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"
#include "transforms/pipeline_parser.h"
#include "workflows/language/stage_fields.h"

namespace requant::workflow_file_test {
namespace {

std::string Folder() { return testing::TempDir() + "/"; }

std::string Write(const std::string &name, const std::string &text) {
  std::ofstream(Folder() + name, std::ios::binary) << text;
  return Folder() + name;
}

absl::StatusOr<WorkflowFile> Read(
    const std::string &text,
    const std::map<std::string, std::string> &variables = {}) {
  setenv("SET", "from the environment", 1);
  setenv("EMPTY", "", 1);
  return ReadWorkflowFile(Write("w.textproto", text), variables);
}

// Returns the error's message, with the file's path as F.
std::string Problem(const std::string &text,
                    const std::map<std::string, std::string> &variables = {}) {
  const auto file = Read(text, variables);
  return absl::StrReplaceAll(file.status().message(),
                             {{Folder() + "w.textproto", "F"}});
}

// Returns the workflow without its variables, or what is wrong. The text may
// begin with lines such as "--set v=typed". T/ is the test's folder.
std::string ReadText(std::string text) {
  const auto variables = TakeSettings(Folder(), &text);
  auto file = Read(text, variables);
  std::string result(file.status().message());
  if (file.ok()) {
    file->workflow.clear_variable();
    google::protobuf::TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    printer.PrintToString(file->workflow, &result);
  }
  return absl::StrReplaceAll(
      absl::StripTrailingAsciiWhitespace(result),
      {{Folder() + "w.textproto", "F"}, {Folder(), "T/"}});
}

TEST(ReadWorkflowFile, SetsVariablesOrSaysWhatIsWrong) {
  Write("here.txt", "");
  CheckGoldenCases("workflows/language/workflow_cases.txt", ReadText);
}

TEST(ReadWorkflowFile, KnowsTheLineOfEveryField) {
  const auto file = Read("summary: 'x'\nstage {\n  name: 'a'\n  freeze {\n }}");
  ASSERT_TRUE(file.ok()) << file.status();
  const FieldPlaces stage = file->places().Nested("stage", 0);
  EXPECT_EQ(stage.line(), 2);
  EXPECT_EQ(stage.Line("name"), 3);
  EXPECT_EQ(stage.Nested("freeze").Line("output"), 4);
  EXPECT_EQ(stage.Nested("verify").Nested("gates").line(), 2);
}

TEST(ReadWorkflowFile, RefusesBytesThatAreNoText) {
  EXPECT_THAT(Problem(std::string("\0\xff", 2)), HasSubstr("F:1: "));
}

TEST(ReadWorkflowFile, RefusesDeepNesting) {
  std::string known = "stage { transform { graph { ";
  std::string unknown;
  for (int i = 0; i < 100000; ++i) {
    known += "x { ";
    unknown += "x { ";
  }
  EXPECT_THAT(Problem(known), HasSubstr("F:1: "));
  EXPECT_THAT(Problem(unknown), HasSubstr("F:1: "));
}

TEST(ReadWorkflowFile, RefusesLargeAndMissingFilesAndFolders) {
  EXPECT_THAT(Problem(std::string(5 << 20, ' ')), HasSubstr("F"));
  EXPECT_FALSE(ReadWorkflowFile(Folder() + "absent", {}).ok());
  EXPECT_FALSE(ReadWorkflowFile(Folder(), {}).ok());
}

TEST(ReadWorkflowFile, RefusesMoreThanAnyoneWrites) {
  std::string text;
  for (int i = 0; i < 1001; ++i) text += "stage {}\n";
  EXPECT_EQ(Problem(text),
            "F: it has 1001 stages, more than the 1000 that a workflow may "
            "have");
}

TEST(Variables, RememberWhereTheirValuesCameFrom) {
  const auto file = Read(
      "variable { name: 'a' default_value: '' }"
      "variable { name: 'b' environment: 'SET' }"
      "variable { name: 'c' }",
      {{"c", "x"}});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->variables.at("a").from, "default");
  EXPECT_EQ(file->variables.at("b").from, "environment");
  EXPECT_EQ(file->variables.at("c").from, "command line");
}

TEST(TransformFiles, AreFilledInQuoted) {
  EXPECT_EQ(
      FillInFiles("f(log=\"${log}\") $${log} ${x} $", {{"log", "a\"\\b"}}),
      "f(log=\"a\\\"\\\\b\") ${log} ${x} $");
}

TEST(TransformFiles, AreQuotedForTheTransformGrammar) {
  const std::string path = "a \"b\"\\c";
  for (const char *text : {"f(x=${log})", "f(x=\"${log}\")"}) {
    const auto calls = ParsePipeline(FillInFiles(text, {{"log", path}}));
    ASSERT_TRUE(calls.ok()) << calls.status();
    EXPECT_EQ(calls->at(0).parameters.at("x").at(0), path) << text;
  }
}

TEST(TransformFiles, AreNotLookedForInPaths) {
  EXPECT_EQ(FillInFiles("f(x=\"${a}\")", {{"a", "${a}"}}), "f(x=\"${a}\")");
}

// Whatever the bytes, there is an answer and no crash.
TEST(ReadWorkflowFile, SurvivesMutations) {
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {
      "${", "}", "{",         "$${", "'",       "stage {", "\n", "#",
      "[",  ",", "name: 'a'", "nan", "kind: 9", "${v}",    "\\x"};
  const std::string seed = absl::StrCat(
      "variable { name: 'v' default_value: 'd' environment: 'E' }"
      "stage { summary: '<${v}>' }"
      "evaluation { name: 'e' on { dataset: '${v}' batch_size: '5' } gates { "
      "max_layer_shift: 2 } }\nstage { name: 'b' skip_if: 'v' after: ['a', "
      "'b'] transform { graph { stage: 'a' } file { name: 'log' from { stage: "
      "'c' } } transforms: 'x(y=${log})' } }");
  const int rounds = FuzzRounds(400);
  for (int round = 0; round < rounds; ++round) {
    const std::string problem = Problem(MutatedText(seed, pieces, &random));
    EXPECT_EQ(problem.find('\r'), std::string::npos) << problem;
  }
}

}  // namespace
}  // namespace requant::workflow_file_test
