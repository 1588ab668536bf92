// requant plan as people run it, on the workflows that come with Requant.

#include "workflows/commands/plan_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process/subprocess.h"
#include "base/program/flags.h"

namespace requant::plan_command_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string out, error;
};

Outcome RunPlan(std::vector<std::string> args) {
  Outcome outcome;
  ChildOptions options;
  options.argv = {"workflows/requant", "plan"};
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  options.on_stdout = [&](std::string_view line) {
    outcome.out.append(line).append("\n");
  };
  options.on_stderr = [&](std::string_view line) {
    outcome.error.append(line).append("\n");
  };
  const auto result = RunChild(options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (result.ok()) outcome.exit_code = result->exit_code;
  return outcome;
}

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(WideDeep, IsTheDefaultAndCarriesThePublishedNames) {
  const Outcome outcome = RunPlan({});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.error;
  for (const char* name :
       {"model_nodes.txt", "wide_deep_frozen_fp32_graph.pb",
        "wide_deep_fp32_graph.pb", "optimized_wide_deep_fp32_graph.pb",
        "int8_dynamic_range_wide_deep_graph.pb",
        "logged_int8_dynamic_range_wide_deep.pb", "wide_deep_min_max_log.txt",
        "freezed_range_int8_wide_deep.pb",
        "logged_freezed_range_int8_wide_deep.pb", "wide_deep_min_log.txt",
        "freezed_range_int8_wide_deep_freezemin.pb", "wide_deep_max_log.txt",
        "freezed_range_int8_wide_deep_minmaxfreeze.pb",
        "final_int8_wide_deep.pb", "dataset_preprocessed_train.tfrecords",
        "dataset_preprocessed_eval.tfrecords"}) {
    EXPECT_THAT(outcome.out, HasSubstr(name));
  }
}

TEST(WideDeepFast, Plans) {
  const Outcome outcome = RunPlan({"wide_deep_fast"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.error;
  EXPECT_THAT(outcome.out, StartsWith("wide_deep_fast: Wide & Deep"));
}

TEST(GptjTinyQdq, Plans) {
  const Outcome outcome = RunPlan({"gptj_tiny_qdq"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.error;
  for (const char* name : {"round_trip_gptj_tiny", "fixed_gptj_tiny",
                           "gptj_tiny.ranges", "converted_gptj_tiny",
                           "min_agreement 0.98, relative_mse 0.01 of fixed"}) {
    EXPECT_THAT(outcome.out, HasSubstr(name));
  }
}

TEST(GptjQdq, TellsExactlyWhatItNeeds) {
  const Outcome outcome = RunPlan({"gptj_qdq"});
  EXPECT_EQ(outcome.exit_code, kExitFailed);
  for (const char* wanted :
       {"--set model_dir=FOLDER  the SavedModel, a folder with saved_model.pb "
        "and variables/ in it",
        "--set eval_dataset=FILE  a declaration of texts",
        "--set calibration_dataset=FILE  the same of texts"}) {
    EXPECT_THAT(outcome.error, HasSubstr(wanted));
  }
}

TEST(GptjQdq, PlansWithModelAndTexts) {
  const Outcome outcome = RunPlan(
      {"gptj_qdq", "--set", "model_dir=workflows/gptj_tiny/saved_model/1",
       "--set", "eval_dataset=workflows/gptj_tiny/eval.textproto", "--set",
       "calibration_dataset=workflows/gptj_tiny/calibration.textproto"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("\ncalibrated "));
}

TEST(WideDeepLargeDs, TellsExactlyWhatItNeeds) {
  const Outcome outcome = RunPlan({"wide_deep_large_ds"});
  EXPECT_EQ(outcome.exit_code, kExitFailed);
  for (const char* wanted :
       {"--set model=FOLDER  the trained SavedModel",
        "--set eval_data=FILE  the preprocessed evaluation records",
        "--set train_data=FILE  the preprocessed training records"}) {
    EXPECT_THAT(outcome.error, HasSubstr(wanted));
  }
  EXPECT_THAT(outcome.error, Not(HasSubstr("--set optimized_graph")));
}

TEST(WideDeepLargeDs, PlansWithModelAndRecords) {
  const std::string records = Write("records.tfrecords", "");
  const Outcome outcome =
      RunPlan({"wide_deep_large_ds", "--set", "model=workflows/wide_deep/model",
               "--set=eval_data=" + records, "--set", "train_data=" + records});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("\nfreeze "));
}

TEST(WideDeepLargeDs, ExpectsThePublishedAccuracyOfThePublishedModelOnly) {
  const std::string records = Write("records.tfrecords", "");
  std::vector<std::string> args = {
      "wide_deep_large_ds",         "--set", "model=workflows/wide_deep/model",
      "--set=eval_data=" + records, "--set", "train_data=" + records};
  EXPECT_THAT(RunPlan(args).out, Not(HasSubstr("expect")));
  args.push_back("--set=published_model=yes");
  EXPECT_THAT(RunPlan(args).out, AllOf(HasSubstr("expect accuracy 77.5223 %"),
                                       HasSubstr("expect accuracy 77.4816 %")));
}

TEST(WideDeepLargeDs, EntersAtStepSixWithAnOptimizedGraph) {
  const std::string records = Write("records.tfrecords", "");
  const std::string graph = Write("optimized.pb", "");
  const Outcome outcome =
      RunPlan({"wide_deep_large_ds", "--set", "optimized_graph=" + graph,
               "--set=eval_data=" + records, "--set", "train_data=" + records});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.error;
  for (const char* stage : {"summarize", "freeze", "trim"}) {
    EXPECT_THAT(outcome.out,
                HasSubstr(absl::StrCat("\n", stage,
                                       ": left out, because "
                                       "variable \"optimized_graph\" is set")));
  }
  EXPECT_THAT(outcome.out,
              HasSubstr("\noptimize: not run, its graph is " + graph));
  EXPECT_THAT(outcome.out, HasSubstr("\noptimize/verify "));
}

constexpr char kSmall[] =
    "summary: 'small'\n"
    "stage { name: 'a' dataset { synthesize { rows: '5' } } }\n"
    "stage { name: 'b' dataset { preprocess { data { stage: 'a' } } } }\n";

TEST(Plan, TellsEachMistakeOnALineOfItsOwn) {
  const std::string path =
      Write("bad.textproto",
            "stage { name: 'a' dataset { synthesize { rows: 'x' } } }\n"
            "stage { name: 'b' summarize { graph { stage: 'aa' } } }\n");
  const Outcome outcome = RunPlan({path});
  EXPECT_EQ(outcome.exit_code, kExitFailed);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.error,
              HasSubstr("\n" + path +
                        ":1: stage \"a\": rows \"x\" is not a number from 1 "
                        "on\n" +
                        path +
                        ":2: stage \"b\" reads \"aa\": no such stage; did you "
                        "mean \"a\"?\n"));
}

TEST(Plan, ListsTasksInOrder) {
  const Outcome outcome = RunPlan({Write("small.textproto", kSmall)});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.error;
  EXPECT_THAT(outcome.out, StartsWith("small: small\n\n"
                                      "a  make records  [would run"));
  EXPECT_THAT(outcome.out, HasSubstr("\n   reads  a.csv\n"
                                     "   writes b.tfrecords\n"));
}

TEST(Plan, DrawsItselfAndSpeaksJson) {
  const std::string path = Write("small.textproto", kSmall);
  EXPECT_THAT(RunPlan({path, "--format=dot"}).out,
              HasSubstr("  t0 -> t1 [label=\"a.csv\"];\n"));
  EXPECT_THAT(RunPlan({path, "--format=mermaid"}).out,
              HasSubstr("  t0 -->|\"a.csv\"| t1\n"));
  EXPECT_THAT(RunPlan({path, "--format=json"}).out,
              HasSubstr("\"inputs\": [{\"role\": \"data\", \"task\": \"a\", "
                        "\"output\": \"data\"}]"));
  EXPECT_EQ(RunPlan({path, "--format=svg"}).exit_code, kExitUsage);
}

TEST(Plan, RefusesWrongUsage) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--set"},
        {"--set", "novalue"},
        {"--set==x"},
        {"--set", "a=1", "--set", "a=2"},
        {"wide_deep", "wide_deep_fast"}}) {
    EXPECT_EQ(RunPlan(args).exit_code, kExitUsage);
  }
}

TEST(Plan, TakesValuesWithCommasAndEqualsSigns) {
  const std::string path = Write(
      "commas.textproto",
      absl::StrCat("variable { name: 'v' default_value: '' }\n", kSmall,
                   "stage { name: 'c' summary: '<${v}>' dataset { synthesize "
                   "{} } }"));
  EXPECT_THAT(RunPlan({path, "--set", "v=a,b=c"}).out, HasSubstr("<a,b=c>"));
}

TEST(Plan, SuggestsTheWorkflowThatWasMeant) {
  const Outcome outcome = RunPlan({"wide_deep_fats"});
  EXPECT_EQ(outcome.exit_code, kExitFailed);
  EXPECT_THAT(outcome.error, HasSubstr("did you mean \"wide_deep_fast\"?"));
}

}  // namespace
}  // namespace requant::plan_command_test
