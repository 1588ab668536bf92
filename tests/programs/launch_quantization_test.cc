// Tests launch_quantization with a stand-in for Docker that records its
// arguments (data/fake_engine.sh). The image's own test uses a real engine.

#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/sanitized.h"
#include "tests/support/program_runs.h"

namespace requant::launch_quantization_test {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::IsSupersetOf;

constexpr char kLauncher[] = "launch/launch_quantization";

class LaunchQuantizationTest : public testing::Test {
 protected:
  LaunchQuantizationTest() {
    for (const char* name : {"bin", "containers", "model"}) {
      fs::create_directories(folder_.Path(name));
    }
    fs::create_symlink(fs::absolute("tests/data/fake_engine.sh"),
                       folder_.Path("bin/docker"));
  }

  // Returns variables with only the fake engine on PATH.
  Words Variables() const {
    return {"PATH=" + folder_.Path("bin"), "FAKE_ENGINE=" + folder_.Path(""),
            "SUDO_UID=", "DOCKER_HOST="};
  }

  ProgramRun Launch(const Words& arguments) const {
    return RunProgram(kLauncher, arguments, Variables());
  }

  // Launches it with the model directory; the container runs `work` in a shell.
  ProgramRun LaunchModel(const Words& more, const std::string& work) const {
    folder_.Write("run", work);
    return Launch(Joined({"-p", folder_.Path("model")}, more));
  }

  bool Exists(const std::string& name) const {
    return fs::exists(folder_.Path(name));
  }

  // Returns the engine's arguments from the word "run" on.
  Words RunArguments() const {
    Words words = absl::StrSplit(folder_.Read("run_argv"), '\0');
    if (!words.empty()) words.pop_back();
    return words;
  }

  size_t CountContainers() const {
    return std::distance(fs::directory_iterator(folder_.Path("containers")),
                         fs::directory_iterator());
  }

  // Starts a session whose container runs until it is stopped.
  pid_t StartSession(const Words& more = {},
                     sighandler_t on_hangup = SIG_DFL) const {
    const pid_t pid = fork();
    if (pid == 0) {
      for (int number : {SIGINT, SIGTERM}) signal(number, SIG_DFL);
      signal(SIGHUP, on_hangup);
      Exec(CommandLine(kLauncher, Joined({"-p", folder_.Path("model")}, more),
                       Variables()));
    }
    while (!Exists("running") && IsAlive(pid)) std::this_thread::yield();
    EXPECT_EQ(CountContainers(), 1);
    return pid;
  }

  pid_t Client() const {
    int pid = 0;
    EXPECT_TRUE(absl::SimpleAtoi(folder_.Read("client"), &pid));
    return pid;
  }

  void WaitUntilNoContainerIsLeft() const {
    while (CountContainers() > 0) std::this_thread::yield();
  }

  const TestFolder folder_;
};

TEST_F(LaunchQuantizationTest, TellsTheEngineExactlyThis) {
  const std::string model = folder_.Path("my \"best\",\n$HOME `model`: it's;*");
  fs::create_directories(model);
  folder_.Write("run", "exit 0");
  ASSERT_THAT(
      Launch({"--docker-image", "quantization:latest",
              "--pre-trained-model-dir", model, "--name", "session", "--volume",
              folder_.Path("model") + ":/data:ro", "--env", "A=x y,B=$(z)",
              "--", "requant", "run", "a b", "", "'\"$x\n"}),
      Exits(0));
  Words words = RunArguments();
  ASSERT_GT(words.size(), 5);
  EXPECT_THAT(words[5],
              StartsWith("--label=requant.session=launch_quantization-"));
  words.erase(words.begin() + 5);
  std::string quoted = fs::canonical(model);
  for (size_t at = 0; (at = quoted.find('"', at)) != std::string::npos;) {
    quoted.insert(at, "\"");
    at += 2;
  }
  const std::string ids = absl::StrCat("--user=", getuid(), ":", getgid());
  EXPECT_THAT(
      words,
      ElementsAre(
          "run", "--rm", "--init", "--pull=never", "--name=session",
          "--interactive", "--network=none", "--hostname=quantization", ids,
          "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
          "--memory=6400000000", "--cpus=4", "--pids-limit=4096", "--mount",
          "type=bind,\"source=" + quoted + "\",target=/workspace/quantization",
          "--mount",
          "type=bind,source=" + fs::canonical(folder_.Path("model")).string() +
              ",target=/data,readonly",
          "--tmpfs",
          "/workspace/tensorflow:rw,exec,nosuid,nodev,mode=1777,size="
          "4294967296",
          "--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777,size=4294967296",
          "--workdir=/workspace/tensorflow", "--env", "HOME=/tmp", "--env",
          "A=x y", "--env", "B=$(z)", "quantization:latest", "requant", "run",
          "a b", "", "'\"$x\n"));
}

TEST_F(LaunchQuantizationTest, PassesOutputAndExitCodeThrough) {
  const ProgramRun run =
      LaunchModel({"--", "x"}, "echo result; echo progress >&2; exit 7");
  EXPECT_THAT(run, Exits(7));
  EXPECT_EQ(run.out, "result\n");
  EXPECT_EQ(run.error, "progress\n");
  EXPECT_THAT(RunArguments(), Not(Contains("--tty")));
  EXPECT_EQ(CountContainers(), 0);
}

TEST_F(LaunchQuantizationTest, ShowsEachRelaxation) {
  EXPECT_THAT(
      LaunchModel({"--network=host", "--privileged", "--", "x"}, "exit 0"),
      Warns("relaxed: --network=host", "relaxed: --privileged"));
  EXPECT_THAT(RunArguments(), IsSupersetOf({"--network=host", "--privileged"}));
}

TEST_F(LaunchQuantizationTest, RefusesWrongCommandLines) {
  EXPECT_THAT(Launch({"-p", folder_.Path("model"), "--memory=lots"}),
              RefusesUsage("--memory takes a size"));
  EXPECT_FALSE(Exists("calls"));
}

TEST_F(LaunchQuantizationTest, RefusesBadDirectoriesBeforeItAsksAnEngine) {
  const std::string model = folder_.Path("model");
  EXPECT_THAT(Launch({"-p", folder_.Path("none")}), Refuses("does not exist"));
  EXPECT_THAT(Launch({"-p", folder_.Write("file", "x")}),
              Refuses("is not a directory"));
  EXPECT_THAT(
      Launch({"-p", model, "--volume=" + model + ":/workspace/quantization/"}),
      Refuses("/workspace/quantization, which is taken"));
  EXPECT_FALSE(Exists("calls"));
}

TEST_F(LaunchQuantizationTest, WarnsOfADirectoryThatCannotBeWritten) {
  fs::permissions(folder_.Path("model"),
                  fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(LaunchModel({"--", "x"}, "exit 0"),
              Warns("warning: ", "results cannot be written"));
}

TEST_F(LaunchQuantizationTest, SaysWhatIsWrongWithTheEngine) {
  const Words arguments = {"-p", folder_.Path("model"), "--", "x"};
  folder_.Write("info_error",
                "Cannot connect to the Docker daemon at unix:///x. Is the "
                "docker daemon running?\n");
  EXPECT_THAT(Launch(arguments), Refuses("Docker is not running: start"));
  fs::remove(folder_.Path("bin/docker"));
  EXPECT_THAT(Launch(arguments), Refuses("docker is not on PATH: install it"));
  EXPECT_FALSE(Exists("run_argv"));
}

TEST_F(LaunchQuantizationTest, RefusesWhatTheEngineHasNotOrHasAlready) {
  const std::string model = "-p=" + folder_.Path("model");
  EXPECT_THAT(Launch({model, "--cpus=4.5"}),
              Refuses("more than the 4 that Docker has"));
  folder_.Write("containers/session", "of somebody else\n");
  EXPECT_THAT(Launch({model, "--name=session"}),
              Refuses("a container named session already (running)"));
  folder_.Write("image_error", "Error: No such image: other:1\n");
  EXPECT_THAT(Launch({model, "-i", "other:1"}),
              Refuses("Docker has no image other:1: build it with "
                      "docker/build"));
  EXPECT_FALSE(Exists("run_argv"));
}

// This covers a name that is taken only after it was looked up.
TEST_F(LaunchQuantizationTest, LeavesTheContainersOfOthersAlone) {
  folder_.Write("run_error", "Conflict. The name is already in use.\n");
  EXPECT_THAT(Launch({"-p", folder_.Path("model"), "--", "x"}),
              Exits(125, AllOf(HasSubstr("Conflict."),
                               HasSubstr("Docker did not start the container "
                                         "(exit code 125)"))));
  EXPECT_THAT(folder_.Read("calls"), Not(HasSubstr("rm --force")));
}

TEST_F(LaunchQuantizationTest, KnowsDockerOnly) {
  EXPECT_THAT(LaunchModel({"--engine=docker", "--", "x"}, "exit 6"), Exits(6));
  EXPECT_THAT(Launch({"-p", folder_.Path("model"), "--engine=podman"}),
              RefusesUsage("--engine takes docker or auto, not podman"));
  folder_.Write("version", "podman version 4.3.1");
  EXPECT_THAT(Launch({"-p", folder_.Path("model")}),
              Refuses("is Podman, which is not supported"));
}

// The printed command does in a shell what the program would have done.
TEST_F(LaunchQuantizationTest, DryRunPrintsACommandToPaste) {
  const Words arguments = {
      "-p", folder_.Path("model"), "--env", "A=it's $x", "--", "sh",
      "-c", "echo \"$HOME\""};
  const ProgramRun run =
      Launch(Joined({"--dry-run", "--name=session"}, arguments));
  ASSERT_THAT(run, Exits(0));
  EXPECT_FALSE(Exists("run_argv"));
  folder_.Write("run", "exit 5");
  EXPECT_THAT(RunProgram("/bin/sh", {"-c", run.out}, Variables()), Exits(5));
  EXPECT_THAT(RunArguments(), IsSupersetOf({"--name=session", "A=it's $x", "sh",
                                            "-c", "echo \"$HOME\""}));
}

TEST_F(LaunchQuantizationTest, DryRunNeedsNoEngine) {
  fs::remove(folder_.Path("bin/docker"));
  EXPECT_THAT(Launch({"--dry-run", "-p", folder_.Path("model")}),
              AllOf(Prints(StartsWith("docker run --rm")),
                    Warns("warning: docker is not on PATH")));
}

TEST_F(LaunchQuantizationTest, PassesSignalsOnOnce) {
  const std::vector<std::pair<int, std::string>> signals = {
      {SIGTERM, "TERM\n"}, {SIGINT, "INT\n"}, {SIGHUP, "HUP\n"}};
  for (const auto& [number, recorded] : signals) {
    for (const char* name : {"running", "signals"}) {
      fs::remove(folder_.Path(name));
    }
    const pid_t launcher = StartSession();
    kill(launcher, number);
    EXPECT_EQ(WaitForExitCode(launcher), 128 + number);
    EXPECT_EQ(folder_.Read("signals"), recorded);
    EXPECT_EQ(CountContainers(), 0);
  }
}

TEST_F(LaunchQuantizationTest, RemovesAContainerThatIgnoresSigterm) {
  folder_.Write("ignore", "");
  const pid_t launcher = StartSession({"--stop-timeout=0"});
  kill(launcher, SIGTERM);
  EXPECT_EQ(WaitForExitCode(launcher), 137);
  EXPECT_THAT(folder_.Read("calls"), HasSubstr("rm --force"));
  EXPECT_EQ(CountContainers(), 0);
}

// One interrupt is left to the container; several mean that it must end.
TEST_F(LaunchQuantizationTest, RemovesAContainerThatIgnoresManyInterrupts) {
  folder_.Write("ignore", "");
  const pid_t launcher = StartSession();
  kill(launcher, SIGINT);
  while (!Exists("signals")) std::this_thread::yield();
  EXPECT_EQ(CountContainers(), 1);
  while (IsAlive(launcher)) {
    kill(launcher, SIGINT);
    std::this_thread::yield();
  }
  EXPECT_EQ(WaitForExitCode(launcher), 137);
  EXPECT_EQ(CountContainers(), 0);
}

TEST_F(LaunchQuantizationTest, KilledItLeavesNoContainer) {
  folder_.Write("ignore", "");
  const pid_t launcher = StartSession();
  const pid_t client = Client();
  kill(launcher, SIGKILL);
  EXPECT_EQ(WaitForExitCode(launcher), -1);
  WaitUntilNoContainerIsLeft();
  EXPECT_THAT(folder_.Read("calls"), HasSubstr("rm --force"));
  WaitUntilGone(client);
}

TEST_F(LaunchQuantizationTest, AKilledClientLeavesNoContainer) {
  const pid_t launcher = StartSession();
  kill(Client(), SIGKILL);
  EXPECT_EQ(WaitForExitCode(launcher), 137);
  EXPECT_EQ(CountContainers(), 0);
}

TEST_F(LaunchQuantizationTest, StaysDeafToWhatNohupIgnores) {
  const pid_t nohup = StartSession({}, SIG_IGN);
  kill(nohup, SIGHUP);
  kill(nohup, SIGTERM);
  EXPECT_EQ(WaitForExitCode(nohup), 128 + SIGTERM);
  EXPECT_EQ(folder_.Read("signals"), "TERM\n");
}

TEST_F(LaunchQuantizationTest, GivesTheContainerATerminalWhenItHasOne) {
  folder_.Write("run", "echo from the container; exit 4");
  int terminal = -1;
  const pid_t launcher = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(launcher, 0);
  if (launcher == 0) {
    Exec(CommandLine(kLauncher, {"-p", folder_.Path("model")}, Variables()));
  }
  std::string shown;
  char buffer[4096];
  for (ssize_t n; (n = read(terminal, buffer, sizeof(buffer))) > 0;) {
    shown.append(buffer, n);
  }
  EXPECT_EQ(WaitForExitCode(launcher), 4);
  close(terminal);
  EXPECT_THAT(shown, HasSubstr("from the container"));
  EXPECT_THAT(RunArguments(), IsSupersetOf({"--interactive", "--tty"}));
}

TEST_F(LaunchQuantizationTest, ThePythonScriptDoesTheSame) {
  folder_.Write("run", "exit 9");
  EXPECT_THAT(RunProgram("/usr/bin/python3",
                         {"launch/launch_quantization.py", "--docker-image",
                          "quantization:latest", "--pre-trained-model-dir",
                          folder_.Path("model"), "--", "a b"},
                         Variables()),
              Exits(9));
  EXPECT_EQ(RunArguments().back(), "a b");
}

TEST_F(LaunchQuantizationTest, ThePythonScriptSaysThatThereIsNoProgram) {
  fs::create_directories(folder_.Path("alone"));
  fs::copy_file("launch/launch_quantization.py", folder_.Path("alone/l.py"));
  EXPECT_THAT(
      RunProgram("/usr/bin/python3", {folder_.Path("alone/l.py")}, Variables()),
      Fails("build it (bazel build"));
}

// The program must run on machines that have only an engine.
TEST(LaunchQuantization, IsStaticAndLinksNoTensorFlow) {
  if (kSanitized) {
    GTEST_SKIP() << "sanitizers do not work in a static program";
  }
  const ProgramRun run = RunProgram("/usr/bin/ldd", {kLauncher});
  EXPECT_THAT(run.out + run.error,
              ContainsRegex("statically linked|not a dynamic executable"));
  ASSERT_OK_AND_ASSIGN(const std::string program, ReadFile(kLauncher));
  EXPECT_FALSE(absl::StrContains(program, "libtensorflow"));
  EXPECT_FALSE(absl::StrContains(program, "N10tensorflow"));
}

}  // namespace
}  // namespace requant::launch_quantization_test
