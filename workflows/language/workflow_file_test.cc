#include "workflows/language/workflow_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/testing/fuzz_rounds.h"
#include "base/testing/mutated_text.h"
#include "transforms/pipeline_parser.h"

namespace requant::workflow_file_test {
namespace {

using testing::HasSubstr;

std::string Folder() { return testing::TempDir() + "/"; }

std::string Write(const std::string& name, const std::string& text) {
  std::ofstream(Folder() + name, std::ios::binary) << text;
  return Folder() + name;
}

absl::StatusOr<WorkflowFile> Read(
    const std::string& text,
    const std::map<std::string, std::string>& variables = {}) {
  WorkflowSettings settings;
  settings.variables = variables;
  settings.environment =
      [](const std::string& name) -> std::optional<std::string> {
    if (name == "SET") return "from the environment";
    if (name == "EMPTY") return "";
    return std::nullopt;
  };
  return ReadWorkflowFile(Write("w.textproto", text), settings);
}

// The message, with the file's path as F.
std::string Problem(const std::string& text,
                    const std::map<std::string, std::string>& variables = {}) {
  const auto file = Read(text, variables);
  return absl::StrReplaceAll(file.status().message(),
                             {{Folder() + "w.textproto", "F"}});
}

// The summary of stage 0.
std::string Summary(const std::string& text,
                    const std::map<std::string, std::string>& variables = {}) {
  const auto file = Read(text, variables);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok() || file->workflow.stage_size() == 0) return "";
  return file->workflow.stage(0).summary();
}

TEST(ReadWorkflowFile, NamesTheWorkflowAfterItsFile) {
  const auto file = Read("summary: 'x'");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->workflow.name(), "w");
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

TEST(ReadWorkflowFile, SuggestsTheFieldThatWasMeant) {
  EXPECT_EQ(Problem("\nstage { sumary: 'x' }"),
            "F:2: Stage has no field \"sumary\"; did you mean \"summary\"?");
}

TEST(ReadWorkflowFile, TellsAllUnknownFieldsAtOnce) {
  EXPECT_EQ(Problem("nam: 'x'\nstage { use_fil: 'x' freez { x: 1 } }\n"),
            "F:1: Workflow has no field \"nam\"; did you mean \"name\"?\n"
            "F:2: Stage has no field \"use_fil\"; did you mean \"use_file\"?\n"
            "F:2: Stage has no field \"freez\"; did you mean \"freeze\"?");
}

TEST(ReadWorkflowFile, RefusesTextThatIsNoWorkflow) {
  EXPECT_THAT(Problem("stage {"), HasSubstr("F:1: "));
  EXPECT_THAT(Problem(std::string("\0\xff", 2)), HasSubstr("F:1: "));
  EXPECT_THAT(Problem("variable { kind: FOLDR }"),
              HasSubstr("\"FOLDR\" is no kind of variable; the kinds are TEXT, "
                        "FILE, FOLDER, COUNT"));
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

TEST(ReadWorkflowFile, TellsAHundredMistakesAndHowManyMore) {
  std::string text;
  for (int i = 0; i < 130; ++i) absl::StrAppend(&text, "x", i, ": 1\n");
  EXPECT_THAT(Problem(text), HasSubstr("\nF: and 30 more mistakes"));
}

TEST(ReadWorkflowFile, RefusesMoreThanAnyoneWrites) {
  std::string text;
  for (int i = 0; i < 1001; ++i) text += "stage {}\n";
  EXPECT_EQ(Problem(text),
            "F: it has 1001 stages, more than the 1000 that a workflow may "
            "have");
}

constexpr char kDefault[] =
    "variable { name: 'v' default_value: 'd' environment: 'E' }"
    "stage { summary: '<${v}>' }";

TEST(Variables, TakeTheCommandLineThenTheEnvironmentThenTheDefault) {
  EXPECT_EQ(Summary(kDefault), "<d>");
  const std::string in_environment =
      absl::StrReplaceAll(kDefault, {{"'E'", "'SET'"}});
  EXPECT_EQ(Summary(in_environment), "<from the environment>");
  EXPECT_EQ(Summary(in_environment, {{"v", "typed"}}), "<typed>");
}

TEST(Variables, DoNotTakeAnEmptyEnvironmentVariable) {
  EXPECT_EQ(Summary(absl::StrReplaceAll(kDefault, {{"'E'", "'EMPTY'"}})),
            "<d>");
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

TEST(Variables, AreExpandedOnce) {
  EXPECT_EQ(Summary(kDefault, {{"v", "${v} $${v}"}}), "<${v} $${v}>");
}

TEST(Variables, LeaveDollarsThatStartNone) {
  EXPECT_EQ(Summary("stage { summary: '$ $${x} $x $' }"), "$ ${x} $x $");
}

TEST(Variables, MustBeClosedAndHaveAName) {
  for (const char* text : {"${v", "${}", "${V}", "${ v}", "${"}) {
    EXPECT_THAT(Problem(absl::StrCat("stage { summary: '", text, "' }")),
                HasSubstr("F:1: \"${\" starts a variable"))
        << text;
  }
}

TEST(Variables, MustBeDeclared) {
  EXPECT_EQ(Problem("variable { name: 'model' default_value: '' }\n"
                    "stage { transform { file { from { stage: '${modell}' } } "
                    "} }"),
            "F:2: \"${modell}\": no such variable; did you mean \"model\"?");
  EXPECT_EQ(
      Problem("variable { name: 'model' default_value: '' }", {{"modle", "x"}}),
      "F: --set modle=x: no such variable; did you mean \"model\"?");
  EXPECT_EQ(Problem("\nstage { skip_if: 'modle' }"),
            "F:2: skip_if names \"modle\": no such variable");
  EXPECT_EQ(Problem("\nstage { verify { expect { only_if: 'modle' } } }"),
            "F:2: only_if names \"modle\": no such variable");
}

TEST(Variables, DecideWhetherAnAccuracyIsExpected) {
  const std::string expect = "verify { expect { accuracy: 78 only_if: 'v' } } ";
  for (const std::string& stage : {expect, "evaluate { " + expect + " } "}) {
    const std::string text =
        "variable { name: 'v' default_value: '' } stage { " + stage + "}";
    const auto unset = Read(text);
    const auto set = Read(text, {{"v", "yes"}});
    const auto no = Read(text, {{"v", "no"}});
    ASSERT_TRUE(unset.ok() && set.ok() && no.ok())
        << unset.status() << set.status() << no.status();
    const auto expects = [](const WorkflowFile& file) {
      const Stage& stage = file.workflow.stage(0);
      return stage.verify().has_expect() ||
             stage.evaluate().verify().has_expect();
    };
    EXPECT_FALSE(expects(*unset)) << text;
    EXPECT_TRUE(expects(*set)) << text;
    EXPECT_FALSE(expects(*no)) << text;
  }
}

TEST(Variables, AreDeclaredOnceByAProperName) {
  EXPECT_EQ(Problem("variable { name: 'a' }\nvariable { name: 'a' }"),
            "F:2: variable \"a\" is declared twice");
  EXPECT_THAT(Problem("variable { name: 'A-1' }"),
              HasSubstr("F:1: \"A-1\" is no name of a variable"));
  EXPECT_THAT(Problem("variable { name: 'b' default_value: '${a}' }"),
              HasSubstr("cannot use another variable"));
}

TEST(Variables, WithoutAValueAreAllListedWithTheirHelp) {
  EXPECT_EQ(Problem("variable { name: 'a' kind: FILE help: 'the first' }"
                    "variable { name: 'b' kind: COUNT }"
                    "variable { name: 'c' }"
                    "stage { summary: '${a} ${b}' }"),
            "F: these variables need a value:\n"
            "  --set a=FILE  the first\n"
            "  --set b=NUMBER");
}

TEST(Variables, NeedNoValueWhereNothingRuns) {
  const std::string text =
      "variable { name: 'given' default_value: '' }"
      "variable { name: 'model' }"
      "variable { name: 'data' }"
      "evaluation { name: 'e' on { dataset: '${data}' } }"
      "stage { skip_if: 'given' freeze { saved_model { file: '${model}' } }"
      "  verify { evaluation: 'e' } }"
      "stage { use_file: '${given}' transform { graph { file: '${model}' } } }";
  EXPECT_THAT(Problem(text), HasSubstr("--set model=TEXT\n  --set data=TEXT"));
  EXPECT_EQ(Problem(text, {{"given", "graph.pb"}}), "");
}

TEST(Variables, ThatAreFilesAndFoldersMustExist) {
  Write("here.txt", "");
  const std::string text =
      "variable { name: 'f' kind: FILE default_value: 'here.txt' help: 'what' }"
      "\nvariable { name: 'd' kind: FOLDER default_value: '.' }"
      "stage { summary: '${f} ${d}' }";
  EXPECT_EQ(Problem(text), "");
  EXPECT_EQ(Problem(text, {{"f", "absent.txt"}, {"d", "/absent"}}),
            "F:1: variable \"f\" (command line): no such file: absent.txt; it "
            "is what\n"
            "F:2: variable \"d\" (command line): no such folder: /absent");
  EXPECT_EQ(Problem(text, {{"f", Folder() + "h*.txt"}, {"d", ""}}), "");
  EXPECT_THAT(Problem(text, {{"d", Folder() + "here.txt"}}),
              HasSubstr("not a folder"));
}

TEST(Variables, ThatAreCountsAreNumbersFromOneOn) {
  const std::string text =
      "variable { name: 'n' kind: COUNT default_value: '1' }";
  EXPECT_EQ(Problem(text), "");
  for (const char* value : {"0", "-1", "1.5", "many", ""}) {
    EXPECT_THAT(Problem(text, {{"n", value}}),
                HasSubstr("is not a number from 1 on"))
        << value;
  }
}

TEST(Paths, StartAtTheWorkflowFileUnlessTypedElsewhere) {
  const std::string text =
      "variable { name: 'model' default_value: 'model' }"
      "stage { freeze { saved_model { file: '${model}/1' } } }"
      "stage { freeze { saved_model { file: 'x.pb,/y.pb,${model}/*.pb' } } }"
      "stage { use_file: '' transform { inputs: 'a/b' plugin: 'p.so' } }";
  const auto by_default = Read(text);
  ASSERT_TRUE(by_default.ok()) << by_default.status();
  const Workflow& workflow = by_default->workflow;
  EXPECT_EQ(workflow.stage(0).freeze().saved_model().file(),
            Folder() + "model/1");
  EXPECT_EQ(workflow.stage(1).freeze().saved_model().file(),
            absl::StrCat(Folder(), "x.pb,/y.pb,", Folder(), "model/*.pb"));
  EXPECT_EQ(workflow.stage(2).use_file(), "");
  EXPECT_EQ(workflow.stage(2).transform().inputs(0), "a/b");
  EXPECT_EQ(workflow.stage(2).transform().plugin(0), Folder() + "p.so");
  const auto typed = Read(text, {{"model", "mine"}});
  ASSERT_TRUE(typed.ok()) << typed.status();
  EXPECT_EQ(typed->workflow.stage(0).freeze().saved_model().file(), "mine/1");
  EXPECT_EQ(typed->workflow.stage(1).freeze().saved_model().file(),
            absl::StrCat(Folder(), "x.pb,/y.pb,mine/*.pb"));
}

std::string Transforms(const std::string& text,
                       const std::map<std::string, std::string>& variables) {
  const auto file = Read(text, variables);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return "";
  return file->workflow.stage(0).transform().transforms();
}

TEST(TransformFiles, StayForTheRunner) {
  const std::string text =
      "variable { name: 'p' default_value: '5' }"
      "stage { transform { file { name: 'log' }"
      "  transforms: 'f(log=\"${log}\", p=${p}) $${log}' } }";
  EXPECT_EQ(Transforms(text, {}), "f(log=\"${log}\", p=5) $${log}");
  EXPECT_EQ(Transforms(text, {{"p", "${log}"}}),
            "f(log=\"${log}\", p=$${log}) $${log}");
}

TEST(TransformFiles, AreNotReadBehindTheRunnersBack) {
  EXPECT_EQ(
      Problem("variable { name: 'log' kind: FILE default_value: '' }"
              "stage { transform { transforms: 'f(log=${log})' } }"),
      "F:1: the transforms read \"${log}\", a file whose content must count: "
      "add file { name: \"log\" from { file: \"${log}\" } }");
}

TEST(TransformFiles, AreFilledInQuoted) {
  EXPECT_EQ(
      FillInFiles("f(log=\"${log}\") $${log} ${x} $", {{"log", "a\"\\b"}}),
      "f(log=\"a\\\"\\\\b\") ${log} ${x} $");
}

TEST(TransformFiles, AreQuotedForTheTransformGrammar) {
  const std::string path = "a \"b\"\\c";
  for (const char* text : {"f(x=${log})", "f(x=\"${log}\")"}) {
    const auto calls = ParsePipeline(FillInFiles(text, {{"log", path}}));
    ASSERT_TRUE(calls.ok()) << calls.status();
    EXPECT_EQ(calls->at(0).parameters.at("x").at(0), path) << text;
  }
}

TEST(TransformFiles, AreNotLookedForInPaths) {
  EXPECT_EQ(FillInFiles("f(x=\"${a}\")", {{"a", "${a}"}}), "f(x=\"${a}\")");
}

// Whatever the bytes, an answer and no crash.
TEST(ReadWorkflowFile, SurvivesMutations) {
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {
      "${", "}", "{",         "$${", "'",       "stage {", "\n", "#",
      "[",  ",", "name: 'a'", "nan", "kind: 9", "${v}",    "\\x"};
  const std::string seed = absl::StrCat(
      kDefault,
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
