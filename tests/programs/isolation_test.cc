// What becomes of a transform_graph whose transforms crash, hang or are
// interrupted.

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "graph/testing/program.h"

extern char** environ;

namespace requant::isolation_test {
namespace {

constexpr char kOddPlugin[] = "--plugins=tests/plugins/odd_plugin.so";

GraphDef Small() { return GraphFromText(Placeholder("x")); }

class Isolation : public testing::Test, public TransformGraphRunner {
 protected:
  static void SetUpTestSuite() { LetSegfaultsPass(); }

  // One sentence that names the transform, exit code 1, and nothing written.
  void ExpectDeathSentence(const ProgramRun& run, const std::string& transform,
                           const std::string& message) {
    EXPECT_THAT(run, Exits(1));
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.error, MatchesRegex("transform_graph: [^\n]*\n"));
    EXPECT_THAT(run.error, HasSubstr(absl::StrCat("the transform \"", transform,
                                                  "\" (1 of 1) ")));
    EXPECT_THAT(run.error, HasSubstr(message));
    EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
  }

  // Runs a stock transform that fails a CHECK on `text`.
  void ExpectCheckFailure(const std::string& transform, const std::string& text,
                          const std::string& message) {
    const std::vector<std::string> more = {"--inputs=x", "--outputs=y",
                                           "--noverify"};
    ExpectDeathSentence(Transform(transform, GraphFromText(text), more),
                        transform,
                        "was ended by SIGABRT (it gave up on an internal "
                        "check) on " +
                            folder.Path("g.pbtxt") + ": Check failed: ");
    EXPECT_THAT(Transform(transform, GraphFromText(text), more).error,
                HasSubstr(message + "; nothing was written\n"));
  }
};

// TensorFlow loads and runs this graph: the attribute has a default.
TEST_F(Isolation, QuantizeNodesOnAMatMulWithoutDefaultAttributes) {
  ExpectCheckFailure(
      "quantize_nodes",
      absl::StrCat(Placeholder("x"), FloatConst("w", {1, 1}, {1}),
                   Node("y", "MatMul", {"x", "w"}, {kFloat})),
      "No key 'transpose_a' found");
}

// This one too.
TEST_F(Isolation, FlattenAtrousConvOnAnInt64BlockShape) {
  const AttributeText int64_blocks = {"Tblock_shape", "type: DT_INT64"};
  const std::string block = Node(
      "block", "Const", {},
      {{"dtype", "type: DT_INT64"},
       {"value",
        "tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: "
        "[2, 2] }"}});
  ExpectCheckFailure(
      "flatten_atrous_conv",
      absl::StrCat(Placeholder("x"), block,
                   IntConst("pads", {2, 2}, {0, 0, 0, 0}),
                   FloatConst("w", {1, 1, 1, 1}, {1}),
                   Node("s", "SpaceToBatchND", {"x", "block", "pads"},
                        {kFloat, int64_blocks}),
                   Node("c", "Conv2D", {"s", "w"},
                        {kFloat,
                         {"padding", "s: \"VALID\""},
                         {"strides", "list { i: [1, 1, 1, 1] }"}}),
                   Node("y", "BatchToSpaceND", {"c", "block", "pads"},
                        {kFloat, int64_blocks})),
      "int32 expected, got int64");
}

TEST_F(Isolation, FoldBatchNormsOnWeightsThatAreNoMatrix) {
  ExpectCheckFailure("fold_batch_norms",
                     absl::StrCat(Placeholder("x"), FloatConst("w", {}, {1}),
                                  FloatConst("factor", {1}, {2}),
                                  Node("m", "MatMul", {"x", "w"}, {kFloat}),
                                  Node("y", "Mul", {"m", "factor"}, {kFloat})),
                     "d < dims() (1 vs. 0)");
}

TEST_F(Isolation, FoldOldBatchNormsWithoutARequiredAttribute) {
  ExpectCheckFailure(
      "fold_old_batch_norms",
      absl::StrCat(Placeholder("x"), FloatConst("w", {1, 1, 1, 1}, {1}),
                   FloatConst("m", {1}, {1}),
                   Node("c", "Conv2D", {"x", "w"}, {kFloat}),
                   Node("y", "BatchNormWithGlobalNormalization",
                        {"c", "m", "m", "m", "m"}, {kFloat})),
      "key not found: scale_after_normalization");
}

TEST_F(Isolation, FusePadAndConvWithoutARequiredAttribute) {
  ExpectCheckFailure(
      "fuse_pad_and_conv",
      absl::StrCat(Placeholder("x"), FloatConst("w", {1, 1, 1, 1}, {1}),
                   IntConst("pads", {4, 2}, {0, 0, 0, 0, 0, 0, 0, 0}),
                   Node("p", "MirrorPad", {"x", "pads"}, {kFloat}),
                   Node("y", "Conv2D", {"p", "w"}, {kFloat})),
      "No key 'mode' found");
}

TEST_F(Isolation, ASegfaultIsASentence) {
  ExpectDeathSentence(Transform("segfault", Small(), {kOddPlugin}), "segfault",
                      "was ended by SIGSEGV (invalid memory access)");
}

TEST_F(Isolation, AnAbortIsASentence) {
  ExpectDeathSentence(Transform("abort", Small(), {kOddPlugin}), "abort",
                      "was ended by SIGABRT");
}

TEST_F(Isolation, ATransformThatEndsTheProgramHasNotSucceeded) {
  ExpectDeathSentence(Transform("exit_0", Small(), {kOddPlugin}), "exit_0",
                      "ended the program with exit code 0");
}

TEST_F(Isolation, LeavesNoCoreFile) {
  folder.WriteText("g.pbtxt", Small());
  const auto run = RunProgram(
      "/bin/sh", {"-c", absl::StrCat("ulimit -S -c $(ulimit -H -c) && ",
                                     kTransformGraph, " ", kOddPlugin,
                                     " --in_graph=", folder.Path("g.pbtxt"),
                                     " --out_graph=", folder.Path("out.pb"),
                                     " --transforms=show_core_limit")});
  EXPECT_THAT(run.out, HasSubstr("show_core_limit: 0 bytes\n"));
}

TEST_F(Isolation, WhatADeadChildLeftHalfWrittenIsRemoved) {
  std::filesystem::create_directory(folder.Path("dump"));
  EXPECT_THAT(
      Transform(
          absl::StrCat("leave_temporary_file(path=\"", folder.Path("out.pb"),
                       "\", path=\"", folder.Path("dump/01_x.pb"), "\")"),
          Small(), {kOddPlugin, "--dump_dir=" + folder.Path("dump")}),
      Exits(1, HasSubstr("was ended by SIGKILL")));
  EXPECT_THAT(folder.Names(), ElementsAre("dump", "g.pbtxt"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.Path("dump")));
}

// A transform_graph whose transform waits forever with a half-written file.
class Interrupted : public Isolation {
 protected:
  // Starts it in a process group of its own and returns when it waits.
  void Start() {
    int out[2], error[2];
    ASSERT_EQ(pipe(out), 0);
    ASSERT_EQ(pipe(error), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, error[1], STDERR_FILENO);
    for (int fd : {out[0], out[1], error[0], error[1]}) {
      posix_spawn_file_actions_addclose(&actions, fd);
    }
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<std::string> line = CommandLine(
        kTransformGraph,
        {"--in_graph=" + folder.WriteText("g.pbtxt", Small()), kOddPlugin,
         "--out_graph=" + folder.Path("out.pb"),
         absl::StrCat("--transforms=leave_temporary_file(wait=true, path=\"",
                      folder.Path("out.pb"), "\")")});
    std::vector<char*> argv;
    for (std::string& word : line) argv.push_back(word.data());
    argv.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(),
                          environ),
              0);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
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

  // Returns when no process holds the pipe any more: the child, which writes
  // to the same stdout, has gone too.
  void WaitForBoth() {
    EXPECT_EQ(ReadSome(out_), "");
    EXPECT_EQ(waitpid(pid_, &status_, 0), pid_);
  }

  pid_t pid_ = -1;
  int out_ = -1;
  int error_ = -1;
  int status_ = -1;
};

TEST_F(Interrupted, ASignalToTheProgramEndsTheChildAndCleansUp) {
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    Start();
    EXPECT_EQ(folder.Names().size(), 2);
    ASSERT_EQ(kill(pid_, signal_number), 0);
    WaitForBoth();
    EXPECT_TRUE(WIFEXITED(status_));
    EXPECT_EQ(WEXITSTATUS(status_), 128 + signal_number);
    EXPECT_EQ(ReadSome(error_),
              "transform_graph: interrupted; nothing was written\n");
    EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
  }
}

// As a terminal does it.
TEST_F(Interrupted, ASignalToTheProcessGroupDoesTheSame) {
  Start();
  ASSERT_EQ(kill(-pid_, SIGINT), 0);
  WaitForBoth();
  EXPECT_EQ(WEXITSTATUS(status_), 128 + SIGINT);
  EXPECT_EQ(ReadSome(error_),
            "transform_graph: interrupted; nothing was written\n");
  EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
}

TEST_F(Interrupted, AKilledProgramTakesItsChildAlong) {
  Start();
  ASSERT_EQ(kill(pid_, SIGKILL), 0);
  WaitForBoth();
  EXPECT_TRUE(WIFSIGNALED(status_));
}

TEST_F(Isolation, ATransformThatHangsIsStoppedAtTheTimeLimit) {
  const auto run = Transform("leave_temporary_file(wait=true)", Small(),
                             {kOddPlugin, "--timeout=5"});
  EXPECT_THAT(run, Exits(1, HasSubstr("was stopped after 5 s on ")));
  EXPECT_THAT(run.error, HasSubstr("(--timeout sets the limit)\n"));
  EXPECT_THAT(folder.Names(), ElementsAre("g.pbtxt"));
}

}  // namespace
}  // namespace requant::isolation_test
