// The requant program as people run it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/process/subprocess.h"
#include "workflows/report/manifest.h"

namespace requant::requant_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;
using Environment = std::vector<std::pair<std::string, std::string>>;

constexpr char kRequant[] = "workflows/requant";

struct Outcome {
  int exit_code = -1;
  // TensorFlow writes notices of its own to stderr on some CPUs.
  std::string out, error;
};

Outcome RunProgram(const std::string& program,
                   const std::vector<std::string>& args,
                   const Environment& environment = {}) {
  Outcome outcome;
  ChildOptions options;
  options.argv = {program};
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  options.environment = environment;
  options.on_stdout = [&](std::string_view line) {
    outcome.out.append(line).append("\n");
  };
  options.on_stderr = [&](std::string_view line) {
    outcome.error.append(line).append("\n");
  };
  const auto result = RunChild(options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (result.ok()) outcome.exit_code = result->exit_code;
  return outcome;
}

void WriteScript(const fs::path& path, const std::string& body) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  fs::permissions(path, fs::perms::owner_all);
}

TEST(Requant, ListsItsCommands) {
  const Outcome outcome = RunProgram(kRequant, {"commands"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("  doctor          check this machine"));
  EXPECT_THAT(outcome.out, HasSubstr("\n  transform       "));
}

TEST(Requant, HelpHasTheCommandsInEveryForm) {
  const std::string list = RunProgram(kRequant, {"commands"}).out;
  for (const char* word : {"help", "--help", "-h"}) {
    const Outcome outcome = RunProgram(kRequant, {word});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, HasSubstr(list));
  }
}

TEST(Requant, HelpOfACommandIsTheCommandsOwn) {
  const Outcome outcome = RunProgram(kRequant, {"help", "cache"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, StartsWith("requant cache: "));
  EXPECT_THAT(outcome.out, HasSubstr("--format=<string>"));
}

// In its help, its usage lines and its errors, whatever program does it.
TEST(Requant, EveryCommandGoesByTheNameThatWasTyped) {
  const std::string list = RunProgram(kRequant, {"commands"}).out;
  for (std::string_view line : absl::StrSplit(list, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    const std::string name = "requant " + words[0];
    const Outcome help = RunProgram(kRequant, {words[0], "--help"});
    EXPECT_THAT(help.out, StartsWith(name + ": "));
    std::string_view usage = help.out;
    usage.remove_prefix(usage.find("\nUsage:\n") + 8);
    for (std::string_view example :
         absl::StrSplit(usage.substr(0, usage.find("\n\n")), '\n')) {
      EXPECT_THAT(std::string(example), StartsWith("  " + name)) << help.out;
    }
    const Outcome wrong = RunProgram(kRequant, {words[0], "--no_such_flag"});
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.error, HasSubstr(name + ": unknown "));
    EXPECT_THAT(wrong.error, HasSubstr("see " + name + " --help\n"));
  }
}

TEST(Requant, AProgramGoesByTheNameThatWasTypedInItsChildrenToo) {
  const std::vector<std::string> flags = {"--in_graph=absent.pb",
                                          "--out_graph=/dev/null",
                                          "--transforms=remove_device"};
  std::vector<std::string> args = {"transform"};
  args.insert(args.end(), flags.begin(), flags.end());
  EXPECT_THAT(RunProgram(kRequant, args).error,
              HasSubstr("requant transform: cannot read absent.pb"));
  EXPECT_THAT(RunProgram("transforms/transform_graph", flags).error,
              HasSubstr("transform_graph: cannot read absent.pb"));
}

TEST(Requant, PrintsItsVersion) {
  const Outcome outcome = RunProgram(kRequant, {"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, StartsWith("requant "));
}

TEST(Requant, SuggestsTheNearestCommand) {
  const Outcome outcome = RunProgram(kRequant, {"docter"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.error, HasSubstr("requant: unknown command \"docter\" "
                                       "(did you mean \"doctor\"?)"));
  EXPECT_THAT(outcome.error, HasSubstr(RunProgram(kRequant, {"commands"}).out));
}

TEST(Requant, WithoutACommandItIsAUsageError) {
  const Outcome outcome = RunProgram(kRequant, {});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("Usage:"));
}

TEST(Requant, TellsWhenItsOutputIsLost) {
  const Outcome outcome =
      RunProgram("/bin/sh", {"-c", "workflows/requant help > /dev/full"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.error,
              HasSubstr("requant: cannot write the result: No space left on "
                        "device\n"));
}

// A copy of the program in a folder of its own, where no other program is.
class MovedRequant : public testing::Test {
 protected:
  MovedRequant() : root_(testing::TempDir() + "/moved") {
    fs::remove_all(root_);
    fs::create_directories(root_ / "workflows");
    fs::copy_file(kRequant, root_ / "workflows/requant");
    // The copy no longer finds its library by its own place.
    environment_ = {{"LD_LIBRARY_PATH",
                     fs::canonical("../tensorflow/lib/libtensorflow_cc.so.2")
                         .parent_path()}};
  }
  ~MovedRequant() override { fs::remove_all(root_); }

  Outcome RunMoved(const std::vector<std::string>& args) {
    return RunProgram(root_ / "workflows/requant", args, environment_);
  }

  fs::path root_;
  Environment environment_;
};

TEST_F(MovedRequant, PassesArgumentsOnAndReturnsTheExitCode) {
  WriteScript(root_ / "transforms/transform_graph",
              "printf '<%s>' \"$@\"; exit 7");
  const Outcome outcome =
      RunMoved({"transform", "--transforms=a b", "", "--help"});
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.out, "<--transforms=a b><><--help>\n");
}

TEST_F(MovedRequant, EveryPassedOnCommandHasItsProgram) {
  WriteScript(root_ / "transforms/summarize_graph", "echo summarize $1");
  WriteScript(root_ / "logs_parser/parse_min_max_log", "echo parse $1");
  EXPECT_EQ(RunMoved({"summarize", "x"}).out, "summarize x\n");
  EXPECT_EQ(RunMoved({"help", "parse_log"}).out, "parse --help\n");
}

TEST_F(MovedRequant, AMissingProgramIsOneSentence) {
  const Outcome outcome = RunMoved({"transform"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.error,
              HasSubstr("requant: the program transform_graph is missing: "));
}

class Verify : public testing::Test {
 protected:
  Verify() : folder_(testing::TempDir() + "/verified") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    // The digest of nothing.
    std::ofstream(folder_ / "manifest.json") << WithOwnDigest(
        "{\"format\": \"requant manifest 1\", \"outputs\": [{\"path\": "
        "\"a.pb\", \"bytes\": 0, \"sha256\": "
        "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        "\"}]}");
  }
  ~Verify() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(Verify, SaysThatAllIsWell) {
  std::ofstream(folder_ / "a.pb") << "";
  const Outcome outcome =
      RunProgram(kRequant, {"verify", folder_ / "manifest.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "ok          output  a.pb\n1 file: 1 ok\n");
}

TEST_F(Verify, TakesARunsFolderAndFindsWhatChanged) {
  std::ofstream(folder_ / "a.pb") << "new";
  const Outcome outcome = RunProgram(kRequant, {"verify", folder_});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out,
            "changed     output  a.pb (3 bytes, were 0)\n1 file: 1 changed\n");
}

TEST_F(Verify, AMalformedManifestIsOneSentence) {
  std::ofstream(folder_ / "manifest.json") << "{";
  const Outcome outcome = RunProgram(kRequant, {"verify", folder_});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.error, HasSubstr("requant verify: "));
  EXPECT_THAT(outcome.error, HasSubstr("not a manifest of a run"));
}

TEST_F(Verify, WithoutAManifestItIsAUsageError) {
  EXPECT_EQ(RunProgram(kRequant, {"verify"}).exit_code, 2);
  EXPECT_EQ(RunProgram(kRequant, {"verify", "a", "b"}).exit_code, 2);
}

class Doctor : public testing::Test {
 protected:
  Doctor() : folder_(testing::TempDir() + "/programs") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Doctor() override { fs::remove_all(folder_); }

  // Runs it so that only the Docker of this test is found.
  Outcome RunDoctor(Environment environment = {}) {
    environment.emplace_back("PATH", folder_);
    return RunProgram(kRequant, {"doctor"}, environment);
  }

  fs::path folder_;
};

TEST_F(Doctor, FindsTensorFlowAndItsInt8Kernels) {
  const Outcome outcome = RunDoctor();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.error;
  EXPECT_THAT(
      outcome.out,
      HasSubstr("ok       tensorflow   version " REQUANT_TENSORFLOW_VERSION
                " loads\n"));
  EXPECT_THAT(outcome.out, HasSubstr("a quantized layer runs"));
  EXPECT_THAT(outcome.out, HasSubstr("warning  docker       not installed"));
}

TEST_F(Doctor, AsksTheContainerEngine) {
  WriteScript(folder_ / "docker", "echo 20.10.24");
  const Outcome outcome = RunDoctor();
  EXPECT_THAT(outcome.out,
              HasSubstr("ok       docker       engine 20.10.24 answers\n"));
  WriteScript(folder_ / "docker", "echo cannot reach it >&2; exit 1");
  EXPECT_THAT(RunDoctor().out,
              HasSubstr("warning  docker       the engine does not answer: "
                        "cannot reach it -> "));
}

TEST_F(Doctor, FailsWhereInt8KernelsAreTurnedOff) {
  const Outcome outcome = RunDoctor({{"TF_ENABLE_ONEDNN_OPTS", "0"}});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("\nerror    int8_matmul  TF_ENABLE"));
}

TEST_F(Doctor, RefusesAnotherFormatThanText) {
  const Outcome outcome = RunProgram(kRequant, {"doctor", "--format=json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("--format is text"));
}

}  // namespace
}  // namespace requant::requant_test
