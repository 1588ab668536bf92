#include "graph/saved_model/saved_model_folder.h"

#include <unistd.h>

#include <filesystem>

#include "base/files/files.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"

namespace requant::saved_model_folder_test {
namespace {

namespace fs = std::filesystem;

constexpr char kModel[] = "graph/testdata/resource_variables";

class ModelFolder : public testing::Test {
 protected:
  // Makes a folder below the home folder that counts as a SavedModel.
  std::string Make(const std::string& name) {
    const std::string path = absl::StrCat(home_, "/", name);
    fs::create_directories(path);
    folder_.Write(name + "/saved_model.pb", "x");
    return path;
  }
  std::string Found(const std::string& name) {
    const auto found = FindSavedModel(absl::StrCat(home_, "/", name));
    return found.ok() ? *found : std::string(found.status().message());
  }
  std::string CopyModel() { return folder_.Copy(kModel, "copy"); }
  static absl::Status Check(const std::string& directory) {
    return CheckVariables(directory, ReadGraph(kModel).value());
  }

  TestFolder folder_;
  const std::string home_ = folder_.path();
};

TEST_F(ModelFolder, IsFoundWhereItIsAndAsServersLayItOut) {
  const std::string plain = Make("plain"), inner = Make("inner/saved_model"),
                    version = Make("version/3"),
                    both = Make("gpt-j-6B/saved_model/1");
  EXPECT_EQ(Found("plain"), plain);
  EXPECT_EQ(Found("plain/"), plain);
  EXPECT_EQ(Found("plain/saved_model.pb"), plain);
  EXPECT_EQ(Found("inner"), inner);
  EXPECT_EQ(Found("version"), version);
  EXPECT_EQ(Found("gpt-j-6B"), both);
  EXPECT_EQ(Found("gpt-j-6B/saved_model"), both);
  EXPECT_EQ(Found("gpt-j-6B/saved_model/1"), both);
}

TEST_F(ModelFolder, OfSeveralVersionsMustBeNamed) {
  const std::string first = Make("model/1"), second = Make("model/2");
  EXPECT_THAT(Found("model"), AllOf(HasSubstr("several SavedModels"),
                                    HasSubstr(first), HasSubstr(second)));
}

TEST_F(ModelFolder, ThatIsNoneIsASentence) {
  EXPECT_THAT(Found("missing"), HasSubstr("No such file"));
  fs::create_directories(home_ + "/empty");
  EXPECT_THAT(Found("empty"), HasSubstr("is an empty folder"));
  fs::create_directories(home_ + "/other/src");
  EXPECT_THAT(Found("other"), HasSubstr("is not a SavedModel"));
  folder_.Write("graph.pb", "x");
  EXPECT_THAT(Found("graph.pb"), HasSubstr("name the folder"));
  ASSERT_EQ(symlink("circle", (home_ + "/circle").c_str()), 0);
  EXPECT_THAT(Found("circle"), HasSubstr("symbolic links"));
}

TEST(SavedModelNames, LeaveOutVersionsAndInnerFolders) {
  EXPECT_EQ(SavedModelName("models/gpt-j-6B/saved_model/1"), "gpt-j-6B");
  EXPECT_EQ(SavedModelName("gpt-j-6B/saved_model"), "gpt-j-6B");
  EXPECT_EQ(SavedModelName("./gpt-j-6B/1/"), "gpt-j-6B");
  EXPECT_EQ(SavedModelName("../gpt-j-6B"), "gpt-j-6B");
  EXPECT_EQ(SavedModelName("/1"), "1");
  EXPECT_EQ(SavedModelName("."), fs::current_path().filename().string());
}

TEST_F(ModelFolder, HasTheValuesOfItsVariables) {
  EXPECT_OK(Check(CopyModel()));
  EXPECT_OK(CheckVariables(home_, GraphDef()));
}

TEST_F(ModelFolder, WithoutItsIndexOrAShardIsRefused) {
  const std::string variables = CopyModel() + "/variables";
  fs::remove(variables + "/variables.data-00000-of-00001");
  EXPECT_THAT(Check(home_ + "/copy"), FailsWith(HasSubstr("is missing")));
  fs::remove_all(variables);
  EXPECT_THAT(Check(home_ + "/copy"),
              FailsWith(HasSubstr("variables.index is missing")));
}

// As after a download that broke off, or of a pointer instead of the file.
TEST_F(ModelFolder, WithAShortShardOrIndexIsRefused) {
  const std::string variables = CopyModel() + "/variables/variables";
  fs::resize_file(variables + ".data-00000-of-00001", 1);
  EXPECT_THAT(Check(home_ + "/copy"),
              FailsWith(HasSubstr("is cut short: it has 1 of")));
  fs::resize_file(variables + ".index", 20);
  EXPECT_THAT(Check(home_ + "/copy"),
              FailsWith(HasSubstr("variables.index is damaged")));
}

}  // namespace
}  // namespace requant::saved_model_folder_test
