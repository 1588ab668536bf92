// The program: its flags as commands for TensorFlow's own have them, and what
// damaged models make of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"

namespace requant::freeze_graph_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kFunctions[] = "graph/testdata/functions";
constexpr char kReferences[] = "graph/testdata/ref_variables";

struct Outcome {
  int exit_code = -1;
  std::vector<std::string> output;
  std::vector<std::string> errors;

  std::string error() const { return errors.empty() ? "" : errors[0]; }
};

Outcome RunProgram(const std::vector<std::string>& arguments) {
  Outcome outcome;
  ChildOptions options;
  options.argv = {"graph/freeze_graph"};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.on_stdout = [&](std::string_view line) {
    outcome.output.emplace_back(line);
  };
  options.on_stderr = [&](std::string_view line) {
    outcome.errors.emplace_back(line);
  };
  const auto result = RunChild(options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (result.ok()) outcome.exit_code = result->exit_code;
  return outcome;
}

// A path where no file is.
std::string Output(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  unlink(path.c_str());
  return path;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Exit code 1 with one sentence, and no file.
void ExpectFailure(const Outcome& outcome, const std::string& path) {
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.errors.size(), 1) << testing::PrintToString(outcome.errors);
  EXPECT_THAT(outcome.error(), StartsWith("freeze_graph: "));
  EXPECT_FALSE(Exists(path));
}

TEST(FreezeGraphProgram, UnderstandsTheBlankOfThePublishedCommand) {
  const std::string path = Output("blank.pb");
  const Outcome outcome =
      RunProgram({absl::StrCat("--input_saved_model_dir=", kReferences),
                  "--output_graph=", path, "--output_node_names=y"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error();
  const auto graph = ReadGraph(path);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(HasNode(*graph, "y"));
  EXPECT_FALSE(HasNode(*graph, "named"));
}

TEST(FreezeGraphProgram, TakesValuesBehindABlankAsPythonDoes) {
  const std::string path = Output("values.pb");
  const Outcome outcome =
      RunProgram({"--input_saved_model_dir", kReferences, "--input_binary",
                  "True", "--clear_devices", "False", "--output_graph", path,
                  "--saved_model_tags", "serve", "--restore_op_name",
                  "save/restore_all", "--checkpoint_version", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error();
  EXPECT_TRUE(outcome.errors.empty()) << outcome.error();
  EXPECT_TRUE(Exists(path));
}

TEST(FreezeGraphProgram, SaysWhatItIgnores) {
  const std::string path = Output("ignored.pb");
  const Outcome outcome =
      RunProgram({"--input_saved_model_dir", kReferences, "--output_graph",
                  path, "--filename_tensor_name", "save/Const:0"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.error(), HasSubstr("--filename_tensor_name is ignored"));
}

TEST(FreezeGraphProgram, TakesOtherTags) {
  const std::string path = Output("tags.pb");
  const Outcome outcome =
      RunProgram({"--input_saved_model_dir", kReferences, "--output_graph",
                  path, "--saved_model_tags", "cpu,train"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error();
  EXPECT_TRUE(Exists(path));
}

TEST(FreezeGraphProgram, ListsTheTagsThereAre) {
  const std::string path = Output("wrong_tags.pb");
  const Outcome outcome =
      RunProgram({"--input_saved_model_dir", kReferences, "--output_graph",
                  path, "--saved_model_tags", "gpu"});
  ExpectFailure(outcome, path);
  EXPECT_THAT(outcome.error(), AllOf(HasSubstr("{gpu}"), HasSubstr("{serve}"),
                                     HasSubstr("{train, cpu}")));
}

TEST(FreezeGraphProgram, RefusesUnclearCommands) {
  EXPECT_EQ(RunProgram({}).exit_code, 2);
  EXPECT_EQ(RunProgram({"--input_saved_model_dir=a", "--input_graph=b",
                        "--output_graph=c"})
                .exit_code,
            2);
  EXPECT_THAT(RunProgram({"--input_saved_model_dir=a"}).error(),
              HasSubstr("--output_graph is missing"));
  EXPECT_THAT(RunProgram({"--input_saved_model_dir=a", "--output_graph=b", "c"})
                  .error(),
              HasSubstr("unexpected argument \"c\""));
}

TEST(FreezeGraphProgram, RefusesTruncatedModels) {
  const std::string folder = testing::TempDir() + "/truncated";
  const std::string path = Output("truncated.pb");
  const std::string whole =
      ReadFile(absl::StrCat(kFunctions, "/saved_model.pb")).value();
  ASSERT_EQ(0, system(("mkdir -p " + folder).c_str()));
  for (const size_t size : {size_t{0}, size_t{1}, whole.size() / 3,
                            whole.size() / 2, whole.size() - 1}) {
    ASSERT_TRUE(WriteFileAtomically(folder + "/saved_model.pb",
                                    std::string_view(whole).substr(0, size))
                    .ok());
    ExpectFailure(
        RunProgram({"--input_saved_model_dir", folder, "--output_graph", path}),
        path);
  }
}

TEST(FreezeGraphProgram, RefusesAModelWithoutVariables) {
  const std::string folder = testing::TempDir() + "/bare";
  const std::string path = Output("bare.pb");
  ASSERT_EQ(0, system(("mkdir -p " + folder).c_str()));
  const auto model = ReadFile(absl::StrCat(kFunctions, "/saved_model.pb"));
  ASSERT_TRUE(WriteFileAtomically(folder + "/saved_model.pb", *model).ok());
  const Outcome outcome =
      RunProgram({"--input_saved_model_dir", folder, "--output_graph", path});
  ExpectFailure(outcome, path);
  EXPECT_THAT(outcome.error(), HasSubstr("variables.index"));
}

// Bytes all over the index wrong, one at a time: either the damage does not
// matter or it is told in a sentence, also where TensorFlow's own code aborts.
TEST(FreezeGraphProgram, SurvivesADamagedIndex) {
  const std::string folder = testing::TempDir() + "/damaged";
  const std::string path = Output("damaged.pb");
  ASSERT_EQ(0, system(absl::StrCat("rm -rf ", folder, " && cp -rL ", kFunctions,
                                   " ", folder, " && chmod -R u+w ", folder)
                          .c_str()));
  const std::string index = folder + "/variables/variables.index";
  const std::string whole = ReadFile(index).value();
  for (size_t i = 0; i < whole.size(); i += 61) {
    std::string damaged = whole;
    damaged[i] ^= 0x41;
    ASSERT_TRUE(WriteFileAtomically(index, damaged).ok());
    unlink(path.c_str());
    const Outcome outcome =
        RunProgram({"--input_saved_model_dir", folder, "--output_graph", path});
    if (outcome.exit_code != 0) ExpectFailure(outcome, path);
  }
}

TEST(FreezeGraphProgram, RefusesAFolderItCannotWriteTo) {
  const Outcome outcome = RunProgram({"--input_saved_model_dir", kReferences,
                                      "--output_graph=/no/such/folder/x.pb"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.error(), HasSubstr("/no/such/folder"));
}

TEST(FreezeGraphProgram, DoesNotOverwriteItsInput) {
  const std::string folder = testing::TempDir() + "/own";
  ASSERT_EQ(0, system(absl::StrCat("rm -rf ", folder, " && cp -rL ", kFunctions,
                                   " ", folder, " && chmod -R u+w ", folder)
                          .c_str()));
  for (const char* name : {"saved_model.pb", "variables/variables.index"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    const std::string before = ReadFile(path).value();
    const Outcome outcome =
        RunProgram({"--input_saved_model_dir", folder, "--output_graph", path});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.error(), HasSubstr("it is also read"));
    EXPECT_EQ(ReadFile(path).value(), before);
  }
}

TEST(FreezeGraphProgram, SaysThatTheDiskIsFull) {
  EXPECT_THAT(RunProgram({"--input_saved_model_dir", kFunctions,
                          "--output_graph=/dev/full"})
                  .error(),
              HasSubstr("/dev/full: No space left on device"));
}

}  // namespace
}  // namespace requant::freeze_graph_test
