#include "shell/scripts.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "graph/testing/testing.h"

namespace requant::scripts_test {
namespace {

namespace fs = std::filesystem;

using Args = std::vector<std::string>;

Args ArgumentsOf(const Args& args) {
  const auto command = ScriptCommandOf(args);
  EXPECT_TRUE(command.has_value()) << args[0];
  return command.has_value() ? command->arguments : Args();
}

std::string Refusal(const Args& args) {
  EXPECT_FALSE(ScriptCommandOf(args).has_value());
  return std::string(NoPythonError(args).message());
}

TEST(ScriptCommand, KnowsAScriptByItsNameInAnyFolder) {
  for (const char* path :
       {"freeze_graph.py", "tensorflow/python/tools/freeze_graph.py",
        "/elsewhere/freeze_graph.py"}) {
    const auto command = ScriptCommandOf({path});
    ASSERT_TRUE(command.has_value());
    EXPECT_EQ(command->path, path);
    EXPECT_EQ(command->folder, "graph");
    EXPECT_EQ(command->program, "freeze_graph");
    EXPECT_THAT(command->arguments, IsEmpty());
  }
}

TEST(ScriptCommand, PassesArgumentsOnAsTheyAre) {
  EXPECT_THAT(ArgumentsOf({"quantize_graph.py", "--output=", "a b.pb", "-u",
                           "--", "x.py", ""}),
              ElementsAre("--output=", "a b.pb", "-u", "--", "x.py", ""));
}

TEST(ScriptCommand, SkipsFlagsOfPythonThatDoNotMatter) {
  const Args args = {"-u", "-B", "launch_benchmark.py", "--accuracy-only"};
  EXPECT_EQ(ScriptCommandOf(args)->program, "launch_benchmark");
  EXPECT_THAT(ArgumentsOf(args), ElementsAre("--accuracy-only"));
}

// The published GPT-J example has pairs before the activations of MatMuls only.
TEST(ScriptCommand, HasTheDefaultsOfTheDocument) {
  EXPECT_THAT(ArgumentsOf({"convert.py"}),
              ElementsAre("--saved_model=./gpt-j-6B", "--overwrite_own"));
  EXPECT_THAT(
      ArgumentsOf({"convert.py", "--insert_qdq"}),
      ElementsAre("--saved_model=./gpt-j-6B", "--overwrite_own", "--ops=MatMul",
                  "--inputs=activations", "--insert_qdq"));
  EXPECT_THAT(ArgumentsOf({"run_benchmark.py", "--output_dir=./output"}),
              ElementsAre("--saved_model=./gpt-j-6B,./converted_gpt-j-6B",
                          "--name=gpt-j", "--rounds=3", "--tokens=.",
                          "--output_dir=./output"));
}

TEST(ScriptCommand, GivesWayToFlagsThatAreGiven) {
  EXPECT_THAT(ArgumentsOf({"convert.py", "--saved-model", "other",
                           "--insert_qdq", "-inputs=both"}),
              ElementsAre("--overwrite_own", "--ops=MatMul", "--saved-model",
                          "other", "--insert_qdq", "-inputs=both"));
}

TEST(ScriptCommand, KnowsWhichNamesOtherPeopleUseToo) {
  EXPECT_TRUE(ScriptCommandOf({"convert.py"})->is_common_name);
  EXPECT_FALSE(ScriptCommandOf({"freeze_graph.py"})->is_common_name);
}

TEST(NoPythonError, SaysWhatIsKnown) {
  EXPECT_THAT(Refusal({"train.py"}),
              AllOf(HasSubstr("cannot run train.py"), HasSubstr("no Python"),
                    HasSubstr("launch_benchmark.py")));
  EXPECT_THAT(Refusal({"tools/freeze_grap.py"}),
              HasSubstr("did you mean \"freeze_graph.py\"?"));
  EXPECT_THAT(Refusal({"-c", "print(1)"}), HasSubstr("cannot do -c"));
  EXPECT_THAT(Refusal({"-m", "pip"}), HasSubstr("cannot do -m"));
  EXPECT_THAT(Refusal({}), HasSubstr("no script is given"));
  EXPECT_THAT(Refusal({"-u"}), HasSubstr("no script is given"));
  EXPECT_THAT(Refusal({""}), HasSubstr("cannot run"));
}

TEST(RealPython, IsTheFirstOnThePathThatIsNotOurs) {
  const fs::path root = fs::canonical(testing::TempDir()) / "pythons";
  fs::remove_all(root);
  for (const char* path :
       {"ours/python", "ours/python3", "other/python3", "system/python3"}) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << "#!/bin/sh\n";
    fs::permissions(root / path, fs::perms::owner_all);
  }
  fs::create_directories(root / "links");
  fs::create_symlink(root / "ours/python", root / "links/python");
  fs::create_directories(root / "folders/python");
  const std::string ours = root / "ours", links = root / "links",
                    folders = root / "folders", system = root / "system";
  const std::string path = ours + ":" + links + "::" + folders + ":" + system;
  EXPECT_EQ(RealPython("python3", path, ours), system + "/python3");
  EXPECT_EQ(RealPython("python", path, ours), system + "/python3");
  EXPECT_EQ(RealPython("python", ours + ":" + links, ours), "");
  // In a session within another one, the outer python comes back to this one.
  EXPECT_EQ(RealPython("python3", root.string() + "/other:" + path, ours),
            system + "/python3");
}

}  // namespace
}  // namespace requant::scripts_test
