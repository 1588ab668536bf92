#include "base/process/tensorflow_child.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/file.h"
#include "base/testing/testing.h"

namespace requant::tensorflow_child_test {
namespace {

namespace fs = std::filesystem;
using Environment = std::vector<std::pair<std::string, std::string>>;

constexpr std::time_t kDay = 24 * 3600;

class TensorFlowChild : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA",
                             "REQUANT_ONEDNN_CAP", "TF_ENABLE_ONEDNN_OPTS"}) {
      unsetenv(name);
    }
    // Each test has its own folder, with the same name in all processes.
    const std::string folder = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  }

  // Runs a shell command as a TensorFlow child.
  ChildResult Run(const std::string& command) {
    ChildOptions options;
    options.argv = {"/bin/sh", "-c", command};
    const absl::StatusOr<ChildResult> result = RunTensorFlowChild(
        options, [this](const std::string& sentence, const ChildResult& died) {
          EXPECT_EQ(died.signal, SIGILL);
          sentences_.push_back(sentence);
        });
    EXPECT_OK(result);
    return *result;
  }

  std::vector<std::string> sentences_;
};

TEST_F(TensorFlowChild, KeepsTheUsersCap) {
  setenv("DNNL_MAX_CPU_ISA", "AVX", 1);
  EXPECT_EQ(CachedOneDnnIsaCap(), "AVX");
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  EXPECT_EQ(CachedOneDnnIsaCap(), "AVX2");
  EXPECT_EQ(TensorFlowEnvironment(),
            (Environment{{"ONEDNN_MAX_CPU_ISA", "AVX2"},
                         {"TF_ENABLE_ONEDNN_OPTS", "1"}}));
  setenv("TF_ENABLE_ONEDNN_OPTS", "0", 1);
  EXPECT_EQ(TensorFlowEnvironment(),
            (Environment{{"ONEDNN_MAX_CPU_ISA", "AVX2"}}));
}

TEST_F(TensorFlowChild, DoesNotTakeAParentsCapForTheUsers) {
  setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
  setenv("REQUANT_ONEDNN_CAP", "SSE41", 1);
  EXPECT_EQ(UsersIsaCap(), "");
  EXPECT_EQ(CachedOneDnnIsaCap(), OneDnnIsaCap(ProbeCpu()));
}

TEST_F(TensorFlowChild, IsNotRunAgainWhenTheUserSetACap) {
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  EXPECT_EQ(Run("kill -ILL $$").signal, SIGILL);
  EXPECT_THAT(sentences_, IsEmpty());
}

TEST_F(TensorFlowChild, IsNotRunAgainAfterAnotherDeath) {
  EXPECT_EQ(Run("kill -SEGV $$").signal, SIGSEGV);
  EXPECT_THAT(sentences_, IsEmpty());
  EXPECT_EQ(Run("exit 1").exit_code, 1);
}

// Simulates a machine where programs die of SIGILL unless they have this cap. A
// process looks the cap up only once, so each part runs in its own process.
class TensorFlowChildDeathTest : public TensorFlowChild {
 protected:
  TensorFlowChildDeathTest() {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }

  static std::string Cap() {
    return LowerIsaCap(ProbeCpu(), OneDnnIsaCap(ProbeCpu()));
  }
  static std::string DiesAboveCap() {
    return absl::StrCat("test \"$ONEDNN_MAX_CPU_ISA\" = ", Cap(),
                        " || kill -ILL $$; exit 7");
  }
  [[noreturn]] static void End() { _exit(HasFailure() ? 1 : 0); }

  // The child dies once, the helpful cap is learned, and the retry succeeds.
  [[noreturn]] void Learn() {
    EXPECT_EQ(Run(DiesAboveCap()).exit_code, 7);
    EXPECT_THAT(sentences_,
                ElementsAre(HasSubstr("ONEDNN_MAX_CPU_ISA=" + Cap() + ",")));
    EXPECT_EQ(CachedOneDnnIsaCap(), Cap());
    EXPECT_EQ(Run(DiesAboveCap()).exit_code, 7);
    EXPECT_THAT(sentences_, SizeIs(1));
    End();
  }
  // Checks that the cap is remembered.
  [[noreturn]] void Know() {
    EXPECT_EQ(Run(DiesAboveCap()).exit_code, 7);
    EXPECT_THAT(sentences_, IsEmpty());
    EXPECT_THAT(ServingVariables(), HasSubstr("ONEDNN_MAX_CPU_ISA=" + Cap()));
    End();
  }
  [[noreturn]] void FailTwice() {
    EXPECT_EQ(Run("kill -ILL $$").signal, SIGILL);
    EXPECT_THAT(sentences_, SizeIs(1));
    End();
  }
};

TEST_F(TensorFlowChildDeathTest, IsRunAgainUnderALowerCapWhichIsRemembered) {
  EXPECT_EXIT(Learn(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Know(), testing::ExitedWithCode(0), "");
}

TEST_F(TensorFlowChildDeathTest, ACapThatAnotherProcessFoundHoldsAtOnce) {
  const auto run = [] {
    EXPECT_EQ(CachedOneDnnIsaCap(), OneDnnIsaCap(ProbeCpu()));
    IsaCapMemory(absl::StrCat(getenv("XDG_CACHE_HOME"), "/requant"),
                 AdvertisedBy(ThisCpu()), REQUANT_TENSORFLOW_VERSION)
        .Remember(Cap(), std::time(nullptr));
    EXPECT_EQ(CachedOneDnnIsaCap(), Cap());
    End();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

// Also covers a process that finds the cap while this one's child still runs.
TEST_F(TensorFlowChildDeathTest, GoesNoLowerThanAnotherProcessFoundToHelp) {
  const auto run = [&] {
    const std::string found = testing::TempDir() + "/found";
    const std::string cache = absl::StrCat(getenv("XDG_CACHE_HOME"));
    IsaCapMemory(found, AdvertisedBy(ThisCpu()), REQUANT_TENSORFLOW_VERSION)
        .Remember(Cap(), std::time(nullptr));
    EXPECT_EQ(
        Run(absl::StrCat("test \"$ONEDNN_MAX_CPU_ISA\" = ", Cap(),
                         " && exit 7; mkdir -p '", cache, "' && cp -r '", found,
                         "' '", cache, "/requant' && kill -ILL $$"))
            .exit_code,
        7);
    EXPECT_EQ(CachedOneDnnIsaCap(), Cap());
    End();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST_F(TensorFlowChildDeathTest, ACapThatDoesNotHelpIsNotRemembered) {
  EXPECT_EXIT(FailTwice(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Learn(), testing::ExitedWithCode(0), "");
}

TEST_F(TensorFlowChildDeathTest, ACapHelpsWhereNothingCanBeRemembered) {
  setenv("XDG_CACHE_HOME", "/dev/null/nowhere", 1);
  EXPECT_EXIT(Learn(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(Learn(), testing::ExitedWithCode(0), "");
}

CpuFeatures Cpu(const std::string& model, const std::string& answers) {
  CpuFeatures cpu;
  cpu.model = model;
  cpu.answers = answers;
  return cpu;
}

TEST(IsaCapMemory, ForgetsAfterThirtyDaysAndElsewhere) {
  const std::string folder = testing::TempDir() + "/caps";
  const IsaCapMemory memory(folder, Cpu("a", "1c 2"), "2.21.0");
  constexpr std::time_t kNow = 1800000000;
  EXPECT_EQ(memory.Recall(kNow), "");
  memory.Remember("AVX2", kNow);
  EXPECT_EQ(memory.Recall(kNow), "AVX2");
  EXPECT_EQ(memory.Recall(kNow + 29 * kDay), "AVX2");
  EXPECT_EQ(memory.Recall(kNow + 30 * kDay), "");
  // The clock may have been wrong.
  EXPECT_EQ(memory.Recall(kNow - 1), "");
  const IsaCapMemory others[] = {{folder, Cpu("b", "1c 2"), "2.21.0"},
                                 {folder, Cpu("a", "1d 2"), "2.21.0"},
                                 {folder, Cpu("a", "1c 2"), "2.22.0"},
                                 {"", Cpu("a", "1c 2"), "2.21.0"}};
  for (const IsaCapMemory& other : others) EXPECT_EQ(other.Recall(kNow), "");
}

TEST(IsaCapMemory, IgnoresAFileThatSaysSomethingElse) {
  const std::string folder = testing::TempDir() + "/broken_caps";
  const IsaCapMemory memory(folder, Cpu("a", "1c 2"), "2.21.0");
  memory.Remember("AVX2", 1);
  ASSERT_EQ(memory.Recall(1), "AVX2");
  const std::string path = fs::directory_iterator(folder)->path();
  for (const std::string& content :
       {std::string(), std::string("AVX2"), std::string("ALL 1\n"),
        std::string("AVX2 x\n"), std::string(1000, 'A')}) {
    ASSERT_TRUE(WriteFileAtomically(path, content).ok());
    EXPECT_EQ(memory.Recall(1), "") << content;
  }
}

}  // namespace
}  // namespace requant::tensorflow_child_test
