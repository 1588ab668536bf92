// Tests what the tab key does in bash and zsh, in a terminal, in a clone and
// for an installed program.

#include <unistd.h>

#include <filesystem>

#include "tests/support/program_runs.h"

namespace requant::completion_test {
namespace {

namespace fs = std::filesystem;

constexpr char kRequant[] = "workflows/requant";

class Completion : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fs::create_directories(folder_.Path("clone/third_party"));
    for (const char* file :
         {"requant", "third_party/setup.sh", "third_party/versions.env"}) {
      fs::copy_file(file, folder_.Path(absl::StrCat("clone/", file)));
    }
    fs::create_directory_symlink(fs::absolute("workflows"),
                                 folder_.Path("clone/workflows"));
    fs::create_directory(folder_.Path("bin"));
    fs::create_symlink(fs::absolute(kRequant), folder_.Path("bin/requant"));
    folder_.Write("clone/records.csv", "");
    const std::string shell = "/bin/" + GetParam();
    if (access(shell.c_str(), X_OK) != 0) {
      GTEST_SKIP() << "no " << shell << ": ./requant test installs it";
    }
  }

  void Build() {
    fs::create_directory_symlink(fs::current_path(),
                                 folder_.Path("clone/bazel-bin"));
  }

  // Types each line into a terminal, in the clone, with the keys Home, "echo "
  // and Return behind it. Returns what the terminal shows.
  std::string Type(const Words& lines) {
    // The program `script` provides the terminal.
    std::string keys = absl::StrCat("eval \"$(./requant completion ",
                                    GetParam(), ")\"; PS1=: cd .\n");
    for (const std::string& line : lines) {
      absl::StrAppend(&keys, line,
                      "\x01"
                      "echo \n");
    }
    const ProgramRun run = RunProgram(
        "sh",
        {"-c",
         R"(cd "$1" && printf '%s' "$2" |
            script --quiet --return --command "$3" /dev/null)",
         "sh", folder_.Path("clone"), keys + "exit 7\n",
         GetParam() == "bash" ? "bash --norc --noprofile -i" : "zsh -f -i"},
        {"TERM=dumb", "HOME=" + folder_.Path(""),
         absl::StrCat("PATH=", folder_.Path("bin"), ":/usr/bin:/bin"),
         "REQUANT_HOME=" + folder_.Path("clone")});
    EXPECT_EQ(run.exit_code, 7) << run.out << run.error;
    return run.out;
  }

  // Expects that each of the pairs' first texts becomes the second.
  void ExpectCompleted(
      const std::vector<std::pair<std::string, std::string>>& texts) {
    Words typed;
    for (const auto& [text, completed] : texts) typed.push_back(text);
    const std::string shown = Type(typed);
    for (const auto& [text, completed] : texts) {
      EXPECT_THAT(shown, HasSubstr(absl::StrCat("\n", completed, "\r\n")));
    }
  }

  TestFolder folder_;
};

TEST_P(Completion, KnowsCommandsFlagsAndWorkflows) {
  Build();
  std::vector<std::pair<std::string, std::string>> texts = {
      {"./requant se\t", "./requant setup"}};
  for (const std::string program : {"requant ", "./requant "}) {
    for (const auto& [text, completed] :
         std::vector<std::pair<std::string, std::string>>{
             {"summ\t--in_g\tx", "summarize --in_graph=x"},
             {"help comp\tar\t", "help compare_runs"},
             {"plan gptj_t\t--form\tjson", "plan gptj_tiny_qdq --format=json"},
             {"run --set data=rec\t", "run --set data=records.csv"},
             {"completion z\t", "completion zsh"},
             {"evaluate --data=rec\t", "evaluate --data=records.csv"}}) {
      texts.emplace_back(program + text, program + completed);
    }
  }
  ExpectCompleted(texts);
}

TEST_P(Completion, NeitherSetsUpNorBuilds) {
  ExpectCompleted({{"./requant se\tx", "./requant setup x"},
                   {"./requant run rec\t", "./requant run records.csv"},
                   {"./requant run --dry\t", "./requant run --dry"}});
  EXPECT_FALSE(fs::exists(folder_.Path("clone/.requant")));
}

TEST_P(Completion, RunsNothingThatAFileIsNamed) {
  Build();
  fs::remove(folder_.Path("clone/workflows"));
  fs::create_directory(folder_.Path("clone/workflows"));
  fs::create_directory_symlink(fs::absolute("workflows/commands"),
                               folder_.Path("clone/workflows/commands"));
  folder_.Write("clone/workflows/$(touch${IFS}ran).textproto", "");
  folder_.Write("clone/workflows/wide_deep.textproto", "");
  ExpectCompleted({{"requant run wide\t", "requant run wide_deep"}});
  EXPECT_FALSE(fs::exists(folder_.Path("clone/ran")));
}

TEST_P(Completion, IsTheSameScriptFromACloneAndAnInstalledProgram) {
  EXPECT_EQ(
      RunProgram(folder_.Path("clone/requant"), {"completion", GetParam()}).out,
      RunProgram(kRequant, {"completion", GetParam()}).out);
  EXPECT_THAT(RunProgram(kRequant, {"completion", "fish"}),
              Misused("bash or zsh"));
}

INSTANTIATE_TEST_SUITE_P(Shells, Completion, testing::Values("bash", "zsh"));

}  // namespace
}  // namespace requant::completion_test
