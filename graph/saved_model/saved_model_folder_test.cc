#include "graph/saved_model/saved_model_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files/file.h"
#include "base/files/files.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"

namespace requant::saved_model_folder_test {
namespace {

namespace fs = std::filesystem;

constexpr char kModel[] = "graph/testdata/resource_variables";

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    home_ = testing::TempDir() + "/models.XXXXXX";
    ASSERT_NE(mkdtemp(home_.data()), nullptr);
  }
  void TearDown() override { RemoveTree(home_); }

  // A folder below the home folder that counts as a SavedModel.
  std::string Make(const std::string& name) {
    const std::string path = absl::StrCat(home_, "/", name);
    fs::create_directories(path);
    EXPECT_OK(WriteFileAtomically(path + "/saved_model.pb", "x"));
    return path;
  }
  std::string Found(const std::string& name) {
    const auto found = FindSavedModel(absl::StrCat(home_, "/", name));
    return found.ok() ? *found : std::string(found.status().message());
  }
  // A copy of the test model, whose files may be links to the original ones.
  std::string CopyModel() {
    const std::string path = absl::StrCat(home_, "/copy");
    const auto files = FilesBelow(kModel);
    EXPECT_OK(files);
    for (const std::string& file : *files) {
      const std::string copy = absl::StrCat(path, "/", file);
      fs::create_directories(fs::path(copy).parent_path());
      EXPECT_OK(CopyFile(absl::StrCat(kModel, "/", file), copy));
      fs::permissions(copy, fs::perms::owner_write, fs::perm_options::add);
    }
    return path;
  }
  static std::string VariablesError(const std::string& directory) {
    const auto graph = ReadGraph(kModel);
    EXPECT_OK(graph);
    return std::string(CheckVariables(directory, *graph).message());
  }

  std::string home_;
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
  ASSERT_OK(WriteFileAtomically(home_ + "/graph.pb", "x"));
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
  EXPECT_EQ(VariablesError(CopyModel()), "");
}

TEST_F(ModelFolder, WithoutVariablesIsWholeWhenTheGraphHasNone) {
  EXPECT_OK(CheckVariables(home_, GraphDef()));
}

TEST_F(ModelFolder, WithoutItsIndexIsRefused) {
  const std::string model = CopyModel();
  fs::remove_all(model + "/variables");
  EXPECT_THAT(VariablesError(model), HasSubstr("variables.index is missing"));
}

TEST_F(ModelFolder, WithoutAShardIsRefused) {
  const std::string model = CopyModel();
  fs::remove(model + "/variables/variables.data-00000-of-00001");
  EXPECT_THAT(VariablesError(model), HasSubstr("is missing"));
}

// As after a download that broke off, or of a pointer instead of the file.
TEST_F(ModelFolder, WithAShortShardIsRefused) {
  const std::string model = CopyModel();
  fs::resize_file(model + "/variables/variables.data-00000-of-00001", 1);
  EXPECT_THAT(VariablesError(model), HasSubstr("is cut short: it has 1 of"));
}

TEST_F(ModelFolder, WithADamagedIndexIsRefused) {
  const std::string model = CopyModel();
  fs::resize_file(model + "/variables/variables.index", 20);
  EXPECT_THAT(VariablesError(model), HasSubstr("variables.index is damaged"));
}

}  // namespace
}  // namespace requant::saved_model_folder_test
