#include "docker/python_scripts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace requant {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Refusal(const std::vector<std::string>& args) {
  return std::string(ScriptCommandOf(args).status().message());
}

TEST(ScriptCommand, KnowsAScriptByItsNameInAnyFolder) {
  for (const char* path :
       {"freeze_graph.py", "tensorflow/python/tools/freeze_graph.py",
        "/elsewhere/freeze_graph.py"}) {
    const auto command = ScriptCommandOf({path});
    ASSERT_TRUE(command.ok()) << command.status();
    EXPECT_EQ(command->room, "graph");
    EXPECT_EQ(command->program, "freeze_graph");
    EXPECT_THAT(command->arguments, IsEmpty());
  }
}

TEST(ScriptCommand, PassesArgumentsOnAsTheyAre) {
  const auto command = ScriptCommandOf(
      {"quantize_graph.py", "--output=", "a b.pb", "-u", "--", "x.py", ""});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->arguments,
              ElementsAre("--output=", "a b.pb", "-u", "--", "x.py", ""));
}

TEST(ScriptCommand, SkipsFlagsOfPythonThatDoNotMatter) {
  const auto command =
      ScriptCommandOf({"-u", "-B", "launch_benchmark.py", "--accuracy-only"});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->program, "launch_benchmark");
  EXPECT_THAT(command->arguments, ElementsAre("--accuracy-only"));
}

TEST(ScriptCommand, EveryKnownScriptIsAProgram) {
  for (const std::string& script : KnownScripts()) {
    const auto command = ScriptCommandOf({script});
    ASSERT_TRUE(command.ok()) << command.status();
    EXPECT_EQ(command->program + ".py", script);
  }
}

TEST(ScriptCommand, SaysWhatItKnows) {
  EXPECT_THAT(Refusal({"train.py"}),
              AllOf(HasSubstr("cannot run train.py"), HasSubstr("no Python"),
                    HasSubstr("launch_benchmark.py")));
  EXPECT_THAT(Refusal({"tools/freeze_grap.py"}),
              HasSubstr("did you mean \"freeze_graph.py\"?"));
  EXPECT_THAT(Refusal({"-c", "print(1)"}), HasSubstr("cannot do -c"));
  EXPECT_THAT(Refusal({"-m", "pip"}), HasSubstr("cannot do -m"));
  EXPECT_THAT(Refusal({}), HasSubstr("no script is given"));
  EXPECT_THAT(Refusal({"-u"}), HasSubstr("no script is given"));
  EXPECT_FALSE(ScriptCommandOf({""}).ok());
}

}  // namespace
}  // namespace requant
