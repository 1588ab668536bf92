#include "runtime/benchmark/stream_settings.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "runtime/session/worker.pb.h"

namespace requant {

std::vector<StreamSetting> SettingsToTry(int cores, int streams, int threads) {
  std::set<std::pair<int, int>> pairs;
  if (streams > 0 && threads > 0) {
    pairs.emplace(streams, threads);
  } else if (streams > 0) {
    pairs.emplace(streams, 1);
    pairs.emplace(streams, std::max(1, cores / streams));
  } else if (threads > 0) {
    pairs.emplace(1, threads);
    pairs.emplace(std::max(1, cores / threads), threads);
  } else {
    for (const int some : {1, 2, cores / 4, cores / 2, cores}) {
      if (some < 1 || some > cores) continue;
      pairs.emplace(some, cores / some);
    }
  }
  std::vector<StreamSetting> settings;
  for (const auto& [some_streams, some_threads] : pairs) {
    StreamSetting setting;
    setting.set_streams(some_streams);
    setting.set_threads(some_threads);
    settings.push_back(setting);
  }
  return settings;
}

}  // namespace requant
