// Tests the wheel: installed beside a stock TensorFlow, its programs and
// `import requant` work as people use them, without a compiler.

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_split.h"
#include "base/text/requant_version.h"
#include "tests/support/pages.h"
#include "tests/support/stock_python.h"

namespace requant::python_test {
namespace {

namespace fs = std::filesystem;

constexpr char kWheel[] = "python/wheel.zip";

// Installs the wheel as pip does from a file, and returns the run.
ProgramRun Install(const TestFolder& folder) {
  const std::string wheel = folder.Path(
      absl::StrCat("requant-", kRequantVersion, "-py3-none-linux_x86_64.whl"));
  fs::copy_file(kWheel, wheel);
  return RunPython(
      {"-m", "pip", "--disable-pip-version-check", "install", "--no-index",
       "--no-deps", "--root-user-action=ignore", "--no-warn-script-location",
       "--target=" + folder.Path("site"), wheel},
      {"PYTHONPATH="});
}

class PythonPackage : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TestFolder;
    ASSERT_THAT(Install(*folder_), Exits(0));
    has_python_ = HasPython();
  }
  static void TearDownTestSuite() { delete folder_; }

  void SetUp() override {
    if (!has_python_) GTEST_SKIP() << "no Python TensorFlow";
  }

  // Returns the variables of an environment with the package, and with
  // TensorFlow's or another folder of packages beside it.
  static Words Variables(const std::string& beside = PythonFolder()) {
    return {absl::StrCat("PYTHONPATH=", folder_->Path("site"), ":", beside),
            absl::StrCat("PATH=", folder_->Path("site/bin"), ":/usr/bin:/bin")};
  }

  static TestFolder* folder_;
  static bool has_python_;
};

TestFolder* PythonPackage::folder_ = nullptr;
bool PythonPackage::has_python_ = false;

TEST_F(PythonPackage, BringsProgramsOfThisVersion) {
  int programs = 0;
  for (const auto& entry : fs::directory_iterator(folder_->Path("site/bin"))) {
    if (entry.is_directory()) continue;
    ++programs;
    EXPECT_THAT(RunPython({entry.path(), "--version"}, Variables()),
                Prints(kRequantVersion))
        << entry;
  }
  EXPECT_GE(programs, 15);
  EXPECT_FALSE(fs::exists(folder_->Path("site/bin/python")));
  // All flags reach the program, and its exit code comes back.
  const std::string requant = folder_->Path("site/bin/requant");
  EXPECT_THAT(RunPython({requant, "evaluate", "--graph="}, Variables()),
              Misused("requant evaluate: --graph is missing"));
  EXPECT_THAT(RunPython({requant, "plan", "wide_deep"}, Variables()),
              Prints("would run"));
  // A closed pipe (bit 12) ends them, although Python ignores it.
  EXPECT_THAT(RunPython({requant, "shell", "--", "grep", "^SigIgn",
                         "/proc/self/status"},
                        Variables()),
              Prints(testing::ContainsRegex(
                  "SigIgn:\t[0-9a-f]+[02468ace][0-9a-f]{3}\n")));
}

TEST_F(PythonPackage, NeedsNoLibraryButTensorFlowsAndTheSystems) {
  const ProgramRun run = RunProgram(
      "/bin/sh", {"-c", "readelf -d \"$1\"/* | grep NEEDED | sort -u", "sh",
                  folder_->Path("site/requant/bin")});
  std::vector<std::string> libraries;
  for (const auto line : absl::StrSplit(run.out, '\n', absl::SkipEmpty())) {
    libraries.emplace_back(line.substr(line.find('[')));
  }
  EXPECT_THAT(
      libraries,
      testing::IsSubsetOf({"[ld-linux-x86-64.so.2]", "[libc.so.6]",
                           "[libgcc_s.so.1]", "[libm.so.6]", "[libstdc++.so.6]",
                           "[libtensorflow_framework.so.2]"}));
  // Exceptions and streams pass between TensorFlow's code and ours.
  EXPECT_THAT(libraries, testing::Contains("[libstdc++.so.6]"));
}

TEST_F(PythonPackage, SaysWhichTensorFlowIsNeededWithoutImportingAny) {
  const Words version = {folder_->Path("site/bin/requant"), "--version"};
  EXPECT_THAT(RunPython(version, Variables("")),
              Refuses("requant: TensorFlow 2.21 is needed", "has none",
                      "pip install tensorflow-cpu==2.21."));
  const TestFolder other;
  other.Write("tensorflow/__init__.py", "raise SystemExit('imported')");
  other.Write("tensorflow-2.20.0.dist-info/METADATA", "");
  EXPECT_THAT(RunPython(version, Variables(other.path())),
              Refuses("has 2.20.0: pip install"));
  EXPECT_THAT(
      RunPython({"-c", "import requant; requant.check_serving('x')"},
                Variables(other.path())),
      Fails("requant._programs.RequantError: TensorFlow 2.21 is needed"));
}

TEST_F(PythonPackage, DoesInPythonWhatTheCommandsDo) {
  const ProgramRun run =
      RunPython({"tests/python/use_package.py", "tests/serving"}, Variables());
  EXPECT_THAT(run, Warns("\nOK\n"));
}

TEST_F(PythonPackage, WorksAsThePageSays) {
  constexpr char kPage[] = "docs/python.md";
  const TestFolder folder;
  WriteBlocks(kPage, "python", folder);
  const std::vector<std::string> commands = Blocks(kPage, "sh");
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_THAT(RunIn(folder, "/bin/sh", {"-c", commands[0]}, Variables()),
              Prints("2 of 2 matrix products", "serving_default",
                     "as when it was made"));
}

// Dates, permissions and the order of the arguments do not matter.
TEST(Wheel, HasTheSameBytesForTheSameFiles) {
  const TestFolder folder;
  Words files = {"base/text/requant_version.h", "third_party/versions.env",
                 "python/requant/a.py", "shell/session.bash"};
  for (const char* copy : {"a", "b"}) {
    for (const std::string& file : files) {
      folder.Write(absl::StrCat(copy, "/", file),
                   absl::StrCat("// kRequantVersion[] = \"1.0\";\n",
                                "TENSORFLOW_VERSION=\"2.21.0\"\n"));
    }
  }
  fs::last_write_time(folder.Path("b/python/requant/a.py"), {});
  fs::permissions(folder.Path("b/python/requant/a.py"), fs::perms(0700));
  const std::string script = fs::absolute("python/make_wheel.py");
  const auto make = [&](const std::string& copy) {
    return RunProgram("/bin/sh",
                      Joined({"-c", "cd \"$0\" && /usr/bin/python3 \"$@\"",
                              folder.Path(copy), script, "out.whl"},
                             files));
  };
  EXPECT_THAT(make("a"), Exits(0));
  std::reverse(files.begin(), files.end());
  EXPECT_THAT(make("b"), Exits(0));
  EXPECT_NE(folder.Read("a/out.whl"), "");
  EXPECT_TRUE(folder.Read("a/out.whl") == folder.Read("b/out.whl"));
}

// Tags the wheel and returns the tagged one's path.
std::string Tagged(const std::string& folder) {
  const ProgramRun run = RunProgram(
      "python/tag_wheel", {kWheel, PythonFolder() + "/../auditwheel", folder});
  EXPECT_THAT(run, Prints("manylinux_2_34_x86_64.whl\n"));
  return run.out.substr(0, run.out.find('\n'));
}

TEST(OtherSystem, InstallsAndRunsTheWheel) {
  if (!HasPython()) GTEST_SKIP() << "no Python TensorFlow";
  const TestFolder folder;
  const std::string wheel = Tagged(folder.Path("a"));
  EXPECT_TRUE(fs::exists(wheel));
  ASSERT_THAT(RunPython({"-c",
                         "import sys; sys.path.insert(0, 'tests/serving');"
                         "import make_models; make_models.resnet(sys.argv[1])",
                         folder.path()}),
              Exits(0));
  const ProgramRun run =
      RunProgram("tests/python/other_system", {wheel, folder.Path("resnet")});
  if (run.exit_code == 3) {
    GTEST_SKIP() << "\n*** The wheel is not tried in another system: "
                 << run.error;
  }
  EXPECT_THAT(run, Prints("compared on 120 others", "as when it was made",
                          "Evaluation(records=600", "PASSED"));
  EXPECT_THAT(run.error, HasSubstr("TensorFlow 2.21 is needed"));
}

TEST(OtherSystem, HasTheSameBytesUnderAnyMask) {
  if (!HasPython()) GTEST_SKIP() << "no Python TensorFlow";
  const TestFolder folder;
  const std::string a = Tagged(folder.Path("a"));
  umask(077);
  const std::string b = Tagged(folder.Path("b"));
  EXPECT_EQ(RunProgram("cmp", {a, b}).exit_code, 0);
}

}  // namespace
}  // namespace requant::python_test
