// Tests `requant plan` as people run it, on the workflows of Requant.

#include <fstream>
#include <map>

#include "base/program/flags.h"
#include "graph/testing/program.h"

namespace requant::plan_command_test {
namespace {

ProgramRun RunPlan(std::vector<std::string> args) {
  args.insert(args.begin(), "plan");
  return RunProgram("workflows/requant", args);
}

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

// Returns what `requant plan` prints, which must succeed.
std::string Planned(const std::vector<std::string>& args) {
  const ProgramRun run = RunPlan(args);
  EXPECT_THAT(run, Exits(kExitOk));
  return run.out;
}

// Returns why `requant plan` fails, which it must.
std::string Refused(const std::vector<std::string>& args) {
  const ProgramRun run = RunPlan(args);
  EXPECT_THAT(run, Exits(kExitFailed));
  EXPECT_EQ(run.out, "");
  return run.error;
}

void ExpectAll(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_THAT(text, HasSubstr(part));
}

// Returns arguments for wide_deep_large_ds with records and one more setting.
std::vector<std::string> LargeDs(const std::string& setting) {
  const std::string records = Write("records.tfrecords", "");
  return {"wide_deep_large_ds",         "--set", setting,
          "--set=eval_data=" + records, "--set", "train_data=" + records};
}

// workflow_run_test looks for the other published names.
TEST(WideDeep, IsTheDefaultAndCarriesThePublishedNames) {
  ExpectAll(Planned({}),
            {"wide_deep: ", "logged_freezed_range_int8_wide_deep.pb",
             "dataset_preprocessed_train.tfrecords",
             "dataset_preprocessed_eval.tfrecords"});
}

TEST(Help, ListsTheWorkflowsThatComeWithRequant) {
  for (const char* command : {"run", "plan"}) {
    const ProgramRun run = RunProgram("workflows/requant", {command, "--help"});
    EXPECT_THAT(run, Exits(kExitOk));
    ExpectAll(run.out,
              {"Workflows that come with Requant:\n  gptj_qdq ",
               "  wide_deep_fast      Wide & Deep to int8 with one calibration "
               "pass and quantized embeddings\n"});
  }
}

TEST(WideDeepFast, Plans) {
  EXPECT_THAT(Planned({"wide_deep_fast"}),
              StartsWith("wide_deep_fast: Wide & Deep"));
}

TEST(GptjTinyQdq, Plans) {
  ExpectAll(Planned({"gptj_tiny_qdq"}),
            {"round_trip_gptj_tiny", "fixed_gptj_tiny", "gptj_tiny.ranges",
             "converted_gptj_tiny",
             "min_agreement 0.98, relative_mse 0.01 of fixed"});
}

TEST(GptjQdq, SaysExactlyWhatItNeeds) {
  ExpectAll(Refused({"gptj_qdq"}),
            {"--set model_dir=FOLDER  the SavedModel, a folder with "
             "saved_model.pb and variables/ in it",
             "--set eval_dataset=FILE  a declaration of texts",
             "--set calibration_dataset=FILE  the same of texts"});
  EXPECT_THAT(
      Planned(
          {"gptj_qdq", "--set", "model_dir=workflows/gptj_tiny/saved_model/1",
           "--set", "eval_dataset=workflows/gptj_tiny/eval.textproto", "--set",
           "calibration_dataset=workflows/gptj_tiny/calibration.textproto"}),
      HasSubstr("\ncalibrated "));
}

TEST(WideDeepLargeDs, SaysExactlyWhatItNeeds) {
  const std::string error = Refused({"wide_deep_large_ds"});
  ExpectAll(error,
            {"--set model=FOLDER  the trained SavedModel",
             "--set eval_data=FILE  the preprocessed evaluation records",
             "--set train_data=FILE  the preprocessed training records"});
  EXPECT_THAT(error, Not(HasSubstr("--set optimized_graph")));
}

TEST(WideDeepLargeDs, ExpectsThePublishedAccuracyOfThePublishedModelOnly) {
  std::vector<std::string> args = LargeDs("model=workflows/wide_deep/model");
  EXPECT_THAT(Planned(args),
              AllOf(HasSubstr("\nfreeze "), Not(HasSubstr("expect"))));
  args.push_back("--set=published_model=yes");
  ExpectAll(Planned(args),
            {"expect accuracy 77.5223 %", "expect accuracy 77.4816 %"});
}

TEST(WideDeepLargeDs, EntersAtStepSixWithAnOptimizedGraph) {
  const std::string graph = Write("optimized.pb", "");
  constexpr char kWhy[] =
      ": left out, because variable \"optimized_graph\" is set";
  ExpectAll(
      Planned(LargeDs("optimized_graph=" + graph)),
      {absl::StrCat("\nsummarize", kWhy), absl::StrCat("\nfreeze", kWhy),
       absl::StrCat("\ntrim", kWhy),
       "\noptimize: not run, its graph is " + graph, "\noptimize/verify "});
}

constexpr char kSmall[] =
    "summary: 'small'\n"
    "stage { name: 'a' dataset { synthesize { rows: '5' } } }\n"
    "stage { name: 'b' dataset { preprocess { data { stage: 'a' } } } }\n";

TEST(Plan, SaysEachMistakeOnALineOfItsOwn) {
  const std::string path =
      Write("bad.textproto",
            "stage { name: 'a' dataset { synthesize { rows: 'x' } } }\n"
            "stage { name: 'b' summarize { graph { stage: 'aa' } } }\n");
  EXPECT_THAT(Refused({path}),
              HasSubstr("\n" + path +
                        ":1: stage \"a\": rows \"x\" is not a number from 1 "
                        "on\n" +
                        path +
                        ":2: stage \"b\" reads \"aa\": no such stage; did you "
                        "mean \"a\"?\n"));
}

// plan_test checks what each form looks like.
TEST(Plan, ListsTasksDrawsItselfAndSpeaksJson) {
  const std::string path = Write("small.textproto", kSmall);
  const std::map<std::string, std::string> starts = {
      {"text", "small: small\n\na  make records  [would run"},
      {"dot", "digraph "},
      {"mermaid", "flowchart "},
      {"json", "{\"workflow\": "}};
  for (const auto& [format, start] : starts) {
    EXPECT_THAT(Planned({path, "--format=" + format}), StartsWith(start));
  }
}

TEST(Plan, RefusesWrongUsage) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--set"},
        {"--set", "novalue"},
        {"--set==x"},
        {"--set", "a=1", "--set", "a=2"},
        {"wide_deep", "--format=svg"},
        {"wide_deep", "wide_deep_fast"}}) {
    EXPECT_THAT(RunPlan(args), Exits(kExitUsage));
  }
}

TEST(Plan, TakesValuesWithCommasAndEqualsSigns) {
  const std::string path = Write(
      "commas.textproto",
      absl::StrCat("variable { name: 'v' default_value: '' }\n", kSmall,
                   "stage { name: 'c' summary: '<${v}>' dataset { synthesize "
                   "{} } }"));
  EXPECT_THAT(Planned({path, "--set", "v=a,b=c"}), HasSubstr("<a,b=c>"));
}

}  // namespace
}  // namespace requant::plan_command_test
