#include "workflows/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/testing/fuzz_rounds.h"
#include "workflows/language/workflow_file.h"
#include "workflows/plan/effective_gates.h"

namespace requant::plan_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Folder() { return testing::TempDir() + "/"; }

void Write(const std::string& name, const std::string& text) {
  std::ofstream(Folder() + name, std::ios::binary) << text;
}

using Settings = std::map<std::string, std::string>;

absl::StatusOr<Plan> Make(const std::string& text,
                          const Settings& variables = {}) {
  Write("w.textproto", text);
  Write("model.pb", "");
  Write("records", "");
  Write("data.textproto",
        "tfrecord { files: 'records' }\n"
        "input { feature: 'x' placeholder: 'p' dtype: 'float' }");
  Write("other.textproto",
        "tfrecord { files: 'records' }\n"
        "input { feature: 'y' placeholder: 'q' dtype: 'float' }");
  WorkflowSettings settings;
  settings.variables = variables;
  const auto file = ReadWorkflowFile(Folder() + "w.textproto", settings);
  if (!file.ok()) return file.status();
  return MakePlan(*file);
}

Plan MustMake(const std::string& text, const Settings& variables = {}) {
  const auto plan = Make(text, variables);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

std::string Problem(const std::string& text, const Settings& variables = {}) {
  const auto plan = Make(text, variables);
  return absl::StrReplaceAll(
      plan.status().message(),
      {{Folder() + "w.textproto", "F"}, {Folder(), "T/"}});
}

std::vector<std::string> Names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Task& task : plan.tasks) names.push_back(task.name);
  return names;
}

const Task& Find(const Plan& plan, const std::string& name) {
  for (const Task& task : plan.tasks) {
    if (task.name == name) return task;
  }
  static const auto* const none = new Task();
  ADD_FAILURE() << "no task " << name;
  return *none;
}

// "graph=freeze:graph dataset=T/data.textproto".
std::string Inputs(const Plan& plan, const std::string& name) {
  std::vector<std::string> inputs;
  for (const TaskInput& input : Find(plan, name).inputs) {
    inputs.push_back(absl::StrCat(
        input.role, "=",
        input.task < 0
            ? absl::StrReplaceAll(input.path, {{Folder(), "T/"}})
            : absl::StrCat(plan.tasks[input.task].name, ":", input.output)));
  }
  return absl::StrJoin(inputs, " ");
}

std::string Outputs(const Plan& plan, const std::string& name) {
  std::vector<std::string> outputs;
  for (const TaskOutput& output : Find(plan, name).outputs) {
    outputs.push_back(absl::StrCat(output.role, "=", output.file));
  }
  return absl::StrJoin(outputs, " ");
}

std::vector<std::string> After(const Plan& plan, const std::string& name) {
  std::vector<std::string> names;
  for (const int other : Find(plan, name).after) {
    names.push_back(plan.tasks[other].name);
  }
  return names;
}

// A stage that strips the graph that `graph` describes.
std::string Strip(const std::string& name, const std::string& graph,
                  const std::string& more = "") {
  return absl::StrCat("stage { name: '", name, "' transform { graph { ", graph,
                      " } transforms: 'remove_nodes(op=Identity)' } ", more,
                      " }\n");
}

std::string StripFile(const std::string& name, const std::string& more = "") {
  return Strip(name, "file: 'model.pb'", more);
}

std::string Evaluation(const std::string& name, const std::string& more = "") {
  return absl::StrCat("evaluation { name: '", name,
                      "' on { dataset: 'data.textproto' } ", more, " }\n");
}

constexpr char kVerify[] = "verify { evaluation: 'e' }";

TEST(Order, KeepsThatOfTheFileWherePossible) {
  EXPECT_THAT(Names(MustMake(StripFile("c") + StripFile("b") + StripFile("a"))),
              ElementsAre("c", "b", "a"));
  EXPECT_THAT(Names(MustMake(Strip("c", "stage: 'a'") + StripFile("b") +
                             StripFile("a"))),
              ElementsAre("b", "a", "c"));
}

TEST(Order, WhatReadsAGraphWaitsForItsVerification) {
  const Plan plan = MustMake(Evaluation("e") + StripFile("a", kVerify) +
                             Strip("b", "stage: 'a'"));
  EXPECT_THAT(Names(plan), ElementsAre("a", "a/verify", "b"));
  EXPECT_THAT(After(plan, "a/verify"), ElementsAre("a"));
  EXPECT_THAT(After(plan, "b"), ElementsAre("a", "a/verify"));
  EXPECT_EQ(Inputs(plan, "b"), "graph=a:graph");
}

TEST(Order, HonoursAfter) {
  const Plan plan = MustMake(Evaluation("e") + StripFile("b", "after: 'a'") +
                             StripFile("a", kVerify));
  EXPECT_THAT(Names(plan), ElementsAre("a", "a/verify", "b"));
  EXPECT_EQ(Problem("\n" + StripFile("b", "after: 'aaa'")),
            "F:2: stage \"b\" is after \"aaa\": no such stage");
}

TEST(Order, NamesACycle) {
  EXPECT_EQ(Problem("\n" + Strip("a", "stage: 'c'") + Strip("b", "stage: 'a'") +
                    Strip("c", "stage: 'b'")),
            "F:2: stages wait for each other: a -> c -> b -> a");
  EXPECT_EQ(Problem(Strip("a", "stage: 'a'")),
            "F:1: stages wait for each other: a -> a");
}

TEST(Order, ABaselineMayNotDependOnWhatItJudges) {
  EXPECT_THAT(
      Problem(Evaluation("e", "baseline { stage: 'b' }") +
              StripFile("a", kVerify) + Strip("b", "stage: 'a'", kVerify)),
      HasSubstr("stages wait for each other: a -> b -> a"));
}

TEST(Stages, ThatAreReadMustExist) {
  EXPECT_EQ(Problem(StripFile("freeze_max") + "\n" +
                    Strip("fuse", "stage: 'freez_max'")),
            "F:3: stage \"fuse\" reads \"freez_max\": no such stage; did you "
            "mean \"freeze_max\"?");
}

TEST(Stages, AreNamedOnceAndPlainly) {
  EXPECT_EQ(Problem(StripFile("a") + StripFile("a")),
            "F:2: two stages are named \"a\"\n"
            "F:2: stage \"a\" writes \"a.pb\" twice");
  EXPECT_THAT(Problem(StripFile("a/b")),
              HasSubstr("F:1: \"a/b\" is no name of a stage"));
  EXPECT_THAT(Problem(StripFile("")), HasSubstr("F:1: a stage has no name"));
  EXPECT_EQ(Problem(""), "F: it has no stage");
}

TEST(Stages, NeedAKind) {
  EXPECT_THAT(Problem("stage { name: 'a' }"),
              HasSubstr("F:1: stage \"a\" does nothing: add one of dataset, "));
}

TEST(Stages, TellAllMistakesByLine) {
  EXPECT_EQ(Problem("stage { name: 'a' quantize {\n"
                    "graph { file: 'absent.pb' }\n"
                    "dynamic {}\n"
                    "target: 'arm'\n"
                    "output_node: 'x' } }\n"
                    "stage { name: 'b' benchmark {\n"
                    "rounds: '0' on { dataset: 'data.textproto' } } }"),
            "F:2: stage \"a\": its graph: there is no T/absent.pb\n"
            "F:4: stage \"a\": target \"arm\" is none of any, avx2, avx512, "
            "vnni, avx_vnni, amx, host\n"
            "F:6: stage \"b\": benchmark needs a graph\n"
            "F:7: stage \"b\": rounds \"0\" is not a number from 1 on");
}

// A stage of this kind, or the sentence about it.
std::string KindProblem(const std::string& kind) {
  return std::string(
      absl::StripPrefix(Problem(absl::StrCat("stage { name: 'a' ", kind, " }")),
                        "F:1: stage \"a\": "));
}

TEST(Stages, NeedWhatTheirKindNeeds) {
  const std::string graph = "graph { file: 'model.pb' } ";
  const std::string on = "on { dataset: 'data.textproto' } ";
  const std::pair<std::string, std::string> kinds[] = {
      {"dataset {}", "dataset needs synthesize or preprocess"},
      {"dataset { synthesize { format: 'xml' } }",
       "format \"xml\" is none of csv, tfrecord, preprocessed"},
      {"dataset { synthesize { format: 'preprocessed' } }",
       "ranges go with format \"preprocessed\", and only with it"},
      {"dataset { synthesize { seed: '-1' } }",
       "seed \"-1\" is not a whole number from 0 on"},
      {"dataset { preprocess { data { file: 'records' } buckets: '0' } }",
       "buckets \"0\" is not a number from 1 on"},
      {"freeze { graph { graph { file: 'model.pb' } } }",
       "graph needs a checkpoint, the path before \".index\""},
      {"freeze { graph { graph { file: 'model.pb' } checkpoint: 'c' } }",
       "its checkpoint: there is no T/c.index"},
      {absl::StrCat("quantize { ", graph, "output_node: 'x' }"),
       "quantize needs dynamic {} or calibrated { ... }"},
      {absl::StrCat("quantize { ", graph, "dynamic {} }"),
       "quantize needs output_node, what the graph is to compute"},
      {absl::StrCat("quantize { ", graph,
                    "output_node: 'x' calibrated { ranges { file: 'records' } "
                    "method: 'max' } }"),
       "method \"max\" is none of minmax, percentile, mse"},
      {absl::StrCat("calibrate { ", graph, on, "}"),
       "calibrate needs logging { ... } or direct {}"},
      {absl::StrCat("calibrate { ", graph, on, "logging { message: 'x' } }"),
       "logging needs op, such as \"Min\""},
      {absl::StrCat("calibrate { ", graph, on, "logging { op: 'Min' } }"),
       "logging needs message, such as \"__min:\""},
      {absl::StrCat("benchmark { ", graph, on, "seconds: '0' }"),
       "seconds \"0\" is not a number above 0"},
      {absl::StrCat("summarize { ", graph, "} use_file: 'model.pb'"),
       "use_file is for stages that make a graph; summarize makes none"},
      {absl::StrCat("calibrate { ", graph,
                    "on { dataset: 'data.textproto' batch_size: 'many' } "
                    "direct {} }"),
       "batch_size \"many\" is not a number from 1 on"}};
  for (const auto& [kind, problem] : kinds) {
    EXPECT_EQ(KindProblem(kind), problem) << kind;
  }
}

TEST(Stages, FreezeASavedModelOrACheckpoint) {
  EXPECT_THAT(Problem("stage { name: 'a' freeze {} }"),
              HasSubstr("freeze needs saved_model or graph"));
  Write("c.index", "");
  EXPECT_EQ(Inputs(MustMake("stage { name: 'a' freeze { graph { graph { file: "
                            "'model.pb' } checkpoint: 'c' } } }"),
                   "a"),
            "graph=T/model.pb checkpoint=T/c");
}

TEST(Stages, DiffReadsTwoGraphsAndMakesText) {
  const Plan plan = MustMake(
      StripFile("a") +
      "stage { name: 'd' diff { before { file: 'model.pb' } after { stage: 'a' "
      "} max_nodes: '0' } }");
  EXPECT_EQ(Inputs(plan, "d"), "before=T/model.pb after=a:graph");
  EXPECT_EQ(Outputs(plan, "d"), "text=d.txt");
  EXPECT_EQ(Problem("stage { name: 'd' diff { before { file: 'none.pb' }\n"
                    "max_nodes: '-1' } }"),
            "F:1: stage \"d\": its before: there is no T/none.pb\n"
            "F:1: stage \"d\" needs after: { stage: \"...\" } or { file: "
            "\"...\" }\n"
            "F:2: stage \"d\": max_nodes \"-1\" is not a whole number from 0 "
            "on");
}

TEST(Stages, MakeFilesNamedAfterThemUnlessTold) {
  const std::string on = "on { dataset: 'data.textproto' }";
  const Plan plan = MustMake(absl::StrCat(
      StripFile("a"), "stage { name: 'b' calibrate { graph { stage: 'a' } ", on,
      " logging { op: 'Min' message: '__min:' log: 'min.txt' } } }",
      "stage { name: 'c' calibrate { graph { stage: 'a' } ", on,
      " direct {} ranges: 'my.ranges' } }",
      "stage { name: 'd' summarize { graph { stage: 'a' } } }",
      "stage { name: 'e' dataset { synthesize {} } }",
      "stage { name: 'f' benchmark { graph { stage: 'a' } ", on, " } }"));
  EXPECT_EQ(Outputs(plan, "a"), "graph=a.pb");
  EXPECT_EQ(Outputs(plan, "b"),
            "logged_graph=b.logged.pb log=min.txt ranges=b.ranges");
  EXPECT_EQ(Outputs(plan, "c"), "ranges=my.ranges");
  EXPECT_EQ(Outputs(plan, "d"), "text=d.txt");
  EXPECT_EQ(Outputs(plan, "e"), "data=e.csv");
  EXPECT_EQ(Outputs(plan, "f"), "result=f.benchmark.pb");
}

TEST(OutputNames, ArePlainAndNotTheRunners) {
  for (const char* name : {"../a.pb", "a/b", "report.html", "events.out.1",
                           "results.csv", "result.pb", ".hidden"}) {
    EXPECT_THAT(Problem(absl::StrCat(
                    "stage { name: 'a' transform { graph { file: "
                    "'model.pb' } transforms: 'sort_by_execution_order'"
                    " output: '",
                    name, "' } }")),
                HasSubstr(absl::StrCat("F:1: stage \"a\": \"", name, "\"")))
        << name;
  }
}

TEST(OutputNames, HaveNoControlCharacters) {
  EXPECT_THAT(Problem("stage { name: 'a' summarize { graph { file: 'model.pb' }"
                      " output: 'a\\nb' } }"),
              HasSubstr("is not the name of a file"));
}

TEST(WorkflowNames, CanBeThoseOfAFolder) {
  for (const char* name : {"a/b", "..", ".hidden", "-rf", "a\\ntouch x"}) {
    EXPECT_THAT(Problem(absl::StrCat("\nname: '", name, "'")),
                HasSubstr("F:2: the workflow cannot be named"))
        << name;
  }
  EXPECT_EQ(Problem(absl::StrCat("name: 'Wide & deep, 2'", StripFile("a"))),
            "");
}

TEST(OutputNames, AreTakenOnce) {
  EXPECT_EQ(Problem("stage { name: 'a' summarize { graph { file: 'model.pb' } "
                    "output: 'x' } }\n"
                    "stage { name: 'b' summarize { graph { file: 'model.pb' }\n"
                    "output: 'x' } }"),
            "F:3: stage \"b\" writes \"x\", as stage \"a\" does");
}

TEST(OutputNames, AreNotThoseOfABaseline) {
  const std::string judged = Evaluation("e", "baseline { file: 'model.pb' }") +
                             StripFile("a", kVerify);
  EXPECT_EQ(
      Problem(judged + "stage { name: 'b' summarize { graph { file: "
                       "'model.pb' } output: 'e.baseline.predictions' } }"),
      "F:3: stage \"b\" writes \"e.baseline.predictions\", as "
      "\"e/baseline\" does");
  EXPECT_THAT(Problem(judged + StripFile("e.baseline", kVerify)),
              HasSubstr("stage \"e.baseline\" writes "
                        "\"e.baseline.predictions\", as \"e/baseline\" "
                        "does"));
}

constexpr char kLogging[] =
    "stage { name: 'log' calibrate { graph { file: 'model.pb' }"
    "  on { dataset: 'data.textproto' }"
    "  logging { op: 'Min' message: '__min:' } } }\n";

std::string FreezeMin(const std::string& file) {
  return absl::StrCat(
      "stage { name: 'freeze' transform { graph { file: 'model.pb' } ", file,
      " transforms: 'freeze_min(min_max_log_file=\"${f}${log}\")' } }");
}

TEST(ChosenOutputs, FitByWhatReadsThem) {
  const Plan plan = MustMake(absl::StrCat(
      kLogging,
      "stage { name: 'q' quantize { graph { stage: 'log' }"
      "  calibrated { ranges { stage: 'log' } } output_node: 'x' } }"));
  EXPECT_EQ(Inputs(plan, "q"), "graph=log:logged_graph ranges=log:ranges");
}

TEST(Transforms, ReadOnlyFilesThatCount) {
  for (const char* value : {"/x/log.txt", "log"}) {
    EXPECT_EQ(Problem(absl::StrCat(
                  "stage { name: 'f' transform { graph { file: 'model.pb' } "
                  "file { name: 'log' from { file: 'records' } } transforms: "
                  "'freeze_min(min_max_log_file=${log}) "
                  "freeze_max(min_max_log_file=\"",
                  value, "\")' } }")),
              absl::StrCat(
                  "F:1: stage \"f\": transform \"freeze_max\" reads \"", value,
                  "\", a file whose content must count: add file { name: "
                  "\"min_max_log\" from { file: \"",
                  value, "\" } } and write min_max_log_file=${min_max_log}"));
  }
}

TEST(ChosenOutputs, OfATransformsFileFollowFromItsName) {
  const std::string by_name = absl::StrReplaceAll(
      FreezeMin("file { name: 'log' from { stage: 'log' } }"), {{"${f}", ""}});
  EXPECT_EQ(Inputs(MustMake(kLogging + by_name), "freeze"),
            "graph=T/model.pb log=log:log");
  const std::string other_name = absl::StrReplaceAll(
      FreezeMin("file { name: 'f' from { stage: 'log' } }"), {{"${log}", ""}});
  EXPECT_EQ(Problem(kLogging + other_name),
            "F:2: stage \"freeze\" reads \"log\", which makes "
            "\"logged_graph\", \"log\", \"ranges\": say which by output");
  const std::string chosen = absl::StrReplaceAll(
      other_name, {{"stage: 'log' }", "stage: 'log' output: 'ranges' }"}});
  EXPECT_EQ(Inputs(MustMake(kLogging + chosen), "freeze"),
            "graph=T/model.pb f=log:ranges");
}

TEST(ChosenOutputs, MustBeThere) {
  EXPECT_EQ(Problem("stage { name: 'd' dataset { synthesize {} } }\n" +
                    Strip("a", "stage: 'd'")),
            "F:2: stage \"a\" reads \"d\", which makes \"data\", but no graph");
  EXPECT_EQ(Problem(StripFile("d") + Strip("a", "stage: 'd' output: 'log'")),
            "F:2: stage \"a\" reads \"log\" of \"d\", which makes \"graph\"");
  EXPECT_EQ(Problem("stage { name: 'a' transform { transforms: "
                    "'sort_by_execution_order' } }"),
            "F:1: stage \"a\" needs graph: { stage: \"...\" } or { file: "
            "\"...\" }");
}

std::string Transforms(const std::string& transforms,
                       const std::string& more = "") {
  return absl::StrCat(
      "stage { name: 'a' transform { graph { file: 'model.pb' "
      "} transforms: '",
      transforms, "' ", more, " } }");
}

TEST(Transforms, AreKnownByNameAndParameters) {
  EXPECT_EQ(
      Problem(Transforms("remove_node(op=x)")),
      "F:1: stage \"a\": \"remove_node\": no such transform; did you mean "
      "\"remove_nodes\"?");
  EXPECT_THAT(Problem(Transforms("remove_attribute")),
              HasSubstr("F:1: stage \"a\": "));
  EXPECT_THAT(Problem(Transforms("insert_logging(opp=Min)")), HasSubstr("opp"));
  EXPECT_THAT(Problem(Transforms("remove_nodes(op=")),
              HasSubstr("F:1: stage \"a\": "));
  EXPECT_THAT(Problem(Transforms("")), HasSubstr("no transform is named"));
  EXPECT_EQ(Problem(Transforms("stock:insert_logging(op=Min)")), "");
}

TEST(Transforms, OfPluginsAreNotKnownHere) {
  Write("p.so", "");
  EXPECT_EQ(Problem(Transforms("my_own(x=1)", "plugin: 'p.so'")), "");
  EXPECT_EQ(Problem(Transforms("my_own", "plugin: 'absent.so'")),
            "F:1: stage \"a\": its plugin: there is no T/absent.so");
}

TEST(Transforms, UseAllTheirFiles) {
  EXPECT_EQ(Problem(Transforms("sort_by_execution_order",
                               "file { name: 'x' from { file: 'records' } }")),
            "F:1: stage \"a\": the transforms do not use file \"x\": write "
            "\"${x}\" where they take it");
}

TEST(Records, HaveADeclarationThatCanBeRead) {
  EXPECT_EQ(
      Problem(absl::StrReplaceAll(kLogging, {{"data.textproto", "absent"}})),
      "F:1: cannot read T/absent: No such file or directory");
  Write("bad.textproto", "tfrecord { file: 'x' }");
  EXPECT_THAT(Problem(absl::StrReplaceAll(
                  kLogging, {{"data.textproto", "bad.textproto"}})),
              HasSubstr("F:1: T/bad.textproto:1: TfRecordSource has no field"));
  EXPECT_THAT(Problem(absl::StrReplaceAll(kLogging,
                                          {{"dataset: 'data.textproto'", ""}})),
              HasSubstr("F:1: stage \"log\": no records"));
}

TEST(Records, AreThoseDeclaredOrOfAStageOrOfAFile) {
  EXPECT_EQ(Inputs(MustMake(kLogging), "log"),
            "graph=T/model.pb dataset=T/data.textproto "
            "declared_data=T/records");
  const auto with = [](const std::string& data) {
    return absl::StrReplaceAll(
        kLogging,
        {{"'data.textproto'", "'data.textproto' data { " + data + " }"}});
  };
  EXPECT_EQ(Inputs(MustMake(with("file: 'rec*'")), "log"),
            "graph=T/model.pb dataset=T/data.textproto data=T/rec*");
  EXPECT_EQ(Inputs(MustMake("stage { name: 'd' dataset { synthesize {} } }" +
                            with("stage: 'd'")),
                   "log"),
            "graph=T/model.pb dataset=T/data.textproto data=d:data");
  EXPECT_EQ(Problem(with("file: 'absent'")), "F:1: no file matches T/absent");
  EXPECT_EQ(Problem(with("")),
            "F:1: stage \"log\": data needs { stage: \"...\" } or { file: "
            "\"...\" }");
}

TEST(Verifications, NeedAnEvaluationAndAGraph) {
  EXPECT_EQ(Problem(StripFile("a", "verify {}") + Evaluation("e")),
            "F:1: stage \"a\": verify names no evaluation; there are \"e\"");
  EXPECT_EQ(Problem(Evaluation("raw") +
                    StripFile("a", "verify { evaluation: 'rav' }")),
            "F:2: stage \"a\" is verified by \"rav\": no such evaluation; did "
            "you mean \"raw\"?");
  EXPECT_EQ(Problem(Evaluation("e") +
                    "stage { name: 'a' summarize { graph { file: 'model.pb' } "
                    "} verify { evaluation: 'e' } }"),
            "F:2: stage \"a\": verify is for stages that make a graph; "
            "summarize makes none");
}

TEST(Verifications, ReadTheGraphAndTheRecords) {
  const Plan plan = MustMake(Evaluation("e") + StripFile("a", kVerify));
  EXPECT_EQ(Inputs(plan, "a/verify"),
            "graph=a:graph dataset=T/data.textproto declared_data=T/records");
  EXPECT_EQ(Outputs(plan, "a/verify"),
            "predictions=a.predictions result=a.evaluation.pb");
  EXPECT_EQ(plan.make_task[0], 0);
  EXPECT_EQ(plan.verify_task[0], 1);
}

TEST(Verifications, OfAnEvaluateStageHaveNothingToMake) {
  const Plan plan =
      MustMake(Evaluation("e") +
               "stage { name: 'a' evaluate { graph { file: 'model.pb' } "
               "verify { evaluation: 'e' } } }");
  EXPECT_THAT(Names(plan), ElementsAre("a/verify"));
  EXPECT_EQ(plan.make_task[0], -1);
}

TEST(Verifications, OfACompareStageRunBothGraphs) {
  const Plan plan =
      MustMake(StripFile("a") +
               "stage { name: 'c' compare { graph { stage: 'a' } baseline { "
               "file: 'model.pb' } on { dataset: 'data.textproto' } } }");
  EXPECT_EQ(Inputs(plan, "c/verify"),
            "graph=a:graph baseline=T/model.pb dataset=T/data.textproto "
            "declared_data=T/records");
  EXPECT_EQ(Find(plan, "c/verify").evaluation, -1);
}

TEST(Baselines, ThatAreStagesLendTheirPredictions) {
  const Plan plan =
      MustMake(Evaluation("e", "baseline { stage: 'a' }") +
               StripFile("a", kVerify) + Strip("b", "stage: 'a'", kVerify));
  EXPECT_THAT(Inputs(plan, "b/verify"),
              HasSubstr("baseline_predictions=a/verify:predictions"));
  EXPECT_THAT(Inputs(plan, "b/verify"), Not(HasSubstr(" baseline=")));
  // The baseline of all others has none itself.
  EXPECT_THAT(Inputs(plan, "a/verify"), Not(HasSubstr("baseline")));
}

TEST(Baselines, LendTheirGraphWhenLayersAreCompared) {
  const std::string layers = "baseline { stage: 'a' } layer_records: '10'";
  EXPECT_THAT(
      Inputs(MustMake(Evaluation("e", layers) + StripFile("a", kVerify) +
                      Strip("b", "stage: 'a'", kVerify)),
             "b/verify"),
      HasSubstr(" baseline=a:graph"));
  const Plan other =
      MustMake(Evaluation("e", layers) +
               "evaluation { name: 'f' on { dataset: 'other.textproto' } }" +
               StripFile("a", "verify { evaluation: 'f' }") +
               Strip("b", "stage: 'a'", kVerify));
  EXPECT_THAT(Inputs(other, "b/verify"), Not(HasSubstr(" baseline=")));
  EXPECT_THAT(Find(other, "b/verify").notes,
              ElementsAre(HasSubstr("takes other inputs")));
}

TEST(Baselines, MustBeVerifiedStages) {
  EXPECT_EQ(Problem(Evaluation("e", "baseline { stage: 'a' }") +
                    StripFile("a") + Strip("b", "stage: 'a'", kVerify)),
            "F:1: stage \"b\" has the baseline \"a\", which is not verified: "
            "add verify to it");
  EXPECT_EQ(Problem(Evaluation("e", "baseline { stage: 'aa' }") +
                    StripFile("a", kVerify)),
            "F:1: evaluation \"e\" has the baseline \"aa\": no such stage; did "
            "you mean \"a\"?");
  EXPECT_EQ(
      Problem(Evaluation("e") + StripFile("a",
                                          "verify { evaluation: 'e' baseline { "
                                          "stage: 'a' } }")),
      "F:2: stage \"a\" is its own baseline");
}

TEST(Baselines, ThatAreFilesRunOnceForAll) {
  const Plan plan =
      MustMake(Evaluation("e", "baseline { file: 'model.pb' records: '9' }") +
               StripFile("a", kVerify) + Strip("b", "stage: 'a'", kVerify));
  EXPECT_THAT(Names(plan),
              ElementsAre("e/baseline", "a", "a/verify", "b", "b/verify"));
  EXPECT_EQ(Inputs(plan, "e/baseline"),
            "graph=T/model.pb dataset=T/data.textproto "
            "declared_data=T/records");
  EXPECT_EQ(Outputs(plan, "e/baseline"),
            "predictions=e.baseline.predictions "
            "result=e.baseline.evaluation.pb");
  for (const char* task : {"a/verify", "b/verify"}) {
    EXPECT_THAT(Inputs(plan, task),
                HasSubstr("baseline_predictions=e/baseline:predictions"));
  }
}

TEST(Baselines, WaitForTheRecordsTheyRunOn) {
  const Plan plan = MustMake(
      "evaluation { name: 'e' on { dataset: 'data.textproto' data { stage: 'd' "
      "} } baseline { file: 'model.pb' } }" +
      StripFile("a", kVerify) +
      "stage { name: 'd' dataset { synthesize {} } }");
  EXPECT_THAT(Names(plan), ElementsAre("a", "d", "e/baseline", "a/verify"));
  EXPECT_THAT(After(plan, "e/baseline"), ElementsAre("d"));
}

TEST(Baselines, OfAStageReplaceTheEvaluations) {
  const Plan plan = MustMake(
      Evaluation("e", "baseline { file: 'model.pb' }") +
      StripFile("a", "verify { evaluation: 'e' baseline {} }") +
      StripFile("b", "verify { evaluation: 'e' baseline { stage: 'a' } }") +
      StripFile("c",
                "verify { evaluation: 'e' baseline { file: 'records' } }") +
      StripFile("d", kVerify));
  EXPECT_THAT(Inputs(plan, "a/verify"), Not(HasSubstr("baseline")));
  EXPECT_THAT(Inputs(plan, "b/verify"), HasSubstr("=a/verify:predictions"));
  EXPECT_THAT(Inputs(plan, "c/verify"), HasSubstr("=e/baseline:predictions"));
  EXPECT_THAT(Inputs(plan, "d/verify"), HasSubstr("=e/baseline_2:predictions"));
}

TEST(Baselines, OfAStageHaveTheirOwnNumberOfRecords) {
  const Plan plan = MustMake(
      Evaluation("e", "baseline { file: 'model.pb' records: '9' }") +
      StripFile("a", kVerify) +
      StripFile("b",
                "verify { evaluation: 'e' baseline { file: 'model.pb' records: "
                "'7' } }"));
  std::vector<std::string> records;
  for (const Task& task : plan.tasks) {
    if (task.kind == Task::Kind::kBaseline) {
      records.push_back(task.baseline_records);
    }
  }
  EXPECT_THAT(records, ElementsAre("9", "7"));
}

// Two stages that a variable leaves out or gives.
std::string Entering(const std::string& reader_more) {
  return absl::StrCat(
      "variable { name: 'given' default_value: '' }",
      Evaluation("e", "baseline { stage: 'a' }"),
      StripFile("a", absl::StrCat("skip_if: 'given' ", kVerify)),
      Strip("b", "stage: 'a'", reader_more), Strip("c", "stage: 'b'", kVerify));
}

TEST(LeftOutStages, AreNotReadByStagesThatRun) {
  EXPECT_EQ(Problem(Entering(""), {{"given", Folder() + "model.pb"}}),
            "F:3: stage \"b\" reads \"a\", which is left out because variable "
            "\"given\" is set");
}

TEST(LeftOutStages, GiveWayToAFileThatIsStillVerified) {
  const std::string text =
      Entering(absl::StrCat("use_file: '${given}' ", kVerify));
  EXPECT_THAT(Names(MustMake(text)),
              ElementsAre("a", "a/verify", "b", "b/verify", "c", "c/verify"));
  const Plan plan = MustMake(text, {{"given", Folder() + "model.pb"}});
  EXPECT_THAT(Names(plan), ElementsAre("b/verify", "c", "c/verify"));
  EXPECT_EQ(Inputs(plan, "c"), "graph=T/model.pb");
  EXPECT_THAT(After(plan, "c"), ElementsAre("b/verify"));
  EXPECT_EQ(plan.left_out_by[0], "given");
  EXPECT_EQ(plan.given_graph[1], Folder() + "model.pb");
  EXPECT_THAT(Find(plan, "c/verify").notes,
              ElementsAre("no baseline: stage \"a\" is left out"));
}

TEST(GivenGraphs, MustExist) {
  EXPECT_EQ(
      Problem(Evaluation("e") +
              StripFile("a", absl::StrCat("use_file: 'absent.pb' ", kVerify))),
      "F:2: stage \"a\": use_file: there is no T/absent.pb");
  EXPECT_EQ(Problem(StripFile("a", "use_file: 'absent.pb'")),
            "F:1: stage \"a\": use_file: there is no T/absent.pb");
}

TEST(GivenGraphs, MustBeModels) {
  std::filesystem::create_directories(Folder() + "empty");
  EXPECT_EQ(Problem(Strip("a", "file: 'empty'")),
            "F:1: stage \"a\": its graph: T/empty is a folder without "
            "saved_model.pb, so no SavedModel");
}

constexpr char kJudged[] = "baseline { file: 'model.pb' } ";

// A SavedModel to convert, with a line end behind it.
std::string Convert(const std::string& name, const std::string& more = "",
                    const std::string& inside = "") {
  std::filesystem::create_directories(Folder() + "saved");
  Write("saved/saved_model.pb", "");
  return absl::StrCat("stage { name: '", name,
                      "' convert { saved_model { file: 'saved' } ", inside,
                      " } ", more, " }\n");
}

TEST(Convert, MakesAFolderThatOthersReadAsAGraph) {
  const Plan plan =
      MustMake(Convert("a") +
               "stage { name: 'b' summarize { graph { stage: 'a' } } }\n"
               "stage { name: 'c' convert { saved_model { stage: 'a' } "
               "converted_graph_def: 'c.pb' } }\n");
  EXPECT_EQ(Find(plan, "a").outputs[0].file, "a_saved_model");
  EXPECT_EQ(Find(plan, "b").inputs[0].output, "graph");
  EXPECT_EQ(Find(plan, "c").inputs[0].role, "saved_model");
  EXPECT_EQ(Find(plan, "c").outputs[1].file, "c.pb");
}

TEST(Convert, SaysWhatItsPairsNeed) {
  EXPECT_EQ(Problem(Convert("a", "", "insert_qdq {}")),
            "F:1: stage \"a\": insert_qdq needs fixed { min: \"-1\" max: "
            "\"1\" } or calibrated { ... }");
  EXPECT_EQ(
      Problem(Convert("a", "", "insert_qdq { fixed { min: '1' max: '-1' } }")),
      "F:1: stage \"a\": fixed needs two numbers, min below max; \"1\" "
      "and \"-1\" are none");
  EXPECT_EQ(Problem(Convert("a", "",
                            "insert_qdq { inputs: 'all' fixed { min: '-1' max: "
                            "'1' } }")),
            "F:1: stage \"a\": inputs \"all\" is none of activations, "
            "weights, both");
}

TEST(RelativeMse, WaitsForTheStageThatItIsRelativeTo) {
  const Plan plan = MustMake(
      Evaluation("e", kJudged) + Convert("a", "verify { evaluation: 'e' }") +
      Convert("b",
              "verify { evaluation: 'e' relative_mse { stage: 'a' at_most: "
              ".01 } }"));
  EXPECT_THAT(After(plan, "b/verify"),
              testing::IsSupersetOf({"a", "a/verify", "b"}));
}

TEST(RelativeMse, IsToAnotherStageOfTheSameEvaluation) {
  EXPECT_EQ(
      Problem(Evaluation("e", kJudged) +
              Convert("a",
                      "verify { evaluation: 'e' relative_mse { stage: 'a' "
                      "at_most: .01 } }")),
      "F:2: stage \"a\" has relative_mse to \"a\", which is not another "
      "stage that the same evaluation verifies");
}

Gates GatesFor(const std::string& workflow, const std::string& evaluation,
               const std::string& stage) {
  const Plan plan = MustMake(absl::StrCat(
      "gates { ", workflow, " }\n",
      Evaluation("e", absl::StrCat(kJudged, "layer_records: '1' gates { ",
                                   evaluation, " }")),
      StripFile("a", absl::StrCat("verify { evaluation: 'e' gates { ", stage,
                                  " } }"))));
  return EffectiveGates(plan, Find(plan, "a/verify"));
}

TEST(EffectiveGates, TakeTheNarrowestPlacePerField) {
  const Gates gates =
      GatesFor("max_accuracy_drop: 1 min_agreement: .1 max_layer_shift: 3",
               "min_agreement: .2 max_output_change: .5", "min_agreement: .3");
  EXPECT_EQ(gates.max_accuracy_drop(), 1);
  EXPECT_EQ(gates.min_agreement(), .3);
  EXPECT_EQ(gates.max_output_change(), .5);
  EXPECT_EQ(gates.max_layer_shift(), 3);
  EXPECT_FALSE(gates.has_max_mean_output_change());
}

TEST(EffectiveGates, LoseALimitToANegativeOne) {
  const Gates gates = GatesFor("min_agreement: .1", "",
                               "min_agreement: -1 "
                               "max_accuracy_drop: -1");
  EXPECT_FALSE(gates.has_min_agreement());
  EXPECT_FALSE(gates.has_max_accuracy_drop());
}

TEST(EffectiveGates, LimitTheDropToHalfAPointUnlessSet) {
  EXPECT_EQ(GatesFor("", "", "").max_accuracy_drop(), .5);
  EXPECT_EQ(GatesFor("", "max_accuracy_drop: 0", "").max_accuracy_drop(), 0);
  EXPECT_TRUE(GatesFor("", "max_accuracy_drop: 0", "").has_max_accuracy_drop());
}

TEST(EffectiveGates, JudgeNothingWithoutABaseline) {
  const Plan plan = MustMake("gates { min_agreement: .5 }" + Evaluation("e") +
                             StripFile("a", kVerify));
  EXPECT_FALSE(
      EffectiveGates(plan, Find(plan, "a/verify")).has_min_agreement());
  EXPECT_FALSE(EffectiveGates(plan, Find(plan, "a")).has_max_accuracy_drop());
}

TEST(Gates, MustBePossible) {
  EXPECT_EQ(
      Problem("gates { min_agreement: 98.5 }\n" + StripFile("a")),
      "F:1: the workflow: min_agreement 98.5 is more than 1, which is all "
      "there is");
  EXPECT_EQ(Problem(Evaluation("e", "gates { max_output_change: nan }") +
                    StripFile("a", kVerify)),
            "F:1: evaluation \"e\": max_output_change is not a finite number");
  EXPECT_THAT(
      Problem("gates { max_layer_clipped: 0 }\n" +
              Evaluation("e", "baseline { stage: 'a' }") +
              StripFile("a", kVerify) + StripFile("b", kVerify)),
      AllOf(HasSubstr("stage \"b\" is held to max_layer_clipped, and its "
                      "layers are not compared: set layer_records"),
            Not(HasSubstr("stage \"a\""))));
  EXPECT_THAT(
      Problem(Evaluation("e") + StripFile("a",
                                          "verify { evaluation: 'e' expect { "
                                          "accuracy: 177 } }")),
      HasSubstr("expect needs within"));
}

TEST(Evaluations, AreNamedOnce) {
  EXPECT_EQ(Problem(Evaluation("e") + Evaluation("e") + StripFile("a")),
            "F:2: two evaluations are named \"e\"");
}

TEST(Evaluations, ThatNothingUsesMayBeIncomplete) {
  EXPECT_THAT(Problem("evaluation { name: 'e' }" + StripFile("a")), IsEmpty());
}

// Whatever the file says, a plan or a problem.
TEST(MakePlan, SurvivesMutations) {
  std::mt19937 random(1);
  const std::string pieces[] = {"stage: 'a'",
                                "'b'",
                                "verify {",
                                "}",
                                "transform {",
                                "{",
                                "'",
                                "baseline {",
                                "file: ''",
                                "'a'",
                                "-1",
                                "after: 'c'",
                                "output: 'log'",
                                "''",
                                "skip_if: 'given' "};
  const std::string seed = absl::StrCat(
      Entering(absl::StrCat("use_file: '${given}' ", kVerify)), kLogging,
      absl::StrReplaceAll(
          FreezeMin("file { name: 'log' from { stage: 'log' } }"),
          {{"${f}", ""}}),
      "stage { name: 's' compare { graph { stage: 'a' } baseline { stage: 'b' "
      "} on { dataset: 'data.textproto' } } }");
  const int rounds = FuzzRounds(300);
  int plans = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string text = seed;
    for (int i = random() % 3; i >= 0; --i) {
      // Mostly whole words, so that many texts still parse.
      const size_t at = text.find(' ', random() % text.size());
      if (at == std::string::npos) continue;
      const size_t end = text.find(' ', at + 1);
      if (random() % 2 == 0) text.erase(at, end - at);
      if (random() % 2 == 0) {
        text.insert(at, " " + pieces[random() % std::size(pieces)]);
      }
    }
    const auto plan = Make(text);
    if (!plan.ok()) continue;
    ++plans;
    for (size_t i = 0; i < plan->tasks.size(); ++i) {
      for (const int other : plan->tasks[i].after) EXPECT_LT(other, i);
      EffectiveGates(*plan, plan->tasks[i]);
    }
  }
  EXPECT_GT(plans, 0);
}

}  // namespace
}  // namespace requant::plan_test
