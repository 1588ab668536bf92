#ifndef REQUANT_RUNTIME_BENCHMARK_STREAM_SETTINGS_H_
#define REQUANT_RUNTIME_BENCHMARK_STREAM_SETTINGS_H_

#include <vector>

#include "runtime/session/worker.pb.h"

namespace requant {

// The ways to use `cores` cores that are worth a try: from one stream with all
// of them to one stream per core, five at most. A number of streams or threads
// that is given (not 0) is kept; with both there is only that one.
std::vector<StreamSetting> SettingsToTry(int cores, int streams, int threads);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_STREAM_SETTINGS_H_
