// The published documents, pasted into `requant shell`, and what that shell
// does with other commands.

#include "tests/support/pasted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "graph/testing/program.h"

namespace requant::pasted_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A machine with a shell and few programs: neither Python nor pip nor git.
class Pasted : public testing::Test {
 protected:
  Pasted() {
    for (const char* name : {"bash", "cat", "cp", "ln", "mkdir", "mv", "rm"}) {
      fs::create_directories(folder_.Path("bin"));
      fs::create_symlink(absl::StrCat("/bin/", name),
                         folder_.Path(absl::StrCat("bin/", name)));
    }
    fs::create_directories(folder_.Path("here"));
  }

  // Lets requant shell read `commands` from stdin, in the folder "here".
  ProgramRun Paste(const std::string& commands,
                   const std::vector<std::string>& arguments = {}) {
    folder_.Write("commands", commands);
    std::vector<std::string> line = {
        "-c",
        R"(cd "$1" && exec "$2" shell "${@:4}" <"$3")",
        "bash",
        folder_.Path("here"),
        fs::absolute("workflows/requant"),
        folder_.Path("commands")};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return RunProgram("/bin/bash", line,
                      {"PATH=" + folder_.Path("bin"),
                       "REQUANT_HOME=" + fs::current_path().string()});
  }

  // A Python that says what it is called with.
  void MakePython() {
    folder_.Write("bin/python3", "#!/bin/bash\necho real \"$@\"\nexit 7\n");
    fs::permissions(folder_.Path("bin/python3"), fs::perms::owner_all);
  }

  std::string Here(const std::string& name) const {
    return folder_.Path("here/" + name);
  }

  TestFolder folder_;
};

TEST_F(Pasted, GptjDocumentRunsTwiceInARow) {
  MakeGptjFiles(folder_.Path("here"));
  const std::string commands =
      "set -e\n" + PastedCommands(kGptjCommands, "outside");
  ExpectGptjDone(Paste(commands), folder_.Path("here"));
  const ProgramRun again = Paste(commands);
  ExpectGptjDone(again, folder_.Path("here"));
  EXPECT_THAT(again.out, HasSubstr("moved ./gpt-j-6B to "
                                   "./gpt-j-6B/saved_model/1"));
}

TEST_F(Pasted, RecipeRuns) {
  for (const char* name :
       {"quantization", "tensorflow", "home/models/benchmarks"}) {
    fs::create_directories(folder_.Path(name));
  }
  MakeRecipeFiles(folder_.Path("quantization"));
  const ProgramRun run =
      Paste(PastedCommands(kRecipeCommands, "outside", folder_.Path("")));
  ExpectRecipeDone(run, folder_.Path("quantization"));
}

TEST_F(Pasted, PrepareModelSaysWhichFilesToBring) {
  const ProgramRun run = Paste("python prepare_model.py");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(
      run.error,
      AllOf(HasSubstr("./gpt-j-6B/saved_model/1/saved_model.pb\n"),
            HasSubstr("./gpt-j-6B/saved_model/1/variables/variables.index\n"),
            HasSubstr("variables.data-00000-of-00001"),
            HasSubstr("gptj_tiny/saved_model/1 ./gpt-j-6B/saved_model/1")));
}

TEST_F(Pasted, PrepareModelGoesOnWhereItWasKilled) {
  MakeGptjFiles(folder_.Path("here"));
  fs::rename(Here("gpt-j-6B/saved_model/1"), Here("gpt-j-6B.requant-move"));
  fs::remove_all(Here("gpt-j-6B"));
  EXPECT_EQ(Paste("python prepare_model.py").exit_code, 0);
  EXPECT_TRUE(fs::exists(Here("gpt-j-6B/saved_model/1/saved_model.pb")));
}

TEST_F(Pasted, ConvertKeepsAModelThatItDidNotWrite) {
  MakeGptjFiles(folder_.Path("here"));
  fs::copy(Here("gpt-j-6B/saved_model/1"), Here("converted_gpt-j-6B"),
           fs::copy_options::recursive);
  const ProgramRun run = Paste("python convert.py --insert_qdq");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("converted_gpt-j-6B"));
  EXPECT_EQ(ReadFile(Here("converted_gpt-j-6B/saved_model.pb")).value(),
            ReadFile(Here("gpt-j-6B/saved_model/1/saved_model.pb")).value());
}

TEST_F(Pasted, BenchmarkTakesTokensOfTheWorkingFolder) {
  MakeGptjFiles(folder_.Path("here"));
  fs::copy(fs::canonical("workflows/gptj_tiny/eval.npy"), Here("eval.npy"));
  const ProgramRun run =
      Paste("python convert.py && python run_benchmark.py --output_dir=out");
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("input_ids: int32 [8,64], the first of 512 "
                                 "rows of ./eval.npy\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("made up")));
}

TEST_F(Pasted, OtherScriptsGoToTheRealPython) {
  ProgramRun run = Paste("python train.py");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error, HasSubstr("there is no Python here"));
  MakePython();
  for (const char* line : {"python train.py 'a b'", "python3 train.py 'a b'"}) {
    run = Paste(line);
    EXPECT_EQ(run.exit_code, 7);
    EXPECT_EQ(run.out, "real train.py a b\n");
  }
  EXPECT_EQ(Paste("python").out, "real\n");
}

TEST_F(Pasted, AFileOfACommonNameIsTheUsersOwn) {
  MakePython();
  folder_.Write("here/convert.py", "");
  folder_.Write("here/freeze_graph.py", "");
  const ProgramRun run = Paste("python convert.py; python freeze_graph.py");
  EXPECT_EQ(run.out, "real convert.py\n");
  EXPECT_THAT(run.error, AllOf(HasSubstr("convert.py is a file here"),
                               HasSubstr("freeze_graph.py: ")));
}

TEST_F(Pasted, CommandsBehindDashesEndAsTheyEnd) {
  EXPECT_EQ(Paste("", {"--", "bash", "-c", "exit 5"}).exit_code, 5);
  const ProgramRun tool = Paste(
      "", {"--", "bazel-bin/tensorflow/tools/graph_transforms/transform_graph",
           "--list_transforms"});
  EXPECT_EQ(tool.exit_code, 0) << tool.error;
  EXPECT_THAT(tool.out, HasSubstr("insert_qdq"));
  EXPECT_EQ(Paste("", {"train"}).exit_code, 2);
  EXPECT_EQ(Paste("", {"--"}).exit_code, 2);
  EXPECT_EQ(Paste("no_such_program").exit_code, 127);
  EXPECT_EQ(Paste("pip install tensorflow").exit_code, 1);
  EXPECT_EQ(Paste("git clone elsewhere").exit_code, 1);
  EXPECT_EQ(Paste("$ cd /").exit_code, 1);
  EXPECT_EQ(Paste("$ cat commands_that_are_not_there").exit_code, 1);
}

}  // namespace
}  // namespace requant::pasted_test
