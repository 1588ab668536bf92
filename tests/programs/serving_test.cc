// Tests an int8 graph in a stock Python TensorFlow, in the environment that
// docs/quantization.md recommends.

#include <cstdio>
#include <filesystem>
#include <string_view>
#include <tuple>

#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/process/tensorflow_child.h"
#include "graph/tensorflow_library.h"
#include "re2/re2.h"
#include "tests/support/mixed_records.h"
#include "tests/support/program_runs.h"

namespace requant::serving_test {
namespace {

constexpr char kPage[] = "docs/quantization.md";
constexpr char kFloatGraph[] = "tests/data/mixed_layers/frozen.pb";

// Prints the share of records for which two graphs predict the same class.
constexpr char kCompare[] = R"py(
import sys
import numpy as np
import tensorflow as tf

records = np.load(sys.argv[3])

def classes(path):
  graph_def = tf.compat.v1.GraphDef.FromString(open(path, "rb").read())
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name="")
    with tf.compat.v1.Session(graph=graph) as session:
      return session.run("head/probabilities:0", {
          "signal:0": records["signal"],
          "context:0": records["context"]}).argmax(axis=1)

print("agreement", np.mean(classes(sys.argv[1]) == classes(sys.argv[2])))
)py";

// Returns the lines of the page's section on serving.
std::string Section() {
  const std::string page = ReadFile(kPage).value();
  const size_t start = page.find("## Serving the graph\n");
  EXPECT_NE(start, std::string::npos);
  if (start == std::string::npos) return "";
  return page.substr(start, page.find("\n## ", start) - start);
}

// Returns the variables that it says to set: `NAME=value`.
std::vector<std::string> PageVariables() {
  Words variables;
  const std::string section = Section();
  std::string_view rest = section;
  std::string variable;
  while (RE2::FindAndConsume(&rest, "`([A-Z][A-Z_]+=[A-Z0-9_]+)`", &variable)) {
    variables.push_back(variable);
  }
  return variables;
}

// Returns the folder, beside the C++ files, where ./requant test keeps a stock
// Python TensorFlow such as users' servers and scripts run.
std::string PythonFolder() {
  return absl::StrCat(TensorFlowLibraryFolder().value(), "/../../python");
}

class Serving : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(PythonFolder() + "/installed")) {
      std::printf(
          "*** Python's TensorFlow is not installed: what needs it is skipped."
          "\n./requant test fetches it.\n");
      GTEST_SKIP() << "no Python TensorFlow";
    }
    for (const auto& [file, split, rows] :
         {std::tuple{"train.npz", MixedSplit::kCalibration, 2000},
          std::tuple{"eval.npz", MixedSplit::kEval, 4000}}) {
      ASSERT_OK(WriteMixedRecords(folder_.Path(file), split, rows));
    }
    const ProgramRun run =
        RunProgram("runtime/quantize_model",
                   {absl::StrCat("--graph=", kFloatGraph),
                    "--dataset=tests/data/mixed_layers/dataset.textproto",
                    "--data=" + folder_.Path("train.npz"),
                    "--output=" + folder_.Path("int8.pb")});
    ASSERT_THAT(run, Exits(0));
    quantize_output_ = run.out;
  }

  // Compares in an environment that has `variables` and no others that
  // TensorFlow reads.
  ProgramRun Compare(const Words& variables) {
    return RunProgram(
        "/usr/bin/env",
        Joined(
            Joined({"-i", "PATH=/usr/bin:/bin", "PYTHONPATH=" + PythonFolder()},
                   variables),
            {"/usr/bin/python3", "-c", kCompare, kFloatGraph,
             folder_.Path("int8.pb"), folder_.Path("eval.npz")}));
  }

  void ExpectRight(const Words& variables) {
    const ProgramRun run = Compare(variables);
    double agreement = 0;
    EXPECT_TRUE(RE2::FullMatch(run.out, "agreement ([0-9.]+)\n", &agreement))
        << run.out << run.error;
    EXPECT_GT(agreement, 0.98);
  }

  TestFolder folder_;
  std::string quantize_output_;
};

TEST_F(Serving, WorksInTheEnvironmentThatThePageGivesForAnyCpu) {
  const Words variables = PageVariables();
  EXPECT_THAT(variables, ElementsAre(StartsWith("TF_ENABLE_ONEDNN_OPTS="),
                                     StartsWith("ONEDNN_MAX_CPU_ISA=")));
  ExpectRight(variables);
}

// The settings that `quantize`, `run` and `doctor` report for this machine are
// on the page and suffice.
TEST_F(Serving, WorksWithWhatThisMachineIsSaidToNeed) {
  const std::vector<std::string> needed =
      absl::StrSplit(ServingVariables(), ' ', absl::SkipEmpty());
  for (const std::string& variable : needed) {
    EXPECT_THAT(Section(),
                HasSubstr(variable.substr(0, variable.find('=') + 1)));
    EXPECT_THAT(quantize_output_, HasSubstr(variable));
  }
  EXPECT_THAT(quantize_output_, HasSubstr(kPage));
  ExpectRight(needed);
}

TEST_F(Serving, FailsWithoutOneDnnAsThePageSays) {
  const ProgramRun run = Compare({"TF_ENABLE_ONEDNN_OPTS=0"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.error, HasSubstr("Missing 0-th output from"));
  EXPECT_THAT(Section(), HasSubstr("Missing 0-th output from"));
}

}  // namespace
}  // namespace requant::serving_test
