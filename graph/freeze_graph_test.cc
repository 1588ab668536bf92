// The program: its flags as commands for TensorFlow's own have them, and what
// damaged models make of it.

#include <unistd.h>

#include <string_view>

#include "base/files/file.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"

namespace requant::freeze_graph_test {
namespace {

constexpr char kFunctions[] = "graph/testdata/functions";
constexpr char kReferences[] = "graph/testdata/ref_variables";

ProgramRun Freeze(const std::vector<std::string>& arguments) {
  return RunProgram("graph/freeze_graph", arguments);
}

// A path where no file is.
std::string Output(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  unlink(path.c_str());
  return path;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Exit code 1 with one sentence, and no file.
void ExpectFailure(const ProgramRun& outcome, const std::string& path) {
  EXPECT_THAT(outcome, Exits(1));
  EXPECT_THAT(outcome.error, MatchesRegex("freeze_graph: [^\n]*\n"));
  EXPECT_FALSE(Exists(path));
}

TEST(FreezeGraphProgram, UnderstandsTheBlankOfThePublishedCommand) {
  const std::string path = Output("blank.pb");
  const ProgramRun outcome =
      Freeze({absl::StrCat("--input_saved_model_dir=", kReferences),
              "--output_graph=", path, "--output_node_names=y"});
  EXPECT_THAT(outcome, Exits(0));
  ASSERT_OK_AND_ASSIGN(const auto graph, ReadGraph(path));
  EXPECT_TRUE(HasNode(graph, "y"));
  EXPECT_FALSE(HasNode(graph, "named"));
}

TEST(FreezeGraphProgram, TakesValuesBehindABlankAsPythonDoes) {
  const std::string path = Output("values.pb");
  const ProgramRun outcome =
      Freeze({"--input_saved_model_dir", kReferences, "--input_binary", "True",
              "--clear_devices", "False", "--output_graph", path,
              "--saved_model_tags", "serve", "--restore_op_name",
              "save/restore_all", "--checkpoint_version", "2"});
  EXPECT_THAT(outcome, Exits(0, ""));
  EXPECT_TRUE(Exists(path));
}

TEST(FreezeGraphProgram, SaysWhatItIgnores) {
  const std::string path = Output("ignored.pb");
  const ProgramRun outcome =
      Freeze({"--input_saved_model_dir", kReferences, "--output_graph", path,
              "--filename_tensor_name", "save/Const:0"});
  EXPECT_THAT(outcome,
              Exits(0, HasSubstr("--filename_tensor_name is ignored")));
}

TEST(FreezeGraphProgram, TakesOtherTags) {
  const std::string path = Output("tags.pb");
  const ProgramRun outcome =
      Freeze({"--input_saved_model_dir", kReferences, "--output_graph", path,
              "--saved_model_tags", "cpu,train"});
  EXPECT_THAT(outcome, Exits(0));
  EXPECT_TRUE(Exists(path));
}

TEST(FreezeGraphProgram, ListsTheTagsThereAre) {
  const std::string path = Output("wrong_tags.pb");
  const ProgramRun outcome =
      Freeze({"--input_saved_model_dir", kReferences, "--output_graph", path,
              "--saved_model_tags", "gpu"});
  ExpectFailure(outcome, path);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("{gpu}"), HasSubstr("{serve}"),
                                   HasSubstr("{train, cpu}")));
}

TEST(FreezeGraphProgram, RefusesUnclearCommands) {
  EXPECT_THAT(Freeze({}), Exits(2));
  EXPECT_THAT(Freeze({"--input_saved_model_dir=a", "--input_graph=b",
                      "--output_graph=c"}),
              Exits(2));
  EXPECT_THAT(Freeze({"--input_saved_model_dir=a"}).error,
              HasSubstr("--output_graph is missing"));
  EXPECT_THAT(
      Freeze({"--input_saved_model_dir=a", "--output_graph=b", "c"}).error,
      HasSubstr("unexpected argument \"c\""));
}

TEST(FreezeGraphProgram, RefusesTruncatedModels) {
  const std::string folder = testing::TempDir() + "/truncated";
  const std::string path = Output("truncated.pb");
  const std::string whole =
      ReadFile(absl::StrCat(kFunctions, "/saved_model.pb")).value();
  ASSERT_EQ(0, system(("mkdir -p " + folder).c_str()));
  for (const size_t size : {size_t{0}, size_t{1}, whole.size() / 3,
                            whole.size() / 2, whole.size() - 1}) {
    ASSERT_OK(WriteFileAtomically(folder + "/saved_model.pb",
                                  std::string_view(whole).substr(0, size)));
    ExpectFailure(
        Freeze({"--input_saved_model_dir", folder, "--output_graph", path}),
        path);
  }
}

TEST(FreezeGraphProgram, RefusesAModelWithoutVariables) {
  const std::string folder = testing::TempDir() + "/bare";
  const std::string path = Output("bare.pb");
  ASSERT_EQ(0, system(("mkdir -p " + folder).c_str()));
  const auto model = ReadFile(absl::StrCat(kFunctions, "/saved_model.pb"));
  ASSERT_OK(WriteFileAtomically(folder + "/saved_model.pb", *model));
  const ProgramRun outcome =
      Freeze({"--input_saved_model_dir", folder, "--output_graph", path});
  ExpectFailure(outcome, path);
  EXPECT_THAT(outcome.error, HasSubstr("variables.index"));
}

// Bytes all over the index wrong, one at a time: either the damage does not
// matter or it is told in a sentence, also where TensorFlow's own code aborts.
TEST(FreezeGraphProgram, SurvivesADamagedIndex) {
  const std::string folder = testing::TempDir() + "/damaged";
  const std::string path = Output("damaged.pb");
  ASSERT_EQ(0, system(absl::StrCat("rm -rf ", folder, " && cp -rL ", kFunctions,
                                   " ", folder, " && chmod -R u+w ", folder)
                          .c_str()));
  const std::string index = folder + "/variables/variables.index";
  const std::string whole = ReadFile(index).value();
  for (size_t i = 0; i < whole.size(); i += 61) {
    std::string damaged = whole;
    damaged[i] ^= 0x41;
    ASSERT_OK(WriteFileAtomically(index, damaged));
    unlink(path.c_str());
    const ProgramRun outcome =
        Freeze({"--input_saved_model_dir", folder, "--output_graph", path});
    if (outcome.exit_code != 0) ExpectFailure(outcome, path);
  }
}

TEST(FreezeGraphProgram, RefusesAFolderItCannotWriteTo) {
  const ProgramRun outcome = Freeze({"--input_saved_model_dir", kReferences,
                                     "--output_graph=/no/such/folder/x.pb"});
  EXPECT_THAT(outcome, Exits(1, HasSubstr("/no/such/folder")));
}

TEST(FreezeGraphProgram, DoesNotOverwriteItsInput) {
  const std::string folder = testing::TempDir() + "/own";
  ASSERT_EQ(0, system(absl::StrCat("rm -rf ", folder, " && cp -rL ", kFunctions,
                                   " ", folder, " && chmod -R u+w ", folder)
                          .c_str()));
  for (const char* name : {"saved_model.pb", "variables/variables.index"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    const std::string before = ReadFile(path).value();
    const ProgramRun outcome =
        Freeze({"--input_saved_model_dir", folder, "--output_graph", path});
    EXPECT_THAT(outcome, Exits(1, HasSubstr("it is also read")));
    EXPECT_EQ(ReadFile(path).value(), before);
  }
}

TEST(FreezeGraphProgram, SaysThatTheDiskIsFull) {
  EXPECT_THAT(Freeze({"--input_saved_model_dir", kFunctions,
                      "--output_graph=/dev/full"})
                  .error,
              HasSubstr("/dev/full: No space left on device"));
}

}  // namespace
}  // namespace requant::freeze_graph_test
