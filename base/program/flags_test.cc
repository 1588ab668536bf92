#include "base/program/flags.h"

#include <gflags/gflags.h>

#include <cstdio>
#include <cstdlib>

#include "base/testing/testing.h"

DEFINE_string(in_graph, "", "The graph to read.");
DEFINE_bool(verify, true, "Whether to verify.");
DEFINE_double(percentile, 99.99, "Which values count.");
DEFINE_int32(stop_after, 0, "How many transforms to run.");

namespace requant::flags_test {
namespace {

class Flags : public testing::Test {
 protected:
  ~Flags() override {
    FLAGS_in_graph.clear();
    FLAGS_verify = true;
    FLAGS_stop_after = 0;
  }

  std::optional<int> Parse(const std::vector<std::string>& args) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto code = ParseFlags(args, help_, &positional_);
    out_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }

  ProgramHelp help_ = {"prog", "Does a thing.", "$0 FILE", {__FILE__}, ""};
  std::vector<std::string> positional_;
  std::string out_, error_;
};

TEST_F(Flags, TakesEveryWayToWriteAFlag) {
  EXPECT_EQ(Parse({"--in-graph", "a.pb", "x", "--noverify", "-stop_after=3",
                   "-", "--", "--y"}),
            std::nullopt);
  EXPECT_EQ(FLAGS_in_graph, "a.pb");
  EXPECT_FALSE(FLAGS_verify);
  EXPECT_EQ(FLAGS_stop_after, 3);
  EXPECT_THAT(positional_, ElementsAre("x", "-", "--y"));
}

TEST_F(Flags, TakesPythonStyleBools) {
  EXPECT_EQ(Parse({"--verify=False"}), std::nullopt);
  EXPECT_FALSE(FLAGS_verify);
}

TEST_F(Flags, KeepsTheLastValueOfAFlagThatMayNotBeRepeated) {
  EXPECT_EQ(Parse({"--in_graph=a.pb", "--in_graph=b.pb"}), std::nullopt);
  EXPECT_EQ(FLAGS_in_graph, "b.pb");
}

TEST_F(Flags, JoinsTheValuesOfARepeatableFlag) {
  FLAGS_in_graph = "default.pb";
  help_.repeatable_flags = {"in_graph"};
  EXPECT_EQ(Parse({"--in_graph=a.pb", "--in-graph", "b.pb,c.pb"}),
            std::nullopt);
  EXPECT_EQ(FLAGS_in_graph, "a.pb,b.pb,c.pb");
  EXPECT_THAT(HelpText(help_), HasSubstr("--in_graph=<string>..."));
}

TEST_F(Flags, TakesOtherSpellingsThatTheHelpDoesNotList) {
  help_.aliases = {{"graph", "in_graph"}};
  help_.repeatable_flags = {"in_graph"};
  EXPECT_EQ(Parse({"--graph=a.pb", "--in_graph=b.pb", "--graph", "c.pb"}),
            std::nullopt);
  EXPECT_EQ(FLAGS_in_graph, "a.pb,b.pb,c.pb");
  EXPECT_THAT(HelpText(help_), Not(HasSubstr("--graph")));
}

TEST_F(Flags, SuggestsTheNearestFlag) {
  EXPECT_EQ(Parse({"--in_grph=a.pb"}), kExitUsage);
  EXPECT_EQ(
      error_,
      "prog: unknown flag --in_grph (did you mean \"in_graph\"?); see prog "
      "--help\n");
}

TEST_F(Flags, RefusesAFlagOfAnotherProgramInTheBinary) {
  help_.flag_files = {"other.cc"};
  EXPECT_EQ(Parse({"--stop_after=3"}), kExitUsage);
  EXPECT_THAT(error_, HasSubstr("unknown flag --stop_after;"));
  EXPECT_EQ(Parse({"--noverify"}), kExitUsage);
  EXPECT_EQ(FLAGS_stop_after, 0);
  EXPECT_TRUE(FLAGS_verify);
}

TEST_F(Flags, RefusesAValueOfTheWrongType) {
  EXPECT_EQ(Parse({"--stop_after=many"}), kExitUsage);
  EXPECT_THAT(
      error_,
      HasSubstr("--stop_after takes a value of type int32, not \"many\""));
}

TEST_F(Flags, RefusesAMissingValue) {
  EXPECT_EQ(Parse({"--in_graph"}), kExitUsage);
  EXPECT_THAT(error_, HasSubstr("--in_graph needs a value"));
}

TEST_F(Flags, HelpListsOnlyTheProgramsOwnFlags) {
  EXPECT_EQ(Parse({"--help"}), kExitOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("--stop_after=<int32>  (default 0)"),
                          HasSubstr("\nUsage:\n  prog FILE\n"),
                          HasSubstr("--percentile=<double>  (default 99.99)"),
                          HasSubstr("--noverify turns it off"),
                          Not(HasSubstr("flagfile"))));
}

TEST_F(Flags, HelpSaysWhatASharedFlagDoesHere) {
  help_.descriptions = {{"in_graph", "Where to begin."}};
  EXPECT_THAT(HelpText(help_), AllOf(HasSubstr("Where to begin."),
                                     Not(HasSubstr("The graph to read."))));
}

// Prints to `path` as a main function does and exits with its code.
[[noreturn]] void PrintTo(const char* path, size_t bytes, int exit_code) {
  if (std::freopen(path, "w", stdout) == nullptr) std::_Exit(99);
  std::fputs(std::string(bytes, 'x').c_str(), stdout);
  std::_Exit(FinishOutput("prog", exit_code));
}

TEST(FinishOutputDeathTest, FailsWhenTheOutputIsLost) {
  const char kMessage[] =
      "^prog: cannot write the result: No space left on device\n$";
  EXPECT_EXIT(PrintTo("/dev/full", 10, kExitOk),
              testing::ExitedWithCode(kExitFailed), kMessage);
  EXPECT_EXIT(PrintTo("/dev/full", 1 << 20, kExitOk),
              testing::ExitedWithCode(kExitFailed), kMessage);
}

TEST(FinishOutputDeathTest, KeepsTheExitCodeOfAnEarlierFailure) {
  EXPECT_EXIT(PrintTo("/dev/full", 10, kExitAccuracyGate),
              testing::ExitedWithCode(kExitAccuracyGate), "cannot write");
}

TEST(FinishOutputDeathTest, SaysNothingWhenAllIsWritten) {
  EXPECT_EXIT(PrintTo("/dev/null", 10, kExitOk),
              testing::ExitedWithCode(kExitOk), "^$");
}

TEST(ParseTruth, TakesWhatPythonProgramsTake) {
  for (const char* text : {"True", "true", "1", "YES"}) {
    EXPECT_EQ(ParseTruth(text), true) << text;
  }
  for (const char* text : {"False", "false", "0", "no"}) {
    EXPECT_EQ(ParseTruth(text), false) << text;
  }
  for (const char* text : {"", "maybe", "2", "truee"}) {
    EXPECT_EQ(ParseTruth(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace requant::flags_test
