// Tests the published documents, pasted into `requant shell`, and what that
// shell does with other commands.

#include "tests/support/pasted.h"

#include <filesystem>
#include <fstream>

#include "base/files/file.h"
#include "tests/support/program_runs.h"

namespace requant::pasted_test {
namespace {

namespace fs = std::filesystem;

// A machine with a shell and few programs, without Python, pip and git.
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

  // Lets requant shell read `commands` from stdin in the folder "here".
  ProgramRun Paste(const std::string& commands, const Words& arguments = {}) {
    folder_.Write("commands", commands);
    return RunProgram(
        "/bin/bash",
        Joined({"-c", R"(cd "$1" && exec "$2" shell "${@:4}" <"$3")", "bash",
                folder_.Path("here"), fs::absolute("workflows/requant"),
                folder_.Path("commands")},
               arguments),
        {"PATH=" + folder_.Path("bin"),
         "REQUANT_HOME=" + fs::current_path().string()});
  }

  // Makes a Python that prints its arguments.
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
  EXPECT_THAT(Paste("python prepare_model.py"),
              Fails("./gpt-j-6B/saved_model/1/saved_model.pb\n",
                    "./gpt-j-6B/saved_model/1/variables/variables.index\n",
                    "variables.data-00000-of-00001",
                    "gptj_tiny/saved_model/1 ./gpt-j-6B/saved_model/1"));
}

TEST_F(Pasted, PrepareModelGoesOnWhereItWasKilled) {
  MakeGptjFiles(folder_.Path("here"));
  fs::rename(Here("gpt-j-6B/saved_model/1"), Here("gpt-j-6B.requant-move"));
  fs::remove_all(Here("gpt-j-6B"));
  EXPECT_THAT(Paste("python prepare_model.py"), Exits(0));
  EXPECT_TRUE(fs::exists(Here("gpt-j-6B/saved_model/1/saved_model.pb")));
}

TEST_F(Pasted, ConvertKeepsAModelThatItDidNotWrite) {
  MakeGptjFiles(folder_.Path("here"));
  fs::copy(Here("gpt-j-6B/saved_model/1"), Here("converted_gpt-j-6B"),
           fs::copy_options::recursive);
  EXPECT_THAT(Paste("python convert.py --insert_qdq"),
              Fails("converted_gpt-j-6B"));
  EXPECT_EQ(ReadFile(Here("converted_gpt-j-6B/saved_model.pb")).value(),
            ReadFile(Here("gpt-j-6B/saved_model/1/saved_model.pb")).value());
}

TEST_F(Pasted, BenchmarkTakesTokensOfTheWorkingFolder) {
  MakeGptjFiles(folder_.Path("here"));
  fs::copy(fs::canonical("workflows/gptj_tiny/eval.npy"), Here("eval.npy"));
  EXPECT_THAT(
      Paste("python convert.py && python run_benchmark.py --output_dir=out"),
      Prints("input_ids: int32 [8,64], the first of 512 "
             "rows of ./eval.npy\n",
             Not(HasSubstr("made up"))));
}

TEST_F(Pasted, OtherScriptsGoToTheRealPython) {
  ProgramRun run = Paste("python train.py");
  EXPECT_THAT(run, Misused("there is no Python here"));
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
  EXPECT_THAT(Paste("", {"--", "bash", "-c", "exit 5"}), Exits(5));
  EXPECT_THAT(
      Paste("", {"--",
                 "bazel-bin/tensorflow/tools/graph_transforms/transform_graph",
                 "--list_transforms"}),
      Prints("insert_qdq"));
  EXPECT_THAT(Paste("", {"train"}), Exits(2));
  EXPECT_THAT(Paste("", {"--"}), Exits(2));
  EXPECT_THAT(Paste("no_such_program"), Exits(127));
  EXPECT_THAT(Paste("pip install tensorflow"), Exits(1));
  EXPECT_THAT(Paste("git clone elsewhere"), Exits(1));
  EXPECT_THAT(Paste("$ cd /"), Exits(1));
  EXPECT_THAT(Paste("$ cat commands_that_are_not_there"), Exits(1));
}

}  // namespace
}  // namespace requant::pasted_test
