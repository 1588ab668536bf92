// launch_benchmark outside the container, as the published recipe calls it.

#include "absl/strings/str_split.h"
#include "tests/support/program_runs.h"
#include "tests/support/recipe.h"

namespace requant::launch_benchmark_test {
namespace {

constexpr char kLaunchBenchmark[] = "workflows/launch_benchmark";
constexpr int kRecords = 2000;

class LaunchBenchmarkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    recipe_ = new WideDeepRecipe(kRecords, kRecords);
    recipe_->MakeFloatGraph();
  }
  static void TearDownTestSuite() { delete recipe_; }

  static Words PublishedFlags(const std::string& graph,
                              const std::string& precision) {
    return Joined(
        {"--in-graph", recipe_->folder.Path(graph), "--precision", precision,
         "--data-location",
         recipe_->folder.Path("dataset_preprocessed_eval.tfrecords")},
        absl::StrSplit("--model-name wide_deep_large_ds --framework tensorflow "
                       "--mode inference --accuracy-only --batch-size=1000 "
                       "--socket-id 0 --docker-image "
                       "docker.io/intelaipg/intel-optimized-tensorflow:latest",
                       ' '));
  }

  static inline WideDeepRecipe* recipe_ = nullptr;
};

TEST_F(LaunchBenchmarkTest, EndsAsThePublishedLogDoes) {
  ASSERT_THAT(RunProgram(kLaunchBenchmark, PublishedFlags(kFloatGraph, "fp32")),
              AllOf(Prints("\nTotal test records           :  2000\n"
                           "Batch size is                :  1000\n"
                           "Number of batches            :  2\n",
                           "\nClassification accuracy (%)  :  ",
                           EndsWith(std::string(50, '-') + "\n")),
                    Warns("--docker-image docker.io/intelaipg/intel-"
                          "optimized-tensorflow:latest is ignored",
                          Not(HasSubstr("--precision")))));
}

TEST_F(LaunchBenchmarkTest, SaysThatTheGraphIsOfAnotherPrecision) {
  EXPECT_THAT(RunProgram(kLaunchBenchmark, PublishedFlags(kFloatGraph, "int8")),
              Warns("--precision int8 is ignored"));
}

// Steps 7 to 9 store the output in a file that the freezing transforms read.
TEST_F(LaunchBenchmarkTest, LetsPrintOperationsWriteToStderr) {
  recipe_->MakeDynamicGraph();
  recipe_->Transform(kDynamicGraph, "logged.pb",
                     "insert_logging(op=RequantizationRange, show_name=true, "
                     "message=\"__requant_min_max:\")");
  EXPECT_THAT(RunProgram(kLaunchBenchmark, PublishedFlags("logged.pb", "int8")),
              Warns("__print__;__requant_min_max:["));
}

}  // namespace
}  // namespace requant::launch_benchmark_test
