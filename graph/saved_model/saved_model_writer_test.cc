#include "graph/saved_model/saved_model_writer.h"

#include <unistd.h>

#include <filesystem>

#include "base/files/file.h"
#include "graph/graph_io.h"
#include "graph/testing/program.h"
#include "tensorflow/core/protobuf/fingerprint.pb.h"

namespace requant::saved_model_writer_test {
namespace {

namespace fs = std::filesystem;

constexpr char kModel[] = "graph/testdata/functions";
constexpr char kData[] = "variables/variables.data-00000-of-00001";

class Writer : public testing::Test {
 protected:
  void SetUp() override {
    options_.source = home_ + "/model";
    options_.target = home_ + "/out";
    // The files are copied, because Bazel's are links.
    for (const char* name :
         {"saved_model.pb", "variables/variables.index", kData}) {
      Add(name, *ReadFile(absl::StrCat(kModel, "/", name)));
    }
  }
  void TearDown() override {
    fs::permissions(home_, fs::perms::owner_all, fs::perm_options::add);
  }

  void Add(const std::string& name, const std::string& content) {
    const fs::path path = options_.source + "/" + name;
    fs::create_directories(path.parent_path());
    ASSERT_OK(WriteFileAtomically(path, content));
  }
  absl::Status Write(const std::optional<std::string>& content = {},
                     const std::string& name = "saved_model.pb") {
    auto writer = SavedModelWriter::Open(options_);
    if (!writer.ok()) return writer.status();
    absl::Status status = (*writer)->Fill(name, content);
    if (status.ok()) status = (*writer)->Commit();
    placed_ = (*writer)->variables();
    notes_ = (*writer)->notes();
    return status;
  }
  std::string Error() { return std::string(Write().message()); }
  std::string Written(const std::string& name) const {
    const auto content = ReadFile(absl::StrCat(options_.target, "/", name));
    return content.ok() ? *content : std::string(content.status().message());
  }
  std::vector<std::string> Names() const { return folder_.Names(); }
  // Returns whether a file of the new model is the source's own.
  bool IsLinked(const std::string& name) const {
    return fs::equivalent(options_.target + "/" + name,
                          options_.source + "/" + name);
  }

  TestFolder folder_;
  const std::string home_ = folder_.path();
  SavedModelWriterOptions options_;
  PlacedVariables placed_;
  std::vector<std::string> notes_;
};

TEST_F(Writer, KeepsEveryFile) {
  Add("assets/words.txt", "a\nb\n");
  Add("assets.extra/requests", "requests");
  Add("debug/saved_model_debug_info.pb", "traces");
  Add("keras_metadata.pb", "keras");
  Add("fingerprint.pb", "print");
  fs::create_directories(options_.source + "/empty/folder");
  ASSERT_OK(Write());
  for (const char* name : {"saved_model.pb", "variables/variables.index", kData,
                           "assets/words.txt", "assets.extra/requests",
                           "debug/saved_model_debug_info.pb",
                           "keras_metadata.pb", "fingerprint.pb"}) {
    EXPECT_EQ(Written(name),
              *ReadFile(absl::StrCat(options_.source, "/", name)));
  }
  EXPECT_TRUE(fs::is_directory(options_.target + "/empty/folder"));
  EXPECT_THAT(Names(), ElementsAre("model", "out"));
}

TEST_F(Writer, LinksVariablesAndNothingElse) {
  options_.variables = VariablePlacement::kLink;
  Add("assets/words.txt", "a\n");
  ASSERT_OK(Write());
  EXPECT_EQ(placed_.linked, 2);
  EXPECT_TRUE(IsLinked(kData));
  EXPECT_FALSE(IsLinked("assets/words.txt"));
}

TEST_F(Writer, CopiesVariablesWhenAsked) {
  options_.variables = VariablePlacement::kCopy;
  ASSERT_OK(Write());
  EXPECT_EQ(placed_.linked, 0);
  EXPECT_FALSE(IsLinked(kData));
}

TEST_F(Writer, FollowsLinksOfTheSource) {
  fs::rename(options_.source + "/variables", home_ + "/elsewhere");
  fs::create_directory_symlink(home_ + "/elsewhere",
                               options_.source + "/variables");
  ASSERT_OK(Write());
  EXPECT_FALSE(fs::is_symlink(options_.target + "/variables"));
  EXPECT_FALSE(fs::is_symlink(options_.target + "/" + kData));
  EXPECT_TRUE(fs::is_regular_file(options_.target + "/" + kData));
}

TEST_F(Writer, RefusesLinksThatLeadAroundInACircle) {
  fs::create_directory_symlink(options_.source, options_.source + "/assets");
  EXPECT_THAT(Error(), HasSubstr("link to a folder that it is in"));
  EXPECT_THAT(Names(), ElementsAre("model"));
}

TEST_F(Writer, ComputesAFingerprintThatTheContentDecides) {
  Add("fingerprint.pb", "the old one");
  const std::string content =
      *ReadFile(std::string(kModel) + "/saved_model.pb");
  ASSERT_OK(Write(content));
  const std::string first = Written("fingerprint.pb");
  tensorflow::FingerprintDef fingerprint;
  ASSERT_TRUE(fingerprint.ParseFromString(first));
  EXPECT_NE(fingerprint.graph_def_program_hash(), 0);
  EXPECT_NE(fingerprint.checkpoint_hash(), 0);
  EXPECT_NE(fingerprint.uuid(), "");
  options_.overwrite = true;
  ASSERT_OK(Write(content));
  EXPECT_EQ(Written("fingerprint.pb"), first);
}

TEST_F(Writer, LeavesOutWhatANewGraphMakesWrong) {
  Add("saved_model.pbtxt", "the old graph");
  ASSERT_OK(Write("new content"));
  EXPECT_EQ(Written("saved_model.pb"), "new content");
  EXPECT_FALSE(fs::exists(options_.target + "/saved_model.pbtxt"));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("left out saved_model.pbtxt")));
}

TEST_F(Writer, RefusesATargetThatExists) {
  ASSERT_OK(Write());
  EXPECT_THAT(Error(), HasSubstr("--overwrite replaces it"));
  options_.overwrite = true;
  EXPECT_EQ(Error(), "");
}

TEST_F(Writer, ReplacesOnlySavedModels) {
  fs::create_directories(options_.target + "/photos");
  options_.overwrite = true;
  EXPECT_THAT(Error(), HasSubstr("other things than a SavedModel"));
  EXPECT_TRUE(fs::exists(options_.target + "/photos"));
}

TEST_F(Writer, ReplacesNoFolderThatHasMoreThanAModel) {
  Add("notes.txt", "of the source");
  ASSERT_OK(Write());
  options_.overwrite = true;
  ASSERT_EQ(Error(), "");
  fs::create_directory(options_.target + "/photos");
  EXPECT_THAT(Error(), HasSubstr("it has \"photos\" in it, which is no part"));
  EXPECT_TRUE(fs::exists(options_.target + "/photos"));
  EXPECT_THAT(Names(), ElementsAre("model", "out"));
}

TEST_F(Writer, SaysWhatToDoAboutAModelThatCameMeanwhile) {
  ASSERT_OK_AND_ASSIGN(auto writer, SavedModelWriter::Open(options_));
  ASSERT_OK(writer->Fill("saved_model.pb", std::nullopt));
  fs::create_directories(options_.target + "/variables");
  EXPECT_THAT(std::string(writer->Commit().message()),
              HasSubstr("it exists; --overwrite replaces it"));
}

TEST_F(Writer, TakesNoFilesOfOthersIntoTheTarget) {
  fs::create_directory_symlink(options_.target, home_ + "/alias");
  for (const char* inside : {"/out", "/out/g.pb", "/out/a/../g.pb"}) {
    EXPECT_FALSE(CheckOutside(home_ + inside, options_.target).ok()) << inside;
  }
  EXPECT_OK(CheckOutside(home_ + "/out.pb", options_.target));
  fs::create_directory(options_.target);
  EXPECT_FALSE(CheckOutside(home_ + "/alias/g.pb", options_.target).ok());
}

TEST_F(Writer, RefusesTheSourceUnderAnyName) {
  options_.overwrite = true;
  options_.target = options_.source + "/../model/";
  EXPECT_THAT(Error(), HasSubstr("it is the model that is read"));
  fs::create_directory_symlink(options_.source, home_ + "/alias");
  options_.target = home_ + "/alias";
  EXPECT_THAT(Error(), HasSubstr("it is the model that is read"));
  options_.target = options_.source + "/inner";
  EXPECT_THAT(Error(), HasSubstr("it is inside the model"));
  options_.target = home_;
  EXPECT_THAT(Error(), HasSubstr("the model that is read is inside it"));
  EXPECT_TRUE(IsSavedModelDirectory(options_.source));
}

TEST_F(Writer, LeavesNothingInAFolderThatCannotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(home_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(Error(), HasSubstr("Permission denied"));
}

TEST_F(Writer, LeavesNothingWithoutCommit) {
  {
    ASSERT_OK_AND_ASSIGN(auto writer, SavedModelWriter::Open(options_));
    ASSERT_OK(writer->Fill("saved_model.pb", std::nullopt));
    EXPECT_FALSE(fs::exists(options_.target));
  }
  EXPECT_THAT(Names(), ElementsAre("model"));
}

}  // namespace
}  // namespace requant::saved_model_writer_test
