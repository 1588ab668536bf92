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

// Makes a folder with wide_deep.textproto and fast.textproto in workflows/.
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

// Returns the path, or why there is none.
std::string Found(const std::string& name, const WorkflowPlaces& places) {
  const auto path = FindWorkflow(name, places);
  return path.ok() ? *path : std::string(path.status().message());
}

TEST(FindWorkflow, TakesABareNameFromHome) {
  WorkflowPlaces places = NoPlaces();
  places.home = MakeHome("home");
  EXPECT_EQ(Found("fast", places), places.home + "/workflows/fast.textproto");
}

TEST(FindWorkflow, MeansTheDefaultWhenNoneIsNamed) {
  WorkflowPlaces places = NoPlaces();
  places.current = MakeHome("current");
  EXPECT_EQ(Found("", places),
            places.current + "/workflows/wide_deep.textproto");
}

TEST(FindWorkflow, LooksAboveTheProgram) {
  const std::string home = MakeHome("above");
  WorkflowPlaces places = NoPlaces();
  places.program = home + "/bin/workflows/requant";
  EXPECT_EQ(Found("fast", places), home + "/workflows/fast.textproto");
}

TEST(FindWorkflow, LeavesAPathAsItIs) {
  for (const char* path : {"some/where", "mine.textproto", "/absent"}) {
    EXPECT_EQ(Found(path, NoPlaces()), path);
  }
}

TEST(FindWorkflow, PrefersAFileHereToAShippedName) {
  WorkflowPlaces places = NoPlaces();
  places.home = MakeHome("home");
  places.current = places.home + "/workflows";
  std::ofstream(places.current + "/fast") << "\n";
  EXPECT_EQ(Found("fast", places), "fast");
}

TEST(FindWorkflow, SuggestsTheNearestNameAndListsThemAll) {
  WorkflowPlaces places = NoPlaces();
  places.home = MakeHome("home");
  EXPECT_THAT(Found("wide_dep", places),
              HasSubstr("no workflow is named \"wide_dep\" (did you mean "
                        "\"wide_deep\"?); there are fast, wide_deep"));
}

TEST(FindWorkflow, TellsWhereItLookedWhenThereAreNone) {
  EXPECT_THAT(Found("", NoPlaces()), HasSubstr("set REQUANT_HOME"));
}

TEST(WorkflowsIn, ListsTextprotosByName) {
  EXPECT_THAT(WorkflowsIn(MakeHome("listed") + "/workflows"),
              ElementsAre("fast", "wide_deep"));
  EXPECT_THAT(WorkflowsIn("/absent"), ElementsAre());
}

}  // namespace
}  // namespace requant::shipped_workflows_test
