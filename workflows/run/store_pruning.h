#ifndef REQUANT_WORKFLOWS_RUN_STORE_PRUNING_H_
#define REQUANT_WORKFLOWS_RUN_STORE_PRUNING_H_

// Keeps a work folder's cache from growing for ever.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "workflows/run/stage_store.h"

namespace requant {

struct PruneLimits {
  // Results that no run used since then go.
  absl::Time unused_since = absl::InfinitePast();
  // All results together may have this many: the least recently used go until
  // they fit.
  int64_t max_bytes = INT64_MAX;
};

struct Pruned {
  int results = 0;
  int64_t bytes = 0;
  // What remains, and how much of that runs need (StoredResult::needed_by).
  int64_t kept_bytes = 0;
  int64_t needed_bytes = 0;
};

// Removes what is beyond the limits and no run needs. `store` is open for a
// run. A kill at any instant leaves each result whole or gone. Fails at the
// first result that cannot be removed.
absl::StatusOr<Pruned> PruneStore(const PruneLimits& limits, StageStore* store);

// "removed 3 results of former runs (1.20 GB)".
std::string PrunedText(const Pruned& pruned);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_STORE_PRUNING_H_
