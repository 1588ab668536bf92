#include "workflows/language/shipped_workflows.h"

#include <filesystem>

#include "graph/testing/program.h"

namespace requant::shipped_workflows_test {
namespace {

// Has places without workflows until a test makes one of them a home, with
// wide_deep.textproto and fast.textproto in workflows/.
class FindWorkflowTest : public testing::Test {
 protected:
  FindWorkflowTest() { places_.current = folder_.Path("nowhere"); }

  std::string MakeHome(const std::string& name) {
    std::filesystem::create_directories(folder_.Path(name + "/workflows"));
    for (const char* file :
         {"wide_deep.textproto", "fast.textproto", "BUILD"}) {
      folder_.Write(name + "/workflows/" + file, "\n");
    }
    return folder_.Path(name);
  }

  // Returns the path, or why there is none.
  std::string Found(const std::string& name) {
    const auto path = FindWorkflow(name, places_);
    return path.ok() ? *path : std::string(path.status().message());
  }

  const TestFolder folder_;
  WorkflowPlaces places_;
};

TEST_F(FindWorkflowTest, LooksAtHomeHereAndAboveTheProgram) {
  places_.program = MakeHome("above") + "/bin/workflows/requant";
  EXPECT_EQ(Found("fast"), folder_.Path("above/workflows/fast.textproto"));
  places_.current = MakeHome("current");
  EXPECT_EQ(Found(""), folder_.Path("current/workflows/wide_deep.textproto"));
  places_.home = MakeHome("home");
  EXPECT_EQ(Found("fast"), folder_.Path("home/workflows/fast.textproto"));
}

TEST_F(FindWorkflowTest, ListsNamesAndSummaries) {
  EXPECT_EQ(ShippedWorkflowsText(places_), "");
  places_.home = MakeHome("home");
  folder_.Write("home/workflows/fast.textproto",
                "unknown: 1 summary: \"quick\\033[31m\"");
  folder_.Write("home/workflows/wide_deep.textproto", "damaged {");
  EXPECT_EQ(ShippedWorkflowsText(places_),
            "  fast                quick\\x1b[31m\n"
            "  wide_deep           \n");
}

TEST_F(FindWorkflowTest, LeavesAPathAsItIs) {
  for (const char* path : {"some/where", "mine.textproto", "/absent"}) {
    EXPECT_EQ(Found(path), path);
  }
}

TEST_F(FindWorkflowTest, PrefersAFileHereToAShippedName) {
  places_.home = MakeHome("home");
  places_.current = places_.home + "/workflows";
  folder_.Write("home/workflows/fast", "\n");
  EXPECT_EQ(Found("fast"), "fast");
}

TEST_F(FindWorkflowTest, SuggestsTheNearestNameAndListsThemAll) {
  places_.home = MakeHome("home");
  EXPECT_THAT(Found("wide_dep"),
              HasSubstr("no workflow is named \"wide_dep\" (did you mean "
                        "\"wide_deep\"?); there are fast, wide_deep"));
}

TEST_F(FindWorkflowTest, TellsWhereItLookedWhenThereAreNone) {
  EXPECT_THAT(Found(""), HasSubstr("set REQUANT_HOME"));
}

}  // namespace
}  // namespace requant::shipped_workflows_test
