#include "tests/support/pasted.h"

#include <filesystem>
#include <iostream>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "re2/re2.h"
#include "tests/support/recipe.h"

namespace requant {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;

// Returns the text after `key` at the beginning of a line.
std::string ValueOf(std::string_view key, std::string_view block) {
  for (std::string_view line : absl::StrSplit(block, '\n')) {
    if (absl::ConsumePrefix(&line, key)) return std::string(line);
  }
  ADD_FAILURE() << "no " << key << " in " << block;
  return "";
}

}  // namespace

std::string PastedCommands(const std::string& document,
                           const std::string& where,
                           const std::string& folder) {
  std::string text = ReadFile(document).value();
  if (document == kGptjCommands) return text;
  const std::string list = ReadFile("tests/pasted/substitutions.txt").value();
  const std::vector<std::string> blocks = absl::StrSplit(list, "\n\n");
  for (size_t i = 1; i < blocks.size(); ++i) {
    const std::string in = ValueOf("in: ", blocks[i]);
    EXPECT_FALSE(ValueOf("because: ", blocks[i]).empty());
    if (in != "both" && in != where) continue;
    const RE2 pattern(ValueOf("replace: ", blocks[i]));
    std::string by = ValueOf("by:", blocks[i]);
    if (absl::StartsWith(by, " ")) by.erase(0, 1);
    EXPECT_GT(RE2::GlobalReplace(&text, pattern, by), 0) << pattern.pattern();
  }
  return absl::StrReplaceAll(text, {{"@FOLDER@", folder}});
}

void MakeRecipeFiles(const std::string& folder) {
  MustRun("sh",
          {"-c", R"(gzip -dc "$1" >"$2")", "sh",
           "workflows/wide_deep/graph.pbtxt.gz", folder + "/graph.pbtxt"});
  MustRun("cp", {"-rL", "workflows/wide_deep/model", folder + "/saved_model"});
  DrawWideDeepRecords(folder, "train", 20000);
  DrawWideDeepRecords(folder, "eval", 10000);
}

void ExpectRecipeDone(const ProgramRun& run, const std::string& folder) {
  ASSERT_EQ(run.exit_code, 0) << run.out << run.error;
  // Returns the accuracy in the log's tail after the line that names the graph.
  const auto accuracy_of = [&](const char* graph) {
    return NumberIn(run.out,
                    absl::StrCat("(?s)Evaluating ", graph,
                                 "\n.*?Classification accuracy \\(%\\)  :  "
                                 "([0-9.]+)\n"));
  };
  const double float_accuracy = accuracy_of(kFloatGraph);
  std::cout << kFloatGraph << ": " << float_accuracy << " %\n";
  // The model reaches 78.455 % on 200,000 records.
  EXPECT_NEAR(float_accuracy, 78.4, 1.5);
  for (const char* graph : kInt8Stages) {
    const double accuracy = accuracy_of(graph);
    std::cout << graph << ": " << accuracy << " %\n";
    // This is the recipe's limit.
    EXPECT_GE(accuracy, float_accuracy - 0.5) << graph;
    EXPECT_LE(accuracy, 100) << graph;
  }
  // The recipe shows the output in this form.
  EXPECT_THAT(run.out,
              ContainsRegex("-{50}\n"
                            "Total test records           :  10000\n"
                            "Batch size is                :  1000\n"
                            "Number of batches            :  10\n"
                            "Throughput is \\(records/sec\\)  :  [0-9.]+\n"
                            "Inference duration \\(seconds\\) :  [0-9.]+\n"
                            "Latency \\(millisecond/batch\\)  :  [0-9.]+\n"
                            "Classification accuracy \\(%\\)  :  [0-9.]+\n"
                            "No of correct predicitons    :  [0-9]+\n"
                            "-{50}\n$"));
  EXPECT_THAT(run.error, HasSubstr("--docker-image docker.io/intelaipg/intel-"
                                   "optimized-tensorflow:latest is ignored"));
  for (const char* log : {kRangesLog, kMinLog, kMaxLog}) {
    EXPECT_THAT(*ReadFile(absl::StrCat(folder, "/", log)),
                HasSubstr("__print__;__"));
  }
}

void MakeGptjFiles(const std::string& folder) {
  fs::create_directories(folder + "/gpt-j-6B");
  MustRun("cp",
          {"-rL", "workflows/gptj_tiny/saved_model", folder + "/gpt-j-6B/"});
}

void ExpectGptjDone(const ProgramRun& run, const std::string& folder) {
  ASSERT_EQ(run.exit_code, 0) << run.out << run.error;
  const std::string model_lines =
      "-{57}\n"
      "The infrence results of (original|converted) gpt-j with TF2.x API\n"
      "Batch size = 8\n"
      "Latency: [0-9]+\\.[0-9]{3} ms\n"
      "Throughput: [0-9]+\\.[0-9]{3} images/sec\n";
  const std::string mse = "-{57}\nMSE of the output logits between two models ";
  const RE2 tails(absl::StrCat("(?s)", model_lines, model_lines, mse,
                               "= 0\\.0\n.*", model_lines, model_lines, mse,
                               "= ([0-9.]+)\n"));
  std::string words[4];
  double error = 0;
  ASSERT_TRUE(RE2::PartialMatch(run.out, tails, &words[0], &words[1], &words[2],
                                &words[3], &error))
      << run.out;
  EXPECT_EQ(words[0] + words[1] + words[2] + words[3],
            "originalconvertedoriginalconverted");
  EXPECT_GT(error, 0);
  EXPECT_THAT(run.out, HasSubstr("made up input_ids: int32 [8,"));
  for (const char* name :
       {"gpt-j-6B/saved_model.pb", "converted_gpt-j-6B/saved_model.pb",
        "converted_gpt-j-6B/variables/variables.index",
        "extracted_graph_def.pb", "output/benchmark.txt",
        "output/benchmark.json"}) {
    EXPECT_TRUE(fs::exists(absl::StrCat(folder, "/", name))) << name;
  }
  const std::string text =
      ReadFile(absl::StrCat(folder, "/converted_graph_def.pbtxt")).value();
  // The pairs are in functions, as the document lists them.
  EXPECT_THAT(text, HasSubstr("_eightbit_quantize_"));
  EXPECT_THAT(text, HasSubstr("Tensordot/MatMul_dequantize:output:0"));
  EXPECT_TRUE(fs::exists(folder + "/dumped_graph.pb"));
}

}  // namespace requant
