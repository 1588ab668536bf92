// Tests the image and its sessions as people use them, on a real engine: the
// published recipe works word for word, results are the same as outside, and
// nothing is in the image, or left on the machine, that should not be there.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/text/requant_version.h"
#include "re2/re2.h"
#include "tests/support/pasted.h"
#include "tests/support/program_runs.h"
#include "tests/support/workflow_runs.h"

namespace requant::container_test {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;

constexpr char kImage[] = "requant-test:latest";
// A user that is not root and unknown both to this machine and to the image,
// and the group that may use the engine.
constexpr int kUser = 12345;
constexpr int kEngineGroup = 12346;
constexpr int64_t kLargestImage = 800 * 1000 * 1000;
// It is the same in every run, so that the cached layer is found again.
constexpr int kCachePort = 47917;

// Returns the project's folder, the image's build context, to which tests have
// only links.
fs::path ProjectFolder() {
  return fs::canonical("docker/Dockerfile").parent_path().parent_path();
}

std::string Join(const Words& words) { return absl::StrJoin(words, " "); }

// Returns the lines of `text` that contain a match of `pattern`.
std::string MatchingLines(const std::string& text, const std::string& pattern) {
  std::string lines;
  const RE2 regex(pattern);
  EXPECT_TRUE(regex.ok()) << regex.error();
  for (const std::string_view line : absl::StrSplit(text, '\n')) {
    if (RE2::PartialMatch(line, regex)) absl::StrAppend(&lines, line, "\n");
  }
  return lines;
}

// A program that runs in the background until it ends or this object does.
class BackgroundProgram {
 public:
  explicit BackgroundProgram(const Words& line) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      // It ends with the test, however the test ends.
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      dup2(ends[1], STDOUT_FILENO);
      Exec(line);
    }
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~BackgroundProgram() {
    End(SIGTERM);
    fclose(out_);
  }
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  // Waits for a line on its stdout. Returns "" if the program ends without one.
  std::string ReadLine() const {
    std::string line;
    for (int c = fgetc(out_); c != EOF && c != '\n'; c = fgetc(out_)) {
      line.push_back(static_cast<char>(c));
    }
    return line;
  }
  // Waits for the line "ready ADDRESS" and returns the address.
  std::string ReadAddress() const {
    return std::string(absl::StripPrefix(ReadLine(), "ready "));
  }
  // Sends the signal if it is still running, and waits for it to end.
  void End(int signal) {
    if (pid_ == 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  FILE* out_ = nullptr;
};

// The test's own Docker engine, which prints why it cannot serve to stderr.
class ContainerEngine {
 public:
  // Returns whether it could start.
  bool serves() const { return !host_.empty(); }
  // Runs docker with these arguments to its end.
  ProgramRun Docker(const Words& arguments) const {
    return RunProgram("docker", arguments, Variables());
  }
  // Returns variables that a program needs to use this engine and its client.
  // Debian's client is preferred because it has BuildKit without a plugin.
  Words Variables() const {
    return {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DOCKER_HOST=" + host_};
  }
  // Returns the containers, running or not, one per line.
  std::string Containers() const {
    return Docker({"ps", "--all", "--format", "{{.Names}} {{.Status}}"}).out;
  }

 private:
  const BackgroundProgram program_{Words{"tests/support/engine"}};
  const std::string host_ = program_.ReadAddress();
};

// An empty folder that belongs to kUser and that, unlike the test's own, all
// others can read. It is removed at the end.
class UserFolder {
 public:
  UserFolder() {
    if (mkdtemp(path_.data()) == nullptr || chmod(path_.c_str(), 0755) != 0) {
      ADD_FAILURE() << "no folder " << path_;
    }
    GiveToUser();
  }
  ~UserFolder() { fs::remove_all(path_); }
  UserFolder(const UserFolder&) = delete;
  UserFolder& operator=(const UserFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // Gives everything in it to the user.
  void GiveToUser() const {
    EXPECT_EQ(lchown(path_.c_str(), kUser, kUser), 0) << path_;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      EXPECT_EQ(lchown(entry.path().c_str(), kUser, kUser), 0) << entry.path();
    }
  }

 private:
  std::string path_ = "/tmp/requant-container.XXXXXX";
};

class ContainerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_ = new ContainerEngine;
    if (!engine_->serves()) {
      std::cerr << "\n*** THE IMAGE AND ITS SESSIONS ARE NOT TESTED ***\n";
      return;
    }
    BuildImage();
    if (!built_) return;
    folder_ = new UserFolder;
    TakeLauncher();
  }

  static void TearDownTestSuite() {
    delete folder_;
    if (engine_->serves()) {
      // This removes what this run's image replaced.
      engine_->Docker({"image", "prune", "--force"});
      engine_->Docker({"builder", "prune", "--force", "--keep-storage=8GB"});
    }
    delete engine_;
  }

  void SetUp() override {
    if (!engine_->serves()) GTEST_SKIP() << "there is no engine";
    ASSERT_TRUE(built_) << "there is no image to test";
  }

  // Returns an ordinary user's session.
  static Words Session(const Words& arguments) {
    return Joined(
        {absl::StrCat("--reuid=", kUser), absl::StrCat("--regid=", kUser),
         absl::StrCat("--groups=", kEngineGroup),
         folder_->Path("launch_quantization"), "--docker-image", kImage},
        arguments);
  }
  static ProgramRun RunSession(const Words& arguments) {
    return RunProgram("setpriv", Session(arguments), engine_->Variables());
  }

  // Runs a shell in a session that reads `commands` from its stdin.
  static ProgramRun PasteIntoSession(const UserFolder& model,
                                     const std::string& commands) {
    const std::string file = folder_->Path("commands");
    EXPECT_TRUE(WriteFileAtomically(file, commands).ok());
    return RunProgram(
        "bash",
        Joined({"-c", R"(exec setpriv "${@:2}" <"$1")", "bash", file},
               Session({"-p", model.path()})),
        engine_->Variables());
  }

  // Runs a command in a container, without the launcher.
  static ProgramRun RunInImage(const Words& command,
                               const Words& options = {}) {
    return engine_->Docker(
        Joined(Joined({"run", "--rm", "--network=none"}, options),
               Joined({kImage}, command)));
  }

  static std::string Inspect(const std::string& format) {
    return engine_->Docker({"image", "inspect", "--format", format, kImage})
        .out;
  }

  static inline ContainerEngine* engine_ = nullptr;
  static inline bool built_ = false;
  // The user's folder, which has the launcher.
  static inline UserFolder* folder_ = nullptr;

 private:
  static void BuildImage() {
    Words arguments = {"--tag", kImage, "--network=host"};
    std::unique_ptr<BackgroundProgram> cache;
    const char* folder = std::getenv("REQUANT_BAZEL_CACHE");
    if (folder != nullptr) {
      cache = std::make_unique<BackgroundProgram>(
          Words{"tests/support/bazel_cache", folder, absl::StrCat(kCachePort)});
      const std::string url = cache->ReadAddress();
      if (!url.empty()) {
        arguments.push_back(
            absl::StrCat("--build-arg=BAZEL_FLAGS=--remote_cache=", url,
                         " --remote_upload_local_results=false"));
      }
    }
    const ProgramRun run = RunProgram(ProjectFolder() / "docker/build",
                                      arguments, engine_->Variables());
    built_ = run.exit_code == 0;
    ASSERT_TRUE(built_) << run.out << run.error;
    std::cout << MatchingLines(run.error, "^docker/build: ");
  }

  // Gets the launcher like a user who has only the image.
  static void TakeLauncher() {
    const std::string path = folder_->Path("launch_quantization");
    Words line = {"-c", R"(docker run --rm --network=none "$1" launcher >"$2")",
                  "sh", kImage, path};
    ASSERT_THAT(RunProgram("sh", line, engine_->Variables()), Exits(0));
    fs::permissions(path, fs::perms(0755));
    EXPECT_THAT(RunProgram(path, {"--version"}), Prints(kRequantVersion));
  }
};

TEST_F(ContainerTest, ImageIsSmallAndSaysWhatItIs) {
  int64_t size = 0;
  ASSERT_TRUE(absl::SimpleAtoi(Inspect("{{.Size}}"), &size));
  std::cout << "The image has " << size / 1000000 << " MB.\n";
  EXPECT_LE(size, kLargestImage);
  const auto label = [](const std::string& name) {
    return Inspect(absl::StrCat("{{index .Config.Labels \"org.opencontainers.",
                                "image.", name, "\"}}"));
  };
  EXPECT_EQ(label("version"), absl::StrCat(kRequantVersion, "\n"));
  EXPECT_NE(label("source"), "\n");
  EXPECT_NE(label("licenses"), "\n");
  EXPECT_EQ(Inspect("{{.Config.User}}"), "requant\n");
  EXPECT_THAT(Inspect("{{.Config.Healthcheck.Test}}"), HasSubstr("requant"));
}

TEST_F(ContainerTest, ImageHasNoLeftovers) {
  // The entrypoint is skipped because it fills the scratch folder.
  const ProgramRun files =
      RunInImage({"/", "-xdev", "(", "-path", "/proc", "-o", "-path", "/sys",
                  ")", "-prune", "-o", "-printf", "%M %p\n"},
                 {"--user=root", "--entrypoint=/usr/bin/find"});
  ASSERT_THAT(files.out, HasSubstr("/opt/requant/bin/requant\n"));
  const std::vector<std::string> unwanted = {
      // Compilers and interpreters; python is Requant's.
      R"(/(gcc|g\+\+|cc|c\+\+|cpp|cc1|cc1plus|as|ld|clang|make|bazel|java|pip3?)(-[0-9.]+)?$)",
      R"(/(python3\.[0-9]+|dist-packages|site-packages)(/|$))",
      R"(\.(h|hpp|cc|o|a|pyc|whl|deb)$)",
      // Certificates, keys and proxies.
      R"(\.(crt|pem|key)$)", R"(/ca-certificates)", R"(apt\.conf.*proxy)",
      // Caches, logs, sources, and files that record passwords.
      R"(/var/cache/apt/.)", R"(/var/lib/apt/lists/.)", R"(/var/log/.)",
      R"(/\.(cache|git|requant|bazelrc|netrc|docker)(/|$))", R"(^\S+ /requant)",
      R"(^\S+ /tmp/.)", R"(^\S+ /root/.*(history|\.ssh))",
      // Programs that run as another user.
      R"(^-\S*s\S* )"};
  for (const std::string& pattern : unwanted) {
    EXPECT_EQ(MatchingLines(files.out, pattern), "") << pattern;
  }
  const std::string made =
      absl::StrCat(Inspect("{{json .Config}}"),
                   engine_
                       ->Docker({"history", "--no-trunc", "--format",
                                 "{{.CreatedBy}}", kImage})
                       .out);
  EXPECT_EQ(MatchingLines(made, "(?i)_proxy=|password|BEGIN CERT|secret"), "");
}

// They are not in it under another name either.
TEST_F(ContainerTest, ImageHasNoneOfThisMachinesCertificates) {
  std::string lines;
  std::error_code none;
  for (const auto& entry :
       fs::directory_iterator("/usr/local/share/ca-certificates", none)) {
    const auto content = ReadFile(entry.path());
    if (!content.ok()) continue;
    const std::vector<std::string> parts = absl::StrSplit(*content, '\n');
    // The first lines are the same in many certificates.
    if (parts.size() > 8) absl::StrAppend(&lines, parts[5], "\n");
  }
  if (lines.empty()) GTEST_SKIP() << "this machine trusts no others";
  const std::string patterns = folder_->Path("patterns");
  ASSERT_TRUE(WriteFileAtomically(patterns, lines).ok());
  const std::string script =
      R"(id=$(docker create --network=none "$1" true) || exit 9
         docker export "$id" | grep --text --count --fixed-strings --file="$2"
         docker rm "$id" >/dev/null)";
  EXPECT_EQ(RunProgram("sh", {"-c", script, "sh", kImage, patterns},
                       engine_->Variables())
                .out,
            "0\n");
}

TEST_F(ContainerTest, ImageRunsWithoutTheLauncher) {
  EXPECT_THAT(RunInImage({"requant", "--version"}), Prints(kRequantVersion));
  // The root file system is read-only, and nothing has to be written.
  EXPECT_THAT(RunInImage({"bazel-bin/tensorflow/tools/graph_transforms/"
                          "summarize_graph",
                          "--in_graph=/opt/requant/workflows/wide_deep/model"},
                         {"--read-only"}),
              Prints("head/predictions/probabilities"));
  EXPECT_THAT(RunInImage({"no_such_program"}),
              Exits(127, HasSubstr("no program no_such_program")));
  EXPECT_THAT(RunInImage({"python", "train.py"}), Misused("freeze_graph.py"));
}

TEST_F(ContainerTest, SelfTestPassesInASession) {
  EXPECT_THAT(RunSession({"--test"}), Prints("The image works here."));
}

// The program `script` provides the terminal.
TEST_F(ContainerTest, ShellGreetsAndCompletes) {
  const UserFolder model;
  const std::string session =
      absl::StrCat("setpriv ", Join(Session({"-p", model.path()})));
  const ProgramRun run = RunProgram(
      "sh",
      {"-c",
       R"(printf 'pwd; requant summ\t--help | head -n 1; complete -p requant; exit 7\n' |
          script --quiet --return --command "$1" /dev/null)",
       "sh", session},
      engine_->Variables());
  EXPECT_EQ(run.exit_code, 7) << run.out << run.error;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("your model directory"), HasSubstr("requant run"),
                    HasSubstr("requant help")));
  EXPECT_THAT(run.out, HasSubstr("\r/workspace/tensorflow\r\n"));
  EXPECT_THAT(run.out, HasSubstr("requant summarize"));
  EXPECT_THAT(run.out, HasSubstr("-F _requant requant"));
}

void ExpectOwnedByUser(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat info;
    ASSERT_EQ(lstat(entry.path().c_str(), &info), 0) << entry.path();
    EXPECT_EQ(info.st_uid, kUser) << entry.path();
    EXPECT_EQ(info.st_gid, kUser) << entry.path();
  }
}

TEST_F(ContainerTest, RunsThePublishedRecipeWordForWord) {
  const UserFolder files;
  MakeRecipeFiles(files.path());
  files.GiveToUser();
  const ProgramRun run =
      PasteIntoSession(files, PastedCommands(kRecipeCommands, "container"));
  ExpectRecipeDone(run, files.path());
  ExpectOwnedByUser(files.path());
}

TEST_F(ContainerTest, RunsTheGptjDocumentWordForWord) {
  const UserFolder files;
  MakeGptjFiles(files.path());
  files.GiveToUser();
  const ProgramRun run = PasteIntoSession(
      files, absl::StrCat("set -e\ncd /workspace/quantization\n",
                          PastedCommands(kGptjCommands, "container")));
  ExpectGptjDone(run, files.path());
  ExpectOwnedByUser(files.path());
}

// The published launch command runs outside, and the lines below it in the
// session that it opens.
TEST_F(ContainerTest, PublishedLaunchCommandTakesTheRestOfThePaste) {
  const UserFolder files;
  const std::string commands = absl::StrReplaceAll(
      ReadFile(kRecipeCommands).value(),
      {{"quantization:latest", kImage},
       {"/home/<user>/<pre_trained_model_dir>", files.path()}});
  const size_t begin = commands.find("      python launch_quantization.py");
  ASSERT_NE(begin, std::string::npos);
  const size_t end = commands.find("\n\n", begin);
  const std::string file = folder_->Path("commands");
  ASSERT_TRUE(WriteFileAtomically(
                  file, absl::StrCat(commands.substr(begin, end - begin),
                                     "\n\npwd\ncd /tmp\n"
                                     "$ bazel-bin/tensorflow/tools/"
                                     "graph_transforms/transform_graph "
                                     "--list_transforms\n"))
                  .ok());
  Words variables = engine_->Variables();
  variables.push_back("REQUANT_HOME=" + fs::current_path().string());
  EXPECT_THAT(RunProgram("bash",
                         {"-c", R"(exec "$1" shell <"$2")", "bash",
                          fs::absolute("workflows/requant"), file},
                         variables),
              Prints("/workspace/tensorflow\n", "insert_qdq"));
}

// Returns the lines of results.csv that say how a stage was judged.
std::string Verdicts(const std::string& folder) {
  const auto results = ReadFile(absl::StrCat(folder, "/results.json"));
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? MatchingLines(*results, "\"verdict\"") : "";
}

TEST_F(ContainerTest, GivesTheSameAsOutside) {
  const UserFolder model;
  const ProgramRun inside =
      RunSession({"--pre-trained-model-dir", model.path(), "--", "requant",
                  "run", "wide_deep", "--set", "eval_records=4000", "--set",
                  "calibration_records=4096", "--only=fuse",
                  "--work_dir=/tmp/work", "--out=/workspace/quantization/run"});
  const TestFolder folder;
  const ProgramRun outside =
      RunSmall(folder.Path("work"), folder.Path("run"), {"--only=fuse"});
  EXPECT_THAT(inside, Exits(outside.exit_code));
  EXPECT_GT(GraphsAndRanges(folder.Path("run")).size(), 10);
  ExpectSameGraphsAndRanges(folder.Path("run"), model.Path("run"));
  EXPECT_THAT(Verdicts(folder.Path("run")), Not(IsEmpty()));
  EXPECT_EQ(Verdicts(model.Path("run")), Verdicts(folder.Path("run")));
  ExpectOwnedByUser(model.path());
}

TEST_F(ContainerTest, PassesTheExitCodeThrough) {
  const UserFolder model;
  EXPECT_THAT(RunSession({"-p", model.path(), "--", "bash", "-c", "exit 3"}),
              Exits(3));
}

TEST_F(ContainerTest, LeavesNoContainerBehind) {
  const UserFolder model;
  EXPECT_EQ(engine_->Containers(), "");
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    BackgroundProgram session(Joined(
        Joined({"/usr/bin/env"}, engine_->Variables()),
        Joined({"setpriv"}, Session({"-p", model.path(), "--", "bash", "-c",
                                     "echo runs; exec sleep infinity"}))));
    ASSERT_NE(session.ReadLine(), "") << signal;
    EXPECT_THAT(engine_->Containers(), Not(IsEmpty()));
    session.End(signal);
    // Another process cleans up after a launcher that was killed. If that
    // fails, the test's own time limit ends the wait.
    while (signal == SIGKILL && !engine_->Containers().empty()) {
    }
    EXPECT_EQ(engine_->Containers(), "") << signal;
  }
}

}  // namespace
}  // namespace requant::container_test
