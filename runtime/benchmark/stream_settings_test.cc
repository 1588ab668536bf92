#include "runtime/benchmark/stream_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace requant::stream_settings_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<std::pair<int, int>> Try(int cores, int streams, int threads) {
  std::vector<std::pair<int, int>> pairs;
  for (const StreamSetting& setting : SettingsToTry(cores, streams, threads)) {
    pairs.emplace_back(setting.streams(), setting.threads());
  }
  return pairs;
}

TEST(SettingsToTry, RunFromOneStreamToOnePerCore) {
  EXPECT_THAT(Try(2, 0, 0), ElementsAre(Pair(1, 2), Pair(2, 1)));
  EXPECT_THAT(Try(16, 0, 0), ElementsAre(Pair(1, 16), Pair(2, 8), Pair(4, 4),
                                         Pair(8, 2), Pair(16, 1)));
}

TEST(SettingsToTry, HoldsOneForOneCore) {
  EXPECT_THAT(Try(1, 0, 0), ElementsAre(Pair(1, 1)));
}

TEST(SettingsToTry, NeverUsesMoreThreadsThanCores) {
  for (int cores = 1; cores <= 130; ++cores) {
    const auto pairs = Try(cores, 0, 0);
    EXPECT_LE(pairs.size(), 5u);
    for (const auto& [streams, threads] : pairs) {
      EXPECT_GE(threads, 1);
      EXPECT_LE(streams * threads, cores);
    }
  }
}

TEST(SettingsToTry, KeepsWhatIsGiven) {
  EXPECT_THAT(Try(8, 3, 7), ElementsAre(Pair(3, 7)));
  EXPECT_THAT(Try(8, 2, 0), ElementsAre(Pair(2, 1), Pair(2, 4)));
  EXPECT_THAT(Try(8, 0, 2), ElementsAre(Pair(1, 2), Pair(4, 2)));
  EXPECT_THAT(Try(2, 4, 0), ElementsAre(Pair(4, 1)));
}

}  // namespace
}  // namespace requant::stream_settings_test
