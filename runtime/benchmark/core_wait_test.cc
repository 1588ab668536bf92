#include "runtime/benchmark/core_wait.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace requant::core_wait_test {
namespace {

namespace fs = std::filesystem;

TEST(CoreWaitSeconds, AddsUpTheWaitingTimeOfAllThreads) {
  const fs::path folder = fs::path(testing::TempDir()) / "threads";
  fs::create_directories(folder / "10");
  fs::create_directories(folder / "11");
  // Ended between the listing and the reading.
  fs::create_directories(folder / "12");
  std::ofstream(folder / "10" / "schedstat") << "7000000000 1500000000 3\n";
  std::ofstream(folder / "11" / "schedstat") << "0 250000000 1\n";
  EXPECT_DOUBLE_EQ(CoreWaitSeconds(folder).value_or(-1), 1.75);
}

TEST(CoreWaitSeconds, IsUnknownWhereLinuxDoesNotTell) {
  const fs::path folder = fs::path(testing::TempDir()) / "untold";
  fs::create_directories(folder / "10");
  EXPECT_EQ(CoreWaitSeconds(folder), std::nullopt);
  EXPECT_EQ(CoreWaitSeconds(folder / "missing"), std::nullopt);
}

}  // namespace
}  // namespace requant::core_wait_test
