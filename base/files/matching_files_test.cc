#include "base/files/matching_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace requant::matching_files_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MatchingFiles, AreSortedByName) {
  const std::string folder = testing::TempDir() + "matching/";
  std::filesystem::create_directories(folder);
  for (const char* name : {"b.x", "a.x", "B.x", "c.y"}) {
    std::ofstream(folder + name) << "";
  }
  EXPECT_THAT(MatchingFiles(folder + "*.x"),
              ElementsAre(folder + "B.x", folder + "a.x", folder + "b.x"));
  EXPECT_THAT(MatchingFiles(folder + "*.z"), IsEmpty());
}

}  // namespace
}  // namespace requant::matching_files_test
