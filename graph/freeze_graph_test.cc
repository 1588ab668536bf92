// Tests the program: flags as in commands for TensorFlow's own, and damaged
// models.

#include <unistd.h>

#include <filesystem>

#include "graph/testing/program.h"

namespace requant::freeze_graph_test {
namespace {

constexpr char kFunctions[] = "graph/testdata/functions";
constexpr char kReferences[] = "graph/testdata/ref_variables";

class FreezeGraphProgram : public testing::Test {
 protected:
  static ProgramRun Freeze(const std::vector<std::string>& arguments) {
    return RunProgram("graph/freeze_graph", arguments);
  }
  // Freezes a SavedModel into path_, with additional arguments.
  ProgramRun FreezeModel(const std::string& model,
                         std::vector<std::string> more = {}) {
    more.insert(more.end(),
                {"--input_saved_model_dir", model, "--output_graph", path_});
    return Freeze(more);
  }
  bool Wrote() const { return access(path_.c_str(), F_OK) == 0; }

  // Expects exit code 1, a one-sentence error, and no output file.
  void ExpectFailure(const ProgramRun& outcome) {
    EXPECT_THAT(outcome, Exits(1, MatchesRegex("freeze_graph: [^\n]*\n")));
    EXPECT_FALSE(Wrote());
  }

  TestFolder folder_;
  const std::string path_ = folder_.Path("frozen.pb");
};

TEST_F(FreezeGraphProgram, UnderstandsTheBlankOfThePublishedCommand) {
  EXPECT_THAT(Freeze({absl::StrCat("--input_saved_model_dir=", kReferences),
                      "--output_graph=", path_, "--output_node_names=y"}),
              Exits(0));
  const GraphDef graph = folder_.ReadGraphFile("frozen.pb");
  EXPECT_TRUE(HasNode(graph, "y"));
  EXPECT_FALSE(HasNode(graph, "named"));
}

TEST_F(FreezeGraphProgram, TakesValuesAfterABlankAsPythonDoes) {
  EXPECT_THAT(FreezeModel(kReferences,
                          {"--input_binary", "True", "--clear_devices", "False",
                           "--saved_model_tags", "serve", "--restore_op_name",
                           "save/restore_all", "--checkpoint_version", "2"}),
              Exits(0, ""));
  EXPECT_TRUE(Wrote());
}

TEST_F(FreezeGraphProgram, SaysWhatItIgnores) {
  EXPECT_THAT(
      FreezeModel(kReferences, {"--filename_tensor_name", "save/Const:0"}),
      Exits(0, HasSubstr("--filename_tensor_name is ignored")));
}

TEST_F(FreezeGraphProgram, TakesOtherTagsAndListsThoseThereAre) {
  const ProgramRun outcome =
      FreezeModel(kReferences, {"--saved_model_tags", "gpu"});
  ExpectFailure(outcome);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("{gpu}"), HasSubstr("{serve}"),
                                   HasSubstr("{train, cpu}")));
  EXPECT_THAT(FreezeModel(kReferences, {"--saved_model_tags", "cpu,train"}),
              Exits(0));
  EXPECT_TRUE(Wrote());
}

TEST_F(FreezeGraphProgram, RefusesUnclearCommands) {
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

TEST_F(FreezeGraphProgram, RefusesTruncatedModels) {
  const std::string model = folder_.Copy(kFunctions, "model");
  const std::string whole = folder_.Read("model/saved_model.pb");
  for (const size_t size : {size_t{0}, size_t{1}, whole.size() / 3,
                            whole.size() / 2, whole.size() - 1}) {
    folder_.Write("model/saved_model.pb", whole.substr(0, size));
    ExpectFailure(FreezeModel(model));
  }
}

TEST_F(FreezeGraphProgram, RefusesAModelWithoutVariables) {
  const std::string model = folder_.Copy(kFunctions, "model");
  std::filesystem::remove_all(model + "/variables");
  const ProgramRun outcome = FreezeModel(model);
  ExpectFailure(outcome);
  EXPECT_THAT(outcome.error, HasSubstr("variables.index"));
}

// Damages bytes throughout the index, one at a time: either that does not
// matter or a sentence reports it, even if TensorFlow's own code aborts.
TEST_F(FreezeGraphProgram, SurvivesADamagedIndex) {
  const std::string model = folder_.Copy(kFunctions, "model");
  const std::string index = "model/variables/variables.index";
  const std::string whole = folder_.Read(index);
  for (size_t i = 0; i < whole.size(); i += 61) {
    std::string damaged = whole;
    damaged[i] ^= 0x41;
    folder_.Write(index, damaged);
    std::filesystem::remove(path_);
    const ProgramRun outcome = FreezeModel(model);
    if (outcome.exit_code != 0) ExpectFailure(outcome);
  }
}

TEST_F(FreezeGraphProgram, RefusesAFolderItCannotWriteTo) {
  EXPECT_THAT(Freeze({"--input_saved_model_dir", kReferences,
                      "--output_graph=/no/such/folder/x.pb"}),
              Exits(1, HasSubstr("/no/such/folder")));
}

TEST_F(FreezeGraphProgram, DoesNotOverwriteItsInput) {
  const std::string model = folder_.Copy(kFunctions, "model");
  for (const std::string name :
       {"model/saved_model.pb", "model/variables/variables.index"}) {
    const std::string before = folder_.Read(name);
    EXPECT_THAT(Freeze({"--input_saved_model_dir", model, "--output_graph",
                        folder_.Path(name)}),
                Exits(1, HasSubstr("it is also read")));
    EXPECT_EQ(folder_.Read(name), before);
  }
}

TEST_F(FreezeGraphProgram, SaysThatTheDiskIsFull) {
  EXPECT_THAT(Freeze({"--input_saved_model_dir", kFunctions,
                      "--output_graph=/dev/full"})
                  .error,
              HasSubstr("/dev/full: No space left on device"));
}

}  // namespace
}  // namespace requant::freeze_graph_test
