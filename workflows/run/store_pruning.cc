#include "workflows/run/store_pruning.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/message_text.h"
#include "base/status_macros.h"

namespace requant {

absl::StatusOr<Pruned> PruneStore(const PruneLimits& limits,
                                  StageStore* store) {
  const std::vector<StoredResult> results = store->Results();
  Pruned pruned;
  for (const StoredResult& result : results) pruned.kept_bytes += result.bytes;
  for (const StoredResult& result : results) {
    if (!result.needed_by.empty()) {
      pruned.needed_bytes += result.bytes;
    } else if (result.last_used < limits.unused_since ||
               pruned.kept_bytes > limits.max_bytes) {
      REQUANT_RETURN_IF_ERROR(store->Remove(result.key));
      ++pruned.results;
      pruned.bytes += result.bytes;
      pruned.kept_bytes -= result.bytes;
    }
  }
  return pruned;
}

std::string PrunedText(const Pruned& pruned) {
  return absl::StrCat("removed ", pruned.results,
                      pruned.results == 1 ? " result" : " results",
                      " of former runs (", SizeText(pruned.bytes), ")");
}

}  // namespace requant
