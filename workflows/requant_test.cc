// Tests the requant program as people run it.

#include <filesystem>
#include <fstream>
#include <string_view>

#include "absl/strings/str_split.h"
#include "base/program/flags.h"
#include "graph/testing/program.h"
#include "workflows/report/run_folder.h"

namespace requant::requant_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr char kRequant[] = "workflows/requant";

ProgramRun RunRequant(const Words& args, const Words& variables = {}) {
  return RunProgram(kRequant, args, variables);
}

// Matches a run that ended with `code` and printed `out`.
auto ExitsPrinting(int code, const testing::Matcher<std::string>& out) {
  return AllOf(Exits(code), testing::Field("out", &ProgramRun::out, out));
}

void WriteScript(const fs::path& path, const std::string& body) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  fs::permissions(path, fs::perms::owner_all);
}

TEST(Requant, ListsItsCommands) {
  EXPECT_THAT(
      RunRequant({"commands"}),
      ExitsPrinting(kExitOk,
                    AllOf(HasSubstr("  doctor          check this machine"),
                          HasSubstr("\n  transform       "))));
}

TEST(Requant, HelpHasTheCommandsInEveryForm) {
  const std::string list = RunRequant({"commands"}).out;
  for (const char* word : {"help", "--help", "-h"}) {
    EXPECT_THAT(RunRequant({word}), ExitsPrinting(kExitOk, HasSubstr(list)));
  }
}

TEST(Requant, HelpOfACommandIsTheCommandsOwn) {
  EXPECT_THAT(RunRequant({"help", "cache"}),
              ExitsPrinting(kExitOk, AllOf(StartsWith("requant cache: "),
                                           HasSubstr("--format=<string>"))));
}

// Help, usage lines and errors have this name, whatever program they are from.
TEST(Requant, EveryCommandGoesByTheNameThatWasTyped) {
  const std::string list = RunRequant({"commands"}).out;
  for (std::string_view line : absl::StrSplit(list, '\n', absl::SkipEmpty())) {
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const std::string name = "requant " + words[0];
    const ProgramRun help = RunRequant({words[0], "--help"});
    EXPECT_THAT(help.out, StartsWith(name + ": "));
    std::string_view usage = help.out;
    usage.remove_prefix(usage.find("\nUsage:\n") + 8);
    for (std::string_view example :
         absl::StrSplit(usage.substr(0, usage.find("\n\n")), '\n')) {
      EXPECT_THAT(std::string(example), StartsWith("  " + name)) << help.out;
    }
    EXPECT_THAT(
        RunRequant({words[0], "--no_such_flag"}),
        Exits(kExitUsage, AllOf(HasSubstr(name + ": unknown "),
                                HasSubstr("see " + name + " --help\n"))));
  }
}

TEST(Requant, AProgramGoesByTheNameThatWasTypedInItsChildrenToo) {
  const Words flags = {"--in_graph=absent.pb", "--out_graph=/dev/null",
                       "--transforms=remove_device"};
  Words args = {"transform"};
  args.insert(args.end(), flags.begin(), flags.end());
  EXPECT_THAT(RunRequant(args).error,
              HasSubstr("requant transform: cannot read absent.pb"));
  EXPECT_THAT(RunProgram(kTransformGraph, flags).error,
              HasSubstr("transform_graph: cannot read absent.pb"));
}

TEST(Requant, PrintsItsVersion) {
  EXPECT_THAT(RunRequant({"--version"}),
              ExitsPrinting(kExitOk, StartsWith("requant ")));
}

TEST(Requant, SuggestsTheNearestCommand) {
  const ProgramRun run = RunRequant({"docter"});
  EXPECT_THAT(run, ExitsPrinting(kExitUsage, ""));
  EXPECT_THAT(run.error,
              AllOf(HasSubstr("requant: unknown command \"docter\" (did you "
                              "mean \"doctor\"?)"),
                    HasSubstr(RunRequant({"commands"}).out)));
}

TEST(Requant, WithoutACommandItIsAUsageError) {
  EXPECT_THAT(RunRequant({}), Exits(kExitUsage, HasSubstr("Usage:")));
}

TEST(Requant, TellsWhenItsOutputIsLost) {
  EXPECT_THAT(
      RunProgram("/bin/sh", {"-c", "workflows/requant help > /dev/full"}),
      Exits(kExitFailed, HasSubstr("requant: cannot write the result: No space "
                                   "left on device\n")));
}

// A copy of the program in a folder of its own, where no other program is.
class MovedRequant : public testing::Test {
 protected:
  MovedRequant() {
    fs::create_directories(root_ / "workflows");
    fs::copy_file(kRequant, root_ / "workflows/requant");
  }

  ProgramRun RunMoved(const Words& args) {
    // The copy no longer finds its library by its own place.
    const fs::path library =
        fs::canonical("../tensorflow/lib/libtensorflow_cc.so.2");
    return RunProgram(root_ / "workflows/requant", args,
                      {"LD_LIBRARY_PATH=" + library.parent_path().string()});
  }

  const TestFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(MovedRequant, PassesArgumentsOnAndReturnsTheExitCode) {
  WriteScript(root_ / "transforms/transform_graph",
              "printf '<%s>' \"$@\"; exit 7");
  EXPECT_THAT(RunMoved({"transform", "--transforms=a b", "", "--help"}),
              ExitsPrinting(7, "<--transforms=a b><><--help>\n"));
}

TEST_F(MovedRequant, ParsesLogsByTheProgramForThat) {
  WriteScript(root_ / "logs_parser/parse_min_max_log", "echo parse $1");
  EXPECT_EQ(RunMoved({"parse_log", "x"}).out, "parse x\n");
  EXPECT_EQ(RunMoved({"help", "parse_log"}).out, "parse --help\n");
}

TEST_F(MovedRequant, AMissingProgramIsOneSentence) {
  EXPECT_THAT(
      RunMoved({"transform"}),
      Exits(kExitFailed,
            HasSubstr("requant: the program transform_graph is missing: ")));
}

// run_folder_test tests how CheckManifest compares a manifest with files.
TEST(Verify, TakesAManifestOrARunsFolder) {
  const TestFolder folder;
  // The digest is that of an empty file.
  const std::string manifest = folder.Write(
      "manifest.json",
      WithOwnDigest(
          "{\"format\": \"requant manifest 1\", \"outputs\": [{\"path\": "
          "\"a.pb\", \"bytes\": 0, \"sha256\": "
          "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
          "\"}]}"));
  folder.Write("a.pb", "");
  EXPECT_THAT(
      RunRequant({"verify", manifest}),
      ExitsPrinting(kExitOk, "ok          output  a.pb\n1 file: 1 ok\n"));
  folder.Write("a.pb", "new");
  EXPECT_THAT(RunRequant({"verify", folder.path()}),
              ExitsPrinting(kExitFailed,
                            "changed     output  a.pb (3 bytes, were 0)\n"
                            "1 file: 1 changed\n"));
  folder.Write("manifest.json", "{");
  EXPECT_THAT(
      RunRequant({"verify", folder.path()}),
      AllOf(ExitsPrinting(kExitFailed, ""),
            Exits(kExitFailed, AllOf(HasSubstr("requant verify: "),
                                     HasSubstr("not a manifest of a run")))));
}

TEST(Verify, WithoutAManifestItIsAUsageError) {
  EXPECT_THAT(RunRequant({"verify"}), Exits(kExitUsage));
  EXPECT_THAT(RunRequant({"verify", "a", "b"}), Exits(kExitUsage));
}

class Doctor : public testing::Test {
 protected:
  // Runs `requant doctor` so that it finds only this test's Docker.
  ProgramRun RunDoctor(Words variables = {}) {
    variables.push_back("PATH=" + folder_.path());
    return RunRequant({"doctor"}, variables);
  }

  const TestFolder folder_;
};

TEST_F(Doctor, FindsTensorFlowAndItsInt8Kernels) {
  EXPECT_THAT(
      RunDoctor(),
      ExitsPrinting(
          kExitOk,
          AllOf(HasSubstr(
                    "ok       tensorflow   version " REQUANT_TENSORFLOW_VERSION
                    " loads\n"),
                HasSubstr("a quantized layer runs"),
                HasSubstr("warning  docker       not installed"))));
}

TEST_F(Doctor, AsksTheContainerEngine) {
  WriteScript(folder_.Path("docker"), "echo 20.10.24");
  EXPECT_THAT(RunDoctor().out,
              HasSubstr("ok       docker       engine 20.10.24 answers\n"));
  WriteScript(folder_.Path("docker"), "echo cannot reach it >&2; exit 1");
  EXPECT_THAT(RunDoctor().out,
              HasSubstr("warning  docker       the engine does not answer: "
                        "cannot reach it -> "));
}

TEST_F(Doctor, FailsWhereInt8KernelsAreTurnedOff) {
  EXPECT_THAT(RunDoctor({"TF_ENABLE_ONEDNN_OPTS=0"}),
              ExitsPrinting(kExitFailed,
                            HasSubstr("\nerror    int8_matmul  TF_ENABLE")));
}

TEST(Requant, RefusesFlagsOfOtherCommands) {
  EXPECT_THAT(RunRequant({"doctor", "--format=json"}),
              Exits(kExitUsage, HasSubstr("unknown flag --format")));
}

}  // namespace
}  // namespace requant::requant_test
