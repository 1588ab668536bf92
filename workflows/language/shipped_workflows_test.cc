#include "workflows/language/shipped_workflows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace requant::shipped_workflows_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// A folder with workflows/wide_deep.textproto and workflows/fast.textproto.
std::string MakeHome(const std::string& name) {
  const std::string home = testing::TempDir() + "/" + name;
  fs::create_directories(home + "/workflows");
  for (const char* file : {"wide_deep", "fast"}) {
    std::ofstream(home + "/workflows/" + file + ".textproto") << "\n";
  }
  std::ofstream(home + "/workflows/BUILD") << "\n";
  return home;
}

WorkflowPlaces NoPlaces() {
  WorkflowPlaces places;
  places.current = testing::TempDir() + "/nowhere";
  return places;
}

TEST(FindWorkflow, TakesABareNameFromHome) {
  WorkflowPlaces places = NoPlaces();
  places.home = MakeHome("home");
  const auto path = FindWorkflow("fast", places);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, places.home + "/workflows/fast.textproto");
}

TEST(FindWorkflow, MeansTheDefaultWhenNoneIsNamed) {
  WorkflowPlaces places = NoPlaces();
  places.current = MakeHome("current");
  const auto path = FindWorkflow("", places);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, places.current + "/workflows/wide_deep.textproto");
}

TEST(FindWorkflow, LooksAboveTheProgram) {
  const std::string home = MakeHome("above");
  WorkflowPlaces places = NoPlaces();
  places.program = home + "/bin/workflows/requant";
  const auto path = FindWorkflow("fast", places);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, home + "/workflows/fast.textproto");
}

TEST(FindWorkflow, LeavesAPathAsItIs) {
  for (const char* path : {"some/where", "mine.textproto", "/absent"}) {
    const auto found = FindWorkflow(path, NoPlaces());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, path);
  }
}

TEST(FindWorkflow, PrefersAFileHereToAShippedName) {
  WorkflowPlaces places = NoPlaces();
  places.home = MakeHome("home");
  places.current = places.home + "/workflows";
  std::ofstream(places.current + "/fast") << "\n";
  const auto found = FindWorkflow("fast", places);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, "fast");
}

TEST(FindWorkflow, SuggestsTheNearestNameAndListsThemAll) {
  WorkflowPlaces places = NoPlaces();
  places.home = MakeHome("home");
  EXPECT_THAT(FindWorkflow("wide_dep", places).status().message(),
              HasSubstr("no workflow is named \"wide_dep\" (did you mean "
                        "\"wide_deep\"?); there are fast, wide_deep"));
}

TEST(FindWorkflow, TellsWhereItLookedWhenThereAreNone) {
  EXPECT_THAT(FindWorkflow("", NoPlaces()).status().message(),
              HasSubstr("set REQUANT_HOME"));
}

TEST(WorkflowsIn, ListsTextprotosByName) {
  EXPECT_THAT(WorkflowsIn(MakeHome("listed") + "/workflows"),
              ElementsAre("fast", "wide_deep"));
  EXPECT_THAT(WorkflowsIn("/absent"), ElementsAre());
}

}  // namespace
}  // namespace requant::shipped_workflows_test
