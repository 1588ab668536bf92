// Tests what becomes of a transform_graph whose transforms crash, hang or are
// interrupted.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/program_runs.h"

namespace requant::isolation_test {
namespace {

constexpr char kOddPlugin[] = "--plugins=tests/plugins/odd_plugin.so";

GraphDef Small() { return GraphFromText(Placeholder("x")); }

class Isolation : public testing::Test, public TransformGraphRunner {
 protected:
  static void SetUpTestSuite() { LetSegfaultsPass(); }

  // Expects one sentence that names the transform, and nothing written.
  void ExpectDeathSentence(const ProgramRun& run, const std::string& transform,
                           const std::string& message) {
    EXPECT_THAT(run, Refuses(absl::StrCat("the transform \"", transform,
                                          "\" (1 of 1) "),
                             message));
    EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
  }
};

// Both stock transforms fail a CHECK, although TensorFlow loads and runs the
// graphs: the attribute has a default, and block shapes may have that type.
TEST_F(Isolation, ACheckThatATransformFailsIsASentence) {
  const struct {
    const char *transform, *graph, *message;
  } kCases[] = {{"quantize_nodes", R"(
         w = float<1,1>{1}
         y = MatMul(x, w) T=float)",
                 "No key 'transpose_a' found"},
                {"flatten_atrous_conv", R"(
         block = int64<2>{2,2}
         pads = int32<2,2>{0,0,0,0}
         w = float<1,1,1,1>{1}
         s = SpaceToBatchND(x, block, pads) T=float Tblock_shape=int64
         c = Conv2D(s, w) T=float padding='VALID' strides=[1,1,1,1]
         y = BatchToSpaceND(c, block, pads) T=float Tblock_shape=int64)",
                 "int32 expected, got int64"}};
  for (const auto& test : kCases) {
    const ProgramRun run =
        Transform(test.transform,
                  GraphFromText(absl::StrCat(Placeholder("x"), test.graph)),
                  {"--inputs=x", "--outputs=y", "--noverify"});
    ExpectDeathSentence(run, test.transform,
                        "was ended by SIGABRT (it gave up on an internal "
                        "check) on " +
                            folder.Path("g.pbtxt") + ": Check failed: ");
    EXPECT_THAT(run.error, HasSubstr(absl::StrCat(test.message,
                                                  "; nothing was written\n")));
  }
}

TEST_F(Isolation, ATransformThatEndsTheProgramIsASentence) {
  for (const auto& [transform, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"segfault", "was ended by SIGSEGV (invalid memory access)"},
           {"abort", "was ended by SIGABRT"},
           {"exit_0", "ended the program with exit code 0"}}) {
    ExpectDeathSentence(Transform(transform, Small(), {kOddPlugin}), transform,
                        message);
  }
}

TEST_F(Isolation, LeavesNoCoreFile) {
  folder.WriteText("g.pbtxt", Small());
  EXPECT_THAT(
      RunProgram("/bin/sh",
                 {"-c", absl::StrCat("ulimit -S -c $(ulimit -H -c) && ",
                                     kTransformGraph, " ", kOddPlugin,
                                     " --in_graph=", folder.Path("g.pbtxt"),
                                     " --out_graph=", folder.Path("out.pb"),
                                     " --transforms=show_core_limit")})
          .out,
      HasSubstr("show_core_limit: 0 bytes\n"));
}

TEST_F(Isolation, WhatADeadChildLeftHalfWrittenIsRemoved) {
  std::filesystem::create_directory(folder.Path("dump"));
  EXPECT_THAT(
      Transform(
          absl::StrCat("leave_temporary_file(path=\"", folder.Path("out.pb"),
                       "\", path=\"", folder.Path("dump/01_x.pb"), "\")"),
          Small(), {kOddPlugin, "--dump_dir=" + folder.Path("dump")}),
      Fails("was ended by SIGKILL"));
  EXPECT_THAT(folder.Names(), ElementsAre("dump", "g.pbtxt"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.Path("dump")));
}

// A transform_graph whose transform waits forever with a half-written file.
class Interrupted : public Isolation {
 protected:
  // Starts it in a process group of its own and returns once it waits.
  void Start() {
    int out[2], error[2];
    ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(error, O_CLOEXEC), 0);
    const std::string in = folder.WriteText("g.pbtxt", Small());
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      dup2(out[1], STDOUT_FILENO);
      dup2(error[1], STDERR_FILENO);
      Exec(CommandLine(
          kTransformGraph,
          {"--in_graph=" + in, kOddPlugin,
           "--out_graph=" + folder.Path("out.pb"),
           absl::StrCat("--transforms=leave_temporary_file(wait=true, path=\"",
                        folder.Path("out.pb"), "\")")}));
    }
    setpgid(pid_, pid_);
    close(out[1]);
    close(error[1]);
    out_ = out[0];
    error_ = error[0];
    ASSERT_EQ(ReadSome(out_), "waiting\n");
  }
  ~Interrupted() override {
    close(out_);
    close(error_);
  }

  static std::string ReadSome(int fd) {
    char buffer[4096];
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    return n > 0 ? std::string(buffer, n) : "";
  }

  // Returns once no process holds the pipe any more, so the child, which writes
  // to the same stdout, has ended too.
  void WaitForBoth() {
    EXPECT_EQ(ReadSome(out_), "");
    EXPECT_EQ(waitpid(pid_, &status_, 0), pid_);
  }

  pid_t pid_ = -1;
  int out_ = -1;
  int error_ = -1;
  int status_ = -1;
};

// A terminal sends its signal to the whole process group.
TEST_F(Interrupted, ASignalToTheProgramOrItsGroupEndsTheChildAndCleansUp) {
  for (const auto& [signal_number, to_group] :
       {std::pair(SIGINT, false), std::pair(SIGTERM, false),
        std::pair(SIGHUP, false), std::pair(SIGINT, true)}) {
    Start();
    EXPECT_EQ(folder.Names().size(), 2);
    ASSERT_EQ(kill(to_group ? -pid_ : pid_, signal_number), 0);
    WaitForBoth();
    EXPECT_TRUE(WIFEXITED(status_));
    EXPECT_EQ(WEXITSTATUS(status_), 128 + signal_number);
    EXPECT_EQ(ReadSome(error_),
              "transform_graph: interrupted; nothing was written\n");
    EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
  }
}

TEST_F(Interrupted, AKilledProgramTakesItsChildAlong) {
  Start();
  ASSERT_EQ(kill(pid_, SIGKILL), 0);
  WaitForBoth();
  EXPECT_TRUE(WIFSIGNALED(status_));
}

TEST_F(Isolation, ATransformThatHangsIsStoppedAtTheTimeLimit) {
  EXPECT_THAT(
      Transform("leave_temporary_file(wait=true)", Small(),
                {kOddPlugin, "--timeout=5"}),
      Fails("was stopped after 5 s on ", "(--timeout sets the limit)\n"));
  EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
}

}  // namespace
}  // namespace requant::isolation_test
