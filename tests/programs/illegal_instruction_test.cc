// Simulates a machine on which TensorFlow dies of SIGILL unless a cap keeps
// oneDNN from using something. Programs detect this, go on, and remember it.

#include <filesystem>

#include "base/process/machine.h"
#include "graph/tensorflow_library.h"
#include "tests/support/mixed_records.h"
#include "tests/support/program_runs.h"

namespace requant::illegal_instruction_test {
namespace {

namespace fs = std::filesystem;

class IllegalInstruction : public testing::Test {
 protected:
  // Runs a program as a user with a cache folder but without a cap does.
  ProgramRun Run(const std::string& program, const Words& arguments,
                 const std::string& users_cap = "") {
    return RunProgram(program, arguments,
                      {"XDG_CACHE_HOME=" + folder_.Path("cache"),
                       "DNNL_MAX_CPU_ISA=", "ONEDNN_MAX_CPU_ISA=" + users_cap,
                       "LD_LIBRARY_PATH=" + TensorFlowLibraryFolder().value()});
  }

  // The cap that the machine needs.
  const std::string cap_ = LowerIsaCap(ProbeCpu(), OneDnnIsaCap(ProbeCpu()));
  const std::string warning_ = absl::StrCat(
      "warning: TensorFlow died of an instruction that this CPU does not run "
      "(SIGILL); trying again with ONEDNN_MAX_CPU_ISA=",
      cap_, ", which is kept for this machine if it helps\n");
  TestFolder folder_;
};

class InATransform : public IllegalInstruction {
 protected:
  ProgramRun Transform(const std::string& users_cap = "") {
    const std::string graph =
        folder_.WriteText("g.pbtxt", GraphFromText(Placeholder("x")));
    return Run(kTransformGraph,
               {"--in_graph=" + graph, "--out_graph=" + folder_.Path("out.pb"),
                "--plugins=tests/plugins/odd_plugin.so",
                absl::StrCat("--transforms=die_without_cap(cap=\"", cap_,
                             "\", path=\"", folder_.Path("out.pb"), "\")")},
               users_cap);
  }
};

TEST_F(InATransform, IsTriedAgainAndRemembered) {
  for (const bool first : {true, false}) {
    const ProgramRun run = Transform();
    EXPECT_THAT(run, Exits(0));
    // No message is repeated, and no half-written file remains.
    EXPECT_EQ(run.error,
              first ? absl::StrCat("speaks\ntransform_graph: ", warning_)
                    : "speaks\n");
    EXPECT_EQ(run.out.find("prints\n"), run.out.rfind("prints\n")) << run.out;
    EXPECT_THAT(run.out, HasSubstr("prints\n"));
    EXPECT_THAT(folder_.Names(), ElementsAre("cache", "g.pbtxt", "out.pb"));
  }
}

TEST_F(InATransform, IsNotTriedAgainUnderTheUsersOwnCap) {
  EXPECT_THAT(Transform("AVX"),
              Fails("was ended by SIGILL", Not(HasSubstr("trying again"))));
}

class InAGraph : public IllegalInstruction {
 protected:
  InAGraph() {
    EXPECT_OK(WriteMixedRecords(folder_.Path("train.npz"),
                                MixedSplit::kCalibration, 500));
  }

  // Runs with `preloaded` in the process, which dies after calibrating.
  ProgramRun Quantize(const std::string& output,
                      const std::string& preloaded = "") {
    const char* asan = std::getenv("ASAN_OPTIONS");
    return Run(
        "/usr/bin/env",
        {"LD_PRELOAD=" + preloaded, "DIE_WITHOUT_CAP=" + cap_,
         absl::StrCat("ASAN_OPTIONS=", asan == nullptr ? "" : asan,
                      ":verify_asan_link_order=0"),
         "runtime/quantize_model", "--graph=tests/data/mixed_layers/frozen.pb",
         "--target=any", "--dataset=tests/data/mixed_layers/dataset.textproto",
         "--data=" + folder_.Path("train.npz"),
         "--output=" + folder_.Path(output),
         "--log_file=" + folder_.Path("log")});
  }
};

TEST_F(InAGraph, IsTriedAgainAndRemembered) {
  const ProgramRun whole = Quantize("whole.pb");
  ASSERT_THAT(whole, Exits(0));
  for (const bool first : {true, false}) {
    const ProgramRun run = Quantize(
        "again.pb", fs::canonical("tests/plugins/die_without_cap.so").string());
    ASSERT_THAT(run, Exits(0));
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), first)
        << run.error;
    EXPECT_THAT(run.error, EndsWith(first ? warning_ : ""));
    // Nothing is printed twice.
    EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'),
              std::count(whole.out.begin(), whole.out.end(), '\n'));
    EXPECT_TRUE(folder_.Read("again.pb") == folder_.Read("whole.pb"));
    // The last try keeps the ranges and then the graph that it compares.
    EXPECT_EQ(folder_.Read("log"), "started\nstarted\n");
  }
}

}  // namespace
}  // namespace requant::illegal_instruction_test
