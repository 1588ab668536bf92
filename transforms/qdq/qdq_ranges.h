#ifndef REQUANT_TRANSFORMS_QDQ_QDQ_RANGES_H_
#define REQUANT_TRANSFORMS_QDQ_QDQ_RANGES_H_

// The range that each site's pair gets.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "transforms/qdq/qdq_pair.h"
#include "transforms/qdq/qdq_sites.h"

namespace requant {

struct QdqRangeOptions {
  QdqFormat format = QdqFormat::kQint8Scaled;
  // The same range for all, which the format must fit; unless there is a table.
  QdqRange fixed = {-1, 1};
  // What was observed, or null; and how a range is chosen from it.
  const RangeTable* table = nullptr;
  RangeChoiceOptions choice;
  // Sites that the table lacks stay as they are; else they are an error, but
  // for those in functions that the graph does not reach: no run of the graph
  // can observe them.
  bool skip_missing = false;
};

// For each site its range, or nothing where it has none. `warnings` gets a
// sentence on the latter.
absl::StatusOr<std::vector<std::optional<QdqRange>>> RangesOfSites(
    const std::vector<QdqSite>& sites, const QdqRangeOptions& options,
    std::vector<std::string>* warnings);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_QDQ_QDQ_RANGES_H_
